import { readEvents, type ServerEvent } from "./events.js";
import { idempotentOperations, version } from "./operations.js";
import { NetworkError, ProblemError } from "./problem.js";
import type { components } from "./schema.js";
import { fetchTransport, type CancelSignal, type Transport, type TransportResponse } from "./transport.js";
import type {
  CommonOptions,
  ItemOf,
  Method,
  OptionsArgument,
  PagedPath,
  PathsWith,
  RequestOptions,
  ResponseBody,
} from "./types.js";

type Schemas = components["schemas"];

/** A sign-in, to be stored by the app. */
export interface Session {
  token: string;
  /** When the token expires, in RFC 3339. */
  expiresAt: string;
}

export interface ClientOptions {
  /** The service, such as `https://yarrow.example.com`. */
  baseUrl: string;
  /** `fetchTransport()` by default. */
  transport?: Transport;
  /** The stored sign-in, if there is one. */
  session?: Session | undefined;
  /** Called with each new sign-in to store, and with undefined once it has ended. */
  onSession?: (session: Session | undefined) => void;
  /** The user's language: of messages, interpretations and problems. */
  language?: "zh" | "en";
  /** The most attempts of a request that may be repeated. */
  attempts?: number;
  /** The longest time in milliseconds that the client waits by itself before another attempt. */
  maxRetryDelay?: number;
  /** A token with less than this many milliseconds left is replaced before a request. A week by default. */
  refreshBefore?: number;
  /** Makes idempotency keys. */
  newKey?: () => string;
}

/**
 * An event of an interpretation: more text, or the stored result at the end. `restarted` means that the call failed and
 * a new one begins: discard the text so far.
 */
export type InterpretationEvent =
  | { type: "started" | "restarted"; traceId: string; provider: string; model: string }
  | { type: "text"; text: string }
  | { type: "done"; interpretation: Schemas["Interpretation"] };

/** An event while the app is open. */
export type InboxEvent =
  | { type: "open"; unread: number; balances: Schemas["Balances"] }
  | { type: "notification"; notification: Schemas["Notification"] }
  | { type: "balances"; balances: Schemas["Balances"] };

/** A request without its types. */
interface RawRequest {
  method: Method;
  path: string;
  options: {
    path?: Record<string, unknown> | undefined;
    query?: Record<string, unknown> | undefined;
    body?: unknown;
  } & CommonOptions;
  accept: "application/json" | "text/event-stream";
  lastEventId?: string | undefined;
}

const WEEK = 7 * 24 * 3600 * 1000;
/** Statuses after which another attempt may succeed. */
const TEMPORARY = [408, 429, 502, 503, 504];
const REFRESH_PATH = "/api/v1/auth/refresh";
/** Attempts to replace a token, and milliseconds for each. Together less than `auth.token_grace`, 30 seconds by default. */
const REFRESH_ATTEMPTS = 3;
const REFRESH_TIMEOUT = 8000;
/** Operations after whose success the token is gone. */
const SIGN_OUT_OPERATIONS = ["post /api/v1/auth/logout", "post /auth/logout", "delete /api/v1/account"];
const SIGN_IN_PATHS = ["/api/v1/auth/login", "/auth/login", "/api/v1/auth/send-code", "/auth/send-code"];

export class YarrowClient {
  private readonly transport: Transport;
  private readonly attempts: number;
  private readonly maxRetryDelay: number;
  private readonly refreshBefore: number;
  private readonly newKey: () => string;
  private session: Session | undefined;
  /** The lifetime in milliseconds that the token had when it came; unknown for a stored one. */
  private lifetime = Infinity;
  /** The service's clock minus the device's, in milliseconds, once a response has told. */
  private clockOffset: number | undefined;
  private refreshing: Promise<void> | undefined;

  constructor(private readonly options: ClientOptions) {
    this.transport = options.transport ?? fetchTransport();
    this.attempts = options.attempts ?? 4;
    this.maxRetryDelay = options.maxRetryDelay ?? 30_000;
    this.refreshBefore = options.refreshBefore ?? WEEK;
    this.newKey = options.newKey ?? randomKey;
    this.session = options.session;
  }

