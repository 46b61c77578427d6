//! A partner's clients that order, top up and cancel while servers die under them, remember what they were told, and
//! hold it against the gateway's and the supplier's own books.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::dice::Dice;
use crate::support::harness::{Key, Reply, read_journal, until};
use crate::support::process::{Server, Site};

pub const ORDERS: &str = "/api/b2b/v1/orders";
pub const PLAN: &str = "JP-1GB-7D";
pub const CREDIT: &str = "1000000";
const CLIENTS: usize = 16;
/// Short times, so that recovery comes soon.
pub const SETTINGS: &[(&str, &str)] = &[("answer_within_ms", "400"), ("supplier_timeout_ms", "500")];

#[derive(Clone)]
pub enum Wish {
    Order,
    TopUp { iccid: String },
    Cancel { order: String },
}

/// A wish under its reference, and what the caller was told: the id of what was done, and the ICCID.
#[derive(Clone)]
pub struct Told {
    wish: Wish,
    done: Option<(String, String)>,
}

/// What all clients remember of their calls.
#[derive(Default)]
pub struct Memory(Mutex<BTreeMap<String, Told>>);

impl Memory {
    fn set(&self, reference: &str, wish: &Wish, done: Option<(String, String)>) {
        self.0.lock().unwrap().insert(reference.to_string(), Told { wish: wish.clone(), done });
    }

    fn of(&self, reference: &str) -> Told {
        self.0.lock().unwrap()[reference].clone()
    }

    pub fn all(&self) -> BTreeMap<String, Told> {
        self.0.lock().unwrap().clone()
    }
}

/// A partner's clients, the servers they know, and what they remember.
pub struct Crowd<'a> {
    site: &'a Site,
    key: &'a Key,
    pub bases: Mutex<Vec<String>>,
    pub memory: Memory,
    pub closing: AtomicBool,
    /// Whether a 500 or 503 is to be expected, because something under the server fails.
    pub forgives_faults: bool,
}

