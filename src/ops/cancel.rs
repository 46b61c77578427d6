//! Giving an order back. The same three beats as buying: mark it, ask the supplier, whose answer decides, and finish in
//! one write. Nobody gets both the money and the eSIM: nothing is paid back before the supplier said yes. Where people at
//! the supplier decide, `cancel/review.rs` has what is different, and `cancel/withdraw.rs` lets buyers keep it after all.

pub mod review;
pub mod withdraw;

use std::time::Duration;

use metrics::counter;
use tokio::time::timeout;

use self::review::Ready;
use super::by_hand::ByHand;
use super::coupons::redeem;
use super::keys::Caller;
use super::patience::Patience;
use super::{events, orders, owned, suppliers};
use crate::app::App;
use crate::domain::amount::Amount;
use crate::domain::cost::Cost;
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::order::{CancelReason, Order, OrderEvent, OrderStatus};
use crate::domain::payback::Payback;
use crate::domain::refusal::{Conflict, Difference, Refusal};
use crate::domain::role::Ability;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::audit::{self, Line};
use crate::store::claims::{self, Claimant};
use crate::store::debts::{self, Funds};
use crate::store::ledger::{self, Note};
use crate::store::orders::{Change, Step};
use crate::store::tx::Tx;
use crate::store::{cancel_requests, native_moves, orders as rows, wallet};
use crate::supplier::{Answer, Cancel, CancelWay, Cancelled};

pub struct Outcome {
    pub order: Order,
    /// Zero while the supplier has not answered.
    pub refunded: Usd,
    pub balance: Usd,
    /// Whether this cancel was asked for before, with the same key.
    pub replayed: bool,
}

pub async fn cancel(app: &App, account: AccountNo, id: &OrderId) -> Result<Outcome> {
    cancel_once(app, account, id, None).await
}

/// With a key, a repeated cancel gets the outcome of the first one.
pub async fn cancel_once(
    app: &App,
    account: AccountNo,
    id: &OrderId,
    key: Option<String>,
) -> Result<Outcome> {
    let order = owned::order(app, account, id).await?;
    cancel_this(app, order, key, None).await
}

/// The same by a partner's program.
pub async fn cancel_by_key(app: &App, caller: &Caller, id: &OrderId) -> Result<Outcome> {
    caller.require(Ability::Order)?;
    cancel(app, caller.account, id).await
}

/// The same by hand: the deed is checked, and goes into the audit log, with the first write.
pub(super) async fn cancel_by_hand(app: &App, order: &Order, deed: ByHand) -> Result<Outcome> {
    cancel_this(app, order.clone(), None, Some(deed)).await
}

async fn cancel_this(app: &App, order: Order, key: Option<String>, deed: Option<ByHand>) -> Result<Outcome> {
    if order.id.is_topup() {
        return Err(Refusal::OrderNotFound.into());
    }
    if order.status == OrderStatus::Fulfilled && !app.suppliers.contains_key(order.supplier.as_str()) {
        // Nobody would answer until the settings name it again.
        return Err(Refusal::SupplierUnavailable { refunded: Usd::ZERO }.into());
    }
    let (now, id, account) = (app.now(), order.id.clone(), order.account);
    let asked = Asked { account, id, key, deed, now, ask_until: orders::ask_until(app, now) };
    let order = match app.store.write(account.0, move |tx| begin(tx, &asked)).await? {
        Begun::New(order) => order,
        Begun::Replay(order) => return replay(app, order).await,
    };
    let worker = app.tasks.spawn(pursue(app.clone(), order.clone()));
    let patience = Duration::from_millis(app.settings.answer_within_ms.unsigned_abs());
    match timeout(patience, worker).await {
        Ok(finished) => match finished.map_err(Error::fault)?? {
            Some(outcome) => Ok(outcome),
            None => still_open(app, order).await,
        },
        Err(_) => still_open(app, order).await,
    }
}

async fn still_open(app: &App, order: Order) -> Result<Outcome> {
    let account = order.account;
    let balance = app.store.read(move |tx| wallet::read(tx, account)).await?.balance;
    Ok(Outcome { order, refunded: Usd::ZERO, balance, replayed: false })
}

/// Waits as the first caller does.
async fn replay(app: &App, order: Order) -> Result<Outcome> {
    let (mut order, mut patience) = (order, Patience::new(app));
    // A review takes days: nobody waits for it.
    while order.status == OrderStatus::Cancelling
        && order.cancel_request.is_none()
        && patience.lasts(app).await
    {
        order = owned::order(app, order.account, &order.id).await?;
    }
    if order.status == OrderStatus::Fulfilled {
        return Err(Refusal::NotCancellable(CancelReason::SupplierCannotCancel).into());
    }
    let refunded = if order.status == OrderStatus::Cancelled { order.given_back() } else { Usd::ZERO };
    Ok(Outcome { refunded, replayed: true, ..still_open(app, order).await? })
}

struct Asked {
    account: AccountNo,
    id: OrderId,
    key: Option<String>,
    /// Where somebody asks by hand.
    deed: Option<ByHand>,
    now: Time,
    ask_until: Time,
}

