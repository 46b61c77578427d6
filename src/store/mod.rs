//! The store: two databases behind one set of functions. `Store::write` runs a business write in the writer's
//! next group, `Store::read` a look-up. All SQL text is in this folder, one file per noun; `engine/` has the machinery.
//! Start with `engine/tx.rs`, then `engine/writer.rs`, then `orders.rs`.

pub mod accounts;
pub mod addresses;
pub mod amounts;
pub mod attempts;
pub mod audit;
pub mod authorizations;
pub mod batches;
pub mod bought;
pub mod calls;
pub mod cancel_requests;
pub mod cash;
pub mod catalog;
pub mod checkouts;
pub mod claims;
pub mod coupons;
pub mod cursors;
pub mod days;
pub mod debts;
pub mod deliveries;
mod details;
mod engine;
pub mod esims;
pub mod events;
pub mod guesses;
pub mod guests;
pub mod invoices;
pub mod keys;
pub mod ledger;
pub mod live;
pub mod logins;
pub mod low_balances;
pub mod magic_links;
pub mod mailings;
pub mod mails;
pub mod members;
pub mod meta;
pub mod native_moves;
pub mod offers;
pub mod order_lists;
pub mod orders;
pub mod price_rules;
pub mod prices;
pub mod reports;
pub mod retention;
pub mod second_factors;
pub mod sessions;
pub mod settlements;
pub mod sim;
pub mod sim_chain;
pub mod slots;
pub mod spares;
pub mod statement;
pub mod suppliers;
pub mod tokens;
pub mod transfers;
mod types;
pub mod users;
pub mod wallet;
pub mod webhooks;

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use self::engine::reader::Reader;
use self::engine::readiness::Readiness;
use self::engine::room::Room;
use self::engine::writer::{Target, Writer};
pub use self::engine::{Location, LogSize, Serving, WriteJob, hide_password, writer_connection};
pub use self::engine::{backup, explain, migrate, tx};
use self::tx::{Body, Sql};
use crate::error::{Error, Result};

pub struct Store {
    location: Location,
    reader: Reader,
    writer: ArcSwapOption<Writer>,
    readiness: Readiness,
    room: Arc<Room>,
}

/// How much of the machine a store may take.
pub struct Capacity {
    /// Writers on PostgreSQL; SQLite always has one.
    pub lanes: usize,
    pub readers: usize,
    /// How many ordinary writes may wait in a lane before callers are told to come back.
    pub queue: usize,
    /// With a log size for a server, which keeps SQLite's log in shape; a command does not.
    pub log: Option<LogSize>,
}

impl Store {
    /// Opens a database that is already migrated.
    pub fn open(location: Location, capacity: &Capacity) -> Result<Store> {
        let (reader, targets) = match &location {
            Location::Sqlite(path) => {
                (Reader::sqlite(path.clone()), vec![Target::Sqlite { path: path.clone(), log: capacity.log }])
            }
            Location::Postgres(url) => (
                Reader::postgres(url, capacity.readers)?,
                (0..capacity.lanes).map(|_| Target::Postgres { url: url.clone() }).collect(),
            ),
        };
        let room = Arc::new(Room::default());
        let writer = Writer::start(targets, capacity.queue, &room, wallet::lock_all)?;
        Ok(Store {
            location,
            reader,
            writer: ArcSwapOption::from_pointee(writer),
            readiness: Readiness::default(),
            room,
        })
    }

    /// How many writes wait or run now.
    pub fn unfinished(&self) -> usize {
        self.writer.load().as_ref().map_or(0, |writer| writer.unfinished())
    }

    /// Whether the database has room for writes, by what is known.
    pub fn has_room(&self) -> bool {
        self.room.is_there()
    }

    pub fn location(&self) -> &Location {
        &self.location
    }

