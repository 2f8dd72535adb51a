// Work in the console: by keyboard, without JavaScript, with double clicks, and with hostile texts.
import assert from "node:assert/strict";
import { CONSOLE, PHONE, assertNone, check, openContext, waitUntil, watch } from "./harness.mjs";

const text = (page, selector) => page.textContent(selector);
/** Returns the number of coins on the page of a user. */
const coins = async page => Number((await text(page, ".balances .figure")).replaceAll(/\D/g, ""));

/** Returns the address of an order whose money has not been refunded, never the same twice. */
async function paidOrder(page, taken) {
  for (const path of [`${CONSOLE}orders?state=credited`, `${CONSOLE}orders?state=credited&cursor=2`]) {
    await page.goto(path);
    const links = await page.$$eval("#orders tbody th a, #orders tbody a[href*='/orders/']", links => links.map(link => link.getAttribute("href")));
    const link = links.find(link => !taken.includes(link));
    if (link) {
      taken.push(link);
      return link;
    }
  }
  throw new Error("no credited order is left");
}

const takenOrders = [];

/** Presses Tab until an element has the focus. Fails if the focus cannot be seen on the way. */
async function tabTo(page, selector) {
  for (let presses = 0; presses < 400; presses++) {
    const seen = await page.evaluate(selector => {
      const focused = document.activeElement;
      if (!focused || focused === document.body) return { isThere: false, isSeen: true, name: "body" };
      const { outlineStyle, outlineWidth } = getComputedStyle(focused);
      const rect = focused.getBoundingClientRect();
      const isInWindow = rect.bottom > 0 && rect.top < innerHeight && rect.right > 0 && rect.left < innerWidth && rect.width > 0;
      // The sticky header must not hide it.
      const middle = document.elementFromPoint(Math.min(innerWidth - 1, Math.max(0, rect.left + rect.width / 2)), Math.min(innerHeight - 1, Math.max(0, rect.top + Math.min(rect.height, 60) / 2)));
      const isCovered = middle && !focused.contains(middle) && !middle.contains(focused) && !!middle.closest("header.top") && !focused.closest("header.top");
      return {
        isThere: focused.matches(selector), isSeen: isInWindow && !isCovered && outlineStyle !== "none" && parseFloat(outlineWidth) >= 2,
        name: `<${focused.tagName.toLowerCase()} class="${focused.className}"> ${focused.textContent.trim().slice(0, 30)}`,
      };
    }, selector);
    assert.ok(seen.isSeen, `the focus is invisible on ${seen.name}`);
    if (seen.isThere) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not reach ${selector}`);
}

/** Signs in a user of the app. Returns a function that calls the service for them. */
async function signInUser(demo, phoneNumber) {
  let token;
  const send = (method, path, form) => fetch(demo.url + path, {
    method, body: new URLSearchParams(form), headers: token ? { authorization: `Bearer ${token}` } : {},
  });
  await send("POST", "/auth/send-code", { phoneNumber });
  const signedIn = await (await send("POST", "/auth/login", { phoneNumber, code: "246810" })).json();
  token = signedIn.token ?? signedIn.data?.token;
  assert.ok(token, JSON.stringify(signedIn));
  return { send };
}

const announced = page => page.waitForFunction(() => document.querySelector("#announce")?.textContent).then(handle => handle.jsonValue());
const isFocused = (page, selector) => page.evaluate(selector => !!document.activeElement?.matches(selector), selector);

check("the keyboard alone finds a user, grants coins and refunds an order", async ({ browser, demo, session }) => {
  const context = await openContext(browser, demo, { session });
  const page = await context.newPage();
  const order = await paidOrder(page, takenOrders);
  await page.goto(CONSOLE);
  await page.keyboard.press("/");
  assert.ok(await isFocused(page, "#palette input"), "the slash opens the palette");
  await page.keyboard.type(PHONE);
  await page.keyboard.press("Enter");
  await page.waitForURL(/users|search/);
  if (page.url().includes("search")) {
    await tabTo(page, ".hits a");
    await page.keyboard.press("Enter");
  }
  await page.waitForURL(/users\/\d+$/);
  const before = await coins(page);
  await tabTo(page, "#balances .act summary, .balances ~ .actions .act summary");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  assert.ok(await isFocused(page, "summary"), "Escape closes the form and the focus returns to its button");
  assert.equal(await page.isVisible("#grant-amount"), false, "Escape closes the form");
  await page.keyboard.press("Enter");
  await tabTo(page, "#grant-amount");
  await page.keyboard.type("3");
  await tabTo(page, "#grant-reason");
  await page.keyboard.type("keyboard");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".flash.good");
  assert.equal(await coins(page), before + 3, "the coins are granted");
  await page.goto(order);
  await tabTo(page, ".card .act summary");
  await page.keyboard.press("Enter");
  await tabTo(page, "#refund-reason");
  await page.keyboard.type("keyboard");
  await tabTo(page, "#actions button.danger, .act button.danger");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".flash");
  assert.ok(await page.isVisible(".flash.good"), `the refund succeeds: ${await text(page, ".flash")}`);
  await context.close();
});

check("the palette finds pages and people, the keys are listed, and a user's tabs follow the address", async ({ browser, demo, session }) => {
  const context = await openContext(browser, demo, { session, language: "en" });
  const page = await context.newPage();
  await page.goto(CONSOLE);
  await page.keyboard.press("?");
  assert.ok(await page.isVisible("#keys kbd"), "the question mark lists the keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("network");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(/network-log$/);
  await page.keyboard.press("/");
  await page.keyboard.type(PHONE);
  await page.locator("#found a[href*='/users/']").first().click();
  await page.waitForURL(/users\/\d+$/);
  assert.equal(await text(page, "[data-tabs] [aria-current]"), "Overview");
  await page.click("[data-tabs] a[href='#tab-money']");
  await page.waitForSelector("#ledger tbody tr");
  assert.equal(await text(page, "[data-tabs] [aria-current]"), "Money");
  assert.equal(await page.isVisible("#notes"), false, "one tab is shown");
  await context.close();
  const scriptless = await openContext(browser, demo, { session, language: "en", javaScriptEnabled: false });
  const plain = await scriptless.newPage();
  await plain.goto(`${CONSOLE}users/1`);
  await plain.click("[data-tabs] a[href='#tab-money']");
  assert.ok(await plain.isVisible("#ledger") && !(await plain.isVisible("#notes")), "the tabs work without the script");
  await scriptless.close();
});

check("the keyboard alone erases a user, after a page that shows what goes", async ({ browser, demo, session }) => {
  const context = await openContext(browser, demo, { session });
  const page = await context.newPage();
  await page.goto(`${CONSOLE}users?state=suspended`);
  const path = await page.getAttribute("main tbody th a", "href");
  await page.goto(path);
  await tabTo(page, "form[action$='/erase'] button");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#would-delete");
  assert.match(await text(page, "#would-delete"), /\d/, "the page counts what goes");
  await tabTo(page, "#confirm-reason");
  await page.keyboard.type("keyboard");
  if (await page.isVisible("#confirm-target")) {
    await tabTo(page, "#confirm-target");
    await page.keyboard.type(path.split("/").at(-1));
  }
  await tabTo(page, "main button.danger");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".flash.good");
  const gone = await page.request.get(path);
  assert.equal(gone.status(), 404, "the user is gone");
  await context.close();
});

check("the keyboard alone clears verification codes, after a page that counts them", async ({ browser, demo, session }) => {
  const context = await openContext(browser, demo, { session });
  const page = await context.newPage();
  await page.goto(`${CONSOLE}cleanup`);
  await tabTo(page, "form[action$='/verification-codes'] button");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#would-delete");
  await tabTo(page, "#confirm-reason");
  await page.keyboard.type("keyboard");
  await tabTo(page, "#confirm-target");
  await page.keyboard.type("cleanup verification-codes");
  await tabTo(page, "main button.danger");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".flash.good");
  await context.close();
});

check("every link and button of a page is reached by Tab, with a visible focus", async ({ browser, demo, session, pages }) => {
  const context = await openContext(browser, demo, { session });
  const page = await context.newPage();
  const faults = [];
  for (const one of pages.filter(one => !one.isOpen)) {
    await page.goto(one.path);
    const invisible = await page.evaluate(() => {
      const found = [];
      const targets = document.querySelectorAll("a[href], button, summary, input:not([type=hidden]), select, textarea, [tabindex='0']");
      for (const target of targets) {
        if (!target.checkVisibility() || target.disabled) continue;
        target.focus({ focusVisible: true });
        const { outlineStyle, outlineWidth } = getComputedStyle(target);
        if (document.activeElement !== target) found.push(`no focus: ${target.outerHTML.slice(0, 80)}`);
        else if (outlineStyle === "none" || parseFloat(outlineWidth) < 2) found.push(`no outline: ${target.outerHTML.slice(0, 80)}`);
      }
      return found.slice(0, 5);
    });
    invisible.forEach(fault => faults.push(`${one.name}: ${fault}`));
  }
  await context.close();
  assertNone(faults, "targets without a visible focus");
});

check("a swapped list keeps the focus and is announced", async ({ browser, demo, session }) => {
  const context = await openContext(browser, demo, { session });
  const page = await context.newPage();
  await page.goto(`${CONSOLE}orders`);
  assert.equal(await page.getAttribute("#announce", "aria-live"), "polite");
  await tabTo(page, ".pager a[rel=next]");
  const first = await text(page, "#orders tbody tr");
  await page.keyboard.press("Enter");
  await page.waitForFunction(first => document.querySelector("#orders tbody tr").textContent !== first, first);
  assert.match(await announced(page), /\d/);
  assert.ok(await page.evaluate(() => document.querySelector("#orders").contains(document.activeElement)), "the focus stays in the list");
  assert.match(page.url(), /cursor=2/);
  await page.goBack();
  await page.waitForFunction(first => document.querySelector("#orders tbody tr").textContent === first, first);
  await page.selectOption("#state", "closed");
  await page.click(".filters button[type=submit]");
  await page.waitForURL(/state=closed/);
  assert.match(await announced(page), /\d/);
  await context.close();
});

check("without JavaScript a person signs in, reads, pages, searches and acts", async ({ browser, demo }) => {
  const context = await openContext(browser, demo, { javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${CONSOLE}orders?state=credited`);
  await signInHere(page, demo);
  assert.match(page.url(), /orders\?state=credited/, "the sign-in leads back");
  const first = await text(page, "#orders tbody tr");
  await page.click(".pager a[rel=next]");
  assert.notEqual(await text(page, "#orders tbody tr"), first, "the second page has other rows");
  await page.fill("#q", PHONE);
  await page.press("#q", "Enter");
  if (page.url().includes("search")) await page.click(".hits a");
  const before = await coins(page);
  await page.click(".balances ~ .actions .act summary");
  await page.fill("#grant-amount", "2");
  await page.fill("#grant-reason", "without a script");
  await page.click(".balances ~ .actions .act button[type=submit]");
  assert.equal(await coins(page), before + 2, "the coins are granted");
  await page.goto(`${CONSOLE}orders`);
  await page.click(".list-head .act summary");
  await page.fill("#orders-export-reason", "without a script");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(".list-head .act button[type=submit]")]);
  assert.equal(download.suggestedFilename(), "orders.csv", "the list is saved");
  await page.click(".account summary");
  await page.click(".account button[value=en]");
  assert.equal(await page.getAttribute("html", "lang"), "en", "the language changes");
  await context.close();
});

