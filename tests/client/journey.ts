// Uses both API versions with types that openapi-typescript generates. Does not compile if the document lacks something
// that is used here, and exits with status 1 at the first unexpected response.
//
//   node journey.js BASE_URL

import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./yarrow.js";

declare const process: { argv: string[] };

const PHONE = "13800138000";
const CODE = "246810";

function expect(holds: boolean, what: unknown): asserts holds {
  if (!holds) throw new Error(`unexpected: ${JSON.stringify(what)}`);
}

const client = createClient<paths>({ baseUrl: process.argv[2] });

const sent = await client.POST("/auth/send-code", { body: { phoneNumber: PHONE } });
expect(sent.data?.phoneNumber === PHONE, sent);
const wrong = await client.POST("/auth/login", { body: { phoneNumber: PHONE, code: "000000" } });
expect(wrong.error?.code === "invalid_code" && wrong.error.status === wrong.response.status, wrong);
const login = await client.POST("/auth/login", { body: { phoneNumber: PHONE, code: CODE } });
expect(login.data !== undefined, login);
const { token, userId } = login.data;
const authorization: Middleware = {
  onRequest({ request }) {
    request.headers.set("Authorization", `Bearer ${token}`);
    return request;
  },
};
client.use(authorization);

const profile = await client.PUT("/user/profile", { body: { nickname: "青山", birthday: "1990-05-17" } });
expect(profile.data?.nickname === "青山" && profile.data.userId === userId, profile);
const invalid = await client.PUT("/user/profile", { body: { nickname: "x".repeat(100), birthday: "soon" } });
const fields = invalid.error?.errors?.map((fault) => fault.field).sort();
expect(JSON.stringify(fields) === '["birthday","nickname"]', invalid);

const record = { localRecordId: "1", jsonData: { lines: [7, 8, 8, 8, 7, 6] }, timestamp: 1767225600000 };
const saved = await client.POST("/divination-history/save", { body: record });
expect(saved.data?.timestamp === record.timestamp, saved);
const history = await client.POST("/divination-history/get", { body: {} });
expect(history.data?.total === 1 && history.data.items[0]?.localRecordId === "1", history);

const interpreted = await client.POST("/divination/enhanced", {
  body: { question: "今年换工作合适吗？", divinationData: record.jsonData },
});
// The other type of the response is a stream of events.
const interpretation = interpreted.data as components["schemas"]["Interpretation"];
expect(interpretation.provider === "builtin", interpreted);
const { traceId } = interpretation;
const traced = await client.GET("/divination/records/trace/{traceId}", { params: { path: { traceId } } });
const status: components["schemas"]["InterpretationRecord"]["status"] | undefined = traced.data?.status;
expect(status === "succeeded", traced);
const page = await client.GET("/divination/records/user/{userId}", {
  params: { path: { userId }, query: { page: 1, size: 1 } },
});
expect(page.data?.items.length === 1 && page.data.total === 1, page);

const poor = await client.POST("/api/v1/sessions", {
  params: { header: { "Idempotency-Key": "1" } },
  body: { question: "？", method: "manual", lines: [7, 8, 8, 8, 7, 6] },
});
expect(poor.response.status === 402 && poor.error?.code === "insufficient_points", poor);
const inbox = await client.GET("/api/v1/notifications", { params: { query: { limit: 1 } } });
expect(inbox.data?.nextCursor === null && inbox.data.items.length === 0, inbox);
const left = await client.POST("/auth/logout", { body: { token } });
expect(left.data?.loggedOut === true, left);
