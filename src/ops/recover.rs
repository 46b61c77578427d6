//! Finishes what a crash or a doubt left open. An order is taken over only after its asker must have given up, and only
//! by the instance that moves its `ask_until` first. The supplier is asked again, by its own rule. Sales that turn up late
//! are looked for here too, and given back.

use std::time::Duration;

use tokio::time::timeout;

use super::deliver::spare::{self, lost_with};
use super::deliver::{self, Standing, Turn};
use super::{cancel, orders};
use crate::app::App;
use crate::domain::ids::OrderId;
use crate::domain::ledger::Entry;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::store::{attempts, native_moves, orders as rows, spares};
use crate::telemetry::EveryMinute;

const AT_ONCE: i64 = 64;
/// How soon an order looks again whether it is its turn.
const NEXT_TURN_MS: i64 = 2_000;

/// Orders are tried many times, and often all have the same trouble: log once a minute.
static ORDERS: EveryMinute = EveryMinute::new();
static PROFILES: EveryMinute = EveryMinute::new();

/// One round over everything that is due. Answers how many orders were taken over.
pub async fn round(app: &App) -> Result<usize> {
    let now = app.now();
    let longest = orders::ask_until(app, now);
    let due = app.store.read(move |tx| rows::due(tx, now, longest, AT_ONCE)).await?;
    let mut asked = tokio::task::JoinSet::new();
    for order in due {
        asked.spawn(take_over(app.clone(), order));
    }
    for (id, profile) in app.store.read(rows::orphans).await? {
        asked.spawn(take_back(app.clone(), id, profile));
    }
    for watch in app.store.read(move |tx| attempts::watched(tx, now)).await? {
        asked.spawn(late_sale(app.clone(), watch));
    }
    for spare in app.store.read(move |tx| spares::open(tx, now)).await? {
        asked.spawn(second_sale(app.clone(), spare));
    }
    let mut taken_over = 0;
    while let Some(taken) = asked.join_next().await {
        match taken {
            Ok(taken) => taken_over += usize::from(taken),
            // One task that panics must not delay the others.
            Err(error) => {
                if let Some(left_out) = ORDERS.turn() {
                    tracing::error!(%error, left_out, "an open order could not be looked at");
                }
            }
        }
    }
    Ok(taken_over)
}

/// How long one process may ask; a silent supplier must not delay the other orders.
fn patience(app: &App) -> Duration {
    Duration::from_millis(app.settings.supplier_timeout_ms.unsigned_abs())
}

async fn take_back(app: App, id: OrderId, profile: String) -> bool {
    match timeout(patience(&app), cancel_orphan(&app, &id, &profile)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            if let Some(left_out) = PROFILES.turn() {
                tracing::error!(order = %id, %error, left_out, "a profile of a failed order could not be cancelled yet");
            }
        }
        Err(_) => {
            if let Some(left_out) = PROFILES.turn() {
                tracing::error!(order = %id, left_out, "the supplier does not answer about a profile of a failed order");
            }
        }
    }
    true
}

/// Looks for sales that turned up late. They are no order's that waits, so this does not count as one.
async fn late_sale(app: App, watch: attempts::Watch) -> bool {
    let id = watch.order.clone();
    match timeout(patience(&app), spare::look(&app, watch)).await {
        Ok(Ok(_)) | Err(_) => {}
        Ok(Err(error)) => {
            if let Some(left_out) = PROFILES.turn() {
                tracing::warn!(order = %id, %error, left_out, "late sales of an order could not be looked for");
            }
        }
    }
    false
}

async fn second_sale(app: App, spare: spares::Spare) -> bool {
    let id = spare.order.clone();
    match timeout(patience(&app), spare::give_back(&app, spare)).await {
        Ok(Ok(_)) | Err(_) => {}
        Ok(Err(error)) => {
            if let Some(left_out) = PROFILES.turn() {
                tracing::error!(order = %id, %error, left_out, "the second sale of an order could not be given back yet");
            }
        }
    }
    false
}

async fn take_over(app: App, order: Order) -> bool {
    match timeout(patience(&app), ask_again(&app, &order)).await {
        Ok(Ok(taken)) => taken,
        Ok(Err(error)) => {
            if let Some(left_out) = ORDERS.turn() {
                tracing::error!(order = %order.id, %error, left_out, "an open order could not be finished yet");
            }
            true
        }
        Err(_) => {
            deliver::note_silence(&app, &order);
            true
        }
    }
}

async fn ask_again(app: &App, order: &Order) -> Result<bool> {
    let (id, seen) = (order.id.clone(), order.ask_until);
    let until = match cancel::review::next_look(app, order) {
        Some(pause) => app.now().plus_millis(pause.as_millis() as i64),
        None => orders::ask_until(app, app.now()),
    };
    if !app.store.finish(order.account.0, move |tx| rows::lease(tx, &id, seen, until)).await? {
        return Ok(false);
    }
    match order.status {
        OrderStatus::Provisioning => {
            if matches!(deliver::ask_once(app, order, Turn::Again).await?, Standing::Queued) {
                let (id, soon) = (order.id.clone(), app.now().plus_millis(NEXT_TURN_MS));
                app.store.finish(order.account.0, move |tx| rows::lease(tx, &id, until, soon)).await?;
            }
        }
        OrderStatus::Cancelling => match cancel::ask_once(app, order).await {
            // The supplier said no: the order is FULFILLED again, which ends this as well.
            Ok(_) | Err(Error::Refused(Refusal::NotCancellable(_))) => {}
            Err(error) => return Err(error),
        },
        OrderStatus::Fulfilled | OrderStatus::Failed | OrderStatus::Cancelled => {}
    }
    Ok(true)
}

/// A profile turned up after its money was given back: it is returned to the supplier, or its cost is our loss.
async fn cancel_orphan(app: &App, id: &OrderId, profile: &str) -> Result<()> {
    let lookup = id.clone();
    let order = app.store.read(move |tx| rows::by_id(tx, &lookup)).await?;
    let order = order.ok_or_else(|| Error::fault("an order vanished"))?;
    let supplier = app.supplier(&order.supplier)?;
    let lost = lost_with(app, supplier.as_ref(), profile, order.billed_cost()).await?;
    let name = supplier.name();
    let now = app.now();
    app.store
        .finish(order.account.0, move |tx| {
            let outcome = if lost.usd.is_positive() { "LOST" } else { "CANCELLED" };
            if rows::orphan_ended(tx, &order.id, outcome)? && lost.usd.is_positive() {
                let entry = Entry::orphan(&order.id, name, lost.usd);
                native_moves::post_cost(tx, &entry, now, name, lost)?;
            }
            Ok(())
        })
        .await
}
