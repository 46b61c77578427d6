// Every page for people, in every state that a sandbox can bring about, seen by browser.mjs. Forms are filled in by
// keyboard. Payments on Arbitrum stay unconfirmed here, because pages.sh asks for so many confirmations.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { browser, look, looks, page, send, visit, work, wrong } from "./browser.mjs";

const { API_URL, API_KEY, API_SECRET, GATEWAY_DIR } = process.env;
assert(API_URL && API_KEY && API_SECRET && GATEWAY_DIR);
const plan = "JP-1GB-7D";
const partner = { "X-B2B-Key": API_KEY, "X-B2B-Secret": API_SECRET };

async function json(path, body, headers = {}) {
  const init = body && { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(API_URL + path, { ...init, headers: { "content-type": "application/json", ...headers } });
  const told = await answer.json();
  assert(answer.ok, `${path}: ${answer.status} ${JSON.stringify(told)}`);
  return told;
}

async function until(what, met) {
  for (let tries = 0; tries < 600; tries += 1) {
    const found = await met();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`waited for: ${what}`);
}

const supplier = (mode) => json("/sandbox/supplier", { mode, delayMs: 3_600_000 });
const pay = (invoiceId, amountUsd) => json("/sandbox/pay", { invoiceId, ...(amountUsd && { amountUsd }) });
const html = async (path) => (await fetch(API_URL + path, { headers: { accept: "text/html" } })).text();
const shows = (invoice, text) => until(text, async () => (await html(`/pay/${invoice}`)).includes(text));
const order = async (packageCode) => (await json("/api/b2b/v1/orders", { packageCode }, partner)).order;

// A block that was shown is replaced, and what was paid in it is gone.
async function vanish(network, invoice, text) {
  await json("/sandbox/chain", { network, reorg: 100_000 });
  await shows(invoice, text);
}

async function deposit(network, currency = "USDC") {
  const asked = { amountUsd: 250, currency, network };
  return (await json("/api/b2b/v1/balance/deposit", asked, partner)).invoiceId;
}

async function checkOut(network = "POLYGON") {
  const body = new URLSearchParams({ plan, email: "kid@example.com", network });
  const answer = await fetch(`${API_URL}/checkout`, { method: "POST", body });
  return (await answer.text()).match(/inv_\w+/)[0];
}

// Nobody has the time to wait until an invoice expires.
function expire(table, id) {
  const program = `import sqlite3, sys
with sqlite3.connect("simgate.db", timeout=60) as database:
    database.execute(f"UPDATE {sys.argv[1]} SET expires_at = created_at WHERE id = ?", sys.argv[2:])`;
  execFileSync("python3", ["-c", program, table, id], { cwd: GATEWAY_DIR });
}

// The first match in the mails to an address, newest first.
async function mailed(email, pattern) {
  const read = async () => {
    const { emails } = await json(`/sandbox/outbox?email=${encodeURIComponent(email)}`);
    return emails.map((mail) => mail.text.match(pattern)).find(Boolean);
  };
  return (await until(`a mail to ${email}`, read))[1];
}

async function tool(name, args) {
  const params = { name, arguments: args };
  const { result } = await json("/api/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params });
  return result.structuredContent;
}

async function checkoutPages() {
  await visit(`/checkout?plan=${plan}`, "Continue to the payment");
  await send({ email: "kid@nowhere" }, "must look like name@example.com");
  await send({ email: "kid@example.com", discount: "NOPE" }, "discount code is unknown");
  await visit(`/checkout?plan=${plan}&discount=TRIP10`, "with TRIP10");
  await visit(`/checkout?plan=${plan}&discount=NOPE`, "discount code is unknown");
  const { plans } = await json("/api/products/search?country=global&limit=1");
  await visit(`/checkout?plan=${plans[0].packageCode}`, "more");
  await visit("/checkout?plan=JAPAN-KOREA-1GB-7D", "Mobile networks by country");
  await visit("/checkout?plan=NOPE", "This plan is not on sale");
  await visit(`/checkout?plan=${plan}`, "Continue to the payment");
  await send({ email: "kid@example.com", network: "TRON", discount: "TRIP10" }, "Waiting for your payment");
  assert.match(page.url(), /\/pay\/inv_/);
}

async function depositPages() {
  for (const [network, currency] of [["BASE", "USDC"], ["TRON", "USDT"]]) {
    await visit(`/pay/${await deposit(network, currency)}`, "Waiting for your payment");
  }
  const [seen, part, whole, old] = [
    await deposit("ARBITRUM"),
    await deposit("BASE"),
    await deposit("BASE"),
    await deposit("POLYGON"),
  ];
  await pay(seen);
  await pay(part, 100);
  await pay(whole);
  expire("invoices", old);
  await shows(seen, "Payment seen");
  await visit(`/pay/${seen}`, "Payment seen");
  await vanish("ARBITRUM", seen, "dropped by the network");
  await visit(`/pay/${seen}`, "is missing now");
  await shows(part, "Still due: 150 USDC");
  await visit(`/pay/${part}`, "Still due: 150 USDC");
  await shows(whole, "Payment confirmed");
  await visit(`/pay/${whole}`, "Payment confirmed");
  await shows(old, "has expired");
  await visit(`/pay/${old}`, "has expired");
  // From here on the partner is suspended: the money was credited.
  await vanish("BASE", whole, "taken back by the network");
  await visit(`/pay/${whole}`, "taken back by the network");
}

async function guestPages() {
  const [seen, old, done] = [await checkOut("ARBITRUM"), await checkOut(), await checkOut()];
  await visit(`/pay/${done}`, "Waiting for your payment");
  await pay(seen);
  await pay(done);
  expire("checkouts", old);
  await shows(seen, "Payment seen");
  await visit(`/pay/${seen}`, "Payment seen");
  await vanish("ARBITRUM", seen, "dropped by the network");
  await visit(`/pay/${seen}`, "is missing now");
  await shows(old, "The time to pay is over");
  await visit(`/pay/${old}`, "Check out again");
  await shows(done, "Your eSIM is ready");
  await visit(`/pay/${done}`, "Your eSIM is ready");
  await pay(done);
  await supplier("reject");
  const failed = await checkOut();
  await pay(failed);
  await shows(done, "Claim ");
  await visit(`/pay/${done}`, "Mail me a code");
  await shows(failed, "the money is owed to you");
  await visit(`/pay/${failed}`, "the money is owed to you");
  await claimPages();
  await visit(`/pay/${failed}`, "the money is in the wallet");
  await vanish("POLYGON", done, "taken back by the network");
  await visit(`/pay/${done}`, "taken back by the network");
}

// Begins at the pay page of what can be claimed.
async function claimPages() {
  const email = "mum@example.com";
  await send({ email }, "A code was mailed");
  await send({ code: "000000" }, "This code is wrong");
  await send({ code: await mailed(email, /code is: (\w+)/) }, "are in your wallet");
  await page.reload({ waitUntil: "load" });
  await look("Nothing to claim");
}

async function walletPages() {
  const email = "ann@example.com";
  await tool("send_agent_otp", { email });
  const { token } = await tool("verify_agent_otp", { email, code: await mailed(email, /code is: (\w+)/) });
  const { magicLink } = await tool("purchase_esim_with_wallet", { packageCode: plan, token });
  await visit(magicLink, "Top up a wallet");
  // A browser would hold it back.
  await page.locator("form").evaluate((form) => (form.noValidate = true));
  await send({ amountUsd: "0.5" }, "The amount must be at least");
  await send({ amountUsd: "5", means: "USDC on Polygon" }, "Waiting for your payment");
  for (const amountUsd of ["6", "7", "8", "9"]) {
    await fetch(magicLink, { method: "POST", body: new URLSearchParams({ amountUsd, means: "USDC POLYGON" }) });
  }
  await visit(magicLink, "Top up a wallet");
  await send({ amountUsd: "10", means: "USDC on Polygon" }, "Five payments are open");
  await visit("/topup/nonsense", "Link has ended");
}

const spender = "spender@example.com";
const CODE = /code is: (\w+)/;
const byWallet = 'form[action="/checkout/code"]';

// Asks for a code on the checkout page, to pay from a wallet.
async function askForCode() {
  await visit("/checkout?plan=JP-500MB-1D", "Pay from a wallet");
  await send({ email: spender }, "A code was mailed", byWallet);
}

// A wallet that holds nothing yet is filled by the link that it gets.
async function shortPages() {
  await visit("/checkout?plan=JP-500MB-1D&discount=NOPE", "Pay from a wallet");
  await send({ email: spender }, "Nothing was bought", byWallet);
  await askForCode();
  const [code, asked] = [await mailed(spender, CODE), Date.now()];
  await send({ code: "000000" }, "This code is wrong");
  await send({ code }, "are missing");
  await page.getByText("Pay in what is missing").click();
  await look("Top up a wallet");
  await send({ amountUsd: "5", means: "USDT on TRON" }, "Waiting for your payment");
  await pay(page.url().split("/pay/")[1]);
  return { code, asked };
}

// An address gets one mail a minute: the second code comes when the other pages were looked at.
async function boughtPages(first) {
  await supplier("ok");
  await until("a minute", () => Date.now() > first.asked + 61_000);
  await askForCode();
  const code = await until("a second code", async () => {
    const found = await mailed(spender, CODE);
    return found === first.code ? undefined : found;
  });
  await send({ code }, "is yours");
  await page.getByText("Install it, step by step").click();
  await look("LPA:1$");
}

async function mailedPages() {
  const email = "bob@example.com";
  await json("/api/agentic/auth/request-otp", { email });
  await visit(await mailed(email, /(http\S+\/not-me\/\S+)/), "Was that not you?");
  await send({}, "No more codes");
  await send({}, "Codes are mailed again");
  await json("/api/agentic/auth/request-otp", { email: "eve@example.com" });
  const otp = await mailed("eve@example.com", /code is: (\w+)/);
  await json("/api/agentic/auth/verify-otp", { email: "eve@example.com", otp, agentName: "Trip planner" });
  await visit(await mailed("eve@example.com", /(http\S+\/revoke-token\/\S+)/), "Revoke this token?");
  await send({}, "This token is revoked");
}

async function esimPages() {
  const [kept, cancelled] = [await order(plan), await order(plan)];
  const path = (made) => new URL(made.installUrl).pathname;
  const opens = (made, text) => until(text, async () => (await html(path(made))).includes(text));
  await opens(kept, "Install your eSIM");
  await visit(path(kept), "Install your eSIM");
  await opens(cancelled, "Install your eSIM");
  await json(`/api/b2b/v1/orders/${cancelled.id}/cancel`, {}, partner);
  await opens(cancelled, "This eSIM is gone");
  await visit(path(cancelled), "This eSIM is gone");
  await supplier("slow");
  await visit(path(await order(plan)), "is being prepared");
  const paid = await checkOut();
  await pay(paid);
  await shows(paid, "your eSIM is being prepared");
  await visit(`/pay/${paid}`, "your eSIM is being prepared");
  await supplier("ok");
}

// What the scripts of the documentation do: search, and try an operation. Credentials go to the gateway and are kept nowhere.
async function docsPages() {
  for (const path of ["/docs", "/docs/agentic", "/docs/consumer", "/docs/sandbox"]) await visit(path, "What all operations answer");
  const elsewhere = [];
  page.on("request", (request) => request.url().startsWith(API_URL) || elsewhere.push(request.url()));
  const entries = page.locator(".contents li:visible");
  const search = async () => {
    const found = async (words) => {
      await page.getByLabel("Search the documentation").fill(words);
      return entries.allTextContents();
    };
    assert.deepEqual(await found("GET topup-plans"), ["Top-up plans"]);
    assert((await found("refund")).includes("Cancel an order"));
    assert((await found("not_cancel")).includes("NOT_CANCELLABLE"));
    assert.deepEqual(await found("no such thing"), []);
  };
  await work("/docs", search, "Nothing found.");
  const attempt = async (id, fields, text) => {
    const form = page.locator(`#${id} form`);
    if (!(await form.isVisible())) await page.locator(`#${id} summary`, { hasText: "Try it" }).click();
    for (const [label, value] of Object.entries(fields)) await form.getByLabel(label, { exact: true }).fill(value);
    await form.getByRole("button").click();
    await form.locator("pre", { hasText: text }).waitFor();
  };
  const key = page.getByLabel("X-B2B-Key", { exact: true });
  const secret = page.getByLabel("X-B2B-Secret", { exact: true });
  const tryThem = async () => {
    await attempt("getBalance", {}, "UNAUTHENTICATED");
    await key.fill(API_KEY);
    await secret.fill(API_SECRET);
    await attempt("getBalance", {}, '"balanceUsd"');
    await attempt("listPlans", { country: "JP", limit: "1" }, '"packageCode": "');
    await attempt("placeOrder", { Body: '{"packageCode": "JP-1GB-7D", "partnerRefId": "try-1"}' }, '"orderNo"');
    await attempt("placeOrder", {}, "idempotent-replayed: true");
    await attempt("getOrder", { id: "ord_../../balance" }, "404");
    const kept = await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie, location.search]);
    assert.deepEqual(kept, [0, 0, "", ""]);
  };
  await work("/docs", tryThem, "Idempotent-Replayed");
  const cookies = await page.context().cookies();
  assert.deepEqual([cookies, elsewhere], [[], []]);
  const again = async () => assert.deepEqual([await key.inputValue(), await secret.inputValue()], ["", ""]);
  await work("/docs", again, "To try operations here");
  await work("/docs/sandbox", () => attempt("getSupplier", {}, '"mode": "ok"'), '"mode": "ok"');
}

async function helpAndErrors() {
  await visit("/help", "Get help from a person");
  const links = await page.locator("main a").evaluateAll((all) => all.map((link) => [link.href, link.textContent]));
  assert(links.length >= 9, "few help pages");
  for (const [href, title] of links) await visit(href, title);
  await visit("/nowhere", "There is nothing at this address");
  await visit("/pay/inv_nothing/code", "use the form there");
}

try {
  await docsPages();
  await checkoutPages();
  const first = await shortPages();
  await walletPages();
  await mailedPages();
  await esimPages();
  await guestPages();
  await depositPages();
  await boughtPages(first);
  await helpAndErrors();
} finally {
  await browser.close();
}
console.log(`${looks} looks`);
assert.equal(wrong.length, 0, wrong.join("\n"));
