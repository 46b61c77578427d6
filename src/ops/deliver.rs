//! The second and third beat of a purchase: ask the supplier, then finish in one write. The purchase itself and
//! recovery use it. No transaction is open while we wait, and the work outlives its caller.
//!
//! Only a definite answer ends an order. A doubt leaves it PROVISIONING, and the supplier is asked again with the same
//! id: here until the supplier's time is up, afterwards by `jobs::recover`.

use std::time::Duration;

use metrics::{counter, histogram};
use tokio::time::{Instant, timeout_at};

use super::coupons::redeem;
use super::mail::{self, News, Slip};
use super::orders::Receipt;
use super::receipts;
use super::usage;
use crate::app::App;
use crate::domain::amount::Amount;
use crate::domain::email::Email;
use crate::domain::esim::Esim;
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::order::{Failure, Order, OrderEvent, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::domain::text;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::audit::{self, Line};
use crate::store::debts::{self, Funds};
use crate::store::ledger::{self, Note};
use crate::store::orders::{Change, Step};
use crate::store::tx::Tx;
use crate::store::{WriteJob, checkouts, esims, orders, wallet};
use crate::supplier::{Answer, Bought, DoubtRule, Profile, Provision, Supplier, TopUp};

/// How many characters are kept of a supplier's or an operator's reason for a failure.
pub(super) const WHY_CHARS: usize = 500;

/// The state of an order after the supplier was asked.
pub enum Standing {
    /// Fulfilled or failed, and what the wallet holds now.
    Ended {
        order: Box<Order>,
        balance: Usd,
    },
    Open,
}

/// Starts the work and waits for it as long as a caller may wait.
pub(super) async fn and_wait(app: &App, order: Order, balance: Usd) -> Result<Receipt> {
    let worker = app.tasks.spawn(pursue(app.clone(), order.clone()));
    let patience = Duration::from_millis(app.settings.answer_within_ms.unsigned_abs());
    let standing = match tokio::time::timeout(patience, worker).await {
        Ok(finished) => finished.map_err(Error::fault)?,
        Err(_) => Ok(Standing::Open),
    };
    match standing {
        Ok(Standing::Ended { order, balance }) if order.status != OrderStatus::Failed => {
            Ok(Receipt { order: *order, balance, replayed: false })
        }
        Ok(Standing::Ended { order, .. }) => Err(refusal_of(&order).into()),
        Ok(Standing::Open) => Ok(Receipt { order, balance, replayed: false }),
        // The order stands, whatever failed here after it was placed; recovery will finish it.
        Err(error) => {
            tracing::error!(order = %order.id, %error, "an order could not be finished now");
            Ok(Receipt { order, balance, replayed: false })
        }
    }
}

/// Finishes an order that no caller waits for here.
pub(super) async fn finish(app: App, order: Order) {
    let id = order.id.clone();
    if let Err(error) = pursue(app, order).await {
        tracing::error!(order = %id, %error, "an order could not be finished now");
    }
}

/// Whether the money for an order is there: a payment that vanished from its chain may be fraud. Until it is back, or
/// settled otherwise, the supplier is not asked; answers to earlier questions still count.
async fn is_paid_for(app: &App, order: &Order) -> Result<bool> {
    let looked_at = order.clone();
    let funds = app.store.read(move |tx| debts::funds_of(tx, &looked_at)).await?;
    if funds != Funds::There {
        tracing::warn!(order = %order.id, ?funds, "the payment of an order is not on its chain; the order waits");
    }
    Ok(funds == Funds::There)
}

/// The refusal that a caller gets for a failed order.
pub(super) fn refusal_of(order: &Order) -> Refusal {
    match order.failure.as_ref().map(|failure| failure.code.as_str()) {
        Some("SUPPLIER_UNAVAILABLE") => Refusal::SupplierUnavailable { refunded: order.given_back() },
        _ => Refusal::SupplierRejected { refunded: order.given_back() },
    }
}

/// Asks until there is a definite answer or the supplier's time is up.
async fn pursue(app: App, order: Order) -> Result<Standing> {
    let deadline = Instant::now() + Duration::from_millis(app.settings.supplier_timeout_ms.unsigned_abs());
    let mut pause = Duration::from_millis(250);
    let mut turn = Turn::First;
    loop {
        match timeout_at(deadline, ask_once(&app, &order, turn)).await {
            Err(_) => {
                note_silence(&order);
                return Ok(Standing::Open);
            }
            Ok(Err(error)) => return Err(error),
            Ok(Ok(Standing::Ended { order, balance })) => return Ok(Standing::Ended { order, balance }),
            Ok(Ok(Standing::Open)) => {}
        }
        if Instant::now() + pause >= deadline {
            return Ok(Standing::Open);
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
        turn = Turn::Again;
    }
}

/// Whether the supplier may have heard of this order before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    First,
    Again,
}

/// One question to the supplier, and the write that follows from its answer.
pub async fn ask_once(app: &App, order: &Order, turn: Turn) -> Result<Standing> {
    // Before the first question the wallet has paid, or a transfer counted.
    if turn == Turn::Again && !is_paid_for(app, order).await? {
        return Ok(Standing::Open);
    }
    let supplier = app.supplier(&order.supplier)?;
    let started = Instant::now();
    let answer = ask(supplier.as_ref(), order).await?;
    let (call, outcome) = (call_name(order), answer.outcome());
    counter!("simgate_supplier_calls_total", "call" => call, "outcome" => outcome).increment(1);
    histogram!("simgate_supplier_seconds", "call" => call).record(started.elapsed().as_secs_f64());
    match answer {
        Answer::Done(Bought::Delivered { what, .. }) => fulfil(app, order, supplier.name(), what).await,
        Answer::Done(Bought::Underway { .. }) => Ok(Standing::Open),
        Answer::Refused(no) => fail(app, order, "SUPPLIER_REJECTED", &no.said).await,
        // A question that never left us says nothing about an earlier one that did.
        Answer::NotSent(why) if turn == Turn::First => fail(app, order, "SUPPLIER_UNAVAILABLE", &why).await,
        Answer::NotSent(why) | Answer::Doubt(why) => {
            tracing::warn!(order = %order.id, %why, "the supplier's answer is in doubt; the order stays PROVISIONING");
            Ok(Standing::Open)
        }
    }
}

fn call_name(order: &Order) -> &'static str {
    match order.status {
        OrderStatus::Cancelling => "cancel",
        _ if order.id.is_topup() => "top_up",
        _ => "provision",
    }
}

