// Compiles the contracts beside it into the folder that is named: token.json, with the code that deploys it, and
// usdc.json, with the code that stands at its address; each with its functions' selectors.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import solc from "solc";

const names = ["Token", "Usdc"];
const source = (name) => ({ content: readFileSync(new URL(`${name}.sol`, import.meta.url), "utf8") });
const output = JSON.parse(
  solc.compile(
    JSON.stringify({
      language: "Solidity",
      sources: Object.fromEntries(names.map((name) => [`${name}.sol`, source(name)])),
      settings: {
        evmVersion: "paris",
        optimizer: { enabled: true },
        outputSelection: {
          "*": { "*": ["evm.bytecode.object", "evm.deployedBytecode.object", "evm.methodIdentifiers"] },
        },
      },
    }),
  ),
);
if (output.errors?.length) {
  for (const error of output.errors) console.error(error.formattedMessage);
  process.exit(1);
}
for (const name of names) {
  const { bytecode, deployedBytecode, methodIdentifiers } = output.contracts[`${name}.sol`][name].evm;
  const compiled = { bytecode: bytecode.object, runtime: deployedBytecode.object, selectors: methodIdentifiers };
  writeFileSync(join(process.argv[2], `${name.toLowerCase()}.json`), JSON.stringify(compiled));
}
