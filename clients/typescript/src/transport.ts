/** A signal that ends a request. `AbortSignal` is one; a mini-program has to bring its own. */
export interface CancelSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** A request as the client hands it to the transport. */
export interface TransportRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: string;
  /** True if the body of the response is to be read while it arrives. */
  isStream: boolean;
  signal?: CancelSignal;
}

export interface TransportResponse {
  status: number;
  /** Returns a header; the name is in lower case. */
  header(name: string): string | null;
  /** The whole body. */
  text(): Promise<string>;
  /** The body while it arrives, or in one piece where the platform cannot do better. */
  chunks(): AsyncIterable<string>;
}

/** Sends a request. Rejects if there is no response; every status is a response. */
export type Transport = (request: TransportRequest) => Promise<TransportResponse>;

/** The parts of `fetch` that the client needs. */
type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Sends requests with `fetch`, for browsers, Node.js and workers. */
export function fetchTransport(send: Fetch = (url, init) => fetch(url, init)): Transport {
  return async ({ method, url, headers, body, signal }) => {
    const init: RequestInit = { method, headers, credentials: "omit" };
    if (body !== undefined) init.body = body;
    const controller = new AbortController();
    const abort = () => controller.abort();
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort);
    init.signal = controller.signal;
    const release = () => signal?.removeEventListener("abort", abort);
    let response: Response;
    try {
      response = await send(url, init);
    } catch (error) {
      release();
      throw error;
    }
    return {
      status: response.status,
      header: (name) => response.headers.get(name),
      text: () => response.text().finally(release),
      chunks: () => readChunks(response, abort, release),
    };
  };
}

async function* readChunks(response: Response, abort: () => void, release: () => void): AsyncIterable<string> {
  try {
    if (!response.body) {
      yield await response.text();
      return;
    }
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        yield decoder.decode(value, { stream: true });
      }
    } finally {
      // A reader that leaves early must not keep the connection open.
      abort();
    }
  } finally {
    release();
  }
}
