// Texts that would be more than texts if a page let them: in the brand, plans, coupons, names, references, addresses and queries.
// Pages show them as they are. A script that ran, an image that was asked for or a rule of the policy that was broken is noticed
// by browser.mjs. pages.sh sets the brand and the contact.
import assert from "node:assert/strict";
import { finish, goTo, open, shows, wrong } from "./browser.mjs";
import { pointer } from "./hands.mjs";
import { PLAN, change, checkOut, command, forgetMails, json, mailed, mailedSince, order, pay, until } from "./states.mjs";
import { form, headline, joined, receiver } from "./team.mjs";

const { API_URL } = process.env;
const HOSTILE = `'"><img src=x onerror=alert(1)>`;
const query = encodeURIComponent(HOSTILE);
const page = await open();

// Nothing of it became a part of the page.
async function isText(window = page) {
  const made = await window.locator('[src="x"], [onerror], main script, style, [style]').count();
  if (made > 0) wrong.push(`${window.url()}: ${made} elements were made of a text`);
}

async function visit(path, text, window = page) {
  await goTo(window, path);
  if (text) await shows(window, text);
  await shows(window, HOSTILE);
  await isText(window);
}

// A supplier's list would bring it. The simulator has its own, so it is written where the list is kept.
async function hostilePlan() {
  change("UPDATE plans SET name = ?, operator = ? WHERE code = ?", `Japan ${HOSTILE}`, HOSTILE, PLAN);
  change("UPDATE versions SET n = n + 1 WHERE name = 'catalog'");
  await until("the plan", async () => (await (await fetch(`${API_URL}/checkout?plan=${PLAN}`)).text()).includes("onerror"));
}

async function brandEverywhere() {
  for (const path of ["/help", "/help/devices/compatibility", "/docs", "/nowhere", "/topup/nothing", "/esim/nothing"]) await visit(path);
}

// What is typed into an address.
async function queries() {
  for (const path of [
    `/?q=${query}`,
    `/nowhere/${query}?${query}=${query}`,
    `/help?q=${query}`,
    `/help/${query}`,
    `/help/devices?q=${query}`,
    `/checkout?plan=${query}&discount=${query}`,
    `/pay/${query}`,
    `/esim/${query}?device=${query}`,
    `/topup/${query}`,
    `/not-me/${query}`,
    `/revoke-token/${query}`,
  ]) {
    await visit(path);
  }
}

// What is typed into a form comes back in it, and nowhere else.
async function forms() {
  await visit(`/checkout?plan=${PLAN}&discount=HOSTILE&email=${query}`, `Japan ${HOSTILE}`);
  await shows(page, "Coupon HOSTILE");
  assert.equal(await page.locator("#email").inputValue(), HOSTILE);
  for (const [field, value] of [["email", HOSTILE], ["discount", HOSTILE], ["means", HOSTILE]]) {
    const body = { plan: PLAN, email: "ann@example.com", once: HOSTILE, [field]: value };
    await page.evaluate((fields) => {
      const form = document.createElement("form");
      form.method = "post";
      form.action = "/checkout";
      for (const [name, text] of Object.entries(fields)) {
        const input = document.createElement("input");
        [input.name, input.value] = [name, text];
        form.append(input);
      }
      document.body.append(form);
      form.requestSubmit();
    }, body);
    await shows(page, "Please check");
    await isText();
  }
}

// The plan's name goes with the purchase to its end.
async function purchase() {
  const invoice = await checkOut("BASE", { discount: "HOSTILE" });
  await visit(`/pay/${invoice}`, "Waiting for your payment");
  await pay(invoice);
  await shows(page, "Your eSIM is ready");
  await isText();
  await pointer.press(page, "a[href*='/esim/']");
  await shows(page, "Install your eSIM");
  await isText();
  const made = await order(PLAN, { partnerRefId: HOSTILE });
  await visit(made.path, "Install your eSIM");
}

const EVE = "eve@example.com";
const CODE = /code is: (\w+)/;

