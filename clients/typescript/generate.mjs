// Writes src/schema.ts and src/operations.ts from the API document.
//
//   yarrow openapi --app | node generate.mjs [DIRECTORY]

import { writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const directory = process.argv[2] ?? new URL("src", import.meta.url).pathname;
let text = "";
for await (const piece of process.stdin.setEncoding("utf8")) text += piece;
const document = JSON.parse(text);

// The client throws problems, so that only successful responses need types. Their headers are read by the client itself.
for (const operations of Object.values(document.paths)) {
  for (const operation of Object.values(operations)) {
    const successful = Object.entries(operation.responses).filter(([status]) => status.startsWith("2"));
    for (const [, response] of successful) delete response.headers;
    operation.responses = Object.fromEntries(successful);
  }
}

/** Removes the components that nothing refers to any more. */
function dropUnused(document) {
  for (;;) {
    const text = JSON.stringify(document);
    const { schemas } = document.components;
    const unused = Object.keys(schemas).filter((name) => name !== "Problem" && !text.includes(`"#/components/schemas/${name}"`));
    if (unused.length === 0) return;
    for (const name of unused) delete schemas[name];
  }
}
dropUnused(document);

const head = "// Written by generate.mjs from the API document. Do not edit.\n\n";
writeFileSync(`${directory}/schema.ts`, head + astToString(await openapiTS(document, { alphabetize: true })));

const idempotent = [];
for (const [path, operations] of Object.entries(document.paths)) {
  for (const [method, operation] of Object.entries(operations)) {
    const takesKey = operation.parameters?.some(({ name }) => name.toLowerCase() === "idempotency-key");
    if (takesKey) idempotent.push(`${method} ${path}`);
  }
}
const codes = document.components.schemas.Problem.properties.code.enum;
writeFileSync(
  `${directory}/operations.ts`,
  `${head}/** The version of the API document that this client was made from. */
export const version = ${JSON.stringify(document.info.version)};

/** Operations that take an idempotency key, by method and path. */
export const idempotentOperations: ReadonlySet<string> = new Set(${JSON.stringify(idempotent.sort(), null, 2)});

/** The codes of problems. A newer service may send others. */
export const problemCodes = ${JSON.stringify(codes.sort(), null, 2)} as const;
`,
);
