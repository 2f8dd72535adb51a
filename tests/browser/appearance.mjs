// Every page in both themes, languages and widths: nothing forbidden, nothing cut off, accessible.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { CONSOLE, LANGUAGES, THEMES, WIDTHS, assertNone, check, openContext, watch } from "./harness.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = THEMES.flatMap(theme => LANGUAGES.map(language => ({ theme, language })));

/** Visits all pages in all themes and languages, two views at a time. Returns what `look` reports. */
async function visitAll(environment, look, options = {}) {
  const { browser, demo, session, pages } = environment;
  const reports = [];
  const visit = async view => {
    const signedIn = await openContext(browser, demo, { ...view, session, ...options });
    const stranger = await openContext(browser, demo, { ...view, ...options });
    const tabs = [await signedIn.newPage(), await stranger.newPage()];
    for (const one of pages) {
      const page = tabs[one.isOpen ? 1 : 0];
      const faults = watch(page, demo);
      const say = text => reports.push(`${one.name} ${view.theme} ${view.language}: ${text}`);
      await page.setViewportSize({ width: one.width ?? WIDTHS[0], height: 900 });
      const response = await page.goto(one.path, { waitUntil: "load" });
      const source = await response.text();
      await one.act?.(page);
      await look({ page, one, response, source, faults, say, view });
      page.removeAllListeners();
    }
    await signedIn.close();
    await stranger.close();
  };
  await Promise.all([VIEWS.slice(0, 2), VIEWS.slice(2)].map(async views => { for (const view of views) await visit(view); }));
  return reports;
}

/** Returns the elements that reach outside the window and that no box scrolls. Runs in the page. */
function outside() {
  const found = [];
  const limit = document.documentElement.clientWidth + 1;
  if (document.documentElement.scrollWidth > limit) found.push(`the page scrolls sideways: ${document.documentElement.scrollWidth} px`);
  const isScrolled = element => {
    for (let box = element.parentElement; box && box !== document.body; box = box.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return true;
    }
    return false;
  };
  for (const element of document.querySelectorAll("main *, header *, footer *")) {
    if (!element.checkVisibility() || element.closest("svg, .sr, .sr-until-focus, .u-wrap")) continue;
    const { left, right, width } = element.getBoundingClientRect();
    const isClipped = getComputedStyle(element).clipPath !== "none" || element.closest("thead[role]");
    if (width && !isClipped && (right > limit || left < -1) && !isScrolled(element)) {
      found.push(`<${element.tagName.toLowerCase()} class="${element.className}"> reaches from ${Math.round(left)} to ${Math.round(right)} px: ${element.textContent.trim().slice(0, 40)}`);
    }
    // Text that a box cuts off.
    const style = getComputedStyle(element);
    if (style.overflowX === "hidden" && !isClipped && element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 1) {
      found.push(`<${element.tagName.toLowerCase()} class="${element.className}"> cuts off: ${element.textContent.trim().slice(0, 40)}`);
    }
  }
  for (const box of document.querySelectorAll(".table-box")) {
    const table = box.querySelector("table");
    const isScrolling = getComputedStyle(box).overflowX === "auto" || box.closest(".scroll");
    if (table?.checkVisibility() && !isScrolling && table.scrollWidth > box.clientWidth + 1) found.push(`the table ${table.caption?.textContent} is ${table.scrollWidth - box.clientWidth} px too wide`);
  }
  return found.slice(0, 6);
}

