//! SIGTERM: what is running is finished and answered, nobody new is let in, the exit code is 0 in time,
//! and an order that the supplier has not answered survives.

use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use crate::support::harness::{Db, Key, until};
use crate::support::process::{Server, Site, on_site};

const ORDERS: &str = "/api/b2b/v1/orders";
const PLAN: &str = "JP-1GB-7D";
/// Eight seconds for what is running, and what a busy machine takes; a silent supplier would take longer.
const LIMIT: Duration = Duration::from_secs(20);

async fn balance(site: &Site, server: &Server, key: &Key) -> Value {
    site.send(&server.base, key, "GET", "/api/b2b/v1/balance", None).await.unwrap().expect(200)
}

/// How many orders are held at the moment, from their money.
async fn held(site: &Site, server: &Server, key: &Key, count: usize) {
    let plans = site.send(&server.base, key, "GET", "/api/b2b/v1/plans?country=JP", None).await.unwrap();
    let plans = plans.expect(200)["plans"].clone();
    let plan = plans.as_array().unwrap().iter().find(|plan| plan["packageCode"] == PLAN).unwrap().clone();
    let all = plan["priceUsd"].as_f64().unwrap() * count as f64;
    until("all orders are with the supplier", async || {
        let held = balance(site, server, key).await["heldUsd"].as_f64().unwrap();
        ((held - all).abs() < 0.000_000_1).then_some(())
    })
    .await;
}

/// Asks for a stop; true when it ended well and in time.
async fn stop(server: &mut Server) {
    let asked = Instant::now();
    server.terminate();
    let code = server.exit_code().await;
    assert_eq!(code, Some(0));
    assert!(asked.elapsed() < LIMIT, "stopped after {:?}", asked.elapsed());
}

fn answered(db: Db) {
    on_site(db, vec![], async |site| {
        let mut server = site.start().await;
        let (_, key) = site.partner(&server, "Last Minute Travel", "1000").await;
        site.supplier(&server, json!({ "mode": "slow", "delayMs": 3_000 })).await;
        // Sockets that say nothing do not hold up the end.
        let _idle = std::net::TcpStream::connect(&server.address).unwrap();
        let base = server.base.clone();
        let callers = join_all((0..8).map(async |number| {
            let body = json!({ "packageCode": PLAN, "partnerRefId": format!("last-{number}") });
            site.send(&base, &key, "POST", ORDERS, Some(&body))
                .await
                .expect("a request in flight is answered")
        }));
        let stopped = async {
            held(site, &server, &key, 8).await;
            server.terminate();
            let address = server.address.clone();
            until("nobody new is let in", async || {
                std::net::TcpStream::connect(&address).is_err().then_some(())
            })
            .await;
            let closed = Instant::now();
            assert_eq!(server.exit_code().await, Some(0));
            assert!(closed.elapsed() < LIMIT);
        };
        let (replies, ()) = join(callers, stopped).await;
        for reply in &replies {
            assert_eq!(reply.expect(200)["order"]["status"], "FULFILLED");
        }
        site.verify_books().await;
        let listed = site.cli(&["order", "list", "--status", "FULFILLED"]).await;
        assert_eq!(listed["orders"].as_array().unwrap().len(), 8);
    });
}

#[test]
fn requests_in_flight_are_answered_sqlite() {
    answered(Db::Sqlite);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn requests_in_flight_are_answered_postgres() {
    answered(Db::Postgres);
}

fn survives(db: Db) {
    let settings = vec![("answer_within_ms", "300"), ("supplier_timeout_ms", "1500")];
    on_site(db, settings, async |site| {
        let mut server = site.start().await;
        let (_, key) = site.partner(&server, "Patient Travel", "1000").await;
        site.supplier(&server, json!({ "mode": "timeout" })).await;
        let mut open = Vec::new();
        for _ in 0..3 {
            let body = json!({ "packageCode": PLAN });
            let reply = site.send(&server.base, &key, "POST", ORDERS, Some(&body)).await.unwrap();
            open.push(reply.expect(202)["order"]["id"].as_str().unwrap().to_string());
        }
        stop(&mut server).await;
        site.verify_books().await;
        let server = site.start().await;
        site.supplier(&server, json!({ "mode": "ok" })).await;
        for id in &open {
            let path = format!("{ORDERS}/{id}");
            until("the order is delivered", async || {
                let found = site.send(&server.base, &key, "GET", &path, None).await.unwrap().expect(200);
                (found["order"]["status"] == "FULFILLED").then_some(())
            })
            .await;
        }
        assert_eq!(balance(site, &server, &key).await["heldUsd"], 0);
        site.verify_books().await;
    });
}

#[test]
fn open_orders_survive_sqlite() {
    survives(Db::Sqlite);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn open_orders_survive_postgres() {
    survives(Db::Postgres);
}

/// A supplier that takes for ever does not keep the server: its order is finished by whoever looks next.
#[test]
fn a_silent_supplier_does_not_hold_up_the_end() {
    on_site(Db::Sqlite, vec![], async |site| {
        let mut server = site.start().await;
        let (_, key) = site.partner(&server, "Endless Travel", "1000").await;
        site.supplier(&server, json!({ "mode": "timeout" })).await;
        let base = server.base.clone();
        let body = json!({ "packageCode": PLAN });
        let caller = site.send(&base, &key, "POST", ORDERS, Some(&body));
        let stopped = async {
            held(site, &server, &key, 1).await;
            stop(&mut server).await;
        };
        join(caller, stopped).await;
        site.verify_books().await;
        let open = site.cli(&["order", "list", "--status", "PROVISIONING"]).await["orders"][0].clone();
        let server = site.start().await;
        site.supplier(&server, json!({ "mode": "ok" })).await;
        let shown = site.cli(&["order", "retry", open["id"].as_str().unwrap()]).await;
        assert_eq!(shown["status"], "FULFILLED");
        site.verify_books().await;
    });
}
