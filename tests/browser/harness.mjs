// The program under test, the browser, and the list of checks.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const FLAGS = [
  "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", ...(process.getuid() === 0 ? ["--no-sandbox"] : []),
];
export const THEMES = ["light", "dark"];
export const LANGUAGES = ["zh", "en"];
export const WIDTHS = [1280, 360];
export const CONSOLE = "/admin/console/";
export const PHONE = "13800138000";

/** Starts the program and waits for a link to its console, and for credentials if it is a demonstration. */
async function start(program, command, settings) {
  const directory = mkdtempSync(join(tmpdir(), "yarrow-browser-"));
  const child = spawn(program, [command, "--listen", "127.0.0.1:0"], {
    env: { ...process.env, TMPDIR: directory, YARROW_DATA_DIR: join(directory, "data"), ...settings }, stdio: ["ignore", "ignore", "pipe"],
  });
  const lines = [];
  const server = await new Promise((resolve, reject) => {
    const found = {};
    createInterface({ input: child.stderr }).on("line", line => {
      lines.push(line);
      const link = line.match(/(http:\/\/[0-9.:]+)(\/admin\/console\/(?:demo|first-run)\/\S+)/);
      const credentials = line.match(/name (\S+), password (\S+)/);
      if (link) [, found.url, found.link] = link;
      if (credentials) [, found.name, found.password] = credentials;
      if (found.url && (found.password || command === "serve")) resolve(found);
    });
    child.on("exit", code => reject(new Error(`the program ended with ${code}:\n${lines.join("\n")}`)));
  });
  const stop = () => new Promise(resolve => {
    child.removeAllListeners("exit");
    child.on("exit", () => { rmSync(directory, { recursive: true, force: true }); resolve(); });
    child.kill("SIGTERM");
  });
  return { ...server, lines, stop };
}

export const startDemo = (program, settings = {}) => start(program, "demo", settings);
export const startNew = (program, settings = {}) => start(program, "serve", settings);

export const openBrowser = () => chromium.launch({ executablePath: "/usr/bin/chromium", headless: true, args: FLAGS });

/** Opens a context with the cookies of a session and the preferences of a viewer. */
export async function openContext(browser, demo, { theme, language = "en", session, width = 1280, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, baseURL: demo.url, locale: language === "zh" ? "zh-CN" : "en-US", ...options });
  const at = { url: demo.url + CONSOLE };
  const preferences = Object.entries({ theme, language }).filter(([, value]) => value);
  await context.addCookies(preferences.map(([name, value]) => ({ name, value, url: at.url })));
  if (session) await context.addCookies(session);
  context.setDefaultTimeout(10_000);
  return context;
}

/** Signs in by the one-time link and returns the cookies of the session. */
export async function signInByLink(browser, demo) {
  const context = await openContext(browser, demo);
  const page = await context.newPage();
  await page.goto(demo.link);
  assert.equal(new URL(page.url()).pathname, CONSOLE, "the link of the demonstration leads to the overview");
  const session = await context.cookies();
  await context.close();
  return session.filter(cookie => cookie.name.startsWith("__Host-"));
}

/** Signs in by name and password. */
export async function signIn(page, demo) {
  await page.fill("#name", demo.name);
  await page.fill("#password", demo.password);
  await page.click("main button[type=submit].primary");
}

/** Waits for a condition that no event announces, at most ten seconds. */
export async function waitUntil(condition, message) {
  const end = Date.now() + 10_000;
  while (!await condition()) {
    assert.ok(Date.now() < end, message);
    await new Promise(resolve => setTimeout(resolve, 100));
  }
}

/** Collects everything that a page must not do. Returns the list, which grows while pages load. */
export function watch(page, demo) {
  const faults = [];
  page.on("console", message => faults.push(`console ${message.type()}: ${message.text()} (${message.location().url})`));
  page.on("pageerror", error => faults.push(`error: ${error.message}`));
  page.on("dialog", dialog => { faults.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", request => {
    if (!request.url().startsWith(`${demo.url}/`)) faults.push(`foreign request: ${request.url()}`);
  });
  page.on("response", response => {
    if (response.status() >= 400) faults.push(`status ${response.status()}: ${response.url()}`);
  });
  return faults;
}

const checks = [];

/** Declares a check. It fails by throwing. */
export const check = (name, run) => checks.push({ name, run });

/** Runs the checks one after another and returns the number of failures. */
export async function runChecks(environment, only) {
  let failures = 0;
  const chosen = checks.filter(one => one.name.includes(only ?? ""));
  if (!chosen.length) throw new Error(`no check has a name with "${only}"`);
  for (const { name, run } of chosen) {
    const started = Date.now();
    let outcome = "ok    ";
    let detail = "";
    try {
      detail = (await run(environment)) ?? "";
    } catch (error) {
      failures += 1;
      outcome = "FAILED";
      detail = error.message;
    }
    console.log(`${outcome} ${name} (${((Date.now() - started) / 1000).toFixed(1)} s) ${detail}`);
  }
  return failures;
}

/** Fails with all entries of a list, each once. */
export function assertNone(found, what) {
  const distinct = [...new Set(found)];
  if (distinct.length) {
    const shown = distinct.slice(0, 40).join("\n  ");
    throw new Error(`${distinct.length} ${what}:\n  ${shown}`);
  }
}