/** Returns targets that a finger cannot hit. Links within a sentence are exempt. Runs in the page. */
function smallTargets() {
  const found = [];
  for (const element of document.querySelectorAll("a[href], button, summary, input:not([type=hidden]), select, textarea")) {
    if (!element.checkVisibility() || element.closest(".sr, .sr-until-focus, .skip, [popover]:not(:popover-open)")) continue;
    const target = ["checkbox", "radio"].includes(element.type) ? element.closest("label") ?? element : element;
    const hasTextBeside = [...target.parentElement.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim().length > 3);
    if (element.matches("a") && hasTextBeside) continue;
    const rects = [...target.getClientRects()];
    const height = Math.max(0, ...rects.map(rect => rect.height));
    const width = Math.max(0, ...rects.map(rect => rect.width));
    // A link may be shorter than a finger is wide if it is as high.
    const isWide = width >= 43.5 || (element.matches("a") && width >= 24);
    if (height < 43.5 || !isWide) found.push(`${Math.round(width)} × ${Math.round(height)} px: <${element.tagName.toLowerCase()} class="${element.className}"> ${element.textContent.trim().slice(0, 30)} in ${target.parentElement.className || target.parentElement.tagName}`);
  }
  return found.slice(0, 8);
}

check("pages show without messages, foreign requests or inline code, and fit 1280, 768 and 360 px", async environment => {
  const reports = await visitAll(environment, async ({ page, one, response, source, faults, say, view }) => {
    if (!one.act && response.status() !== (one.status ?? 200)) say(`status ${response.status()}`);
    const inline = source.match(/<style|<script(?![^>]* src=)|<[^>]*\s(style|on[a-z]+)=/);
    if (inline) say(`inline style or script: ${inline[0].slice(-60)}`);
    if (!source.includes(`lang="${view.language}`) || !source.includes(`data-theme="${view.theme}"`)) say("another language or theme");
    for (const width of [WIDTHS[0], 768, WIDTHS[1]]) {
      await page.setViewportSize({ width, height: 900 });
      await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
      for (const fault of await page.evaluate(outside)) say(`${width} px: ${fault}`);
      // Forms and tables that are closed at first.
      await page.evaluate(() => { for (const details of document.querySelectorAll("main details")) details.open = true; });
      for (const fault of await page.evaluate(outside)) say(`${width} px, all open: ${fault}`);
      await page.evaluate(() => { for (const details of document.querySelectorAll("main details")) details.open = false; });
    }
    faults.filter(fault => !(one.status && fault.includes(one.status))).forEach(say);
  });
  assertNone(reports, "faults");
});

/** Returns the serious findings of axe. */
export async function seriousFindings(page) {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const result = await axe.run(document, { resultTypes: ["violations"] });
    return result.violations.filter(one => ["serious", "critical"].includes(one.impact))
      .map(one => `${one.id}: ${one.nodes.slice(0, 3).map(node => `${node.html.slice(0, 120)} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
  });
}

check("axe finds nothing serious", async environment => {
  const reports = await visitAll(environment, async ({ page, say }) => {
    await page.evaluate(() => { for (const details of document.querySelectorAll("main details:not(td details)")) details.open = true; });
    // Further rows of a list are like the first ones, and would take most of the time.
    await page.evaluate(() => { for (const row of document.querySelectorAll("tbody tr:nth-child(n+13)")) row.remove(); });
    (await seriousFindings(page)).forEach(say);
  });
  assertNone(reports, "findings");
});

check("targets are at least 44 px at 360 px", async ({ browser, demo, session, pages }) => {
  const found = [];
  for (const language of LANGUAGES) {
    const context = await openContext(browser, demo, { language, session, width: 360, hasTouch: true, isMobile: true });
    const stranger = await openContext(browser, demo, { language, width: 360, hasTouch: true, isMobile: true });
    const tabs = [await context.newPage(), await stranger.newPage()];
    for (const one of pages) {
      const page = tabs[one.isOpen ? 1 : 0];
      await page.goto(one.path);
      await one.act?.(page);
      await page.evaluate(() => { for (const details of document.querySelectorAll("main details")) details.open = true; });
      for (const target of await page.evaluate(smallTargets)) found.push(`${one.name} ${language}: ${target}`);
    }
    await context.close();
    await stranger.close();
  }
  assertNone(found, "targets are small");
});

