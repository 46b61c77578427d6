// Compiles Token.sol; prints what the tests need of it: the code that deploys it and its functions' selectors.
import { readFileSync } from "node:fs";
import solc from "solc";

const name = "Token.sol";
const output = JSON.parse(
  solc.compile(
    JSON.stringify({
      language: "Solidity",
      sources: { [name]: { content: readFileSync(new URL(name, import.meta.url), "utf8") } },
      settings: {
        evmVersion: "paris",
        optimizer: { enabled: true },
        outputSelection: { "*": { "*": ["evm.bytecode.object", "evm.methodIdentifiers"] } },
      },
    }),
  ),
);
if (output.errors?.length) {
  for (const error of output.errors) console.error(error.formattedMessage);
  process.exit(1);
}
const { bytecode, methodIdentifiers } = output.contracts[name].Token.evm;
console.log(JSON.stringify({ bytecode: bytecode.object, selectors: methodIdentifiers }));
