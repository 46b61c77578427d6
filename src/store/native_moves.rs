//! What entries moved at suppliers that bill in another currency than dollars, as those count it. An entry is written
//! together with its move. Sales have none: the bill is in the order.

use super::engine::{Tx, columns, params, queries};
use super::ledger::{self, Note};
use crate::domain::cost::{Billed, Cost};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    ADD = "INSERT INTO native_moves (entry, supplier, amount) VALUES (?1, ?2, ?3)";
    OF_ENTRY = "SELECT amount FROM native_moves WHERE entry = ?1";
    SUM = "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM native_moves WHERE supplier = ?1";
}

columns! { Billed { micros = "native_cost", rate } }

/// Posts an entry that moves `native` at a supplier; `None` where it bills in dollars.
pub fn post(
    tx: &mut Tx,
    entry: &Entry,
    at: Time,
    note: Note,
    supplier: &str,
    native: Option<i64>,
) -> Result<Option<Usd>> {
    add(tx, entry, supplier, native)?;
    ledger::post(tx, entry, at, note)
}

/// Notes what an entry moves that is posted otherwise.
pub fn add(tx: &mut Tx, entry: &Entry, supplier: &str, native: Option<i64>) -> Result<()> {
    match native {
        Some(native) => tx.execute(ADD, params![&entry.id, supplier, native]).map(drop),
        None => Ok(()),
    }
}

/// Posts an entry that books a loss or a purchase of this cost.
pub fn post_cost(tx: &mut Tx, entry: &Entry, at: Time, supplier: &str, cost: Cost) -> Result<()> {
    post(tx, entry, at, Note::default(), supplier, cost.native().map(|native| -native)).map(drop)
}

/// What the entry of this name moved; `None` when there is none.
pub fn of_entry(tx: &mut Tx, entry: &str) -> Result<Option<i64>> {
    tx.opt(OF_ENTRY, params![entry])
}

/// What all entries but those of sales moved at a supplier.
pub fn sum(tx: &mut Tx, supplier: &str) -> Result<i64> {
    tx.one(SUM, params![supplier])
}
