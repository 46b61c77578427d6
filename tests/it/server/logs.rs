//! What opens a door is never written down: not the API secret, not an activation code, not an install token, not
//! an invoice's id, not a sign-in code or token, however much is logged. Whoever guesses is. The binary itself is
//! asked, at its most talkative.

use std::collections::HashSet;
use std::fs::File;

use serde_json::{Value, json};
use simgate::domain::token::TokenKind;

use crate::support::harness::{Db, Reply, each_database, reply, until};
use crate::support::logins::{AUTH, digit_runs};
use crate::support::place::Place;
use crate::support::process::on_site;
use crate::support::shapes::ORDERS;
use crate::support::tool_caller::{MCP, tool_call};
use crate::support::visitor::{Visitor, hidden};

fn check(db: Db) {
    on_site(db, Vec::new(), async |site| {
        let log = site.place.dir.join("log");
        let file = File::create(&log).unwrap();
        let mut server = site.start_talkative("simgate=trace,rmcp=trace,info", file).await;
        let secrets = use_it(&site.place, &server.base).await;
        server.kill();
        let written = std::fs::read_to_string(&log).unwrap();
        look_for(&written, &secrets);
    });
}

fn look_for(written: &str, secrets: &[String]) {
    assert!(written.contains("/api/b2b/v1/orders"), "requests are logged: {written}");
    for noted in
        ["a wrong sign-in code", "a***@example.com", "127.0.0.0/24", "a caller without valid credentials"]
    {
        assert!(written.contains(noted), "{noted} is not in the log: {written}");
    }
    // Six digits may also be a moment's microseconds, which stand before the first space.
    let told = written.lines().filter_map(|line| line.split_once(' '));
    let words: HashSet<&str> =
        told.flat_map(|(_, line)| line.split(|c: char| !c.is_alphanumeric())).collect();
    for secret in secrets {
        let is_there =
            if secret.len() > 6 { written.contains(secret) } else { words.contains(secret.as_str()) };
        assert!(!is_there, "{secret} is in the log");
    }
}

/// Buys, looks, is refused and fails; answers everything that must not be written down.
async fn use_it(place: &Place, base: &str) -> Vec<String> {
    let client = crate::support::harness::client().build().unwrap();
    let demo = std::fs::read_to_string(place.dir.join("simgate-demo.env")).unwrap();
    let value = |name: &str| {
        let line = demo.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_once('=').unwrap().1.trim_matches(['\'', '"']).to_string()
    };
    let (key, secret) = (value("B2B_KEY"), value("B2B_SECRET"));
    let post = async |path: &str, body: Value| {
        let request =
            client.post(format!("{base}{path}")).header("x-b2b-key", &key).header("x-b2b-secret", &secret);
        reply(request.header("content-type", "application/json").body(body.to_string())).await
    };
    let order = async |body: Value| post(ORDERS, body).await;
    let invoice = pay(base, &client, post).await;
    let bought = order(json!({ "packageCode": "JP-1GB-7D" })).await.expect(200)["order"].clone();
    order(json!({ "packageCode": 5 })).await.problem(400);
    for url in ["installUrl", "qrCodeUrl"] {
        assert_eq!(client.get(bought[url].as_str().unwrap()).send().await.unwrap().status(), 200);
    }
    let mood = json!({ "mode": "malformed", "count": 1 }).to_string();
    let sandbox = client.post(format!("{base}/sandbox/supplier")).header("content-type", "application/json");
    reply(sandbox.body(mood)).await.expect(200);
    order(json!({ "packageCode": "JP-1GB-7D" })).await.expect(200);
    let wrong = "sk_a-secret-that-is-not-ours";
    let stranger =
        client.get(format!("{base}{ORDERS}")).header("x-b2b-key", &key).header("x-b2b-secret", wrong);
    reply(stranger).await.problem(401);
    let token = bought["installUrl"].as_str().unwrap().rsplit('/').next().unwrap().to_string();
    let metrics = reply(client.get(format!("{base}/metrics"))).await.text;
    assert!(metrics.contains("/pay/{invoice}") && !metrics.contains(&invoice), "{metrics}");
    let mut secrets = sign_in(base, &client).await;
    secrets.extend(use_tools(base, &client).await);
    secrets.extend(use_account(base).await);
    secrets.extend([secret, wrong.into(), bought["matchingId"].as_str().unwrap().into(), token, invoice]);
    secrets
}

