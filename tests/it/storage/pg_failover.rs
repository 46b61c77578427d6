//! A primary and its synchronous standby, which takes its place under load, again and again. Afterwards every
//! acknowledged order is there, none is charged twice, and the books balance. SIMGATE_TEST_FAILOVERS says how often.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::join;
use serde_json::json;

use crate::support::crowd::{CREDIT, Crowd, ORDERS, PLAN, SETTINGS};
use crate::support::dice::Dice;
use crate::support::environment::number;
use crate::support::harness::{Db, until};
use crate::support::postgres_servers::{Ground, Server};
use crate::support::process::{on_site, on_site_at};

const DOORS: &str = "host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust";

/// The standby must have what the primary acknowledges, from now on.
async fn insist(primary: &Server) {
    primary.set("synchronous_standby_names", "standby").await;
    until("the standby is synchronous", async || {
        let count = "SELECT count(*)::text FROM pg_stat_replication WHERE sync_state = 'sync'";
        (primary.ask("postgres", count) == "1").then_some(())
    })
    .await;
}

/// Three ways to change places; in each of them the old primary is gone in the end.
fn change_places(round: usize, old: &Server, new: &Server) {
    match round % 3 {
        0 => {
            old.stop("immediate");
            new.promote();
        }
        // For a while both would take writes; those of the old one wait for a standby that follows it no more.
        1 => {
            new.promote();
            old.stop("fast");
        }
        _ => {
            old.stop("fast");
            new.promote();
        }
    }
}

/// Programs that are waited for must not hold up the load.
async fn aside(work: impl FnOnce() + Send + 'static) {
    tokio::task::spawn_blocking(work).await.unwrap();
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_standby_takes_over_under_load() {
    let ground = Ground::new();
    let first = Arc::new(ground.server("first", &[], DOORS));
    let second = Arc::new(first.beside("second"));
    second.follow(&first);
    first.execute("postgres", "CREATE DATABASE shop");
    let url = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/shop?target_session_attrs=read-write",
        first.port, second.port
    );
    on_site_at(&url, SETTINGS.to_vec(), async move |site| {
        insist(&first).await;
        let mut dice = Dice::new();
        let gateway = site.start().await;
        let (_, key) = site.partner(&gateway, "Failover Travel", CREDIT).await;
        let mut crowd = Crowd::new(site, &key);
        crowd.forgives_faults = true;
        *crowd.bases.lock().unwrap() = vec![gateway.base.clone()];
        let mut choices = Dice(dice.roll(u64::MAX));
        let failovers = number("SIMGATE_TEST_FAILOVERS").unwrap_or(3) as usize;
        let conductor = async {
            let (mut old, mut new) = (first.clone(), second.clone());
            for round in 0..failovers {
                choices.pause(800).await;
                let since = Instant::now();
                let (leaving, coming) = (old.clone(), new.clone());
                aside(move || change_places(round, &leaving, &coming)).await;
                let changed = Instant::now();
                let order = json!({ "packageCode": PLAN, "partnerRefId": format!("after-{round}") });
                until("it sells again", async || {
                    let reply = site.send(&gateway.base, &key, "POST", ORDERS, Some(&order)).await?;
                    (reply.status == 200).then_some(())
                })
                .await;
                let (gap, all) = (changed.elapsed(), since.elapsed());
                eprintln!("failover {round}: it sold {gap:?} after the change, {all:?} after its beginning");
                assert!(gap < Duration::from_secs(60), "{gap:?}");
                let (leaving, coming) = (old.clone(), new.clone());
                aside(move || leaving.follow(&coming)).await;
                insist(&new).await;
                (old, new) = (new, old);
            }
            crowd.closing.store(true, Ordering::Relaxed);
        };
        join(crowd.run(0, &mut dice, true), conductor).await;
        crowd.call_again(&gateway).await;
        crowd.check(&gateway).await;
        eprintln!("{} calls, {failovers} failovers", crowd.memory.all().len());
    });
}

/// Whoever came back without being told that it has a successor would take orders that nobody else knows of.
#[test]
#[ignore = "needs PostgreSQL"]
fn a_primary_of_the_past_gets_no_writes() {
    let ground = Ground::new();
    let past = ground.server("past", &[], DOORS);
    let present = past.beside("present");
    past.execute("postgres", "CREATE DATABASE shop");
    present.follow(&past);
    let url = format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/shop", present.port, past.port);
    on_site_at(&url, vec![], async move |site| {
        insist(&past).await;
        let gateway = site.start().await;
        let (_, key) = site.partner(&gateway, "Faithful Travel", CREDIT).await;
        let buy = async |reference: &str| {
            let order = json!({ "packageCode": PLAN, "partnerRefId": reference });
            site.send(&gateway.base, &key, "POST", ORDERS, Some(&order)).await.unwrap().status
        };
        let is_ready = async || {
            site.client.get(format!("{}/readyz", gateway.base)).send().await.unwrap().status() == 200
        };
        assert_eq!(buy("before").await, 200);
        past.set("synchronous_standby_names", "").await;
        past.stop("immediate");
        present.promote();
        until("it sells at the new primary", async || (buy("after").await == 200).then_some(())).await;
        // It was only a power cut.
        past.start();
        let there = "SELECT count(*)::text FROM orders";
        assert_eq!([present.ask("shop", there), past.ask("shop", there)], ["2", "1"]);
        present.stop("immediate");
        assert!(buy("nowhere").await >= 500);
        until("it is not ready", async || (!is_ready().await).then_some(())).await;
        assert_eq!(past.ask("shop", there), "1");
        present.start();
        until("it is ready", async || is_ready().await.then_some(())).await;
        assert_eq!(buy("nowhere").await, 200);
        site.verify_books().await;
    });
}

/// A host that takes a connection and says nothing is passed by.
#[test]
#[ignore = "needs PostgreSQL"]
fn a_host_that_hangs_holds_nobody_up() {
    on_site(Db::Postgres, vec![], async |site| {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let hosts = format!("127.0.0.1:{},127.0.0.1:", silent.local_addr().unwrap().port());
        let url = site.place.url.replace("127.0.0.1:", &hosts);
        site.by(&format!("{url}?connect_timeout=1")).cli(&["migrate"]).await;
    });
}
