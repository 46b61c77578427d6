// The scenes of /account, in the form of states.mjs: one person signs in, pays in, buys, and looks at everything. They come
// in this order, in one browser that keeps its cookies.
import { PLAN, forgetMails, json, mailed, mailedSince, pay, until } from "./states.mjs";

const EMAIL = "alexandra.von.reisenden-weitherkommend@reisebuero-am-marktplatz.example.com";
const AGENT = "Trip planner of the whole family <Alexandra & Maximiliane>";
const CODE = /code is: (\w+)/;
const once = (path) => `form[action="${path}"]`;

// The path of the first link on a page that begins like this, as the person sees it.
const linked = async (page, start) => new URL(await page.locator(`a[href^="${start}"]`).first().getAttribute("href"), page.url()).pathname;

export async function* accountScenes(page) {
  yield { name: "account-form-ended", path: "/account?next=buy&form=ended", text: "Nothing was changed" };
  yield { name: "account-entrance", path: "/account", text: "Mail me a code" };
  yield { name: "account-entrance-wrong", fields: { email: "kid@nowhere" }, text: "must look like name@example.com", unchecked: true };
  yield { name: "account-code", fields: { email: EMAIL }, text: "Enter your code" };
  yield { name: "account-code-wrong", fields: { code: "000000" }, text: "This code is wrong" };
  const code = await mailed(EMAIL, CODE);
  yield { name: "account-new", fields: { code }, text: "No eSIM yet" };
  yield { name: "account-wallet-empty", path: "/account/wallet", text: "Nothing has moved yet" };
  yield { name: "account-orders-empty", path: "/account/orders", text: "No eSIM yet" };
  yield { name: "account-agents-empty", path: "/account/agents", text: "No agent has a token" };
  yield { name: "account-short", path: `/account/buy/${PLAN}`, text: "Missing" };
  yield { name: "account-deposit", path: "/account/deposit", text: "Continue to the payment" };
  const deposit = once("/account/deposit");
  yield { name: "account-deposit-wrong", form: deposit, fields: { amountUsd: "5" }, text: "must be at least", unchecked: true };
  yield { name: "account-deposit-open", form: deposit, fields: { amountUsd: "60" }, text: "Waiting for your payment" };
  await pay(page.url().split("/pay/")[1]);
  await until("the money", async () => {
    await page.goto(new URL("/account", page.url()).href);
    return (await page.content()).includes("60.00 USD");
  });
  yield { name: "account-search", path: "/account/buy?q=japan", text: "plans" };
  yield { name: "account-search-usual", path: "/account/buy", text: "Often bought" };
  yield { name: "account-search-nothing", path: "/account/buy?q=atlantis", text: "Nothing found" };
  const buy = { form: once(`/account/buy/${PLAN}`), fields: {}, text: "Bought, and paid" };
  yield { name: "account-confirm", path: `/account/buy/${PLAN}`, text: "Left afterwards" };
  const coupon = { form: once(`/account/buy/${PLAN}`), button: "[name=apply]" };
  yield { name: "account-coupon-unknown", ...coupon, fields: { discount: "NOPE" }, text: "discount code is unknown" };
  yield { name: "account-coupon", ...coupon, fields: { discount: "TRIP10" }, text: "Coupon TRIP10" };
  yield { name: "account-bought", ...buy };
  const used = new URL(page.url()).pathname;
  const iccid = (await page.locator("dd", { hasText: /^\d{18,20}$/ }).textContent()).trim();
  yield { name: "account-refill", path: `${used}/data`, text: "Buy from the wallet" };
  yield { name: "account-refilled", form: once(`${used}/data`), fields: {}, text: "Data that was added" };
  await json("/sandbox/usage", { iccid, usedGb: 1.7, status: "ACTIVE" });
  yield { name: "account-order-used", path: used, text: "cannot be given back" };
  yield { name: "account-give-back-no", path: `${used}/give-back`, text: "You keep this eSIM" };
  for (const plan of [PLAN, "JP-500MB-1D", "JP-5GB-30D"]) {
    await page.goto(new URL(`/account/buy/${plan}`, page.url()).href);
    await page.locator(`${once(`/account/buy/${plan}`)} button:not([name])`).click();
    await page.getByText("Bought, and paid").waitFor();
  }
  const kept = new URL(page.url()).pathname;
  yield { name: "account-give-back", path: `${kept}/give-back`, text: "cannot be undone" };
  yield { name: "account-given-back", form: once(`${kept}/give-back`), fields: {}, text: "is in your wallet" };
  yield { name: "account-orders", path: "/account/orders", text: "The bars show" };
  yield { name: "account-wallet", path: "/account/wallet", text: "Money was paid in" };
  forgetMails(EMAIL);
  await json("/api/agentic/auth/request-otp", { email: EMAIL });
  const otp = await mailedSince(code, EMAIL, CODE);
  await json("/api/agentic/auth/verify-otp", { email: EMAIL, otp, agentName: AGENT });
  yield { name: "account-agents", path: "/account/agents", text: "USD a day" };
  const agent = (await linked(page, "/account/agents/tok_")).replace("/revoke", "");
  yield { name: "account-agent", path: agent, text: "Save the limit" };
  yield { name: "account-agent-wrong", form: once(agent), fields: { limitUsd: "501" }, text: "must be from 0", unchecked: true };
  yield { name: "account-agent-limited", form: once(agent), fields: { limitUsd: "25" }, text: "The daily limit was changed" };
  yield { name: "account-revoke", path: `${agent}/revoke`, text: "Revoke this token?" };
  yield { name: "account-settings", path: "/account/settings", text: "Where you are signed in" };
  yield { name: "account", path: "/account", text: "Latest movements" };
}
