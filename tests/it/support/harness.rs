//! A gateway of its own for every test: a fresh database (SQLite file or PostgreSQL database), a free port, and a
//! partner with money. When a test ends, the harness checks what must always hold: the books balance, and no
//! order is left open. What a test needs beyond this machine's Rust stands in its `#[ignore]`: `./test` has it all and
//! runs every test, and a plain `cargo test` says how many it left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::{Duration, Instant};

use reqwest::header::HeaderMap;
use serde_json::Value;
use simgate::app::App;
use simgate::domain::client::Whereabouts;
use simgate::domain::money::Usd;
use simgate::domain::refusal::Refusal;
use simgate::error::Error;
use simgate::ops::operator::{self, NewPartner};
use simgate::ops::{keys, ledger, recover, reports, sandbox};
use simgate::start::{self, Role};
use simgate::store::orders;
use simgate::supplier::sim::SupplierMode;
use tokio_util::sync::CancellationToken;

use crate::support::place::Place;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Db {
    Sqlite,
    Postgres,
}

/// Two tests, one for each database, of a function that takes it; both are ignored when they need something else too.
macro_rules! each_database {
    ($check:path) => {
        #[test]
        fn sqlite() {
            $check(crate::support::harness::Db::Sqlite);
        }

        #[test]
        #[ignore = "needs PostgreSQL"]
        fn postgres() {
            $check(crate::support::harness::Db::Postgres);
        }
    };
    ($check:path, $needs:literal) => {
        #[test]
        #[ignore = $needs]
        fn sqlite() {
            $check(crate::support::harness::Db::Sqlite);
        }

        #[test]
        #[ignore = $needs]
        fn postgres() {
            $check(crate::support::harness::Db::Postgres);
        }
    };
}
pub(crate) use each_database;

/// Writes each test twice, once for each database.
macro_rules! both_databases {
    ($($(#[$doc:meta])* async fn $name:ident($gateway:ident) $(with [$($settings:expr),* $(,)?])? $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            $(#[$doc])*
            async fn check($gateway: &crate::support::harness::Gateway) $body

            // Both databases give the same snapshots, and may do so in one process.
            fn check_on(db: crate::support::harness::Db) {
                insta::allow_duplicates! {
                    crate::support::harness::run(db, vec![$($($settings),*)?], async |gateway| check(gateway).await);
                }
            }
            crate::support::harness::each_database!(check_on);
        }
    )*};
}
pub(crate) use both_databases;

/// An API key and its secret.
#[derive(Clone)]
pub struct Key {
    pub id: String,
    pub secret: String,
}

impl Key {
    /// Waits until the gateway has seen this key, as every process does within a second.
    pub async fn until_known(&self, app: &App) {
        let home = std::net::IpAddr::from([127, 0, 0, 1]);
        let unknown = || {
            matches!(
                keys::authenticate(app, &self.id, &self.secret, Whereabouts::At(home)),
                Err(Error::Refused(Refusal::Unauthenticated))
            )
        };
        let started = Instant::now();
        while unknown() {
            assert!(started.elapsed() < Duration::from_secs(60), "a new key is not seen");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub struct Gateway {
    pub app: App,
    pub base: String,
    pub partner: String,
    pub key: Key,
    pub client: reqwest::Client,
    pub dir: PathBuf,
    pub db: Db,
}

pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {:?}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body of an answer that must have this status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// The code of a problem that must have this status.
    #[track_caller]
    pub fn problem(&self, status: u16) -> String {
        let body = self.expect(status);
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(body["status"], status);
        assert_eq!(body["success"], false);
        assert_eq!(body["error"], body["detail"]);
        assert_eq!(body["requestId"], self.header("x-request-id"));
        let code = body["code"].as_str().unwrap();
        let section = format!("/docs#{}", simgate::error::anchor(code));
        assert!(
            body["type"].as_str().is_some_and(|link| link.starts_with("http") && link.ends_with(&section)),
            "{body}"
        );
        assert!(simgate::error::CODES.iter().any(|(known, _)| *known == code), "{code} is not explained");
        code.to_string()
    }
}

/// A test without its type: else all that surrounds a test would be compiled anew for each, which takes minutes.
type Erased<T> = Box<dyn for<'a> FnOnce(&'a T) -> Pin<Box<dyn Future<Output = ()> + 'a>>>;

fn erased<T>(test: impl AsyncFnOnce(&T) + 'static) -> Erased<T> {
    Box::new(|subject| Box::pin(test(subject)))
}

/// Runs one test against its own gateway, then checks what must always hold.
pub fn run(db: Db, settings: Vec<(&'static str, &'static str)>, test: impl AsyncFnOnce(&Gateway) + 'static) {
    run_erased(db, settings, erased(test));
}

fn run_erased(db: Db, settings: Vec<(&'static str, &'static str)>, test: Erased<Gateway>) {
    on_place(db, async move |place| {
        let (gateway, stop, served) = start_gateway(place, &settings).await;
        test(&gateway).await;
        gateway.settle().await;
        check_books(&gateway.app).await;
        stop.cancel();
        served.await.unwrap();
    });
}

/// Runs a test in a place of its own.
pub fn on_place(db: Db, test: impl AsyncFnOnce(&Place) + 'static) {
    on_place_erased(Place::prepared(db), erased(test));
}

/// The same where nobody has been before.
pub fn on_empty_place(db: Db, test: impl AsyncFnOnce(&Place) + 'static) {
    on_place_erased(Place::new(db), erased(test));
}

/// The same in a place that the test has made.
pub fn on_own_place(place: Place, test: impl AsyncFnOnce(&Place) + 'static) {
    on_place_erased(place, erased(test));
}

fn on_place_erased(place: Place, test: Erased<Place>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test(&place));
    // What tasks hold ends with them: a node, for one.
    runtime.shutdown_timeout(Duration::from_secs(10));
    place.remove();
}

