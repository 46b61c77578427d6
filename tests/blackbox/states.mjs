// Brings about the states of the pages for people, in a sandbox at API_URL whose folder is GATEWAY_DIR and which has the
// coupon TRIP10. A scene is a state that holds until the next one is asked for: `{ name, path, text }` is a page that shows
// the text, `{ name, fields, text, form, button }` a form on the page that is open, to be filled in and sent. pages.mjs has every
// scene examined, shots.mjs takes its picture.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";

const { API_URL, API_KEY, API_SECRET, GATEWAY_DIR, SIMGATE } = process.env;
assert(API_URL && API_KEY && API_SECRET && GATEWAY_DIR);
const partner = { "X-B2B-Key": API_KEY, "X-B2B-Secret": API_SECRET };
export const PLAN = "JP-1GB-7D";
const LONG_EMAIL = "maximiliane.von.der.schulenburg-wolfsburg@reisebuero-am-marktplatz.example.com";
const CLAIMANT = "mum@example.com";
const CODE = /code is: (\w+)/;
const toBuy = 'form[action="/checkout"]';
const byWallet = 'form[action="/checkout/code"]';

export async function json(path, body, headers = {}) {
  const init = body && { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(API_URL + path, { ...init, headers: { "content-type": "application/json", ...headers } });
  const told = await answer.json();
  assert(answer.ok, `${path}: ${answer.status} ${JSON.stringify(told)}`);
  return told;
}

export async function until(what, met) {
  for (let tries = 0; tries < 600; tries += 1) {
    const found = await met();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`waited for: ${what}`);
}

export const supplier = (mode) => json("/sandbox/supplier", { mode, delayMs: 3_600_000 });
const chain = (network, order) => json("/sandbox/chain", { network, ...order });
export const pay = (invoiceId, amountUsd) => json("/sandbox/pay", { invoiceId, ...(amountUsd && { amountUsd }) });
const html = async (path) => (await fetch(API_URL + path, { headers: { accept: "text/html" } })).text();
const opens = (path, text) => until(`${text} on ${path}`, async () => (await html(path)).includes(text));
const shows = (invoice, text) => opens(`/pay/${invoice}`, text);
const usage = (iccid, told) => json("/sandbox/usage", { iccid, ...told });

// A block that was shown is replaced, and what was paid in it is gone.
async function vanish(network, invoice, text) {
  await chain(network, { mode: "ok", reorg: 100_000 });
  await shows(invoice, text);
}

// Pays, and stops the network when the payment was seen: its confirmations stay as they are.
async function seen(network, invoice) {
  await pay(invoice);
  await shows(invoice, "Payment seen");
  await chain(network, { mode: "down" });
}

export async function deposit(network, currency = "USDC") {
  return (await json("/api/b2b/v1/balance/deposit", { amountUsd: 250, currency, network }, partner)).invoiceId;
}

export async function checkOut(network = "POLYGON", wish = {}) {
  const body = new URLSearchParams({ plan: PLAN, email: "kid@example.com", network, ...wish });
  const answer = await fetch(`${API_URL}/checkout`, { method: "POST", body });
  return (await answer.text()).match(/inv_\w+/)[0];
}

// Orders as a partner does: the path of the eSIM's page, and its number once it is delivered.
export async function order(packageCode = PLAN, wish = {}) {
  const { order: made } = await json("/api/b2b/v1/orders", { packageCode, ...wish }, partner);
  return { id: made.id, path: new URL(made.installUrl).pathname };
}

async function delivered(packageCode = PLAN) {
  const made = await order(packageCode);
  const found = async () => (await json(`/api/b2b/v1/orders/${made.id}`, undefined, partner)).order;
  const whole = await until("an eSIM", async () => {
    const now = await found();
    return now.status === "FULFILLED" ? now : undefined;
  });
  return { ...made, iccid: whole.iccid };
}

// An operator's command beside the gateway.
export const command = (...args) => execFileSync(SIMGATE, args, { cwd: GATEWAY_DIR });

// Nobody has the time to wait until something is over.
export function change(statement, ...values) {
  const program = `import sqlite3, sys
with sqlite3.connect("simgate.db", timeout=60) as database:
    database.execute(sys.argv[1], sys.argv[2:])`;
  execFileSync("python3", ["-c", program, statement, ...values], { cwd: GATEWAY_DIR });
}
// An address gets one mail a minute.
export const forgetMails = (email) => change("DELETE FROM login_attempts WHERE email = ?", email);
export const expire = (table, id) => change(`UPDATE ${table} SET expires_at = created_at WHERE id = ?`, id);

// The first match in the mails to an address, newest first.
export async function mailed(email, pattern) {
  const read = async () => {
    const { emails } = await json(`/sandbox/outbox?email=${encodeURIComponent(email)}`);
    return emails.map((mail) => mail.text.match(pattern)).find(Boolean);
  };
  return (await until(`a mail to ${email}`, read))[1];
}

// The same, once it is another than the first.
export async function mailedSince(first, email, pattern) {
  return until("another mail", async () => {
    const newest = await mailed(email, pattern);
    return newest === first ? undefined : newest;
  });
}

export async function tool(name, args) {
  const params = { name, arguments: args };
  const { result } = await json("/api/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params });
  return result.structuredContent;
}

export async function* checkoutScenes() {
  const page = `/checkout?plan=${PLAN}`;
  yield { name: "checkout", path: page, text: "Your details" };
  yield { name: "checkout-wrong-email", fields: { email: "kid@nowhere" }, text: "must look like name@example.com", form: toBuy };
  const unknown = { email: "kid@example.com", discount: "NOPE" };
  yield { name: "checkout-unknown-coupon", path: `${page}&discount=NOPE`, text: "discount code is unknown" };
  yield { name: "checkout-unknown-coupon-sent", fields: unknown, text: "discount code is unknown", form: toBuy };
  yield { name: "checkout-coupon", path: `${page}&discount=TRIP10`, text: "Coupon TRIP10" };
  const { plans } = await json("/api/products/search?country=global&limit=1");
  yield { name: "checkout-world", path: `/checkout?plan=${plans[0].packageCode}`, text: "more" };
  yield { name: "checkout-two-countries", path: "/checkout?plan=JAPAN-KOREA-1GB-7D", text: "Mobile networks by country" };
  yield { name: "checkout-no-plan", path: "/checkout?plan=NOPE", text: "This plan is not on sale" };
}

export async function* payScenes() {
  yield { name: "pay-waiting", path: `/pay/${await checkOut("BASE", { currency: "USDC" })}`, text: "Waiting for your payment" };
  const long = { plan: "JAPAN-KOREA-10GB-30D", email: LONG_EMAIL, discount: "TRIP10" };
  yield { name: "pay-waiting-tron-coupon", path: `/pay/${await checkOut("TRON", long)}`, text: "Waiting for your payment" };
  const [old, late] = [await checkOut(), await checkOut("ARBITRUM")];
  expire("checkouts", old);
  await shows(old, "The time to pay is over");
  yield { name: "pay-expired", path: `/pay/${old}`, text: "Check out again" };
  expire("checkouts", late);
  await shows(late, "The time to pay is over");
  await seen("ARBITRUM", late);
  yield { name: "pay-late", path: `/pay/${late}`, text: "Payment seen" };
  await chain("ARBITRUM", { mode: "ok" });
  const invoice = await checkOut("ARBITRUM");
  await seen("ARBITRUM", invoice);
  yield { name: "pay-seen", path: `/pay/${invoice}`, text: "Payment seen" };
  await vanish("ARBITRUM", invoice, "dropped by the network");
  yield { name: "pay-missing", path: `/pay/${invoice}`, text: "is missing now" };
  // Every checkout of that address may be the one that was meant, so this comes last.
  const near = await checkOut();
  await pay(near, 1.4);
  await shows(near, "nearly fits");
  yield { name: "pay-nearly-fits", path: `/pay/${near}`, text: "nearly fits" };
}

export async function* deliveryScenes() {
  const done = await checkOut();
  await pay(done);
  await shows(done, "Your eSIM is ready");
  yield { name: "pay-ready", path: `/pay/${done}`, text: "Your eSIM is ready" };
  yield { name: "pay-ready-iphone", path: `/pay/${done}?device=iphone`, text: "Install the eSIM" };
  yield { name: "pay-ready-android", path: `/pay/${done}?device=android`, text: "Install the eSIM" };
  await pay(done);
  await shows(done, "Claim ");
  yield { name: "pay-ready-paid-twice", path: `/pay/${done}`, text: "Mail me a code" };
  await supplier("slow");
  const preparing = await checkOut();
  await pay(preparing);
  await shows(preparing, "your eSIM is being prepared");
  yield { name: "pay-preparing", path: `/pay/${preparing}`, text: "your eSIM is being prepared" };
  yield* lateScenes();
  await supplier("reject");
  // On a network of which nothing is taken back: this money is spent by boughtScenes.
  const failed = await checkOut("TRON", { plan: "JP-5GB-30D" });
  await pay(failed);
  await shows(failed, "the money is owed to you");
  await supplier("ok");
  yield { name: "pay-failed", path: `/pay/${failed}`, text: "the money is owed to you" };
  yield* claimScenes();
  yield { name: "pay-claimed", path: `/pay/${failed}`, text: "the money is in the wallet" };
  await vanish("POLYGON", done, "taken back by the network");
  yield { name: "pay-taken-back", path: `/pay/${done}`, text: "taken back by the network" };
}

// Paid too late for a plan that is no longer on sale.
async function* lateScenes() {
  const plan = "FR-1GB-7D";
  const late = await checkOut("BASE", { plan, currency: "USDC" });
  expire("checkouts", late);
  await supplier("sold_out");
  await fetch(`${API_URL}/api/b2b/v1/orders`, {
    method: "POST",
    headers: { "content-type": "application/json", ...partner },
    body: JSON.stringify({ packageCode: plan }),
  });
  await pay(late);
  await shows(late, "the money is owed to you");
  yield { name: "pay-late-failed", path: `/pay/${late}`, text: "the money is owed to you" };
}

// Begins at the pay page of what can be claimed.
async function* claimScenes() {
  yield { name: "claim", fields: { email: CLAIMANT }, text: "A code was mailed" };
  yield { name: "claim-wrong-code", fields: { code: "000000" }, text: "This code is wrong" };
  yield { name: "claimed", fields: { code: await mailed(CLAIMANT, CODE) }, text: "is in your wallet" };
}

export async function* depositScenes() {
  for (const [network, currency] of [["BASE", "USDC"], ["TRON", "USDT"]]) {
    const name = `deposit-waiting-${network.toLowerCase()}`;
    yield { name, path: `/pay/${await deposit(network, currency)}`, text: "Waiting for your payment" };
  }
  const [coming, part, whole, old] = [
    await deposit("ARBITRUM"),
    await deposit("BASE"),
    await deposit("BASE"),
    await deposit("POLYGON"),
  ];
  await seen("ARBITRUM", coming);
  yield { name: "deposit-seen", path: `/pay/${coming}`, text: "Payment seen" };
  await vanish("ARBITRUM", coming, "dropped by the network");
  yield { name: "deposit-missing", path: `/pay/${coming}`, text: "is missing now" };
  await pay(part, 100);
  await shows(part, "150.00 USDC is still open");
  yield { name: "deposit-part", path: `/pay/${part}`, text: "150.00 USDC is still open" };
  await pay(whole);
  await shows(whole, "Payment confirmed");
  yield { name: "deposit-confirmed", path: `/pay/${whole}`, text: "Payment confirmed" };
  expire("invoices", old);
  await shows(old, "has expired");
  yield { name: "deposit-expired", path: `/pay/${old}`, text: "has expired" };
  // From here on the partner is suspended: the money was credited.
  await vanish("BASE", whole, "taken back by the network");
  yield { name: "deposit-taken-back", path: `/pay/${whole}`, text: "taken back by the network" };
}

export async function* topupScenes() {
  const email = "ann@example.com";
  await tool("send_agent_otp", { email });
  const { token } = await tool("verify_agent_otp", { email, code: await mailed(email, CODE) });
  const { magicLink } = await tool("purchase_esim_with_wallet", { packageCode: PLAN, token });
  const { pathname } = new URL(magicLink);
  yield { name: "topup", path: pathname, text: "Top up a wallet" };
  // A browser would hold it back.
  yield { name: "topup-too-little", fields: { amountUsd: "0.5" }, unchecked: true, text: "The amount must be at least" };
  for (const amountUsd of ["5", "6", "7", "8", "9"]) {
    await fetch(magicLink, { method: "POST", body: new URLSearchParams({ amountUsd, means: "USDC POLYGON" }) });
  }
  const sixth = { amountUsd: "10", means: "USDC POLYGON" };
  yield { name: "topup-five-open", path: pathname, text: "Top up a wallet" };
  yield { name: "topup-too-many", fields: sixth, text: "Five payments are open" };
  yield { name: "topup-no-link", path: "/topup/nonsense", text: "Link has ended" };
}

export async function* mailedScenes() {
  const [email, reader] = ["bob@example.com", "eve@example.com"];
  await json("/api/agentic/auth/request-otp", { email });
  yield { name: "not-me", path: new URL(await mailed(email, /(http\S+\/not-me\/\S+)/)).pathname, text: "Was that not you?" };
  yield { name: "not-me-stopped", fields: {}, text: "No more codes" };
  yield { name: "not-me-undone", fields: {}, text: "Codes are mailed again" };
  await json("/api/agentic/auth/request-otp", { email: reader });
  const otp = await mailed(reader, CODE);
  await json("/api/agentic/auth/verify-otp", { email: reader, otp, agentName: "Trip planner" });
  const revoke = new URL(await mailed(reader, /(http\S+\/revoke-token\/\S+)/)).pathname;
  yield { name: "revoke", path: revoke, text: "Revoke this token?" };
  yield { name: "revoked", fields: {}, text: "This token is revoked" };
}

export async function* esimScenes() {
  const made = await delivered("JAPAN-KOREA-10GB-30D");
  yield { name: "esim-new", path: made.path, text: "Install your eSIM" };
  yield { name: "esim-new-iphone", path: `${made.path}?device=iphone`, text: "Install the eSIM" };
  yield { name: "esim-new-android", path: `${made.path}?device=android`, text: "Install the eSIM" };
  for (const [name, told, text] of [
    ["installed", { status: "INSTALLED" }, "Installed"],
    ["in-use", { usedGb: 4.2 }, "In use"],
    ["nearly-used-up", { usedGb: 9.4 }, "In use"],
    ["used-up", { usedGb: 10 }, "Used up"],
    ["ended", { status: "EXPIRED" }, "Ended"],
  ]) {
    await usage(made.iccid, told);
    yield { name: `esim-${name}`, path: made.path, text };
  }
  change("UPDATE esims SET activation = x'' WHERE order_id = ?", made.id);
  yield { name: "esim-forgotten", path: made.path, text: "was deleted" };
  const cancelled = await delivered();
  await json(`/api/b2b/v1/orders/${cancelled.id}/cancel`, {}, partner);
  await opens(cancelled.path, "This eSIM is gone");
  yield { name: "esim-cancelled", path: cancelled.path, text: "This eSIM is gone" };
  await supplier("slow");
  const coming = await order();
  yield { name: "esim-preparing", path: coming.path, text: "is being prepared" };
  await supplier("ok");
}

// A guest's eSIM that is filled up from its own page. Nothing is taken back on that network.
export async function* refillScenes() {
  const bought = await checkOut("TRON");
  await pay(bought);
  await shows(bought, "Your eSIM is ready");
  const { esim } = await json(`/api/agentic/order/${bought}`);
  const path = (await html(`/pay/${bought}`)).match(/\/esim\/\w+/)[0];
  await usage(esim.iccid, { usedGb: 0.9, status: "ACTIVE" });
  yield { name: "esim-refillable", path, text: "Add data" };
  yield { name: "refill", path: `${path}/data`, text: "How much" };
  yield { name: "refill-wrong", fields: { email: "kid@nowhere" }, text: "must look like name@example.com", unchecked: true };
  yield { name: "refill-waiting", fields: { email: "kid@example.com", means: "USDT TRON" }, text: "Waiting for your payment" };
  const refill = await checkOutMore(path);
  await pay(refill);
  await shows(refill, "Your eSIM is topped up");
  yield { name: "pay-topped-up", path: `/pay/${refill}`, text: "Your eSIM is topped up" };
  await supplier("reject");
  const failed = await checkOutMore(path);
  await pay(failed);
  await shows(failed, "We could not add the data");
  await supplier("ok");
  yield { name: "pay-not-topped-up", path: `/pay/${failed}`, text: "We could not add the data" };
  await usage(esim.iccid, { status: "EXPIRED" });
  await opens(`${path}/data`, "Nothing to add");
  yield { name: "refill-nothing", path: `${path}/data`, text: "Nothing to add" };
}

async function checkOutMore(path) {
  const choice = (await html(`${path}/data`)).match(/name="choice" value="([^"]+)"/)[1];
  const body = new URLSearchParams({ choice, email: "kid@example.com", means: "USDT TRON" });
  return (await (await fetch(`${API_URL}${path}/data`, { method: "POST", body })).text()).match(/inv_\w+/)[0];
}

// A wallet that holds nothing.
export async function* shortScenes() {
  const [page, email] = ["/checkout?plan=JP-500MB-1D", "short@example.com"];
  yield { name: "checkout-bad-coupon", path: `${page}&discount=NOPE`, text: "Pay from a wallet" };
  yield { name: "unbought", fields: { email }, text: "Nothing was bought", form: byWallet };
  yield { name: "checkout-cheap", path: page, text: "Pay from a wallet" };
  yield { name: "wallet", fields: { email }, text: "A code was mailed", form: byWallet };
  const code = await mailed(email, CODE);
  yield { name: "wallet-wrong-code", fields: { code: "000000" }, text: "This code is wrong" };
  yield { name: "wallet-short", fields: { code }, text: "more is needed" };
}

// The wallet that deliveryScenes have filled.
export async function* boughtScenes() {
  const plan = "JP-500MB-1D";
  const first = await mailed(CLAIMANT, CODE);
  forgetMails(CLAIMANT);
  await fetch(`${API_URL}/checkout/code`, { method: "POST", body: new URLSearchParams({ plan, email: CLAIMANT }) });
  const code = await mailedSince(first, CLAIMANT, CODE);
  yield { name: "checkout-again", path: `/checkout?plan=${plan}`, text: "Pay from a wallet" };
  yield { name: "wallet-code", fields: { email: CLAIMANT }, text: "A code was mailed", form: byWallet };
  yield { name: "bought", fields: { code }, text: "is yours" };
}

export async function* otherScenes() {
  yield { name: "parts", path: "/sandbox/parts", text: "Parts" };
  yield { name: "landing", path: "/", text: "Popular plans" };
  yield { name: "landing-found", path: "/?q=Japan", text: "Plans for Japan" };
  yield { name: "landing-nothing", path: "/?q=atlantis", text: "Nothing found" };
  yield { name: "help", path: "/help", text: "Help" };
  yield { name: "help-found", path: "/help?q=refund", text: "for refund" };
  yield { name: "help-nothing", path: "/help?q=zzzz", text: "All help pages" };
  for (const device of ["iPhone 13", "iPhone 7", "Galaxy S10", "iPhone", "Fon 3000"]) {
    const name = `device-${device.toLowerCase().replace(" ", "-")}`;
    yield { name, path: `/help/devices?q=${encodeURIComponent(device)}`, text: device };
  }
  yield { name: "article", path: "/help/policy/refunds", text: "More help" };
  yield { name: "error-nowhere", path: "/nowhere", text: "There is nothing at this address" };
  yield { name: "error-no-payment", path: "/pay/inv_nothing", text: "No payment here" };
  yield { name: "error-form-only", path: "/pay/inv_nothing/code", text: "use the form there" };
}
