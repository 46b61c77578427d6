//! What is owed to us because a payment that counted vanished from its chain: how much, by whom, what settles it, and
//! the suspension that it causes and that ends with it. Callers lock the wallet before they ask here for a write.

use super::engine::{Stored, Tx, params, queries, text};
use super::ledger::{self, Note};
use super::meta::{self, Version};
use super::wallet::{self, Suspension};
use super::{checkouts, guests, transfers};
use crate::domain::checkout::Checkout;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::order::Order;
use crate::domain::payback::{Payback, Payee};
use crate::domain::time::Time;
use crate::domain::transfer::{Transfer, TransferId};
use crate::error::{Error, Result};

queries! {
    /// Old postings did not name the transfer that something is owed for: it was their own.
    OWED_BEFORE = "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM postings
                   WHERE transfer = ?1 AND account = 'receivable' AND settles IS NULL";
    OWED = "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM postings WHERE settles IS NOT NULL AND settles = ?1";
    TAKEN_BACK = text!("SELECT ", TransferId::COLUMNS, " FROM transfers WHERE account IS NOT NULL AND account = ?1 AND round > 0
                  ORDER BY network, tx_hash, position");
    CLAIMED_BY = "SELECT id FROM checkouts WHERE claimed_by IS NOT NULL AND claimed_by = ?1";
    /// Worded, here and below, so that the wallet's index, which may be long, is not used.
    FROM_ENTRIES = "SELECT CAST(COALESCE(-SUM(amount), 0) AS BIGINT) FROM postings WHERE entry >= ?1 AND entry < ?2 AND +wallet = ?3";
    FROM_TRANSFER = "SELECT CAST(COALESCE(-SUM(amount), 0) AS BIGINT) FROM postings WHERE transfer IS NOT NULL AND transfer = ?1 AND +wallet = ?2";
}

/// What is owed for a transfer that counted and vanished.
pub fn of_transfer(tx: &mut Tx, id: &TransferId) -> Result<Usd> {
    let name = id.to_string();
    let before: Usd = tx.one(OWED_BEFORE, params![&name])?;
    Ok(before.plus(tx.one(OWED, params![&name])?))
}

/// What is owed for the payments of an invoice.
fn of_invoice(tx: &mut Tx, invoice: &InvoiceId) -> Result<Usd> {
    let mut owed = Usd::ZERO;
    for transfer in transfers::of_invoice(tx, invoice)? {
        owed = owed.plus(of_transfer(tx, &transfer.id)?);
    }
    Ok(owed)
}

/// Where the money for an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Funds {
    There,
    /// Its payment counted after one block, and that block was replaced: the payment may come back.
    Missing,
    /// Its payment is gone.
    Owed,
}

/// Whether the money for an order is there; money from a wallet always is.
pub fn funds_of(tx: &mut Tx, order: &Order) -> Result<Funds> {
    let Some(id) = ledger::paid_by(tx, &order.id)? else { return Ok(Funds::There) };
    let payment = transfers::by_id(tx, &id)?.ok_or_else(|| Error::fault("a payment vanished"))?;
    Ok(match of_transfer(tx, &id)?.is_positive() {
        true => Funds::Owed,
        false if payment.missing => Funds::Missing,
        false => Funds::There,
    })
}

/// What an account owes. If it claimed a guest's invoice, it owes for that invoice's payments at most what it received.
pub fn of_account(tx: &mut Tx, account: AccountNo) -> Result<Usd> {
    let mut owed = Usd::ZERO;
    for id in tx.all::<TransferId>(TAKEN_BACK, params![account])? {
        owed = owed.plus(of_transfer(tx, &id)?);
    }
    for id in tx.all::<InvoiceId>(CLAIMED_BY, params![account])? {
        let invoice = checkouts::by_id(tx, &id)?.ok_or_else(|| Error::fault("a checkout vanished"))?;
        owed = owed.plus(of_invoice(tx, &id)?.min(received(tx, &invoice, account)?));
    }
    Ok(owed)
}

/// What an account has received from a guest's invoice, without what was taken back again.
pub fn received(tx: &mut Tx, invoice: &Checkout, by: AccountNo) -> Result<Usd> {
    let named = |name: &str| (format!("{name}."), format!("{name}/"));
    let mut ranges = vec![named(invoice.id.as_str())];
    ranges.extend(invoice.order.as_ref().map(|order| named(order.as_str())));
    let mut received = Usd::ZERO;
    for (from, to) in ranges {
        received = received.plus(tx.one(FROM_ENTRIES, params![&from, &to, by])?);
    }
    for transfer in transfers::of_invoice(tx, &invoice.id)? {
        let id = transfer.id.to_string();
        received = received.plus(tx.one(FROM_TRANSFER, params![&id, by])?);
    }
    Ok(received)
}