check("at 200 % zoom nothing is lost", async ({ browser, demo, session, pages }) => {
  const lost = [];
  // Zoom halves the window in CSS pixels.
  const context = await openContext(browser, demo, { session, width: 640, deviceScaleFactor: 2 });
  const page = await context.newPage();
  const texts = () => [...document.querySelectorAll("main *")]
    .filter(element => element.checkVisibility() && [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim()))
    .filter(element => !element.closest("thead, .u-wrap, [hidden], .none, :has(> .none:only-child)") && element.getClientRects().length)
    .map(element => element.textContent.trim().replace(/\s+/g, " "));
  for (const one of pages.filter(one => !one.isOpen && !one.act)) {
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.goto(one.path);
    const before = await page.evaluate(texts);
    await page.setViewportSize({ width: 640, height: 450 });
    // Narrow windows close the filter behind a button.
    await page.evaluate(() => { for (const box of document.querySelectorAll(".filter-box")) box.open = true; });
    const after = new Set(await page.evaluate(texts));
    for (const text of before.filter(text => !after.has(text))) lost.push(`${one.name}: ${text.slice(0, 60)}`);
    for (const fault of await page.evaluate(outside)) lost.push(`${one.name}: ${fault}`);
  }
  await page.goto(CONSOLE);
  await page.click(".menu-button");
  assert.ok(await page.isVisible("#nav a[aria-current=page]"), "the navigation opens");
  await context.close();
  assertNone(lost, "texts are lost");
});

/** Describes the charts of a page. Runs in the page. */
const charts = () => [...document.querySelectorAll("figure.chart")].map(figure => {
  // A chart without values has a text and a table, and nothing is drawn.
  if (!figure.dataset.chart) return { id: figure.id, name: figure.querySelector(".empty").textContent, isDrawn: true, isComplete: !!figure.querySelector("table tbody tr") };
  const { labels, series } = JSON.parse(figure.dataset.chart);
  const plot = figure.querySelector("[role=img]");
  const canvas = plot?.querySelector("canvas");
  return {
    id: figure.id, name: plot?.getAttribute("aria-label") ?? "",
    // A drawn canvas has pixels of some colour.
    isDrawn: !!canvas && canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(value => value),
    isComplete: figure.querySelectorAll("table tbody tr").length === labels.length
      && (!labels.length || figure.querySelectorAll("table tbody tr:first-child td").length === series.length),
  };
});

check("charts have a name, a drawing and a table with their values", async ({ browser, demo, session, pages }) => {
  const context = await openContext(browser, demo, { session });
  const page = await context.newPage();
  const faults = [];
  let count = 0;
  for (const one of pages.filter(one => !one.isOpen && !one.act)) {
    await page.goto(one.path);
    const found = await page.evaluate(charts);
    count += found.length;
    const isLoaded = await page.evaluate(() => !!window.uPlot);
    if (isLoaded !== found.length > 0) faults.push(`${one.name}: ${found.length} charts, but uPlot is ${isLoaded ? "" : "not "}loaded`);
    found.filter(chart => !chart.name || !chart.isDrawn || !chart.isComplete).forEach(chart => faults.push(`${one.name}: ${JSON.stringify(chart)}`));
  }
  await context.close();
  assertNone(faults, "charts are incomplete");
  return `${count} charts`;
});

// A chart with gaps, two series and large values, as the server writes it.
const SAMPLE = `<section class="card"><figure class="chart" id="sample" data-chart='${JSON.stringify({
  unit: "money", bars: false, labels: Array.from({ length: 30 }, (_, day) => `2026-01-${String(day + 1).padStart(2, "0")}`),
  series: [1, 2].map(name => ({ name: `series ${name}`, values: Array.from({ length: 30 }, (_, day) => (day % 11 === 5 ? null : 1234567 * name + 90000 * day * (3 - name))) })),
})}'><figcaption><h2>Sample</h2></figcaption><div class="plot" role="img" aria-label="Sample"></div></figure></section>`;

