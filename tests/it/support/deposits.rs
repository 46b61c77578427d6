//! Deposits of the gateway's own partner, as it sees them.

use serde_json::{Value, json};

use super::harness::Gateway;
use super::shapes::DEPOSIT;

pub fn id(invoice: &Value) -> &str {
    invoice["invoiceId"].as_str().unwrap()
}

pub async fn record(gateway: &Gateway, invoice: &Value) -> Value {
    gateway.get(&format!("{DEPOSIT}/{}", id(invoice))).await.expect(200)
}

/// Pays on the simulated chain; the transaction's hash.
pub async fn pay(gateway: &Gateway, invoice: &Value, amount: &str) -> String {
    let amount: serde_json::Number = amount.parse().unwrap();
    let paid = gateway.sandbox("pay", json!({ "invoiceId": id(invoice), "amountUsd": amount })).await;
    assert_eq!(paid["amountUsd"], json!(amount), "{paid}");
    paid["txHash"].as_str().unwrap().to_string()
}

/// Waits until the invoice's record is as it should be.
pub async fn until(gateway: &Gateway, invoice: &Value, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    gateway
        .until(what, async || {
            let record = record(gateway, invoice).await;
            holds(&record).then_some(record)
        })
        .await
}

pub async fn until_status(gateway: &Gateway, invoice: &Value, status: &str) -> Value {
    until(gateway, invoice, status, |record| record["status"] == status).await
}
