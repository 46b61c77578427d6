//! Customers at the consumer API, as its published clients call it: bodies come without a Content-Type.

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::buying::{self, fund, usd};
use crate::support::harness::{Gateway, Reply, reply};
use crate::support::logins::code;

pub const ORDERS: &str = "/api/orders";
pub const ANN: &str = "ann@example.com";

pub fn request(gateway: &Gateway, token: &str, method: &str, path: &str) -> RequestBuilder {
    let request = gateway.client.request(method.parse().unwrap(), format!("{}{path}", gateway.base));
    if token.is_empty() { request } else { request.header("authorization", format!("Bearer {token}")) }
}

pub async fn get(gateway: &Gateway, token: &str, path: &str) -> Reply {
    reply(request(gateway, token, "GET", path)).await
}

/// A call without a body.
pub async fn press(gateway: &Gateway, token: &str, path: &str) -> Reply {
    reply(request(gateway, token, "POST", path)).await
}

pub async fn post(gateway: &Gateway, token: &str, path: &str, body: Value) -> Reply {
    reply(request(gateway, token, "POST", path).body(body.to_string())).await
}

pub async fn post_with_key(gateway: &Gateway, token: &str, key: &str, path: &str, body: Value) -> Reply {
    let request = request(gateway, token, "POST", path).header("idempotency-key", key);
    reply(request.body(body.to_string())).await
}

/// The usual plan, as the client asks for it.
pub fn wish() -> Value {
    json!({ "packageCode": buying::PLAN, "source": "mcp" })
}

pub async fn log_in(gateway: &Gateway, email: &str) -> String {
    post(gateway, "", "/api/auth/otp/send", json!({ "email": email })).await.expect(200);
    let code = code(gateway, email).await;
    let session = post(gateway, "", "/api/auth/otp/verify", json!({ "email": email, "code": code })).await;
    session.expect(200)["token"].as_str().unwrap().to_string()
}

/// Ann, logged in, with so much money.
pub async fn ann(gateway: &Gateway, dollars: i64) -> String {
    let token = log_in(gateway, ANN).await;
    if dollars > 0 {
        fund(gateway, ANN, Usd::dollars(dollars)).await;
    }
    token
}

pub async fn balance(gateway: &Gateway, token: &str) -> Usd {
    usd(&get(gateway, token, "/api/wallet/balance").await.expect(200)["balance"])
}

/// Buys the usual plan, which must be delivered: the id of its order.
pub async fn bought(gateway: &Gateway, token: &str) -> String {
    let order = post(gateway, token, ORDERS, wish()).await.expect(200);
    assert_eq!(order["status"], "COMPLETED");
    order["orderId"].as_str().unwrap().to_string()
}

/// The customer's orders: id and status, newest first.
pub async fn orders(gateway: &Gateway, token: &str) -> Vec<(String, String)> {
    let listed = get(gateway, token, ORDERS).await.expect(200);
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let listed = listed["orders"].as_array().unwrap().iter();
    listed.map(|order| (text(&order["id"]), text(&order["status"]))).collect()
}
