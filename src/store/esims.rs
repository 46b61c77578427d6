//! Delivered profiles and the last known reading of each one's meter.

use super::tx::{Tx, params, queries};
use crate::domain::esim::{Esim, Usage};
use crate::domain::ids::{AccountNo, OrderId};
use crate::error::Result;

queries! {
    INSERT = "INSERT INTO esims (order_id, account, profile, iccid, activation, install_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    OWNER = "SELECT order_id FROM esims WHERE iccid = ?1 AND profile = ?2";
    SAVE_USAGE = "UPDATE esims SET usage_status = ?2, total_mb = ?3, used_mb = ?4, as_of = ?5, expires_at = ?6,
                      installed_at = COALESCE(installed_at, CASE WHEN ?2 IN ('INSTALLED', 'ACTIVE', 'DEPLETED') THEN ?5 END)
                  WHERE order_id = ?1 AND (as_of IS NULL OR as_of <= ?5)";
}

pub fn insert(tx: &mut Tx, account: AccountNo, esim: &Esim) -> Result<()> {
    let values =
        params![&esim.order, account, &esim.profile, &esim.iccid, esim.sealed.as_slice(), esim.install_by];
    tx.execute(INSERT, values).map(drop)
}

/// The order that delivered a supplier's profile.
pub fn owner_of(tx: &mut Tx, esim: &Esim) -> Result<Option<OrderId>> {
    tx.opt(OWNER, params![&esim.iccid, &esim.profile], |row| Ok(OrderId::from_text(row.text(0)?)))
}

/// Keeps a reading, unless a newer one is there.
pub fn save_usage(tx: &mut Tx, order: &OrderId, usage: &Usage) -> Result<()> {
    let values =
        params![order, usage.status.as_str(), usage.total_mb, usage.used_mb, usage.as_of, usage.expires_at];
    tx.execute(SAVE_USAGE, values).map(drop)
}
