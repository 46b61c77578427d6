// The scenes of /portal, in the form of states.mjs: the owner of the demo partner's team signs in, works through every section,
// turns on a second factor and signs in anew. They come in this order, in one browser that keeps its cookies.
import { createHmac } from "node:crypto";

import { PLAN, forgetMails, mailed, mailedSince, pay, until } from "./states.mjs";

const OWNER = "owner@demo.example";
const NEW = "maximiliane.von.der.schulenburg-wolfsburg@reisebuero-am-marktplatz.example.com";
const CODE = /code is: (\w+)/;
const once = (path) => `form[action="${path}"]`;

// The six digits that an authenticator app shows for a key, or shows half a minute from now: each code counts once, and a
// clock may be so far ahead.
export const next = (key) => shown(key, Date.now() + 30_000);

export function shown(key, at = Date.now()) {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  const bits = [...key].map((letter) => letters.indexOf(letter).toString(2).padStart(5, "0")).join("");
  const secret = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(at / 30_000)));
  const mac = createHmac("sha1", secret).update(step).digest();
  const word = mac.readUInt32BE(mac[19] & 15) & 0x7fffffff;
  return String(word % 1_000_000).padStart(6, "0");
}

export async function* portalScenes(page) {
  yield { name: "portal-entrance", path: "/portal", text: "Mail me a code" };
  yield { name: "portal-entrance-wrong", fields: { email: "kid@nowhere" }, text: "must look like name@example.com", unchecked: true };
  yield { name: "portal-code", fields: { email: OWNER }, text: "Enter your code" };
  yield { name: "portal-code-wrong", fields: { code: "000000" }, text: "This code is wrong" };
  const code = await mailed(OWNER, CODE);
  yield { name: "portal-overview", fields: { code }, text: "Orders per day" };
  yield { name: "portal-orders", path: "/portal/orders", text: "The newest first" };
  yield { name: "portal-orders-nothing", path: "/portal/orders?q=nothing", text: "Nothing has this name" };
  yield { name: "portal-orders-wrong", path: "/portal/orders?from=yesterday", text: "Please check" };
  yield { name: "portal-search-nothing", path: "/portal/search?q=nothing", text: "Nothing has this name" };
  yield { name: "portal-order-new", path: "/portal/orders/new", text: "Code of the plan" };
  yield { name: "portal-order-unknown", path: "/portal/orders/new?plan=NOPE", text: "No plan on sale" };
  const buy = once("/portal/orders/new") + "[method=post]";
  yield { name: "portal-order-check", path: `/portal/orders/new?plan=${PLAN}`, text: "Left afterwards" };
  yield { name: "portal-order-placed", form: buy, fields: { reference: "booking of the whole family at the market square" }, text: "The order was placed" };
  const placed = new URL(page.url()).pathname;
  yield { name: "portal-order-send", path: `${placed}/send`, text: "Send to a customer" };
  const send = once(`${placed}/send`);
  yield { name: "portal-order-send-wrong", form: send, fields: { email: "kid@nowhere" }, text: "Please check", unchecked: true };
  yield { name: "portal-order-sent", form: send, fields: { email: "kid@example.com" }, text: "on its way to your customer" };
  yield { name: "portal-order-data", path: `${placed}/data`, text: "More data for the eSIM" };
  yield { name: "portal-order-filled", form: once(`${placed}/data`), fields: {}, text: "The data was bought" };
  yield { name: "portal-order-kept", path: `${placed}/cancel`, text: "Nothing was changed" };
  yield { name: "portal-order-another", path: `/portal/orders/new?plan=${PLAN}`, text: "Left afterwards" };
  yield { name: "portal-order-fresh", form: buy, fields: {}, text: "The order was placed" };
  const fresh = new URL(page.url()).pathname;
  yield { name: "portal-order-cancel", path: `${fresh}/cancel`, text: "The supplier decides" };
  yield { name: "portal-order-cancelled", form: once(`${fresh}/cancel`), fields: {}, text: "The eSIM was given back" };
  const batch = once("/portal/orders/batch");
  yield { name: "portal-batch", path: "/portal/orders/batch", text: "at once" };
  yield { name: "portal-batch-wrong", form: batch, button: "[value=look]", fields: { orders: "NOPE" }, text: "Nothing was bought" };
  yield { name: "portal-batch-check", form: batch, button: "[value=look]", fields: { orders: `3 x ${PLAN}, trip` }, text: "Nothing is bought yet" };
  yield { name: "portal-batch-done", form: batch, button: "[value=place]", fields: {}, text: "All 3 eSIMs are delivered" };
  yield { name: "portal-batch-next", path: "/portal/orders/batch", text: "Placed before" };
  yield { name: "portal-batch-unmailed-check", form: batch, button: "[value=look]", fields: { orders: `21 x ${PLAN}, crowd, crowd@example.com` }, text: "is bought but not mailed" };
  yield { name: "portal-batch-unmailed", form: batch, button: "[value=place]", fields: {}, text: "Not mailed: this mailbox" };
  yield { name: "portal-batch-again", path: "/portal/orders/batch", text: "Placed before" };
  yield { name: "portal-plans", path: "/portal/plans", text: "at what it costs you" };
  yield { name: "portal-plans-found", path: "/portal/plans?q=japan", text: "Show all" };
  yield { name: "portal-plans-nothing", path: "/portal/plans?q=atlantis", text: "No plan fits" };
  yield { name: "portal-plans-more-data", path: "/portal/plans?type=TOPUP", text: "More data is added" };
  const deposits = once("/portal/deposits") + "[method=post]";
  yield { name: "portal-deposits", path: "/portal/deposits", text: "Your own address" };
  yield { name: "portal-deposits-wrong", form: deposits, fields: { amountUsd: "5" }, text: "must be at least", unchecked: true };
  yield { name: "portal-deposit-open", form: deposits, fields: { amountUsd: "60" }, text: "Waiting for your payment" };
  const invoice = page.url().split("/pay/")[1];
  yield { name: "portal-deposit", path: `/portal/deposits/${invoice}`, text: "Go to the payment page" };
  await pay(invoice);
  await until("the money", async () => {
    await page.reload();
    return (await page.content()).includes("Transactions");
  });
  yield { name: "portal-deposit-paid", path: `/portal/deposits/${invoice}`, text: "Transactions" };
  yield { name: "portal-statement", path: "/portal/statement", text: "Every line" };
  yield { name: "portal-statement-nothing", path: "/portal/statement?from=2020-01-01&to=2020-01-02", text: "Nothing moved in this time" };
  const month = new Date().toISOString().slice(0, 7);
  yield { name: "portal-month", path: `/portal/statement/${month}`, text: "Opening balance" };
  yield { name: "portal-keys", path: "/portal/keys", text: "Last used" };
  yield { name: "portal-key-new", path: "/portal/keys/new", text: "Make an API key" };
  const making = once("/portal/keys/new");
  yield { name: "portal-key-wrong", form: making, fields: { name: "Shop", ips: "here" }, text: "Please check" };
  yield { name: "portal-key-once-more", path: "/portal/keys/new", text: "Make an API key" };
  yield { name: "portal-key-issued", form: making, fields: { name: "Shop of the long company name at the market square" }, text: "Keep the secret now" };
  yield { name: "portal-keys-two", path: "/portal/keys", text: "Shop of the long" };
  const key = await page.locator('a[href$="/rotate"]').last().getAttribute("href");
  yield { name: "portal-key-rotate", path: key, text: "How long both keys work" };
  yield { name: "portal-key-rotated", form: once(key), fields: {}, text: "Both share one daily limit" };
  yield { name: "portal-key-revoke", path: key.replace("rotate", "revoke"), text: "Revoke this key?" };
  yield { name: "portal-key-revoked", form: once(key.replace("rotate", "revoke")), fields: {}, text: "Keys that have ended" };
  yield { name: "portal-webhooks", path: "/portal/webhooks", text: "Where we tell your programs" };
  yield { name: "portal-webhook-new", path: "/portal/webhooks/new", text: "Add a webhook" };
  const adding = once("/portal/webhooks/new");
  yield { name: "portal-webhook-wrong", form: adding, fields: { url: "ftp://nowhere" }, text: "Please check", unchecked: true };
  yield { name: "portal-webhook-secret", form: adding, fields: { url: "https://hooks.invalid/simgate", description: "Back office" }, text: "this once" };
  yield { name: "portal-webhooks-one", path: "/portal/webhooks", text: "hooks.invalid" };
  const webhook = await page.locator('a[href^="/portal/webhooks/whk_"]').first().getAttribute("href");
  yield { name: "portal-webhook", path: webhook, text: "Send a test now" };
  yield { name: "portal-webhook-tested", form: once(`${webhook}/test`), fields: {}, text: "What was sent" };
  yield { name: "portal-webhook-deliveries", path: `${webhook}/deliveries`, text: "Deliveries" };
  yield { name: "portal-webhook-rotate", path: `${webhook}/rotate`, text: "secret" };
  yield { name: "portal-webhook-delete", path: `${webhook}/delete`, text: "Delete" };
  yield { name: "portal-logs", path: "/portal/logs", text: "Errors" };
  yield { name: "portal-logs-nothing", path: "/portal/logs?code=NOTHING", text: "Nothing fits" };
  yield { name: "portal-team", path: "/portal/team", text: "Invite somebody" };
  const invite = once("/portal/team");
  yield { name: "portal-team-wrong", form: invite, fields: { email: OWNER }, text: "is in the team already" };
  yield { name: "portal-team-invited", form: invite, fields: { email: NEW }, text: "The invitation is on its way" };
  const people = await page.locator('a[href^="/portal/team/mbr_"]').evaluateAll((links) => links.map((link) => link.getAttribute("href")));
  yield { name: "portal-member", path: people[1], text: "Withdraw the invitation" };
  yield { name: "portal-myself", path: people[0], text: "Leave the team" };
  yield { name: "portal-myself-kept", form: once(`${people[0]}/remove`), fields: {}, text: "a team needs an owner" };
  yield { name: "portal-team-log", path: "/portal/team/log", text: "team invite" };
  yield { name: "portal-settings", path: "/portal/settings", text: "Where you are signed in" };
  const warning = once("/portal/settings/warning");
  yield { name: "portal-settings-wrong", form: warning, fields: { threshold: "-1" }, text: "Please check", unchecked: true };
  yield { name: "portal-settings-low", form: warning, fields: { threshold: "100000" }, text: "Saved" };
  yield { name: "portal-overview-low", path: "/portal", text: "Needs attention" };
  const link = new URL(await mailed(NEW, /(http\S+\/portal\/join\/\S+)/)).pathname;
  yield { name: "portal-join", path: link, text: "Join the team of" };
  yield { name: "portal-factor-off", path: "/portal/settings/second-factor", text: "Set it up" };
  yield { name: "portal-factor-setup", form: once("/portal/settings/second-factor/begin"), fields: {}, text: "Scan this" };
  const confirm = once("/portal/settings/second-factor/confirm");
  const secret = await page.locator(`${confirm} [name=secret]`).inputValue();
  yield { name: "portal-factor-wrong", form: confirm, fields: { code: "abcdef" }, text: "This code is wrong" };
  yield { name: "portal-factor-codes", form: confirm, fields: { code: shown(secret) }, text: "shown this once" };
  const recovery = (await page.locator("pre").textContent()).trim().split("\n");
  yield { name: "portal-factor-on", path: "/portal/settings/second-factor", text: "It is on" };
  yield { name: "portal-factor-renewed", form: once("/portal/settings/second-factor/codes"), fields: { code: recovery[0] }, text: "New recovery codes" };
  const [spare] = (await page.locator("pre").textContent()).trim().split("\n");
  await page.locator(once("/portal/sign-out")).locator("button").click();
  forgetMails(`PARTNERS:${OWNER}`);
  await page.locator("#email").fill(OWNER);
  await page.getByRole("button", { name: "Mail me a code" }).click();
  const again = await mailedSince(code, OWNER, CODE);
  yield { name: "portal-factor-asked", fields: { code: again }, text: "open your authenticator app" };
  yield { name: "portal-factor-asked-wrong", fields: { code: "abcdef" }, text: "This code is wrong" };
  yield { name: "portal-back", fields: { code: next(secret) }, text: "Needs attention" };
  yield { name: "portal-factor-gone", path: "/portal/settings/second-factor", text: "It is on" };
  yield { name: "portal-factor-turned-off", form: once("/portal/settings/second-factor/off"), fields: { code: spare }, text: "The second factor is off" };
  yield { name: "portal-settings-high", path: "/portal/settings", text: "Low-balance warning" };
  yield { name: "portal-settings-saved", form: warning, fields: { threshold: "50" }, text: "Saved" };
}
