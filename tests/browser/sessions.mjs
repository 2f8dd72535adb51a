// Sessions that end, links from other sites, and requests of other sites.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createHmac } from "node:crypto";
import { seriousFindings } from "./appearance.mjs";
import { CONSOLE, THEMES, assertNone, check, openContext, signIn, startDemo, startNew } from "./harness.mjs";

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
    await page.waitForSelector(".sign-in");
    await signIn(page, short);
    await page.waitForURL(/users\/2$/);
    assert.equal(await page.inputValue("#grant-reason"), "typed before the session ended");
    // Also when the browser has lost the cookie.
    await tab.clearCookies();
    await page.click(".balances ~ .actions .act button[type=submit]");
    await page.waitForSelector(".sign-in");
    await signIn(page, short);
    await page.waitForURL(/users\/2$/);
    assert.equal(await page.inputValue("#grant-reason"), "typed before the session ended");
    await tab.close();
    // Without JavaScript the form is shown again.
    const plain = await openContext(browser, short, { javaScriptEnabled: false });
    const bare = await plain.newPage();
    await bare.goto(`${CONSOLE}sign-in`);
    await signIn(bare, short);
    await bare.goto(`${CONSOLE}users/2`);
    await plain.clearCookies();
    await bare.click(".balances ~ .actions .act summary");
    await bare.fill("#grant-amount", "41");
    await bare.fill("#grant-reason", "typed without JavaScript");
    await bare.click(".balances ~ .actions .act button[type=submit]");
    await bare.waitForSelector(".sign-in");
    await signIn(bare, short);
    assert.equal(await bare.inputValue("input[name=amount]"), "41");
    await bare.click(".sign-in button.primary");
    assert.ok(await bare.isVisible(".flash.good"), "the form is sent");
    await plain.close();
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

/** Returns the code of an authenticator (RFC 6238) some steps of 30 seconds from now. */
function totp(secret, steps = 0) {
  const bits = [...secret.replaceAll(/[^A-Z2-7]/g, "")].map(letter => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from(bits.match(/.{8}/g).map(byte => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
  const mac = createHmac("sha1", key).update(counter).digest();
  return String((mac.readUInt32BE(mac.at(-1) & 15) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

check("the first owner is made by the printed link, and signs in with a second factor, without JavaScript", async ({ program, browser }) => {
  const server = await startNew(program);
  try {
    const findings = [];
    for (const theme of THEMES) {
      const context = await openContext(browser, server, { theme, width: 360 });
      const page = await context.newPage();
      await page.goto(server.link);
      findings.push(...await seriousFindings(page));
      if (await page.evaluate(() => document.documentElement.scrollWidth) > 360) findings.push("the page scrolls sideways");
      await context.close();
    }
    assertNone(findings, "findings");
    const context = await openContext(browser, server, { javaScriptEnabled: false });
    const page = await context.newPage();
    const owner = { name: "alice", password: "correct horse battery" };
    await page.goto(server.link);
    await page.fill("#name", owner.name);
    await page.fill("#password", owner.password);
    await page.fill("#repeated", "something else");
    await page.click("main button.primary");
    assert.ok(await page.isVisible(".error"), "different passwords are refused");
    await page.fill("#password", owner.password);
    await page.fill("#repeated", owner.password);
    await page.click("main button.primary");
    assert.equal(new URL(page.url()).pathname, CONSOLE);
    await page.goto(`${CONSOLE}administrators`);
    await page.click("form[action$='/alice/totp'] button");
    const secret = await page.textContent(".numbered code");
    await page.fill("input[name=totp]", totp(secret, -1));
    await page.click("form[action$='/totp/confirm'] button[type=submit]");
    assert.ok(await page.isVisible(".flash.good"), "the second factor is confirmed");
    assert.match(page.url(), /sign-in/, "all sessions have ended");
    await signIn(page, owner);
    assert.ok(await page.isVisible(".error, .note.bad, input[name=totp][required]"), "the password alone is not enough");
    await page.fill("#name", owner.name);
    await page.fill("#password", owner.password);
    await page.fill("#totp", totp(secret));
    await page.click("main button.primary");
    assert.equal(new URL(page.url()).pathname, `${CONSOLE}administrators`, "the sign-in leads back");
    await context.close();
  } finally {
    await server.stop();
  }
});
