//! What opens a door is never written down: not the API secret, not an activation code, not an install token, not
//! an invoice's id, however much is logged. The binary itself is asked, at its most talkative.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Db, Place, Reply, reply, until};
use crate::shapes::ORDERS;

fn check(db: Db) {
    let Some(place) = Place::new(db) else {
        eprintln!("skipped: SIMGATE_TEST_POSTGRES is not set");
        return;
    };
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let log = place.dir.join("log");
    let file = File::create(&log).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_simgate"))
        .env_clear()
        .current_dir(&place.dir)
        .args(["serve", "--listen", &address, "--database-url", &place.url, "--log", "simgate=trace,info"])
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let secrets = runtime.block_on(use_it(&place, &format!("http://{address}")));
    server.kill().unwrap();
    server.wait().unwrap();
    let written = std::fs::read_to_string(&log).unwrap();
    assert!(written.contains("/api/b2b/v1/orders"), "requests are logged: {written}");
    for secret in secrets {
        assert!(!written.contains(&secret), "{secret} is in the log");
    }
    place.remove();
}

/// Buys, looks, is refused and fails; answers everything that must not be written down.
async fn use_it(place: &Place, base: &str) -> Vec<String> {
    let client = crate::harness::client().build().unwrap();
    let started = Instant::now();
    while !client.get(format!("{base}/readyz")).send().await.is_ok_and(|ready| ready.status() == 200) {
        assert!(started.elapsed() < Duration::from_secs(30), "the server does not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
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
    vec![secret, wrong.into(), bought["matchingId"].as_str().unwrap().into(), token, invoice]
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

#[test]
fn sqlite() {
    check(Db::Sqlite);
}

#[test]
fn postgres() {
    check(Db::Postgres);
}
