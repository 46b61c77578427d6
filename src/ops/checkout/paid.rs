//! What the payment of a checkout becomes: held money and an order in one write; or money in the owner's wallet (for a
//! guest: owed) when the plan can no longer be delivered for it or the checkout was paid before. The order then goes
//! the usual way (`deliver.rs`), and meanwhile the payment is never in the spendable wallet.

use std::sync::atomic::Ordering;

use crate::app::App;
use crate::domain::checkout::{Checkout, CheckoutEvent};
use crate::domain::cost::Cost;
use crate::domain::esim::Esim;
use crate::domain::ids::{InvoiceId, OrderId};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::number::Series;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::plan::RETAIL_PRICE_LIST;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::transfer::{Transfer, TransferId, TransferState};
use crate::error::{Error, Result};
use crate::ops::audit::audit_line;
use crate::ops::booking::moves;
use crate::ops::coupons::redeem;
use crate::ops::mail::{self, News, Slip};
use crate::ops::{deliver, orders, owned};
use crate::store::checkouts::{self, Step};
use crate::store::ledger::{self, Note};
use crate::store::offers::{self, Asked};
use crate::store::tx::Tx;
use crate::store::{audit, authorizations, claims, guests, orders as rows, transfers, wallet};

/// Whether an invoice is a checkout and not a deposit.
pub async fn is_checkout(app: &App, id: &InvoiceId) -> Result<bool> {
    let id = id.clone();
    Ok(app.store.read(move |tx| checkouts::by_id(tx, &id)).await?.is_some())
}

/// The ids and times that are made before a write that turns a payment into an order.
#[derive(Clone)]
struct PaidDraft {
    /// The id of what it becomes: an order, or a top-up.
    order: OrderId,
    topup: OrderId,
    ask_until: Time,
    now: Time,
    slip: Slip,
}

impl PaidDraft {
    fn new(app: &App) -> PaidDraft {
        let now = app.now();
        let ask_until = orders::ask_until(app, now);
        let (order, topup) = (app.new_order_id(), app.new_topup_id());
        PaidDraft { order, topup, ask_until, now, slip: mail::slip(app) }
    }

    /// The order that an earlier run of the same write has begun.
    fn begun(&self, tx: &mut Tx) -> Result<Option<Order>> {
        match rows::by_id(tx, &self.order)? {
            Some(order) => Ok(Some(order)),
            None => rows::by_id(tx, &self.topup),
        }
    }

    /// `charged` is what was paid for this plan. The rest of its price after the coupon is the uniqueness discount, or
    /// the operator forgave it.
    fn order(
        &self,
        checkout: &Checkout,
        charged: Usd,
        cost: Cost,
        filled: &Filled,
        reference: Option<String>,
    ) -> Order {
        let (id, number) = match checkout.esim_order {
            Some(_) => (&self.topup, None),
            None => (&self.order, Some(checkout.number())),
        };
        // An order with a number of the checkouts' own gets its place among the orders now.
        let seq = number.filter(|number| number.series == Series::First).map(|number| number.n);
        Order {
            id: id.clone(),
            account: checkout.account,
            seq,
            number,
            esim_order: checkout.esim_order.clone(),
            reference,
            package_code: checkout.package_code.clone(),
            plan_name: checkout.plan_name.clone(),
            family: checkout.family.clone(),
            data_mb: checkout.data_mb,
            duration_days: checkout.duration_days,
            price: charged,
            uniqueness_discount: checkout.price().minus(charged),
            coupon: checkout.coupon.clone(),
            customer_email: checkout.customer_email.clone(),
            cost: cost.usd,
            billed: cost.billed,
            supplier: checkout.supplier.clone(),
            supplier_code: checkout.supplier_code.clone(),
            supplier_number: None,
            key_id: checkout.token.clone(),
            status: OrderStatus::Provisioning,
            ask_until: self.ask_until,
            created_at: self.now,
            updated_at: self.now,
            failure: None,
            refunded: None,
            cancel_request: None,
            cancel_withdrawn_at: None,
            esim: filled.esim(),
        }
    }
}