async function signInHere(page, demo) {
  await page.fill("#name", demo.name);
  await page.fill("#password", demo.password);
  await page.click("main button.primary");
}

/** Submits a form by a double click, and opens a page in another tab: the first tab may still follow both answers. */
async function submitTwice(context, page, button, address) {
  const answered = page.waitForResponse(response => response.request().method() === "POST");
  await page.dblclick(button);
  await answered;
  await page.waitForLoadState("networkidle");
  const other = await context.newPage();
  await other.goto(address);
  return other;
}

check("double clicks grant and refund once", async ({ browser, demo, session }) => {
  for (const javaScriptEnabled of [true, false]) {
    const context = await openContext(browser, demo, { session, javaScriptEnabled });
    const page = await context.newPage();
    await page.goto(`${CONSOLE}users/1`);
    const before = await coins(page);
    await page.click(".balances ~ .actions .act summary");
    await page.fill("#grant-amount", "5");
    await page.fill("#grant-reason", "double click");
    const user = await submitTwice(context, page, ".balances ~ .actions .act button[type=submit]", `${CONSOLE}users/1`);
    assert.equal(await coins(user), before + 5, `granted once, JavaScript ${javaScriptEnabled}`);
    const order = await paidOrder(user, takenOrders);
    await user.goto(order);
    await user.click(".act:has(#refund-amount) summary");
    await user.fill("#refund-amount", "1.00");
    await user.fill("#refund-reason", "double click");
    const refunded = await submitTwice(context, user, ".act button.danger", order);
    const refunds = await refunded.locator("#refunds tbody tr").count();
    assert.equal(refunds, 1, `refunded once, JavaScript ${javaScriptEnabled}`);
    await context.close();
  }
});

