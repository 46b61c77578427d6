//! What is known of each supplier: whether its plans are sold, whose turn it is to send to it, how its last sync went,
//! what is left of the money that we paid in there, and in which currency that is.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::domain::amount::Fiat;
use crate::domain::cost::Rate;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    STANDINGS = text!("SELECT ", Standing::COLUMNS, " FROM suppliers s ORDER BY s.name");
    ENABLED = "SELECT 1 FROM suppliers WHERE name = ?1 AND enabled = 1";
    ENLIST = "INSERT INTO suppliers (name, enabled, turn, currency) VALUES (?1, ?2, 0, ?3) ON CONFLICT (name) DO NOTHING";
    ENABLE = "UPDATE suppliers SET enabled = ?2 WHERE name = ?1 AND enabled <> ?2";
    /// The turn that was taken; the next one is a step later. A turn that nobody can have taken is from before the clock
    /// was set back.
    TURN = "UPDATE suppliers SET turn = CASE WHEN turn > ?2 AND turn <= ?4 THEN turn ELSE ?2 END + ?3
            WHERE name = ?1 AND (turn <= ?4 OR turn > ?4 + ?3 + 60000000) RETURNING turn - ?3";
    /// The same for questions that messages make us ask.
    MESSAGE_TURN = "UPDATE suppliers SET message_turn = CASE WHEN message_turn > ?2 AND message_turn <= ?4 THEN message_turn ELSE ?2 END + ?3
            WHERE name = ?1 AND (message_turn <= ?4 OR message_turn > ?4 + ?3 + 60000000) RETURNING message_turn - ?3";
    SYNCED = "UPDATE suppliers SET synced_at = COALESCE(?2, synced_at), held_back = ?3 WHERE name = ?1";
    BALANCE = "UPDATE suppliers SET balance = ?2, balance_at = ?3 WHERE name = ?1";
    LOOK = "UPDATE suppliers SET look_at = ?3 WHERE name = ?1 AND (look_at <= ?2 OR look_at > ?3)";
    SYNC = "UPDATE suppliers SET sync_at = ?3 WHERE name = ?1 AND enabled = 1 AND (sync_at <= ?2 OR sync_at > ?3)";
    CURRENCY = "UPDATE suppliers SET currency = ?2, rate = NULL, rate_day = NULL WHERE name = ?1";
    RATE = "UPDATE suppliers SET rate = ?2, rate_day = ?3 WHERE name = ?1";
    RATE_OF = "SELECT rate FROM suppliers WHERE name = ?1";
    HAS_PLANS = "SELECT 1 FROM plans WHERE supplier = ?1 LIMIT 1";
    HAS_BOOKS = "SELECT 1 FROM postings WHERE account = ?1 LIMIT 1";
    TEST = "UPDATE suppliers SET tested_at = ?2 WHERE name = ?1 AND (tested_at IS NULL OR tested_at < ?3)";
}

#[derive(Clone, Debug)]
pub struct Standing {
    pub name: String,
    pub enabled: bool,
    pub synced_at: Option<Time>,
    /// Why the last sync changed nothing.
    pub held_back: Option<String>,
    /// In millionths of the supplier's currency.
    pub balance: Option<i64>,
    pub balance_at: Option<Time>,
    /// When its balance is to be read, and its plans to be taken in.
    pub look_at: Time,
    pub sync_at: Time,
    pub currency: Fiat,
    /// Dollars for one unit of its currency, and the day that this is of.
    pub rate: Option<Rate>,
    pub rate_day: Option<i64>,
}

columns! {
    Standing in "s" {
        name, enabled, synced_at, held_back, balance, balance_at, look_at, sync_at, currency, rate, rate_day,
    }
}

pub fn all(tx: &mut Tx) -> Result<Vec<Standing>> {
    tx.all(STANDINGS, &[])
}

pub fn is_enabled(tx: &mut Tx, name: &str) -> Result<bool> {
    tx.any(ENABLED, params![name])
}

/// Enters a supplier that the database does not know yet.
pub fn enlist(tx: &mut Tx, name: &str, enabled: bool, currency: Fiat) -> Result<()> {
    tx.execute(ENLIST, params![name, enabled, &currency]).map(drop)
}

/// Its bills are in this currency; a rate for another one is forgotten.
pub fn bill_in(tx: &mut Tx, name: &str, currency: Fiat) -> Result<()> {
    tx.execute(CURRENCY, params![name, &currency]).map(drop)
}

/// Whether something of it is in the catalog or in the books.
pub fn is_used(tx: &mut Tx, name: &str) -> Result<bool> {
    let account = format!("supplier:{name}");
    Ok(tx.any(HAS_PLANS, params![name])? || tx.any(HAS_BOOKS, params![&account])?)
}

/// The dollars for one unit of its currency, if that is set.
pub fn rate(tx: &mut Tx, name: &str) -> Result<Option<Rate>> {
    Ok(tx.opt::<Option<Rate>>(RATE_OF, params![name])?.flatten())
}

/// Sets the dollars for one unit of its currency, and the day that this is of.
pub fn set_rate(tx: &mut Tx, name: &str, rate: Rate, day: i64) -> Result<()> {
    tx.execute(RATE, params![name, rate, day]).map(drop)
}

/// False when it was so already.
pub fn enable(tx: &mut Tx, name: &str, enabled: bool) -> Result<bool> {
    Ok(tx.execute(ENABLE, params![name, enabled])? == 1)
}

/// Takes the next turn to send to a supplier: when it is. `None` when that would be after `latest`.
pub fn turn(tx: &mut Tx, name: &str, now: Time, step_micros: i64, latest: Time) -> Result<Option<Time>> {
    let taken: Option<i64> = tx.write_opt(TURN, params![name, now, step_micros, latest])?;
    Ok(taken.map(Time::from_micros))
}

/// The same for a question that a message makes us ask.
pub fn message_turn(
    tx: &mut Tx,
    name: &str,
    now: Time,
    step_micros: i64,
    latest: Time,
) -> Result<Option<Time>> {
    let taken: Option<i64> = tx.write_opt(MESSAGE_TURN, params![name, now, step_micros, latest])?;
    Ok(taken.map(Time::from_micros))
}

/// Notes a sync that changed the catalog, or why one changed nothing.
pub fn note_sync(tx: &mut Tx, name: &str, synced_at: Option<Time>, held_back: Option<&str>) -> Result<()> {
    tx.execute(SYNCED, params![name, synced_at, held_back]).map(drop)
}

pub fn note_balance(tx: &mut Tx, name: &str, micros: i64, now: Time) -> Result<()> {
    tx.execute(BALANCE, params![name, micros, now]).map(drop)
}

/// Takes the turn to read a supplier's balance; the next one is then. False when another instance was first.
pub fn take_look(tx: &mut Tx, name: &str, now: Time, next: Time) -> Result<bool> {
    Ok(tx.execute(LOOK, params![name, now, next])? == 1)
}

/// The same for taking in its plans.
pub fn take_sync(tx: &mut Tx, name: &str, now: Time, next: Time) -> Result<bool> {
    Ok(tx.execute(SYNC, params![name, now, next])? == 1)
}

/// Takes the day's test purchase; false when one was made after `since`.
pub fn take_test(tx: &mut Tx, name: &str, now: Time, since: Time) -> Result<bool> {
    Ok(tx.execute(TEST, params![name, now, since])? == 1)
}
