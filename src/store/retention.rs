//! Deletes rows that money no longer needs. Small reads find them by age, and small writes delete them, each after a
//! second check. Rows that moved money, name a caller's reference or may explain a payment without an owner stay for
//! ever.

use super::engine::{Sql, Stored, Tx, columns, params, queries, text};
use crate::domain::authorization::AuthorizationId;
use crate::domain::esim::CodeLife;
use crate::domain::ids::{InvoiceId, OrderId};
use crate::domain::network::Network;
use crate::domain::order::OrderStatus;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    OLD_CHECKOUTS = "SELECT late_until, id FROM checkouts WHERE status = 'EXPIRED' AND late_until IS NOT NULL AND late_until < ?1
                     AND late_until >= ?2 AND (late_until > ?2 OR id > ?3) ORDER BY late_until, id LIMIT ?4";
    /// SQLite needs no lock, here and below: a write transaction has the database to itself.
    LOCK_CHECKOUT (Postgres) = "SELECT id FROM checkouts WHERE id = ?1 FOR UPDATE";
    /// Counted, here and below, so that each is looked up by itself, whatever size the planner expects of the tables.
    FORGET_CHECKOUT = "DELETE FROM checkouts WHERE id = ?1 AND status || '' = 'EXPIRED' AND late_until < ?2 AND updated_at < ?2
        AND claimed_by IS NULL AND (wide = 0 OR released <> 0)
        AND 0 = (SELECT COUNT(*) FROM transfers t WHERE t.invoice IS NOT NULL AND t.invoice = checkouts.id)
        AND 0 = (SELECT COUNT(*) FROM authorizations a WHERE a.invoice = checkouts.id AND a.state IN ('CLAIMED', 'SENT', 'SETTLED'))
        AND 0 = (SELECT COUNT(*) FROM authorizations d WHERE d.invoice = checkouts.id AND d.state = 'DEAD')
        AND 0 = (SELECT COUNT(*) FROM claims r WHERE substr(r.order_id, 1, 4) = 'inv_' AND r.order_id = checkouts.id)
        AND 0 = (SELECT COUNT(*) FROM postings p WHERE p.invoice IS NOT NULL AND p.invoice = checkouts.id)
        AND 0 = (SELECT COUNT(*) FROM transfers s WHERE s.invoice IS NULL AND s.state || '' = 'UNMATCHED'
            AND s.address IN (checkouts.address, COALESCE(checkouts.sign_to, ''))
            AND s.block_time >= checkouts.created_at - ?3
            AND (s.block_time <= checkouts.late_until + ?3 OR s.amount = checkouts.amount))
        AND late_until < (SELECT scanned_time FROM cursors k WHERE k.network = checkouts.network)";
    FORGET_USE = "DELETE FROM coupon_uses WHERE holder = ?1";
    OLD_INVOICES = "SELECT expired_at, id FROM invoices WHERE status = 'EXPIRED' AND expired_at < ?1
                    AND expired_at >= ?2 AND (expired_at > ?2 OR id > ?3) ORDER BY expired_at, id LIMIT ?4";
    LOCK_INVOICE (Postgres) = "SELECT id FROM invoices WHERE id = ?1 FOR UPDATE";
    /// The newest invoice of an address stays, because a late payment counts for it.
    FORGET_INVOICE = "DELETE FROM invoices WHERE id = ?1 AND status || '' = 'EXPIRED' AND expired_at < ?2
        AND 0 = (SELECT COUNT(*) FROM transfers t WHERE t.invoice IS NOT NULL AND t.invoice = invoices.id)
        AND 0 < (SELECT COUNT(*) FROM invoices n WHERE n.address = invoices.address AND n.created_at > invoices.created_at)";
    /// Signatures that their token no longer accepts, and that moved nothing.
    OLD_AUTHORIZATIONS = text!("SELECT ", AuthorizationId::COLUMNS, " FROM authorizations a WHERE a.state = 'DEAD'
        AND a.valid_before < ?1 AND a.updated_at < ?1
        AND 0 = (SELECT COUNT(*) FROM transfers t WHERE t.payment_nonce IS NOT NULL AND t.payment_nonce = a.nonce)
        ORDER BY a.valid_before LIMIT ?2");
    FORGET_AUTHORIZATION = "DELETE FROM authorizations WHERE network = ?1 AND payer = ?2 AND nonce = ?3 AND asset = ?4";
    /// A gas key's transaction counts only for its day's budget, but stays while its authorization is open.
    OLD_SETTLEMENTS = "SELECT s.tx_hash FROM settlements s WHERE s.network = ?1 AND s.sent_at < ?2 AND s.state || '' = 'DONE'
        AND 0 = (SELECT COUNT(*) FROM authorizations a WHERE a.network = s.network AND a.payer = s.payer
            AND a.nonce = s.payment_nonce AND a.asset = s.asset AND a.state || '' IN ('CLAIMED', 'SENT'))
        ORDER BY s.sent_at LIMIT ?3";
    FORGET_SETTLEMENT = "DELETE FROM settlements WHERE network = ?1 AND tx_hash = ?2";
    CODES = "SELECT s.order_id, CAST(length(s.activation) AS BIGINT), s.install_by, s.installed_at, s.expires_at, o.status, o.updated_at
             FROM esims s JOIN orders o ON o.id = s.order_id WHERE s.order_id > ?1 ORDER BY s.order_id LIMIT ?2";
    FORGET_CODE = "UPDATE esims SET activation = ?2 WHERE order_id = ?1";
}

