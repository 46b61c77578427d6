//! Cancels that people at a supplier decide about: the request that an order has sent, so that it is never sent twice, and
//! whether its buyer took it back since.

use super::engine::{Tx, params, queries};
use crate::domain::ids::OrderId;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    MARK = "UPDATE orders SET cancel_request = '' WHERE id = ?1 AND status = 'CANCELLING' AND cancel_request IS NULL";
    KEEP = "UPDATE orders SET cancel_request = ?2 WHERE id = ?1 AND COALESCE(cancel_request, '') = ''";
    FORGET = "UPDATE orders SET cancel_request = NULL WHERE id = ?1 AND cancel_request = ''";
    WITHDRAW = "UPDATE orders SET cancel_withdrawn_at = ?2 WHERE id = ?1";
    SETTLE = "UPDATE orders SET cancel_withdrawn_at = NULL WHERE id = ?1 AND cancel_withdrawn_at IS NOT NULL";
    WITHDRAWN = "SELECT id FROM orders WHERE cancel_withdrawn_at IS NOT NULL ORDER BY cancel_withdrawn_at LIMIT ?1";
    KEPT = "SELECT cancel_request FROM orders WHERE id = ?1";
}

/// Marks an order before its request for a review is sent; false when one was marked before.
pub fn mark(tx: &mut Tx, id: &OrderId) -> Result<bool> {
    if tx.execute(MARK, params![id])? == 1 {
        return Ok(true);
    }
    // A re-run of this very write finds its own mark: only one at a time asks about an order.
    let kept: Option<String> = tx.one(KEPT, params![id])?;
    Ok(tx.is_rerun() && kept.as_deref() == Some(""))
}

/// Keeps the supplier's name for the request; the first one stays.
pub fn keep(tx: &mut Tx, id: &OrderId, request: &str) -> Result<()> {
    tx.execute(KEEP, params![id, request]).map(drop)
}

/// Takes the mark off an order whose request was not sent, or was refused at once.
pub fn forget(tx: &mut Tx, id: &OrderId) -> Result<()> {
    tx.execute(FORGET, params![id]).map(drop)
}

/// Writes down that the buyer took the request back.
pub fn withdraw(tx: &mut Tx, id: &OrderId, now: Time) -> Result<()> {
    tx.execute(WITHDRAW, params![id, now]).map(drop)
}

/// The supplier's word about a request that was taken back is known; false when it was known before.
pub fn settle(tx: &mut Tx, id: &OrderId) -> Result<bool> {
    Ok(tx.execute(SETTLE, params![id])? == 1)
}

/// Orders whose request was taken back, and whose supplier may not know, the longest first.
pub fn withdrawn(tx: &mut Tx, most: i64) -> Result<Vec<OrderId>> {
    tx.all(WITHDRAWN, params![most])
}