/// How this amount is paid back for an order.
pub fn payback(tx: &mut Tx, order: &Order, amount: Usd) -> Result<Payback> {
    let to = guests::payee_of(tx, order)?;
    let Some(transfer) = ledger::paid_by(tx, &order.id)? else { return Ok(Payback::whole(to, amount)) };
    let settled = of_transfer(tx, &transfer)?.min(amount);
    Ok(Payback { to, amount, settles: settled.is_positive().then_some((transfer, settled)) })
}

/// What a transfer that counts now settles: first what is owed for itself, then what its payee owes for others. An
/// account that claimed a guest's invoice settles only that invoice's debts with it, never its own.
pub fn settled_by(tx: &mut Tx, transfer: &Transfer, payee: &Payee) -> Result<Vec<(TransferId, Usd)>> {
    let others = match (payee, &transfer.invoice) {
        (Payee::Wallet(owner), _) if transfer.account == Some(*owner) => {
            tx.all(TAKEN_BACK, params![*owner])?
        }
        (_, Some(invoice)) => transfers::of_invoice(tx, invoice)?.into_iter().map(|paid| paid.id).collect(),
        (_, None) => Vec::new(),
    };
    let others = others.into_iter().filter(|other| *other != transfer.id);
    let mut settled = Vec::new();
    let mut rest = transfer.amount;
    for id in std::iter::once(transfer.id.clone()).chain(others) {
        let part = of_transfer(tx, &id)?.min(rest);
        if part.is_positive() {
            rest = rest.minus(part);
            settled.push((id, part));
        }
    }
    Ok(settled)
}

/// Posts a payback. When that settles the buyer's last debt, the suspension for it ends.
pub fn pay_back(tx: &mut Tx, entry: &Entry, order: &Order, at: Time, note: Note) -> Result<Option<Usd>> {
    let balance = ledger::post(tx, entry, at, note)?;
    if entry.settles_something() {
        let claimer = checkouts::by_order(tx, &order.id)?.and_then(|checkout| checkout.claimed_by);
        lift_if_settled(tx, claimer.unwrap_or(order.account))?;
    }
    Ok(balance)
}

/// Ends the suspension that debts caused, once there are no debts. A suspension by the operator stays.
pub fn lift_if_settled(tx: &mut Tx, account: AccountNo) -> Result<()> {
    let caused = wallet::suspension(tx, account)? == Some(Suspension::Receivable);
    if caused && of_account(tx, account)? == Usd::ZERO {
        wallet::suspend(tx, account, None)?;
        meta::bump(tx, Version::Accounts)?;
    }
    Ok(())
}

/// Suspends an account whose payment is gone: it may not buy until it owes nothing, or the operator allows it.
pub fn suspend(tx: &mut Tx, account: AccountNo) -> Result<()> {
    if wallet::suspension(tx, account)?.is_none() {
        wallet::suspend(tx, account, Some(Suspension::Receivable))?;
        meta::bump(tx, Version::Accounts)?;
    }
    Ok(())
}

/// Locks the wallet behind a payee, if there is one, and answers its account.
pub fn lock_payee(tx: &mut Tx, payee: Option<&Payee>) -> Result<Option<AccountNo>> {
    let Some(Payee::Wallet(owner)) = payee else { return Ok(None) };
    wallet::lock(tx, *owner)?;
    Ok(Some(*owner))
}

/// How much of a transfer its payee can give back. An account that claimed a guest's invoice gives back what it
/// received from it, never its own money.
pub fn left_of(tx: &mut Tx, transfer: &Transfer, payee: &Payee) -> Result<Usd> {
    let owner = match payee {
        Payee::Invoice(invoice) => return guests::owed(tx, invoice),
        Payee::Wallet(owner) => *owner,
    };
    let balance = wallet::read(tx, owner)?.balance;
    match &transfer.invoice {
        Some(invoice) if transfer.account != Some(owner) => {
            let claimed =
                checkouts::by_id(tx, invoice)?.ok_or_else(|| Error::fault("a checkout vanished"))?;
            Ok(balance.min(received(tx, &claimed, owner)?))
        }
        Some(_) | None => Ok(balance),
    }
}
