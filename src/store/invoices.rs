//! Deposit invoices. Their status follows from their transfers: a write that changes a transfer also calls `restate`.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use super::transfers;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::invoice::{Invoice, InvoiceEvent, InvoiceStatus};
use crate::domain::money::Usd;
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::error::{Error, Result};

macro_rules! select_invoice {
    ($tail:literal) => {
        text!("SELECT ", Invoice::COLUMNS, " FROM invoices ", $tail)
    };
}

queries! {
    INSERT = insert_into!("invoices", New);
    BY_ID and LOCK = select_invoice!("WHERE id = ?1");
    OPEN = select_invoice!("WHERE account = ?1 AND network = ?2 AND status IN ('PENDING', 'CONFIRMING') ORDER BY expires_at");
    AT = "SELECT id FROM invoices WHERE address = ?1 AND created_at <= ?2 ORDER BY created_at DESC LIMIT 1";
    FIRST = "SELECT id FROM invoices WHERE address = ?1 ORDER BY created_at LIMIT 1";
    NEWER = "SELECT 1 FROM invoices WHERE address = ?1 AND created_at > ?2 LIMIT 1";
    MOVE = "UPDATE invoices SET status = ?2, expired_at = ?3, confirmed_at = ?4 WHERE id = ?1 AND status = ?5";
    /// The outer state is worded so that each row is found by its id.
    MOVE_DUE = "UPDATE invoices SET status = ?4, expired_at = ?3 WHERE status || '' = 'PENDING' AND id IN (
                  SELECT id FROM invoices WHERE network = ?1 AND status = 'PENDING' AND expires_at < ?2 ORDER BY expires_at LIMIT 500)";
    DUE = "SELECT 1 FROM invoices WHERE network = ?1 AND status = 'PENDING' AND expires_at < ?2 LIMIT 1";
    AT_ADDRESS = select_invoice!("WHERE address = ?1 ORDER BY created_at DESC LIMIT 50");
}

columns! {
    Invoice {
        id, account, network, currency, amount, address, status, created_at, expires_at, expired_at, confirmed_at,
    }
}

values! {
    New(new: Invoice) {
        id, account, network, currency, amount, address, status = InvoiceStatus::Pending, created_at, expires_at,
    }
}

pub fn insert(tx: &mut Tx, invoice: &Invoice) -> Result<()> {
    tx.execute(INSERT, &New::params(invoice)).map(drop)
}

pub fn by_id(tx: &mut Tx, id: &InvoiceId) -> Result<Option<Invoice>> {
    tx.opt(BY_ID, params![id])
}

/// The open invoices of an account on a network, the first to expire first.
pub fn open(tx: &mut Tx, account: AccountNo, network: Network) -> Result<Vec<Invoice>> {
    tx.all(OPEN, params![account, network])
}

/// The invoice that a transfer to this address counts for: the one open at its block time, else the newest
/// older one. An address serves one open invoice at a time, so both are the newest that was there by then.
pub fn at(tx: &mut Tx, address: &str, block_time: Time) -> Result<Option<InvoiceId>> {
    // Chains tell whole seconds: a block may be up to one younger than it says.
    let until = block_time.plus_millis(999);
    if let Some(found) = tx.opt(AT, params![address, until])? {
        return Ok(Some(found));
    }
    // A block's clock may be a little behind ours.
    tx.opt(FIRST, params![address])
}

/// What happened to an invoice, or to several.
enum Step<'a> {
    /// The caller has locked it.
    One(&'a Invoice, InvoiceEvent),
    /// The time of these was over before `before`, and nothing was paid. At most 500 at once.
    Lapsed { network: Network, before: Time },
}

/// Changes the status of invoices. Nothing else does.
fn advance(tx: &mut Tx, step: &Step, now: Time) -> Result<()> {
    let (stood, event) = match step {
        Step::One(invoice, event) => (invoice.status, *event),
        Step::Lapsed { .. } => (InvoiceStatus::Pending, InvoiceEvent::Lapsed),
    };
    let Some(next) = stood.after(event) else { return Ok(()) };
    let moved = match step {
        Step::One(invoice, _) => {
            let expired_at = match event {
                InvoiceEvent::Lapsed => invoice.expired_at.or(Some(now)),
                InvoiceEvent::Received | InvoiceEvent::Credited | InvoiceEvent::Emptied => invoice.expired_at,
            };
            let confirmed_at = match next {
                InvoiceStatus::Confirmed => invoice.confirmed_at.or(Some(now)),
                InvoiceStatus::Pending | InvoiceStatus::Confirming | InvoiceStatus::Expired => None,
            };
            tx.execute(MOVE, params![&invoice.id, next, expired_at, confirmed_at, stood])
        }
        Step::Lapsed { network, before } => tx.execute(MOVE_DUE, params![network, *before, now, next]),
    };
    moved.map(drop)
}

/// Puts the invoice where its transfers say it is.
pub fn restate(tx: &mut Tx, id: &InvoiceId, dust: Usd, now: Time) -> Result<()> {
    let found: Option<Invoice> = tx.lock(LOCK, params![id])?;
    let invoice = found.ok_or_else(|| Error::fault("a transfer names an invoice that is not there"))?;
    let paid = transfers::paid(tx, &invoice)?;
    let mut event = invoice.event(&paid, dust);
    // A payment that vanished must not reopen an invoice whose address serves another one by now.
    if event == InvoiceEvent::Emptied && tx.any(NEWER, params![&invoice.address, invoice.created_at])? {
        event = InvoiceEvent::Lapsed;
    }
    advance(tx, &Step::One(&invoice, event), now)
}

/// Whether anything waits to be expired: a look that costs no write.
pub fn any_due(tx: &mut Tx, network: Network, before: Time) -> Result<bool> {
    tx.any(DUE, params![network, before])
}

/// Closes unpaid invoices that were open until before this time, at most 500 at once.
pub fn expire(tx: &mut Tx, network: Network, before: Time, now: Time) -> Result<()> {
    advance(tx, &Step::Lapsed { network, before }, now)
}

/// For the operator's search.
pub fn at_address(tx: &mut Tx, address: &str) -> Result<Vec<Invoice>> {
    tx.all(AT_ADDRESS, params![address])
}