/// Logs in, after a wrong code, and opens what was mailed; answers the codes, tokens and links.
async fn sign_in(base: &str, client: &reqwest::Client) -> Vec<String> {
    let email = "ann.lee@example.com";
    let auth = async |path: &str, body: Value| {
        let request = client.post(format!("{base}{AUTH}/{path}")).header("content-type", "application/json");
        reply(request.body(body.to_string())).await
    };
    let mailed = async || reply(client.get(format!("{base}/sandbox/outbox?email={email}"))).await.expect(200);
    auth("request-otp", json!({ "email": email })).await.expect(200);
    let code = digit_runs(mailed().await["emails"][0]["text"].as_str().unwrap(), 6).remove(0);
    auth("verify-otp", json!({ "email": email, "otp": "00000x" })).await.problem(401);
    let made = auth("verify-otp", json!({ "email": email, "otp": code })).await.expect(200);
    let token = made["token"].as_str().unwrap().to_string();
    let guessed = TokenKind::Personal.make(1, 2);
    for (sent, status) in [(&token, 200), (&guessed, 401)] {
        let request = client.get(format!("{base}{AUTH}/tokens")).bearer_auth(sent);
        assert_eq!(reply(request).await.status, status);
    }
    let mut secrets = vec![email.to_string(), code, token, guessed];
    for mail in mailed().await["emails"].as_array().unwrap() {
        let text = mail["text"].as_str().unwrap();
        let link = text.split_whitespace().find(|word| word.starts_with("http")).unwrap();
        assert_eq!(client.get(link).send().await.unwrap().status(), 200);
        secrets.push(link.rsplit('/').next().unwrap().to_string());
    }
    assert_eq!(secrets.len(), 6);
    secrets
}

/// Logs in through the tools, guesses, and is short of money; answers the codes, tokens and links.
async fn use_tools(base: &str, client: &reqwest::Client) -> Vec<String> {
    let email = "bob.ray@example.com";
    let call = async |tool: &str, arguments: Value| {
        let message = tool_call(tool, arguments).to_string();
        let request = client.post(format!("{base}{MCP}")).header("content-type", "application/json");
        reply(request.body(message)).await.expect(200)["result"]["structuredContent"].clone()
    };
    call("send_agent_otp", json!({ "email": email })).await;
    let mailed = reply(client.get(format!("{base}/sandbox/outbox?email={email}"))).await.expect(200);
    let code = digit_runs(mailed["emails"][0]["text"].as_str().unwrap(), 6).remove(0);
    let made = call("verify_agent_otp", json!({ "email": email, "code": code })).await;
    let token = made["token"].as_str().unwrap().to_string();
    let guessed = TokenKind::Session.make(3, 4);
    call("get_wallet_balance", json!({ "token": guessed })).await;
    let short =
        call("purchase_esim_with_wallet", json!({ "packageCode": "JP-1GB-7D", "token": token })).await;
    let link = short["magicLink"].as_str().unwrap();
    assert_eq!(client.get(link).send().await.unwrap().status(), 200);
    vec![email.into(), code, token, guessed, link.rsplit('/').next().unwrap().into()]
}

/// Signs in on the pages, looks around and signs out; answers what the browser held and what its forms said.
async fn use_account(base: &str) -> Vec<String> {
    let email = "cat.poe@example.com";
    let mut cat = Visitor::at(base);
    let page = cat.open("/account").await;
    let mut secrets: Vec<String> = cat.cookies.values().cloned().collect();
    let asked = cat.submit(&page, "/account/code", &[("email", email)]).await;
    let mailed = reply(cat.get(&format!("/sandbox/outbox?email={email}"))).await.expect(200);
    let code = digit_runs(mailed["emails"][0]["text"].as_str().unwrap(), 6).remove(0);
    assert_eq!(cat.submit(&asked, "/account/sign-in", &[("code", &code)]).await.status, 303);
    let page = cat.open("/account").await;
    assert!(page.text.contains("Your account</h1>"), "{}", page.text);
    secrets.extend(cat.cookies.values().cloned());
    secrets.push(hidden(&page, "/account/sign-out").remove(0).1);
    assert_eq!(cat.submit(&page, "/account/sign-out", &[]).await.status, 303);
    secrets.extend([email.into(), code]);
    assert!(secrets.len() >= 5, "{secrets:?}");
    secrets
}

/// Opens an invoice, pays it and looks at it through every door; its id.
async fn pay(base: &str, client: &reqwest::Client, post: impl AsyncFn(&str, Value) -> Reply) -> String {
    let opened = post("/api/b2b/v1/balance/deposit", json!({ "amountUsd": 25, "currency": "USDC" })).await;
    let opened = opened.expect(200);
    let invoice = opened["invoiceId"].as_str().unwrap();
    post("/sandbox/pay", json!({ "invoiceId": invoice })).await.expect(200);
    until("the deposit is credited", async || {
        let looked = post("/api/b2b/v1/balance/verify-deposit", json!({ "invoiceId": invoice })).await;
        (looked.expect(200)["status"] == "CONFIRMED").then_some(())
    })
    .await;
    for page in [opened["checkoutUrl"].as_str().unwrap(), &format!("{base}/pay/{invoice}0")] {
        client.get(page).header("accept", "text/html").send().await.unwrap();
    }
    invoice.into()
}

each_database!(check);
