//! A gateway that takes payments by signature before a real node, with all its jobs running. The test decides when
//! there is a block. At the end the books must balance and hold what lies on our addresses.

use base64::Engine;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Network};
use simgate::store::{addresses, settlements};
use simgate::x402::local::GasKey;
use tokio_util::sync::CancellationToken;

use super::desk::{borrowed, changed, settings_for};
use super::node::{self, Kind, Node};
use super::proxy::Proxy;
use crate::support::buying;
use crate::support::harness::{
    Db, Gateway, Reply, booked, check_books, on_place, reply, start_gateway, until,
};
use crate::support::logins::sign_in;
use crate::support::payer::{Payer, decoded};

pub const GAS_KEY: &str = "0909090909090909090909090909090909090909090909090909090909090909";
pub const CHECKOUT: &str = "/api/agentic/checkout";
pub const PLAN: &str = "JP-1GB-7D";
pub const OTHER_PLAN: &str = "FR-1GB-7D";
/// What payers begin with.
pub const PURSE: Usd = Usd::dollars(100);

/// How a test wants its till.
#[derive(Clone, Copy)]
pub struct Setup {
    pub proxies: usize,
    /// The version in USDC's domain; none: it takes no signatures.
    pub signing: Option<&'static str>,
    /// Whether there is gas on the key.
    pub gas: bool,
    pub settings: &'static [(&'static str, &'static str)],
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { proxies: 0, signing: Some("2"), gas: true, settings: &[] }
    }
}

pub struct Till {
    pub node: Node,
    pub proxies: Vec<Proxy>,
    pub gateway: Gateway,
    pub token: String,
    pub payer: Payer,
}

/// Runs a test at a till of its own on each database.
macro_rules! at_till {
    ($($tests:tt)*) => {
        crate::anvil::before_node! { Till: $($tests)* }
    };
}
pub(crate) use at_till;

/// A node with the token that takes signatures, and gas on our key.
pub async fn node_for(signing: Option<&'static str>, gas: bool) -> Node {
    let node = Node::start(Kind { signing, ..Kind::default() }).await;
    if gas {
        let key = GasKey::parse(GAS_KEY).unwrap();
        node.rpc("anvil_setBalance", json!([key.address, "0x56bc75e2d63100000"])).await;
    }
    node.mint(&Payer::new(1).address, PURSE).await;
    node
}

/// The settings of a gateway that settles by itself on this node.
pub fn settings(node: &Node, proxies: &[Proxy]) -> Vec<(String, String)> {
    let own = [
        ("x402_settler", "local"),
        ("polygon_gas_key", GAS_KEY),
        ("trusted_proxies", "127.0.0.1"),
        ("answer_within_ms", "20000"),
    ];
    changed(settings_for(node, proxies), &own)
}

impl Till {
    pub fn run(db: Db, setup: Setup, test: impl AsyncFnOnce(&mut Till) + 'static) {
        on_place(db, async move |place| {
            let node = node_for(setup.signing, setup.gas).await;
            let proxies = Proxy::row(&node, setup.proxies).await;
            let settings = changed(settings(&node, &proxies), setup.settings);
            let (gateway, stop, served) = start_gateway(place, &borrowed(&settings)).await;
            let token = sign_in(&gateway, "ann@example.com", "agent").await;
            let mut till = Till { node, proxies, gateway, token, payer: Payer::new(1) };
            test(&mut till).await;
            till.gateway.settle().await;
            check_books(&till.gateway.app).await;
            till.check_cash().await;
            stop.cancel();
            served.await.unwrap();
        });
    }

    /// Asks for a plan: the 402.
    pub async fn ask(&self, token: &str, body: Value) -> Reply {
        self.post(token, body, None).await
    }

    /// Asks for a plan until it can be paid by signature: the body of the 402.
    pub async fn challenge(&self) -> Value {
        until_open(&self.gateway).await;
        until("payments by signature are taken", async || {
            let asked = self.ask(&self.token, json!({ "packageCode": PLAN })).await;
            let body = asked.expect(402);
            assert_eq!(asked.header("payment-required").is_empty(), body["x402Version"].is_null());
            (body["capabilities"]["x402"] == true).then_some(body)
        })
        .await
    }

    /// The one way to pay that a challenge offers.
    pub async fn offer(&self) -> Value {
        self.challenge().await["accepts"][0].clone()
    }

