//! SQLite's log: while somebody reads one state of the database it can only grow. What reads for long is told of, or reads
//! a copy; and a log that has grown is cut again while the gateway goes on.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use simgate::ops::{backup, doctor, ledger, reports};
use simgate::store::tx::Tx;

use crate::support::harness::{Db, Gateway, Key, run, until};
use crate::support::process::{Server, Site, on_site};

const ORDERS: &str = "/api/b2b/v1/orders";
const MB: u64 = 1 << 20;
/// The log's working size in these tests, how long it may become, and from where on it is far too long.
const LOG_MB: &str = "2";
const MOST: u64 = 3 * MB;
const FAR_TOO_LONG: u64 = 8 * MB;

struct Shop<'a> {
    site: &'a Site,
    server: &'a Server,
    key: Key,
}

impl Shop<'_> {
    fn database(&self) -> PathBuf {
        self.site.place.dir.join("simgate.db")
    }

    fn log_bytes(&self) -> u64 {
        log_bytes(&self.database())
    }

    async fn buy(&self) {
        let body = json!({ "packageCode": "JP-1GB-7D" });
        let sold = self.site.send(&self.server.base, &self.key, "POST", ORDERS, Some(&body)).await;
        sold.unwrap().expect(200);
    }

    async fn sell(&self, count: usize) {
        join_all((0..20).map(async |_| {
            for _ in 0..count / 20 {
                self.buy().await;
            }
        }))
        .await;
    }

    /// As the gateway says it.
    async fn metric(&self) -> u64 {
        let url = format!("{}/metrics", self.server.base);
        let text = self.site.client.get(url).send().await.unwrap().text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with("simgate_sqlite_log_bytes ")).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64
    }

    async fn doctor(&self) -> Value {
        let found = self.site.try_cli(&["doctor", "--sqlite-log-mb", LOG_MB]).await;
        let lines = found["checks"].as_array().unwrap();
        lines.iter().find(|line| line["check"] == "log").unwrap().clone()
    }
}

fn log_bytes(database: &std::path::Path) -> u64 {
    std::fs::metadata(format!("{}-wal", database.display())).unwrap().len()
}

/// A program of somebody else's that reads, and does not end its transaction.
fn foreign_reader(shop: &Shop) -> rusqlite::Connection {
    let reader = rusqlite::Connection::open(shop.database()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    reader.query_row("SELECT COUNT(*) FROM orders", [], |row| row.get::<_, i64>(0)).unwrap();
    reader
}

/// What a foreign reader does to the log is told; when it has ended, the log is cut.
fn outlives_a_long_reader(busy: bool) {
    on_site(Db::Sqlite, vec![("sqlite_log_mb", LOG_MB)], async move |site| {
        let told = site.place.dir.join("told");
        let server = site.start_talkative("warn", File::create(&told).unwrap()).await;
        let (_, key) = site.partner(&server, "Log Travel", "100000").await;
        let shop = Shop { site, server: &server, key };
        assert_eq!(shop.doctor().await["health"], "ok");
        let reader = foreign_reader(&shop);
        while shop.log_bytes() <= 2 * FAR_TOO_LONG {
            shop.sell(200).await;
        }
        until("the metric shows it", async || (shop.metric().await > FAR_TOO_LONG).then_some(())).await;
        let line = shop.doctor().await;
        assert_eq!(line["health"], "warn", "{line}");
        assert!(line["advice"].as_str().unwrap().contains("fuser"), "{line}");
        until("the log tells of it", async || {
            let told = std::fs::read_to_string(&told).unwrap();
            (told.matches("log is far too long").count() == 1).then_some(())
        })
        .await;
        drop(reader);
        let done = AtomicBool::new(false);
        let cut = async {
            until("the log is cut", async || (shop.log_bytes() <= MOST).then_some(())).await;
            until("the metric follows", async || (shop.metric().await <= MOST).then_some(())).await;
            // Buyers write on: the log may grow once more before it is looked at.
            until("doctor says so", async || (shop.doctor().await["health"] == "ok").then_some(())).await;
            done.store(true, Ordering::Relaxed);
        };
        let buyers = join_all((0..if busy { 8 } else { 0 }).map(async |_| {
            while !done.load(Ordering::Relaxed) {
                shop.buy().await;
            }
        }));
        join(cut, buyers).await;
        site.verify_books().await;
    });
}

#[test]
fn is_cut_when_a_long_reader_has_ended_and_all_are_busy() {
    outlives_a_long_reader(true);
}

#[test]
fn is_cut_when_a_long_reader_has_ended_and_nobody_buys() {
    outlives_a_long_reader(false);
}

/// Somebody always verifies, reports, examines or backs up; each of them sees one state, and the log has its turns.
async fn study(gateway: &Gateway, number: usize, done: &AtomicBool) {
    let app = &gateway.app;
    for round in 0.. {
        if done.load(Ordering::Relaxed) {
            break;
        }
        match (round + number) % 4 {
            0 => drop(reports::margin(app, None, None, 10).await.unwrap()),
            1 => {
                let lines = reports::trial_balance(app).await.unwrap();
                let off = lines.iter().map(|line| line.debit.micros() - line.credit.micros()).sum::<i64>();
                assert_eq!(off, 0, "a trial balance of one state");
            }
            2 => {
                let copy = gateway.dir.join(format!("copy-{number}-{round}"));
                assert!(matches!(backup::copy(app, copy.clone()).await.unwrap(), backup::Backup::Done));
                std::fs::remove_file(copy).unwrap();
            }
            _ => drop(doctor::examine(app).await.unwrap()),
        }
        let verdict = ledger::verify(app).await.unwrap();
        assert!(verdict.breaches.is_empty(), "{}", verdict.breaches[0].law);
    }
}

#[test]
fn is_cut_when_our_own_long_readers_have_ended() {
    run(Db::Sqlite, vec![("sqlite_log_mb", LOG_MB), ("rate_limit", "0")], async |gateway| {
        let (_, key) = gateway.partner("Log Travel", simgate::domain::money::Usd::dollars(100_000)).await;
        let sell = async |count: usize| {
            join_all((0..20).map(async |_| {
                for _ in 0..count / 20 {
                    let body = json!({ "packageCode": "JP-1GB-7D" });
                    gateway.send_as(&key, "POST", ORDERS, Some(body)).await.expect(200);
                }
            }))
            .await;
        };
        // Books that take a while to read.
        sell(1_500).await;
        let done = AtomicBool::new(false);
        let sales = async {
            sell(1_500).await;
            done.store(true, Ordering::Relaxed);
        };
        let studies = join_all((0..4).map(|number| study(gateway, number, &done)));
        join(studies, sales).await;
        gateway
            .until("the log is cut", async || {
                (log_bytes(&gateway.dir.join("simgate.db")) <= MOST).then_some(())
            })
            .await;
    });
}

/// Verification, reports and the like read a copy: the log can be emptied meanwhile.
#[test]
fn is_not_held_while_the_books_are_read() {
    run(Db::Sqlite, vec![], async |gateway| {
        gateway.order("JP-1GB-7D").await;
        let database = gateway.dir.join("simgate.db");
        let empty = move |_: &mut Tx| {
            let other = rusqlite::Connection::open(&database).unwrap();
            other.busy_timeout(Duration::from_secs(10)).unwrap();
            let busy = other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
            Ok(busy.unwrap() == 0)
        };
        assert!(gateway.app.store.study(empty).await.unwrap());
    });
}
