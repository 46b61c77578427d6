//! A node as somebody else runs it: everything comes from anvil, and the proxy spoils what its mood says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::node::{Node, quantity};
use crate::support::harness::client;

const SEND: &str = "eth_sendRawTransaction";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mood {
    Honest,
    /// Nothing but HTTP errors.
    Down,
    /// One address, many nodes: who asks for the head gets a good one, whoever asks for anything else one that has
    /// no blocks after this, and that answers "no logs" for them.
    Behind(i64),
    /// The node has the blocks, but its index of logs is not there yet.
    NoLogs,
    /// Refuses logs of more blocks than this.
    Range(i64),
    /// Has never heard of this transaction.
    Without(String),
    /// Tells other amounts than the rest of the world.
    OtherAmounts,
    /// Calls the newest block final.
    FinalAtOnce,
    /// Its newest block is so many blocks beyond the real one.
    Ahead(i64),
    /// Has followed another branch since this block.
    Forked(i64),
    /// Is on another chain.
    Foreign,
    /// Shows at most so many logs at once; and, if it may, the receipts of a block.
    FewLogs(usize, bool),
    /// Takes at most so many calls at once; none: no batches at all.
    FewCalls(usize),
    /// Does not know the word "safe".
    NoSafe,
    /// Wants to be left alone, for ever.
    Busy,
    /// Never answers.
    Hangs,
    /// Its newest block is made thousands of years from now.
    FarFuture,
    /// Says that it has more on every address, and that more transactions were sent from it.
    Generous,
    /// Takes transactions and does nothing with them.
    Swallows,
    /// Passes transactions on, and then breaks down before it says so.
    ChokesOnTransactions,
}

#[derive(Clone)]
struct Shared {
    upstream: String,
    client: reqwest::Client,
    mood: Arc<Mutex<Mood>>,
    /// How many blocks each question for logs was about.
    ranges: Arc<Mutex<Vec<i64>>>,
    /// How many receipts were asked for.
    receipts: Arc<AtomicUsize>,
}

pub struct Proxy {
    pub url: String,
    shared: Shared,
}

