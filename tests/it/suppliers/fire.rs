//! `kill -9` while real adapters buy from sellers in trouble. One gateway has a seller for each trouble, and sells orders,
//! top-ups and cancels of all of them while it dies again and again. Afterwards the sellers' own records are the judge:
//! no eSIM was bought twice for one order and none is lost, the money is exact, and `supplier reconcile` finds nothing.
//! SIMGATE_TEST_KILLS says how often, SIMGATE_TEST_SEED repeats a run's choices.

mod sellers;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use simgate::config::{Raw, Settings};
use simgate::domain::money::Usd;
use simgate::ops::hooks;
use simgate::ops::suppliers::{self, books};
use simgate::ops::sync::{self, Consent};
use simgate::start::{self, Role};
use simgate::store::Location;

use self::sellers::{Hour, Kind, Message, Seller, TROUBLES, Trouble};
use crate::support::database;
use crate::support::dice::Dice;
use crate::support::environment::number;
use crate::support::harness::{Db, Key, Reply, each_database, until};
use crate::support::place::Place;
use crate::support::process::{Server, Site, on_prepared_site};

const ORDERS: &str = "/api/b2b/v1/orders";
const CREDIT: &str = "100000";
/// More than the quiet time of a minute, or than the time between two look-ups.
const AGE_MICROS: i64 = 130_000_000;

/// How long callers wait and askers ask, in milliseconds: while there is trouble, and when there is none.
const HASTY: (i64, i64) = (300, 1_200);
const PATIENT: (i64, i64) = (4_000, 30_000);

fn kills() -> usize {
    number("SIMGATE_TEST_KILLS").map_or(3, |kills| (kills as usize).div_ceil(8))
}

struct Shop {
    name: &'static str,
    trouble: Trouble,
    seller: Seller,
    /// Our codes of its plan, and of a top-up for it.
    plan: String,
    top_up: String,
    /// Where its messages come to.
    path: String,
    /// An eSIM to fill, and an order to give back.
    iccid: String,
    spare: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Order,
    TopUp,
    Cancel,
}

/// What a customer asks for, under a reference of its own.
struct Call<'a> {
    shop: &'a Shop,
    wish: Wish,
    reference: String,
}

struct Town<'a> {
    site: &'a Site,
    key: Key,
    /// Where the gateway is now.
    base: RefCell<String>,
}

impl Town<'_> {
    /// `None` when the gateway died before it answered.
    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Option<Reply> {
        let base = self.base.borrow().clone();
        self.site.send(&base, &self.key, method, path, body.as_ref()).await
    }

    /// Whatever a seller does, a customer hears something sensible.
    async fn ask(&self, call: &Call<'_>) -> Option<Reply> {
        let Call { shop, wish, reference } = call;
        let (path, plan) = match wish {
            Wish::Order => (ORDERS.to_string(), &shop.plan),
            Wish::TopUp => (format!("{ORDERS}/{}/topup", shop.iccid), &shop.top_up),
            Wish::Cancel => (format!("{ORDERS}/{}/cancel", shop.spare), &shop.plan),
        };
        let body = match wish {
            Wish::Cancel => json!({}),
            _ => json!({ "packageCode": plan, "partnerRefId": reference }),
        };
        let reply = self.send("POST", &path, Some(body)).await?;
        let sensible = matches!(reply.status, 200 | 202 | 404 | 409 | 502 | 503);
        assert!(sensible, "{reference}: {} {}", reply.status, reply.text);
        Some(reply)
    }

    /// Asks again until it is done: the order.
    async fn finish(&self, call: &Call<'_>) -> Value {
        until(&format!("{} is done", call.reference), async || {
            let reply = self.ask(call).await?;
            let done = match call.wish {
                // Airalo takes nothing back.
                Wish::Cancel => reply.status == 200 || reply.status == 409,
                _ => reply.status == 200,
            };
            if !done {
                tokio::time::sleep(Duration::from_millis(200)).await;
                return None;
            }
            let body = reply.json();
            Some(if call.wish == Wish::TopUp { body["topUpOrder"].clone() } else { body["order"].clone() })
        })
        .await
    }

    async fn order(&self, id: &str) -> Value {
        let reply = self.send("GET", &format!("{ORDERS}/{id}"), None).await.unwrap().expect(200);
        if id.starts_with("top_") { reply["topUpOrder"].clone() } else { reply["order"].clone() }
    }

    async fn start(&self) -> Server {
        let server = self.site.start().await;
        *self.base.borrow_mut() = server.base.clone();
        server
    }

    async fn restart(&self, mut server: Server) -> Server {
        server.kill();
        release(&self.site.place);
        self.start().await
    }

    async fn deliver(&self, shop: &Shop, message: &Message, path: &str) -> Option<u16> {
        let base = self.base.borrow().clone();
        let request = self.site.client.post(format!("{base}{path}")).json(&message.body);
        let request = match &message.signature {
            Some(signature) => request.header("airalo-signature", signature),
            None => request,
        };
        let status = request.send().await.ok()?.status().as_u16();
        assert!(matches!(status, 200 | 404), "{}: a message was answered with {status}", shop.name);
        Some(status)
    }
}

