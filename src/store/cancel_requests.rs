//! Cancels that people at a supplier decide about: the request that an order has sent, so that it is never sent twice.

use super::engine::{Tx, params, queries};
use crate::domain::ids::OrderId;
use crate::error::Result;

queries! {
    MARK = "UPDATE orders SET cancel_request = '' WHERE id = ?1 AND status = 'CANCELLING' AND cancel_request IS NULL";
    KEEP = "UPDATE orders SET cancel_request = ?2 WHERE id = ?1 AND COALESCE(cancel_request, '') = ''";
    FORGET = "UPDATE orders SET cancel_request = NULL WHERE id = ?1 AND cancel_request = ''";
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
