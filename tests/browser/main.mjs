// Starts the demonstration and runs the checks, or takes pictures.
import { parseArgs } from "node:util";
import { openBrowser, runChecks, signInByLink, startDemo } from "./harness.mjs";
import { findPages } from "./pages.mjs";
import { takePictures } from "./pictures.mjs";
import "./appearance.mjs";
import "./actions.mjs";
import "./sessions.mjs";
import "./speed.mjs";
import "./web-app.mjs";

const { values, positionals: [program] } = parseArgs({
  allowPositionals: true, options: { only: { type: "string" }, pictures: { type: "string" } },
});
const started = Date.now();
const [demo, browser] = await Promise.all([startDemo(program), openBrowser()]);
let failures = 0;
try {
  const session = await signInByLink(browser, demo);
  const environment = { program, demo, browser, session };
  environment.pages = await findPages(environment);
  console.log(`${environment.pages.length} pages: ${environment.pages.map(page => page.name).join(", ")}`);
  if (values.pictures) await takePictures(environment, values.pictures);
  else failures = await runChecks(environment, values.only);
} finally {
  await browser.close();
  await demo.stop();
}
console.log(`${failures ? `${failures} checks failed` : "all well"} after ${Math.round((Date.now() - started) / 1000)} s`);
process.exitCode = failures ? 1 : 0;