enum Begun {
    New(Order),
    Replay(Order),
}

/// Whether this key has asked for this cancel before.
fn is_known(tx: &mut Tx, asked: &Asked) -> Result<bool> {
    let Some(key) = &asked.key else { return Ok(false) };
    match claims::holder(tx, asked.account, key)? {
        Some(Claimant::Cancel(order)) if order == asked.id => Ok(true),
        Some(Claimant::Cancel(order)) => Err(Conflict::with_order(&order, vec![Difference::Order]).into()),
        Some(other) => Err(other.in_the_way().into()),
        None => Ok(false),
    }
}

/// Write 1: `FULFILLED → CANCELLING`, under the wallet's lock so that no top-up slips in.
fn begin(tx: &mut Tx, asked: &Asked) -> Result<Begun> {
    let Asked { account, id, now, ask_until, .. } = asked;
    let (account, now, ask_until) = (*account, *now, *ask_until);
    wallet::lock(tx, account)?;
    if let Some(deed) = &asked.deed {
        deed.check(tx)?;
    }
    let mut order = rows::by_id(tx, id)?.ok_or(Refusal::OrderNotFound)?;
    let refuse = |reason| Err(Error::from(Refusal::NotCancellable(reason)));
    let known = is_known(tx, asked)?;
    match order.status.after(OrderEvent::CancelAsked) {
        Some(next) => order.status = next,
        None => {
            return match order.status {
                // A re-run of this very write finds its own work done.
                OrderStatus::Cancelling if tx.is_rerun() && order.updated_at == now => Ok(Begun::New(order)),
                OrderStatus::Cancelling | OrderStatus::Cancelled if known => Ok(Begun::Replay(order)),
                OrderStatus::Provisioning => refuse(CancelReason::Provisioning),
                OrderStatus::Fulfilled
                | OrderStatus::Failed
                | OrderStatus::Cancelling
                | OrderStatus::Cancelled => refuse(CancelReason::AlreadyCancelled),
            };
        }
    }
    // It was reviewed before, and refused.
    if order.cancel_request.is_some() {
        return refuse(CancelReason::SupplierCannotCancel);
    }
    if rows::has_live_topup(tx, id)? {
        return refuse(CancelReason::ToppedUp);
    }
    if rows::advance(tx, &[Step { order: id, change: Change::CancelAsked { ask_until }, now }])?.is_empty() {
        return Err(Error::fault("an order changed under its lock"));
    }
    if let Some(key) = asked.key.as_ref().filter(|_| !known) {
        claims::insert_cancel(tx, account, key, id)?;
    }
    if let Some(deed) = &asked.deed {
        audit::record(tx, &deed.line)?;
    }
    order.updated_at = now;
    order.ask_until = ask_until;
    Ok(Begun::New(order))
}

async fn pursue(app: App, order: Order) -> Result<Option<Outcome>> {
    let patience = Duration::from_millis(app.settings.supplier_timeout_ms.unsigned_abs());
    match timeout(patience, ask_once(&app, &order)).await {
        Ok(outcome) => outcome,
        Err(_) => Ok(None),
    }
}

/// Asks the supplier and finishes. `None` leaves the order CANCELLING, for recovery to ask again.
pub async fn ask_once(app: &App, order: &Order) -> Result<Option<Outcome>> {
    let esim = order.esim.as_ref().ok_or_else(|| Error::fault("a delivered order without its eSIM"))?;
    if order.cancel_request.is_some() {
        review::watch(app, order).await?;
        return Ok(None);
    }
    let supplier = app.supplier(&order.supplier)?;
    let is_reviewed = supplier.abilities().cancel == CancelWay::Reviewed;
    if is_reviewed {
        match review::prepare(app, supplier.as_ref(), order, esim).await? {
            Ready::Send => {}
            Ready::Refuse(reason) => return denied(app, order, reason).await,
            Ready::Later => return Ok(None),
        }
    }
    let cost = order.billed_cost().amount(suppliers::currency(app, supplier.name()));
    let answer = supplier.cancel(Cancel { profile: &esim.profile, cost }).await;
    let outcome = match &answer {
        Answer::Done(Cancelled::Yes { .. }) => "done",
        Answer::Done(Cancelled::Requested { .. }) => "requested",
        Answer::Done(Cancelled::No(_)) | Answer::Refused(_) => "refused",
        Answer::NotSent(_) | Answer::Doubt(_) => "doubt",
    };
    counter!("simgate_supplier_calls_total", "call" => "cancel", "outcome" => outcome).increment(1);
    match answer {
        Answer::Done(Cancelled::Yes { returned }) => {
            let returned = came_back(app, order, returned)?;
            granted(app, order, supplier.name(), returned, None).await
        }
        Answer::Done(Cancelled::Requested { request }) => {
            review::sent(app, order, &request).await?;
            Ok(None)
        }
        Answer::Done(Cancelled::No(reason)) => denied(app, order, reason).await,
        Answer::Refused(_) => denied(app, order, CancelReason::SupplierCannotCancel).await,
        Answer::Doubt(why) if is_reviewed => {
            tracing::error!(order = %order.id, %why,
                "nobody knows whether the supplier has the request for a cancel; it is not sent again: ask the supplier");
            Ok(None)
        }
        Answer::NotSent(why) | Answer::Doubt(why) => {
            if is_reviewed {
                review::not_sent(app, order).await?;
            }
            tracing::warn!(order = %order.id, %why, "the supplier has not confirmed a cancel; it will be asked again");
            Ok(None)
        }
    }
}

