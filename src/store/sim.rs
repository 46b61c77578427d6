//! The simulated supplier's world, shared by all instances and kept over restarts. Only changes are rows: an untouched
//! profile follows from its order id and needs none.

use super::engine::{Stored, Tx, columns, params, queries, text};
use super::meta;
use crate::domain::esim::EsimStatus;
use crate::domain::ids::OrderId;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    MODE = text!("SELECT ", Mode::COLUMNS, " FROM sim_supplier WHERE id = 1");
    SET_MODE = "UPDATE sim_supplier SET mode = ?1, delay_ms = ?2, remaining = ?3, since = ?4 WHERE id = 1";
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
    TOPUPS = "SELECT CAST(COALESCE(SUM(data_mb), 0) AS BIGINT), CAST(COALESCE(SUM(days), 0) AS BIGINT) FROM sim_topups WHERE profile = ?1";
}

pub struct Mode {
    pub word: String,
    pub delay_ms: i64,
    pub remaining: Option<i64>,
    pub since: Time,
}

columns! { Mode { word = "mode", delay_ms, remaining, since } }

pub fn mode(tx: &mut Tx) -> Result<Mode> {
    tx.one(MODE, &[])
}

pub fn set_mode(tx: &mut Tx, mode: &Mode) -> Result<()> {
    tx.execute(SET_MODE, params![&mode.word, mode.delay_ms, mode.remaining, mode.since])?;
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

pub fn add_topup(tx: &mut Tx, order: &OrderId, profile: &str, data_mb: i64, days: i64) -> Result<()> {
    tx.execute(ADD_TOPUP, params![order, profile, data_mb, days]).map(drop)
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