async function agentName() {
  const email = EVE;
  await json("/api/agentic/auth/request-otp", { email });
  const otp = await mailed(email, CODE);
  await json("/api/agentic/auth/verify-otp", { email, otp, agentName: HOSTILE });
  const { pathname } = new URL(await mailed(email, /(http\S+\/revoke-token\/\S+)/));
  await visit(pathname, "Revoke this token?");
}

// After agentName: the account of who was named so.
async function account() {
  const first = await mailed(EVE, CODE);
  forgetMails(EVE);
  await visit("/account");
  await pointer.send(page, { email: EVE });
  await shows(page, "Enter your code");
  await pointer.send(page, { code: await mailedSince(first, EVE, CODE) });
  await shows(page, "Your account");
  await visit("/account/agents", HOSTILE);
  await pointer.press(page, "main a[href^='/account/agents/tok_']");
  await shows(page, HOSTILE);
  await isText();
  await visit(`/account/buy?q=${query}`);
  await visit(`/account/buy/${PLAN}`, `Japan ${HOSTILE}`);
  await pointer.fill(page, { discount: HOSTILE });
  await pointer.press(page, "[name=apply]");
  await shows(page, "discount code is unknown");
  await isText();
  for (const path of ["/account/deposit", "/account/orders", "/account/wallet", "/account/settings"]) {
    await visit(`${path}?page=${query}&amount=${query}&done=${query}`);
  }
}

// A company, its references, keys and webhooks, its browser, and what its receiver answers.
async function portal() {
  const email = "mallory@example.com";
  command("partner", "create", "--name", `Trips ${HOSTILE}`, "--email", email, "--credit", "50");
  const window = await open({ userAgent: HOSTILE });
  await joined(window, pointer, email);
  const fill = async (path, fields, text, to = form(path), button) => {
    await goTo(window, path);
    await pointer.send(window, fields, to, button);
    await shows(window, text);
    await isText(window);
  };
  await fill(`/portal/orders/new?plan=${PLAN}`, { reference: HOSTILE }, "The order was placed", form("/portal/orders/new"));
  const bought = new URL(window.url()).pathname;
  await fill("/portal/orders/batch", { orders: `NOPE, ${HOSTILE}` }, "Nothing was bought", undefined, "[value=look]");
  await fill("/portal/orders/batch", { orders: `2 x ${PLAN}, ${HOSTILE}` }, "Nothing is bought yet", undefined, "[value=look]");
  await pointer.press(window, `${form("/portal/orders/batch")} [value=place]`);
  await headline(window, "All 2 eSIMs are delivered");
  await fill("/portal/keys/new", { name: HOSTILE }, "Keep the secret now");
  const heard = await receiver(HOSTILE);
  await fill("/portal/webhooks/new", { url: heard.url, description: HOSTILE }, "this once");
  await pointer.press(window, "main a[href^='/portal/webhooks/whk_']");
  await headline(window, "Webhook");
  const webhook = new URL(window.url()).pathname;
  await fill(webhook, {}, HOSTILE, form(`${webhook}/test`));
  heard.close();
  const at = (path, text = HOSTILE) => visit(path, text, window);
  for (const path of [bought, `${bought}/data`, webhook]) await at(path);
  for (const path of ["", "/orders", "/plans", "/deposits", "/statement", "/keys", "/webhooks", "/logs", "/team", "/team/log", "/settings"]) {
    await at(`/portal${path}?done=${query}&before=${query}&means=${query}`);
  }
  for (const path of ["search?q=", "orders?q=", "orders?from=", "orders?state=", "plans?q=", "plans?country=", "statement?from=", "logs?code=", "logs?key="]) {
    await at(`/portal/${path}${query}`);
  }
  for (const path of ["orders/", "orders/batches/", "deposits/", "statement/", "keys/", "webhooks/", "team/", "join/"]) {
    await at(`/portal/${path}${query}`);
  }
  await window.context().close();
}

for (const part of [hostilePlan, brandEverywhere, queries, forms, purchase, agentName, account, portal]) await part();
await finish();