  get isSignedIn(): boolean {
    return this.session !== undefined;
  }

  // Any operation of the document.

  get<P extends PathsWith<"get">>(path: P, ...[options]: OptionsArgument<RequestOptions<"get", P>>) {
    return this.json<ResponseBody<"get", P>>("get", path, options);
  }

  post<P extends PathsWith<"post">>(path: P, ...[options]: OptionsArgument<RequestOptions<"post", P>>) {
    return this.json<ResponseBody<"post", P>>("post", path, options);
  }

  put<P extends PathsWith<"put">>(path: P, ...[options]: OptionsArgument<RequestOptions<"put", P>>) {
    return this.json<ResponseBody<"put", P>>("put", path, options);
  }

  patch<P extends PathsWith<"patch">>(path: P, ...[options]: OptionsArgument<RequestOptions<"patch", P>>) {
    return this.json<ResponseBody<"patch", P>>("patch", path, options);
  }

  delete<P extends PathsWith<"delete">>(path: P, ...[options]: OptionsArgument<RequestOptions<"delete", P>>) {
    return this.json<ResponseBody<"delete", P>>("delete", path, options);
  }

  /** Reads a list with cursors, item by item, and asks for the next page when it is needed. */
  async *items<P extends PagedPath>(
    path: P,
    ...[options]: OptionsArgument<RequestOptions<"get", P>>
  ): AsyncGenerator<ItemOf<P>> {
    let cursor: string | null = null;
    do {
      const query = { ...(options as RawRequest["options"] | undefined)?.query, ...(cursor === null ? {} : { cursor }) };
      const page: { items: ItemOf<P>[]; nextCursor: string | null } = await this.json("get", path, {
        ...options,
        query,
      });
      yield* page.items;
      cursor = page.nextCursor;
    } while (cursor !== null);
  }

  // Signing in.

  sendCode(email: string) {
    return this.post("/api/v1/auth/send-code", { body: { email } });
  }

  async signIn(email: string, code: string, more: { device?: string; inviteCode?: string } = {}) {
    const signedIn = await this.post("/api/v1/auth/login", { body: { email, code, ...more } });
    this.keep(signedIn);
    return signedIn;
  }

  async signInByPhone(phoneNumber: string, code: string, more: { device?: string } = {}) {
    const signedIn = await this.post("/auth/login", { body: { phoneNumber, code, ...more } });
    this.keep(signedIn);
    return signedIn;
  }

  /** Signs this device out. The sign-in is forgotten even if the service cannot be reached. */
  async signOut(): Promise<void> {
    if (!this.session) return;
    try {
      await this.post("/api/v1/auth/logout", { body: {} });
    } catch (error) {
      if (!(error instanceof ProblemError && error.code === "unauthenticated")) throw error;
    } finally {
      this.keep(undefined);
    }
  }

  /**
   * Deletes the account, which needs a recent sign-in, and forgets the sign-in. Show what is lost before: `deletion` of
   * `get("/api/v1/account")`.
   */
  async deleteAccount(): Promise<void> {
    await this.delete("/api/v1/account");
  }

  // Castings.

  /** Casts a hexagram. It is paid once, however often the request has to be repeated. */
  cast(casting: RequestOptions<"post", "/api/v1/sessions">["body"], options: CommonOptions = {}) {
    return this.post("/api/v1/sessions", { body: casting, ...options });
  }

