//! The one node that the door for signatures asks: whether the token would move the money. It answers for the stories'
//! chain, by the rules of EIP-3009.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use serde_json::{Value, json};
use simgate::chain::address;
use simgate::clock::Clock;
use simgate::domain::network::{AddressKind, Network};
use simgate::x402::authorization::{Domain, NAME_CALL, SEPARATOR_CALL, VERSION_CALL};

use super::chain::StoryChain;
use crate::support::mock_node::abi_text;

pub const USDC: &str = "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359";

/// `decimals()` and `symbol()`
const DECIMALS_CALL: [u8; 4] = [0x31, 0x3c, 0xe5, 0x67];
const SYMBOL_CALL: [u8; 4] = [0x95, 0xd8, 0x9b, 0x41];

/// What the node sees, and by which clock.
#[derive(Clone)]
pub struct Sight {
    pub chain: Arc<StoryChain>,
    pub clock: Arc<Clock>,
}

fn domain() -> Domain {
    let contract = address::bytes(AddressKind::Evm, USDC).unwrap();
    let (name, version) = ("USD Coin".to_string(), "2".to_string());
    Domain { name, version, chain_id: Network::Polygon.chain_id(), contract }
}

/// A port that is free now: the gateway is told where its node will be before it can be told what the node sees.
pub async fn listen() -> (tokio::net::TcpListener, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

pub fn serve(listener: tokio::net::TcpListener, sight: Arc<std::sync::Mutex<Option<Sight>>>) {
    let router = Router::new().fallback(answer_all).with_state(sight);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
}

async fn answer_all(State(sight): State<Arc<std::sync::Mutex<Option<Sight>>>>, body: Bytes) -> String {
    let sight = sight.lock().unwrap().clone().expect("nobody asks before there is a chain");
    match serde_json::from_slice(&body).unwrap() {
        Value::Array(calls) => calls.iter().map(|call| answer(&sight, call)).collect::<Value>().to_string(),
        call => answer(&sight, &call).to_string(),
    }
}

fn answer(sight: &Sight, call: &Value) -> Value {
    let result = match call["method"].as_str().unwrap() {
        "eth_chainId" => Ok(json!(format!("{:#x}", Network::Polygon.chain_id()))),
        "eth_call" => {
            let asked = &call["params"][0];
            view(sight, asked["to"].as_str().unwrap(), asked["data"].as_str().unwrap())
        }
        "eth_getBalance" => Ok(json!("0x56bc75e2d63100000")),
        "eth_getTransactionCount" => Ok(json!("0x0")),
        "eth_maxPriorityFeePerGas" => Ok(json!("0x1")),
        "eth_getBlockByNumber" => Ok(json!({
            "number": "0x1", "hash": format!("0x{:064x}", 1), "timestamp": "0x1", "baseFeePerGas": "0x1",
        })),
        other => Err(format!("the method {other} does not exist")),
    };
    match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
        Err(why) => json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": 3, "message": why}}),
    }
}

fn view(sight: &Sight, token: &str, data: &str) -> Result<Value, String> {
    let bytes = alloy_primitives::hex::decode(data).unwrap();
    let shown = |bytes: &[u8]| Ok(json!(alloy_primitives::hex::encode_prefixed(bytes)));
    match bytes[..4].try_into().unwrap() {
        NAME_CALL => shown(&abi_text("USD Coin")),
        VERSION_CALL => shown(&abi_text("2")),
        SEPARATOR_CALL => shown(&domain().separator()),
        DECIMALS_CALL => Ok(json!(format!("{:#066x}", 6))),
        SYMBOL_CALL => shown(&abi_text(if token.eq_ignore_ascii_case(USDC) { "USDC" } else { "USDT0" })),
        _ => {
            let word = |index: usize| &bytes[4 + 32 * index..36 + 32 * index];
            let number = |index: usize| u64::from_be_bytes(word(index)[24..].try_into().unwrap());
            let now = sight.clock.now().micros().unsigned_abs() / 1_000_000;
            let payer = address::text(AddressKind::Evm, word(0)[12..].try_into().unwrap());
            let nonce = alloy_primitives::hex::encode_prefixed(word(5));
            if now <= number(3) {
                return Err("execution reverted: FiatTokenV2: authorization is not yet valid".into());
            }
            if number(4) <= now {
                return Err("execution reverted: FiatTokenV2: authorization is expired".into());
            }
            if sight.chain.is_used(&payer, &nonce) {
                return Err("execution reverted: FiatTokenV2: authorization is used or canceled".into());
            }
            shown(&[])
        }
    }
}
