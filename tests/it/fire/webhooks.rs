//! `kill -9` of gateways and of a receiver, under load: every event arrives, those of an order in order, and what comes twice
//! is the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::dice::Dice;
use crate::support::harness::{Db, Key, until};
use crate::support::process::{Server, Site, on_prepared_site};
use crate::support::receiver::{Got, Receiver};

const API: &str = "/api/b2b/v1";
const ORDERS: usize = 120;
const KILLS: usize = 3;

/// All events of the log, by id.
async fn log(site: &Site, server: &Server, key: &Key) -> BTreeMap<String, Value> {
    let (mut all, mut after) = (BTreeMap::new(), String::new());
    loop {
        let path = format!("{API}/events?limit=100{after}");
        let page = site.send(&server.base, key, "GET", &path, None).await.unwrap().expect(200);
        for event in page["events"].as_array().unwrap() {
            all.insert(event["id"].as_str().unwrap().to_string(), event.clone());
        }
        if page["hasMore"] == false {
            return all;
        }
        after = format!("&after={}", page["nextAfter"].as_str().unwrap());
    }
}

/// Every rule that a receiver may rely on.
fn check_rules(got: &[Got], secret: &str, log: &BTreeMap<String, Value>) {
    let mut accepted: BTreeMap<&str, &Got> = BTreeMap::new();
    let mut reached: BTreeMap<String, i64> = BTreeMap::new();
    for delivery in got {
        assert!(delivery.is_signed_by(secret));
        let event = delivery.event();
        if event["type"] == "webhook.test" {
            continue;
        }
        assert_eq!(Some(&event), log.get(&delivery.id), "what comes is what the log has");
        if !(200..300).contains(&delivery.status) {
            continue;
        }
        if let Some(first) = accepted.get(delivery.id.as_str()) {
            assert_eq!(first.body, delivery.body, "what comes twice is the same");
            continue;
        }
        accepted.insert(&delivery.id, delivery);
        let order = event["data"]["id"].as_str().unwrap().to_string();
        let last = reached.entry(order).or_default();
        assert_eq!(event["sequence"], *last + 1, "in order, and none left out: {event}");
        *last += 1;
    }
    let came: BTreeSet<&str> = accepted.into_keys().collect();
    let all: BTreeSet<&str> = log.keys().map(String::as_str).collect();
    assert_eq!(came, all, "nothing is missed");
}

async fn check(site: &Site, servers: usize) {
    let mut dice = Dice::new();
    let mut fleet = vec![site.start().await];
    while fleet.len() < servers {
        fleet.push(site.start().await);
    }
    let (_, key) = site.partner(&fleet[0], "Hooked Travel", "10000").await;
    let mut receiver = Receiver::start().await;
    let wish = json!({ "url": receiver.url });
    let made = site
        .send(&fleet[0].base, &key, "POST", &format!("{API}/webhooks"), Some(&wish))
        .await
        .unwrap()
        .expect(200);
    let secret = made["secret"].as_str().unwrap().to_string();

    let bases = Mutex::new(fleet.iter().map(|server| server.base.clone()).collect::<Vec<_>>());
    let buyer = async {
        let mut turn = 0;
        for n in 0..ORDERS {
            let reference = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": format!("trip-{n}") });
            let order = until("an order", async || {
                turn += 1;
                let base = bases.lock().unwrap()[turn % servers].clone();
                let reply =
                    site.send(&base, &key, "POST", &format!("{API}/orders"), Some(&reference)).await?;
                (reply.status == 200).then(|| reply.json()["order"].clone())
            })
            .await;
            if n % 3 == 0 {
                let path = format!("{API}/orders/{}/cancel", order["id"].as_str().unwrap());
                let base = bases.lock().unwrap()[n % servers].clone();
                // It may be asked for at a server that is dead.
                let _ = site.send(&base, &key, "POST", &path, None).await;
            }
        }
    };
    let killer = async {
        for round in 0..KILLS {
            tokio::time::sleep(Duration::from_millis(300 + dice.roll(900))).await;
            receiver.die();
            let nth = round % fleet.len();
            fleet[nth].kill();
            fleet[nth] = site.start().await;
            bases.lock().unwrap()[nth] = fleet[nth].base.clone();
            receiver.rise().await;
        }
    };
    tokio::join!(buyer, killer);
    // A cancel whose answer was lost goes on.
    until("nothing is open", async || {
        let open = site.cli(&["order", "list", "--status", "CANCELLING"]).await;
        open["orders"].as_array().unwrap().is_empty().then_some(())
    })
    .await;
    // A log that is read while a transaction lasts long has a part of it.
    let log = until("every event is accepted", async || {
        let log = log(site, &fleet[0], &key).await;
        let accepted: BTreeSet<String> =
            receiver.accepted().iter().map(|event| event["id"].as_str().unwrap().to_string()).collect();
        (accepted.len() == log.len() && log.len() >= ORDERS).then_some(log)
    })
    .await;
    check_rules(&receiver.all(), &secret, &log);
    site.verify_books().await;
}

fn settings() -> Vec<(&'static str, &'static str)> {
    vec![("webhook_allow_private", "true"), ("answer_within_ms", "5000")]
}

#[test]
fn nothing_is_missed_sqlite() {
    on_prepared_site(Db::Sqlite, settings(), async |site| check(site, 1).await);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn nothing_is_missed_postgres() {
    on_prepared_site(Db::Postgres, settings(), async |site| check(site, 3).await);
}