  /**
   * Interprets a session. Continues where it was if the connection breaks off, so that the text arrives once and is
   * paid once.
   */
  async *interpret(
    sessionId: string,
    options: { again?: boolean } & CommonOptions = {},
  ): AsyncGenerator<InterpretationEvent> {
    const { again, ...common } = options;
    const request: RawRequest = {
      method: "post",
      path: "/api/v1/sessions/{id}/interpretation",
      options: { path: { id: sessionId }, body: again ? { again } : {}, idempotencyKey: this.newKey(), ...common },
      accept: "text/event-stream",
    };
    let traceId: string | undefined;
    for await (const { event, data } of this.events(request, (name) => name === "done")) {
      const value = JSON.parse(data);
      // A continued stream begins with the same call again.
      if (event === "meta" && value.traceId !== traceId) {
        yield { type: traceId === undefined ? "started" : "restarted", ...value };
        traceId = value.traceId;
      } else if (event === "delta") yield { type: "text", text: value.text };
      else if (event === "done") yield { type: "done", interpretation: value };
    }
  }

  /** The model's reply to a conversation, piece by piece. A reply that breaks off is not repeated. */
  async *chat(
    conversation: Omit<RequestOptions<"post", "/llm/chat">["body"], "stream">,
    options: CommonOptions = {},
  ): AsyncGenerator<string> {
    const body = { ...conversation, stream: true };
    const request: RawRequest = { method: "post", path: "/llm/chat", options: { body, ...options }, accept: "text/event-stream" };
    const response = await this.send(request);
    for await (const { data } of readEvents(response.chunks())) {
      if (data === "[DONE]") return;
      const chunk: Partial<Schemas["ChatCompletionChunk"]> & { error?: ChatError } = JSON.parse(data);
      if (chunk.error) throw problemOfChat(chunk.error);
      const text = chunk.choices?.[0]?.delta?.content;
      if (text) yield text;
    }
    throw new NetworkError("the stream ended early");
  }

  // While the app is open.

  /**
   * New notifications and changed balances. Goes on for ever, over broken connections, until `signal` aborts it or the
   * sign-in ends.
   */
  async *inbox(options: CommonOptions = {}): AsyncGenerator<InboxEvent> {
    const request: RawRequest = { method: "get", path: "/api/v1/notifications/stream", options, accept: "text/event-stream" };
    for await (const { event, data } of this.events(request, () => false)) {
      const value = JSON.parse(data);
      if (event === "open") yield { type: "open", ...value };
      else if (event === "notification") yield { type: "notification", notification: value };
      else if (event === "balances") yield { type: "balances", balances: value };
    }
  }

  /**
   * What changed since a cursor, page by page; everything without one. Store `cursor` with the applied page. A
   * `cursor_expired` problem means that the copy is to be made anew.
   */
  async *changes(since?: string, options: CommonOptions = {}): AsyncGenerator<Schemas["ChangeSet"]> {
    let cursor = since;
    let page: Schemas["ChangeSet"];
    do {
      page = await this.get("/api/v1/changes", { query: cursor === undefined ? {} : { since: cursor }, ...options });
      yield page;
      cursor = page.cursor;
    } while (page.more);
  }

  // The way of a request.