/// Finishes a cancel that the supplier granted. `None` while it is unknown whether there is money to pay back.
async fn granted(
    app: &App,
    order: &Order,
    supplier: &'static str,
    returned: Cost,
    line: Option<Line>,
) -> Result<Option<Outcome>> {
    let (now, account, given_up, teller) = (app.now(), order.account, order.clone(), app.clone());
    let ended = app
        .store
        .finish(account.0, move |tx| {
            wallet::lock(tx, account)?;
            if debts::funds_of(tx, &given_up)? == Funds::Missing {
                return Ok(None);
            }
            let back = payback(tx, &given_up)?;
            // When somebody else finished it, the entry's name ensures that it was paid back only once.
            let refunded = rows::part_of(&given_up, &back);
            let cancelled =
                Order { status: OrderStatus::Cancelled, updated_at: now, refunded, ..given_up.clone() };
            let told = events::told(&teller, &cancelled, &rows::topups_of(tx, &[&given_up.id])?, now)?;
            let change = Change::CancelGranted { refunded, told: &told };
            if !rows::advance(tx, &[Step { order: &given_up.id, change, now }])?.is_empty() {
                let entry = Entry::cancelled(&given_up.id, &back, given_up.charge(), supplier, returned.usd);
                native_moves::add(tx, &entry, supplier, returned.native())?;
                debts::pay_back(tx, &entry, &given_up, now, Note::default())?;
                redeem::give_back(tx, &given_up, now)?;
                if let Some(line) = &line {
                    audit::record(tx, line)?;
                }
            }
            let ended = rows::by_id(tx, &given_up.id)?.ok_or_else(|| Error::fault("an order vanished"))?;
            Ok(Some((ended, wallet::read(tx, account)?.balance)))
        })
        .await?;
    let Some((order, balance)) = ended else { return Ok(None) };
    // It may have been refused or withdrawn at the same moment: then nothing was paid back.
    let is_cancelled = order.status == OrderStatus::Cancelled;
    if is_cancelled {
        counter!("simgate_orders_total", "outcome" => "cancelled").increment(1);
    }
    let refunded = if is_cancelled { order.given_back() } else { Usd::ZERO };
    Ok(Some(Outcome { refunded, balance, order, replayed: false }))
}

/// What came back of an order's cost, in dollars at the order's own rate.
pub(super) fn came_back(app: &App, order: &Order, returned: Amount) -> Result<Cost> {
    let cost = order.billed_cost();
    let returned = cost.told(returned, suppliers::currency(app, &order.supplier));
    let returned =
        returned.ok_or_else(|| Error::fault("a supplier gave back another currency than its own"))?;
    Ok(cost.returned(cost.without(returned)))
}

/// What a cancel pays back: the price without what was already given back for the order.
pub(super) fn payback(tx: &mut Tx, order: &Order) -> Result<Payback> {
    let given = ledger::paid_back(tx, &order.id)?;
    debts::payback(tx, order, order.price.minus(given.min(order.price)))
}

async fn denied(app: &App, order: &Order, reason: CancelReason) -> Result<Option<Outcome>> {
    deny(app, order, None).await?;
    Err(Refusal::NotCancellable(reason).into())
}

async fn deny(app: &App, order: &Order, line: Option<Line>) -> Result<()> {
    let (now, id) = (app.now(), order.id.clone());
    let write = move |tx: &mut Tx| {
        // A request that was refused at once is none. Of one that an operator ends nobody knows whether it was sent.
        if line.is_none() {
            cancel_requests::forget(tx, &id)?;
        }
        let moved = rows::advance(tx, &[Step { order: &id, change: Change::CancelDenied, now }])?;
        match line.as_ref().filter(|_| !moved.is_empty()) {
            Some(line) => audit::record(tx, line),
            None => Ok(()),
        }
    };
    app.store.finish(order.account.0, write).await
}

/// Finishes a cancel that the supplier granted after a review, as the operator says.
pub(super) async fn grant_by_hand(app: &App, order: Order, returned: Cost, line: Line) -> Result<Outcome> {
    let supplier = app.supplier(&order.supplier)?.name();
    match granted(app, &order, supplier, returned, Some(line)).await? {
        Some(outcome) if outcome.order.status != OrderStatus::Cancelled => {
            Err(Refusal::NotUnderReview.into())
        }
        Some(outcome) => Ok(outcome),
        None => still_open(app, order).await,
    }
}

/// Ends a cancel that the supplier refused after a review, as the operator says.
pub(super) async fn deny_by_hand(app: &App, order: &Order, line: Line) -> Result<()> {
    deny(app, order, Some(line)).await
}
