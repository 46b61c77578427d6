// What the team of a new partner goes through at the portal: invited, signed in with a second factor, it makes a key, pays in,
// orders, reads its statement, replaces the key, takes care of a webhook that fails, and invites somebody who may only look.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { finish, goTo, shows } from "./browser.mjs";
import { next, shown } from "./portal.mjs";
import { PLAN, command, forgetMails, json, mailedSince, until } from "./states.mjs";
import { CODE, form, headline, joined, receiver } from "./team.mjs";
import { everyWay } from "./ways.mjs";

const { API_URL } = process.env;
const SECTIONS = ["", "/orders", "/plans", "/deposits", "/statement", "/keys", "/webhooks", "/logs", "/team", "/settings"];
const COLUMNS = ["line", "type", "amountUsd", "balanceUsd", "orderId", "invoiceId", "note", "createdAt"];
// What somebody may do who may only look.
const OWN_FORMS = ["/portal/settings/", "/portal/sessions/", "/portal/sign-out", "/portal/switch"];

const here = (page) => new URL(page.url()).pathname;

// A page that waits for something looks again by itself; without scripts, its reader does.
async function comes(page, scripts, text) {
  if (scripts) return headline(page, text);
  await until(text, async () => {
    if ((await page.locator("h1").innerText()).includes(text)) return true;
    await page.reload();
  });
}

// Turns on a second factor, and signs in anew with it.
async function secured(page, hand, email, first) {
  const settings = "/portal/settings/second-factor";
  await goTo(page, settings);
  await hand.send(page, {}, form(`${settings}/begin`));
  await headline(page, "Set up the second factor");
  const key = await page.locator("[name=secret]").inputValue();
  await hand.send(page, { code: shown(key) }, form(`${settings}/confirm`));
  await headline(page, "The second factor is on");
  await hand.press(page, "main a[href='/portal'].primary");
  await headline(page, "Overview");
  forgetMails(`PARTNERS:${email}`);
  await hand.send(page, {}, form("/portal/sign-out"));
  await headline(page, "Partner portal");
  await hand.send(page, { email }, form("/portal/code"));
  await headline(page, "Enter your code");
  await hand.send(page, { code: await mailedSince(first, email, CODE) }, form("/portal/sign-in"));
  await headline(page, "Second factor");
  await hand.send(page, { code: next(key) }, form("/portal/second-factor"));
  await headline(page, "Overview");
}

// The call that a page shows is made as it stands there, and shows whose key it is.
async function issued(page) {
  const curl = await page.locator("pre").textContent();
  const { balanceUsd } = JSON.parse(execFileSync("sh", ["-c", curl]));
  const [id, secret] = ["Key", "Secret"].map((name) => curl.match(`X-B2B-${name}: ([^']+)`)[1]);
  return { id, balanceUsd, headers: { "X-B2B-Key": id, "X-B2B-Secret": secret }, secret };
}

async function key(page, hand) {
  await goTo(page, "/portal/keys");
  await hand.press(page, "a[href='/portal/keys/new']");
  await headline(page, "Make an API key");
  await hand.send(page, { name: "Shop" }, form("/portal/keys/new"));
  await headline(page, "The key is ready");
  const made = await issued(page);
  assert.equal(made.balanceUsd, 0);
  await hand.press(page, "main a[href='/portal/keys'].button");
  await headline(page, "API keys");
  const told = await page.content();
  assert(told.includes(made.id) && !told.includes(made.secret));
  return made;
}

async function paidIn(page, hand) {
  await goTo(page, "/portal/deposits");
  await hand.send(page, { amountUsd: "60", means: "USDC BASE" }, form("/portal/deposits"));
  await headline(page, "Waiting for your payment");
  await hand.press(page, "#test-money");
  await headline(page, "Payment confirmed");
  await hand.press(page, "main a[href='/portal/deposits']");
  await headline(page, "Deposits");
  await goTo(page, "/portal");
  await shows(page, "60.00 USD");
}