enum Settled {
    /// The money is held, and the order begun.
    Begun(Box<Order>),
    /// In the owner's wallet, or owed to a guest: paid twice, too late, or for an eSIM that was given back.
    ToOwner,
    NotWaiting,
}

/// Books a payment of a checkout that is final in this block. Answers its new state; `None` when it no longer waits for
/// that, or must wait longer. A payment that does not pay for the checkout must be `deep`, and an earlier transfer of
/// the same signature must be taken back first.
pub async fn settle(
    app: &App,
    payment: &Transfer,
    block_hash: &str,
    deep: bool,
) -> Result<Option<TransferState>> {
    if app.buying_on_hold.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let Some(owner) = payment.account else { return Err(Error::fault("a checkout's payment has an owner")) };
    let (draft, teller) = (PaidDraft::new(app), app.clone());
    let (id, hash) = (payment.id.clone(), block_hash.to_string());
    let write = move |tx: &mut Tx| {
        if tx.is_rerun()
            && let Some(order) = draft.begun(tx)?
        {
            return Ok(Settled::Begun(Box::new(order)));
        }
        wallet::lock(tx, owner)?;
        let Some(arrival) = Arrival::lock(tx, &id, &hash)? else { return Ok(Settled::NotWaiting) };
        if let Some(order) = arrival.begin_order(tx, &draft)? {
            return Ok(Settled::Begun(Box::new(order)));
        }
        if !deep {
            return Ok(Settled::NotWaiting);
        }
        moves::credit(&teller, tx, &id, &hash, draft.now)?;
        arrival.give_to_owner(tx, &draft)?;
        Ok(Settled::ToOwner)
    };
    let settled = app.store.finish(owner.0, write).await?;
    mail::wake(app);
    Ok(match settled {
        Settled::Begun(order) => {
            app.tasks.spawn(deliver::finish(app.clone(), *order));
            Some(TransferState::Held)
        }
        Settled::ToOwner => Some(TransferState::Credited),
        Settled::NotWaiting => None,
    })
}

/// A payment that is to be booked, with what it may pay for. Both are locked.
struct Arrival {
    payment: Transfer,
    checkout: Checkout,
    filled: Filled,
    reference: Option<String>,
    /// Whether the payment is what the checkout asks for.
    pays: bool,
}

impl Arrival {
    /// `None` when the payment no longer waits in this block, or counts as another transfer of the same signature.
    fn lock(tx: &mut Tx, id: &TransferId, block_hash: &str) -> Result<Option<Arrival>> {
        let Some((payment, invoice)) = transfers::lock_open(tx, id, block_hash)? else { return Ok(None) };
        if transfers::twins(tx, &payment)?.iter().any(|twin| twin.state.is_booked()) {
            return Ok(None);
        }
        let checkout = checkouts::lock(tx, &invoice)?.ok_or_else(|| Error::fault("a checkout vanished"))?;
        let filled = Filled::of(tx, &checkout)?;
        let reference = reference(tx, &checkout)?;
        let pays = checkout.is_paid_by(&payment);
        Ok(Some(Arrival { payment, checkout, filled, reference, pays }))
    }

    /// Holds the money and begins the order, if the plan can still be delivered for it.
    fn begin_order(&self, tx: &mut Tx, draft: &PaidDraft) -> Result<Option<Order>> {
        let Arrival { payment, checkout, filled, reference, pays } = self;
        if !pays || checkout.status.after(CheckoutEvent::Paid).is_none() || filled.is_gone() {
            return Ok(None);
        }
        let Some(cost) = deliverable_at(tx, checkout, payment)? else { return Ok(None) };
        if !redeem::is_payable(tx, checkout, draft.now)? {
            return Ok(None);
        }
        let order = draft.order(checkout, payment.amount, cost, filled, reference.clone());
        moves::hold(tx, payment, draft.now)?;
        authorizations::settle(tx, payment, draft.now)?;
        begin(tx, checkout, &order, &Entry::paid(&order.id, payment))?;
        if is_late(checkout, payment) {
            mail::tell_owner(tx, &draft.slip, checkout, News::LateDelivery, payment.amount)?;
        }
        Ok(Some(order))
    }

