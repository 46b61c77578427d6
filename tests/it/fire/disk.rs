//! When there is no room for what is written: callers are asked to come back, `/readyz` says so, the log says so once a
//! minute, and nothing that was answered is lost. On SQLite a real disk is full, or files may not grow; on PostgreSQL the
//! server says that its disk is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::support::harness::{Db, Gateway, Key, Reply, reply, run, until};
use crate::support::process::{Server, Site, on_site};

const ORDERS: &str = "/api/b2b/v1/orders";
const PLAN: &str = "JP-1GB-7D";
/// A short log, and orders that are soon taken up again.
const SETTINGS: [(&str, &str); 2] = [("sqlite_log_mb", "0"), ("supplier_timeout_ms", "2000")];

/// A server that runs out of room, and whoever buys from it all the while.
struct Shop<'a> {
    site: &'a Site,
    server: &'a Server,
    key: Key,
    log: PathBuf,
    opened: Instant,
    /// How orders were answered.
    answers: BTreeMap<u16, usize>,
    /// The orders that were taken on.
    sold: Vec<String>,
}

impl<'a> Shop<'a> {
    fn new(site: &'a Site, server: &'a Server, key: Key, log: PathBuf) -> Shop<'a> {
        Shop { site, server, key, log, opened: Instant::now(), answers: BTreeMap::new(), sold: Vec::new() }
    }

    async fn get(&self, path: &str) -> Reply {
        self.site.send(&self.server.base, &self.key, "GET", path, None).await.unwrap()
    }

    async fn order(&mut self) -> Reply {
        let body = json!({ "packageCode": PLAN });
        let answer = self.site.send(&self.server.base, &self.key, "POST", ORDERS, Some(&body)).await.unwrap();
        *self.answers.entry(answer.status).or_default() += 1;
        self.sold.extend(answer.json()["order"]["id"].as_str().map(str::to_string));
        answer
    }

    async fn readyz(&self) -> Reply {
        reply(self.site.client.get(format!("{}/readyz", self.server.base))).await
    }

    /// Buys until nothing more can be written down.
    async fn until_full(&mut self) {
        let refused = until("there is no room", async || {
            let answer = self.order().await;
            (answer.status != 200 && answer.status != 202).then_some(answer)
        })
        .await;
        check_refusal(&refused);
        until("it is not ready", async || {
            let answer = self.readyz().await;
            (answer.status == 503 && answer.text.contains("no room")).then_some(())
        })
        .await;
        for _ in 0..20 {
            check_refusal(&self.order().await);
        }
        self.get("/api/b2b/v1/balance").await.expect(200);
        let log = std::fs::read_to_string(&self.log).unwrap();
        let lines = log.matches("no room for what is written").count() as u64;
        assert!((1..=1 + self.opened.elapsed().as_secs() / 60).contains(&lines), "{log}");
        assert!(!log.contains("a request failed"), "{log}");
    }

    /// Sells again, and has all that it ever sold.
    async fn until_well(&mut self) {
        until("it is ready again", async || (self.readyz().await.status == 200).then_some(())).await;
        self.order().await.expect(200);
        assert!(self.answers.keys().all(|status| [200, 202, 503].contains(status)), "{:?}", self.answers);
        for id in &self.sold {
            until("what was taken on is delivered", async || {
                let order = self.get(&format!("{ORDERS}/{id}")).await.expect(200);
                (order["order"]["status"] == "FULFILLED").then_some(())
            })
            .await;
        }
        let listed = self.get(&format!("{ORDERS}?limit=100")).await.expect(200);
        assert_eq!(
            listed["orders"].as_array().unwrap().len(),
            self.sold.len().min(100),
            "{:?}",
            self.answers
        );
    }
}

fn check_refusal(answer: &Reply) {
    assert_eq!(answer.problem(503), "OVERLOADED");
    assert_eq!(answer.header("retry-after"), "5");
}

fn pid(server: &Server) -> Pid {
    Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap()
}

