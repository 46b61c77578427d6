//! A small node whose blocks, logs and manners a test can set. Its answers come in reverse order, because JSON-RPC
//! allows it, and its log indexes count over the block, as they do.

use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use simgate::chain::address;
use simgate::domain::network::AddressKind;

pub const USDC: &str = "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359";
pub const USDT: &str = "0xc2132D05D31c914a87C6611C10748AEb04B58e8F";
pub const FAKE: &str = "0x00000000000000000000000000000000000fa4e0";
pub const TRON_USDT: &str = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";
pub const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
pub const APPROVAL: &str = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925";
pub const ALICE: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
pub const BOB: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
pub const CAROL: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
pub const KEY: &str = "k3y-that-opens-the-node";

pub fn word(address: &str) -> String {
    let kind = if address.starts_with('T') { AddressKind::Tron } else { AddressKind::Evm };
    let bytes = address::bytes(kind, address).unwrap();
    format!("0x{:0>64}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())
}

pub fn plain(address: &str) -> String {
    format!("0x{}", &word(address)[26..])
}

/// A hash that one can recognise.
pub fn hash(name: &str, number: i64) -> String {
    let name: String = name.bytes().map(|b| format!("{b:02x}")).collect();
    format!("0x{name:0<48}{number:016x}")
}

#[derive(Clone)]
pub struct Log {
    pub contract: String,
    pub topics: Vec<String>,
    pub data: String,
    pub removed: bool,
}

pub fn moved(contract: &str, from: &str, to: &str, value: u128) -> Log {
    Log {
        contract: plain(contract),
        topics: vec![TRANSFER.into(), word(from), word(to)],
        data: format!("{value:#066x}"),
        removed: false,
    }
}

#[derive(Clone)]
pub struct Tx {
    pub hash: String,
    pub block: i64,
    pub status: &'static str,
    pub logs: Vec<Log>,
}

pub fn tx(name: &str, block: i64, logs: Vec<Log>) -> Tx {
    Tx { hash: hash(name, 0), block, status: "0x1", logs }
}

pub type Spoil = Arc<dyn Fn(usize, String) -> String + Send + Sync>;

#[derive(Clone)]
pub struct Manners {
    pub chain_id: u64,
    pub head: i64,
    pub finalized: Option<i64>,
    /// Part of every block's hash.
    pub fork: &'static str,
    pub txs: Vec<Tx>,
    /// Refuses longer ranges.
    pub most_blocks: i64,
    /// Refuses longer batches.
    pub most_calls: usize,
    /// Answers every request with this and the URL's key.
    pub status: Option<u16>,
    pub decimals: u64,
    pub symbols: Vec<Vec<u8>>,
    /// Every question for a block is answered from another fork than the one before.
    pub flickers: bool,
    /// Receipts come from this fork.
    pub receipts_from: Option<&'static str>,
    /// So many logs are missing at the beginning of each receipt.
    pub receipts_lack: usize,
    pub java_tron: bool,
    /// Changes what is sent: the number of the request, counted from 0, and the answer.
    pub spoil: Option<Spoil>,
    pub requests: usize,
    pub asked: Vec<(String, Value)>,
    pub headers: HeaderMap,
}

pub fn abi_text(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; 96];
    bytes[31] = 32;
    bytes[63] = text.len() as u8;
    bytes[64..64 + text.len()].copy_from_slice(text.as_bytes());
    bytes
}

pub struct Node {
    pub url: String,
    pub manners: Arc<Mutex<Manners>>,
}

impl Node {
    pub async fn start() -> Node {
        let manners = Manners {
            chain_id: 137,
            head: 100,
            finalized: Some(80),
            fork: "main",
            txs: Vec::new(),
            most_blocks: i64::MAX,
            most_calls: usize::MAX,
            status: None,
            decimals: 6,
            symbols: vec![abi_text("USDC"), abi_text("USDT0")],
            flickers: false,
            receipts_from: None,
            receipts_lack: 0,
            java_tron: false,
            spoil: None,
            requests: 0,
            asked: Vec::new(),
            headers: HeaderMap::new(),
        };
        let manners = Arc::new(Mutex::new(manners));
        let router = Router::new().fallback(serve).with_state(manners.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v2/{KEY}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Node { url, manners }
    }

    pub fn set(&self) -> MutexGuard<'_, Manners> {
        self.manners.lock().unwrap()
    }

    /// How often a method was called.
    pub fn asked(&self, method: &str) -> usize {
        self.set().asked.iter().filter(|(name, _)| name == method).count()
    }
}

async fn serve(State(manners): State<Arc<Mutex<Manners>>>, headers: HeaderMap, body: Bytes) -> Response {
    let mut manners = manners.lock().unwrap();
    manners.headers = headers;
    if let Some(status) = manners.status {
        return (StatusCode::from_u16(status).unwrap(), format!("no luck with {KEY}")).into_response();
    }
    let told = match serde_json::from_slice::<Value>(&body).unwrap() {
        Value::Array(calls) if calls.len() > manners.most_calls => {
            let error = json!({"code": -32014, "message": "over the limit of calls"});
            json!({"jsonrpc": "2.0", "id": null, "error": error})
        }
        Value::Array(calls) => calls.iter().rev().map(|call| manners.answer(call)).collect(),
        call => manners.answer(&call),
    };
    let told = serde_json::to_string(&told).unwrap();
    let number = manners.requests;
    manners.requests += 1;
    match manners.spoil.clone() {
        Some(spoil) => spoil(number, told).into_response(),
        None => told.into_response(),
    }
}

