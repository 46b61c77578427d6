//! Agents that buy: checking out, paying on the simulated chain, polling, and the house's side of it.

use serde_json::{Value, json};
use simgate::chain::sim::{ChainMode, Keep, SimChain};
use simgate::domain::checkout;
use simgate::domain::email::Email;
use simgate::domain::ids::AccountNo;
use simgate::domain::ledger::CreditKind;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::ops::operator::{self, Adjustment, Direction};
use simgate::ops::transfers::{self, Unmatched};
use simgate::store::amounts::{self, Ring};
use simgate::store::tx::Tx;

use crate::support::database;
use crate::support::harness::{Gateway, Reply, reply};
use crate::support::logins::{self, with_token};

pub const CHECKOUT: &str = "/api/agentic/checkout";
pub const PLAN: &str = "JP-1GB-7D";
/// More blocks than any network asks for come in this time.
pub const UNTIL_FINAL_MS: i64 = 6_000;
/// Reaches below every payment of a test, however slow the machine is; and so many blocks later they are back.
pub const DEEP: i64 = 5_000;
pub const LATER: i64 = 600;
/// A block of a simulated chain takes so long.
const BLOCK_MS: i64 = 200;
pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;

pub fn usd(value: &Value) -> Usd {
    Usd::parse(&value.to_string()).unwrap()
}

/// A checkout, as this token asks for it.
pub async fn ask(gateway: &Gateway, token: &str, body: &Value) -> Reply {
    reply(request(gateway, token, body)).await
}

pub async fn ask_with_key(gateway: &Gateway, token: &str, key: &str, body: &Value) -> Reply {
    reply(request(gateway, token, body).header("idempotency-key", key)).await
}

pub fn request(gateway: &Gateway, token: &str, body: &Value) -> reqwest::RequestBuilder {
    gateway
        .client
        .post(format!("{}{CHECKOUT}", gateway.base))
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(body.to_string())
}

/// A new checkout of the usual plan on Polygon.
pub async fn open(gateway: &Gateway, token: &str) -> Value {
    ask(gateway, token, &json!({ "packageCode": PLAN })).await.expect(402)
}

pub fn id(checkout: &Value) -> &str {
    checkout["invoiceId"].as_str().unwrap()
}

pub fn amount(checkout: &Value) -> Usd {
    usd(&checkout["payment"]["expectedAmount"])
}

pub fn address(checkout: &Value) -> &str {
    checkout["payment"]["receivingAddress"].as_str().unwrap()
}

/// Pays exactly what was asked for.
pub async fn pay(gateway: &Gateway, checkout: &Value) -> String {
    let paid = gateway.sandbox("pay", json!({ "invoiceId": id(checkout) })).await;
    paid["txHash"].as_str().unwrap().to_string()
}

/// Pays another amount to where the checkout is paid.
pub async fn pay_amount(gateway: &Gateway, checkout: &Value, amount: Usd) -> String {
    let amount: serde_json::Number = amount.to_string().parse().unwrap();
    let paid = gateway.sandbox("pay", json!({ "invoiceId": id(checkout), "amountUsd": amount })).await;
    paid["txHash"].as_str().unwrap().to_string()
}

/// The record, as anybody who knows the invoice id sees it.
pub async fn record(gateway: &Gateway, checkout: &Value) -> Value {
    let url = format!("{}/api/agentic/order/{}", gateway.base, id(checkout));
    reply(gateway.client.get(url)).await.expect(200)
}

pub async fn until_status(gateway: &Gateway, checkout: &Value, status: &str) -> Value {
    gateway
        .until(status, async || {
            let record = record(gateway, checkout).await;
            (record["status"] == status).then_some(record)
        })
        .await
}

/// Pays, lets the blocks come that are asked for, and waits for the outcome.
pub async fn settle(gateway: &Gateway, checkout: &Value, status: &str) -> Value {
    pay(gateway, checkout).await;
    gateway.pass_time(UNTIL_FINAL_MS);
    until_status(gateway, checkout, status).await
}