  private async json<T>(method: Method, path: string, options: unknown): Promise<T> {
    const request: RawRequest = { method, path, options: (options ?? {}) as RawRequest["options"], accept: "application/json" };
    const response = await this.send(request);
    const text = await response.text();
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  /** Reads a stream that the service can continue after the last event. */
  private async *events(request: RawRequest, isLast: (event: string) => boolean): AsyncGenerator<ServerEvent> {
    let { lastEventId } = request;
    for (let failures = 0; ; failures += 1) {
      let cause: unknown = "the stream ended early";
      try {
        const response = await this.send({ ...request, lastEventId });
        for await (const event of readEvents(response.chunks())) {
          if (event.event === "error") throw problemOfEvent(event.data);
          failures = 0;
          lastEventId = event.id ?? lastEventId;
          yield event;
          if (isLast(event.event)) return;
        }
      } catch (error) {
        if (request.options.signal?.aborted) throw error;
        // The service lost the events of that id, so the stream begins anew.
        if (error instanceof ProblemError && error.status === 410 && lastEventId !== undefined) {
          lastEventId = undefined;
          continue;
        }
        // `send` has repeated what can be repeated, so a problem from it stands. One that ended the stream may pass.
        if (error instanceof ProblemError && !TEMPORARY.includes(error.status)) throw error;
        cause = error;
      }
      if (failures + 1 >= this.attempts) throw cause instanceof ProblemError ? cause : new NetworkError(cause);
      await this.wait(cause instanceof ProblemError ? cause.retryAfter : undefined, failures, request.options.signal);
    }
  }

  /** Sends a request until it has a final response. Throws problems. */
  private async send(request: RawRequest): Promise<TransportResponse> {
    const { signal } = request.options;
    const name = `${request.method} ${request.path}`;
    const takesKey = idempotentOperations.has(name);
    // The same key for all attempts.
    const key = request.options.idempotencyKey ?? (takesKey ? this.newKey() : undefined);
    // A token that is replaced twice within the grace has one successor.
    const isRefresh = request.path === REFRESH_PATH;
    const isRepeatable = request.method !== "post" || takesKey || isRefresh;
    const attempts = isRefresh ? Math.min(this.attempts, REFRESH_ATTEMPTS) : this.attempts;
    for (let failures = 0; ; failures += 1) {
      let failure: ProblemError | NetworkError;
      await this.refreshIfDue(request.path);
      const { token } = this.session ?? {};
      try {
        const answer = this.transport({
          method: request.method.toUpperCase(),
          url: this.url(request),
          headers: this.headers(request, key, token),
          ...(request.options.body === undefined ? {} : { body: JSON.stringify(request.options.body) }),
          isStream: request.accept === "text/event-stream",
          ...(signal ? { signal } : {}),
        });
        const response = await (isRefresh ? within(REFRESH_TIMEOUT, answer) : answer);
        this.compareClocks(response.header("date"), request.method);
        if (response.status < 400) {
          if (SIGN_OUT_OPERATIONS.includes(name)) this.keep(undefined);
          return response;
        }
        failure = await problemOf(response);
      } catch (error) {
        if (signal?.aborted) throw error;
        failure = new NetworkError(error);
      }
      if (failure instanceof ProblemError) {
        const { code, status } = failure;
        if (code === "unauthenticated" && token !== undefined) {
          // Another request may have replaced the token meanwhile.
          if (this.session && this.session.token !== token && failures === 0) continue;
          this.keep(undefined);
        }
        // 429 is refused before anything happens, so it may always be repeated.
        if (!TEMPORARY.includes(status) || !(isRepeatable || status === 429)) throw failure;
      } else if (!isRepeatable) {
        throw failure;
      }
      const retryAfter = failure instanceof ProblemError ? failure.retryAfter : undefined;
      // A long wait is the user's decision.
      if (failures + 1 >= attempts || (retryAfter ?? 0) * 1000 > this.maxRetryDelay) throw failure;
      await this.wait(retryAfter, failures, signal);
    }
  }

  private url({ path, options }: RawRequest): string {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(options.path?.[name])));
    const pairs = Object.entries(options.query ?? {}).filter(([, value]) => value !== undefined && value !== null);
    const query = pairs.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join("&");
    return this.options.baseUrl.replace(/\/$/, "") + filled + (query ? `?${query}` : "");
  }

  private headers(request: RawRequest, key: string | undefined, token: string | undefined): Record<string, string> {
    const headers: Record<string, string> = { Accept: request.accept };
    if (request.options.body !== undefined) headers["Content-Type"] = "application/json";
    if (token !== undefined) headers["Authorization"] = `Bearer ${token}`;
    if (key !== undefined) headers["Idempotency-Key"] = key;
    if (this.options.language) headers["Accept-Language"] = this.options.language;
    if (request.lastEventId !== undefined) headers["Last-Event-ID"] = request.lastEventId;
    return headers;
  }

  /** Replaces a token that expires soon, once for all requests that wait. */
  private async refreshIfDue(path: string): Promise<void> {
    const { session } = this;
    if (!session || SIGN_IN_PATHS.includes(path) || path === REFRESH_PATH) return;
    const left = this.timeLeft(session);
    // Tokens that live shorter than usual must not be replaced at every request.
    if (left > Math.min(this.refreshBefore, this.lifetime / 2)) return;
    // An expired token cannot be replaced. Until the service's time is known, the device's clock may be wrong.
    if (left < 0 && (this.clockOffset !== undefined || this.lifetime < 0)) return;
    this.refreshing ??= this.refresh().finally(() => (this.refreshing = undefined));
    await this.refreshing;
  }

  private async refresh(): Promise<void> {
    try {
      this.keep(await this.post(REFRESH_PATH, { body: {} }));
    } catch (error) {
      // The old token is still valid, or the request that follows says why not.
      if (!(error instanceof ProblemError || error instanceof NetworkError)) throw error;
    }
  }

  private keep(session: Session | undefined): void {
    this.session = session && { token: session.token, expiresAt: session.expiresAt };
    this.lifetime = session ? this.timeLeft(session) : Infinity;
    this.options.onSession?.(this.session);
  }

  private timeLeft(session: Session): number {
    return Date.parse(session.expiresAt) - Date.now() - (this.clockOffset ?? 0);
  }

  /** Learns the service's time from a response, because devices have wrong clocks. */
  private compareClocks(date: string | null, method: Method): void {
    const offset = Date.parse(date ?? "") - Date.now();
    // A cache may answer GET with an earlier time.
    const isCurrent = method !== "get" || this.clockOffset === undefined || offset > this.clockOffset;
    if (!Number.isNaN(offset) && isCurrent) this.clockOffset = offset;
  }

  /** Waits as long as the service asked for, or longer after each failure. */
  private wait(retryAfter: number | undefined, failures: number, signal: CancelSignal | undefined): Promise<void> {
    // Spread, so that the clients of a service that comes back do not ask all at once.
    const backoff = Math.min(500 * 2 ** failures, this.maxRetryDelay) * (0.5 + Math.random() / 2);
    const delay = retryAfter === undefined ? backoff : retryAfter * 1000 + Math.random() * 250;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", abort);
        resolve();
      }, delay);
      const abort = () => {
        clearTimeout(timer);
        reject(new NetworkError("the request was aborted"));
      };
      if (signal?.aborted) abort();
      signal?.addEventListener("abort", abort);
    });
  }

  /** The version of the API document that the client was made from. */
  static readonly version = version;
}

