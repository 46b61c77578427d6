import { chromium } from "playwright-core";
const base = "http://127.0.0.1:9011";
const out = "/tmp/sg/look/";
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium" });
const which = process.argv.slice(2);
async function shot(name, path, act) {
  if (which.length && !which.some((w) => name.startsWith(w))) return;
  for (const [w, h] of [[390, 844], [1280, 900]]) for (const colorScheme of ["light", "dark"]) {
    if (colorScheme === "dark" && w === 1280) continue;
    const ctx = await browser.newContext({ viewport: { width: w, height: h }, colorScheme, deviceScaleFactor: 1 });
    const page = await ctx.newPage();
    page.on("console", (m) => console.log(name, m.type(), m.text()));
    page.on("pageerror", (e) => console.log(name, "ERR", e.message));
    await page.goto(base + path, { waitUntil: "load" });
    if (act) await act(page);
    await page.waitForTimeout(300);
    await page.screenshot({ path: `${out}${name}-${w}-${colorScheme}.png`, fullPage: true });
    await ctx.close();
  }
}
const json = async (p, b) => (await fetch(base + p, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(b) })).json();
async function co(network = "BASE") {
  const body = new URLSearchParams({ plan: "JP-1GB-7D", email: "kid@example.com", means: "USDC " + network });
  const t = await (await fetch(base + "/checkout", { method: "POST", body, headers: { accept: "text/html" } })).text();
  return t.match(/inv_\w+/)[0];
}
const wait = async (p, text) => { for (let i = 0; i < 100; i++) { const t = await (await fetch(base + p, {headers:{accept:"text/html"}})).text(); if (t.includes(text)) return t; await new Promise((r) => setTimeout(r, 100)); } throw new Error(p + text); };
await shot("checkout", "/checkout?plan=JP-1GB-7D");
await shot("regional", "/checkout?plan=JAPAN-KOREA-1GB-7D");
const a = await co();
await shot("pay", "/pay/" + a);
const s = await co("ARBITRUM"); await json("/sandbox/pay", { invoiceId: s }); await wait("/pay/" + s, "Payment seen");
await shot("seen", "/pay/" + s);
await json("/sandbox/pay", { invoiceId: a }); const done = await wait("/pay/" + a, "eSIM is ready");
await shot("ready", "/pay/" + a);
const tok = done.match(/\/esim\/\w+/)[0];
await shot("esim", tok);
await shot("iphone", tok + "?device=iphone");
await json("/sandbox/supplier", { mode: "reject" });
const f = await co(); await json("/sandbox/pay", { invoiceId: f }); await wait("/pay/" + f, "owed to you");
await json("/sandbox/supplier", { mode: "ok" });
await shot("failed", "/pay/" + f);
await shot("error", "/nowhere");
await browser.close();
