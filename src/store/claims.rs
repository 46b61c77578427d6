//! The holder of a caller's reference: an order, a checkout or a cancel. The primary key makes a reference single-use,
//! on any number of instances. A failed order's claim moves aside, so that its reference is free again and still
//! findable. A checkout's claim comes with a signature and passes to the order that it pays for.

use super::engine::{Column, Row, Tx, params, queries};
use crate::domain::ids::{AccountNo, InvoiceId, OrderId};
use crate::domain::refusal::{Conflict, Difference, Refusal};
use crate::error::{Error, Result};

queries! {
    INSERT = "INSERT INTO claims (account, reference, order_id) VALUES (?1, ?2, ?3)";
    PASS_ON = "UPDATE claims SET order_id = ?4 WHERE account = ?1 AND reference = ?2 AND order_id = ?3";
    RELEASE = "DELETE FROM claims WHERE account = ?1 AND reference = ?2 AND order_id = ?3";
    REMEMBER = "INSERT INTO past_claims (account, reference, order_id) VALUES (?1, ?2, ?3)";
    HOLDER = "SELECT order_id FROM claims WHERE account = ?1 AND reference = ?2";
    ALL_OF = "SELECT order_id FROM claims WHERE account = ?1 AND reference = ?2
              UNION ALL SELECT order_id FROM past_claims WHERE account = ?1 AND reference = ?2
              ORDER BY 1 DESC";
    FIND = "SELECT order_id FROM claims WHERE reference = ?1
            UNION ALL SELECT order_id FROM past_claims WHERE reference = ?1 LIMIT 50";
}

/// The prefix of a claim by a cancel; the order's id follows.
const CANCEL: &str = "cancel:";

/// The holder of a caller's reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimant {
    Order(OrderId),
    Checkout(InvoiceId),
    /// A cancel of this order.
    Cancel(OrderId),
}

impl Claimant {
    fn from_text(text: String) -> Claimant {
        if let Some(order) = text.strip_prefix(CANCEL) {
            Claimant::Cancel(OrderId::from_text(order))
        } else if text.starts_with(InvoiceId::PREFIX) {
            Claimant::Checkout(InvoiceId::from_text(text))
        } else {
            Claimant::Order(OrderId::from_text(text))
        }
    }

    /// Why another operation cannot have the reference.
    pub fn in_the_way(&self) -> Refusal {
        let differs = vec![Difference::Operation];
        match self {
            Claimant::Order(order) | Claimant::Cancel(order) => Conflict::with_order(order, differs),
            Claimant::Checkout(invoice) => Conflict::with_checkout(invoice, differs),
        }
    }
}

impl Column for Claimant {
    fn get(row: &Row, at: usize) -> Result<Option<Claimant>> {
        Ok(String::get(row, at)?.map(Claimant::from_text))
    }
}

pub fn insert(tx: &mut Tx, account: AccountNo, reference: &str, holder: &str) -> Result<()> {
    tx.execute(INSERT, params![account, reference, holder]).map(drop)
}

/// Claims the reference for a cancel of this order.
pub fn insert_cancel(tx: &mut Tx, account: AccountNo, reference: &str, order: &OrderId) -> Result<()> {
    insert(tx, account, reference, &format!("{CANCEL}{order}"))
}

/// Frees the reference of a failed order.
pub fn release(tx: &mut Tx, account: AccountNo, reference: &str, order: &OrderId) -> Result<()> {
    if tx.execute(RELEASE, params![account, reference, order])? > 0 {
        tx.execute(REMEMBER, params![account, reference, order])?;
    }
    Ok(())
}

/// Passes the reference from the checkout to the order that it became.
pub fn pass_on(
    tx: &mut Tx,
    account: AccountNo,
    reference: &str,
    from: &InvoiceId,
    to: &OrderId,
) -> Result<()> {
    match tx.execute(PASS_ON, params![account, reference, from, to])? {
        1 => Ok(()),
        _ => Err(Error::fault("a reference left its checkout")),
    }
}

/// Frees the reference of a checkout that came to nothing.
pub fn free(tx: &mut Tx, account: AccountNo, reference: &str, checkout: &InvoiceId) -> Result<()> {
    tx.execute(RELEASE, params![account, reference, checkout]).map(drop)
}

/// Everything that ever used this reference, newest first.
pub fn all_of(tx: &mut Tx, account: AccountNo, reference: &str) -> Result<Vec<Claimant>> {
    tx.all(ALL_OF, params![account, reference])
}

/// For the operator's search: every holder of this reference, of any account.
pub fn find(tx: &mut Tx, reference: &str) -> Result<Vec<Claimant>> {
    tx.all(FIND, params![reference])
}

pub fn holder(tx: &mut Tx, account: AccountNo, reference: &str) -> Result<Option<Claimant>> {
    tx.opt(HOLDER, params![account, reference])
}
