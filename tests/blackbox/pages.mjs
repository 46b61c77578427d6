// Every page for people, in every state that a sandbox can bring about (scenes.mjs), seen by browser.mjs. Forms are filled
// in by keyboard.
import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { finish, goTo, look, looks, open, visit, wrong } from "./browser.mjs";
import { keyboard } from "./hands.mjs";
import { scenes } from "./scenes.mjs";
import { PLAN, checkOut, deposit, json, order } from "./states.mjs";

const { API_KEY, API_SECRET } = process.env;
const LARGEST_SCRIPT = 3_000;
const scripts = new URL("../../assets/js/", import.meta.url);
const calm = () => open({ reducedMotion: "reduce" });

async function everyScene() {
  const page = await calm();
  for await (const { path, text, fields, form = "form[method=post]", button, unchecked } of scenes(page)) {
    if (path) await goTo(page, path);
    else {
      // A browser would hold it back.
      if (unchecked) await page.locator(form).evaluate((element) => (element.noValidate = true));
      await keyboard.send(page, fields, form, button);
    }
    await look(page, text);
  }
}

async function helpPages() {
  const page = await calm();
  await visit(page, "/help", "Help");
  const links = await page.locator("main a[href^='/help/']").evaluateAll((all) => all.map((link) => [link.href, link.textContent]));
  assert(links.length >= 9, "few help pages");
  for (const [href, title] of links) await visit(page, href, title);
}

// What is left to be looked at of the references after they were used.
const used = [];

const REFERENCES = ["/docs", "/docs/agentic", "/docs/consumer", "/docs/sandbox"];

// axe takes its time for pages that are so long.
async function referencePages() {
  const page = await calm();
  for (const path of REFERENCES) await visit(page, path, "What all operations answer");
  for (const [open, text] of used) await look(open, text);
}

async function searchedReference() {
  const page = await calm();
  await goTo(page, "/docs");
  const entries = page.locator(".contents li:visible");
  const found = async (words) => {
    await page.getByLabel("Search the documentation").fill(words);
    return entries.allTextContents();
  };
  assert.deepEqual(await found("GET topup-plans"), ["Top-up plans"]);
  assert((await found("refund")).includes("Cancel an order"));
  assert((await found("not_cancel")).includes("NOT_CANCELLABLE"));
  assert.deepEqual(await found("no such thing"), []);
  used.push([page, "Nothing found."]);
}

// What the scripts of the documentation do beside search: try an operation. Credentials go to the gateway and are kept nowhere.
async function triedOperations() {
  const page = await calm();
  const attempt = async (page, id, fields, text) => {
    const form = page.locator(`#${id} form`);
    if (!(await form.isVisible())) await page.locator(`#${id} summary`, { hasText: "Try it" }).click();
    for (const [label, value] of Object.entries(fields)) await form.getByLabel(label, { exact: true }).fill(value);
    await form.getByRole("button").click();
    await form.locator("pre", { hasText: text }).waitFor();
  };
  const key = page.getByLabel("X-B2B-Key", { exact: true });
  const secret = page.getByLabel("X-B2B-Secret", { exact: true });
  await goTo(page, "/docs");
  await attempt(page, "getBalance", {}, "UNAUTHENTICATED");
  await key.fill(API_KEY);
  await secret.fill(API_SECRET);
  await attempt(page, "getBalance", {}, '"balanceUsd"');
  await attempt(page, "listPlans", { country: "JP", limit: "1" }, '"packageCode": "');
  await attempt(page, "placeOrder", { Body: '{"packageCode": "JP-1GB-7D", "partnerRefId": "try-1"}' }, '"orderNo"');
  await attempt(page, "placeOrder", {}, "idempotent-replayed: true");
  await attempt(page, "getOrder", { id: "ord_../../balance" }, "404");
  const kept = await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie, location.search]);
  assert.deepEqual(kept, [0, 0, "", ""]);
  assert.deepEqual(await page.context().cookies(), []);
  used.push([page, "Idempotent-Replayed"]);
  const later = await page.context().newPage();
  await goTo(later, "/docs");
  for (const label of ["X-B2B-Key", "X-B2B-Secret"]) assert.equal(await later.getByLabel(label, { exact: true }).inputValue(), "");
  await later.close();
  const sandbox = await calm();
  await goTo(sandbox, "/docs/sandbox");
  await attempt(sandbox, "getSupplier", {}, '"mode": "ok"');
  used.push([sandbox, '"mode": "ok"']);
}

// Nothing that is there jumps when the rest arrives: the scripts, or the server's first news.
async function restingPages() {
  const made = await order(PLAN);
  const paths = [`/checkout?plan=${PLAN}`, `/pay/${await checkOut()}`, `/pay/${await deposit("TRON", "USDT")}`, made.path];
  await Promise.all(
    [390, 1280].map(async (width) => {
      for (const path of paths) {
        const page = await open({ viewport: { width, height: 800 } });
        await goTo(page, path);
        // A countdown that has begun to tick shows that scripts have run; two frames show what they made of the page.
        const clock = page.locator("time[data-until]");
        if (await clock.count()) {
          const first = await clock.textContent();
          await page.waitForFunction((before) => document.querySelector("time[data-until]").textContent !== before, first);
        }
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
        const shifts = await page.evaluate(() => globalThis.shifts);
        if (shifts.length > 0) wrong.push(`${path}, ${width} px: ${shifts.join("\n")}`);
        await page.context().close();
      }
    }),
  );
}

// The pay page as a screen reader reads it out: its headings and what it speaks up for, in their order.
async function readAloud() {
  const page = await open();
  const invoice = await checkOut();
  const { orderRef } = await json(`/api/agentic/order/${invoice}`);
  await goTo(page, `/pay/${invoice}`);
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  const byId = new Map(nodes.map((node) => [node.nodeId, node]));
  const said = [];
  const read = ({ role, name, ignored, properties = [], childIds = [] }) => {
    const has = (wanted) => properties.find((property) => property.name === wanted)?.value.value;
    if (!ignored && role.value === "heading") said.push(`h${has("level")} ${name.value}`);
    if (!ignored && ["status", "alert", "log"].includes(role.value)) said.push(`${role.value}, ${has("live")}`);
    for (const id of childIds) read(byId.get(id));
  };
  read(nodes[0]);
  const last = "status, polite"; // says that something was copied
  assert.deepEqual(said, ["status, polite", "h1 Waiting for your payment", "h2 How to pay", `h2 Order ${orderRef}`, last]);
}

const sizes = readdirSync(scripts).map((name) => [name, statSync(new URL(name, scripts)).size]);
for (const [name, size] of sizes) if (size > LARGEST_SCRIPT) wrong.push(`${name} has ${size} bytes`);

const took = async (part) => {
  const since = Date.now();
  await part();
  console.log(`${part.name}: ${Math.round((Date.now() - since) / 1000)} s`);
};
// What moves nothing goes beside the scenes.
const steady = async () => {
  for (const part of [restingPages, readAloud, helpPages, referencePages]) await took(part);
};
for (const part of [searchedReference, triedOperations]) await took(part);
await Promise.all([took(everyScene), steady()]);
console.log(`${looks} looks`);
await finish();
