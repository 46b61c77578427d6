// Unmodified x402 clients pay in a plain sandbox, where nothing was set up for them: @x402/fetch, @x402/axios and mppx.
import assert from "node:assert/strict";
import axios from "axios";
import { wrapAxiosWithPaymentFromConfig } from "@x402/axios";
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from "@x402/fetch";
import { ExactEvmScheme } from "@x402/evm";
import { Mppx, evm } from "mppx/client";
import { privateKeyToAccount } from "viem/accounts";

const { AGENT_URL, PAYER_KEY, TOKEN } = process.env;
assert(AGENT_URL && PAYER_KEY && TOKEN);
const account = privateKeyToAccount(PAYER_KEY);
const url = `${AGENT_URL}/api/agentic/checkout`;
const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
const schemes = [{ network: "eip155:*", client: new ExactEvmScheme(account) }];

async function bought(client, status, body, receipt) {
  let order = body;
  assert(status === 200 || status === 202, `${client}: HTTP ${status}: ${JSON.stringify(order)}`);
  for (let tries = 0; order.status !== "COMPLETED"; tries++) {
    assert(tries < 100 && order.status !== "FAILED", JSON.stringify(order));
    await new Promise((resolve) => setTimeout(resolve, 200));
    order = await (await fetch(order.payment.pollingUrl)).json();
  }
  if (status === 200) {
    const settled = decodePaymentResponseHeader(receipt);
    assert(settled.success && settled.payer === account.address && settled.transaction === order.txHash);
  }
  console.log(`${client}: HTTP ${status}, ${order.esim.lpaString}`);
}

const wish = JSON.stringify({ packageCode: "JP-1GB-7D" });
async function withFetch(client, pay) {
  const answer = await pay(url, { method: "POST", headers, body: wish });
  await bought(client, answer.status, await answer.json(), answer.headers.get("PAYMENT-RESPONSE"));
}

// The clients' own safeguard: a token that they do not know must be allowed by name.
const offers = (await (await fetch(url, { method: "POST", headers, body: wish })).json()).accepts;
const allowedAssets = offers.map(({ network, asset }) => ({ network, asset, maxAmountPerPayment: "20000000" }));
const strict = wrapFetchWithPaymentFromConfig(fetch, { schemes });
await assert.rejects(withFetch("@x402/fetch, not told of the token", strict), /spendControls/);
await withFetch("@x402/fetch", wrapFetchWithPaymentFromConfig(fetch, { schemes, spendControls: { allowedAssets } }));
await withFetch("mppx", Mppx.create({ methods: [evm.charge({ account })], polyfill: false }).fetch);
const api = wrapAxiosWithPaymentFromConfig(axios.create({ validateStatus: (status) => status < 300 }), { schemes });
const answer = await api.post(url, wish, { headers });
await bought("@x402/axios", answer.status, answer.data, answer.headers["payment-response"]);
