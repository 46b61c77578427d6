//! A key works at the next request after it was made, whoever made it and whichever server is asked; and whoever makes
//! keys up costs the database a few small reads a second, however many he tries.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use simgate::app::App;
use simgate::ops::operator::{self, KeyTerms};
use simgate::start::{self, Role};

use crate::support::database;
use crate::support::harness::{Db, Key, until};
use crate::support::process::{Server, Site, on_site};

const BALANCE: &str = "/api/b2b/v1/balance";
const KEYS: usize = 200;
const STRANGERS: usize = 24;

/// A server looks for a key that it does not know for two seconds: what it says after them, it says of its machine.
async fn status(site: &Site, server: &Server, key: &Key) -> u16 {
    loop {
        let asked = Instant::now();
        let status = site.send(&server.base, key, "GET", BALANCE, None).await.unwrap().status;
        if status != 401 || asked.elapsed() < Duration::from_secs(2) {
            return status;
        }
    }
}

/// Another process that makes keys, without the cost of starting one each time.
async fn operator_of(site: &Site) -> App {
    start::open(site.place.settings(&[]), Role::Command).await.unwrap()
}

async fn looked_up(site: &Site, server: &Server) -> u64 {
    let text =
        site.client.get(format!("{}/metrics", server.base)).send().await.unwrap().text().await.unwrap();
    let line = text.lines().find(|line| line.starts_with("simgate_lookups_total{of=\"key\"}"));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

fn new_keys_work_at_once(db: Db, servers: usize) {
    on_site(db, vec![], async move |site| {
        let servers = join_all((0..servers).map(|_| site.start())).await;
        let made = site.cli(&["partner", "create", "--name", "New Travel"]).await;
        let text = |field: &str| made[field].as_str().unwrap().to_string();
        let (partner, first) = (text("partnerId"), Key { id: text("apiKey"), secret: text("apiSecret") });
        for server in &servers {
            assert_eq!(status(site, server, &first).await, 200, "a new partner's key");
        }
        for n in 0..5 {
            let made = site.cli(&["key", "create", &partner]).await;
            let text = |field: &str| made[field].as_str().unwrap().to_string();
            let key = Key { id: text("apiKey"), secret: text("apiSecret") };
            for server in &servers {
                assert_eq!(status(site, server, &key).await, 200, "by a command, {n}");
            }
        }
        let app = operator_of(site).await;
        let account = operator::account(&app, &partner).await.unwrap().no;
        let mut keys = Vec::new();
        for n in 0..KEYS {
            let made = operator::create_key(&app, "test", account, KeyTerms::default()).await.unwrap();
            let key = Key { id: made.id.to_string(), secret: made.secret };
            let heard = join_all(servers.iter().map(|server| status(site, server, &key))).await;
            assert!(heard.iter().all(|status| *status == 200), "key {n}: {heard:?}");
            keys.push(key);
        }
        // One that is revoked counts no more, within a second or as long as a busy machine takes.
        operator::revoke_key(&app, "test", &keys[0].id).await.unwrap();
        for server in &servers {
            until("the revocation counts", async || {
                (status(site, server, &keys[0]).await == 401).then_some(())
            })
            .await;
            assert_eq!(status(site, server, &keys[1]).await, 200);
        }
        database::on_plain_thread(|| app.store.close());
        site.verify_books().await;
    });
}

#[test]
fn a_new_key_works_at_the_next_request_sqlite() {
    new_keys_work_at_once(Db::Sqlite, 1);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn a_new_key_works_at_the_next_request_postgres() {
    new_keys_work_at_once(Db::Postgres, 2);
}

/// Made-up keys, wrong secrets, and some who hang up at once; beside them known keys and new ones.
fn made_up_keys_cost_few_looks(db: Db) {
    on_site(db, vec![], async |site| {
        let server = site.start().await;
        let (partner, known) = site.partner(&server, "Known Travel", "10").await;
        let app = operator_of(site).await;
        let account = operator::account(&app, &partner).await.unwrap().no;
        let (before, started) = (looked_up(site, &server).await, Instant::now());
        let tried = std::sync::atomic::AtomicUsize::new(0);
        let done = std::sync::atomic::AtomicBool::new(false);
        let strangers = join_all((0..STRANGERS).map(async |n| {
            let hasty = crate::support::harness::client().timeout(Duration::from_millis(5)).build().unwrap();
            for round in 0.. {
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                tried.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let unknown = Key { id: format!("key_{n}x{round}"), secret: known.secret.clone() };
                let wrong = Key { id: known.id.clone(), secret: format!("sk_{n}x{round}") };
                match n % 6 {
                    0 | 3 | 4 => assert_eq!(status(site, &server, &unknown).await, 401),
                    1 | 2 => assert_eq!(status(site, &server, &wrong).await, 401),
                    _ => {
                        let request = hasty.get(format!("{}{BALANCE}", server.base));
                        let request =
                            request.header("x-b2b-key", &unknown.id).header("x-b2b-secret", &unknown.secret);
                        let _ = request.send().await;
                    }
                }
            }
        }));
        let honest = async {
            for n in 0..50 {
                let made = operator::create_key(&app, "test", account, KeyTerms::default()).await.unwrap();
                let new = Key { id: made.id.to_string(), secret: made.secret };
                assert_eq!(status(site, &server, &new).await, 200, "new key {n}");
                assert_eq!(status(site, &server, &known).await, 200);
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        };
        futures_util::future::join(strangers, honest).await;
        let (looks, tried) = (looked_up(site, &server).await - before, tried.into_inner() as u64);
        let most = started.elapsed().as_millis() as u64 / 25 + 2;
        assert!((1..=most).contains(&looks), "{looks} looks of at most {most} for {tried} keys");
        assert!(tried > looks, "{tried} tries shared {looks} looks");
        database::on_plain_thread(|| app.store.close());
    });
}

crate::support::harness::each_database!(made_up_keys_cost_few_looks);
