// Unmodified x402 clients buy eSIMs: @x402/fetch within and above the sum that it pays unless told otherwise, and
// mppx. Each must get its eSIM, and leave one transfer of the exact amount behind.
import assert from "node:assert/strict";
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from "@x402/fetch";
import { ExactEvmScheme } from "@x402/evm";
import { Mppx, evm } from "mppx/client";
import { createPublicClient, http, parseAbi, parseAbiItem } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const { API_URL, NODE_URL, PAYER_KEY } = process.env;
assert(API_URL && NODE_URL && PAYER_KEY);
const account = privateKeyToAccount(PAYER_KEY);
const chain = createPublicClient({ transport: http(NODE_URL) });
const usdc = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
const balance = () =>
  chain.readContract({
    address: usdc,
    abi: parseAbi(["function balanceOf(address) view returns (uint256)"]),
    functionName: "balanceOf",
    args: [account.address],
  });

async function json(path, body, headers = {}) {
  const init = body && { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(API_URL + path, { ...init, headers: { "content-type": "application/json", ...headers } });
  return answer.json();
}

const email = "payer@example.com";
await json("/api/agentic/auth/request-otp", { email });
const { emails } = await json(`/sandbox/outbox?email=${email}`);
const otp = /\b\d{6}\b/.exec(emails[0].text)?.[0];
const { token } = await json("/api/agentic/auth/verify-otp", { email, otp, agentName: "blackbox" });
assert(token, "no token");

const { plans } = await json("/api/products/search?country=France&limit=200");
const byPrice = [...plans].sort((a, b) => a.retailPrice - b.retailPrice);
const [cheap, dear] = [byPrice[0], byPrice.find((plan) => plan.retailPrice > 1)];
assert(cheap && dear, "no plans");

// Buys with a client's fetch: the eSIM, and what it cost the payer.
async function buy(pay, packageCode) {
  const before = await balance();
  const answer = await pay(`${API_URL}/api/agentic/checkout`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ packageCode }),
  });
  let order = await answer.json();
  assert(answer.status === 200 || answer.status === 202, `HTTP ${answer.status}: ${JSON.stringify(order)}`);
  for (let tries = 0; order.status !== "COMPLETED"; tries++) {
    assert(tries < 300 && order.status !== "FAILED", JSON.stringify(order));
    await new Promise((resolve) => setTimeout(resolve, 200));
    order = await json(`/api/agentic/order/${order.invoiceId}`);
  }
  assert.match(order.esim.lpaString, /^LPA:1\$/);
  const units = BigInt(order.payment.expectedAmountUnits);
  assert.equal(before - (await balance()), units, "paid once, and exactly");
  const receipt = answer.headers.get("PAYMENT-RESPONSE");
  if (answer.status === 200) {
    assert(receipt, "no PAYMENT-RESPONSE");
    const settled = decodePaymentResponseHeader(receipt);
    assert(settled.success && settled.network === "eip155:8453" && settled.payer === account.address);
    assert.equal(settled.transaction, order.txHash);
  }
  const logs = await chain.getLogs({
    address: usdc,
    event: parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)"),
    args: { from: account.address },
    fromBlock: 0n,
  });
  assert.equal(logs.filter((log) => log.transactionHash === order.txHash).length, 1);
  console.log(`${packageCode}: HTTP ${answer.status}, ${units} units, ${order.esim.iccid}`);
}

const schemes = [{ network: "eip155:8453", client: new ExactEvmScheme(account) }];
const stock = wrapFetchWithPaymentFromConfig(fetch, { schemes });
if (cheap.retailPrice <= 1) await buy(stock, cheap.packageCode);
await assert.rejects(buy(stock, dear.packageCode), /spendControls/);
const raised = wrapFetchWithPaymentFromConfig(fetch, { schemes, spendControls: { maxAmountPerPayment: "$50" } });
await buy(raised, dear.packageCode);
await buy(Mppx.create({ methods: [evm.charge({ account })], polyfill: false }).fetch, dear.packageCode);
