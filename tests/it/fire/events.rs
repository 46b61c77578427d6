//! Whoever reads the event log beside writers reads every event once and in order, whichever instance it asks.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::harness::{Db, Key, Reply, until};
use crate::support::process::{Server, Site, on_prepared_site};

const ORDERS: &str = "/api/b2b/v1/orders";
const PLAN: &str = "JP-1GB-7D";
const FAILED: usize = 4;
const BUYERS: usize = 6;
const EACH: usize = 25;

/// Reads on until the events of this many orders have been read, with short pages and waiting for more.
async fn read_all(site: &Site, servers: &[&Server], key: &Key, orders: usize) -> Vec<Value> {
    let (mut read, mut after, mut turn) = (Vec::new(), String::new(), 0);
    while read.len() < orders {
        let path = format!("/api/b2b/v1/events?wait=1&limit=7{after}");
        let server = servers[turn % servers.len()];
        let page = site.send(&server.base, key, "GET", &path, None).await.unwrap().expect(200);
        read.extend(page["events"].as_array().unwrap().clone());
        after = format!("&after={}", page["nextAfter"].as_str().unwrap());
        turn += 1;
    }
    read
}

/// At once or, on a busy machine, a little later.
#[track_caller]
fn sold(reply: &Reply) {
    assert!([200, 202].contains(&reply.status), "{}", reply.text);
}

fn ids(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["id"].as_str().unwrap()).collect()
}

async fn check(site: &Site, servers: usize) {
    let mut fleet = vec![site.start().await];
    while fleet.len() < servers {
        fleet.push(site.start().await);
    }
    let (_, key) = site.partner(&fleet[0], "Busy Travel", "10000").await;
    let (_, other) = site.partner(&fleet[0], "Noisy Travel", "10000").await;
    let order = async |server: &Server, key: &Key| {
        let body = json!({ "packageCode": PLAN });
        site.send(&server.base, key, "POST", ORDERS, Some(&body)).await.unwrap()
    };
    for server in &fleet {
        until("the key is known", async || {
            let known = site.send(&server.base, &other, "GET", "/api/b2b/v1/balance", None).await;
            known.filter(|reply| reply.status == 200)
        })
        .await;
    }
    // Some orders are open for the operator to fail.
    site.supplier(&fleet[0], json!({ "mode": "timeout", "count": 1_000_000 })).await;
    let mut open = Vec::new();
    while open.len() < FAILED {
        let reply = order(&fleet[0], &key).await.expect(202);
        open.push(reply["order"]["id"].as_str().unwrap().to_string());
    }
    site.supplier(&fleet[0], json!({ "mode": "ok" })).await;

    let all = BUYERS * EACH + FAILED;
    let done = AtomicBool::new(false);
    let buyers = join_all((0..BUYERS).map(async |n| {
        for turn in 0..EACH {
            sold(&order(&fleet[(n + turn) % fleet.len()], &key).await);
        }
    }));
    let noise = join_all((0..2).map(async |n| {
        while !done.load(Ordering::Relaxed) {
            sold(&order(&fleet[n % fleet.len()], &other).await);
        }
    }));
    let operator = async {
        for id in &open {
            // Recovery may have found out first that it was sold.
            site.try_cli(&["order", "fail", id, "--reason", "test"]).await;
        }
    };
    let roaming: Vec<&Server> = fleet.iter().collect();
    let readers = async {
        let first = read_all(site, &roaming[..1], &key, all);
        let last = read_all(site, &roaming[fleet.len() - 1..], &key, all);
        let (first, last, roaming) = tokio::join!(first, last, read_all(site, &roaming, &key, all));
        done.store(true, Ordering::Relaxed);
        [first, last, roaming]
    };
    let (_, _, (), read) = tokio::join!(buyers, noise, operator, readers);
    let whole = read_all(site, &roaming[..1], &key, all).await;
    assert_eq!(whole.len(), all);
    for (nth, read) in read.iter().enumerate() {
        assert_eq!(ids(read), ids(&whole), "reader {nth}");
    }
    let mut orders: Vec<&str> = whole.iter().map(|event| event["data"]["id"].as_str().unwrap()).collect();
    assert!(whole.iter().all(|event| event["sequence"] == 1));
    orders.sort_unstable();
    orders.dedup();
    assert_eq!(orders.len(), all, "one event for each order");
    site.verify_books().await;
}

#[test]
fn readers_miss_nothing_sqlite() {
    on_prepared_site(
        Db::Sqlite,
        vec![("answer_within_ms", "500"), ("supplier_timeout_ms", "700")],
        async |site| check(site, 1).await,
    );
}

#[test]
#[ignore = "needs PostgreSQL"]
fn readers_miss_nothing_postgres() {
    on_prepared_site(
        Db::Postgres,
        vec![("answer_within_ms", "500"), ("supplier_timeout_ms", "700")],
        async |site| check(site, 3).await,
    );
}
