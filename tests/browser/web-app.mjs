// A web app on another origin: signs in, casts and reads a stream, and is kept away from administrators' endpoints.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename } from "node:path";
import { check, startNew } from "./harness.mjs";

const EMAIL = "ada@example.com";
const CODE = "24681024";

/** Serves an empty page of another site, and the modules in a directory. */
async function serveEmptyPage(directory) {
  const server = createServer(({ url }, response) => {
    if (!directory || !url.endsWith(".js")) return response.setHeader("content-type", "text/html").end("<title>app</title>");
    response.setHeader("content-type", "text/javascript").end(readFileSync(`${directory}/${basename(url)}`));
  });
  await new Promise(done => server.listen(0, "127.0.0.1", done));
  const stop = () => { server.close(); server.closeAllConnections(); };
  // Another site than 127.0.0.1.
  return { origin: `http://localhost:${server.address().port}`, stop };
}

/** Runs in the page: the journey of a user with nothing but `fetch`. */
async function journey({ url, email, code }) {
  const call = async (method, path, body, headers = {}) => {
    const sent = body && JSON.stringify(body);
    const type = body ? { "Content-Type": "application/json" } : {};
    return fetch(url + path, { method, body: sent, headers: { ...type, ...headers } });
  };
  await call("POST", "/api/v1/auth/send-code", { email });
  const wrong = await call("POST", "/api/v1/auth/login", { email, code: "00000000" });
  const { token } = await (await call("POST", "/api/v1/auth/login", { email, code })).json();
  const authorization = { Authorization: `Bearer ${token}` };
  const cast = { question: "何时启程？", method: "manual", lines: [7, 8, 9, 6, 7, 8] };
  const session = await call("POST", "/api/v1/sessions", cast, { ...authorization, "Idempotency-Key": "web-1" });
  const { id } = await session.json();
  const stream = await call("POST", `/api/v1/sessions/${id}/interpretation`, undefined, { ...authorization, Accept: "text/event-stream" });
  const reader = stream.body.pipeThrough(new TextDecoderStream()).getReader();
  let events = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) events += piece.value;
  const products = await call("GET", "/api/v1/products");
  const refused = await call("GET", "/admin/users", undefined, authorization).then(() => "answered", error => error.name);
  return {
    wrong: { status: wrong.status, requestId: wrong.headers.get("x-request-id"), limit: wrong.headers.get("ratelimit") },
    cast: session.status,
    events,
    limit: stream.headers.get("ratelimit"),
    tag: products.headers.get("etag"),
    refused,
  };
}

check("a web app on another origin signs in, casts and reads a stream", async ({ program, browser }) => {
  const [app, other] = await Promise.all([serveEmptyPage(), serveEmptyPage()]);
  const server = await startNew(program, {
    YARROW_SERVER_ALLOWED_ORIGINS: app.origin,
    YARROW_AUTH_REVIEW_ACCOUNTS: `${EMAIL}=${CODE}`,
  });
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(app.origin);
    const done = await page.evaluate(journey, { url: server.url, email: EMAIL, code: CODE });
    assert.equal(done.wrong.status, 401);
    assert.ok(done.wrong.requestId && done.wrong.limit, "a page reads the headers of an error");
    assert.equal(done.cast, 201);
    for (const event of ["meta", "delta", "done"]) assert.ok(done.events.includes(`event: ${event}`), done.events);
    assert.match(done.limit, /^"interpretations";r=\d+/);
    assert.match(done.tag, /^W\/"/);
    assert.equal(done.refused, "TypeError", "a page reached an endpoint of administrators");
    // A page that is not on the list reads nothing and changes nothing.
    const stranger = await context.newPage();
    await stranger.goto(other.origin);
    const read = await stranger.evaluate(url => fetch(`${url}/api/v1/products`).then(() => "read", error => error.name), server.url);
    assert.equal(read, "TypeError", "a stranger's page read a response");
  } finally {
    await context.close();
    await server.stop();
    app.stop();
    other.stop();
  }
});

/** Runs in the page: the journey of a user with the TypeScript client. */
async function journeyWithClient({ url, email, code }) {
  const { YarrowClient } = await import("/index.js");
  const yarrow = new YarrowClient({ baseUrl: url, language: "en" });
  await yarrow.sendCode(email);
  const refused = await yarrow.signIn(email, "00000000").catch(error => error.code);
  await yarrow.signIn(email, code);
  const closing = new AbortController();
  const news = yarrow.inbox({ signal: closing.signal });
  const open = (await news.next()).value;
  const session = await yarrow.cast({ question: "When shall I leave?", method: "three_coins" });
  const paid = (await news.next()).value;
  let text = "";
  for await (const event of yarrow.interpret(session.id)) if (event.type === "text") text += event.text;
  const sessions = [];
  for await (const one of yarrow.items("/api/v1/sessions")) sessions.push(one.id);
  const pages = [];
  for await (const page of yarrow.changes()) pages.push(page);
  closing.abort();
  await yarrow.signOut();
  return { refused, open, paid, text, sessions, id: session.id, changed: pages[0].sessions.length, isSignedIn: yarrow.isSignedIn };
}

check("the TypeScript client works in a page on another origin", async ({ program, browser }) => {
  const app = await serveEmptyPage(execFileSync(process.env.CLIENT_BUILD, { encoding: "utf8" }).trim());
  const server = await startNew(program, {
    YARROW_SERVER_ALLOWED_ORIGINS: app.origin,
    YARROW_AUTH_REVIEW_ACCOUNTS: `${EMAIL}=${CODE}`,
  });
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(app.origin);
    const done = await page.evaluate(journeyWithClient, { url: server.url, email: EMAIL, code: CODE });
    assert.equal(done.refused, "invalid_code");
    assert.equal(done.open.type, "open");
    assert.equal(done.paid.balances.points, done.open.balances.points - 10);
    assert.ok(done.text.length > 100, done.text);
    assert.deepEqual([done.sessions, done.changed, done.isSignedIn], [[done.id], 1, false]);
  } finally {
    await context.close();
    await server.stop();
    app.stop();
  }
});