fn number(value: &Value) -> i64 {
    i64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

impl Manners {
    fn answer(&mut self, call: &Value) -> Value {
        let method = call["method"].as_str().unwrap();
        let params = &call["params"];
        self.asked.push((method.into(), params.clone()));
        let refuse = |code: i64, message: &str| json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": message}});
        let result = match method {
            "eth_chainId" => json!(format!("{:#x}", self.chain_id)),
            "eth_blockNumber" => json!(format!("{:#x}", self.head)),
            "eth_getBlockByNumber" => match params[0].as_str().unwrap() {
                "latest" => self.block(self.head),
                "finalized" => self.finalized.map_or(Value::Null, |number| self.block(number)),
                "safe" if self.java_tron => return refuse(-32602, "TAG safe not supported"),
                "safe" => self.finalized.map_or(Value::Null, |number| self.block(number + 5)),
                _ => self.block(number(&params[0])),
            },
            "eth_getLogs" => {
                let (from, to) = (number(&params[0]["fromBlock"]), number(&params[0]["toBlock"]));
                if to - from + 1 > self.most_blocks {
                    return refuse(-32005, "exceed maximum block range: 10");
                }
                self.logs(from, to, &params[0])
            }
            "eth_getTransactionReceipt" => self.receipt(params[0].as_str().unwrap()),
            "eth_call" => self.view(&params[0]),
            "eth_maxPriorityFeePerGas" => json!("0x3b9aca00"),
            "eth_estimateGas" => json!("0x186a0"),
            "eth_getBalance" => json!("0xde0b6b3a7640000"),
            "eth_getTransactionCount" => json!("0x7"),
            other => return refuse(-32601, &format!("the method {other} does not exist")),
        };
        json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
    }

    fn block(&mut self, number: i64) -> Value {
        if number > self.head {
            return Value::Null;
        }
        if self.flickers {
            self.fork = if self.fork == "main" { "other" } else { "main" };
        }
        let mut block = json!({
            "number": format!("{number:#x}"), "hash": hash(self.fork, number), "baseFeePerGas": "0x77359400",
            "timestamp": format!("{:#x}", 1_700_000_000 + number * 2),
            "transactions": self.txs.iter().filter(|tx| tx.block == number).map(|tx| &tx.hash).collect::<Vec<_>>(),
        });
        if self.java_tron {
            let odd = json!({
                "difficulty": "0x0", "extraData": "0x", "gasLimit": "0x160ffec8",
                "logsBloom": format!("0x{}", "00".repeat(256)), "miner": "0x1e4cf4a4a5b6ee9e5f3d5e4d6d4f1b5b",
                "mixHash": format!("0x{}", "00".repeat(32)), "nonce": "0x0000000000000000", "stateRoot": "0x",
                "totalDifficulty": "0x0", "uncles": [],
            });
            block.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
        }
        block
    }

    fn log(&self, fork: &str, tx: &Tx, index: usize) -> Value {
        let log = &tx.logs[index];
        json!({
            "address": log.contract, "topics": log.topics, "data": log.data, "removed": log.removed,
            "blockNumber": format!("{:#x}", tx.block), "blockHash": hash(fork, tx.block),
            "transactionHash": tx.hash, "transactionIndex": "0x3", "logIndex": format!("{:#x}", 40 + index),
        })
    }

    fn logs(&self, from: i64, to: i64, filter: &Value) -> Value {
        let wants = |log: &Log| {
            let contract = filter["address"].as_array().unwrap().contains(&json!(log.contract));
            let recipients = filter["topics"].get(2).and_then(Value::as_array);
            // A fake log is shown whatever was asked for: nodes are not to be believed.
            (contract || log.contract == plain(FAKE))
                && recipients.is_none_or(|some| some.contains(&json!(log.topics.get(2))))
        };
        let mut found = Vec::new();
        for tx in self.txs.iter().filter(|tx| (from..=to.min(self.head)).contains(&tx.block)) {
            let wanted = (0..tx.logs.len()).filter(|index| wants(&tx.logs[*index]));
            found.extend(wanted.map(|index| self.log(self.fork, tx, index)));
        }
        json!(found)
    }

    fn receipt(&self, hash_text: &str) -> Value {
        let found = self.txs.iter().find(|tx| tx.hash == hash_text && tx.block <= self.head);
        let Some(tx) = found else { return Value::Null };
        let fork = self.receipts_from.unwrap_or(self.fork);
        let logs: Vec<Value> =
            (self.receipts_lack..tx.logs.len()).map(|index| self.log(fork, tx, index)).collect();
        json!({
            "transactionHash": tx.hash, "blockHash": hash(fork, tx.block), "blockNumber": format!("{:#x}", tx.block),
            "transactionIndex": "0x3", "status": tx.status, "logs": logs, "contractAddress": null, "type": "0x0",
            "gasUsed": "0x186a0", "effectiveGasPrice": "0x77359400",
        })
    }

    fn view(&self, call: &Value) -> Value {
        let data = call["data"].as_str().unwrap();
        let shown = |bytes: &[u8]| {
            json!(format!("0x{}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()))
        };
        match &data[..10] {
            "0x313ce567" => json!(format!("{:#066x}", self.decimals)),
            "0x95d89b41" => shown(&self.symbols[usize::from(call["to"] != json!(plain(USDC)))]),
            // Everybody has as many micro-dollars as the last byte of his address says.
            _ => json!(format!("0x{:0>64}", &data[data.len() - 2..])),
        }
    }
}