async function problemOf(response: TransportResponse): Promise<ProblemError> {
  const seconds = Number(response.header("retry-after") ?? undefined);
  let problem: Partial<Schemas["Problem"]> = {};
  try {
    problem = JSON.parse(await response.text());
  } catch {
    // Something in between answered, such as a proxy.
  }
  return new ProblemError(problem, response.status, Number.isFinite(seconds) ? seconds : undefined);
}

function problemOfEvent(data: string): ProblemError {
  const problem: Partial<Schemas["Problem"]> & { retryAfter?: number } = JSON.parse(data);
  return new ProblemError(problem, problem.status ?? 500, problem.retryAfter);
}

/** The error of a chat's stream, in the format of OpenAI's API. */
interface ChatError {
  code: string;
  message: string;
  status: number;
  userMessage: string;
  requestId?: string;
  retryAfter?: number | null;
}

function problemOfChat({ code, message, status, userMessage, requestId, retryAfter }: ChatError): ProblemError {
  const problem = { code, status, detail: message, message: userMessage, requestId } as Partial<Schemas["Problem"]>;
  return new ProblemError(problem, status, retryAfter ?? undefined);
}

/** Rejects if an answer takes longer. */
function within<T>(milliseconds: number, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new NetworkError("no answer in time")), milliseconds);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** A random text of 32 hexadecimal digits. It need not be secret. */
function randomKey(): string {
  let key = "";
  while (key.length < 32) key += Math.floor(Math.random() * 16).toString(16);
  return key;
}
