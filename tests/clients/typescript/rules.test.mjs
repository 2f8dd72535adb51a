// The rules of the client, against a scripted transport.

import assert from "node:assert/strict";
import { test } from "node:test";
import { NetworkError, ProblemError, YarrowClient, readEvents } from "./client/dist/index.js";
import { wechatTransport } from "./client/dist/wechat.js";
import { Utf8Decoder } from "./client/dist/utf8.js";

/** Returns a transport that gives these replies in turn, and the requests that it got. */
function scripted(...replies) {
  const requests = [];
  const transport = async (request) => {
    requests.push(request);
    const reply = replies[Math.min(requests.length, replies.length) - 1];
    if (reply instanceof Error) throw reply;
    const text = typeof reply.body === "string" ? reply.body : JSON.stringify(reply.body ?? {});
    return {
      status: reply.status ?? 200,
      header: (name) => reply.headers?.[name] ?? null,
      text: async () => text,
      async *chunks() {
        yield* reply.chunks ?? [text];
        if (reply.breaks) throw new Error("broken");
      },
    };
  };
  return { transport, requests };
}

function client(script, more = {}) {
  return new YarrowClient({ baseUrl: "https://x.test/", transport: script.transport, maxRetryDelay: 2000, ...more });
}

const cast = { question: "？", method: "three_coins" };
const busy = (retryAfter) => ({ status: 503, headers: { "retry-after": retryAfter }, body: { code: "overloaded", status: 503 } });
const inDays = (days) => new Date(Date.now() + days * 24 * 3600 * 1000).toISOString();

test("waits as long as Retry-After says, with one key for all attempts", async () => {
  const script = scripted(busy("1"), { body: { id: "s" } });
  const begun = Date.now();
  assert.equal((await client(script).cast(cast)).id, "s");
  assert.ok(Date.now() - begun >= 1000);
  const keys = script.requests.map(({ headers }) => headers["Idempotency-Key"]);
  assert.equal(keys.length, 2);
  assert.match(keys[0], /^[0-9a-f]{32}$/);
  assert.equal(keys[0], keys[1]);
});

test("leaves a long wait to the user", async () => {
  const script = scripted(busy("60"));
  const failure = await client(script).cast(cast).catch((error) => error);
  assert.ok(failure instanceof ProblemError);
  assert.deepEqual([failure.code, failure.retryAfter, script.requests.length], ["overloaded", 60, 1]);
});

test("repeats nothing that could take effect twice", async () => {
  for (const reply of [busy("0"), new Error("reset")]) {
    const script = scripted(reply);
    const failure = await client(script).sendCode("a@example.com").catch((error) => error);
    assert.ok(failure instanceof (reply instanceof Error ? NetworkError : ProblemError));
    assert.equal(script.requests.length, 1);
  }
  const script = scripted(new Error("reset"), { body: { balance: 3 } });
  assert.equal((await client(script).get("/api/v1/points")).balance, 3);
});

test("problems have code, message and fields", async () => {
  const body = {
    code: "invalid_parameters", status: 422, detail: "d", message: "部分参数有误",
    errors: [{ field: "question", code: "required", message: "is required" }],
  };
  const failure = await client(scripted({ status: 422, body })).cast({}).catch((error) => error);
  assert.equal(failure.code, "invalid_parameters");
  assert.equal(failure.userMessage, "部分参数有误");
  assert.equal(failure.fields[0].field, "question");
  const proxy = await client(scripted({ status: 413, body: "<html>" })).cast(cast).catch((error) => error);
  assert.deepEqual([proxy.code, proxy.status], ["unknown", 413]);
});

test("replaces a token that expires soon, once for concurrent requests", async () => {
  const script = scripted({ body: { token: "new", expiresAt: inDays(30) } }, { body: { balance: 1 } });
  const kept = [];
  const yarrow = client(script, {
    session: { token: "old", expiresAt: inDays(2) },
    onSession: (session) => kept.push(session?.token),
  });
  await Promise.all([yarrow.get("/api/v1/points"), yarrow.get("/api/v1/points")]);
  const sent = script.requests.map(({ url, headers }) => [url.slice(14), headers.Authorization]);
  assert.deepEqual(sent, [
    ["/api/v1/auth/refresh", "Bearer old"],
    ["/api/v1/points", "Bearer new"],
    ["/api/v1/points", "Bearer new"],
  ]);
  assert.deepEqual(kept, ["new"]);
});

test("tokens with a short life are not replaced at every request", async () => {
  const script = scripted({ body: { token: "new", expiresAt: inDays(1) } }, { body: {} });
  const yarrow = client(script, { session: { token: "old", expiresAt: inDays(0.1) } });
  for (let times = 0; times < 3; times += 1) await yarrow.get("/api/v1/points");
  assert.equal(script.requests.filter(({ url }) => url.endsWith("/refresh")).length, 1);
});

