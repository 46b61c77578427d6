//! What is confirmed shows as many confirmations as it needed, whatever head they are counted from: the scanner's may be
//! older than the one by which it was decided.

use serde_json::{Value, json};
use simgate::chain::sim::ChainMode;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};

use crate::support::buying::{self, PLAN, UNTIL_FINAL_MS, ask};
use crate::support::database;
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::sign_in;

async fn deposit(gateway: &Gateway, network: &str) -> Value {
    let body = json!({ "amountUsd": 25, "currency": "USDC", "network": network });
    gateway.post("/api/b2b/v1/balance/deposit", body).await.expect(200)
}

async fn record(gateway: &Gateway, invoice: &Value) -> Value {
    let id = invoice["invoiceId"].as_str().unwrap();
    gateway.get(&format!("/api/b2b/v1/balance/deposit/{id}")).await.expect(200)
}

async fn until_confirmed(gateway: &Gateway, invoice: &Value) -> Value {
    gateway
        .until("the deposit is confirmed", async || {
            let record = record(gateway, invoice).await;
            (record["status"] == "CONFIRMED").then_some(record)
        })
        .await
}

fn count(record: &Value, field: &str) -> i64 {
    record[field].as_i64().unwrap()
}

/// Reads something while the head that we know of is the one right before what was paid became final.
async fn before_the_decision(gateway: &Gateway, network: Network, read: impl AsyncFn() -> Value) -> Value {
    let location = gateway.app.store.location();
    // No scanner moves on from here.
    gateway.app.sim_chains[&network].behave(ChainMode::Down, 0).await.unwrap();
    let name = network.as_str();
    let newest = format!("(SELECT MAX(block) FROM transfers WHERE network = '{name}')");
    let back = format!("UPDATE cursors SET head = {newest} + 3 WHERE network = '{name}'");
    let is_back = format!("SELECT network FROM cursors WHERE network = '{name}' AND head = {newest} + 3");
    gateway
        .until("no scanner has moved on", async || {
            database::execute(location, &back).unwrap();
            let told = read().await;
            (!database::rows(location, &is_back).is_empty()).then_some(told)
        })
        .await
}

both_databases! {
    async fn a_confirmed_deposit_has_what_it_needed(gateway) {
        for (name, network) in [("ARBITRUM", Network::Arbitrum), ("TRON", Network::Tron)] {
            let invoice = deposit(gateway, name).await;
            gateway.sandbox("pay", json!({ "invoiceId": invoice["invoiceId"] })).await;
            gateway.pass_time(UNTIL_FINAL_MS);
            until_confirmed(gateway, &invoice).await;
            let told = before_the_decision(gateway, network, async || record(gateway, &invoice).await).await;
            assert_eq!(told["status"], "CONFIRMED");
            assert_eq!(count(&told, "requiredConfirmations"), network.confirmations());
            assert_eq!(count(&told, "confirmations"), network.confirmations(), "{name}");
            assert_eq!(count(&told["transactions"][0], "confirmations"), network.confirmations(), "{name}");
        }
    }

    async fn a_payment_on_top_takes_nothing_away(gateway) {
        let invoice = deposit(gateway, "ARBITRUM").await;
        gateway.sandbox("pay", json!({ "invoiceId": invoice["invoiceId"] })).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_confirmed(gateway, &invoice).await;
        gateway.sandbox("pay", json!({ "invoiceId": invoice["invoiceId"] })).await;
        let told = gateway.until("the second payment is seen", async || {
            let record = record(gateway, &invoice).await;
            (record["transactions"].as_array().unwrap().len() == 2).then_some(record)
        }).await;
        assert_eq!(told["status"], "CONFIRMED");
        assert!(count(&told, "confirmations") >= count(&told, "requiredConfirmations"), "{told}");
    }

    async fn a_payment_by_another_network_needs_what_that_needs(gateway) {
        let invoice = deposit(gateway, "ARBITRUM").await;
        assert_eq!(count(&record(gateway, &invoice).await, "requiredConfirmations"), Network::Arbitrum.confirmations());
        let address = invoice["depositAddress"].as_str().unwrap();
        gateway.app.sim_chains[&Network::Base].pay(address, Currency::Usdc, Usd::dollars(25)).await.unwrap();
        gateway.pass_time(UNTIL_FINAL_MS);
        until_confirmed(gateway, &invoice).await;
        let told = before_the_decision(gateway, Network::Base, async || record(gateway, &invoice).await).await;
        let needed = Network::Base.confirmations();
        assert_eq!((count(&told, "confirmations"), count(&told, "requiredConfirmations")), (needed, needed));
    }

    async fn a_completed_checkout_has_what_it_needed(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let body = json!({ "packageCode": PLAN, "preferredNetwork": "ARBITRUM" });
        let checkout = ask(gateway, &token, &body).await.expect(402);
        buying::settle(gateway, &checkout, "COMPLETED").await;
        let read = async || buying::record(gateway, &checkout).await;
        let told = before_the_decision(gateway, Network::Arbitrum, read).await;
        assert_eq!(told["status"], "COMPLETED");
        let needed = Network::Arbitrum.confirmations();
        assert_eq!((count(&told, "confirmations"), count(&told, "requiredConfirmations")), (needed, needed));
    }
}
