// Takes pictures of the pages for people, of the sandbox at API_URL; tests/shots starts one. Usage: shots.mjs OUT [WORD] for
// every scene of scenes.mjs whose name has the word, as OUT/NAME-WIDTH-SCHEME.png; shots.mjs --docs for those in docs/images.
// Each first load is measured, too: nothing moves, less than 100 kB, nothing from another host.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { portalScenes } from "./portal.mjs";
import { scenes } from "./scenes.mjs";
import { checkOut, order, until } from "./states.mjs";

const { API_URL, CHROMIUM } = process.env;
const [out, word = ""] = process.argv.slice(2);
assert(API_URL && CHROMIUM && out);
const MOST_BYTES = 100_000;
const MOST_SHIFT = 0.01;
const WIDTHS = [390, 1280];
const patience = 60_000;

const wrong = [];
const browser = await chromium.launch({ executablePath: CHROMIUM, timeout: patience });

async function blank(viewport) {
  const context = await browser.newContext({ viewport });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  await page.addInitScript(() => {
    globalThis.shifted = 0;
    const add = (list) => list.getEntries().forEach((entry) => (globalThis.shifted += entry.hadRecentInput ? 0 : entry.value));
    new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
  });
  page.on("request", (request) => {
    const address = request.url();
    if (!address.startsWith(API_URL) && !address.startsWith("data:")) wrong.push(`${page.url()} asks for ${address}`);
  });
  return page;
}

async function measure(name, page) {
  const [bytes, shifted] = await page.evaluate(() => {
    const loads = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    return [loads.reduce((sum, load) => sum + load.transferSize, 0), globalThis.shifted];
  });
  if (bytes > MOST_BYTES) wrong.push(`${name}: ${bytes} bytes`);
  if (shifted > MOST_SHIFT) wrong.push(`${name}: what is on the page moves by ${shifted.toFixed(3)}`);
  return bytes;
}

// Leads the page to a scene.
async function go(page, { path, fields, form = "form[method=post]", button = "button:not([name])", unchecked, text }) {
  if (path) {
    await page.goto(API_URL + path, { waitUntil: "load" });
  } else {
    if (unchecked) await page.locator(form).first().evaluate((element) => (element.noValidate = true));
    for (const [name, value] of Object.entries(fields)) {
      const field = page.locator(`${form} [name=${name}]`).first();
      if (await field.getAttribute("type") === "radio") await page.locator(`${form} [value="${value}"]`).check();
      else {
        const folds = field.locator("xpath=ancestor::details");
        await folds.evaluateAll((all) => all.forEach((one) => (one.open = true)));
        await field.fill(value);
      }
    }
    await page.locator(`${form} ${button}`).first().click();
  }
  await page.getByText(text).first().waitFor({ state: "attached" });
}

async function shootScenes() {
  mkdirSync(out, { recursive: true });
  const page = await blank({ width: 390, height: 844 });
  let pictures = 0;
  let heaviest = 0;
  for await (const scene of scenes(page)) {
    await page.setViewportSize({ width: 390, height: 844 });
    await go(page, scene);
    if (!scene.name.includes(word)) continue;
    await page.evaluate(() => document.fonts.ready);
    if (scene.path) heaviest = Math.max(heaviest, await measure(scene.name, page));
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: width === 390 ? 844 : 800 });
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        await page.screenshot({ path: `${out}/${scene.name}-${width}-${colorScheme}.png`, fullPage: true });
        pictures += 1;
      }
    }
  }
  console.log(`${pictures} pictures; the heaviest first load has ${heaviest} bytes`);
}

// Those of the README: the pages of buyers are equally high, because they stand side by side.
async function shootDocs() {
  const images = fileURLToPath(new URL("../../docs/images/", import.meta.url));
  const shoot = async (name, path, width, height = 1280, prepare = async () => {}) => {
    const page = await blank({ width, height });
    await prepare(page);
    await page.goto(API_URL + path, { waitUntil: "load" });
    await page.evaluate(() => document.fonts.ready);
    await page.screenshot({ path: `${images}${name}.png` });
    await page.context().close();
  };
  const wish = { plan: "JP-5GB-30D", currency: "USDC" };
  await shoot("checkout", `/checkout?plan=${wish.plan}`, 800);
  await shoot("pay", `/pay/${await checkOut("BASE", wish)}`, 390);
  const { path } = await order(wish.plan);
  await until("an eSIM", async () => (await (await fetch(API_URL + path)).text()).includes("Install"));
  await shoot("install", `${path}?device=iphone`, 390);
  await shoot("docs", "/docs#placeOrder", 1280, 800);
  for (const [n, plan] of ["FR-3GB-15D", "JP-5GB-30D", "US-10GB-30D", "TH-5GB-30D", "IT-1GB-7D"].entries()) {
    await order(plan, { partnerRefId: `booking-${1001 + n}` });
  }
  await shoot("portal", "/portal/orders", 1280, 800, async (page) => {
    for await (const scene of portalScenes(page)) {
      await go(page, scene);
      if (scene.name === "portal-overview") return;
    }
  });
}

try {
  await (out === "--docs" ? shootDocs() : shootScenes());
} finally {
  await browser.close();
}
assert.equal(wrong.length, 0, wrong.join("\n"));
