// How a page looks in a browser: in light and dark, on a desk and on a phone, axe finds no violation and nothing is wider
// than the screen. Pages are opened and forms sent without scripts. What is wrong is kept in `wrong`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const { API_URL, CHROMIUM } = process.env;
assert(API_URL && CHROMIUM);
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// A machine that builds beside us is slow.
const patience = 60_000;

export const wrong = [];
export let looks = 0;
export const browser = await chromium.launch({ executablePath: CHROMIUM, timeout: patience });
const context = await browser.newContext();
context.setDefaultTimeout(patience);
// These load themselves anew, and would do so while axe looks at them.
await context.route(/\/(pay|esim)\/[^/]+$/, async (route) => {
  const response = await route.fetch({ timeout: patience });
  const { refresh, ...headers } = response.headers();
  await route.fulfill({ response, headers });
});
export const page = await context.newPage();
const session = await context.newCDPSession(page);
const scripts = (on) => session.send("Emulation.setScriptExecutionDisabled", { value: !on });
await scripts(false);

// What a scheme and a width make of the page.
async function faults() {
  const { violations } = await page.evaluate(() =>
    globalThis.axe.run(document, { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } }),
  );
  const said = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  return beyond > 0 ? [...said, `${beyond} px wider than the screen`] : said;
}

// The page that is open must show `text`.
export async function look(text) {
  await page.getByText(text).first().waitFor();
  const name = `${await page.title()} (${text})`;
  // axe is one.
  await scripts(true);
  await page.evaluate(axeSource);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 });
      wrong.push(...(await faults()).map((fault) => `${name}, ${colorScheme}, ${width} px: ${fault}`));
      looks += 1;
    }
  }
  await scripts(false);
}

export async function visit(path, text) {
  await page.goto(new URL(path, API_URL).href, { waitUntil: "load" });
  await look(text);
}

// Opens a page with its scripts, and does what they make possible. What is there then must show `text`.
export async function work(path, act, text) {
  await scripts(true);
  await page.goto(new URL(path, API_URL).href, { waitUntil: "load" });
  await act();
  await look(text);
}

// Goes to an element by the tabulator key alone, and sees that one can see where one is.
async function tabTo(selector) {
  for (let presses = 0; presses < 30; presses += 1) {
    await page.keyboard.press("Tab");
    const there = await page.evaluate((wanted) => document.activeElement.matches(wanted), selector);
    if (!there) continue;
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    if (outline === "none") wrong.push(`${await page.title()}: nothing shows that ${selector} has the focus`);
    return;
  }
  throw new Error(`${await page.title()}: the keyboard does not lead to ${selector}`);
}

// Fills in the page's form and sends it, by keyboard alone. What comes back must show `text`.
export async function send(fields, text, form = "form") {
  for (const [name, value] of Object.entries(fields)) {
    await tabTo(`${form} [name=${name}]`);
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type(value);
  }
  await tabTo(`${form} button`);
  await page.keyboard.press("Enter");
  await look(text);
}
