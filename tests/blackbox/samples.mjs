// samples.mjs URL LANGUAGE: runs the samples of the documentation pages in one language, as they stand there and in the
// order of the pages. What a reader would replace is replaced: ids, references, mailed codes, and whose mailbox it is.
// API_KEY and API_SECRET are a partner's, TOKEN is of a customer who has money.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import ts from "typescript";

const [, , url, language] = process.argv;
const { API_KEY, API_SECRET, TOKEN, PYTHON } = process.env;
assert(url && language && API_KEY && API_SECRET && TOKEN && PYTHON);
const environment = { ...process.env, B2B_KEY: API_KEY, B2B_SECRET: API_SECRET };
const partner = { "X-B2B-Key": API_KEY, "X-B2B-Secret": API_SECRET };
const customer = { Authorization: `Bearer ${TOKEN}` };

async function ask(path, { body, headers, method = body ? "POST" : "GET" } = {}) {
  const answer = await fetch(url + path, {
    method,
    headers: { "content-type": "application/json", ...headers },
    body: body && JSON.stringify(body),
  });
  const told = await answer.json();
  assert(answer.ok, `${path}: ${answer.status} ${JSON.stringify(told)}`);
  return told;
}

async function until(what, look) {
  for (let tries = 0; tries < 300; tries += 1) {
    const found = await look();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
  assert.fail(`waited for: ${what}`);
}

// What is replaced, and by what. A page fills it before its first sample.
const place = async (path, headers) =>
  ask(path, { body: { packageCode: "JP-1GB-7D" }, headers: { ...headers, "Idempotency-Key": crypto.randomUUID() } });
const prepared = {
  "/docs": async () => {
    const asked = { amountUsd: 250, currency: "USDC", network: "BASE" };
    const { invoiceId } = await ask("/api/b2b/v1/balance/deposit", { body: asked, headers: partner });
    const { txHash } = await ask("/sandbox/pay", { body: { invoiceId } });
    const { order } = await ask("/api/b2b/v1/orders", { body: { packageCode: "JP-1GB-7D" }, headers: partner });
    return { invoiceId, txHash, orderId: order.id, iccid: order.iccid };
  },
  "/docs/consumer": async () => {
    const { orderId } = await place("/api/orders", customer);
    return { orderId };
  },
  // The last one that needs the token, which its last sample revokes.
  "/docs/agentic": async () => {
    const { invoiceId } = await (
      await fetch(`${url}/api/agentic/checkout`, {
        method: "POST",
        headers: { "content-type": "application/json", ...customer },
        body: JSON.stringify({ packageCode: "JP-1GB-7D" }),
      })
    ).json();
    const { tokens } = await ask("/api/agentic/auth/tokens", { headers: customer });
    return { invoiceId, tokenId: tokens[0].id };
  },
  "/docs/sandbox": async () => {
    const { order } = await ask("/api/b2b/v1/orders", { body: { packageCode: "JP-1GB-7D" }, headers: partner });
    const asked = { amountUsd: 250, currency: "USDC", network: "POLYGON" };
    const { invoiceId } = await ask("/api/b2b/v1/balance/deposit", { body: asked, headers: partner });
    return { invoiceId, iccid: order.iccid };
  },
};
// What an operation needs besides: an eSIM that can be given back, a code that was mailed.
const mailed = async (email) => {
  const read = async () => (await ask(`/sandbox/outbox?email=${email}`)).emails[0]?.text.match(/\b\d{6}\b/)?.[0];
  return { mailedCode: await until(`a code for ${email}`, read) };
};
const underReview = async (cancel, headers) => {
  await ask("/sandbox/supplier", { body: { mode: "reviewed" } });
  await ask(cancel, { method: "POST", headers });
  await ask("/sandbox/supplier", { body: { mode: "ok" } });
};
const needed = {
  "/docs#cancelOrder": async () => {
    const { order } = await ask("/api/b2b/v1/orders", { body: { packageCode: "JP-1GB-7D" }, headers: partner });
    return { orderId: order.id };
  },
  "/docs/consumer#cancelOrder": async () => ({ orderId: (await place("/api/orders", customer)).orderId }),
  "/docs#withdrawCancel": async () => {
    const { order } = await ask("/api/b2b/v1/orders", { body: { packageCode: "JP-1GB-7D" }, headers: partner });
    await underReview(`/api/b2b/v1/orders/${order.id}/cancel`, partner);
    return { orderId: order.id };
  },
  "/docs/consumer#withdrawCancel": async () => {
    const { orderId } = await place("/api/orders", customer);
    await underReview(`/api/orders/${orderId}/cancel`, customer);
    return { orderId };
  },
  "/docs#replayWebhook": async () => ({
    eventId: (await ask("/api/b2b/v1/events?limit=1", { headers: partner })).nextAfter,
  }),
  "/docs#testWebhook": async () => {
    const body = { url: "https://hooks.example.com/simgate" };
    const { webhook } = await ask("/api/b2b/v1/webhooks", { body, headers: partner });
    return { webhookId: webhook.id };
  },
  // A webhook is tried by hand once a second.
  "/docs#redeliver": async (known) => {
    const path = `/api/b2b/v1/webhooks/${known.webhookId}/deliveries`;
    const { deliveries } = await ask(path, { headers: partner });
    const tried = Date.parse(deliveries[0].sentAt);
    await until("a second has passed", async () => Date.now() > tried + 1_000);
    return { deliveryId: deliveries[0].id };
  },
  "/docs/agentic#verifyOtp": () => mailed(mailbox("/docs/agentic")),
  "/docs/consumer#verifyCode": () => mailed(mailbox("/docs/consumer")),
};
// A mailbox of its own for each page: an address gets one mail a minute.
const mailbox = (page) => `${page.split("/").at(-1)}-${language}@example.com`;

function replaced(sample, page, known) {
  const patterns = [
    [/\binv_\w+/g, known.invoiceId],
    [/\bord_\w+/g, known.orderId],
    [/\btok_\w+/g, known.tokenId],
    [/\bwhk_\w+/g, known.webhookId],
    [/\bdlv_\w+/g, known.deliveryId],
    [/\bevt_\w+/g, known.eventId],
    [/\b89\d{17,18}\b/g, known.iccid],
    [/\b0x[0-9a-f]{64}\b/g, known.txHash],
    [/\bbooking-\d+/g, `samples-${language}`],
    [/\bann(?:@|%40)example\.com/g, mailbox(page)],
    [/(?<="(?:otp|code)": ")\d{6}/g, known.mailedCode],
  ];
  let text = sample;
  for (const [pattern, value] of patterns) {
    assert(value || !pattern.test(sample), `nothing is known for ${pattern}`);
    text = text.replace(pattern, value);
  }
  return text;
}

// The status that a sample ended with, and all that it printed.
const run = {
  curl: (sample) => {
    const text = execFileSync("bash", ["-c", `curl() { command curl -w '\\n%{http_code}' "$@"; }\n${sample}`], options);
    return [Number(text.trim().split("\n").at(-1)), text];
  },
  typescript: (sample) => {
    const { outputText } = ts.transpileModule(sample, { compilerOptions: { module: "esnext", target: "esnext" } });
    const text = execFileSync("node", ["--input-type=module", "-e", outputText], options);
    return [Number(text.split(" ")[0]), text];
  },
  python: (sample) => {
    const text = execFileSync(PYTHON, ["-c", sample], options);
    return [Number(text.split(" ")[0]), text];
  },
}[language];
const options = { env: environment, encoding: "utf8", timeout: 60_000 };

const unescaped = (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
let ran = 0;
for (const page of Object.keys(prepared)) {
  const html = await (await fetch(url + page)).text();
  const known = await prepared[page]();
  for (const section of html.split('<section class="operation" id="').slice(1)) {
    const id = section.split('"')[0];
    const sample = section.match(new RegExp(`class="sample ${language}">.*?<code>(.*?)</code>`, "s"))[1];
    Object.assign(known, await needed[`${page}#${id}`]?.(known));
    const [status, text] = run(replaced(unescaped(sample), page, known));
    const fine = status === 200 || status === 202 || (status === 402 && id === "checkout");
    assert(fine, `${page}#${id} in ${language}: ${text}`);
    ran += 1;
  }
}
await ask("/sandbox/supplier", { body: { mode: "ok" } });
await ask("/sandbox/job", { body: { job: "recover", mode: "ok" } });
for (const { network } of (await ask("/sandbox/chain")).chains) {
  await ask("/sandbox/chain", { body: { network, mode: "ok" } });
}
console.log(`${ran} samples in ${language}`);
