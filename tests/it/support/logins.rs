//! People with an email: asking for codes, reading them in the sandbox's outbox, signing in.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use simgate::app::App;
use simgate::domain::email::Email;
use simgate::domain::refusal::Refusal;
use simgate::error::Error;
use simgate::store::accounts::Account;
use simgate::store::users;

use crate::support::harness::{Gateway, Reply, reply};

pub const AUTH: &str = "/api/agentic/auth";

/// A client's address that no other call of this test has; needs `trusted_proxies` to be 127.0.0.1.
pub fn elsewhere() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("10.{}.{}.{}", n >> 16 & 255, n >> 8 & 255, n & 255)
}

/// The user with this email.
pub async fn user(app: &App, email: &Email) -> Result<Account, Error> {
    let email = email.clone();
    let found = app.store.read(move |tx| users::find(tx, &email)).await?;
    Ok(found.ok_or(Refusal::AccountNotFound)?)
}

/// A call without a login, from an address.
pub async fn post_from(gateway: &Gateway, from: &str, path: &str, body: Value) -> Reply {
    let request =
        gateway.client.post(format!("{}{AUTH}/{path}", gateway.base)).header("x-forwarded-for", from);
    reply(request.header("content-type", "application/json").body(body.to_string())).await
}

pub async fn ask(gateway: &Gateway, email: &str) -> Reply {
    post_from(gateway, &elsewhere(), "request-otp", json!({ "email": email })).await
}

pub async fn verify(gateway: &Gateway, email: &str, otp: &str) -> Reply {
    post_from(gateway, &elsewhere(), "verify-otp", json!({ "email": email, "otp": otp })).await
}

async fn outbox(gateway: &Gateway, email: &str) -> Value {
    let email: String = form_urlencoded::byte_serialize(email.as_bytes()).collect();
    reply(gateway.client.get(format!("{}/sandbox/outbox?email={email}", gateway.base))).await.expect(200)
}

/// The mails to an address, newest first.
pub async fn mails(gateway: &Gateway, email: &str) -> Vec<Value> {
    outbox(gateway, email).await["emails"].as_array().unwrap().clone()
}

pub async fn subjects(gateway: &Gateway, email: &str) -> Vec<String> {
    let mails = mails(gateway, email).await;
    mails.iter().map(|mail| mail["subject"].as_str().unwrap().to_string()).collect()
}

/// The runs of this many digits or more in a text.
pub fn digit_runs(text: &str, least: usize) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|run| run.len() >= least).map(str::to_string).collect()
}

pub async fn code(gateway: &Gateway, email: &str) -> String {
    code_in(&outbox(gateway, email).await)
}

/// The code in the newest code mail of an outbox: six digits, or twenty letters.
pub fn code_in(outbox: &Value) -> String {
    let mut mails = outbox["emails"].as_array().unwrap().iter();
    let mail = mails.find(|mail| mail["subject"] == "Your sign-in code").expect("a code was mailed");
    let line = mail["text"].as_str().unwrap().lines().next().unwrap();
    line.rsplit(' ').next().unwrap().to_string()
}

/// The first address in the newest mail with this in it.
pub async fn link(gateway: &Gateway, email: &str, with: &str) -> String {
    let mails = mails(gateway, email).await;
    let texts = mails.iter().map(|mail| mail["text"].as_str().unwrap());
    let mut words = texts.flat_map(str::split_whitespace);
    words.find(|word| word.starts_with("http") && word.contains(with)).expect("a link").to_string()
}

/// What a stranger can compare: status and body, without what names the one request.
pub fn sameness(refused: &Reply) -> (u16, Value) {
    let mut body = refused.json();
    body.as_object_mut().unwrap().remove("requestId");
    (refused.status, body)
}

/// Asks for a code, reads it and takes the token.
pub async fn sign_in(gateway: &Gateway, email: &str, agent: &str) -> String {
    ask(gateway, email).await.expect(200);
    let otp = code(gateway, email).await;
    let body = json!({ "email": email, "otp": otp, "agentName": agent });
    let made = post_from(gateway, &elsewhere(), "verify-otp", body).await.expect(200);
    made["token"].as_str().unwrap().to_string()
}

pub async fn with_token(gateway: &Gateway, token: &str, method: &str, path: &str) -> Reply {
    let request = gateway.client.request(method.parse().unwrap(), format!("{}{path}", gateway.base));
    reply(request.header("authorization", format!("Bearer {token}"))).await
}
