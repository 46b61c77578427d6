//! A real EVM node for one test: anvil on a free port, mining only when told, with our token deployed on it.
//! SIMGATE_TEST_ANVIL names the program and SIMGATE_TEST_TOKEN the compiled token, beside which is that of the token
//! that takes signatures; `./test` sets both.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::environment::required;
use crate::support::harness::{client, until};
use crate::support::ports::free_port;

/// Enough for anything that the token does; a transaction that fails must not be refused by an estimate.
const GAS: &str = "0x493e0";
const GAS_TO_DEPLOY: &str = "0x2dc6c0";
/// Where USDC is on Polygon.
const USDC: &str = "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359";
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// What `tests/contracts/compile.mjs` makes of a contract.
#[derive(Deserialize)]
struct Compiled {
    bytecode: String,
    runtime: String,
    selectors: HashMap<String, String>,
}

pub struct Node {
    child: Child,
    pub url: String,
    client: reqwest::Client,
    compiled: Compiled,
    /// The account that deploys tokens and pays with them.
    pub payer: String,
    pub usdc: String,
    pub usdt: String,
}

/// What a node is asked to be.
#[derive(Clone, Copy)]
pub struct Kind {
    pub chain_id: u64,
    /// `safe` is so many blocks below the head, and `finalized` twice as many.
    pub slots: u64,
    pub decimals: u8,
    /// Blocks carry whole seconds: with the clocks alike, a payment could seem older than its invoice.
    pub seconds_ahead: i64,
    /// The version in the domain of a USDC that takes signatures; none: it is an ordinary token.
    pub signing: Option<&'static str>,
}

impl Default for Kind {
    fn default() -> Kind {
        Kind { chain_id: 137, slots: 1, decimals: 6, seconds_ahead: 2, signing: None }
    }
}

/// Starts anvil, and starts it again when somebody took the free port first.
async fn spawn(kind: Kind, client: &reqwest::Client) -> (Child, String) {
    loop {
        let port = free_port();
        let (mut child, url) = (spawn_on(kind, port), format!("http://127.0.0.1:{port}"));
        let answers = until("anvil answers or has ended", async || {
            if child.try_wait().unwrap().is_some() {
                return Some(false);
            }
            client.get(&url).send().await.ok().map(|_| true)
        })
        .await;
        if answers && child.try_wait().unwrap().is_none() {
            return (child, url);
        }
    }
}