impl<'a> Crowd<'a> {
    pub fn new(site: &'a Site, key: &'a Key) -> Crowd<'a> {
        Crowd {
            site,
            key,
            bases: Mutex::default(),
            memory: Memory::default(),
            closing: AtomicBool::new(false),
            forgives_faults: false,
        }
    }

    async fn ask(&self, base: &str, reference: &str, wish: &Wish) -> Option<Reply> {
        let (path, body) = match wish {
            Wish::Order => (ORDERS.to_string(), json!({ "packageCode": PLAN, "partnerRefId": reference })),
            Wish::TopUp { iccid } => (
                format!("{ORDERS}/{iccid}/topup"),
                json!({ "packageCode": format!("{PLAN}-TOPUP"), "partnerRefId": reference }),
            ),
            Wish::Cancel { order } => (format!("{ORDERS}/{order}/cancel"), json!({})),
        };
        self.site.send(base, self.key, "POST", &path, Some(&body)).await
    }

    /// Notes what an answer promises; true when the wish is done with.
    fn note(&self, reference: &str, wish: &Wish, reply: &Reply) -> bool {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        match (wish, reply.status) {
            (_, 202) => false,
            (_, 500 | 503) if self.forgives_faults => false,
            (Wish::Order, 200) => {
                let order = &reply.json()["order"];
                self.memory.set(reference, wish, Some((text(&order["id"]), text(&order["iccid"]))));
                true
            }
            (Wish::TopUp { .. }, 200) => {
                let topup = &reply.json()["topUpOrder"];
                self.memory.set(reference, wish, Some((text(&topup["id"]), text(&topup["iccid"]))));
                true
            }
            (Wish::Cancel { order }, 200) => {
                self.memory.set(reference, wish, Some((order.clone(), String::new())));
                true
            }
            // Asked again after an answer that never came: the first call went through, or goes on.
            (Wish::Cancel { .. }, 409) => true,
            (_, status) => panic!("{reference}: {status} {}", reply.text),
        }
    }

    /// One client: wishes one after another, until nobody answers (`patient`: until told to close).
    async fn client(&self, name: String, mut dice: Dice, patient: bool) {
        let mut mine: Vec<(String, String)> = Vec::new();
        for count in 0.. {
            if self.closing.load(Ordering::Relaxed) {
                return;
            }
            let wish = match (dice.roll(10), mine.pop()) {
                (7 | 8, Some((_, iccid))) => Wish::TopUp { iccid },
                (9, Some((order, _))) => Wish::Cancel { order },
                (_, kept) => {
                    mine.extend(kept);
                    Wish::Order
                }
            };
            let reference = format!("{name}-{count}");
            self.memory.set(&reference, &wish, None);
            loop {
                let base = {
                    let bases = self.bases.lock().unwrap();
                    bases[dice.roll(bases.len() as u64) as usize].clone()
                };
                match self.ask(&base, &reference, &wish).await {
                    Some(reply) if self.note(&reference, &wish, &reply) || !patient => break,
                    None if !patient => return,
                    // Nobody there, or not ready: the same call again, perhaps at another server.
                    Some(_) | None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
            if let (Wish::Order, Some(done)) = (&wish, &self.memory.of(&reference).done) {
                mine.push(done.clone());
            }
        }
    }

    pub async fn run(&self, round: usize, dice: &mut Dice, patient: bool) {
        let clients = (0..CLIENTS)
            .map(|number| self.client(format!("r{round}c{number}"), Dice(dice.roll(u64::MAX)), patient));
        join_all(clients).await;
    }

    /// Calls again whatever was never answered: that, too, must lead to one order each.
    pub async fn call_again(&self, server: &Server) {
        for (reference, told) in self.memory.all() {
            if told.done.is_none() && !matches!(told.wish, Wish::Cancel { .. }) {
                until("a repeated call is answered", async || {
                    let reply = self.ask(&server.base, &reference, &told.wish).await.unwrap();
                    self.note(&reference, &told.wish, &reply).then_some(())
                })
                .await;
            }
        }
    }

    /// Everything that must hold once nothing is open any more.
    pub async fn check(&self, server: &Server) {
        let get = async |path: &str| {
            self.site.send(&server.base, self.key, "GET", path, None).await.unwrap().expect(200)
        };
        until("nothing is open", async || {
            let held = get("/api/b2b/v1/balance").await["heldUsd"] == 0;
            (held && get(&format!("{ORDERS}?status=CANCELLING")).await["total"] == 0).then_some(())
        })
        .await;
        let listed = self.site.cli(&["order", "list", "--limit", "100000"]).await;
        let rows: Vec<Row> = listed["orders"].as_array().unwrap().iter().map(Row::read).collect();
        self.check_promises(&rows);
        self.check_supplier(&rows);
        let spent: i64 = rows.iter().filter(|row| row.status == "FULFILLED").map(|row| row.charged).sum();
        let left = Usd::from_micros(Usd::parse(CREDIT).unwrap().micros() - spent);
        assert_eq!(get("/api/b2b/v1/balance").await["balanceUsd"].to_string(), left.to_string());
        self.site.verify_books().await;
    }

    fn check_promises(&self, rows: &[Row]) {
        let mut by_reference: BTreeMap<&str, &Row> = BTreeMap::new();
        for row in rows {
            assert!(by_reference.insert(&row.reference, row).is_none(), "{} has two orders", row.reference);
            assert_ne!(row.status, "FAILED", "nothing here gives a reason to fail: {}", row.id);
        }
        for (reference, told) in self.memory.all() {
            let Some((id, iccid)) = &told.done else { continue };
            if let Wish::Cancel { order } = &told.wish {
                let row = rows.iter().find(|row| &row.id == order).unwrap();
                assert_eq!(row.status, "CANCELLED", "{order} was given back, the caller was told");
                continue;
            }
            let row = by_reference.get(reference.as_str());
            let row = row.unwrap_or_else(|| panic!("{reference} was acknowledged and is gone"));
            assert_eq!((&row.id, &row.iccid), (id, iccid), "{reference} is not what its caller was told");
        }
    }

    fn check_supplier(&self, rows: &[Row]) {
        let journal = read_journal(&self.site.place.dir);
        let said = |word: &str, line: &dyn Fn(&[String]) -> String| -> BTreeSet<String> {
            journal.iter().filter(|words| words[0] == word).map(|words| line(words)).collect()
        };
        let have = |kind: &str, states: &[&str], line: &dyn Fn(&Row) -> String| -> BTreeSet<String> {
            let of_kind = |row: &&Row| row.id.starts_with(kind) && states.contains(&row.status.as_str());
            rows.iter().filter(of_kind).map(line).collect()
        };
        let sold = said("sold", &|words| format!("{} {}", words[1], words[2]));
        let delivered = have("ord_", &["FULFILLED", "CANCELLED"], &|row| format!("{} {}", row.id, row.iccid));
        assert_same(&sold, &delivered, "sold and delivered");
        // A profile's name begins with the order it was sold for.
        let taken_back = said("cancelled", &|words| words[1].split('.').next().unwrap().to_string());
        assert_same(
            &taken_back,
            &have("ord_", &["CANCELLED"], &|row| row.id.clone()),
            "taken back and refunded",
        );
        let filled = said("topped", &|words| words[1].clone());
        assert_same(&filled, &have("top_", &["FULFILLED"], &|row| row.id.clone()), "filled and charged");
    }
}

fn assert_same(supplier: &BTreeSet<String>, gateway: &BTreeSet<String>, what: &str) {
    let (more, less): (Vec<_>, Vec<_>) =
        (supplier.difference(gateway).collect(), gateway.difference(supplier).collect());
    assert!(
        more.is_empty() && less.is_empty(),
        "{what}: only the supplier has {more:?}, only the gateway has {less:?}"
    );
}

/// An order or top-up as `simgate order list` shows it.
struct Row {
    id: String,
    reference: String,
    status: String,
    iccid: String,
    charged: i64,
}

impl Row {
    fn read(row: &Value) -> Row {
        let text = |field: &str| row[field].as_str().unwrap_or_default().to_string();
        Row {
            id: text("id"),
            reference: text("partnerRefId"),
            status: text("status"),
            iccid: text("iccid"),
            charged: Usd::parse(&row["chargedUsd"].to_string()).unwrap().micros(),
        }
    }
}