pub async fn start_gateway(
    place: &Place,
    extra: &[(&str, &str)],
) -> (Gateway, CancellationToken, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let mut settings = place.settings(extra);
    settings.base_url = base.clone();
    settings.agent_url = base.clone();
    settings.checkout_url = base.clone();
    settings.demo_file = place.dir.join("simgate-demo.env");
    simgate::telemetry::init_logs(&settings.log, false);
    let app = start::open(settings, Role::Server).await.unwrap();
    let stop = CancellationToken::new();
    let served = tokio::spawn({
        let (app, stop) = (app.clone(), stop.clone());
        async move { start::run(&app, listener, None, stop).await }
    });
    let (partner, key) = new_partner(&app, "Test Travel", Usd::dollars(1_000)).await;
    let client = client().build().unwrap();
    (Gateway { app, base, partner, key, client, dir: place.dir.clone(), db: place.db }, stop, served)
}

/// The library wants to know who encrypts before it makes a client, also one that never does.
pub fn client() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().tls_certs_only([])
}

async fn new_partner(app: &App, name: &str, credit: Usd) -> (String, Key) {
    let new = NewPartner { name: name.into(), email: None, credit, shares_email: false };
    let made = operator::create_partner(app, "test", new).await.unwrap();
    let key = Key { id: made.key.id.to_string(), secret: made.key.secret };
    key.until_known(app).await;
    (made.id.to_string(), key)
}

impl Gateway {
    /// Another partner with this much money: its id and key.
    pub async fn partner(&self, name: &str, credit: Usd) -> (String, Key) {
        new_partner(&self.app, name, credit).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send_as(&self.key, "GET", path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.send_as(&self.key, "POST", path, Some(body)).await
    }

    pub async fn send_as(&self, key: &Key, method: &str, path: &str, body: Option<Value>) -> Reply {
        let request = self
            .client
            .request(method.parse().unwrap(), format!("{}{path}", self.base))
            .header("x-b2b-key", &key.id)
            .header("x-b2b-secret", &key.secret);
        let request = match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        };
        reply(request).await
    }

