//! Delivered profiles and the last known reading of each one's meter.

use super::engine::{Tx, columns, insert_into, params, queries, values};
use crate::domain::esim::{Esim, Usage};
use crate::domain::ids::{AccountNo, OrderId};
use crate::error::Result;

queries! {
    INSERT = insert_into!("esims", New);
    OWNER = "SELECT order_id FROM esims WHERE iccid = ?1 AND profile = ?2";
    SAVE_USAGE = "UPDATE esims SET usage_status = ?2, total_mb = ?3, used_mb = ?4, as_of = ?5, expires_at = ?6,
                      installed_at = COALESCE(installed_at, CASE WHEN ?2 IN ('INSTALLED', 'ACTIVE', 'DEPLETED') THEN ?5 END)
                  WHERE order_id = ?1 AND (as_of IS NULL OR as_of <= ?5)";
}

columns! {
    Usage in "s" { status = "s.usage_status", total_mb, used_mb, as_of, expires_at }
}

columns! {
    Esim in "s" {
        order = "s.order_id", profile, iccid, sealed = "s.activation", install_by,
        last_usage: Option<Usage> = Usage::COLUMNS,
    }
}

values! {
    New(new: Esim, account: AccountNo) {
        order_id = &new.order, account = account, profile, iccid, activation = &new.sealed, install_by,
    }
}

pub fn insert(tx: &mut Tx, account: AccountNo, esim: &Esim) -> Result<()> {
    tx.execute(INSERT, &New::params(esim, account)).map(drop)
}

/// The order that delivered a supplier's profile.
pub fn owner_of(tx: &mut Tx, esim: &Esim) -> Result<Option<OrderId>> {
    holder_of(tx, &esim.iccid, &esim.profile)
}

/// The same by the profile's own names.
pub fn holder_of(tx: &mut Tx, iccid: &str, profile: &str) -> Result<Option<OrderId>> {
    tx.opt(OWNER, params![iccid, profile])
}

/// Keeps a reading, unless a newer one is there.
pub fn save_usage(tx: &mut Tx, order: &OrderId, usage: &Usage) -> Result<()> {
    let values = params![order, usage.status, usage.total_mb, usage.used_mb, usage.as_of, usage.expires_at];
    tx.execute(SAVE_USAGE, values).map(drop)
}
