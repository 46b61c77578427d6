//! A node for measuring: a chain that makes a block when it is told to, with transfers in it, and answers as fast as it
//! can. A transfer is a transaction of its own, and its hash says where it is.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use serde_json::Value;

use simgate::domain::network::Network;

pub const USDT: &str = "0xfd086bc7cd5c481dcc9c85ebe478a1c0b69fcbb9";
pub const USDC: &str = "0xaf88d065e77c8cc2239327c5edb3a432268e5831";
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const SYMBOL_CALL: &str = "0x95d89b41";
const DECIMALS_CALL: &str = "0x313ce567";
/// How far below the head blocks are final.
const FINAL: i64 = 1_000;

pub struct Node {
    network: Network,
    head: AtomicI64,
    /// The time of block 0, and between two blocks, in milliseconds.
    began: i64,
    block_ms: i64,
    /// Transfers to strangers in every block.
    strangers: usize,
    /// Transfers that somebody made: by block, the recipient and the amount.
    made: Mutex<BTreeMap<i64, Vec<(String, i64)>>>,
}

impl Node {
    pub fn new(network: Network, now_ms: i64, block_ms: i64, head: i64, strangers: usize) -> Arc<Node> {
        let (head, began) = (AtomicI64::new(head), now_ms - head * block_ms);
        Arc::new(Node { network, head, began, block_ms, strangers, made: Mutex::default() })
    }

    /// Listens at `nodes` addresses, and returns their URLs as a setting wants them.
    pub async fn serve(self: &Arc<Node>, nodes: usize) -> std::io::Result<String> {
        let mut urls = Vec::new();
        for _ in 0..nodes {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            urls.push(format!("http://{}", listener.local_addr()?));
            let router = Router::new().fallback(answer).with_state(self.clone());
            tokio::spawn(async move { axum::serve(listener, router).await });
        }
        Ok(urls.join(","))
    }

    /// Another block, with these transfers of USDC in it.
    pub fn mine(&self, transfers: Vec<(String, i64)>) {
        let number = self.head.load(Ordering::Relaxed) + 1;
        self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(number, transfers);
        self.head.store(number, Ordering::Relaxed);
    }

    fn result(&self, method: &str, asked: &Value) -> String {
        match method {
            "eth_chainId" => format!("\"{:#x}\"", self.network.chain_id()),
            "eth_call" => view(
                asked[0]["to"].as_str().unwrap_or_default(),
                asked[0]["data"].as_str().unwrap_or_default(),
            ),
            "eth_getBlockByNumber" => {
                let head = self.head.load(Ordering::Relaxed);
                let number = match asked[0].as_str() {
                    Some("latest") => head,
                    Some("safe" | "finalized") => (head - FINAL).max(0),
                    _ => quantity(&asked[0]),
                };
                if number > head { "null".into() } else { self.block(number) }
            }
            "eth_blockNumber" => format!("\"{:#x}\"", self.head.load(Ordering::Relaxed)),
            "eth_getLogs" => self.logs(&asked[0]),
            "eth_getTransactionReceipt" => self.receipt(asked[0].as_str().unwrap_or_default()),
            _ => "\"0x0\"".into(),
        }
    }

    fn block(&self, number: i64) -> String {
        let seconds = (self.began + number * self.block_ms) / 1_000;
        format!(r#"{{"number":"{number:#x}","hash":"{}","timestamp":"{seconds:#x}"}}"#, block_hash(number))
    }

    fn logs(&self, filter: &Value) -> String {
        let wanted: Option<HashSet<&str>> = filter["topics"][2]
            .as_array()
            .map(|topics| topics.iter().filter_map(Value::as_str).map(|topic| &topic[26..]).collect());
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, to) = (quantity(&filter["fromBlock"]), quantity(&filter["toBlock"]));
        let mut all = String::from("[");
        for number in from..=to {
            let transfers = made.get(&number).map_or(&[][..], |transfers| transfers);
            for (index, (recipient, amount)) in transfers.iter().enumerate() {
                if wanted.as_ref().is_none_or(|wanted| wanted.contains(&recipient[2..])) {
                    push_log(&mut all, number, index, &recipient[2..], *amount);
                }
            }
            if wanted.is_none() {
                for index in transfers.len()..transfers.len() + self.strangers {
                    push_log(&mut all, number, index, &format!("{number:020x}{index:020x}"), 1_000_000);
                }
            }
        }
        all.push(']');
        all
    }

    fn receipt(&self, hash: &str) -> String {
        let number = i64::from_str_radix(&hash[2..34], 16).unwrap_or_default();
        let index = usize::from_str_radix(&hash[34..], 16).unwrap_or_default();
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((recipient, amount)) = made.get(&number).and_then(|transfers| transfers.get(index)) else {
            return "null".into();
        };
        let mut logs = String::from("[");
        push_log(&mut logs, number, index, &recipient[2..], *amount);
        let block = block_hash(number);
        format!(
            r#"{{"transactionHash":"{hash}","blockHash":"{block}","blockNumber":"{number:#x}","transactionIndex":"{index:#x}","status":"0x1","logs":{logs}]}}"#
        )
    }
}

fn push_log(all: &mut String, number: i64, index: usize, recipient: &str, amount: i64) {
    if all.len() > 1 {
        all.push(',');
    }
    let block = block_hash(number);
    let written = write!(
        all,
        r#"{{"address":"{USDC}","topics":["{TRANSFER}","0x{:064x}","0x{recipient:0>64}"],"data":"0x{amount:064x}","blockNumber":"{number:#x}","transactionHash":"0x{number:032x}{index:032x}","transactionIndex":"{index:#x}","blockHash":"{block}","logIndex":"{index:#x}","removed":false}}"#,
        7
    );
    debug_assert!(written.is_ok());
}

fn block_hash(number: i64) -> String {
    format!("0xb10c{number:060x}")
}

fn quantity(value: &Value) -> i64 {
    value
        .as_str()
        .and_then(|text| i64::from_str_radix(text.trim_start_matches("0x"), 16).ok())
        .unwrap_or_default()
}

fn view(token: &str, data: &str) -> String {
    match data {
        DECIMALS_CALL => format!("\"{:#066x}\"", 6),
        SYMBOL_CALL => {
            let symbol = if token.eq_ignore_ascii_case(USDC) { "USDC" } else { "USDT" };
            let hex: String = symbol.bytes().map(|byte| format!("{byte:02x}")).collect();
            format!("\"0x{:064x}{:064x}{hex:0<64}\"", 32, symbol.len())
        }
        _ => format!("\"{:#066x}\"", 0),
    }
}

async fn answer(State(node): State<Arc<Node>>, body: Bytes) -> String {
    let one = |call: &Value| {
        let result = node.result(call["method"].as_str().unwrap_or_default(), &call["params"]);
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, call["id"])
    };
    match serde_json::from_slice(&body) {
        Ok(Value::Array(calls)) => format!("[{}]", calls.iter().map(one).collect::<Vec<_>>().join(",")),
        Ok(call) => one(&call),
        Err(error) => error.to_string(),
    }
}