    /// The money was credited to the owner: ends what it was to pay for, and says so.
    fn give_to_owner(&self, tx: &mut Tx, draft: &PaidDraft) -> Result<()> {
        let Arrival { payment, checkout, filled, reference, pays } = self;
        authorizations::settle(tx, payment, draft.now)?;
        // A payment that was not asked for ends nothing: the checkout can still be paid.
        let refunded = *pays && !checkouts::advance(tx, &Step::PaidInVain(checkout), draft.now)?.is_empty();
        if refunded {
            redeem::release(tx, checkout, draft.now)?;
            if let Some(reference) = reference {
                claims::free(tx, checkout.account, reference, &checkout.id)?;
            }
        }
        // No mail about a payment that counted before, vanished and came back, nor about one that nobody asked for.
        if payment.round == 0 && (*pays || !checkout.status.is_unpaid()) {
            let news = match refunded {
                true if filled.is_gone() => News::EsimGone,
                true => News::TooLate,
                false => News::PaidAgain,
            };
            mail::tell_owner(tx, &draft.slip, checkout, news, payment.amount)?;
        }
        Ok(())
    }
}

fn is_late(checkout: &Checkout, payment: &Transfer) -> bool {
    payment.block.as_ref().is_none_or(|block| block.time >= checkout.expires_at)
}

/// What the payment of a checkout fills.
pub(in crate::ops) enum Filled {
    /// An eSIM of its own, which does not exist yet.
    New,
    /// The eSIM that a top-up is for.
    Esim(Box<Esim>),
    /// The eSIM of a top-up was given back, or is about to be.
    Gone,
}

impl Filled {
    pub(in crate::ops) fn of(tx: &mut Tx, checkout: &Checkout) -> Result<Filled> {
        let Some(esim_order) = &checkout.esim_order else { return Ok(Filled::New) };
        let order = rows::by_id(tx, esim_order)?.filter(|order| order.status == OrderStatus::Fulfilled);
        Ok(order.and_then(|order| order.esim).map_or(Filled::Gone, |esim| Filled::Esim(Box::new(esim))))
    }

    pub(in crate::ops) fn is_gone(&self) -> bool {
        matches!(self, Filled::Gone)
    }

    fn esim(&self) -> Option<Esim> {
        match self {
            Filled::Esim(esim) => Some((**esim).clone()),
            Filled::New | Filled::Gone => None,
        }
    }
}

/// The caller's own reference for this purchase, if it came with a live signature.
fn reference(tx: &mut Tx, checkout: &Checkout) -> Result<Option<String>> {
    Ok(authorizations::live(tx, &checkout.id)?.and_then(|live| live.reference))
}

/// The cost at which the plan is delivered for this payment. A payment in time is always tried to be delivered for: at the
/// cost that the checkout was made with, when the plan costs more than was paid by now, so that the supplier may refuse. A
/// late one only while the plan is sold and costs us no more than was paid.
fn deliverable_at(tx: &mut Tx, checkout: &Checkout, payment: &Transfer) -> Result<Option<Cost>> {
    let in_time = !is_late(checkout, payment);
    Ok(match cost_now(tx, checkout)? {
        Some(cost) if cost.usd <= payment.amount => Some(cost),
        Some(_) | None if in_time => Some(checkout.billed_cost()),
        Some(_) | None => None,
    })
}

/// The plan's cost to us now; `None` when it is not on sale.
fn cost_now(tx: &mut Tx, checkout: &Checkout) -> Result<Option<Cost>> {
    let asked = Asked {
        account: checkout.account,
        reference: None,
        package_code: &checkout.package_code,
        price_list: RETAIL_PRICE_LIST,
    };
    Ok(offers::look(tx, &asked)?.plan.map(|offer| offer.billed_cost()))
}

/// Stores the order, and counts it, with its coupon, as spent by the asking token. Called under the wallet's lock.
fn begin(tx: &mut Tx, checkout: &Checkout, order: &Order, entry: &Entry) -> Result<()> {
    rows::begin_paid(tx, order, entry)?;
    if let Some(reference) = &order.reference {
        claims::pass_on(tx, order.account, reference, &checkout.id, &order.id)?;
    }
    redeem::spend(tx, checkout, order)?;
    let day = order.created_at.day();
    if let Some(limit) = offers::daily_limit(tx, &checkout.token)? {
        offers::spend_limit(tx, &checkout.token, limit.spent_on(day).plus(order.price), day)?;
    }
    let paid = checkouts::advance(tx, &Step::Paid(checkout, &order.id), order.created_at)?;
    if paid.is_empty() { Err(Error::fault("a checkout was paid twice")) } else { Ok(()) }
}