async function ordered(page, hand, scripts) {
  await goTo(page, "/portal/orders/new");
  await hand.send(page, { plan: PLAN }, "form[method=get][action='/portal/orders/new']");
  await shows(page, "Left afterwards");
  await hand.send(page, { reference: "booking-1" }, form("/portal/orders/new"));
  await comes(page, scripts, "Delivered");
  const one = here(page);
  const batch = form("/portal/orders/batch");
  await goTo(page, "/portal/orders/batch");
  await hand.send(page, { orders: `10 x ${PLAN}, trip` }, batch, "[value=look]");
  await shows(page, "Nothing is bought yet");
  await hand.press(page, `${batch} [value=place]`);
  await comes(page, scripts, "All 10 eSIMs are delivered");
  await hand.press(page, "td a[href^='/portal/orders/ord_']");
  await page.locator("a.danger[href$='/cancel']").waitFor();
  return { one, another: here(page) };
}

async function toppedUp(page, hand, path) {
  await goTo(page, path);
  await hand.press(page, `a[href="${path}/data"]`);
  await headline(page, "Top up");
  await hand.send(page, {}, form(`${path}/data`));
  await shows(page, "The data was bought");
}

async function cancelled(page, hand, path) {
  await goTo(page, path);
  await hand.press(page, `a[href="${path}/cancel"]`);
  await shows(page, "The supplier decides");
  await hand.send(page, {}, form(`${path}/cancel`));
  await shows(page, "The eSIM was given back");
}

