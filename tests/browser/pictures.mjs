// Pictures of every page, for people to look at.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { LANGUAGES, THEMES, WIDTHS, openContext } from "./harness.mjs";

export async function takePictures({ browser, demo, session, pages }, directory) {
  mkdirSync(directory, { recursive: true });
  const views = THEMES.flatMap(theme => LANGUAGES.map(language => ({ theme, language })));
  await Promise.all(views.map(async ({ theme, language }) => {
    const context = await openContext(browser, demo, { theme, language, session });
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    const stranger = await openContext(browser, demo, { theme, language });
    stranger.setDefaultTimeout(60_000);
    const open = await stranger.newPage();
    for (const one of pages) {
      const shown = one.isOpen ? open : page;
      await shown.setViewportSize({ width: one.width ?? WIDTHS[0], height: 900 });
      await shown.goto(one.path, { waitUntil: "networkidle" });
      await one.act?.(shown);
      for (const width of one.width ? [one.width] : WIDTHS) {
        await shown.setViewportSize({ width, height: 900 });
        await shown.waitForTimeout(80);
        const name = `${one.name.replaceAll(/[^A-Za-z-]+/g, "_")}-${width}-${theme}-${language}.png`;
        await shown.screenshot({ path: join(directory, name), fullPage: true });
      }
    }
    await context.close();
    await stranger.close();
  }));
}