/// Logs that the supplier's time is up without an answer.
pub(super) fn note_silence(order: &Order) {
    counter!("simgate_supplier_calls_total", "call" => call_name(order), "outcome" => "silent").increment(1);
    tracing::warn!(order = %order.id, "the supplier did not answer in time; it will be asked again");
}

async fn ask(supplier: &dyn Supplier, order: &Order) -> Result<Answer<Bought<Option<Profile>>>> {
    if supplier.abilities().doubt != DoubtRule::RepeatIsSafe {
        return Ok(Answer::Doubt("this way of resolving doubts is not known yet".into()));
    }
    let (code, number) = (order.supplier_code.as_str(), order.supplier_number.as_deref());
    let expected_cost = Amount::usd(order.cost);
    if !order.id.is_topup() {
        let ask = Provision {
            order: &order.id,
            code,
            expected_cost,
            data_mb: order.data_mb,
            duration_days: order.duration_days,
            ordered_at: order.created_at,
            number,
        };
        return Ok(supplier.provision(ask).await.map(|bought| bought.map(Some)));
    }
    let esim = order.esim.as_ref().ok_or_else(|| Error::fault(format!("top-up {} has no eSIM", order.id)))?;
    let ask = TopUp {
        order: &order.id,
        profile: &esim.profile,
        code,
        expected_cost,
        data_mb: order.data_mb,
        duration_days: order.duration_days,
        ordered_at: order.created_at,
        number,
    };
    Ok(supplier.top_up(ask).await.map(|bought| bought.map(|()| None)))
}