test("a sign-in that has ended is forgotten", async () => {
  const kept = [];
  const script = scripted({ status: 401, body: { code: "unauthenticated", status: 401 } });
  const yarrow = client(script, {
    session: { token: "old", expiresAt: inDays(20) },
    onSession: (session) => kept.push(session),
  });
  await assert.rejects(yarrow.get("/api/v1/points"), { code: "unauthenticated" });
  assert.deepEqual([kept, yarrow.isSignedIn], [[undefined], false]);
});

test("lists are read page by page, and paths are encoded", async () => {
  const script = scripted({ body: { items: [1, 2], nextCursor: "a b" } }, { body: { items: [3], nextCursor: null } });
  const found = [];
  for await (const item of client(script).items("/api/v1/sessions", { query: { search: "换 工作" } })) found.push(item);
  assert.deepEqual(found, [1, 2, 3]);
  const search = encodeURIComponent("换 工作");
  assert.deepEqual(script.requests.map(({ url }) => url.split("?")[1]), [`search=${search}`, `search=${search}&cursor=a%20b`]);
  await client(script).get("/api/v1/sessions/{id}", { path: { id: "a/b" } });
  assert.equal(script.requests.at(-1).url, "https://x.test/api/v1/sessions/a%2Fb");
});

test("a stream continues after the last event", async () => {
  const event = (id, name, data) => `id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const script = scripted(
    { chunks: [": heartbeat\n\n", event("t:0", "meta", { traceId: "t" }), event("t:3", "delta", { text: "乾" })], breaks: true },
    { chunks: [event("t:6", "delta", { text: "坤" }).slice(0, 20), event("t:6", "delta", { text: "坤" }).slice(20),
      event("t:6", "done", { text: "乾坤" })] },
  );
  const seen = [];
  for await (const one of client(script).interpret("s")) seen.push(one.type === "text" ? one.text : one.type);
  assert.deepEqual(seen, ["started", "乾", "坤", "done"]);
  assert.deepEqual(script.requests.map(({ headers }) => headers["Last-Event-ID"]), [undefined, "t:3"]);
  assert.equal(script.requests[0].headers["Idempotency-Key"], script.requests[1].headers["Idempotency-Key"]);
});

test("a call that fails midway and starts again tells to clear the text", async () => {
  const event = (id, name, data) => `${id ? `id: ${id}\n` : ""}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const script = scripted(
    { chunks: [event("a:0", "meta", { traceId: "a" }), event("a:3", "delta", { text: "乾" }),
      event("", "error", { code: "provider_failed", status: 502 })] },
    { chunks: [event("b:0", "meta", { traceId: "b" }), event("b:3", "delta", { text: "坤" }), event("b:3", "done", {})] },
  );
  let text = "";
  const seen = [];
  for await (const one of client(script).interpret("s")) {
    seen.push(one.type);
    if (one.type === "restarted") text = "";
    if (one.type === "text") text += one.text;
  }
  assert.deepEqual(seen, ["started", "text", "restarted", "text", "done"]);
  assert.equal(text, "坤");
});

test("a lost answer of the refresh is repeated at once", async () => {
  const kept = [];
  const script = scripted(new Error("reset"), { body: { token: "new", expiresAt: inDays(30) } }, { body: {} });
  const yarrow = client(script, {
    session: { token: "old", expiresAt: inDays(2) },
    onSession: (session) => kept.push(session?.token),
  });
  await yarrow.get("/api/v1/points");
  const sent = script.requests.map(({ url, headers }) => [url.slice(14), headers.Authorization]);
  assert.deepEqual(sent, [
    ["/api/v1/auth/refresh", "Bearer old"],
    ["/api/v1/auth/refresh", "Bearer old"],
    ["/api/v1/points", "Bearer new"],
  ]);
  assert.deepEqual(kept, ["new"]);
});

test("a refresh that is not answered is repeated before the grace ends", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const requests = [];
  const transport = (request) => {
    requests.push(request);
    return new Promise(() => {});
  };
  client({ transport }, { session: { token: "old", expiresAt: inDays(2) } }).get("/api/v1/points");
  for (let seconds = 0; seconds < 30; seconds += 1) {
    for (let turns = 0; turns < 20; turns += 1) await Promise.resolve();
    context.mock.timers.tick(1000);
  }
  assert.deepEqual(requests.map(({ url }) => url.slice(14)), [
    "/api/v1/auth/refresh", "/api/v1/auth/refresh", "/api/v1/auth/refresh", "/api/v1/points",
  ]);
});

test("a wrong clock does not keep the client from replacing tokens", async () => {
  const fresh = { body: { token: "new", expiresAt: inDays(30) }, headers: { date: new Date().toUTCString() } };
  const refreshes = (script) => script.requests.filter(({ url }) => url.endsWith("/refresh")).length;
  const real = Date.now;
  for (const [years, headers, times] of [[1, fresh.headers, 1], [1, {}, 1], [-1, fresh.headers, 1], [0, fresh.headers, 1]]) {
    const old = { token: "old", expiresAt: inDays(2) };
    const script = scripted({ headers, body: {} });
    const answers = script.transport;
    const transport = async (request) =>
      request.url.endsWith("/refresh")
        ? (script.requests.push(request), { status: 200, header: (name) => headers[name] ?? null, text: async () => JSON.stringify(fresh.body) })
        : answers(request);
    Date.now = () => real() + years * 365 * 24 * 3600 * 1000;
    try {
      const yarrow = client({ transport }, { session: old });
      for (let request = 0; request < 4; request += 1) await yarrow.get("/api/v1/points");
    } finally {
      Date.now = real;
    }
    assert.equal(refreshes(script), times, `${years} years`);
  }
});

