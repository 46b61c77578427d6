//! Deposit invoices. Their status follows from their transfers: a write that changes a transfer also calls `restate`.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use super::transfers;
use crate::domain::event::EventKind;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::invoice::{Invoice, InvoiceEvent, InvoiceStatus};
use crate::domain::money::Usd;
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::error::{Error, Result};

/// How far a chain's clock may be behind ours.
const CLOCKS_APART_MS: i64 = 60_000;

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
    /// One for which its address was made, or nearly there.
    FIRST = "SELECT i.id FROM invoices i JOIN addresses a ON a.address = i.address
             WHERE i.address = ?1 AND (i.created_at = a.created_at OR i.created_at <= ?2) ORDER BY i.created_at LIMIT 1";
    NEWER = "SELECT 1 FROM invoices WHERE address = ?1 AND created_at > ?2 LIMIT 1";
    MOVE = "UPDATE invoices SET status = ?2, expired_at = ?3, confirmed_at = ?4, events = events + ?6
            WHERE id = ?1 AND status = ?5 RETURNING events";
    /// The outer state is worded so that each row is found by its id.
    MOVE_DUE_LITE (Sqlite) = text!("UPDATE invoices SET status = ?4, expired_at = ?3, events = events + 1
            WHERE status || '' = 'PENDING' AND id IN (
                SELECT id FROM invoices WHERE network = ?1 AND status = 'PENDING' AND expires_at < ?2 ORDER BY expires_at LIMIT 500)
            RETURNING ", Invoice::COLUMNS, ", events");
    /// The same. The rows are locked in the order of their ids, as by those who see payments.
    MOVE_DUE_PG (Postgres) = text!("WITH due AS MATERIALIZED (
                SELECT id FROM invoices WHERE network = ?1 AND status = 'PENDING' AND expires_at < ?2 ORDER BY expires_at LIMIT 500),
            locked AS MATERIALIZED (SELECT i.id AS due_id FROM invoices i WHERE i.id IN (SELECT id FROM due) ORDER BY i.id FOR UPDATE)
            UPDATE invoices SET status = ?4, expired_at = ?3, events = events + 1 FROM locked
            WHERE id = due_id AND status || '' = 'PENDING' RETURNING ", Invoice::COLUMNS, ", events");
    DUE = "SELECT 1 FROM invoices WHERE network = ?1 AND status = 'PENDING' AND expires_at < ?2 LIMIT 1";
    OF_ACCOUNT = select_invoice!("WHERE account = ?1 AND created_at <= ?2 ORDER BY created_at DESC, id DESC LIMIT ?3");
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
    // A block's clock may be behind ours, and nobody knew an address before the invoice that it was made for. One that was
    // made for no invoice may have been paid long before its first.
    tx.opt(FIRST, params![address, block_time.plus_millis(CLOCKS_APART_MS)])
}

/// A change that the owner of the invoice is told of.
#[must_use]
pub struct Moved {
    /// As it is now.
    pub invoice: Invoice,
    pub kind: EventKind,
    /// The place of the event among those of the invoice.
    pub sequence: i64,
}

/// What happened to an invoice, or to several.
enum Step<'a> {
    /// The caller has locked it. `richer`: more of its money is in the wallet than before.
    One { invoice: &'a Invoice, event: InvoiceEvent, richer: bool },
    /// The time of these was over before `before`, and nothing was paid. At most 500 at once.
    Lapsed { network: Network, before: Time },
}

/// Changes the status of invoices, and counts their events. Nothing else does. Answers the changes that are to be told: an
/// invoice that comes into a state with an event, or gets richer in one.
fn advance(tx: &mut Tx, step: &Step, now: Time) -> Result<Vec<Moved>> {
    let (stood, event) = match step {
        Step::One { invoice, event, .. } => (invoice.status, *event),
        Step::Lapsed { .. } => (InvoiceStatus::Pending, InvoiceEvent::Lapsed),
    };
    let Some(next) = stood.after(event) else { return Ok(Vec::new()) };
    match step {
        Step::One { invoice, richer, .. } => {
            let expired_at = match event {
                InvoiceEvent::Lapsed => invoice.expired_at.or(Some(now)),
                InvoiceEvent::Received | InvoiceEvent::Credited | InvoiceEvent::Emptied => invoice.expired_at,
            };
            let confirmed_at = match next {
                InvoiceStatus::Confirmed => invoice.confirmed_at.or(Some(now)),
                InvoiceStatus::Pending | InvoiceStatus::Confirming | InvoiceStatus::Expired => None,
            };
            let news = next.news().filter(|_| next != stood || *richer);
            let told = i64::from(news.is_some());
            let values = params![&invoice.id, next, expired_at, confirmed_at, stood, told];
            let Some(sequence) = tx.write_opt(MOVE, values)? else { return Ok(Vec::new()) };
            let invoice = Invoice { status: next, expired_at, confirmed_at, ..(*invoice).clone() };
            Ok(news.map(|kind| Moved { invoice, kind, sequence }).into_iter().collect())
        }
        Step::Lapsed { network, before } => {
            let values = params![network, *before, now, next];
            let lapsed: Vec<(Invoice, i64)> = match tx.is_postgres() {
                true => tx.write_all(MOVE_DUE_PG, values)?,
                false => tx.write_all(MOVE_DUE_LITE, values)?,
            };
            let told = |(invoice, sequence)| Some(Moved { invoice, kind: next.news()?, sequence });
            Ok(lapsed.into_iter().filter_map(told).collect())
        }
    }
}

/// Puts the invoice where its transfers say it is. `credited` is what was just posted for it; less than `dust` of that is
/// not told. Answers the change that is to be told, if it is one.
pub fn restate(tx: &mut Tx, id: &InvoiceId, dust: Usd, credited: Usd, now: Time) -> Result<Option<Moved>> {
    let found: Option<Invoice> = tx.lock(LOCK, params![id])?;
    let invoice = found.ok_or_else(|| Error::fault("a transfer names an invoice that is not there"))?;
    let paid = transfers::paid(tx, &invoice)?;
    let mut event = invoice.event(&paid, dust);
    // A payment that vanished must not reopen an invoice whose address serves another one by now.
    if event == InvoiceEvent::Emptied && tx.any(NEWER, params![&invoice.address, invoice.created_at])? {
        event = InvoiceEvent::Lapsed;
    }
    let step = Step::One { invoice: &invoice, event, richer: credited >= dust };
    Ok(advance(tx, &step, now)?.pop())
}

/// Whether anything waits to be expired: a look that costs no write.
pub fn any_due(tx: &mut Tx, network: Network, before: Time) -> Result<bool> {
    tx.any(DUE, params![network, before])
}

/// Closes unpaid invoices that were open until before this time, at most 500 at once. Answers them, to be told.
pub fn expire(tx: &mut Tx, network: Network, before: Time, now: Time) -> Result<Vec<Moved>> {
    advance(tx, &Step::Lapsed { network, before }, now)
}

/// An account's invoices up to this time, newest first.
pub fn of_account(tx: &mut Tx, account: AccountNo, up_to: Time, most: i64) -> Result<Vec<Invoice>> {
    tx.all(OF_ACCOUNT, params![account, up_to, most])
}

/// For the operator's search.
pub fn at_address(tx: &mut Tx, address: &str) -> Result<Vec<Invoice>> {
    tx.all(AT_ADDRESS, params![address])
}