async fn fulfil(
    app: &App,
    order: &Order,
    supplier: &'static str,
    profile: Option<Profile>,
) -> Result<Standing> {
    let esim = match profile {
        Some(profile) => Some(Esim {
            order: order.id.clone(),
            sealed: app.vault.seal(&order.id, &profile.activation)?,
            profile: profile.id,
            iccid: profile.iccid,
            install_by: profile.install_by,
            last_usage: None,
            asked_at: None,
            answered_at: None,
            due_at: usage::first_due(app, supplier)?,
        }),
        None => None,
    };
    let now = app.now();
    let mut done = order.clone();
    let sale = Sale {
        order: order.clone(),
        esim: esim.clone(),
        supplier,
        entry: Entry::fulfilled(&order.id, order.charge(), supplier, order.cost),
        receipt: order.customer_email.clone().map(|email| (mail::slip(app), email)),
        now,
    };
    let has_receipt = sale.receipt.is_some();
    let written = app.store.finish_batched(order.account.0, sale).await?;
    if has_receipt {
        mail::wake(app);
    }
    match written {
        Finished::Now(balance) => {
            done.status = OrderStatus::Fulfilled;
            done.updated_at = now;
            done.esim = esim.or(done.esim);
            counter!("simgate_orders_total", "outcome" => "fulfilled").increment(1);
            Ok(Standing::Ended { order: Box::new(done), balance })
        }
        Finished::Before { order, balance } => Ok(Standing::Ended { order, balance }),
        Finished::NotOurs(owner) => {
            tracing::error!(order = %order.id, %owner, "the supplier answered with the profile of another order");
            Ok(Standing::Open)
        }
    }
}

/// Write 3 of an order or top-up that the supplier sold.
struct Sale {
    order: Order,
    esim: Option<Esim>,
    supplier: &'static str,
    entry: Entry,
    /// The receipt to mail, and its recipient.
    receipt: Option<(Slip, Email)>,
    now: Time,
}

impl Sale {
    /// Queues the receipt, in the write that delivers.
    fn write_receipt(&self, tx: &mut Tx) -> Result<()> {
        let Some((slip, email)) = &self.receipt else { return Ok(()) };
        receipts::queue(tx, slip, &self.order, email)
    }

    fn step(&self) -> Step<'_> {
        let change = Change::Sold { profile: self.esim.as_ref(), entry: &self.entry };
        Step { order: &self.order.id, change, now: self.now }
    }
}

impl WriteJob for Sale {
    type Answer = Finished;
    const SHARES: bool = true;

    fn run(&self, tx: &mut Tx) -> Result<Finished> {
        match orders::advance(tx, &[self.step()])?.remove(&self.order.id) {
            Some(balance) => {
                self.write_receipt(tx)?;
                Ok(Finished::Now(balance))
            }
            None => {
                note_late_topup(tx, &self.order, self.supplier, self.now)?;
                too_late(tx, &self.order, self.esim.as_ref())
            }
        }
    }

    fn run_batched(tx: &mut Tx, group: &[&Sale]) -> Result<Vec<Option<Finished>>> {
        let sold: Vec<Step> =
            group.iter().filter(|sale| sale.esim.is_some()).map(|sale| sale.step()).collect();
        let mut balances = orders::advance(tx, &sold)?;
        let mut finished = Vec::with_capacity(group.len());
        for sale in group {
            let balance = balances.remove(&sale.order.id);
            if balance.is_some() {
                sale.write_receipt(tx)?;
            }
            finished.push(balance.map(Finished::Now));
        }
        Ok(finished)
    }
}

enum Finished {
    Now(Usd),
    /// Somebody else ended the order first.
    Before {
        order: Box<Order>,
        balance: Usd,
    },
    /// The profile belongs to this other order.
    NotOurs(String),
}

