/** An event of a stream. */
export interface ServerEvent {
  /** The name; `message` if it has none. */
  event: string;
  data: string;
  id: string | undefined;
}

/** Reads server-sent events from a text that arrives in pieces. */
export async function* readEvents(chunks: AsyncIterable<string>): AsyncGenerator<ServerEvent> {
  let rest = "";
  let event = "message";
  let data: string[] = [];
  let id: string | undefined;
  for await (const chunk of chunks) {
    rest += chunk;
    for (;;) {
      const end = /\r\n|\n|\r(?!$)/.exec(rest);
      if (!end) break;
      const line = rest.slice(0, end.index);
      rest = rest.slice(end.index + end[0].length);
      if (line === "") {
        if (data.length > 0) yield { event, data: data.join("\n"), id };
        [event, data] = ["message", []];
        continue;
      }
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      // A line without a name is a heartbeat.
      if (name === "event") event = value;
      else if (name === "data") data.push(value);
      else if (name === "id") id = value;
    }
  }
}
