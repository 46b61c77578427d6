//! What outsiders answer, with every field of every answer changed in every way, one at a time: nothing panics, and with
//! two honest nodes beside the bad one nothing wrong is believed.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use serde_json::{Value, json};
use simgate::chain::evm::{Evm, EvmSettings};
use simgate::chain::{Chain, Mined, Token, Trouble, Watched, Witness};
use simgate::domain::authorization::{Authorization, AuthorizationId, AuthorizationState};
use simgate::domain::ids::{AccountNo, InvoiceId};
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Currency, Network};
use simgate::domain::time::Time;
use simgate::x402::remote::{Facilitator, Said};

use crate::support::mock_node::*;

const WAYS: [Way; 10] = [
    Way::Missing,
    Way::Put("null"),
    Way::Put("7"),
    Way::Put("\"no\""),
    Way::Put("{}"),
    Way::Put("\"0x0\""),
    Way::Put("\"0xffffffffffffffff\""),
    Way::Put("\"-0x1\""),
    Way::Long,
    Way::Twice,
];

#[derive(Clone, Copy)]
enum Way {
    Missing,
    Put(&'static str),
    Long,
    /// Two fields of one name: the first with something else in it.
    Twice,
}

/// All answers that differ from this one in one place.
fn garbled(answer: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(answer).unwrap();
    let mut places = Vec::new();
    note_places(&value, String::new(), &mut places);
    places.iter().flat_map(|place| WAYS.map(|way| write(&value, "", place, way))).collect()
}

fn note_places(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                places.push(format!("{place}/{name}"));
                note_places(value, format!("{place}/{name}"), places);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                places.push(format!("{place}/{index}"));
                note_places(value, format!("{place}/{index}"), places);
            }
        }
        _ => {}
    }
}