/// Why write 3 found nothing to do. A profile that turns up for a failed order is marked for cancelling.
fn too_late(tx: &mut Tx, waiting: &Order, delivered: Option<&Esim>) -> Result<Finished> {
    let order = orders::by_id(tx, &waiting.id)?.ok_or_else(|| Error::fault("an order vanished"))?;
    let owner = match delivered {
        Some(esim) => esims::owner_of(tx, esim)?,
        None => None,
    };
    // A profile that another order delivered must not be cancelled: its owner uses it.
    if order.status == OrderStatus::Failed
        && owner.is_none()
        && let Some(esim) = delivered
    {
        orders::orphan_found(tx, &order.id, &esim.profile)?;
    }
    if order.status.after(OrderEvent::Sold).is_none() {
        let balance = wallet::read(tx, order.account)?.balance;
        return Ok(Finished::Before { order: Box::new(order), balance });
    }
    match owner {
        Some(owner) => Ok(Finished::NotOurs(owner.to_string())),
        None => Err(Error::fault("an order that waits could not be fulfilled")),
    }
}

/// A top-up that was sold after its money went back stays on the eSIM: its cost is our loss.
fn note_late_topup(tx: &mut Tx, waiting: &Order, supplier: &'static str, now: Time) -> Result<()> {
    let failed = orders::by_id(tx, &waiting.id)?.is_some_and(|order| order.status == OrderStatus::Failed);
    if waiting.id.is_topup() && failed && orders::orphan_lost(tx, &waiting.id)? {
        ledger::post(tx, &Entry::orphan(&waiting.id, supplier, waiting.cost), now, Note::default())?;
    }
    Ok(())
}

/// `PROVISIONING → FAILED`, with the money back in the wallet, or owed to a guest. The order stays open while it is
/// unknown whether there is money to give back.
pub(super) async fn fail(app: &App, order: &Order, code: &str, why: &str) -> Result<Standing> {
    fail_noting(app, order, code, why, None).await
}

/// The same for an operator, whose line goes into the audit log with the write.
pub(super) async fn fail_by_hand(
    app: &App,
    order: &Order,
    code: &str,
    why: &str,
    line: Line,
) -> Result<Standing> {
    fail_noting(app, order, code, why, Some(line)).await
}

async fn fail_noting(
    app: &App,
    order: &Order,
    code: &str,
    why: &str,
    line: Option<Line>,
) -> Result<Standing> {
    let failure = Failure { code: code.into(), detail: text::visible(why, WHY_CHARS) };
    let now = app.now();
    let (mut done, waiting, reason) = (order.clone(), order.clone(), failure.clone());
    let slip = mail::slip(app);
    let give_back = move |tx: &mut Tx| {
        wallet::lock(tx, waiting.account)?;
        if debts::funds_of(tx, &waiting)? == Funds::Missing {
            return Ok(None);
        }
        let back = debts::payback(tx, &waiting, waiting.price)?;
        match orders::fail(tx, &waiting, &reason, &back, now)? {
            Some(balance) => {
                line.iter().try_for_each(|line| audit::record(tx, line))?;
                redeem::give_back(tx, &waiting, now)?;
                // Nobody waits for the answer of a checkout, so its owner gets a mail.
                if let Some(checkout) = checkouts::by_order(tx, &waiting.id)? {
                    let news = if waiting.id.is_topup() { News::TopUpFailed } else { News::Failed };
                    mail::tell_owner(tx, &slip, &checkout, news, back.received())?;
                }
                Ok(Some((Finished::Now(balance), back.received())))
            }
            None => Ok(Some((too_late(tx, &waiting, None)?, Usd::ZERO))),
        }
    };
    let Some((written, received)) = app.store.finish(order.account.0, give_back).await? else {
        return Ok(Standing::Open);
    };
    mail::wake(app);
    match written {
        Finished::Now(balance) => {
            done.status = OrderStatus::Failed;
            done.updated_at = now;
            done.failure = Some(failure);
            done.refunded = Some(received).filter(|received| *received != done.price);
            counter!("simgate_orders_total", "outcome" => "failed").increment(1);
            Ok(Standing::Ended { order: Box::new(done), balance })
        }
        Finished::Before { order, balance } => Ok(Standing::Ended { order, balance }),
        Finished::NotOurs(_) => Err(Error::fault("a failing order has no profile")),
    }
}