/// As with a quota: SQLite hears an input/output error.
#[test]
fn files_that_may_not_grow() {
    on_site(Db::Sqlite, SETTINGS.to_vec(), async |site| {
        let log = site.place.dir.join("log");
        // Who ignores the signal gets an error instead.
        let script = "trap '' XFSZ && exec";
        let server = site.start_prepared(script, File::create(&log).unwrap()).await;
        let (_, key) = site.partner(&server, "Full Travel", "10000").await;
        let mut shop = Shop::new(site, &server, key, log);
        shop.order().await.expect(200);
        let grow_to =
            |most| prlimit(Some(pid(&server)), Resource::Fsize, Rlimit { current: most, maximum: None });
        grow_to(Some(100_000)).unwrap();
        shop.until_full().await;
        grow_to(None).unwrap();
        shop.until_well().await;
        site.verify_books().await;
    });
}

/// A small disk of memory, which only the server sees. Who is not root here is so in a world of the server's own.
fn on_small_disk(folder: &Path) -> String {
    format!(
        "[ $(id -u) = 0 ] || own=--map-root-user; exec unshare $own --mount --propagation private /bin/sh -c 'mount -t tmpfs -o size=24m none {} && exec \"$0\" \"$@\"'",
        folder.display()
    )
}

/// The partner that a new sandbox has.
fn demo_key(folder: &Path) -> Key {
    let file = std::fs::read_to_string(folder.join("simgate-demo.env")).unwrap();
    let value = |name: &str| file.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_string();
    Key { id: value("B2B_KEY="), secret: value("B2B_SECRET=") }
}

#[test]
#[ignore = "needs to mount a disk"]
fn a_full_disk() {
    on_site(Db::Sqlite, SETTINGS.to_vec(), async |site| {
        let folder = site.place.dir.join("small");
        std::fs::create_dir(&folder).unwrap();
        let log = site.place.dir.join("log");
        let inside = site.on(format!("sqlite:{}/simgate.db", folder.display()));
        let server = inside.start_prepared(&on_small_disk(&folder), File::create(&log).unwrap()).await;
        let seen = PathBuf::from(format!("/proc/{}/root{}", server.pid(), folder.display()));
        let key = demo_key(&site.place.dir);
        let mut shop = Shop::new(site, &server, key, log);
        shop.order().await.expect(200);
        let filler = seen.join("filler");
        let mut file = File::create(&filler).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        shop.until_full().await;
        std::fs::remove_file(&filler).unwrap();
        drop(file);
        shop.until_well().await;
        let there = format!(
            "[ $(id -u) = 0 ] || own='--user --preserve-credentials'; exec nsenter $own --mount --target {} \"$0\" \"$@\"",
            server.pid()
        );
        let verdict = Command::new("/bin/sh")
            .args(["-c", &there, env!("CARGO_BIN_EXE_simgate")])
            .args(["ledger", "verify", "--database-url", &inside.place.url])
            .output()
            .unwrap();
        assert!(verdict.status.success(), "{verdict:?}");
    });
}

/// What PostgreSQL says when its disk is full, and when it has given all its connections away.
#[test]
#[ignore = "needs PostgreSQL"]
fn a_database_server_without_room() {
    run(Db::Postgres, vec![], async |gateway: &Gateway| {
        let change =
            |sql: &str| crate::support::database::execute(&gateway.app.settings.database, sql).unwrap();
        let readyz = async || reply(gateway.client.get(format!("{}/readyz", gateway.base))).await.status;
        for state in ["53100", "53200", "53300"] {
            change(&format!(
                "CREATE OR REPLACE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$
                 BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '{state}'; END $$;
                 CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON orders EXECUTE FUNCTION no_room();
                 CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON meta EXECUTE FUNCTION no_room();"
            ));
            check_refusal(&gateway.post(ORDERS, json!({ "packageCode": PLAN })).await);
            gateway.until("it is not ready", async || (readyz().await == 503).then_some(())).await;
            change("DROP TRIGGER no_room ON orders; DROP TRIGGER no_room ON meta");
            gateway.until("it is ready again", async || (readyz().await == 200).then_some(())).await;
            gateway.order(PLAN).await;
        }
        let listed: Value = gateway.get(ORDERS).await.expect(200);
        assert_eq!(listed["orders"].as_array().unwrap().len(), 3, "what was refused was not begun");
    });
}