/// The result of assigning a transfer to a checkout.
pub struct Assigned {
    pub transfer: Transfer,
    pub order: Order,
    /// What was paid beyond the price and went to the wallet.
    pub surplus: Usd,
}

/// The operator says that an unmatched transfer was meant for this checkout: it pays for the order, and the rest goes
/// to the wallet. Less than the asked amount is accepted if it covers our cost.
pub async fn assign(
    app: &App,
    actor: &str,
    id: &TransferId,
    invoice: &InvoiceId,
    reason: Option<&str>,
) -> Result<Assigned> {
    let (draft, wanted) = (PaidDraft::new(app), invoice.clone());
    let found = app.store.read(move |tx| checkouts::by_id(tx, &wanted)).await?;
    let checkout = found.ok_or(Refusal::InvoiceNotFound)?;
    let what = format!("for {}", app.numbers.of_checkout(&checkout));
    let text = reason.map_or(what.clone(), |reason| format!("{what}: {reason}"));
    let line = audit_line(app, actor, "transfers assign", format!("{id} {text}"));
    let (id, actor, lane) = (id.clone(), actor.to_string(), checkout.account.0);
    let write = move |tx: &mut Tx| {
        let known = || Error::fault("an assigned transfer lost its order");
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            let transfer = transfers::by_id(tx, &id)?.ok_or_else(known)?;
            let order = draft.begun(tx)?.ok_or_else(known)?;
            let surplus = transfer.amount.minus(order.price);
            return Ok(Assigned { transfer, order, surplus });
        }
        wallet::lock(tx, checkout.account)?;
        let transfer = transfers::lock_unmatched(tx, &id)?.ok_or(Refusal::TransferNotUnmatched)?;
        let checkout = checkouts::lock(tx, &checkout.id)?.ok_or(Refusal::InvoiceNotFound)?;
        if checkout.status.after(CheckoutEvent::Paid).is_none() {
            return Err(Refusal::CheckoutEnded.into());
        }
        let charged = transfer.amount.min(checkout.amount);
        let cost = cost_now(tx, &checkout)?.unwrap_or(checkout.billed_cost());
        if charged < cost.usd {
            return Err(Refusal::BelowCost { cost: cost.usd }.into());
        }
        if !redeem::is_payable(tx, &checkout, draft.now)? {
            return Err(Refusal::CouponGone.into());
        }
        let filled = Filled::of(tx, &checkout)?;
        if filled.is_gone() {
            return Err(Refusal::EsimNotActive.into());
        }
        let order = draft.order(&checkout, charged, cost, &filled, reference(tx, &checkout)?);
        let surplus = transfer.amount.minus(charged);
        let payee = guests::payee(tx, checkout.account, Some(&checkout.id))?;
        let ended = moves::assign(tx, &transfer, &checkout, draft.now)?;
        begin(tx, &checkout, &order, &Entry::paid_by_assignment(&order.id, &transfer, charged))?;
        if surplus.is_positive() {
            let entry = Entry::assigned(&transfer, payee, surplus);
            let note = Note { actor: Some(&actor), text: Some(&text) };
            ledger::post(tx, &entry, draft.now, note)?;
        }
        mail::tell_owner(tx, &draft.slip, &checkout, News::Assigned, transfer.amount)?;
        audit::record(tx, &line.changing("UNMATCHED", ended.state.as_str()))?;
        Ok(Assigned { transfer: ended, order, surplus })
    };
    let mut assigned = app.store.write(lane, write).await?;
    mail::wake(app);
    // A command ends with its process, so it waits for the delivery instead of starting a task.
    deliver::finish(app.clone(), assigned.order.clone()).await;
    assigned.order = owned::order(app, assigned.order.account, &assigned.order.id).await?;
    Ok(assigned)
}
