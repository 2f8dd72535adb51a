import type { paths } from "./schema.js";

export type Method = "get" | "post" | "put" | "patch" | "delete";

/** The paths that have an operation with this method. */
export type PathsWith<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: { responses: unknown } } ? P : never;
}[keyof paths];

type Operation<M extends Method, P extends PathsWith<M>> = paths[P] extends { [K in M]: infer O } ? O : never;

/** The names of the path's parameters must be given; the query's where it has required ones. */
type PathOf<O> = O extends { parameters: { path: infer V } } ? { path: V } : { path?: never };
type QueryOf<O> = O extends { parameters: { query: infer V } }
  ? { query: V }
  : O extends { parameters: { query?: infer V } }
    ? { query?: V }
    : { query?: never };
type JsonOf<C> = C extends { content: { "application/json": infer V } } ? V : never;
type BodyOf<O> = O extends { requestBody: infer B }
  ? { body: JsonOf<B> }
  : O extends { requestBody?: infer B }
    ? { body?: JsonOf<NonNullable<B>> }
    : { body?: never };

/** What a request needs and may have. */
export type RequestOptions<M extends Method, P extends PathsWith<M>> = PathOf<Operation<M, P>> &
  QueryOf<Operation<M, P>> &
  BodyOf<Operation<M, P>> & CommonOptions;

export interface CommonOptions {
  signal?: import("./transport.js").CancelSignal;
  /** Names the request, so that a repeated one takes effect once. Made by the client where the operation takes one. */
  idempotencyKey?: string;
}

type Successful<R> = R extends { 200: infer V } ? V : R extends { 201: infer V } ? V : R extends { 202: infer V } ? V : never;

/** The body of a successful response; undefined where there is none. */
export type ResponseBody<M extends Method, P extends PathsWith<M>> =
  Operation<M, P> extends { responses: infer R }
    ? Successful<R> extends { content: { "application/json": infer V } } ? V : undefined
    : undefined;

/** The paths of lists with cursors. */
export type PagedPath = {
  [P in PathsWith<"get">]: ResponseBody<"get", P> extends { items: unknown[]; nextCursor: string | null } ? P : never;
}[PathsWith<"get">];

export type ItemOf<P extends PagedPath> = ResponseBody<"get", P> extends { items: (infer T)[] } ? T : never;

/** The options of a request whose required parts, if there are any, must be given. */
export type OptionsArgument<T> = {} extends T ? [options?: T] : [options: T];
