export { YarrowClient, type ClientOptions, type InboxEvent, type InterpretationEvent, type Session } from "./client.js";
export { readEvents, type ServerEvent } from "./events.js";
export { idempotentOperations, problemCodes, version } from "./operations.js";
export { NetworkError, ProblemError, type ProblemCode } from "./problem.js";
export type { components, paths } from "./schema.js";
export {
  fetchTransport,
  type CancelSignal,
  type Transport,
  type TransportRequest,
  type TransportResponse,
} from "./transport.js";
export type { ItemOf, PagedPath, RequestOptions, ResponseBody } from "./types.js";