fn spawn_on(kind: Kind, port: u16) -> Child {
    let program = required("SIMGATE_TEST_ANVIL");
    let mut command = Command::new(program);
    // Its usual accounts are the addresses of our sandbox key: a payer must be somebody else.
    command.args(["--silent", "--no-mining", "--host", "127.0.0.1", "--mnemonic-seed-unsafe", "3"]);
    command.args(["--port", &port.to_string(), "--chain-id", &kind.chain_id.to_string()]);
    command.args(["--slots-in-an-epoch", &kind.slots.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

impl Node {
    pub async fn start(kind: Kind) -> Node {
        let token = std::path::PathBuf::from(required("SIMGATE_TEST_TOKEN"));
        let text = std::fs::read_to_string(&token).unwrap();
        let client = client().build().unwrap();
        let (child, url) = spawn(kind, &client).await;
        let mut node = Node {
            child,
            url,
            client,
            compiled: serde_json::from_str(&text).unwrap(),
            payer: String::new(),
            usdc: String::new(),
            usdt: String::new(),
        };
        node.payer = node.rpc("eth_accounts", json!([])).await[0].as_str().unwrap().to_string();
        node.pass_time(kind.seconds_ahead).await;
        node.usdc = match kind.signing {
            Some(version) => {
                let text = std::fs::read_to_string(token.with_file_name("usdc.json")).unwrap();
                node.found_usdc(serde_json::from_str(&text).unwrap(), version).await
            }
            None => node.deploy("USDC", kind.decimals).await,
        };
        node.usdt = node.deploy("USDT", 6).await;
        node
    }

    pub async fn rpc(&self, method: &str, params: Value) -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer: Value =
            self.client.post(&self.url).json(&call).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer.get("error"), None, "{method} {params}");
        answer["result"].clone()
    }

    async fn transact(&self, transaction: Value) -> String {
        self.rpc("eth_sendTransaction", json!([transaction])).await.as_str().unwrap().to_string()
    }

    /// Another token of the same code: its address. Mines a block.
    pub async fn deploy(&self, symbol: &str, decimals: u8) -> String {
        // A string is an offset here; its length and text follow at the end.
        let arguments = format!(
            "{:064x}{decimals:064x}{:064x}{:0<64}",
            64,
            symbol.len(),
            alloy_primitives::hex::encode(symbol)
        );
        let data = format!("0x{}{arguments}", self.compiled.bytecode);
        let hash = self.transact(json!({ "from": self.payer, "gas": GAS_TO_DEPLOY, "data": data })).await;
        self.mine(1).await;
        let receipt = self.receipt(&hash).await;
        assert_eq!(receipt["status"], "0x1", "the token was not deployed");
        receipt["contractAddress"].as_str().unwrap().to_string()
    }

    /// Puts the token that takes signatures where USDC is on Polygon. Mines a block.
    async fn found_usdc(&mut self, compiled: Compiled, version: &str) -> String {
        self.rpc("anvil_setCode", json!([USDC, format!("0x{}", compiled.runtime)])).await;
        self.compiled.selectors.extend(compiled.selectors);
        let texts = ["USD Coin", "USDC", version];
        let mut arguments: Vec<String> = (0..3).map(|n| format!("{:064x}", 96 + 64 * n)).collect();
        arguments.extend(texts.iter().flat_map(|text| {
            [format!("{:064x}", text.len()), format!("{:0<64}", alloy_primitives::hex::encode(text))]
        }));
        self.call(USDC, "init(string,string,string)", &arguments).await;
        self.mine(1).await;
        USDC.to_string()
    }

    pub async fn mint(&self, to: &str, amount: Usd) {
        self.call(&self.usdc, "mint(address,uint256)", &[address(to), number(amount)]).await;
        self.mine(1).await;
    }

    /// The issuer bars somebody, or no longer does.
    pub async fn bar(&self, who: &str, barred: bool) {
        let arguments = [address(who), format!("{:064x}", u8::from(barred))];
        self.call(&self.usdc, "blacklist(address,bool)", &arguments).await;
        self.mine(1).await;
    }

    /// Sends a call as somebody else, offering this much for gas, in gwei.
    pub async fn send_as(&self, sender: &str, data: &str, gwei: u64) -> String {
        self.rpc("anvil_setBalance", json!([sender, "0xde0b6b3a7640000"])).await;
        self.rpc("anvil_impersonateAccount", json!([sender])).await;
        let price = format!("{:#x}", gwei * 1_000_000_000);
        let transaction =
            json!({ "from": sender, "to": self.usdc, "gas": GAS, "data": data, "gasPrice": price });
        self.transact(transaction).await
    }

    /// How often money moved to an address.
    pub async fn transfers_to(&self, to: &str) -> usize {
        let topics = json!([TRANSFER, null, format!("0x{}", address(to))]);
        let filter = json!({ "address": self.usdc, "fromBlock": "0x0", "topics": topics });
        self.rpc("eth_getLogs", json!([filter])).await.as_array().unwrap().len()
    }

    pub fn calldata(&self, function: &str, arguments: &[String]) -> String {
        let selector = self.compiled.selectors.get(function).unwrap_or_else(|| panic!("no {function}"));
        format!("0x{selector}{}", arguments.concat())
    }

    /// A call of the token, as it is given to the node.
    fn transaction(&self, token: &str, function: &str, arguments: &[String]) -> Value {
        let data = self.calldata(function, arguments);
        json!({ "from": self.payer, "to": token, "gas": GAS, "data": data })
    }

    /// Puts a call of the token into the pool; it is in a block after the next `mine`.
    async fn call(&self, token: &str, function: &str, arguments: &[String]) -> String {
        self.transact(self.transaction(token, function, arguments)).await
    }

    pub async fn pay(&self, token: &str, to: &str, amount: Usd) -> String {
        self.call(token, "transfer(address,uint256)", &[address(to), number(amount)]).await
    }

    /// Two payments in one transaction.
    pub async fn pay_two(&self, token: &str, first: (&str, Usd), second: (&str, Usd)) -> String {
        let arguments = [address(first.0), number(first.1), address(second.0), number(second.1)];
        self.call(token, "payTwo(address,uint256,address,uint256)", &arguments).await
    }

    /// A payment whose amount is the number of its block, in dollars.
    pub async fn pay_by_height(&self, token: &str, to: &str) -> String {
        self.call(token, "payByHeight(address)", &[address(to)]).await
    }

    /// A payment that is another one in every second block: in this token to `to`, or in `other` to `other_to`.
    pub async fn pay_in_turn(
        &self,
        token: &str,
        to: &str,
        (other, other_to): (&str, &str),
        amount: Usd,
    ) -> String {
        let arguments = [address(to), address(other), address(other_to), number(amount)];
        self.call(token, "payInTurn(address,address,address,uint256)", &arguments).await
    }

    pub async fn pay_and_revert(&self, token: &str, to: &str, amount: Usd) -> String {
        self.call(token, "payThenRevert(address,uint256)", &[address(to), number(amount)]).await
    }

    /// A transfer of nothing.
    pub async fn pretend(&self, token: &str, to: &str) -> String {
        self.call(token, "pretend(address,address)", &[address(&self.payer), address(to)]).await
    }

    pub async fn balance_of(&self, token: &str, owner: &str) -> Usd {
        let call = self.transaction(token, "balanceOf(address)", &[address(owner)]);
        let word = self.rpc("eth_call", json!([call, "latest"])).await;
        let digits = word.as_str().unwrap().strip_prefix("0x").unwrap();
        Usd::from_micros(i64::from_str_radix(digits, 16).unwrap())
    }

    pub async fn mine(&self, blocks: i64) {
        self.rpc("anvil_mine", json!([blocks])).await;
    }

    pub async fn head(&self) -> i64 {
        quantity(&self.rpc("eth_blockNumber", json!([])).await)
    }

    /// Null when it is in no block.
    pub async fn receipt(&self, hash: &str) -> Value {
        self.rpc("eth_getTransactionReceipt", json!([hash])).await
    }

    /// Which block holds this transaction.
    pub async fn block_of(&self, hash: &str) -> i64 {
        quantity(&self.receipt(hash).await["blockNumber"])
    }

    /// The signed transaction, to be mined again elsewhere.
    pub async fn raw(&self, hash: &str) -> Value {
        self.rpc("eth_getRawTransactionByHash", json!([hash])).await
    }

    /// Replaces the newest blocks by others that hold these transactions, each with the number of its block among
    /// the new ones.
    pub async fn reorg(&self, depth: i64, transactions: &[(Value, i64)]) {
        let before = self.head().await;
        self.rpc("anvil_reorg", json!([depth, transactions])).await;
        assert_eq!(self.head().await, before, "a reorg keeps the height");
    }

    /// As `pay`, to be mined by `reorg` in the place of an earlier transaction.
    pub async fn instead_of(&self, hash: &str, token: &str, to: &str, amount: Usd) -> Value {
        let earlier = self.rpc("eth_getTransactionByHash", json!([hash])).await;
        let mut made = self.transaction(token, "transfer(address,uint256)", &[address(to), number(amount)]);
        made["nonce"] = earlier["nonce"].clone();
        made
    }

    /// Puts a signed transaction into the pool again.
    pub async fn send_again(&self, raw: &Value) {
        self.rpc("eth_sendRawTransaction", json!([raw])).await;
    }

    /// The same, also when somebody did it before.
    pub async fn try_again(&self, raw: &Value) {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [raw] });
        self.client.post(&self.url).json(&call).send().await.unwrap();
    }

    /// Everything as it is now, to go back to.
    pub async fn snapshot(&self) -> Value {
        self.rpc("evm_snapshot", json!([])).await
    }

    /// Forgets every block since.
    pub async fn go_back(&self, snapshot: &Value) {
        assert_eq!(self.rpc("evm_revert", json!([snapshot])).await, json!(true));
    }

    /// The chain's clock is so far ahead of ours from the next block on.
    pub async fn pass_time(&self, seconds: i64) {
        self.rpc("evm_increaseTime", json!([seconds])).await;
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn address(text: &str) -> String {
    format!("{:0>64}", text.strip_prefix("0x").unwrap().to_lowercase())
}

pub fn number(amount: Usd) -> String {
    format!("{:064x}", amount.micros())
}

pub fn quantity(value: &Value) -> i64 {
    let text = value.as_str().unwrap_or_else(|| panic!("{value} is no number"));
    i64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap()
}