    /// A business write, keyed by the wallet (or else the row) it moves.
    pub async fn write<T: Send + 'static>(&self, key: i64, body: impl Body<T>) -> Result<T> {
        self.writer()?.queue(key, false, body)?.answer().await
    }

    /// The last write of something begun. It is never refused for load, because money waits for it.
    pub async fn finish<T: Send + 'static>(&self, key: i64, body: impl Body<T>) -> Result<T> {
        self.writer()?.queue(key, true, body)?.answer().await
    }

    /// `write`, for a job that can share its statements with others of its kind.
    pub async fn write_batched<W: WriteJob>(&self, key: i64, work: W) -> Result<W::Answer> {
        self.writer()?.queue(key, false, work)?.answer().await
    }

    /// `finish`, for a job that can share its statements.
    pub async fn finish_batched<W: WriteJob>(&self, key: i64, work: W) -> Result<W::Answer> {
        self.writer()?.queue(key, true, work)?.answer().await
    }

    pub async fn read<T: Send + 'static>(&self, body: impl Body<T>) -> Result<T> {
        self.reader.read(body).await
    }

    pub async fn read_consistent<T: Send + 'static>(&self, body: impl Body<T>) -> Result<T> {
        self.reader.read_consistent(body).await
    }

    pub async fn snapshot<T: Send + 'static>(&self, body: impl Body<T>) -> Result<T> {
        self.reader.snapshot(body).await
    }

    /// A read through much of what was ever written, over one state.
    pub async fn study<T: Send + 'static>(&self, body: impl Body<T>) -> Result<T> {
        self.reader.study(body).await
    }

    /// The size of SQLite's log now, in bytes; `None` on PostgreSQL.
    pub fn log_bytes(&self) -> Result<Option<u64>> {
        match &self.location {
            Location::Sqlite(path) => engine::checkpoints::log_bytes(path).map(Some),
            Location::Postgres(_) => Ok(None),
        }
    }

    /// Whether writes succeed now. It may be asked as often as needed.
    pub async fn can_write(&self) -> bool {
        self.readiness.ask(|| self.writer()?.try_all(meta::touch)).await
    }

    /// Flushes and ends the writers. A later write gets a fault.
    pub fn close(&self) {
        if let Some(writer) = self.writer.swap(None).and_then(Arc::into_inner) {
            writer.stop();
        }
    }

    fn writer(&self) -> Result<Arc<Writer>> {
        self.writer.load_full().ok_or_else(|| Error::fault("the store is closed"))
    }
}

/// Every statement of every noun, for the test that prepares each on both databases.
pub fn all_sql() -> Vec<(&'static str, &'static str, Sql)> {
    let nouns: &[(&'static str, &'static [(&'static str, Sql)])] = &[
        ("accounts", accounts::ALL),
        ("addresses", addresses::ALL),
        ("amounts", amounts::ALL),
        ("attempts", attempts::ALL),
        ("audit", audit::ALL),
        ("authorizations", authorizations::ALL),
        ("calls", calls::ALL),
        ("batches", batches::ALL),
        ("cash", cash::ALL),
        ("catalog", catalog::ALL),
        ("checkouts", checkouts::ALL),
        ("claims", claims::ALL),
        ("coupons", coupons::ALL),
        ("cursors", cursors::ALL),
        ("days", days::ALL),
        ("debts", debts::ALL),
        ("deliveries", deliveries::ALL),
        ("esims", esims::ALL),
        ("events", events::ALL),
        ("guesses", guesses::ALL),
        ("guests", guests::ALL),
        ("invoices", invoices::ALL),
        ("keys", keys::ALL),
        ("ledger", ledger::ALL),
        ("live", live::ALL),
        ("logins", logins::ALL),
        ("low_balances", low_balances::ALL),
        ("magic_links", magic_links::ALL),
        ("mailings", mailings::ALL),
        ("mails", mails::ALL),
        ("meta", meta::ALL),
        ("native_moves", native_moves::ALL),
        ("offers", offers::ALL),
        ("order_lists", order_lists::ALL),
        ("orders", orders::ALL),
        ("price_rules", price_rules::ALL),
        ("prices", prices::ALL),
        ("reports", reports::ALL),
        ("retention", retention::ALL),
        ("second_factors", second_factors::ALL),
        ("settlements", settlements::ALL),
        ("sim", sim::ALL),
        ("sim_chain", sim_chain::ALL),
        ("slots", slots::ALL),
        ("spares", spares::ALL),
        ("statement", statement::ALL),
        ("tokens", tokens::ALL),
        ("transfers", transfers::ALL),
        ("users", users::ALL),
        ("wallet", wallet::ALL),
        ("webhooks", webhooks::ALL),
    ];
    nouns.iter().flat_map(|(noun, all)| all.iter().map(move |(name, sql)| (*noun, *name, *sql))).collect()
}
