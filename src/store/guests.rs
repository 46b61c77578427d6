//! Guests' money: who gets it back, what we owe for an invoice, and the one claim on it. All of it is decided under the
//! lock of the guests' wallet row, which holds no money itself.

use super::engine::{Tx, params, queries};
use super::{checkouts, debts, transfers, wallet};
use crate::domain::account::GUESTS;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::money::Usd;
use crate::domain::order::Order;
use crate::domain::payback::Payee;
use crate::domain::time::Time;
use crate::error::{Error, Result};

queries! {
    OWED = "SELECT CAST(COALESCE(-SUM(amount), 0) AS BIGINT) FROM postings
            WHERE invoice IS NOT NULL AND invoice = ?1 AND account = 'owed'";
    CLAIMED = "SELECT amount FROM postings WHERE entry = ?1 AND account = 'owed'";
    CLAIM = "UPDATE checkouts SET claimed_by = ?2, updated_at = ?3 WHERE id = ?1 AND claimed_by IS NULL";
}

/// Who gets back money of this account that came for this invoice. A job that gives money back asks this before it
/// writes anything.
pub fn payee(tx: &mut Tx, account: AccountNo, invoice: Option<&InvoiceId>) -> Result<Payee> {
    if account != GUESTS {
        return Ok(Payee::Wallet(account));
    }
    wallet::lock(tx, GUESTS)?;
    let invoice = invoice.ok_or_else(|| Error::fault("a guest's money belongs to an invoice"))?;
    let checkout = checkouts::by_id(tx, invoice)?.ok_or_else(|| Error::fault("a checkout vanished"))?;
    Ok(match checkout.claimed_by {
        Some(owner) => Payee::Wallet(owner),
        None => Payee::Invoice(checkout.id),
    })
}

/// Who gets back an order's money.
pub fn payee_of(tx: &mut Tx, order: &Order) -> Result<Payee> {
    if order.account != GUESTS {
        return Ok(Payee::Wallet(order.account));
    }
    let checkout = checkouts::by_order(tx, &order.id)?;
    payee(tx, order.account, checkout.map(|checkout| checkout.id).as_ref())
}

/// What we owe for an invoice.
pub fn owed(tx: &mut Tx, invoice: &InvoiceId) -> Result<Usd> {
    tx.one(OWED, params![invoice])
}

/// How much of it can be claimed: nothing while a payment behind it is missing on its chain.
pub fn claimable(tx: &mut Tx, invoice: &InvoiceId) -> Result<Usd> {
    for transfer in transfers::of_invoice(tx, invoice)? {
        if debts::of_transfer(tx, &transfer.id)?.is_positive() {
            return Ok(Usd::ZERO);
        }
    }
    owed(tx, invoice)
}

/// What was claimed of an invoice; `None` before the claim.
pub fn claimed(tx: &mut Tx, invoice: &InvoiceId) -> Result<Option<Usd>> {
    tx.opt(CLAIMED, params![&format!("{invoice}.claim")])
}

/// Gives the invoice's money to this account. False when it belongs to somebody already.
pub fn claim(tx: &mut Tx, invoice: &InvoiceId, by: AccountNo, now: Time) -> Result<bool> {
    Ok(tx.execute(CLAIM, params![invoice, by, now])? == 1)
}