    pub async fn post(&self, token: &str, body: Value, signature: Option<&str>) -> Reply {
        post(&self.gateway, token, body, signature).await
    }

    /// The same request again, signed.
    pub async fn pay(&self, signature: &str) -> Reply {
        self.post(&self.token, json!({ "packageCode": PLAN }), Some(signature)).await
    }

    /// Pays while there is a block now and then: what must be the delivered order.
    pub async fn pay_and_mine(&self, signature: &str) -> Reply {
        let paid = while_mining(&self.node, self.pay(signature)).await;
        assert_eq!(paid.expect(200)["status"], "COMPLETED");
        paid
    }

    pub async fn poll(&self, invoice: &Value) -> Value {
        let url = format!("{}/api/agentic/order/{}", self.gateway.base, invoice.as_str().unwrap());
        reply(self.gateway.client.get(url)).await.expect(200)
    }

    /// Waits for an order while there are blocks.
    pub async fn until_completed(&self, invoice: &Value) -> Value {
        until("the order is delivered", async || {
            self.node.mine(1).await;
            let order = self.poll(invoice).await;
            assert_ne!(order["status"], "FAILED", "{order}");
            (order["status"] == "COMPLETED").then_some(order)
        })
        .await
    }

    /// Waits until so many transactions of our key wait in the pool.
    pub async fn until_pooled(&self, count: i64) {
        until("the settlement is in the pool", async || {
            let status = self.node.rpc("txpool_status", json!([])).await;
            (node::quantity(&status["pending"]) == count).then_some(())
        })
        .await;
    }

    /// What the payer has spent.
    pub async fn spent(&self) -> Usd {
        PURSE.minus(self.node.balance_of(&self.node.usdc, &self.payer.address).await)
    }

    /// How many transactions of our key are not in a block for good.
    pub async fn pending(&self) -> usize {
        let sender = GasKey::parse(GAS_KEY).unwrap().address;
        let store = &self.gateway.app.store;
        let found = store.read(move |tx| settlements::pending(tx, Network::Polygon, &sender)).await;
        found.unwrap().len()
    }

    /// What the books say of an account of the chart, debits above credits.
    pub async fn book(&self, account: &str) -> Usd {
        booked(&self.gateway.app, account).await
    }

    /// What lies on our addresses is what the books say.
    async fn check_cash(&self) {
        until("what arrived is in the books", async || {
            self.node.mine(1).await;
            let ours = self.gateway.app.store.read(addresses::list).await.unwrap();
            let mut fits = true;
            for (token, account) in
                [(&self.node.usdc, "cash:POLYGON:USDC"), (&self.node.usdt, "cash:POLYGON:USDT")]
            {
                let mut on_chain = Usd::ZERO;
                for address in ours.iter().filter(|address| address.kind == AddressKind::Evm) {
                    on_chain = on_chain.plus(self.node.balance_of(token, &address.address).await);
                }
                fits &= self.book(account).await == on_chain;
            }
            fits.then_some(())
        })
        .await;
    }
}

/// Waits until payments by signature can be settled. Who asks for a plan again and again instead opens a checkout each
/// time, and a customer has at most fifty.
pub async fn until_open(gateway: &Gateway) {
    let settler = gateway.app.settler.as_ref();
    until("the settler is there", async || settler?.open_terminals().next().map(drop)).await;
}

/// Asks for a checkout, signed or not.
pub async fn post(gateway: &Gateway, token: &str, body: Value, signature: Option<&str>) -> Reply {
    let request = buying::request(gateway, token, &body);
    reply(match signature {
        Some(signature) => request.header("payment-signature", signature),
        None => request,
    })
    .await
}

/// Lets there be a block now and then until something is done.
pub async fn while_mining<T>(node: &Node, work: impl Future<Output = T>) -> T {
    let done = CancellationToken::new();
    let blocks = async {
        while !done.is_cancelled() {
            node.mine(1).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let work = async {
        let made = work.await;
        done.cancel();
        made
    };
    tokio::join!(work, blocks).0
}

/// JSON as headers carry it.
pub fn encoded(value: &Value) -> String {
    base64::engine::general_purpose::STANDARD.encode(value.to_string())
}

/// What a `PAYMENT-RESPONSE` says; null without one.
pub fn receipt(headers: &HeaderMap) -> Value {
    headers.get("payment-response").map_or(Value::Null, |value| decoded(value.to_str().unwrap()))
}
