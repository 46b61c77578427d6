//! Real servers that settle with one gas key: two at once, and one that dies again and again between claiming a
//! signature and delivering what it pays for.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::money::Usd;

use super::node::Node;
use super::till::{CHECKOUT, PLAN, node_for, settings, while_mining};
use crate::support::environment::number;
use crate::support::harness::{Db, Reply, reply, until};
use crate::support::payer::{Payer, decoded};
use crate::support::place::{Place, execute};
use crate::support::process::{Server, Site, on_site};

const PAYERS: u8 = 20;

/// Runs a test on a site whose servers find the node in a file of settings.
fn on_node(db: Db, test: impl AsyncFnOnce(&Site, &Node) + 'static) {
    on_site(db, vec![], async move |site| {
        let node = node_for(Some("2"), true).await;
        let lines = settings(&node, &[]).into_iter();
        let text: String = lines.map(|(name, value)| format!("{name} = \"{value}\"\n")).collect();
        std::fs::write(site.place.dir.join("simgate.toml"), text).unwrap();
        for payer in 1..=PAYERS {
            node.mint(&Payer::new(payer).address, Usd::dollars(1_000)).await;
        }
        test(site, &node).await;
    });
}

async fn post(site: &Site, server: &Server, path: &str, token: Option<&str>, body: Value) -> Reply {
    let request =
        site.client.post(format!("{}{path}", server.base)).header("content-type", "application/json");
    let request = match token {
        Some(token) => request.header("authorization", format!("Bearer {token}")),
        None => request,
    };
    reply(request.body(body.to_string())).await
}

async fn sign_in(site: &Site, server: &Server, email: &str) -> String {
    post(site, server, "/api/agentic/auth/request-otp", None, json!({ "email": email })).await.expect(200);
    let url = format!("{}/sandbox/outbox?email={email}", server.base);
    let mails = reply(site.client.get(url)).await.expect(200);
    let text = mails["emails"][0]["text"].as_str().unwrap();
    let otp = text.lines().next().unwrap().rsplit(' ').next().unwrap();
    let body = json!({ "email": email, "otp": otp });
    let made = post(site, server, "/api/agentic/auth/verify-otp", None, body).await.expect(200);
    made["token"].as_str().unwrap().to_string()
}

async fn offer(site: &Site, server: &Server, token: &str) -> (Value, Value) {
    until("payments by signature are taken", async || {
        let body =
            post(site, server, CHECKOUT, Some(token), json!({ "packageCode": PLAN })).await.expect(402);
        if body["capabilities"]["x402"] != true {
            // Each question opens a checkout, and a customer has at most fifty.
            tokio::time::sleep(Duration::from_millis(500)).await;
            return None;
        }
        Some((body["invoiceId"].clone(), body["accepts"][0].clone()))
    })
    .await
}

/// `None` when nobody answered.
async fn pay(site: &Site, server: &Server, token: &str, signature: &str) -> Option<u16> {
    let request = site.client.post(format!("{}{CHECKOUT}", server.base));
    let request =
        request.header("authorization", format!("Bearer {token}")).header("payment-signature", signature);
    let request =
        request.header("content-type", "application/json").body(json!({ "packageCode": PLAN }).to_string());
    Some(request.send().await.ok()?.status().as_u16())
}

async fn until_completed(site: &Site, node: &Node, server: &Server, invoice: &Value) {
    until("the order is delivered", async || {
        node.mine(1).await;
        let url = format!("{}/api/agentic/order/{}", server.base, invoice.as_str().unwrap());
        let order = reply(site.client.get(url)).await.expect(200);
        (order["status"] == "COMPLETED").then_some(())
    })
    .await;
}

/// A killed server's turns end by themselves after some seconds; here nobody has to wait for it.
fn end_turns(place: &Place) {
    let statement = "UPDATE cursors SET held_until = 0; UPDATE settlers SET held_until = 0";
    match place.db {
        Db::Postgres => execute(&place.url, statement),
        Db::Sqlite => {
            let connection = rusqlite::Connection::open(place.url.strip_prefix("sqlite:").unwrap()).unwrap();
            connection.busy_timeout(Duration::from_secs(5)).unwrap();
            connection.execute_batch(statement).unwrap();
        }
    }
}

/// Whoever is asked, one of them settles; no number of the key is used twice or left out.
#[test]
#[ignore = "needs anvil"]
fn two_gateways_with_one_gas_key_settle_200_payments() {
    on_node(Db::Postgres, async |site, node| {
        let servers = [site.start().await, site.start().await];
        let mut tokens = Vec::new();
        for payer in 1..=PAYERS {
            tokens.push(sign_in(site, &servers[0], &format!("p{payer}@example.com")).await);
        }
        let payments = (0..200u64).map(|number| {
            let (server, payer) = (&servers[number as usize % 2], Payer::new(number as u8 % PAYERS + 1));
            let token = &tokens[number as usize % usize::from(PAYERS)];
            async move {
                let (invoice, offer) = offer(site, server, token).await;
                let signature = payer.pay(&offer, number);
                let status = pay(site, server, token, &signature).await.unwrap();
                assert!(status == 200 || status == 202, "HTTP {status}");
                (invoice, offer)
            }
        });
        let paid = while_mining(node, join_all(payments)).await;
        let mut total = Usd::ZERO;
        for (invoice, offer) in &paid {
            until_completed(site, node, &servers[1], invoice).await;
            total = total.plus(Usd::from_micros(offer["amount"].as_str().unwrap().parse().unwrap()));
        }
        let mut spent = Usd::ZERO;
        for payer in 1..=PAYERS {
            let minted = Usd::dollars(if payer == 1 { 1_100 } else { 1_000 });
            spent = spent.plus(minted.minus(node.balance_of(&node.usdc, &Payer::new(payer).address).await));
        }
        assert_eq!(spent, total);
        site.verify_books().await;
    });
}