check("picked rows stay with their list, and acts of a row and of several rows reach the server", async ({ browser, demo, session }) => {
  const context = await openContext(browser, demo, { session });
  const page = await context.newPage();
  const ticked = () => page.locator("input[name=id]:checked").count();
  await page.goto(`${CONSOLE}users`);
  await page.locator("input[name=id]").first().check();
  await page.goto(`${CONSOLE}users?state=suspended`);
  assert.equal(await ticked(), 0, "a tick moved to another list");
  await page.goto(`${CONSOLE}moderation`);
  const act = page.locator("main tbody tr").first().locator(".act");
  await act.locator("summary").click();
  await act.locator("input[name=reason], textarea[name=reason]").fill("first row");
  await act.locator("button[type=submit]").first().click();
  await page.waitForSelector(".flash.good");
  await page.goto(`${CONSOLE}moderation`);
  await page.locator("input[name=id]").first().check();
  await page.click("#bulk .act summary");
  await page.fill("#bulk-reason", "several rows");
  await page.click("#bulk button[value=reset-nickname]");
  await page.waitForURL(/moderation\/bulk/);
  assert.equal(await page.locator("main tbody tr").count(), 1, "one row was picked");
  await context.close();
});

check("lists of callbacks are filtered, charts name their periods, points and last requests are shown", async ({ browser, demo, session }) => {
  const context = await openContext(browser, demo, { session });
  const page = await context.newPage();
  await page.goto(`${CONSOLE}orders/callbacks`);
  const states = () => page.$$eval("#orders-callbacks tbody tr", rows => rows.map(row => row.querySelectorAll("th, td")[2].textContent.trim()));
  const all = await states();
  assert.ok(all.some(state => !/Rejected|review/i.test(state)), "the demonstration has callbacks of all kinds");
  for (const name of ["Rejected", "In review"]) {
    await page.getByRole("link", { name, exact: true }).click();
    await page.waitForURL(/verdict=/);
    assert.ok((await states()).every(state => state.toLowerCase().startsWith(name.toLowerCase())), `${name}: ${await states()}`);
  }
  for (const [days, period] of [[30, "by day"], [365, "by week"]]) {
    await page.goto(`${CONSOLE}revenue?days=${days}`);
    for (const title of await page.$$eval("figure h2", titles => titles.map(title => title.textContent))) assert.ok(title.endsWith(period), title);
  }
  await page.goto(`${CONSOLE}administrators`);
  await page.fill("input[name=network]:not([type=hidden])", "203.0.113.0/24");
  await page.click("form[action$='/administrators/networks'] button[type=submit]");
  assert.match(await text(page, ".error"), /shut you out/, "a network that locks its author out is refused");
  const signedInAt = Date.now();
  const user = await signInUser(demo, PHONE);
  const ordered = await user.send("POST", "/api/v1/orders", { productId: "points_600" });
  assert.ok(ordered.ok, await ordered.clone().text());
  const { orderNo } = await ordered.json();
  await page.goto(`${CONSOLE}orders/${orderNo}`);
  assert.match(await text(page, "#order"), /600 Points/);
  await page.goto(`${CONSOLE}orders`);
  assert.match(await text(page, "#orders tbody tr"), /600 Points/);
  await page.locator("#orders tbody tr a[href*='/users/']").first().click();
  await page.waitForURL(/users\/\d+$/);
  await user.send("POST", "/auth/logout", {});
  // The sign-out removes the device, so the newest entry of the network log counts. Its rows are written in batches.
  const lastSeen = async () => {
    await page.reload();
    return Date.parse(await page.getAttribute("dt:text-is('Last seen') + dd time", "datetime"));
  };
  await waitUntil(async () => await lastSeen() >= signedInAt, "the last requests of the user count as seen");
  await context.close();
});

