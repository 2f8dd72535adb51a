// Finds the pages of the console: those of the navigation and one of each kind that they link to.
import { CONSOLE, openContext } from "./harness.mjs";

const DEPTH = 3;
// Names in paths that are no ids.
const isWord = part => /^[a-z]+(-[a-z]+)*$/.test(part);

/** Returns the kind of an address: its path without ids, and the names of its query. */
function kindOf(address) {
  const url = new URL(address, "http://console");
  const path = url.pathname.slice(CONSOLE.length).split("/").map(part => (isWord(part) || !part ? part : "ID")).join("/");
  // Filters show the same page with other rows.
  const query = [...url.searchParams.keys()].filter(name => ["asset", "q"].includes(name)).sort().join("+");
  return (path || "overview") + (query && `?${query}`);
}

/** States of pages that no address shows. */
const STATES = [
  { name: "state-search-empty", path: `${CONSOLE}search?q=no-such-thing` },
  { name: "state-menu", path: CONSOLE, act: page => page.click(".account summary") },
  { name: "state-session-lost", path: CONSOLE, act: page => page.$eval("#session-lost", note => { note.hidden = false; }) },
  { name: "state-navigation", path: CONSOLE, width: 360, act: page => page.click(".menu-button") },
  {
    name: "state-rejected-form", path: `${CONSOLE}users/1`, status: 422, act: async page => {
      await page.click(".balances ~ .actions .act summary");
      await page.fill("#grant-amount", "many");
      await page.fill("#grant-reason", "a reason");
      await page.click(".balances ~ .actions .act button[type=submit]");
      await page.waitForSelector(".note.bad, .error");
    },
  },
  {
    name: "state-second-factor", path: `${CONSOLE}administrators`, act: async page => {
      await page.click("tr:has-text('mei') form[action$='/totp'] button, tr:has-text('mei') button:text-matches('factor|验证')");
      await page.waitForSelector(".qr");
    },
  },
];

/** Returns pages as `{ name, path }`. */
export async function findPages({ browser, demo, session }) {
  const context = await openContext(browser, demo, { session, javaScriptEnabled: false });
  const page = await context.newPage();
  const found = new Map([["overview", CONSOLE]]);
  for (const path of ["search?q=1", `search?q=13800138`, "users/1", "users/1/ledger?asset=coin"]) {
    found.set(kindOf(CONSOLE + path), CONSOLE + path);
  }
  let fresh = [...found.values()];
  for (let depth = 0; depth < DEPTH && fresh.length; depth++) {
    const next = [];
    for (const path of fresh) {
      await page.goto(path);
      const links = await page.$$eval("a[href]:not([download])", links => links.map(link => link.getAttribute("href")));
      for (const link of links.filter(link => link.startsWith(CONSOLE) && !link.includes("/assets/"))) {
        const kind = kindOf(link);
        // A longer list shows more, so the unfiltered one comes first.
        if (!found.has(kind)) {
          found.set(kind, link);
          next.push(link);
        }
      }
    }
    fresh = next;
  }
  await context.close();
  const pages = [...found].map(([name, path]) => ({ name, path }));
  pages.push(...STATES);
  pages.push({ name: "sign-in", path: `${CONSOLE}sign-in`, isOpen: true });
  pages.push({ name: "not-found", path: `${CONSOLE}users/999999`, status: 404 });
  return pages;
}