/// Lets a request go on for a moment that nobody knows before.
async fn before_death<T>(request: impl Future<Output = T>) {
    let moment = Duration::from_millis(simgate::vault::random() as u64 % 400);
    let _ = tokio::time::timeout(moment, request).await;
}

/// Kills a server and starts the next.
async fn restarted(site: &Site, mut server: Server) -> Server {
    server.kill();
    end_turns(&site.place);
    site.start().await
}

/// Each death comes somewhere between the claim and the eSIM. The payer asks again with the same signature.
fn killed_while_settling(db: Db) {
    let kills = number("SIMGATE_TEST_KILLS").map_or(5, |kills| kills.div_ceil(4));
    on_node(db, async move |site, node| {
        let mut server = site.start().await;
        let token = sign_in(site, &server, "ann@example.com").await;
        let payer = Payer::new(1);
        let mut total = Usd::ZERO;
        for kill in 0..kills {
            let (invoice, offer) = offer(site, &server, &token).await;
            let signature = payer.pay(&offer, kill);
            while_mining(node, before_death(pay(site, &server, &token, &signature))).await;
            server = restarted(site, server).await;
            let status = until("the signature is taken again", async || {
                // Until the new server has looked at the chain it takes no payments, and asks for none.
                let status = while_mining(node, pay(site, &server, &token, &signature)).await.unwrap();
                (status == 200 || status == 202).then_some(status)
            })
            .await;
            assert!(status == 200 || status == 202);
            until_completed(site, node, &server, &invoice).await;
            total = total.plus(Usd::from_micros(offer["amount"].as_str().unwrap().parse().unwrap()));
            let left = node.balance_of(&node.usdc, &payer.address).await;
            assert_eq!(Usd::dollars(1_100).minus(left), total, "paid once each");
        }
        site.verify_books().await;
    });
}

/// A tool of a server; `None` when nobody answered.
async fn use_tool(
    site: &Site,
    server: &Server,
    tool: &str,
    arguments: &Value,
    meta: &Value,
) -> Option<Value> {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request =
        site.client.post(format!("{}/api/mcp", server.base)).header("content-type", "application/json");
    let answer = request.body(message.to_string()).send().await.ok()?;
    let body: Value = serde_json::from_slice(&answer.bytes().await.ok()?).unwrap();
    Some(body["result"]["structuredContent"].clone())
}

/// The same for top-ups, which are paid by signature in a tool.
fn killed_while_topping_up(db: Db) {
    on_node(db, async |site, node| {
        let mut server = site.start().await;
        let token = sign_in(site, &server, "ann@example.com").await;
        let payer = Payer::new(1);
        let (invoice, first) = offer(site, &server, &token).await;
        pay(site, &server, &token, &payer.pay(&first, 0)).await;
        until_completed(site, node, &server, &invoice).await;
        let none = json!({});
        let listed =
            use_tool(site, &server, "get_user_orders", &json!({ "token": token }), &none).await.unwrap();
        let order = listed["orders"][0]["id"].clone();
        let asked = json!({ "orderId": order, "token": token });
        let fitting = use_tool(site, &server, "get_topup_packages", &asked, &none).await.unwrap();
        let wish =
            json!({ "orderId": order, "packageCode": fitting["packages"][0]["packageCode"], "token": token });
        let amount = |offer: &Value| Usd::from_micros(offer["amount"].as_str().unwrap().parse().unwrap());
        let mut total = amount(&first);
        for kill in 1..=3usize {
            let due = until("payments by signature are taken", async || {
                let meta = json!({ "x402/client": { "version": 2 } });
                let asked = use_tool(site, &server, "purchase_topup", &wish, &meta).await.unwrap();
                asked["accepts"].is_array().then(|| asked["accepts"][0].clone())
            })
            .await;
            let meta = json!({ "x402/payment": decoded(&payer.pay(&due, kill as u64)) });
            while_mining(node, before_death(use_tool(site, &server, "purchase_topup", &wish, &meta))).await;
            server = restarted(site, server).await;
            let bought = until("the top-up is there", async || {
                let answer =
                    while_mining(node, use_tool(site, &server, "purchase_topup", &wish, &meta)).await;
                answer.filter(|answer| answer["purchased"] == true)
            })
            .await;
            let shown =
                use_tool(site, &server, "get_user_orders", &json!({ "token": token }), &none).await.unwrap();
            let topups = shown["orders"][0]["topUps"].as_array().unwrap();
            assert_eq!((topups.len(), &topups[kill - 1]["id"]), (kill, &bought["topUpOrder"]["id"]));
            total = total.plus(amount(&due));
            let left = node.balance_of(&node.usdc, &payer.address).await;
            assert_eq!(Usd::dollars(1_100).minus(left), total, "paid once each");
        }
        site.verify_books().await;
    });
}

#[test]
#[ignore = "needs anvil"]
fn killed_while_topping_up_sqlite() {
    killed_while_topping_up(Db::Sqlite);
}

#[test]
#[ignore = "needs anvil"]
fn killed_while_topping_up_postgres() {
    killed_while_topping_up(Db::Postgres);
}

#[test]
#[ignore = "needs anvil"]
fn killed_while_settling_sqlite() {
    killed_while_settling(Db::Sqlite);
}

#[test]
#[ignore = "needs anvil"]
fn killed_while_settling_postgres() {
    killed_while_settling(Db::Postgres);
}
