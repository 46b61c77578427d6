// What buyers go through, from the plan to the eSIM, in a browser. pages.sh asks for more confirmations than usual, so that the
// pay page is open before its payment counts, and has the gateway believe who a buyer is.
import assert from "node:assert/strict";
import { finish, goTo, shows, wrong } from "./browser.mjs";
import { PLAN, expire, forgetMails, json, mailed, mailedSince, pay, supplier, until } from "./states.mjs";
import { everyWay } from "./ways.mjs";

const { API_URL } = process.env;
const SLOWEST_MS = 3_000;
const CODE = /code is: (\w+)/;
const AGENT = "Trip planner";
const dollars = (text) => Number(text.match(/[\d.]+/)[0]);
const PAID = ["CONFIRMED_AWAITING_FULFILLMENT", "PROCESSING", "COMPLETED", "FAILED"];
const invoiceOf = (page) => new URL(page.url()).pathname.split("/")[2];
const record = (page) => json(`/api/agentic/order/${invoiceOf(page)}`);
const headline = (page, text) => page.locator("h1", { hasText: text }).waitFor();
const total = async (page) => dollars(await page.locator(".lines .total dd").textContent());

// The next step must not begin on the page that is being left.
async function search(page, hand, words, form) {
  await hand.fill(page, { q: words }, form);
  const loaded = page.waitForEvent("load");
  await hand.press(page, `${form} button`);
  await loaded;
}

// From the plan to the page that waits for a payment.
async function checkOut(page, hand, email) {
  await goTo(page, `/checkout?plan=${PLAN}`);
  await hand.send(page, { email });
  await headline(page, "Waiting for your payment");
}

async function withCoupon(page, hand, email) {
  await goTo(page, "/");
  await search(page, hand, "Japan 1 GB 7 days", "search form");
  await hand.press(page, `a[href="/checkout?plan=${PLAN}"]`);
  await shows(page, "What you pay");
  const before = await total(page);
  await hand.fill(page, { discount: "TRIP10" });
  await hand.press(page, "button[name=apply]");
  await shows(page, "Coupon TRIP10");
  const after = await total(page);
  assert(after < before, `${after} USD with a coupon, ${before} USD without`);
  await hand.send(page, { email, means: "USDC BASE" });
  await headline(page, "Waiting for your payment");
  const { coupon, payment } = await record(page);
  assert.equal(coupon.code, "TRIP10");
  assert.deepEqual([payment.currency, payment.network], ["USDC", "BASE"]);
  assert(payment.expectedAmount <= after && payment.expectedAmount > after - 0.01);
}

// What is done while the page stands open. With scripts it must stay the page that it is.
async function staying(page, scripts, act) {
  if (scripts) await page.evaluate(() => (globalThis.stays = true));
  await act();
  if (scripts) assert(await page.evaluate(() => globalThis.stays), "the page loaded itself anew");
}

// The eSIM comes on the page as soon as the payment counts.
async function delivered(page, hand, scripts) {
  await staying(page, scripts, async () => {
    const [counted, seen] = await Promise.all([
      until("a payment that counts", async () => PAID.includes((await record(page)).status)).then(() => Date.now()),
      headline(page, "Your eSIM is ready").then(() => Date.now()),
    ]);
    const late = seen - counted;
    if (scripts) {
      console.log(`the eSIM was seen ${late} ms after the payment counted`);
      if (late > SLOWEST_MS) wrong.push(`${page.url()}: the eSIM came after ${late} ms`);
    }
  });
  const { esim } = await record(page);
  await hand.unfold(page, "#by-hand code");
  await shows(page, esim.lpaString);
}

async function bought(page, hand, scripts, email) {
  await withCoupon(page, hand, email);
  await hand.press(page, "#test-money");
  await headline(page, scripts ? "Payment seen" : /Payment seen|Waiting/);
  await delivered(page, hand, scripts);
  await hand.press(page, "a[href*='/esim/']");
  await headline(page, "Install your eSIM");
}