/// Lets the time to pay pass.
pub async fn expire(gateway: &Gateway, checkout: &Value) {
    gateway.pass_time(31 * MINUTE_MS);
    until_status(gateway, checkout, "EXPIRED").await;
}

pub fn polygon(gateway: &Gateway) -> &SimChain {
    &gateway.app.sim_chains[&Network::Polygon]
}

/// Pays, and the chain forgets the payment as soon as it was seen.
pub async fn pay_and_vanish(gateway: &Gateway, checkout: &Value) {
    let confirmations = async || record(gateway, checkout).await["confirmations"].as_i64().unwrap();
    pay(gateway, checkout).await;
    gateway.until("the payment is seen", async || (confirmations().await > 0).then_some(())).await;
    polygon(gateway).reorg(DEEP, Keep::Nothing).await.unwrap();
    gateway.until("the payment is gone", async || (confirmations().await == 0).then_some(())).await;
}

/// What was paid vanishes from the chain, and is in a later block, while nobody can look; then it is seen there.
pub async fn move_payments(gateway: &Gateway) {
    let chain = polygon(gateway);
    let blocks = || {
        let sql = "SELECT CAST(COALESCE(block, 0) AS TEXT) FROM transfers ORDER BY tx_hash, position";
        database::rows(&gateway.app.settings.database, sql)
    };
    chain.behave(ChainMode::Down, 0).await.unwrap();
    let before = blocks();
    chain.reorg(DEEP, Keep::Later(LATER)).await.unwrap();
    gateway.pass_time(LATER * BLOCK_MS);
    chain.behave(ChainMode::Ok, 0).await.unwrap();
    gateway
        .until("they are seen in other blocks", async || {
            let mut both = blocks().into_iter().zip(&before);
            both.all(|(now, was)| now != *was && now[0] != "0").then_some(())
        })
        .await;
}

pub async fn balance(gateway: &Gateway, token: &str) -> Usd {
    let wallet = with_token(gateway, token, "GET", "/api/agentic/wallet").await.expect(200);
    usd(&wallet["balanceUsd"])
}

pub async fn account(gateway: &Gateway, email: &str) -> AccountNo {
    logins::user(&gateway.app, &Email::parse(email).unwrap()).await.unwrap().no
}

pub async fn fund(gateway: &Gateway, email: &str, amount: Usd) {
    let account = account(gateway, email).await;
    let credit = Adjustment { account, amount, kind: CreditKind::Promo, reason: "test".into() };
    operator::adjust_wallet(&gateway.app, "test", Direction::Credit, credit, None).await.unwrap();
}

/// What waits for the operator, when there is so much of it.
pub async fn unmatched(gateway: &Gateway, count: usize) -> Vec<Unmatched> {
    gateway
        .until("unmatched money", async || {
            let found = transfers::unmatched(&gateway.app).await.unwrap();
            (found.len() == count).then_some(found)
        })
        .await
}

/// Moves the ring that this checkout's amount is from, so that its places come again.
pub async fn turn_back(gateway: &Gateway, checkout: &Value, place: i64) {
    let ring = Ring { address: address(checkout).into(), price: usd(&checkout["plan"]["basePriceUsd"]) };
    let write = move |tx: &mut Tx| amounts::put(tx, &ring, place);
    gateway.app.store.write(0, write).await.unwrap();
}

/// The amount at a place of the ring below this price.
pub fn amount_at(gateway: &Gateway, price: Usd, place: i64) -> Usd {
    let seed = gateway.app.vault.amount_seed() ^ price.micros().unsigned_abs();
    price.minus(checkout::offset(seed, place))
}

/// Sends USDT to an address without asking anybody.
pub async fn send(gateway: &Gateway, network: Network, address: &str, amount: Usd) -> String {
    let chain = &gateway.app.sim_chains[&network];
    let hash = chain.pay(address, Currency::Usdt, amount).await.unwrap();
    gateway.app.expected.send_modify(|count| *count += 1);
    hash
}