/// The value as JSON, changed at one place.
fn write(value: &Value, here: &str, place: &str, way: Way) -> String {
    let part = |name: &str, value: &Value| {
        let there = format!("{here}/{name}");
        let plain = write(value, &there, place, way);
        match way {
            _ if there != place => vec![plain],
            Way::Missing => Vec::new(),
            Way::Put(text) => vec![text.to_string()],
            Way::Long => vec![format!("\"0x{}\"", "f".repeat(5_000))],
            Way::Twice => vec!["\"0x1\"".to_string(), plain],
        }
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().flat_map(|(name, value)| {
                part(name, value).into_iter().map(move |value| format!("{}:{value}", json!(name)))
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(values) => {
            let values = values.iter().enumerate().flat_map(|(index, value)| part(&index.to_string(), value));
            format!("[{}]", values.collect::<Vec<_>>().join(","))
        }
        plain => plain.to_string(),
    }
}

/// A chain before three nodes, of which the first can be made to talk nonsense.
struct Bench {
    network: Network,
    nodes: [Node; 3],
}

impl Bench {
    async fn start(network: Network) -> Bench {
        let nodes = [Node::start().await, Node::start().await, Node::start().await];
        for node in &nodes {
            let mut manners = node.set();
            manners.chain_id = network.chain_id();
            manners.java_tron = network == Network::Tron;
            let token = if manners.java_tron { TRON_USDT } else { USDT };
            manners.symbols[1] = abi_text("USDT");
            manners.txs = vec![tx("one", 90, vec![moved(token, CAROL, ALICE, 12_000_000)])];
        }
        Bench { network, nodes }
    }

    fn connect(&self, nodes: usize) -> Evm {
        let contract = if self.network == Network::Tron { TRON_USDT } else { USDT };
        Evm::new(EvmSettings {
            network: self.network,
            providers: self.nodes[..nodes].iter().map(|node| node.url.clone()).collect(),
            api_key: None,
            tokens: vec![Token { currency: Currency::Usdt, contract: contract.into() }],
            addresses_per_call: 500,
            clock: Arc::default(),
        })
        .unwrap()
    }

    /// Asks, with the first node changing each of its answers in each way: alone, where only a panic would be wrong, and
    /// beside two others.
    async fn try_all<T: Debug>(&self, what: &str, ask: impl AsyncFn(&Evm) -> Result<T, Trouble>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let listen = told.clone();
        self.spoil(Arc::new(move |_, answer| {
            listen.lock().unwrap().push(answer.clone());
            answer
        }));
        let right = format!("{:?}", ask(&self.connect(1)).await.unwrap());
        let told = told.lock().unwrap().clone();
        let mut tried = 0;
        for (request, answer) in told.iter().enumerate() {
            for nonsense in garbled(answer) {
                for nodes in [1, 3] {
                    let instead = nonsense.clone();
                    self.spoil(Arc::new(
                        move |number, answer| {
                            if number == request { instead.clone() } else { answer }
                        },
                    ));
                    let said = ask(&self.connect(nodes)).await.map(|answer| format!("{answer:?}"));
                    if nodes == 3 {
                        assert_eq!(said.as_deref(), Ok(right.as_str()), "{what}: {nonsense}");
                    }
                    tried += 1;
                }
            }
        }
        assert!(tried >= 100, "{what} was tried {tried} times only");
    }

    fn spoil(&self, spoil: Spoil) {
        let mut manners = self.nodes[0].set();
        (manners.spoil, manners.requests) = (Some(spoil), 0);
    }
}

async fn try_network(network: Network) {
    let bench = Bench::start(network).await;
    let hash = hash("one", 0);
    let hash = if network == Network::Tron { &hash[2..] } else { &hash };
    let plain = match network.kind() {
        AddressKind::Evm => ALICE.to_string(),
        AddressKind::Tron => simgate::chain::address::text(AddressKind::Tron, &[7; 20]),
    };
    let watched = Watched::new(network.kind(), [plain.clone()]);
    bench.try_all("check", async |chain| chain.check().await).await;
    let tip = async |chain: &Evm| chain.tip().await.map(|tip| (tip.head.number, tip.safe, tip.finalized));
    bench.try_all("tip", tip).await;
    bench.try_all("block", async |chain| chain.block(90).await).await;
    let transaction = async |chain: &Evm| {
        chain.tip().await?;
        let mined = chain.transaction(hash, Witness::Quorum).await?;
        Ok(mined.map(|mined| (mined.head >= 96, Mined { head: 0, ..mined })))
    };
    bench.try_all("transaction", transaction).await;
    bench.try_all("scan by all", async |chain| chain.scan(80, 95, &watched, Witness::Quorum).await).await;
    let last =
        async |chain: &Evm| chain.scan(80, 95, &watched, Witness::Any).await.map(|scanned| scanned.last);
    bench.try_all("scan in turn", last).await;
    let held = async |chain: &Evm| chain.balances(Currency::Usdt, std::slice::from_ref(&plain), 95).await;
    bench.try_all("balances", held).await;
}

#[tokio::test]
async fn evm_nodes() {
    try_network(Network::Polygon).await;
}

#[tokio::test]
async fn tron_nodes() {
    try_network(Network::Tron).await;
}

#[tokio::test]
async fn what_gas_costs() {
    let bench = Bench::start(Network::Polygon).await;
    let hash = hash("one", 0);
    bench.try_all("fees", async |chain| chain.fees().await).await;
    bench.try_all("purse", async |chain| chain.purse(&[7; 20]).await).await;
    bench.try_all("paid", async |chain| chain.paid(&hash).await).await;
    bench.try_all("gas", async |chain| chain.gas_for(Currency::Usdt, &[1, 2], &[7; 20]).await).await;
    let call =
        async |chain: &Evm| chain.call(Currency::Usdt, &[1, 2, 3, 4, 5], None, None, Witness::Quorum).await;
    bench.try_all("call", call).await;
}

fn signed() -> Authorization {
    let now = Time::from_micros(1_700_000_000_000_000);
    Authorization {
        id: AuthorizationId {
            network: Network::Polygon,
            asset: USDC.into(),
            payer: CAROL.into(),
            nonce: hash("nonce", 1),
        },
        invoice: InvoiceId::new(now, 1),
        account: AccountNo(1),
        reference: None,
        pay_to: ALICE.into(),
        amount: Usd::from_micros(1),
        valid_after: now,
        valid_before: now.plus_millis(60_000),
        signature: "0x".into(),
        state: AuthorizationState::Sent,
        reason: None,
        created_at: now,
        updated_at: now,
    }
}

/// What a facilitator says is read or not; a transaction that it names is one.
#[tokio::test]
async fn facilitators() {
    let answer = Arc::new(Mutex::new(String::new()));
    let serve = async |State(answer): State<Arc<Mutex<String>>>| answer.lock().unwrap().clone();
    let router = Router::new().fallback(serve).with_state(answer.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let facilitator = Facilitator::new(&format!("http://{}", listener.local_addr().unwrap()), &[]).unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let kind = json!({"x402Version": 2, "scheme": "exact", "network": "eip155:137", "extra": {"a": 1}});
    let supported = json!({"kinds": [kind], "extensions": [], "signers": {"eip155:*": [ALICE]}}).to_string();
    *answer.lock().unwrap() = supported.clone();
    assert_eq!(facilitator.supported().await.unwrap(), ["eip155:137"]);
    for nonsense in garbled(&supported) {
        *answer.lock().unwrap() = nonsense;
        if let Ok(networks) = facilitator.supported().await {
            assert!(networks.len() <= 1);
        }
    }
    let right = hash("settled", 1);
    let settled =
        json!({"success": true, "transaction": right, "network": "eip155:137", "payer": CAROL}).to_string();
    let requirements = serde_json::from_value(json!({
        "scheme": "exact", "network": "eip155:137", "asset": USDC, "amount": "1", "payTo": ALICE, "maxTimeoutSeconds": 60,
        "extra": {"name": "USD Coin", "version": "2", "paymentFlow": "settle", "orderRef": "ref"},
    }))
    .unwrap();
    let authorization = signed();
    for nonsense in garbled(&settled) {
        *answer.lock().unwrap() = nonsense.clone();
        match facilitator.settle(&authorization, &requirements).await {
            Said::Settled(hash) => assert_eq!(hash, right, "{nonsense}"),
            Said::Failed(_) | Said::Doubt(_) => {}
        }
    }
}
