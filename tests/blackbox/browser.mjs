// Windows of a browser on the gateway at API_URL, and how a page looks in them: light on a phone and dark at a desk, axe finds
// no violation and nothing is wider than the screen. What a page must never do is noticed as long as its window
// is open. What is wrong is kept in `wrong`. hands.mjs uses pages.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const { API_URL, CHROMIUM } = process.env;
assert(API_URL && CHROMIUM);
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// A machine that builds beside us is slow.
const patience = 60_000;
// What a first visit may load of HTML, style and scripts. The references of APIs and parts are long, and read at a desk.
const HEAVIEST = 100_000;
const weighed = ["Document", "Stylesheet", "Script"];
const isReference = (page) => /^\/(docs|sandbox)\b/.test(new URL(page.url()).pathname);
// A desk and a phone at 200 %, and a small phone.
const NARROWER = [640, 360, 320];
const LOOKS = [[390, "light"], [1280, "dark"]];

export const wrong = [];
export let looks = 0;
export const browser = await chromium.launch({ executablePath: CHROMIUM, timeout: patience });

// Notices what moves while nobody touches anything. It runs in the page, before anything else does.
function watchForShifts() {
  globalThis.shifts = [];
  const said = ({ node, previousRect: { top }, currentRect }) =>
    `${node?.nodeName} "${node?.textContent.trim().slice(0, 40)}" from ${top} to ${currentRect.top}`;
  const watcher = new PerformanceObserver((list) => {
    const by = list.getEntries().filter(({ hadRecentInput }) => !hadRecentInput);
    globalThis.shifts.push(...by.map(({ value, sources }) => `${value}: ${sources.map(said)}`));
  });
  watcher.observe({ type: "layout-shift", buffered: true });
}

// A page asks nobody but this gateway, its policy is strict and obeyed, its scripts do not fail, and it opens no dialog.
function watch(page) {
  const complain = (what) => wrong.push(`${page.url()}: ${what}`);
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== "data:" && origin !== API_URL) complain(`asks ${request.url()}`);
  });
  page.on("response", (response) => {
    const kind = response.request().resourceType();
    const policy = response.headers()["content-security-policy"] ?? "";
    const isPage = kind === "document" && (response.status() < 300 || response.status() >= 400);
    if (isPage && (!policy.startsWith("default-src 'none'") || policy.includes("unsafe-"))) {
      wrong.push(`${response.url()}: its policy is: ${policy}`);
    }
    if (["stylesheet", "script", "image"].includes(kind) && !response.ok()) {
      complain(`${response.status()} for ${response.url()}`);
    }
  });
  page.on("console", (message) => {
    // A page that says that something went wrong has the status for it.
    const isStatus = message.text().startsWith("Failed to load resource: the server responded with a status of");
    if (["error", "warning"].includes(message.type()) && !isStatus) complain(`the console says: ${message.text()}`);
  });
  page.on("pageerror", (error) => complain(`a script failed: ${error}`));
  page.on("dialog", (dialog) => {
    complain(`a dialog: ${dialog.message()}`);
    return dialog.dismiss();
  });
}

// Keeps what a page loads small. Nothing is taken from the cache, so every visit is a first one.
async function weigh(page) {
  const session = await page.context().newCDPSession(page);
  const kinds = new Map();
  let bytes = 0;
  session.on("Network.requestWillBeSent", ({ requestId, loaderId, type }) => {
    kinds.set(requestId, type);
    if (requestId === loaderId) bytes = 0;
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (!weighed.includes(kinds.get(requestId))) return;
    bytes += encodedDataLength;
    if (bytes > HEAVIEST && !isReference(page)) wrong.push(`${page.url()}: loads ${bytes} bytes`);
  });
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
}

// A window of its own visitor, with or without scripts.
export async function open({ scripts = true, ...how } = {}) {
  const context = await browser.newContext({ javaScriptEnabled: scripts, ...how });
  context.setDefaultTimeout(patience);
  await context.addInitScript(watchForShifts);
  const page = await context.newPage();
  watch(page);
  await weigh(page);
  return page;
}

export const goTo = (page, path) => page.goto(new URL(path, API_URL).href, { waitUntil: "load" });
export const shows = (page, text) => page.getByText(text).filter({ visible: true }).first().waitFor();

// What a scheme and a width make of the page.
async function violations(page) {
  const found = await page.evaluate(() =>
    globalThis.axe.run(document, { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } }),
  );
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}

async function mustFit(page, name, width) {
  await page.setViewportSize({ width, height: 800 });
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (beyond > 0) wrong.push(`${name}: ${beyond} px wider than a screen of ${width} px`);
}

// The page that is open must show `text`. Its window is one of somebody who asked for less motion.
export async function look(page, text) {
  await shows(page, text);
  const name = `${await page.title()} (${text})`;
  await page.evaluate(axeSource);
  const moving = await page.evaluate(() => document.getAnimations().filter(({ playState }) => playState === "running").length);
  if (moving > 0) wrong.push(`${name}: moves`);
  for (const width of isReference(page) ? [] : NARROWER) await mustFit(page, name, width);
  for (const [width, colorScheme] of LOOKS) {
    await mustFit(page, name, width);
    await page.emulateMedia({ colorScheme });
    wrong.push(...(await violations(page)).map((fault) => `${name}, ${colorScheme}, ${width} px: ${fault}`));
    looks += 1;
  }
}

export async function visit(page, path, text) {
  await goTo(page, path);
  await look(page, text);
}

// The end of a run: what was wrong, if anything was.
export async function finish() {
  await browser.close();
  assert.equal(wrong.length, 0, `\n${wrong.join("\n")}`);
}
