import { PushQueue } from "./queue.js";
import type { Transport, TransportResponse } from "./transport.js";

/** Sends requests with `XMLHttpRequest`, for React Native, whose `fetch` does not give out a body while it arrives. */
export function xhrTransport(create: () => XMLHttpRequest = () => new XMLHttpRequest()): Transport {
  return (request) =>
    new Promise<TransportResponse>((resolve, reject) => {
      const xhr = create();
      const abort = () => xhr.abort();
      const release = () => request.signal?.removeEventListener("abort", abort);
      const pieces = new PushQueue<string>(abort);
      let read = 0;
      let isAnswered = false;
      const answer = () => {
        if (isAnswered) return;
        isAnswered = true;
        resolve({
          status: xhr.status,
          header: (name) => xhr.getResponseHeader(name),
          text: async () => {
            let text = "";
            for await (const piece of pieces) text += piece;
            return text;
          },
          chunks: () => pieces,
        });
      };
      const take = () => {
        const text = xhr.responseText;
        if (text.length > read) pieces.push(text.slice(read));
        read = text.length;
      };
      const fail = (message: string) => {
        release();
        const error = new Error(message);
        if (isAnswered) pieces.fail(error);
        else reject(error);
      };
      xhr.open(request.method, request.url);
      for (const [name, value] of Object.entries(request.headers)) xhr.setRequestHeader(name, value);
      xhr.responseType = "text";
      xhr.onreadystatechange = () => {
        if (xhr.readyState >= 2 && xhr.status !== 0) answer();
      };
      xhr.onprogress = take;
      xhr.onload = () => {
        release();
        answer();
        take();
        pieces.finish();
      };
      xhr.onerror = () => fail("the request failed");
      xhr.ontimeout = () => fail("the request timed out");
      xhr.onabort = () => fail("the request was aborted");
      request.signal?.addEventListener("abort", abort);
      if (request.signal?.aborted) return fail("the request was aborted");
      xhr.send(request.body ?? null);
    });
}
