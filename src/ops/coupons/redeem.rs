//! A coupon on a purchase, inside the purchase's own writes: a checkout reserves a use and its payment spends it; an
//! offer reserves one when a payer signs; a purchase from the wallet spends one at once. A failed purchase gives it
//! back. Callers hold the wallet's lock or have just changed the row, so each use moves once.

use super::guesses::Guess;
use crate::domain::checkout::Checkout;
use crate::domain::coupon::{Applied, Item, UseEvent, UseState};
use crate::domain::ids::OrderId;
use crate::domain::order::Order;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::coupons::{self, Use};
use crate::store::offers::Offer;
use crate::store::tx::Tx;

/// The coupon that a purchase names, if it is valid for it; `None` when it is not, which is recorded. A valid coupon
/// stays locked until the write ends, so nobody else can take its last use first.
pub fn accept(tx: &mut Tx, guess: &Guess, package_code: &str, offer: &Offer) -> Result<Option<Applied>> {
    guess.refuse_if_too_many(tx)?;
    let found = coupons::lock(tx, &guess.code)?;
    let accepted = match found {
        Some(coupon) if guess.may_hold(tx, &coupon)? => {
            let used_by_buyer = guess.used(tx)?;
            let item = Item {
                package_code,
                plan_type: offer.plan_type,
                countries: &coupons::countries(tx, package_code)?,
                price: offer.price,
                cost: offer.cost,
            };
            let off = coupon.takes_off(&item, used_by_buyer, guess.now);
            off.map(|discount| Applied { code: coupon.code, discount })
        }
        Some(_) | None => None,
    };
    if accepted.is_none() {
        guess.record(tx)?;
    }
    Ok(accepted)
}

/// A new checkout reserves the use that was accepted for it; an offer does not.
pub fn open(tx: &mut Tx, checkout: &Checkout, is_offer: bool) -> Result<()> {
    let Some(coupon) = &checkout.coupon else { return Ok(()) };
    let taken = Use {
        holder: checkout.id.as_str(),
        code: &coupon.code,
        account: checkout.account,
        state: if is_offer { UseState::Returned } else { UseState::Reserved },
        order: None,
        now: checkout.created_at,
    };
    coupons::take(tx, &taken)
}

/// A wallet has paid: spends the use that was accepted for this order.
pub fn spend_at_once(tx: &mut Tx, order: &Order) -> Result<()> {
    let Some(coupon) = &order.coupon else { return Ok(()) };
    let taken = Use {
        holder: order.id.as_str(),
        code: &coupon.code,
        account: order.account,
        state: UseState::Spent,
        order: Some(&order.id),
        now: order.created_at,
    };
    coupons::take(tx, &taken)
}

/// Whether this checkout can still be paid at its price. If its use was given back, the coupon must have one left, and
/// is locked until the write ends.
pub fn is_payable(tx: &mut Tx, checkout: &Checkout, now: Time) -> Result<bool> {
    let Some(applied) = &checkout.coupon else { return Ok(true) };
    let stood = stood(tx, checkout)?;
    is_good(tx, checkout, applied, stood, now)
}

/// The same of a checkout with a coupon whose use stands like this.
fn is_good(tx: &mut Tx, checkout: &Checkout, applied: &Applied, stood: UseState, now: Time) -> Result<bool> {
    match stood {
        UseState::Reserved => Ok(true),
        UseState::Spent => Ok(false),
        UseState::Returned => {
            let Some(coupon) = coupons::lock(tx, &applied.code)? else { return Ok(false) };
            let used_by_buyer = coupons::used_by(tx, &applied.code, checkout.account)?;
            Ok(coupon.has_use_for(Some(used_by_buyer), now))
        }
    }
}

/// A payer has signed for this checkout: reserves its use, unless it is reserved. False when the coupon has none left.
pub fn sign(tx: &mut Tx, checkout: &Checkout, now: Time) -> Result<bool> {
    let Some(applied) = &checkout.coupon else { return Ok(true) };
    let stood = stood(tx, checkout)?;
    let good = is_good(tx, checkout, applied, stood, now)?;
    if good && stood == UseState::Returned {
        move_use(tx, checkout, stood, UseEvent::Signed, None, now)?;
    }
    Ok(good)
}

/// The payment of a checkout became this order. The same write has called `is_payable`.
pub fn spend(tx: &mut Tx, checkout: &Checkout, order: &Order) -> Result<()> {
    if checkout.coupon.is_none() {
        return Ok(());
    }
    let stood = stood(tx, checkout)?;
    move_use(tx, checkout, stood, UseEvent::Paid, Some(&order.id), order.created_at)
}

fn move_use(
    tx: &mut Tx,
    checkout: &Checkout,
    stood: UseState,
    event: UseEvent,
    order: Option<&OrderId>,
    now: Time,
) -> Result<()> {
    match coupons::advance(tx, checkout.id.as_str(), stood, event, order, now)? {
        true => Ok(()),
        false => Err(Error::fault("a coupon's use moved under its lock")),
    }
}

fn stood(tx: &mut Tx, checkout: &Checkout) -> Result<UseState> {
    let found = coupons::state_of(tx, checkout.id.as_str())?;
    found.ok_or_else(|| Error::fault("a discounted checkout without its coupon's use"))
}

/// A checkout ended without an order.
pub fn release(tx: &mut Tx, checkout: &Checkout, now: Time) -> Result<()> {
    match checkout.coupon {
        Some(_) => coupons::release(tx, checkout.id.as_str(), now),
        None => Ok(()),
    }
}

/// An order failed or was cancelled.
pub fn give_back(tx: &mut Tx, order: &Order, now: Time) -> Result<()> {
    if order.coupon.is_some()
        && let Some(holder) = coupons::holder_for(tx, &order.id)?
    {
        coupons::advance(tx, &holder, UseState::Spent, UseEvent::GivenBack, None, now)?;
    }
    Ok(())
}