/// The most by which chains' clocks differ from ours, in microseconds.
const CLOCKS: i64 = 3_600_000_000;

/// A row of a list by age; the next part of the list begins after it.
#[derive(Clone, Debug)]
pub struct Aged {
    pub at: Time,
    pub id: InvoiceId,
}

columns! { Aged { at, id } }

impl Aged {
    /// Before all rows.
    pub fn first() -> Aged {
        Aged { at: Time::from_micros(0), id: InvoiceId::from_text("") }
    }
}

/// Unpaid checkouts that could no longer be paid after this time.
pub fn old_checkouts(tx: &mut Tx, before: Time, after: &Aged, most: i64) -> Result<Vec<Aged>> {
    tx.all(OLD_CHECKOUTS, params![before, after.at, &after.id, most])
}

/// Forgets the checkouts that nothing needs, with the coupon uses that they gave back. Answers how many.
pub fn forget_checkouts(tx: &mut Tx, old: &[Aged], before: Time) -> Result<u64> {
    let mut gone = 0;
    for Aged { id, .. } in old {
        lock(tx, LOCK_CHECKOUT, id)?;
        if tx.execute(FORGET_CHECKOUT, params![id, before, CLOCKS])? == 1 {
            tx.execute(FORGET_USE, params![id])?;
            gone += 1;
        }
    }
    Ok(gone)
}

/// Deposit invoices that expired before this time.
pub fn old_invoices(tx: &mut Tx, before: Time, after: &Aged, most: i64) -> Result<Vec<Aged>> {
    tx.all(OLD_INVOICES, params![before, after.at, &after.id, most])
}

/// Forgets the invoices without a payment. Answers how many.
pub fn forget_invoices(tx: &mut Tx, old: &[Aged], before: Time) -> Result<u64> {
    let mut gone = 0;
    for Aged { id, .. } in old {
        lock(tx, LOCK_INVOICE, id)?;
        gone += tx.execute(FORGET_INVOICE, params![id, before])?;
    }
    Ok(gone)
}

/// Locks the row, so that a transfer that is about to name it waits, or is seen by the next statement.
fn lock(tx: &mut Tx, sql: Sql, id: &InvoiceId) -> Result<()> {
    if tx.is_postgres() {
        tx.any(sql, params![id])?;
    }
    Ok(())
}

/// Answers how many were deleted; at most `most` at once, here and below.
pub fn forget_authorizations(tx: &mut Tx, before: Time, most: i64) -> Result<u64> {
    let old: Vec<AuthorizationId> = tx.all(OLD_AUTHORIZATIONS, params![before, most])?;
    for AuthorizationId { network, asset, payer, nonce } in &old {
        tx.execute(FORGET_AUTHORIZATION, params![network, payer, nonce, asset])?;
    }
    Ok(old.len() as u64)
}

pub fn forget_settlements(tx: &mut Tx, network: Network, before: Time, most: i64) -> Result<u64> {
    let old: Vec<String> = tx.all(OLD_SETTLEMENTS, params![network, before, most])?;
    for hash in &old {
        tx.execute(FORGET_SETTLEMENT, params![network, hash])?;
    }
    Ok(old.len() as u64)
}

/// An order, its code's length, when it must be installed, was installed and expires, and the order's status and time.
type Delivered = (OrderId, i64, Option<Time>, Option<Time>, Option<Time>, OrderStatus, Time);

/// The next delivered profiles after this one; with the times of those whose activation code is still stored.
pub fn codes(tx: &mut Tx, after: &OrderId, most: i64) -> Result<Vec<(OrderId, Option<CodeLife>)>> {
    let known = tx.all(CODES, params![after, most])?;
    let life = |(order, length, install_by, installed_at, expires_at, status, updated_at): Delivered| {
        let cancelled_at = Some(updated_at).filter(|_| status == OrderStatus::Cancelled);
        let life = CodeLife { install_by, installed_at, expires_at, cancelled_at };
        (order, (length > 0).then_some(life))
    };
    Ok(known.into_iter().map(life).collect())
}

pub fn forget_codes(tx: &mut Tx, orders: &[OrderId]) -> Result<()> {
    let nothing: &[u8] = &[];
    for order in orders {
        tx.execute(FORGET_CODE, params![order, nothing])?;
    }
    Ok(())
}