check("codes of numbers without an account are found, and missing coins are explained by their newest cause", async ({ browser, demo, session }) => {
  const context = await openContext(browser, demo, { session });
  const page = await context.newPage();
  await fetch(`${demo.url}/auth/send-code`, { method: "POST", body: new URLSearchParams({ phoneNumber: "13800138222" }) });
  await page.goto(CONSOLE);
  await page.fill("#q", "138 0013 8222");
  await page.press("#q", "Enter");
  await page.waitForURL(/search/);
  assert.equal(await page.locator("#codes tbody tr").count(), 1, "the code that was asked for");
  const order = await paidOrder(page, takenOrders);
  await page.goto(order);
  await page.click(".card .act summary");
  await page.fill("#refund-reason", "newest cause");
  await page.click("#actions button.danger, .act button.danger");
  await page.waitForSelector(".flash.good");
  await page.locator("main a[href*='/users/']").first().click();
  await page.waitForSelector("#coins");
  assert.match(await text(page, "#coins header"), /refund/i, "the refund is the newest cause");
  const amounts = await page.locator("#coins table").last().locator("td").evaluateAll(cells => cells.map(cell => Number(cell.textContent.replace("−", "-").replaceAll(/[^0-9-]/g, ""))));
  const balance = amounts.pop();
  assert.equal(amounts.reduce((sum, amount) => sum + amount, 0), balance, `${amounts} make ${balance}`);
  assert.equal(balance, await coins(page));
  await context.close();
});