// An amount without its last digits, as people type it.
async function rounded(page, hand, scripts, email) {
  await checkOut(page, hand, email);
  await shows(page, "You may round it");
  const asked = (await record(page)).payment.expectedAmount;
  await pay(invoiceOf(page), Math.ceil(asked * 100) / 100);
  await delivered(page, hand, scripts);
}

// An exchange took its fee out of the amount. Nobody can be sure whose it is; the whole amount still pays.
async function short(page, hand, scripts, email) {
  await checkOut(page, hand, email);
  const asked = (await record(page)).payment.expectedAmount;
  await staying(page, scripts, async () => {
    await pay(invoiceOf(page), Math.round(asked * 95) / 100);
    await shows(page, "A payment that nearly fits was seen");
    await hand.unfold(page, "#other-amount p");
    await shows(page, "Nothing is lost");
  });
  await pay(invoiceOf(page));
  await delivered(page, hand, scripts);
}

async function late(page, hand, scripts, email) {
  await checkOut(page, hand, email);
  expire("checkouts", invoiceOf(page));
  await headline(page, "The time to pay is over");
  await pay(invoiceOf(page));
  await delivered(page, hand, scripts);
}

// Whoever lets an agent buy: signs in, pays in, buys from the wallet, and takes the agent's token away.
async function account(page, hand, scripts, email) {
  const { token, first } = await agent(email);
  forgetMails(email);
  await goTo(page, "/account");
  await hand.send(page, { email });
  await shows(page, "A code was mailed");
  await hand.send(page, { code: await mailedSince(first, email, CODE) });
  await headline(page, "Your account");
  await hand.press(page, "a[href='/account/deposit']");
  await headline(page, "Add money");
  await hand.send(page, { amountUsd: "25", means: "USDC BASE" });
  await headline(page, "Waiting for your payment");
  await hand.press(page, "#test-money");
  await headline(page, "Payment confirmed");
  await goTo(page, "/account/buy");
  await search(page, hand, "Japan 1 GB 7 days", "form[role=search]");
  await hand.press(page, `a[href="/account/buy/${PLAN}"]`);
  await shows(page, "Left afterwards");
  await hand.send(page, {}, `form[action="/account/buy/${PLAN}"]`);
  await hand.press(page, "a[href*='/esim/']");
  await headline(page, "Install your eSIM");
  const wallet = () => fetch(`${API_URL}/api/agentic/wallet`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal((await wallet()).status, 200);
  await goTo(page, "/account/agents");
  await shows(page, AGENT);
  await hand.press(page, "main a.danger");
  await headline(page, "Revoke this token?");
  await hand.send(page, {}, "form[action$='/revoke']");
  await shows(page, "No agent has a token");
  assert.equal((await wallet()).status, 401);
}

// The supplier has refused: the buyer takes the money to a wallet, with a code that is mailed.
async function claimed(page, hand, scripts, email) {
  await checkOut(page, hand, email);
  await staying(page, scripts, async () => {
    await pay(invoiceOf(page));
    await headline(page, "the money is owed to you");
  });
  const invoice = invoiceOf(page);
  await hand.send(page, { email });
  await shows(page, "A code was mailed");
  await hand.send(page, { code: "000000" });
  await shows(page, "This code is wrong");
  await hand.send(page, { code: await mailed(email, CODE) });
  await headline(page, "USD is in your wallet");
  await goTo(page, `/pay/${invoice}`);
  await headline(page, "the money is in the wallet");
}

// Signs in for the owner of an account.
async function agent(email) {
  await json("/api/agentic/auth/request-otp", { email });
  const first = await mailed(email, CODE);
  const { token } = await json("/api/agentic/auth/verify-otp", { email, otp: first, agentName: AGENT });
  return { token, first };
}

// What is paid short shows on the pages of all who wait for about that much, so most journeys have the shop to themselves.
await Promise.all([bought, account].map(everyWay));
for (const journey of [rounded, short, late]) await everyWay(journey);
await supplier("reject");
await everyWay(claimed);
// Others go on at this gateway.
await supplier("ok");
await finish();