fn location(place: &Place) -> Location {
    match place.url.strip_prefix("sqlite:") {
        Some(path) => Location::Sqlite(path.into()),
        None => Location::Postgres(place.url.clone()),
    }
}

fn rows(place: &Place, sql: &str) -> Vec<Vec<String>> {
    database::rows(&location(place), sql)
}

/// An order is left to its asker for some seconds. The asker is dead; nobody has to wait.
fn release(place: &Place) {
    let statement = "UPDATE orders SET ask_until = 0 WHERE status IN ('PROVISIONING', 'CANCELLING')";
    database::execute(&location(place), statement).unwrap();
}

/// Makes purchases in doubt older than the quiet time, and than the time until a seller lists them.
fn age(place: &Place) {
    let orders = format!(
        "UPDATE orders SET created_at = created_at - {AGE_MICROS} WHERE status IN ('PROVISIONING', 'CANCELLING')"
    );
    database::execute(&location(place), &orders).unwrap();
    let statement = format!(
        "UPDATE attempts SET asked_at = asked_at - {AGE_MICROS}, empty_at = empty_at - {AGE_MICROS}
         WHERE order_id IN (SELECT id FROM orders WHERE status = 'PROVISIONING')"
    );
    database::execute(&location(place), &statement).unwrap();
}

/// Open orders. With `unsought`, only those that were not yet looked for in vain.
fn open(place: &Place, unsought: bool) -> Vec<Vec<String>> {
    let sought =
        "AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.order_id = o.id AND a.empty_at IS NOT NULL)";
    let more = if unsought { sought } else { "" };
    rows(place, &format!("SELECT id FROM orders o WHERE status IN ('PROVISIONING', 'CANCELLING') {more}"))
}

/// What is in the file of settings.
fn settings(tables: &str, (answer_ms, ask_ms): (i64, i64)) -> String {
    format!(
        "answer_within_ms = {answer_ms}\nsupplier_timeout_ms = {ask_ms}\nsecond_purchases_per_hour = 1000\n{tables}"
    )
}

fn write_settings(site: &Site, tables: &str, pace: (i64, i64)) {
    std::fs::write(site.place.dir.join("simgate.toml"), settings(tables, pace)).unwrap();
}

