import type { problemCodes } from "./operations.js";
import type { components } from "./schema.js";

/** The codes of this version, and any other text that a newer service may send. */
export type ProblemCode = (typeof problemCodes)[number] | (string & {});

/** An error that the service answered with. Branch on `code`; show `userMessage` to people. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly code: ProblemCode;
  readonly status: number;
  /** A sentence for the user, in the language of the request. */
  readonly userMessage: string;
  /** Invalid fields, with a code and a sentence each. */
  readonly fields: readonly { field: string; code: string; message: string }[];
  readonly requestId: string | undefined;

  constructor(
    readonly problem: Partial<components["schemas"]["Problem"]>,
    status: number,
    /** Seconds after which another try makes sense, if the service said so. */
    readonly retryAfter: number | undefined,
  ) {
    super(problem.detail ?? `status ${status}`);
    this.code = problem.code ?? "unknown";
    this.status = problem.status ?? status;
    this.userMessage = problem.message ?? this.message;
    this.fields = problem.errors ?? [];
    this.requestId = problem.requestId;
  }
}

/** There was no answer: the network failed, or a stream broke off for good. */
export class NetworkError extends Error {
  override readonly name = "NetworkError";

  constructor(readonly reason: unknown) {
    super(reason instanceof Error ? reason.message : String(reason));
  }
}
