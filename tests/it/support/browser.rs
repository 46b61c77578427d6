//! People with a browser: opening pages, sending forms, buying as a guest, claiming what is owed.

use serde_json::Value;
use simgate::domain::money::Usd;

use crate::support::buying::{PLAN, id, settle};
use crate::support::harness::{Gateway, Reply, booked, reply};
use crate::support::logins::{code, elsewhere};

const HTML: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

pub async fn open(gateway: &Gateway, path: &str) -> Reply {
    reply(gateway.client.get(format!("{}{path}", gateway.base)).header("accept", HTML)).await
}

pub fn form(gateway: &Gateway, path: &str, fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
    form_from(gateway, &elsewhere(), path, fields)
}

/// From an address; needs `trusted_proxies` to be 127.0.0.1.
pub fn form_from(
    gateway: &Gateway,
    from: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> reqwest::RequestBuilder {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    gateway
        .client
        .post(format!("{}{path}", gateway.base))
        .header("accept", HTML)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("x-forwarded-for", from)
        .body(body)
}

pub async fn submit(gateway: &Gateway, path: &str, fields: &[(&str, &str)]) -> Reply {
    reply(form(gateway, path, fields)).await
}

/// The invoice that a form leads on to. Its id is a key: it stands in the body and in no header.
#[track_caller]
pub fn onward(page: &Reply) -> String {
    assert_eq!(page.status, 200, "{}", page.text);
    let (_, rest) = page.text.split_once("content=\"0;url=/pay/").expect("the page leads on");
    let invoice = rest.split('"').next().unwrap().to_string();
    let told = |value: &reqwest::header::HeaderValue| value.to_str().unwrap_or_default().contains(&invoice);
    assert!(!page.headers.values().any(told), "{:?}", page.headers);
    invoice
}

/// Asks for the usual plan on Polygon.
pub async fn check_out(gateway: &Gateway, email: &str) -> String {
    onward(&submit(gateway, "/checkout", &[("plan", PLAN), ("email", email), ("network", "POLYGON")]).await)
}

/// The record of an invoice, as `buying` reads it.
pub async fn guest_record(gateway: &Gateway, invoice: &str) -> Value {
    reply(gateway.client.get(format!("{}/api/agentic/order/{invoice}", gateway.base))).await.expect(200)
}

/// A guest's checkout of the usual plan, with everything that its record tells.
pub async fn guest(gateway: &Gateway, email: &str) -> Value {
    guest_record(gateway, &check_out(gateway, email).await).await
}

/// A guest's checkout that was paid for and could not be delivered.
pub async fn failed(gateway: &Gateway, email: &str) -> Value {
    let made = guest(gateway, email).await;
    gateway.supplier("reject").await;
    settle(gateway, &made, "FAILED").await;
    gateway.supplier("ok").await;
    made
}

/// Such a checkout whose money its buyer has taken to a wallet.
pub async fn claimed(gateway: &Gateway, email: &str) {
    let made = failed(gateway, email).await;
    let otp = claim_code(gateway, id(&made), email).await;
    assert_eq!(claim(gateway, id(&made), email, &otp).await.status, 200);
}

/// Asks for a code on the pay page, and reads it.
pub async fn claim_code(gateway: &Gateway, invoice: &str, email: &str) -> String {
    let page = submit(gateway, &format!("/pay/{invoice}/code"), &[("email", email)]).await;
    assert_eq!(page.status, 200, "{}", page.text);
    code(gateway, email).await
}

pub async fn claim(gateway: &Gateway, invoice: &str, email: &str, code: &str) -> Reply {
    submit(gateway, &format!("/pay/{invoice}/claim"), &[("email", email), ("code", code)]).await
}

/// What is owed to guests, all together.
pub async fn owed(gateway: &Gateway) -> Usd {
    booked(&gateway.app, "owed").await.negated()
}

/// What a user's wallet holds.
pub async fn wallet_of(gateway: &Gateway, email: &str) -> Usd {
    simgate::ops::operator::account(&gateway.app, email).await.map_or(Usd::ZERO, |account| account.balance)
}