impl Proxy {
    pub async fn start(upstream: &str) -> Proxy {
        let shared = Shared {
            upstream: upstream.to_string(),
            client: client().build().unwrap(),
            mood: Arc::new(Mutex::new(Mood::Honest)),
            ranges: Arc::default(),
            receipts: Arc::default(),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Proxy { url, shared }
    }

    /// So many of them before a node.
    pub async fn row(node: &Node, count: usize) -> Vec<Proxy> {
        let mut proxies = Vec::new();
        for _ in 0..count {
            proxies.push(Proxy::start(&node.url).await);
        }
        proxies
    }

    pub fn set(&self, mood: Mood) {
        *self.shared.mood.lock().unwrap() = mood;
    }

    /// The ranges that were asked for since the last call.
    pub fn ranges(&self) -> Vec<i64> {
        std::mem::take(&mut *self.shared.ranges.lock().unwrap())
    }

    /// How many receipts were asked for since the last call.
    pub fn receipts(&self) -> usize {
        self.shared.receipts.swap(0, Ordering::Relaxed)
    }
}

async fn answer(State(shared): State<Shared>, Json(batch): Json<Value>) -> Response {
    let mut mood = shared.mood.lock().unwrap().clone();
    match mood {
        Mood::Down => return StatusCode::BAD_GATEWAY.into_response(),
        Mood::Busy => return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")]).into_response(),
        Mood::Hangs => std::future::pending().await,
        Mood::FewCalls(most) if batch.as_array().is_some_and(|calls| calls.len() > most) => {
            let error = json!({ "code": -32014, "message": format!("at most {most} calls, please") });
            return Json(json!({ "jsonrpc": "2.0", "id": null, "error": error })).into_response();
        }
        _ => {}
    }
    let sends = batch["method"] == SEND;
    if mood == Mood::Swallows && sends {
        let hash = format!("0x{}", "5".repeat(64));
        return Json(json!({ "jsonrpc": "2.0", "id": 0, "result": hash })).into_response();
    }
    let upstream = shared.client.post(&shared.upstream).json(&batch);
    let mut answers: Value = upstream.send().await.unwrap().json().await.unwrap();
    if mood == Mood::ChokesOnTransactions && sends {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let single = [batch.clone()];
    let calls = batch.as_array().map_or(&single[..], |calls| calls);
    if matches!(mood, Mood::Behind(_)) && calls.iter().any(|call| call["params"][0] == "latest") {
        mood = Mood::Honest;
    }
    for call in calls {
        if call["method"] == "eth_getLogs" {
            shared.ranges.lock().unwrap().push(blocks_in(&call["params"][0]));
        }
        if call["method"] == "eth_getTransactionReceipt" {
            shared.receipts.fetch_add(1, Ordering::Relaxed);
        }
        let answer = match &mut answers {
            Value::Array(answers) => answers.iter_mut().find(|answer| answer["id"] == call["id"]).unwrap(),
            answer => answer,
        };
        spoil(&mood, call, answer);
    }
    Json(answers).into_response()
}

fn blocks_in(filter: &Value) -> i64 {
    quantity(&filter["toBlock"]) - quantity(&filter["fromBlock"]) + 1
}

fn spoil(mood: &Mood, call: &Value, answer: &mut Value) {
    let method = call["method"].as_str().unwrap();
    let result = &mut answer["result"];
    match (mood, method) {
        (Mood::Behind(last), "eth_blockNumber") => {
            *result = json!(format!("{:#x}", quantity(result).min(*last)));
        }
        (Mood::Behind(last), "eth_getBlockByNumber" | "eth_getTransactionReceipt") if !result.is_null() => {
            let field = if method == "eth_getBlockByNumber" { "number" } else { "blockNumber" };
            if quantity(&result[field]) > *last {
                *result = Value::Null;
            }
        }
        (Mood::Behind(last), "eth_getLogs") => {
            result.as_array_mut().unwrap().retain(|log| quantity(&log["blockNumber"]) <= *last);
        }
        (Mood::NoLogs, "eth_getLogs") => *result = json!([]),
        (Mood::Range(most), "eth_getLogs") if blocks_in(&call["params"][0]) > *most => {
            refuse(answer, -32005, &format!("query exceeds max block range {most}"));
        }
        (Mood::FinalAtOnce, "eth_getBlockByNumber")
            if call["params"][0] == "finalized" || call["params"][0] == "safe" =>
        {
            *result =
                json!({ "number": "0xffffff", "hash": result["hash"], "timestamp": result["timestamp"] });
        }
        (Mood::Ahead(blocks), "eth_blockNumber") => *result = add(result, *blocks),
        (Mood::Ahead(blocks), "eth_getBlockByNumber") if call["params"][0] == "latest" => {
            result["number"] = add(&result["number"], *blocks);
        }
        (Mood::Forked(since), _) => fork(result, *since),
        (Mood::Foreign, "eth_chainId") => *result = json!("0x1"),
        (Mood::FewLogs(most, _), "eth_getLogs")
            if result.as_array().is_some_and(|logs| logs.len() > *most) =>
        {
            refuse(answer, -32005, &format!("query returned more than {most} results"));
        }
        (Mood::FewLogs(_, false), "eth_getBlockReceipts") => refuse(answer, -32601, "no such method"),
        (Mood::NoSafe, "eth_getBlockByNumber") if call["params"][0] == "safe" => {
            refuse(answer, -32602, "invalid argument 0: hex string without 0x prefix");
        }
        (Mood::FarFuture, "eth_getBlockByNumber") if call["params"][0] == "latest" => {
            result["timestamp"] = json!("0x20c49ba5e353f7");
        }
        (Mood::Generous, "eth_call" | "eth_getTransactionCount" | "eth_getBalance") => {
            let text = result.as_str().unwrap().to_string();
            *result = json!(format!("{}f{}", &text[..text.len() - 3], &text[text.len() - 2..]));
        }
        (Mood::Without(hash), "eth_getTransactionReceipt") if call["params"][0] == hash.as_str() => {
            *result = Value::Null;
        }
        (Mood::Without(hash), "eth_getLogs") => {
            result.as_array_mut().unwrap().retain(|log| log["transactionHash"] != hash.as_str());
        }
        (Mood::OtherAmounts, "eth_getTransactionReceipt") if !result.is_null() => {
            result["logs"].as_array_mut().unwrap().iter_mut().for_each(change_amount);
        }
        (Mood::OtherAmounts, "eth_getLogs") => {
            result.as_array_mut().unwrap().iter_mut().for_each(change_amount)
        }
        (_, _) => {}
    }
}

fn refuse(answer: &mut Value, code: i64, message: &str) {
    answer.as_object_mut().unwrap().remove("result");
    answer["error"] = json!({ "code": code, "message": message });
}

fn add(number: &Value, blocks: i64) -> Value {
    json!(format!("{:#x}", quantity(number) + blocks))
}

/// Every hash of a block since then is another one.
fn fork(value: &mut Value, since: i64) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| fork(value, since)),
        Value::Object(fields) => {
            let number =
                fields.get("blockNumber").or(fields.get("number")).filter(|number| number.is_string());
            let forked = number.is_some_and(|number| quantity(number) >= since);
            for name in ["hash", "blockHash"].into_iter().filter(|_| forked) {
                if let Some(Value::String(hash)) = fields.get_mut(name) {
                    hash.replace_range(2..10, "f04bed00");
                }
            }
            fields.values_mut().for_each(|value| fork(value, since));
        }
        _ => {}
    }
}

/// Sixteen times as much.
fn change_amount(log: &mut Value) {
    let digits = log["data"].as_str().unwrap().strip_prefix("0x0").unwrap().to_string();
    log["data"] = json!(format!("0x{digits}0"));
}
