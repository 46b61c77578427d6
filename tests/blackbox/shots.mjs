// Takes the pictures in docs/images anew, of the sandbox at API_URL. CONTRIBUTING.md has the command.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { browser } from "./browser.mjs";

const { API_URL } = process.env;
const images = fileURLToPath(new URL("../../docs/images/", import.meta.url));
const plan = "JP-5GB-30D";

async function text(path, init) {
  const answer = await fetch(API_URL + path, init);
  assert(answer.ok, `${path}: ${answer.status}`);
  return answer.text();
}

// A guest's purchase: the id of its invoice.
async function checkOut() {
  const body = new URLSearchParams({ plan, email: "ann@example.com", network: "POLYGON" });
  return (await text("/checkout", { method: "POST", body })).match(/inv_\w+/)[0];
}

// Pays, and waits for the path of the install page.
async function deliver(invoiceId) {
  const headers = { "content-type": "application/json" };
  await text("/sandbox/pay", { method: "POST", headers, body: JSON.stringify({ invoiceId }) });
  for (let tries = 0; tries < 300; tries += 1) {
    const link = (await text(`/pay/${invoiceId}`)).match(/\/esim\/\w+/);
    if (link) return link[0];
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the eSIM did not come");
}

// A part of a page. Those of buyers are equally high, because they stand side by side.
async function shoot(name, path, width, height = 1280) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: "light" });
  const answer = await page.goto(API_URL + path, { waitUntil: "networkidle" });
  assert(answer.ok(), `${path}: ${answer.status()}`);
  await page.screenshot({ path: `${images}${name}.png` });
  await page.close();
}

mkdirSync(images, { recursive: true });
try {
  await shoot("checkout", `/checkout?plan=${plan}`, 800);
  const invoice = await checkOut();
  await shoot("pay", `/pay/${invoice}`, 390);
  await shoot("install", await deliver(invoice), 390);
  await shoot("docs", "/docs#placeOrder", 1280, 800);
} finally {
  await browser.close();
}
