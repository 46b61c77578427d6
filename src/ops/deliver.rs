//! The second and third beat of a purchase: ask the supplier (`ask.rs`), then finish in one write (`finish.rs`). The
//! purchase itself and recovery use it. No transaction is open while we wait, and the work outlives its caller.
//!
//! Only a definite answer ends an order. A doubt leaves it PROVISIONING, and the supplier is asked again by its own rule
//! (`doubt.rs`): here until the supplier's time is up, afterwards by `jobs::recover`. What was bought twice all the same
//! is given back (`spare.rs`).

mod ask;
mod doubt;
mod finish;
pub(super) mod spare;

use std::borrow::Cow;
use std::time::Duration;

use metrics::counter;
use tokio::time::{Instant, timeout_at};

use self::doubt::Way;
use self::finish::{Sold, fail, fulfil};
pub(super) use self::finish::{WHY_CHARS, fail_by_hand};
use super::LANE;
use super::orders::Receipt;
use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::store::debts::{self, Funds};
use crate::store::tx::Tx;
use crate::store::{attempts, orders, wallet};
use crate::supplier::{Answer, Bought, DoubtRule, Profile, Supplier};

/// The state of an order after the supplier was asked.
pub enum Standing {
    /// Fulfilled or failed, and what the wallet holds now.
    Ended {
        order: Box<Order>,
        balance: Usd,
    },
    Open,
    /// Another order of the same plan is open, and its supplier can tell only one at a time.
    Queued,
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
        Ok(Standing::Open | Standing::Queued) => Ok(Receipt { order, balance, replayed: false }),
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

/// The refusal that a caller gets for a failed order.
pub(super) fn refusal_of(order: &Order) -> Refusal {
    match order.failure.as_ref().map(|failure| failure.code.as_str()) {
        Some("SUPPLIER_UNAVAILABLE") => Refusal::SupplierUnavailable { refunded: order.given_back() },
        Some("PRICE_CHANGED") => Refusal::CostChanged { refunded: order.given_back() },
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
                note_silence(&app, &order);
                return Ok(Standing::Open);
            }
            Ok(Err(error)) => return Err(error),
            Ok(Ok(Standing::Ended { order, balance })) => return Ok(Standing::Ended { order, balance }),
            Ok(Ok(Standing::Open | Standing::Queued)) => {}
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

/// One question to the supplier, and the write that follows from its answer. Who sells again when asked again is asked
/// by its own rule (`doubt.rs`).
pub async fn ask_once(app: &App, order: &Order, turn: Turn) -> Result<Standing> {
    let supplier = app.supplier(&order.supplier)?;
    let supplier = supplier.as_ref();
    let rule = supplier.abilities().doubt;
    // Before the first question the wallet has paid, or a transfer counted.
    let current = match turn {
        Turn::First => Cow::Borrowed(order),
        Turn::Again => match look_again(app, order, rule).await? {
            Some(current) => Cow::Owned(current),
            None => return Ok(Standing::Open),
        },
    };
    if rule != DoubtRule::RepeatIsSafe && current.status != OrderStatus::Provisioning {
        return ended(app, current.into_owned()).await;
    }
    match rule {
        DoubtRule::RepeatIsSafe => {
            let answer = ask::purchase(app, supplier, &current).await?;
            heard(app, &current, supplier, answer, turn).await
        }
        DoubtRule::FindByReference { quiet } => {
            doubt::by_looking(app, &current, supplier, Way::by_reference(quiet)).await
        }
        DoubtRule::FindInList { quiet } => {
            doubt::by_looking(app, &current, supplier, Way::in_list(quiet)).await
        }
        DoubtRule::ClaimFirst => doubt::by_claim(app, current.into_owned(), supplier).await,
    }
}

/// The order as it is now, with the number that the supplier may have told. `None` while its payment is gone: it may be
/// fraud. Until it is back, or settled otherwise, the supplier is not asked; answers to earlier questions still count.
async fn look_again(app: &App, order: &Order, rule: DoubtRule) -> Result<Option<Order>> {
    let asked = order.clone();
    let read = move |tx: &mut Tx| Ok((debts::funds_of(tx, &asked)?, orders::by_id(tx, &asked.id)?));
    let (funds, current) = app.store.read(read).await?;
    if funds == Funds::There {
        return Ok(Some(current.ok_or_else(|| Error::fault("an order vanished"))?));
    }
    tracing::warn!(order = %order.id, ?funds, "the payment of an order is not on its chain; the order waits");
    if matches!(rule, DoubtRule::FindInList { .. }) {
        let held_up = order.clone();
        app.store.finish(LANE, move |tx| attempts::stop_waiting(tx, &held_up)).await?;
    }
    Ok(None)
}

/// Somebody else has ended the order.
async fn ended(app: &App, order: Order) -> Result<Standing> {
    let account = order.account;
    let balance = app.store.read(move |tx| wallet::read(tx, account)).await?.balance;
    Ok(Standing::Ended { order: Box::new(order), balance })
}

/// What follows from the answer to a purchase.
async fn heard(
    app: &App,
    order: &Order,
    supplier: &dyn Supplier,
    answer: Answer<Bought<Option<Profile>>>,
    turn: Turn,
) -> Result<Standing> {
    match answer {
        Answer::Done(Bought::Delivered { what, number, cost }) => {
            fulfil(app, order, supplier.name(), Sold { profile: what, number, cost }).await
        }
        Answer::Done(Bought::Underway { number }) => {
            let id = order.id.clone();
            app.store.finish(order.account.0, move |tx| orders::keep_number(tx, &id, &number)).await?;
            Ok(Standing::Open)
        }
        Answer::Refused(no) if turn == Turn::Again && may_be_sold(app, order, supplier) => {
            tracing::warn!(order = %order.id, said = no.said, "the supplier refuses a sale that an earlier question may have made; it is asked again");
            Ok(Standing::Open)
        }
        Answer::Refused(no) => finish::refuse(app, order, &no).await,
        // A question that never left us says nothing about an earlier one that did.
        Answer::NotSent(why) if turn == Turn::First => {
            tracing::warn!(order = %order.id, %why, "the supplier could not be asked; the money is given back");
            fail(app, order, "SUPPLIER_UNAVAILABLE", "the supplier cannot be reached at the moment").await
        }
        Answer::NotSent(why) | Answer::Doubt(why) => {
            tracing::warn!(order = %order.id, %why, "the supplier's answer is in doubt; the order stays PROVISIONING");
            Ok(Standing::Open)
        }
    }
}

/// Whether an earlier question may have made a sale that the supplier does not list yet. With a number it is known.
fn may_be_sold(app: &App, order: &Order, supplier: &dyn Supplier) -> bool {
    let lag = supplier.abilities().listed_within.as_millis() as i64;
    lag > 0 && order.supplier_number.is_none() && app.now().is_within(lag, order.created_at)
}

/// Logs that the supplier's time is up without an answer.
pub(super) fn note_silence(app: &App, order: &Order) {
    app.breakers.unheard(&order.supplier, &order.id);
    counter!("simgate_supplier_calls_total", "call" => ask::call_name(order), "outcome" => "silent")
        .increment(1);
    tracing::warn!(order = %order.id, "the supplier did not answer in time; it will be asked again");
}