const HOSTILE = [
  `<img src=x onerror=alert(1)>`, `"><script>alert(2)</script>`, `' autofocus onfocus=alert(3) '`, `\${alert(4)}{{5*5}}`,
  `\u202Egnp.exe\u202C`, `ḩ̷̛̺̈́ḝ̶̟͝l̴̩̔l̷̰̈́o̶͖͝`, `W`.repeat(40), `👩‍👩‍👧‍👦`.repeat(6),
];

check("hostile nicknames, signatures and feedback stay inert", async ({ browser, demo, session, pages }) => {
  const { send } = await signInUser(demo, PHONE);
  const context = await openContext(browser, demo, { session, width: 360 });
  const page = await context.newPage();
  const faults = watch(page, demo);
  const found = [];
  let stored = 0;
  for (const text of HOSTILE) {
    const names = [await send("PUT", "/user/nickname", { nickname: text }), await send("PUT", "/user/signature", { signature: text })];
    stored += names.filter(response => response.ok).length;
    await send("POST", "/feedback", { content: text });
    for (const path of [`${CONSOLE}users/1`, `${CONSOLE}search?q=${encodeURIComponent(text)}`, ...pages.filter(one => ["feedback", "users", "moderation"].includes(one.name)).map(one => one.path)]) {
      await page.goto(path);
      const state = await page.evaluate(() => ({
        isBroken: !!document.querySelector("main img, main script, [onerror], [onfocus]"),
        width: document.documentElement.scrollWidth,
      }));
      if (state.isBroken) found.push(`${path}: ${text} became an element`);
      if (state.width > 361) found.push(`${path}: ${text} makes the page ${state.width} px wide`);
    }
  }
  await send("PUT", "/user/nickname", { nickname: "青山" });
  await send("PUT", "/user/signature", { signature: "心静则明" });
  await context.close();
  assertNone([...found, ...faults], "faults");
  assert.ok(stored >= 4, `the service stored only ${stored} of the texts`);
});
