//! Deposit invoices. Their status follows from their transfers: whoever changes a transfer calls `restate` in
//! the same write.

use super::transfers;
use super::tx::{Row, Tx, params, queries};
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::invoice::{Invoice, InvoiceStatus};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::time::Time;
use crate::error::{Error, Result};

macro_rules! select_invoice {
    ($tail:literal) => {
        concat!(
            "SELECT id, account, network, currency, amount, address, status, created_at, expires_at, expired_at,
                    confirmed_at FROM invoices ",
            $tail
        )
    };
}

queries! {
    INSERT = "INSERT INTO invoices (id, account, network, currency, amount, address, status, created_at, expires_at)
              VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'PENDING', ?7, ?8)";
    BY_ID = select_invoice!("WHERE id = ?1");
    /// SQLite needs no lock: a write transaction has the database to itself.
    LOCK (Postgres) = select_invoice!("WHERE id = ?1 FOR UPDATE");
    OPEN = select_invoice!("WHERE account = ?1 AND network = ?2 AND status IN ('PENDING', 'CONFIRMING') ORDER BY expires_at");
    AT = "SELECT id FROM invoices WHERE address = ?1 AND created_at <= ?2 ORDER BY created_at DESC LIMIT 1";
    FIRST = "SELECT id FROM invoices WHERE address = ?1 ORDER BY created_at LIMIT 1";
    NEWER = "SELECT 1 FROM invoices WHERE address = ?1 AND created_at > ?2 LIMIT 1";
    RESTATE = "UPDATE invoices SET status = ?2, expired_at = ?3, confirmed_at = ?4 WHERE id = ?1";
    /// The outer state is worded so that each row is found by its id.
    EXPIRE = "UPDATE invoices SET status = 'EXPIRED', expired_at = ?3 WHERE status || '' = 'PENDING' AND id IN (
                  SELECT id FROM invoices WHERE network = ?1 AND status = 'PENDING' AND expires_at < ?2 ORDER BY expires_at LIMIT 500)";
    DUE = "SELECT 1 FROM invoices WHERE network = ?1 AND status = 'PENDING' AND expires_at < ?2 LIMIT 1";
    AT_ADDRESS = select_invoice!("WHERE address = ?1 ORDER BY created_at DESC LIMIT 50");
}

pub fn insert(tx: &mut Tx, invoice: &Invoice) -> Result<()> {
    let values = params![
        invoice.id.as_str(),
        invoice.account,
        invoice.network.as_str(),
        invoice.currency.as_str(),
        invoice.amount,
        &invoice.address,
        invoice.created_at,
        invoice.expires_at
    ];
    tx.execute(INSERT, values).map(drop)
}

pub fn by_id(tx: &mut Tx, id: &InvoiceId) -> Result<Option<Invoice>> {
    tx.opt(BY_ID, params![id.as_str()], read)
}

/// The open invoices of an account on a network, the first to expire first.
pub fn open(tx: &mut Tx, account: AccountNo, network: Network) -> Result<Vec<Invoice>> {
    tx.all(OPEN, params![account, network.as_str()], read)
}

/// The invoice that a transfer to this address counts for: the one open at its block time, else the newest
/// older one. An address serves one open invoice at a time, so both are the newest that was there by then.
pub fn at(tx: &mut Tx, address: &str, block_time: Time) -> Result<Option<InvoiceId>> {
    let read = |row: &Row| row.text(0).map(InvoiceId::from_text);
    // Chains tell whole seconds: a block may be up to one younger than it says.
    let until = block_time.plus_millis(999);
    if let Some(found) = tx.opt(AT, params![address, until], read)? {
        return Ok(Some(found));
    }
    // A block's clock may be a little behind ours.
    tx.opt(FIRST, params![address], read)
}

/// Puts the invoice where its transfers say it is.
pub fn restate(tx: &mut Tx, id: &InvoiceId, dust: Usd, now: Time) -> Result<()> {
    let sql = if tx.is_postgres() { LOCK } else { BY_ID };
    let found = tx.opt(sql, params![id.as_str()], read)?;
    let mut invoice = found.ok_or_else(|| Error::fault("a transfer names an invoice that is not there"))?;
    let paid = transfers::paid(tx, &invoice)?;
    let mut status = invoice.standing(&paid, dust);
    // A payment that vanished must not reopen an invoice whose address serves another one by now.
    if status == InvoiceStatus::Pending
        && tx.opt(NEWER, params![&invoice.address, invoice.created_at], |_| Ok(()))?.is_some()
    {
        status = InvoiceStatus::Expired;
        invoice.expired_at = Some(now);
    }
    invoice.confirmed_at = match status {
        InvoiceStatus::Confirmed => invoice.confirmed_at.or(Some(now)),
        InvoiceStatus::Pending | InvoiceStatus::Confirming | InvoiceStatus::Expired => None,
    };
    let values = params![id.as_str(), status.as_str(), invoice.expired_at, invoice.confirmed_at];
    tx.execute(RESTATE, values).map(drop)
}

/// Whether anything waits to be expired: a look that costs no write.
pub fn any_due(tx: &mut Tx, network: Network, before: Time) -> Result<bool> {
    Ok(tx.opt(DUE, params![network.as_str(), before], |_| Ok(()))?.is_some())
}

/// Closes unpaid invoices that were open until before this time. Answers how many; at most 500 at once.
pub fn expire(tx: &mut Tx, network: Network, before: Time, now: Time) -> Result<u64> {
    tx.execute(EXPIRE, params![network.as_str(), before, now])
}

/// For the operator's search.
pub fn at_address(tx: &mut Tx, address: &str) -> Result<Vec<Invoice>> {
    tx.all(AT_ADDRESS, params![address], read)
}

fn read(row: &Row) -> Result<Invoice> {
    Ok(Invoice {
        id: InvoiceId::from_text(row.text(0)?),
        account: AccountNo(row.int(1)?),
        network: row.word(2, Network::parse)?,
        currency: row.word(3, Currency::parse)?,
        amount: row.usd(4)?,
        address: row.text(5)?,
        status: row.word(6, InvoiceStatus::parse)?,
        created_at: row.time(7)?,
        expires_at: row.time(8)?,
        expired_at: row.opt_time(9)?,
        confirmed_at: row.opt_time(10)?,
    })
}