    /// A request with this gateway's key, for a test to add to.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.client
            .request(method.parse().unwrap(), format!("{}{path}", self.base))
            .header("x-b2b-key", &self.key.id)
            .header("x-b2b-secret", &self.key.secret)
    }

    /// Tells the supplier how to behave from now on.
    pub async fn supplier(&self, mode: &str) {
        self.sandbox("supplier", serde_json::json!({ "mode": mode })).await;
    }

    /// A sandbox helper that must succeed.
    pub async fn sandbox(&self, path: &str, body: Value) -> Value {
        let request = self.client.post(format!("{}/sandbox/{path}", self.base));
        reply(request.header("content-type", "application/json").body(body.to_string())).await.expect(200)
    }

    /// A sandbox helper, whatever it answers.
    pub async fn try_sandbox(&self, path: &str, body: Value) -> Reply {
        let request = self.client.post(format!("{}/sandbox/{path}", self.base));
        reply(request.header("content-type", "application/json").body(body.to_string())).await
    }

    /// What the supplier wrote down: words of each line, in its own order.
    pub fn journal(&self) -> Vec<Vec<String>> {
        read_journal(&self.dir)
    }

    /// The journal's lines that begin with this word, without doubles: repeating a question is allowed.
    pub fn journalled(&self, word: &str) -> BTreeSet<Vec<String>> {
        self.journal().into_iter().filter(|line| line[0] == word).collect()
    }

    /// The wholesale price of a plan.
    pub async fn price(&self, package_code: &str) -> Usd {
        let country = &package_code[..2];
        let plans = self.get(&format!("/api/b2b/v1/plans?country={country}")).await.expect(200);
        let plans = plans["plans"].as_array().unwrap();
        let plan = plans.iter().find(|plan| plan["packageCode"] == package_code).unwrap();
        Usd::parse(&plan["priceUsd"].to_string()).unwrap()
    }

    /// Places an order that must be delivered.
    pub async fn order(&self, package_code: &str) -> Value {
        self.delivered(serde_json::json!({ "packageCode": package_code })).await
    }

    /// The same of any body. Where the time to answer is short, a slow machine may deliver after it.
    pub async fn delivered(&self, body: Value) -> Value {
        let path = "/api/b2b/v1/orders";
        let placed = self.post(path, body).await;
        if placed.status != 202 {
            return placed.expect(200)["order"].clone();
        }
        let path = format!("{path}/{}", placed.json()["order"]["id"].as_str().unwrap());
        self.until("the order is delivered", async || {
            let order = self.get(&path).await.expect(200)["order"].clone();
            self.pass_time(1_000);
            (order["status"] == "FULFILLED").then_some(order)
        })
        .await
    }

    pub async fn balance(&self) -> String {
        self.get("/api/b2b/v1/balance").await.expect(200)["balanceUsd"].to_string()
    }

    /// Moves time forward so far that recovery may take over whatever is open.
    pub fn pass_time(&self, millis: i64) {
        self.app.clock.advance(millis);
    }

    /// Limits and budgets of a day: no test may see one begin by itself, nor reach back into the one before.
    pub fn away_from_midnight(&self) {
        let (hour, day) = (3_600_000, 86_400_000);
        let left = day - self.app.now().micros() / 1_000 % day;
        if left < 2 * hour {
            self.pass_time(left + hour);
        }
    }

    pub async fn until<T>(&self, what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
        until(what, look).await
    }

    /// Brings everything open to its end: the supplier behaves, and recovery has its turn.
    pub async fn settle(&self) {
        sandbox::set_supplier(&self.app, SupplierMode::Ok).await.unwrap();
        self.until("no order is open", async || {
            self.app.clock.advance(60_000);
            recover::round(&self.app).await.unwrap();
            let open = open_orders(&self.app).await;
            (open == 0).then_some(())
        })
        .await;
    }
}

/// How many orders are open at this moment.
pub async fn open_orders(app: &App) -> i64 {
    let now = app.now().plus_days(1);
    let counts = app.store.read(move |tx| orders::open_since(tx, now)).await.unwrap();
    counts.iter().map(|(_, count)| count).sum()
}

/// The books must balance.
pub async fn check_books(app: &App) {
    let verdict = ledger::verify(app).await.unwrap();
    for breach in &verdict.breaches {
        eprintln!("{}: {} is off by {}", breach.law, breach.row, breach.off_by);
    }
    assert!(verdict.breaches.is_empty(), "the books are off");
}

/// What the books say of an account of the chart, debits above credits.
pub async fn booked(app: &App, account: &str) -> Usd {
    let lines = reports::trial_balance(app).await.unwrap();
    let line = lines.iter().find(|line| line.account == account);
    line.map_or(Usd::ZERO, |line| line.debit.minus(line.credit))
}

/// The simulated supplier's journal in a test's folder; empty before the first sale.
pub fn read_journal(dir: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(dir.join("journal")).unwrap_or_default();
    text.lines().map(|line| line.split(' ').map(str::to_string).collect()).collect()
}

pub async fn reply(request: reqwest::RequestBuilder) -> Reply {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Reply { status, headers, text: response.text().await.unwrap() }
}

/// Waits until a condition holds; fails after a minute.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(120), "waited two minutes for: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
