//! "I keep it": a buyer takes a cancel back while people at the supplier still decide. The order is what it was before,
//! with its code, and no money moves. The request lies at the supplier all the same, and no API takes it back: the
//! operator tells the supplier, and enters its word. If it gives the cost back nevertheless, that is ours: whoever has
//! the eSIM does not get the price as well.

use metrics::counter;

use super::Outcome;
use crate::app::App;
use crate::domain::cost::Cost;
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::by_hand::ByHand;
use crate::ops::keys::Caller;
use crate::ops::owned;
use crate::store::audit::{self, Line};
use crate::store::ledger::Note;
use crate::store::orders::{self as rows, Change, Step};
use crate::store::tx::Tx;
use crate::store::{cancel_requests, native_moves, wallet};

/// Takes a cancel back. Once more is the same.
pub async fn withdraw(app: &App, account: AccountNo, id: &OrderId) -> Result<Outcome> {
    withdraw_with(app, account, id, None).await
}

/// The same by a partner's program.
pub async fn withdraw_by_key(app: &App, caller: &Caller, id: &OrderId) -> Result<Outcome> {
    caller.require(Ability::Order)?;
    withdraw(app, caller.account, id).await
}

/// The same by hand: the deed is checked, and goes into the audit log, with it.
pub(in crate::ops) async fn withdraw_by_hand(
    app: &App,
    account: AccountNo,
    id: &OrderId,
    deed: ByHand,
) -> Result<Outcome> {
    withdraw_with(app, account, id, Some(deed)).await
}

async fn withdraw_with(app: &App, account: AccountNo, id: &OrderId, deed: Option<ByHand>) -> Result<Outcome> {
    let order = owned::order(app, account, id).await?;
    if order.id.is_topup() {
        return Err(Refusal::OrderNotFound.into());
    }
    let (now, id) = (app.now(), order.id);
    let write = move |tx: &mut Tx| {
        if let Some(deed) = &deed {
            deed.check(tx)?;
        }
        let replayed = !keep(tx, account, &id, now)?;
        if let Some(deed) = deed.as_ref().filter(|_| !replayed) {
            audit::record(tx, &deed.line)?;
        }
        let order = rows::by_id(tx, &id)?.ok_or(Refusal::OrderNotFound)?;
        let balance = wallet::read(tx, account)?.balance;
        Ok(Outcome { order, refunded: Usd::ZERO, balance, replayed })
    };
    let outcome = app.store.write(account.0, write).await?;
    if !outcome.replayed {
        counter!("simgate_cancels_withdrawn_total").increment(1);
        tracing::warn!(order = %outcome.order.id, supplier = outcome.order.supplier, request = outcome.order.cancel_request,
            "a buyer keeps an eSIM after all: tell its supplier, and enter its word with `simgate order cancel-refused` or `order cancelled`");
    }
    Ok(outcome)
}

/// `CANCELLING → FULFILLED`, under the wallet's lock as every cancel. False when it was withdrawn before.
fn keep(tx: &mut Tx, account: AccountNo, id: &OrderId, now: Time) -> Result<bool> {
    wallet::lock(tx, account)?;
    let order = rows::by_id(tx, id)?.ok_or(Refusal::OrderNotFound)?;
    if order.status == OrderStatus::Fulfilled && order.cancel_withdrawn_at.is_some() {
        // A re-run of this very write finds its own work done.
        return Ok(tx.is_rerun() && order.cancel_withdrawn_at == Some(now));
    }
    // While the request is on its way, the supplier's answer may still end the cancel.
    let is_reviewed = order.cancel_request.as_ref().is_some_and(|request| !request.is_empty());
    let step = Step { order: id, change: Change::CancelWithdrawn, now };
    if !is_reviewed || rows::advance(tx, &[step])?.is_empty() {
        return Err(Refusal::NotWithdrawable.into());
    }
    cancel_requests::withdraw(tx, id, now)?;
    Ok(true)
}

/// Ends what a withdrawn request left open, by the supplier's word: it gave back `returned` of the cost, perhaps nothing.
/// The buyer keeps the eSIM, and has paid for it.
pub(in crate::ops) async fn settle(app: &App, order: Order, returned: Cost, line: Line) -> Result<Outcome> {
    let (now, account, supplier) = (app.now(), order.account, app.supplier(&order.supplier)?.name());
    let write = move |tx: &mut Tx| {
        wallet::lock(tx, account)?;
        match cancel_requests::settle(tx, &order.id)? {
            true => {
                if returned.usd.is_positive() {
                    let entry = Entry::cost_returned(&order.id, supplier, returned.usd);
                    native_moves::post(tx, &entry, now, Note::default(), supplier, returned.native())?;
                }
                audit::record(tx, &line)?;
            }
            false if tx.is_rerun() => {}
            false => return Err(Refusal::NotUnderReview.into()),
        }
        let balance = wallet::read(tx, account)?.balance;
        let order = rows::by_id(tx, &order.id)?.ok_or_else(|| Error::fault("an order vanished"))?;
        Ok(Outcome { order, refunded: Usd::ZERO, balance, replayed: false })
    };
    app.store.write(account.0, write).await
}