/// Funds, syncs and enables every seller, in a process that is there for nothing else: by the command line it would take
/// most of the test's time. Answers where their messages come to.
async fn set_up(site: &Site, names: &[&'static str], tables: &str) -> Vec<String> {
    let flags = [("database_url", site.place.url.as_str()), ("sqlite_log_mb", "0")];
    let flags = flags.into_iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let file = settings(tables, PATIENT);
    let raw = Raw::collect(&flags, std::iter::empty(), Some(("simgate.toml", &file))).unwrap();
    let mut settings = Settings::check(&raw).unwrap();
    settings.demo_file = site.place.dir.join("simgate-demo.env");
    let app = start::open(settings, Role::Server).await.unwrap();
    let mut paths = Vec::new();
    for name in names {
        books::fund(&app, "test", name, Usd::dollars(1_000), "first").await.unwrap();
        let synced = sync::by_hand(&app, "test", "supplier sync", name, Consent::Needed).await.unwrap();
        assert!(synced.applied, "{name}: {:?}", synced.changes.suspicious);
        suppliers::enable(&app, "test", name, true).await.unwrap();
        let address = hooks::address(&app, name);
        paths.push(address[address.find("/hooks/").unwrap()..].to_string());
    }
    let store = app.store.clone();
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
    paths
}

fn our_code(site: &Site, supplier: &str, code: &str) -> String {
    let sql = format!("SELECT code FROM plans WHERE supplier = '{supplier}' AND supplier_code = '{code}'");
    rows(&site.place, &sql).remove(0).remove(0)
}

/// Opens every shop, and buys what is filled and given back later.
async fn open_shops(
    town: &Town<'_>,
    sellers: Vec<(&'static str, Trouble, Seller)>,
    paths: Vec<String>,
) -> Vec<Shop> {
    let mut shops = Vec::new();
    for ((name, trouble, seller), path) in sellers.into_iter().zip(paths) {
        seller.play(trouble, Hour::Calm);
        let (plan, top_up) = seller.codes();
        let (plan, top_up) = (our_code(town.site, name, plan), our_code(town.site, name, top_up));
        let (iccid, spare) = (String::new(), String::new());
        shops.push(Shop { name, trouble, seller, plan, top_up, path, iccid, spare });
    }
    let first = join_all(shops.iter().map(async |shop| {
        let call = |part| Call { shop, wish: Wish::Order, reference: format!("{}-{part}", shop.name) };
        let (filled, spare) = (town.finish(&call("filled")).await, town.finish(&call("spare")).await);
        (filled["iccid"].as_str().unwrap().to_string(), spare["id"].as_str().unwrap().to_string())
    }))
    .await;
    for (shop, (iccid, spare)) in shops.iter_mut().zip(first) {
        (shop.iccid, shop.spare) = (iccid, spare);
    }
    shops
}

/// Customers ask while the gateway dies, and while the next one dies that recovers. Nobody hears how it went.
async fn under_fire<'a>(
    town: &Town<'_>,
    shops: &'a [Shop],
    mut server: Server,
    dice: &mut Dice,
) -> (Server, Vec<Call<'a>>) {
    let mut calls = Vec::new();
    for round in 0..kills() {
        shops.iter().for_each(|shop| shop.seller.play(shop.trouble, Hour::Day));
        let mut now = Vec::new();
        for shop in shops {
            let call = |wish| Call { shop, wish, reference: format!("{}-{wish:?}-{round}", shop.name) };
            now.extend([call(Wish::Order), call(Wish::TopUp)]);
            now.extend((round == 1).then(|| call(Wish::Cancel)));
        }
        let before: Vec<usize> = shops.iter().map(|shop| shop.seller.asked()).collect();
        let (few, pause) = (dice.roll(shops.len() as u64 / 2) as usize, dice.roll(100));
        let killer = async {
            until("sellers are asked", async || {
                let asked = shops.iter().zip(&before).filter(|(shop, before)| shop.seller.asked() > **before);
                // At first everybody must have been in its trouble's way.
                (asked.count() >= if round == 0 { shops.len() } else { few }).then_some(())
            })
            .await;
            tokio::time::sleep(Duration::from_millis(pause)).await;
            server.kill();
        };
        join(join_all(now.iter().map(|call| town.ask(call))), killer).await;
        calls.extend(now);
        let night = if dice.roll(3) == 0 { Hour::Calm } else { Hour::Night };
        shops.iter().for_each(|shop| shop.seller.play(shop.trouble, night));
        // Some die again while they pick up what the last one left.
        if dice.roll(2) == 0 {
            release(&town.site.place);
            let mut short_lived = town.start().await;
            tokio::time::sleep(Duration::from_millis(900 + dice.roll(500))).await;
            short_lived.kill();
        }
        release(&town.site.place);
        server = town.start().await;
    }
    (server, calls)
}

/// Sends the sellers' messages, and those that others send in their name, until it is told to stop; lets tokens end.
async fn messages(town: &Town<'_>, shops: &[Shop], stop: &Cell<bool>) {
    let (mut told, mut n) = (0, 0);
    while !stop.get() {
        n += 1;
        for shop in shops {
            match shop.trouble {
                Trouble::EarlyMessages => {
                    for message in shop.seller.messages(told) {
                        // Twice is once.
                        for _ in 0..2 {
                            let heard = town.deliver(shop, &message, &shop.path).await;
                            assert_ne!(heard, Some(404), "{}: {}", shop.name, message.body);
                        }
                        told += 1;
                    }
                }
                Trouble::ForgedMessages => {
                    for message in shop.seller.forgeries(n) {
                        let heard = town.deliver(shop, &message, &shop.path).await;
                        let turned_away = message.signature.is_some();
                        assert!(heard.is_none_or(|status| (status == 404) == turned_away), "{heard:?}");
                        assert_ne!(town.deliver(shop, &message, "/hooks/abcdefgh").await, Some(200));
                    }
                }
                Trouble::TokenEnds => shop.seller.end_tokens(),
                _ => {}
            }
        }
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
}

/// The trouble is over: everything that is open comes to its end, and what was refused is bought now.
async fn settle<'a>(
    town: &Town<'_>,
    shops: &'a [Shop],
    mut server: Server,
    tables: &str,
) -> (Server, Vec<Call<'a>>) {
    let place = &town.site.place;
    shops.iter().for_each(|shop| shop.seller.play(shop.trouble, Hour::Calm));
    write_settings(town.site, tables, PATIENT);
    server = town.restart(server).await;
    for shop in shops
        .iter()
        .filter(|shop| matches!(shop.trouble, Trouble::SoldOut | Trouble::LastOne | Trouble::Dearer))
    {
        town.site.cli(&["supplier", "sync", shop.name, "--accept"]).await;
    }
    // Sales that are younger than every doubt: they prove that look-ups work.
    let call = |shop, wish| Call { shop, wish, reference: format!("{}-{wish:?}-calm", shop.name) };
    let calm: Vec<Call> =
        shops.iter().flat_map(|shop| [call(shop, Wish::Order), call(shop, Wish::TopUp)]).collect();
    join_all(calm.iter().map(|call| town.finish(call))).await;
    // The first empty look-up counts, and the second lets it be bought once more.
    for unsought in [true, false] {
        server.kill();
        release(place);
        age(place);
        server = town.start().await;
        until("doubts are resolved", async || open(place, unsought).is_empty().then_some(())).await;
    }
    (server, calm)
}

/// What a seller sold is what was delivered for it, and nothing else was.
async fn judge(town: &Town<'_>, shop: &Shop, expected: usize) -> Usd {
    let name = shop.name;
    let sql = format!("SELECT id, status FROM orders WHERE supplier = '{name}'");
    let ours: BTreeMap<String, String> =
        rows(&town.site.place, &sql).into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let mut sold = BTreeMap::new();
    for sale in shop.seller.sales() {
        let again = sold.insert(sale.reference.clone(), sale).map(|first| first.reference);
        assert_eq!(again, None, "{name}: bought twice for one order");
    }
    let kept: BTreeSet<&String> =
        ours.iter().filter(|(_, status)| *status != "FAILED").map(|(id, _)| id).collect();
    assert_eq!(sold.keys().collect::<BTreeSet<_>>(), kept, "{name}: what was sold is not what was delivered");
    assert_eq!(kept.len(), expected, "{name}: one order for each thing that was asked for");
    let mut charged = Usd::ZERO;
    for (id, sale) in &sold {
        let order = town.order(id).await;
        let status = if sale.given_back { "CANCELLED" } else { "FULFILLED" };
        assert_eq!(order["status"], status, "{name}: {order}");
        if !sale.given_back {
            assert_eq!(order["iccid"], sale.iccid.as_str(), "{name}: {order}");
            charged = charged.plus(Usd::parse(&order["chargedUsd"].to_string()).unwrap());
        }
    }
    let found = town.site.try_cli(&["supplier", "reconcile", name]).await;
    let agreed = found["agrees"] == true && found["offByUsd"] == 0 && found["openOrders"] == 0;
    assert!(agreed && found["salesListed"] == sold.len(), "{name}: {found}");
    charged
}

fn killed_among_troubles(kind: Kind, db: Db) {
    on_prepared_site(db, vec![], async move |site| {
        let mut dice = Dice::new();
        let mut sellers = Vec::new();
        for (name, trouble) in TROUBLES {
            // The eSIM Access family has no tokens.
            if kind == Kind::Airalo || trouble != Trouble::TokenEnds {
                sellers.push((name, trouble, Seller::start(kind).await));
            }
        }
        let tables: String = sellers.iter().map(|(name, _, seller)| seller.table(name)).collect();
        write_settings(site, &tables, PATIENT);
        let names: Vec<&'static str> = sellers.iter().map(|(name, ..)| *name).collect();
        let paths = set_up(site, &names, &tables).await;
        let server = site.start().await;
        let (_, key) = site.partner(&server, "Crash Travel", CREDIT).await;
        let town = Town { site, key, base: RefCell::new(server.base.clone()) };
        let shops = open_shops(&town, sellers, paths).await;
        write_settings(site, &tables, HASTY);
        let server = town.restart(server).await;

        let stop = Cell::new(false);
        let fire = async {
            let ended = under_fire(&town, &shops, server, &mut dice).await;
            stop.set(true);
            ended
        };
        let ((server, mut calls), ()) = join(fire, messages(&town, &shops, &stop)).await;
        let (_server, calm) = settle(&town, &shops, server, &tables).await;
        calls.extend(calm);
        join_all(calls.iter().map(|call| town.finish(call))).await;
        until("nothing is open", async || open(&site.place, false).is_empty().then_some(())).await;

        let mut charged = Usd::ZERO;
        for shop in &shops {
            let bought = calls.iter().filter(|call| call.shop.name == shop.name && call.wish != Wish::Cancel);
            // Two were bought before.
            charged = charged.plus(judge(&town, shop, bought.count() + 2).await);
        }
        let balance = town.send("GET", "/api/b2b/v1/balance", None).await.unwrap().expect(200);
        let left = Usd::parse(CREDIT).unwrap().minus(charged);
        assert_eq!(balance["balanceUsd"].to_string(), left.to_string(), "charged for what was delivered");
        site.verify_books().await;
        eprintln!("{} calls at {} sellers, {} rounds", calls.len(), shops.len(), kills());
    });
}

mod esim_access {
    use super::*;

    fn check(db: Db) {
        killed_among_troubles(Kind::EsimAccess, db);
    }

    each_database!(check);
}

mod airalo {
    use super::*;

    fn check(db: Db) {
        killed_among_troubles(Kind::Airalo, db);
    }

    each_database!(check);
}
