//! What belongs to whom: every door and every operation looks up here what its caller names. What belongs to others is
//! not found, in the same words as what does not exist.

use super::buying::Fills;
use crate::app::App;
use crate::domain::checkout::Checkout;
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::invoice::Invoice;
use crate::domain::order::Order;
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::store::orders;
use crate::store::tokens::Token;

/// Something that an account can own.
pub trait Owned: Sized {
    fn belongs_to(&self, account: AccountNo) -> bool;

    /// Returns it to its owner, and nobody else.
    fn of(self, account: AccountNo) -> Option<Self> {
        self.belongs_to(account).then_some(self)
    }
}

impl Owned for Order {
    fn belongs_to(&self, account: AccountNo) -> bool {
        self.account == account
    }
}

impl Owned for Invoice {
    fn belongs_to(&self, account: AccountNo) -> bool {
        self.account == account
    }
}

impl Owned for Checkout {
    /// A guest's checkout also belongs to the account that claimed it.
    fn belongs_to(&self, account: AccountNo) -> bool {
        self.account == account || self.claimed_by == Some(account)
    }
}

impl Owned for Token {
    fn belongs_to(&self, account: AccountNo) -> bool {
        self.account == account
    }
}

/// An order or top-up of this account, in any state.
pub async fn order(app: &App, account: AccountNo, id: &OrderId) -> Result<Order> {
    let id = id.clone();
    let found = app.store.read(move |tx| orders::by_id(tx, &id)).await?;
    Ok(found.and_then(|order| order.of(account)).ok_or(Refusal::OrderNotFound)?)
}

/// The order behind the newest profile sold under an ICCID, if it is this account's.
pub async fn esim(app: &App, account: AccountNo, iccid: &str) -> Result<Order> {
    let iccid = iccid.to_string();
    let found = app.store.read(move |tx| orders::by_iccid(tx, &iccid)).await?;
    Ok(found.and_then(|order| order.of(account)).ok_or(Refusal::EsimNotFound)?)
}

/// An order that brought an eSIM, if no newer profile was sold under its ICCID.
pub async fn newest(app: &App, account: AccountNo, id: &OrderId) -> Result<Order> {
    let found = order(app, account, id).await?;
    let brought = found.esim.as_ref().filter(|_| !found.id.is_topup()).ok_or(Refusal::EsimNotFound)?;
    let newest = esim(app, account, &brought.iccid).await?;
    if newest.id == found.id { Ok(newest) } else { Err(Refusal::EsimNotFound.into()) }
}

/// The order behind an eSIM, by whichever name a caller has for it.
pub async fn named(app: &App, account: AccountNo, esim: &Fills) -> Result<Order> {
    match esim {
        Fills::Iccid(iccid) => self::esim(app, account, iccid).await,
        Fills::Order(id) => newest(app, account, id).await,
    }
}
