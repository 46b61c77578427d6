//! The simulated supplier's world, shared by all instances and kept over restarts. Only changes are rows: an untouched
//! profile follows from its order id and needs none.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use super::meta;
use crate::domain::esim::EsimStatus;
use crate::domain::ids::OrderId;
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    MODE = text!("SELECT ", Mode::COLUMNS, " FROM sim_supplier WHERE id = 1");
    SET_MODE = "UPDATE sim_supplier SET mode = ?1, delay_ms = ?2, remaining = ?3, since = ?4, doubt_rule = ?5, quiet_s = ?6 WHERE id = 1";
    USE_ONE = "UPDATE sim_supplier SET remaining = remaining - 1 WHERE id = 1 AND remaining > 0 AND mode = ?1 RETURNING remaining";
    BACK_TO_OK = "UPDATE sim_supplier SET mode = 'ok', delay_ms = 0, remaining = NULL WHERE id = 1 AND remaining = 0";
    PROFILE = "SELECT used_mb, status FROM sim_profiles WHERE profile = ?1";
    MOVE = "INSERT INTO sim_profiles (profile, used_mb, status) VALUES (?1, ?2, ?3)
            ON CONFLICT (profile) DO UPDATE SET used_mb = excluded.used_mb, status = excluded.status
            WHERE sim_profiles.status <> 'CANCELLED'";
    CANCEL = "INSERT INTO sim_profiles (profile, used_mb, status) VALUES (?1, 0, 'CANCELLED')
              ON CONFLICT (profile) DO UPDATE SET status = 'CANCELLED'
              WHERE sim_profiles.status IN ('NEW', 'CANCELLED') AND sim_profiles.used_mb = 0";
    ADD_TOPUP = "INSERT INTO sim_topups (order_id, profile, data_mb, days) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (order_id) DO NOTHING";
    HAS_TOPUP = "SELECT 1 FROM sim_topups WHERE order_id = ?1";
    DELIVERED = "SELECT 1 FROM esims WHERE order_id = ?1";
    KEEP = insert_into!("sim_sales", NewSale);
    KEPT = text!("SELECT ", Kept::COLUMNS, " FROM sim_sales WHERE order_id = ?1 AND n = ?2");
    KEPT_OF = text!("SELECT ", Kept::COLUMNS, " FROM sim_sales WHERE order_id = ?1 ORDER BY n");
    KEPT_SINCE = text!("SELECT ", Kept::COLUMNS, " FROM sim_sales WHERE at >= ?1 ORDER BY at LIMIT 500");
    KEPT_OF_OTHERS = text!("SELECT ", Kept::COLUMNS, " FROM sim_sales WHERE order_id <> ?1 ORDER BY at DESC LIMIT 20");
    TOPUPS = "SELECT CAST(COALESCE(SUM(data_mb), 0) AS BIGINT), CAST(COALESCE(SUM(days), 0) AS BIGINT) FROM sim_topups WHERE profile = ?1";
}

pub struct Mode {
    pub word: String,
    pub delay_ms: i64,
    pub remaining: Option<i64>,
    pub since: Time,
    pub doubt_rule: String,
    pub quiet_s: i64,
}

columns! { Mode { word = "mode", delay_ms, remaining, since, doubt_rule, quiet_s } }

/// A sale that is kept, because a repeated purchase would sell again.
pub struct Kept {
    pub order: OrderId,
    /// The n-th of its order.
    pub n: i64,
    pub code: String,
    /// The profile that a top-up fills.
    pub filled: Option<String>,
    pub data_mb: i64,
    pub days: i64,
    pub ordered_at: Time,
    pub cost: Option<Usd>,
    pub at: Time,
    /// Look-ups show it from then on.
    pub seen_from: Time,
    /// Its profile is there from then on.
    pub ready_from: Time,
}

columns! {
    Kept { order = "order_id", n, code, filled, data_mb, days, ordered_at, cost, at, seen_from, ready_from }
}

values! {
    NewSale(sale: Kept, n: i64) {
        order_id = &sale.order, n = n, code, filled, data_mb, days, ordered_at, cost, at, seen_from, ready_from,
    }
}

pub fn mode(tx: &mut Tx) -> Result<Mode> {
    tx.one(MODE, &[])
}

pub fn set_mode(tx: &mut Tx, mode: &Mode) -> Result<()> {
    tx.execute(
        SET_MODE,
        params![&mode.word, mode.delay_ms, mode.remaining, mode.since, &mode.doubt_rule, mode.quiet_s],
    )?;
    meta::bump(tx, meta::Version::Simulator).map(drop)
}

/// Counts one misbehaving call; false when another call took the last one. After the last, the supplier behaves again.
pub fn use_one(tx: &mut Tx, word: &str) -> Result<bool> {
    match tx.write_opt::<i64>(USE_ONE, params![word])? {
        None => Ok(false),
        Some(left) => {
            if left == 0 {
                tx.execute(BACK_TO_OK, &[])?;
                meta::bump(tx, meta::Version::Simulator)?;
            }
            Ok(true)
        }
    }
}

/// The changes to a profile: megabytes used, and its status.
pub fn profile(tx: &mut Tx, profile: &str) -> Result<Option<(i64, EsimStatus)>> {
    tx.opt(PROFILE, params![profile])
}

/// Moves a profile's meter. False when the profile is cancelled and cannot be used.
pub fn move_profile(tx: &mut Tx, profile: &str, used_mb: i64, status: EsimStatus) -> Result<bool> {
    Ok(tx.execute(MOVE, params![profile, used_mb, status])? == 1)
}

/// Cancels a profile. False when it was installed or used before: exactly one of the two wins.
pub fn cancel_profile(tx: &mut Tx, profile: &str) -> Result<bool> {
    Ok(tx.execute(CANCEL, params![profile])? == 1)
}

/// Adds a bundle to a profile, once for each sale.
pub fn add_topup(tx: &mut Tx, sale: &str, profile: &str, data_mb: i64, days: i64) -> Result<()> {
    tx.execute(ADD_TOPUP, params![sale, profile, data_mb, days]).map(drop)
}

pub fn has_topup(tx: &mut Tx, order: &OrderId) -> Result<bool> {
    tx.any(HAS_TOPUP, params![order])
}

/// Whether the gateway has received the profile of this order.
pub fn was_delivered(tx: &mut Tx, order: &OrderId) -> Result<bool> {
    tx.any(DELIVERED, params![order])
}

/// Megabytes and days added to a profile.
pub fn topups(tx: &mut Tx, profile: &str) -> Result<(i64, i64)> {
    tx.one(TOPUPS, params![profile])
}

/// Keeps the n-th sale of an order.
pub fn keep(tx: &mut Tx, sale: &Kept, n: i64) -> Result<()> {
    tx.execute(KEEP, &NewSale::params(sale, n)).map(drop)
}

pub fn kept(tx: &mut Tx, order: &OrderId, n: i64) -> Result<Option<Kept>> {
    tx.opt(KEPT, params![order, n])
}

pub fn kept_of(tx: &mut Tx, order: &OrderId) -> Result<Vec<Kept>> {
    tx.all(KEPT_OF, params![order])
}

/// The sales since then, of all orders, the oldest first.
pub fn kept_since(tx: &mut Tx, since: Time) -> Result<Vec<Kept>> {
    tx.all(KEPT_SINCE, params![since])
}

/// The newest sales of other orders.
pub fn kept_of_others(tx: &mut Tx, order: &OrderId) -> Result<Vec<Kept>> {
    tx.all(KEPT_OF_OTHERS, params![order])
}
