// The scenes of /portal, in the form of states.mjs: the owner of the demo partner's team signs in, works through every section,
// turns on a second factor and signs in anew. They come in this order, in one browser that keeps its cookies.
import { createHmac } from "node:crypto";

import { forgetMails, mailed, mailedSince } from "./states.mjs";

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
  const key = await page.locator(`${confirm} [name=secret]`).inputValue();
  yield { name: "portal-factor-wrong", form: confirm, fields: { code: "abcdef" }, text: "This code is wrong" };
  yield { name: "portal-factor-codes", form: confirm, fields: { code: shown(key) }, text: "shown this once" };
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
  yield { name: "portal-back", fields: { code: next(key) }, text: "Needs attention" };
  yield { name: "portal-factor-gone", path: "/portal/settings/second-factor", text: "It is on" };
  yield { name: "portal-factor-turned-off", form: once("/portal/settings/second-factor/off"), fields: { code: spare }, text: "The second factor is off" };
  yield { name: "portal-settings-high", path: "/portal/settings", text: "Low-balance warning" };
  yield { name: "portal-settings-saved", form: warning, fields: { threshold: "50" }, text: "Saved" };
}