function cell(value) {
  const text = typeof value === "string" && /^[=+@-]/.test(value) ? `'${value}` : String(value ?? "");
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// The file that is downloaded says what the API says.
async function statement(page, hand, scripts, headers) {
  await goTo(page, "/portal/statement");
  const [download] = await Promise.all([page.waitForEvent("download"), hand.press(page, "a[href^='/portal/statement.csv']")]);
  assert.equal(download.suggestedFilename(), "statement.csv");
  if (scripts) await shows(page, "14 lines were downloaded");
  const lines = readFileSync(await download.path(), "utf8").trim().split(/\r?\n/);
  const { transactions, nextAfter } = await json("/api/b2b/v1/balance/transactions?limit=100", undefined, headers);
  assert.equal(nextAfter, null);
  // A deposit, eleven orders, a top-up, and what was given back.
  assert.equal(transactions.length, 14);
  const expected = transactions.map((line) => COLUMNS.map((name) => cell(line[name])).join(","));
  assert.deepEqual(lines.slice(1), expected);
  assert.equal(lines[0].replace(/^\uFEFF/, ""), COLUMNS.join(","));
}

const status = async (headers) => (await fetch(`${API_URL}/api/b2b/v1/balance`, { headers })).status;

async function replaced(page, hand, old) {
  const [rotate, revoke] = ["rotate", "revoke"].map((deed) => `/portal/keys/${old.id}/${deed}`);
  await goTo(page, "/portal/keys");
  await hand.press(page, `a[href="${rotate}"]`);
  await headline(page, "Replace this key");
  await hand.send(page, {}, form(rotate));
  await headline(page, "The key is ready");
  const made = await issued(page);
  assert.deepEqual([await status(old.headers), await status(made.headers)], [200, 200]);
  await goTo(page, "/portal/keys");
  await hand.press(page, `a[href="${revoke}"]`);
  await headline(page, "Revoke this key?");
  await hand.send(page, {}, form(revoke));
  await shows(page, "The key has ended");
  await until("the old key's end", async () => (await status(old.headers)) === 401);
  assert.equal(await status(made.headers), 200);
  return made;
}

async function webhook(page, hand) {
  const heard = await receiver("out of order");
  await goTo(page, "/portal/webhooks/new");
  await hand.send(page, { url: heard.url }, form("/portal/webhooks/new"));
  await headline(page, "The webhook is added");
  await hand.press(page, "main a[href^='/portal/webhooks/whk_']");
  await page.locator("#deliveries").waitFor();
  const path = here(page);
  const tries = page.locator(`a[href^="${path}/deliveries/"]`);
  await until("a try", async () => {
    await page.reload();
    return (await tries.count()) > 0;
  });
  await hand.press(page, `a[href^="${path}/deliveries/"]`);
  await shows(page, "Status 500");
  await shows(page, "out of order");
  const refused = here(page);
  heard.answer = 204;
  await hand.send(page, {}, form(`${refused}/redeliver`));
  await shows(page, "Status 204");
  assert.notEqual(here(page), refused);
  assert.equal(new Set(heard.ids).size, 1, `${heard.ids}`);
  heard.close();
  return path;
}

// Every change of somebody else's things, sent as a form would be.
const changes = (order, key, hook, member) => [
  ["/portal/orders/new", { choice: `${PLAN} 1000`, once: "0".repeat(32) }],
  ["/portal/orders/batch", { orders: PLAN, prices: `1000 ${PLAN}`, once: "0".repeat(32), step: "place" }],
  ...["/data", "/cancel", "/keep", "/send"].map((deed) => [order + deed, { email: "kid@example.com" }]),
  ["/portal/deposits", { amountUsd: "60", means: "USDC BASE" }],
  ["/portal/deposits/address", { means: "USDC BASE" }],
  ["/portal/keys/new", { name: "Mine" }],
  [`/portal/keys/${key.id}/rotate`, { overlap: "none" }],
  [`/portal/keys/${key.id}/revoke`, {}],
  ["/portal/webhooks/new", { url: "https://hooks.example/in", events: "all" }],
  ...["", "/test", "/enable", "/disable", "/replay", "/rotate", "/delete"].map((deed) => [hook + deed, {}]),
  ["/portal/team", { email: "mine@example.com", role: "OWNER" }],
  [member, { role: "OWNER" }],
  [`${member}/remove`, {}],
  ["/portal/settings/company", { name: "Mine" }],
  ["/portal/settings/warning", { threshold: "1" }],
];

async function looksOnly(page, hand, email, another, order, key, hook) {
  await goTo(page, "/portal/team");
  const viewer = `viewer-${email}`;
  await hand.send(page, { email: viewer, role: "VIEWER" }, form("/portal/team"));
  await shows(page, "The invitation is on its way");
  const member = await page.locator("a[href^='/portal/team/mbr_']").first().getAttribute("href");
  const before = await json("/api/b2b/v1/balance", undefined, key.headers);
  const eye = await another();
  await joined(eye, hand, viewer);
  for (const path of [...SECTIONS.map((section) => `/portal${section}`), order, hook]) {
    await goTo(eye, path);
    const forms = await eye.locator("form[method=post]").evaluateAll((all) => all.map((one) => one.getAttribute("action")));
    const others = forms.filter((action) => !OWN_FORMS.some((own) => action.startsWith(own)));
    assert.deepEqual(others, [], `a viewer is offered something on ${path}`);
  }
  const token = await eye.locator(`${form("/portal/sign-out")} [name=form]`).inputValue();
  const headers = { origin: API_URL };
  for (const [path, fields] of changes(order, key, hook, member)) {
    const answer = await eye.request.post(API_URL + path, { form: { ...fields, form: token }, headers, maxRedirects: 0 });
    assert.equal(answer.status(), 403, `${path} by a viewer`);
  }
  assert.deepEqual(await json("/api/b2b/v1/balance", undefined, key.headers), before);
  assert.equal(await status(key.headers), 200);
}

async function partner(page, hand, scripts, email, another) {
  command("partner", "create", "--name", "Reisebüro am Marktplatz", "--email", email);
  await secured(page, hand, email, await joined(page, hand, email));
  const first = await key(page, hand);
  await paidIn(page, hand);
  const orders = await ordered(page, hand, scripts);
  await toppedUp(page, hand, orders.one);
  await cancelled(page, hand, orders.another);
  await statement(page, hand, scripts, first.headers);
  const second = await replaced(page, hand, first);
  const hook = await webhook(page, hand);
  await looksOnly(page, hand, email, another, orders.one, second, hook);
}

await everyWay(partner);
await finish();
