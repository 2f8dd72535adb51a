/** Turns pushed values into an async iterable, for platforms with callbacks. */
export class PushQueue<T> implements AsyncIterable<T> {
  private readonly values: T[] = [];
  private wake: (() => void) | undefined;
  private end: { error?: unknown } | undefined;

  /** `leave` is called when the reader stops reading. */
  constructor(private readonly leave: () => void) {}

  push(value: T): void {
    this.values.push(value);
    this.wake?.();
  }

  finish(): void {
    this.end ??= {};
    this.wake?.();
  }

  fail(error: unknown): void {
    this.end ??= { error };
    this.wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    try {
      for (;;) {
        const value = this.values.shift();
        if (value !== undefined) {
          yield value;
        } else if (this.end) {
          if ("error" in this.end) throw this.end.error;
          return;
        } else {
          await new Promise<void>((resolve) => (this.wake = resolve));
        }
      }
    } finally {
      this.leave();
    }
  }
}
