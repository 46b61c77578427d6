//! A gateway of its own for every test: a fresh database (SQLite file or PostgreSQL database), a free port, and a
//! partner with money. When a test ends, the harness checks what must always hold: the books balance, and no
//! order is left open. PostgreSQL tests need SIMGATE_TEST_POSTGRES (an administrator's URL); `./test` sets it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::{Duration, Instant};

use reqwest::header::HeaderMap;
use serde_json::Value;
use simgate::app::App;
use simgate::config::{Raw, Settings};
use simgate::domain::client::Whereabouts;
use simgate::domain::money::Usd;
use simgate::domain::plan::DEFAULT_PRICE_LIST;
use simgate::domain::refusal::Refusal;
use simgate::error::Error;
use simgate::ops::operator::{self, NewPartner};
use simgate::ops::{keys, ledger, recover, reports, sandbox};
use simgate::start::{self, Role};
use simgate::store::tx::Tx;
use simgate::store::{Capacity, Location, Store, catalog, migrate};
use simgate::supplier::sim::{self, SupplierMode};
use simgate::supplier::sim_catalog;
use tokio_util::sync::CancellationToken;

use crate::raw;

const SQLITE_FILE: &str = "simgate.db";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Db {
    Sqlite,
    Postgres,
}

/// Two tests, one for each database, of a function that takes it.
macro_rules! each_database {
    ($check:path) => {
        #[test]
        fn sqlite() {
            $check(crate::harness::Db::Sqlite);
        }

        #[test]
        fn postgres() {
            $check(crate::harness::Db::Postgres);
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
            async fn check($gateway: &crate::harness::Gateway) $body

            fn check_on(db: crate::harness::Db) {
                crate::harness::run(db, vec![$($($settings),*)?], async |gateway| check(gateway).await);
            }
            crate::harness::each_database!(check_on);
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
        body["code"].as_str().unwrap().to_string()
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

/// Runs a test in a place of its own; without PostgreSQL its tests are skipped.
pub fn on_place(db: Db, test: impl AsyncFnOnce(&Place) + 'static) {
    on_place_erased(Place::prepared(db), erased(test));
}

/// The same where nobody has been before.
pub fn on_empty_place(db: Db, test: impl AsyncFnOnce(&Place) + 'static) {
    on_place_erased(Place::new(db), erased(test));
}

/// The same in a place that the test has made.
pub fn on_own_place(place: Place, test: impl AsyncFnOnce(&Place) + 'static) {
    on_place_erased(Some(place), erased(test));
}

fn on_place_erased(place: Option<Place>, test: Erased<Place>) {
    let Some(place) = place else {
        eprintln!("skipped: SIMGATE_TEST_POSTGRES is not set");
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test(&place));
    // What tasks hold ends with them: a node, for one.
    runtime.shutdown_timeout(Duration::from_secs(10));
    place.remove();
}

/// Where a test's data lives.
#[derive(Clone)]
pub struct Place {
    pub db: Db,
    pub dir: PathBuf,
    pub url: String,
    admin: Option<String>,
}

impl Place {
    pub fn new(db: Db) -> Option<Place> {
        Place::copied(db, |_| "template0".into())
    }

    /// In a database that is there already, on a server of the test's own.
    pub fn at(url: &str) -> Place {
        let unique = format!("simgate_test_{}_{:x}", std::process::id(), simgate::vault::random() as u64);
        let dir = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&dir).unwrap();
        Place { db: Db::Postgres, dir, url: url.to_string(), admin: None }
    }

    /// With the schema and the catalog in place: copying takes a small part of the time that making them does.
    fn prepared(db: Db) -> Option<Place> {
        let prepared = Prepared::new();
        let place = Place::copied(db, |admin| prepared.database(admin))?;
        if db == Db::Sqlite {
            std::fs::copy(prepared.file(), place.dir.join(SQLITE_FILE)).unwrap();
        }
        Some(place)
    }

    /// On PostgreSQL, from the database that `template` names.
    fn copied(db: Db, template: impl FnOnce(&str) -> String) -> Option<Place> {
        let unique = format!("simgate_test_{}_{:x}", std::process::id(), simgate::vault::random() as u64);
        let dir = std::env::temp_dir().join(&unique);
        let (url, admin) = match db {
            Db::Sqlite => (format!("sqlite:{}", dir.join(SQLITE_FILE).display()), None),
            Db::Postgres => {
                let admin = std::env::var("SIMGATE_TEST_POSTGRES").ok()?;
                (with_database(&admin, &unique), Some(admin))
            }
        };
        std::fs::create_dir_all(&dir).unwrap();
        if let Some(admin) = &admin {
            execute(admin, &format!("CREATE DATABASE {unique} TEMPLATE {}", template(admin)));
        }
        Some(Place { db, dir, url, admin })
    }

    pub fn settings(&self, extra: &[(&str, &str)]) -> Settings {
        let mut flags: BTreeMap<String, String> = [
            ("database_url", self.url.as_str()),
            ("listen", "127.0.0.1:0"),
            ("log", "warn"),
            ("sqlite_log_mb", "0"),
        ]
        .into_iter()
        .chain(extra.iter().copied())
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
        let journal = self.dir.join("journal");
        flags.entry("sandbox_journal".into()).or_insert(journal.display().to_string());
        Settings::check(&Raw::collect(&flags, std::iter::empty(), None).unwrap()).unwrap()
    }

    pub fn remove(self) {
        let _ = std::fs::remove_dir_all(&self.dir);
        if let Some(admin) = &self.admin {
            let name = self.url.rsplit('/').next().unwrap();
            // Left behind when somebody holds on to it for too long: the whole server goes after the tests.
            raw::on_plain_thread(|| {
                let mut client = postgres::Client::connect(admin, postgres::NoTls).unwrap();
                let _ = client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            });
        }
    }
}

fn with_database(admin: &str, name: &str) -> String {
    let (server, _) = admin.rsplit_once('/').expect("SIMGATE_TEST_POSTGRES ends in /DATABASE");
    format!("{server}/{name}")
}

/// Databases as a first start leaves them, but for what is a deployment's own. The first test that needs one makes it,
/// and another build makes others.
struct Prepared {
    name: String,
}

impl Prepared {
    fn new() -> Prepared {
        let built = std::env::current_exe().unwrap().metadata().unwrap().modified().unwrap();
        let built = built.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
        Prepared { name: format!("simgate_prepared_{built:x}") }
    }

    /// Answers the name of the database.
    fn database(&self, admin: &str) -> String {
        let name = &self.name;
        raw::on_plain_thread(|| {
            let mut client = postgres::Client::connect(admin, postgres::NoTls).unwrap();
            // The others wait until it is there.
            client.batch_execute("SELECT pg_advisory_lock(1)").unwrap();
            if client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[name]).unwrap().is_none() {
                let half = format!("{name}_half");
                client.batch_execute(&format!("DROP DATABASE IF EXISTS {half}")).unwrap();
                client.batch_execute(&format!("CREATE DATABASE {half} TEMPLATE template0")).unwrap();
                fill(Location::Postgres(with_database(admin, &half)));
                client.batch_execute(&format!("ALTER DATABASE {half} RENAME TO {name}")).unwrap();
            }
        });
        name.clone()
    }

    fn file(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (file, half) = (folder.join(&self.name), folder.join("simgate_prepared_half"));
        let lock = File::create(folder.join("simgate_prepared.lock")).unwrap();
        lock.lock().unwrap();
        if !file.exists() {
            let of_ours = |path: &PathBuf| path.display().to_string().contains("simgate_prepared_");
            let earlier = folder.read_dir().unwrap().map(|file| file.unwrap().path()).filter(of_ours);
            earlier.for_each(|path| std::fs::remove_file(path).unwrap());
            raw::on_plain_thread(|| fill(Location::Sqlite(half.clone())));
            std::fs::rename(half, &file).unwrap();
        }
        file
    }
}

/// Puts the schema and the catalog there.
fn fill(location: Location) {
    drop(migrate::run(&location).unwrap());
    let capacity = Capacity { lanes: 1, readers: 1, queue: 16, log: None };
    let store = Store::open(location, &capacity).unwrap();
    let put = |tx: &mut Tx| {
        let mut plans = sim_catalog::plans(0).into_iter();
        plans.try_for_each(|plan| catalog::put(tx, &plan, sim::NAME, DEFAULT_PRICE_LIST))?;
        catalog::publish(tx)
    };
    tokio::runtime::Runtime::new().unwrap().block_on(store.write(0, put)).unwrap();
    store.close();
}

/// One statement as the administrator.
pub fn execute(url: &str, statement: &str) {
    raw::on_plain_thread(|| {
        postgres::Client::connect(url, postgres::NoTls).unwrap().batch_execute(statement).unwrap();
    });
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
    let new = NewPartner { name: name.into(), email: None, credit };
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

    /// Limits and budgets of a day: no test may see one begin by itself.
    pub fn away_from_midnight(&self) {
        let (hour, day) = (3_600_000, 86_400_000);
        let left = day - self.app.now().micros() / 1_000 % day;
        if left < 2 * hour {
            self.pass_time(left + 1_000);
        }
    }

    pub async fn until<T>(&self, what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
        until(what, look).await
    }

    /// Brings everything open to its end: the supplier behaves, and recovery has its turn.
    pub async fn settle(&self) {
        sandbox::set_mode(&self.app, SupplierMode::Ok, 0, None).await.unwrap();
        self.until("no order is open", async || {
            self.app.clock.advance(60_000);
            recover::round(&self.app).await.unwrap();
            let open = operator::open_orders(&self.app).await.unwrap();
            (open == 0).then_some(())
        })
        .await;
    }
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
