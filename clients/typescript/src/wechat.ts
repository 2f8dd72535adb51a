import { PushQueue } from "./queue.js";
import type { Transport, TransportResponse } from "./transport.js";
import { Utf8Decoder } from "./utf8.js";

/** The parts of `wx` that the client needs. Other mini-programs with the same call fit too. */
export interface MiniProgram {
  request(options: {
    url: string;
    method: string;
    header: Record<string, string>;
    data?: string;
    dataType: string;
    responseType: "text" | "arraybuffer";
    enableChunked?: boolean;
    timeout?: number;
    success(result: { statusCode: number; header: Record<string, string>; data: unknown }): void;
    fail(error: { errMsg: string }): void;
  }): RequestTask | void;
}

export interface RequestTask {
  abort(): void;
  onHeadersReceived?(listener: (result: { header: Record<string, string>; statusCode?: number }) => void): void;
  onChunkReceived?(listener: (result: { data: ArrayBuffer }) => void): void;
}

/** The time after which a mini-program gives up a stream. The service sends a heartbeat much more often. */
const STREAM_TIMEOUT = 600_000;

/**
 * Sends requests with `wx.request`. Mini-programs cannot send PATCH, so it is sent as POST with
 * `X-HTTP-Method-Override`, which the service understands.
 */
export function wechatTransport(wx: MiniProgram): Transport {
  return (request) =>
    new Promise<TransportResponse>((resolve, reject) => {
      const header = { ...request.headers };
      let method = request.method;
      if (method === "PATCH") {
        method = "POST";
        header["X-HTTP-Method-Override"] = "PATCH";
      }
      const decoder = new Utf8Decoder();
      let task: RequestTask | void;
      const abort = () => task?.abort();
      const release = () => request.signal?.removeEventListener("abort", abort);
      const pieces = new PushQueue<string>(abort);
      let isAnswered = false;
      const answer = (status: number, headers: Record<string, string>, whole?: string) => {
        if (isAnswered) return;
        isAnswered = true;
        resolve({
          status,
          header: (name) => headerOf(headers, name),
          text: async () => whole ?? (await collect(pieces)),
          chunks: () => pieces,
        });
      };
      const options: Parameters<MiniProgram["request"]>[0] = {
        url: request.url,
        method,
        header,
        // Anything but `json`, so that the text arrives as it is.
        dataType: "text",
        responseType: request.isStream ? "arraybuffer" : "text",
        success: ({ statusCode, header, data }) => {
          release();
          const text = typeof data === "string" ? data : decoder.decode(new Uint8Array(data as ArrayBuffer));
          if (!request.isStream) return answer(statusCode, header, text);
          answer(statusCode, header);
          // Where chunks are reported, the whole body is empty.
          if (text) pieces.push(text);
          pieces.finish();
        },
        fail: ({ errMsg }) => {
          release();
          const error = new Error(errMsg);
          if (isAnswered) pieces.fail(error);
          else reject(error);
        },
      };
      if (request.body !== undefined) options.data = request.body;
      if (request.isStream) {
        options.enableChunked = true;
        options.timeout = STREAM_TIMEOUT;
      }
      task = wx.request(options);
      if (request.isStream && task) {
        task.onHeadersReceived?.(({ header, statusCode }) => answer(statusCode ?? 200, header));
        task.onChunkReceived?.(({ data }) => pieces.push(decoder.decode(new Uint8Array(data))));
      }
      request.signal?.addEventListener("abort", abort);
      if (request.signal?.aborted) abort();
    });
}

function headerOf(headers: Record<string, string>, name: string): string | null {
  const found = Object.keys(headers).find((other) => other.toLowerCase() === name);
  return found === undefined ? null : headers[found]!;
}

async function collect(pieces: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const piece of pieces) text += piece;
  return text;
}
