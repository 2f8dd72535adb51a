// An app's whole journey with the client, against the running program.
//
//   node journey.mjs BASE_URL PROGRAM DATA_DIR

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { ProblemError, YarrowClient } from "./client/dist/index.js";

const [, , baseUrl, program, directory] = process.argv;
const command = (...words) => {
  const options = { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] };
  return execFileSync(program, [...words, "--data-dir", directory], options);
};
const email = "ming@example.com";

// Signing in.
let stored;
const yarrow = new YarrowClient({ baseUrl, language: "en", onSession: (session) => (stored = session) });
await yarrow.sendCode(email);
await assert.rejects(yarrow.signIn(email, "00000000"), { code: "invalid_code" });
const { user, isNewUser } = await yarrow.signIn(email, "12345678", { device: "Ming's phone" });
assert.ok(isNewUser && stored.token && yarrow.isSignedIn);
const first = user.points;

// While the app is open.
const closing = new AbortController();
const news = yarrow.inbox({ signal: closing.signal });
const { value: open } = await news.next();
assert.deepEqual(open, { type: "open", unread: open.unread, balances: { points: first, coins: 0 } });
const nextOf = async (type) => {
  for (;;) {
    const { value } = await news.next();
    if (value.type === type) return value;
  }
};

// Casting, reading, annotating.
const session = await yarrow.cast({ question: "Should I change my job this year?", method: "three_coins" });
assert.equal((await nextOf("balances")).balances.points, session.balance);
let text = "";
let done;
for await (const event of yarrow.interpret(session.id)) {
  if (event.type === "text") text += event.text;
  if (event.type === "done") done = event.interpretation;
}
assert.ok(text.length > 100 && done.result === text, text);
await yarrow.patch("/api/v1/sessions/{id}", { path: { id: session.id }, body: { title: "Job", note: "Ask again in May" } });
const found = [];
for await (const one of yarrow.items("/api/v1/sessions", { query: { search: "job may", limit: 1 } })) found.push(one.id);
assert.deepEqual(found, [session.id]);

// Offline: changes, and records made without a connection.
let cursor;
const sessions = new Map();
for await (const page of yarrow.changes()) {
  for (const one of page.sessions) sessions.set(one.id, one);
  cursor = page.cursor;
}
assert.equal(sessions.get(session.id).title, "Job");
const records = [1, 2, 3].map((number) => ({ localRecordId: `r${number}`, question: "？", jsonData: { lines: [7, 8, 8, 8, 7, 6] } }));
const saved = await yarrow.post("/divination-history/save-batch", { body: { records } });
assert.deepEqual(saved.items.map(({ error }) => error), [null, null, null]);
await yarrow.delete("/api/v1/sessions/{id}", { path: { id: session.id } });
for await (const page of yarrow.changes(cursor)) {
  assert.deepEqual(page.deleted, [{ kind: "session", id: session.id }]);
  assert.deepEqual(page.history.map((record) => record.localRecordId), ["r1", "r2", "r3"]);
  cursor = page.cursor;
}

// Buying, in the sandbox.
const products = await yarrow.get("/api/v1/products");
const product = products.items.find(({ asset }) => asset === "point") ?? products.items[0];
const order = await yarrow.post("/api/v1/orders", { body: { productId: product.id } });
assert.equal(order.status, "created");
command("payments", "sandbox-pay", order.orderNo);
const confirmed = await yarrow.post("/api/v1/orders/{orderNo}/confirm", { path: { orderNo: order.orderNo } });
assert.equal(confirmed.status, "credited");
await nextOf("balances");

// The inbox.
command("notify", "send", "Spring", "Now with the classics", "--all");
const { notification } = await nextOf("notification");
assert.equal(notification.title, "Spring");
const read = await yarrow.patch("/api/v1/notifications/{id}/read", { path: { id: notification.id } });
assert.ok(read.readAt);
assert.equal((await yarrow.get("/api/v1/notifications/unread-count")).count, 0);

// Problems.
const failure = await yarrow.cast({ question: "", method: "three_coins" }).catch((error) => error);
assert.ok(failure instanceof ProblemError && failure.code === "invalid_parameters", failure);
assert.deepEqual(failure.fields.map(({ field }) => field), ["question"]);

// A stored sign-in continues, and a stream ends with its token.
const later = new YarrowClient({ baseUrl, session: stored });
assert.equal((await later.get("/api/v1/account")).email, email);
await later.signOut();
await assert.rejects(nextOf("notification"), { code: "unauthenticated" });
await assert.rejects(yarrow.get("/api/v1/account"), { code: "unauthenticated" });
assert.ok(!yarrow.isSignedIn && stored === undefined);
closing.abort();

// A chat in pieces, and the deletion of the account.
await yarrow.sendCode("lin@example.com");
await yarrow.signIn("lin@example.com", "12345678");
const pieces = [];
for await (const piece of yarrow.chat({ messages: [{ role: "user", content: "What is the I Ching?" }] })) pieces.push(piece);
assert.ok(pieces.join("").length > 20, pieces);
await yarrow.deleteAccount();
assert.ok(!yarrow.isSignedIn && stored === undefined);
