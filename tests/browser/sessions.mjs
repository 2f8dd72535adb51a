// Sessions that end, links from other sites, and requests of other sites.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { CONSOLE, check, openContext, signIn, startDemo } from "./harness.mjs";

check("an idle tab shows the end of its session, and typed text survives", async ({ program, browser, demo, session }) => {
  // The real limit is in the page; the second server has a short one.
  const context = await openContext(browser, demo, { session });
  const watched = await context.newPage();
  await watched.clock.install();
  await watched.goto(CONSOLE);
  assert.equal(await watched.getAttribute("body", "data-idle"), "1800", "a session ends after 30 minutes");
  await watched.clock.fastForward("29:50");
  assert.equal(await watched.isVisible("#session-lost"), false, "29 minutes are not idle enough");
  await watched.clock.fastForward("00:20");
  assert.ok(await watched.isVisible("#session-lost"), "30 minutes are");
  await context.close();

  const short = await startDemo(program, { YARROW_ADMIN_SESSION_IDLE: "4 s" });
  try {
    const tab = await openContext(browser, short);
    const page = await tab.newPage();
    await page.goto(short.link);
    await page.goto(`${CONSOLE}users/2`);
    await page.click(".balances ~ .actions .act summary");
    await page.fill("#grant-amount", "42");
    await page.fill("#grant-reason", "typed before the session ended");
    await page.waitForSelector("#session-lost", { timeout: 15_000 });
    await page.waitForTimeout(1000);
    // The server agrees.
    const other = await page.request.get(CONSOLE, { maxRedirects: 0 });
    assert.equal(other.status(), 303, "the server has ended the session");
    await page.click("#session-lost a");
    await signIn(page, short);
    await page.waitForURL(/users\/2$/);
    assert.ok(await page.isVisible("#grant-amount"), "the form is open again");
    assert.equal(await page.inputValue("#grant-amount"), "42");
    assert.equal(await page.inputValue("#grant-reason"), "typed before the session ended");
    // Also when the form itself finds the session ended.
    await page.waitForTimeout(5000);
    await page.evaluate(() => document.querySelector("#session-lost").hidden = true);
    await page.click(".balances ~ .actions .act button[type=submit]");
    await page.waitForURL(/sign-in/);
    await signIn(page, short);
    await page.waitForLoadState();
    await page.goto(`${CONSOLE}users/2`);
    assert.equal(await page.inputValue("#grant-reason"), "typed before the session ended");
    await tab.close();
  } finally {
    await short.stop();
  }
});

/** Serves a page of another site. */
async function withOtherSite(body, run) {
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end(body));
  await new Promise(done => server.listen(0, "127.0.0.1", done));
  try {
    // Another site than 127.0.0.1.
    await run(`http://localhost:${server.address().port}/`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

check("a link of another site, such as of an alert, lands signed in", async ({ browser, demo, session }) => {
  await withOtherSite(`<a href="${demo.url}${CONSOLE}orders?state=review">alert</a>`, async site => {
    const context = await openContext(browser, demo, { session });
    const page = await context.newPage();
    await page.goto(site);
    await page.click("a");
    await page.waitForSelector("#orders");
    assert.match(page.url(), /orders\?state=review$/);
    await context.close();
  });
});

check("forms and frames of other sites are refused", async ({ browser, demo, session }) => {
  const form = `<form method="post" action="${demo.url}${CONSOLE}users/3/grant"><input name="amount" value="77"><input name="reason" value="forged"><button>send</button></form>`;
  await withOtherSite(`${form}<iframe src="${demo.url}${CONSOLE}sign-in"></iframe>`, async site => {
    const context = await openContext(browser, demo, { session });
    const page = await context.newPage();
    const own = await context.newPage();
    await own.goto(`${CONSOLE}users/3`);
    const before = await own.textContent(".balances .figure");
    const refusals = [];
    page.on("console", message => refusals.push(message.text()));
    await page.goto(site);
    assert.ok(!(await page.frames()[1]?.content().catch(() => ""))?.includes("password"), "the console shows in a frame");
    assert.ok(refusals.some(text => text.includes("frame-ancestors")), `the browser names no reason: ${refusals}`);
    const [response] = await Promise.all([page.waitForNavigation(), page.click("button")]);
    assert.ok(response.status() === 403 || new URL(page.url()).pathname.endsWith("/sign-in"), `status ${response.status()}`);
    await own.reload();
    assert.equal(await own.textContent(".balances .figure"), before, "a forged form changed the balance");
    await context.close();
  });
});