check("a chart is drawn, follows the theme and the width, and tells values under the pointer", async ({ browser, demo, session }) => {
  const context = await openContext(browser, demo, { session, colorScheme: "light" });
  const page = await context.newPage();
  const faults = watch(page, demo);
  await page.route(`**${CONSOLE}`, async route => {
    const response = await route.fetch();
    const body = await response.text();
    const version = body.match(/assets\/[0-9a-f]+/)[0];
    const script = body.includes("uPlot.iife") ? "" : `<script src="${CONSOLE}${version}/uPlot.iife.min.js" defer></script>`;
    await route.fulfill({ response, body: body.replace("</title>", `</title>${script}`).replace("</main>", `${SAMPLE}</main>`) });
  });
  await page.goto(CONSOLE);
  const plot = page.locator("#sample .plot");
  const ink = () => plot.evaluate(plot => {
    const canvas = plot.querySelector("canvas");
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const colors = new Set();
    for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] > 250) colors.add(pixels.slice(at, at + 3).join());
    return { colors: colors.size, width: canvas.clientWidth, sample: [...colors].slice(0, 3).join(" ") };
  });
  const light = await ink();
  assert.ok(light.colors > 2, "the canvas is empty");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForTimeout(200);
  assert.notEqual((await ink()).sample, light.sample, "the colours follow the theme");
  await page.setViewportSize({ width: 360, height: 900 });
  await page.waitForTimeout(300);
  const narrow = await ink();
  assert.ok(narrow.width < 340 && narrow.width > 200, `the chart is ${narrow.width} px wide`);
  await plot.scrollIntoViewIfNeeded();
  await plot.hover();
  assert.match(await plot.getAttribute("title"), /2026-01-\d\d[^]*series 1: ¥/);
  await context.close();
  // The warning is about the reading above.
  assertNone(faults.filter(fault => !fault.includes("getImageData")), "faults");
});

check("dark follows the system, and a choice sticks without a flash", async ({ browser, demo, session }) => {
  const background = page => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const context = await openContext(browser, demo, { session, colorScheme: "light" });
  const page = await context.newPage();
  await page.goto(CONSOLE);
  const light = await background(page);
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await background(page);
  assert.notEqual(light, dark, "the page follows the system");
  await page.emulateMedia({ colorScheme: "light" });
  await page.click(".account summary");
  await page.click(".account button[name=theme][value=dark]");
  await page.waitForLoadState();
  assert.equal(await background(page), dark, "the choice applies at once");
  // Frames of a load on a slow connection: a flash would be a bright one.
  const client = await context.newCDPSession(page);
  await client.send("Network.enable");
  await client.send("Network.emulateNetworkConditions", { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 90_000 });
  const frames = [];
  client.on("Page.screencastFrame", frame => {
    frames.push(frame.data);
    client.send("Page.screencastFrameAck", { sessionId: frame.sessionId }).catch(() => {});
  });
  await client.send("Page.startScreencast", { format: "png", maxWidth: 320 });
  await page.goto(`${CONSOLE}orders`);
  await page.goto(`${CONSOLE}audit`);
  assert.equal(await background(page), dark, "the choice stays on other pages");
  await client.send("Page.stopScreencast");
  await context.close();
  const measuring = await (await browser.newContext()).newPage();
  const brightness = await measuring.evaluate(frames => Promise.all(frames.map(async data => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const pixels = canvas.getImageData(0, 0, image.width, image.height).data;
    return pixels.reduce((sum, value, index) => sum + (index % 4 === 3 ? 0 : value), 0) / (pixels.length * 0.75);
  })), frames);
  await measuring.context().close();
  assert.ok(frames.length > 1, "no frame was seen");
  assert.ok(Math.max(...brightness) < 100, `a bright frame: ${brightness.map(Math.round)}`);
  return `${frames.length} frames`;
});
