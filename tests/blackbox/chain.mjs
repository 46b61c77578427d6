// Makes an anvil with Base's chain id look like Base to clients: a token that takes signatures stands where USDC
// does, and the payer has some. Usage: chain.mjs NODE_URL USDC_JSON PAYER GAS_PAYER
import { readFileSync } from "node:fs";
import { createTestClient, encodeFunctionData, http, parseAbi, parseEther, publicActions, walletActions } from "viem";

const [url, compiled, payer, gasPayer] = process.argv.slice(2);
const usdc = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
const node = createTestClient({ mode: "anvil", transport: http(url) }).extend(publicActions).extend(walletActions);
const abi = parseAbi(["function init(string,string,string)", "function mint(address,uint256)"]);

const { runtime } = JSON.parse(readFileSync(compiled, "utf8"));
await node.setCode({ address: usdc, bytecode: `0x${runtime}` });
await node.setBalance({ address: gasPayer, value: parseEther("1") });
const [account] = await node.getAddresses();
const call = async (functionName, args) => {
  const data = encodeFunctionData({ abi, functionName, args });
  const hash = await node.sendTransaction({ account, to: usdc, data, chain: null });
  await node.waitForTransactionReceipt({ hash });
};
await call("init", ["USD Coin", "USDC", "2"]);
await call("mint", [payer, 1_000_000_000n]);