test("a chat arrives in pieces, and its error is a problem", async () => {
  const chunk = (content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
  const conversation = { messages: [{ role: "user", content: "？" }] };
  const script = scripted({ chunks: [chunk("乾"), chunk("坤"), "data: [DONE]\n\n"] });
  const pieces = [];
  for await (const piece of client(script).chat(conversation)) pieces.push(piece);
  assert.deepEqual(pieces, ["乾", "坤"]);
  assert.equal(JSON.parse(script.requests[0].body).stream, true);
  const error = { code: "provider_failed", message: "d", status: 502, userMessage: "请稍后再试。" };
  const failing = client(scripted({ chunks: [chunk("乾"), `data: ${JSON.stringify({ error })}\n\n`] })).chat(conversation);
  assert.equal((await failing.next()).value, "乾");
  await assert.rejects(failing.next(), { code: "provider_failed", status: 502, userMessage: "请稍后再试。" });
  const cut = client(scripted({ chunks: [chunk("乾")] })).chat(conversation);
  await cut.next();
  await assert.rejects(cut.next(), NetworkError);
});

test("a deleted account is signed out", async () => {
  for (const remove of [(yarrow) => yarrow.deleteAccount(), (yarrow) => yarrow.delete("/api/v1/account")]) {
    const kept = [];
    const yarrow = client(scripted({ status: 204, body: "" }), {
      session: { token: "old", expiresAt: inDays(20) },
      onSession: (session) => kept.push(session),
    });
    await remove(yarrow);
    assert.deepEqual([kept, yarrow.isSignedIn], [[undefined], false]);
  }
});

test("an error in a stream is a problem", async () => {
  const data = JSON.stringify({ code: "insufficient_points", status: 402, detail: "d" });
  const script = scripted({ chunks: [`event: error\ndata: ${data}\n\n`] });
  await assert.rejects(client(script).interpret("s").next(), { code: "insufficient_points" });
});

test("events are read whatever the line ends and pieces", async () => {
  const text = "\r\ndata: a\r\ndata:b\r\n\r\n: comment\n\nevent: x\nid: 7\ndata: c\n\ndata: cut";
  for (const size of [1, 2, 3, 100]) {
    async function* pieces() {
      for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
    }
    const events = [];
    for await (const event of readEvents(pieces())) events.push(event);
    assert.deepEqual(events, [
      { event: "message", data: "a\nb", id: undefined },
      { event: "x", data: "c", id: "7" },
    ], `pieces of ${size}`);
  }
});

test("characters may be cut anywhere", () => {
  const text = "aé易😀z";
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at <= bytes.length; at += 1) {
    const decoder = new Utf8Decoder();
    assert.equal(decoder.decode(bytes.slice(0, at)) + decoder.decode(bytes.slice(at)), text);
  }
  assert.equal(new Utf8Decoder().decode(new Uint8Array([0x80, 0xe6, 0x41])), "\ufffd\ufffdA");
});

test("a mini-program sends PATCH as POST and reads chunks", async () => {
  const sent = [];
  const wx = {
    request(options) {
      sent.push(options);
      const listeners = {};
      queueMicrotask(() => {
        if (!options.enableChunked) return options.success({ statusCode: 200, header: {}, data: '{"locale":"en"}' });
        listeners.headers({ header: { "Content-Type": "text/event-stream" }, statusCode: 200 });
        const bytes = new TextEncoder().encode('id: 1.0.0\nevent: balances\ndata: {"points":7,"coins":0,"n":"易"}\n\n');
        listeners.chunk({ data: bytes.slice(0, 60).buffer });
        listeners.chunk({ data: bytes.slice(60).buffer });
        options.success({ statusCode: 200, header: {}, data: "" });
      });
      return {
        abort() {},
        onHeadersReceived: (listener) => (listeners.headers = listener),
        onChunkReceived: (listener) => (listeners.chunk = listener),
      };
    },
  };
  const yarrow = new YarrowClient({ baseUrl: "https://x.test", transport: wechatTransport(wx) });
  assert.equal((await yarrow.patch("/api/v1/preferences", { body: { locale: "en" } })).locale, "en");
  assert.deepEqual([sent[0].method, sent[0].header["X-HTTP-Method-Override"]], ["POST", "PATCH"]);
  const { value } = await yarrow.inbox().next();
  assert.deepEqual(value, { type: "balances", balances: { points: 7, coins: 0, n: "易" } });
});
