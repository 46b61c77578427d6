//! Finishing what a crash or a doubt left open. An order is taken over only after its asker must have given up,
//! and by one instance: whoever moves its `ask_until` first. It is asked about again with the same id.

use std::time::Duration;

use tokio::time::timeout;

use super::deliver::{self, Turn};
use super::{cancel, orders};
use crate::app::App;
use crate::domain::ids::OrderId;
use crate::domain::ledger::Entry;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::store::ledger::{self, Note};
use crate::store::orders as rows;
use crate::supplier::{Answer, Cancel, Cancelled};

const AT_ONCE: i64 = 64;

/// One round over everything that is due. Answers how many orders were taken over.
pub async fn round(app: &App) -> Result<usize> {
    let now = app.now();
    let due = app.store.read(move |tx| rows::due(tx, now, AT_ONCE)).await?;
    let mut asked = tokio::task::JoinSet::new();
    for order in due {
        asked.spawn(take_over(app.clone(), order));
    }
    for (id, profile) in app.store.read(rows::orphans).await? {
        asked.spawn(take_back(app.clone(), id, profile));
    }
    Ok(asked.join_all().await.into_iter().filter(|taken| *taken).count())
}

/// As long as one process may ask; a supplier that stays silent must not hold up the others.
fn patience(app: &App) -> Duration {
    Duration::from_millis(app.settings.supplier_timeout_ms.unsigned_abs())
}

async fn take_back(app: App, id: OrderId, profile: String) -> bool {
    match timeout(patience(&app), cancel_orphan(&app, &id, &profile)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::error!(order = %id, %error, "a profile of a failed order could not be cancelled yet");
        }
        Err(_) => {
            tracing::error!(order = %id, "the supplier does not answer about a profile of a failed order")
        }
    }
    true
}

async fn take_over(app: App, order: Order) -> bool {
    match timeout(patience(&app), ask_again(&app, &order)).await {
        Ok(Ok(taken)) => taken,
        Ok(Err(error)) => {
            tracing::error!(order = %order.id, %error, "an open order could not be finished yet");
            true
        }
        Err(_) => {
            deliver::note_silence(&order);
            true
        }
    }
}

async fn ask_again(app: &App, order: &Order) -> Result<bool> {
    let (id, seen) = (order.id.clone(), order.ask_until);
    let until = orders::ask_until(app, app.now());
    if !app.store.finish(order.account.0, move |tx| rows::lease(tx, &id, seen, until)).await? {
        return Ok(false);
    }
    match order.status {
        OrderStatus::Provisioning => deliver::ask_once(app, order, Turn::Again).await.map(drop)?,
        OrderStatus::Cancelling => match cancel::ask_once(app, order).await {
            // The supplier said no: the order is FULFILLED again, which is an end of this as well.
            Ok(_) | Err(Error::Refused(Refusal::NotCancellable(_))) => {}
            Err(error) => return Err(error),
        },
        OrderStatus::Fulfilled | OrderStatus::Failed | OrderStatus::Cancelled => {}
    }
    Ok(true)
}

/// Money was given back and then a profile turned up: it goes back too, or its cost is our loss.
async fn cancel_orphan(app: &App, id: &OrderId, profile: &str) -> Result<()> {
    let lookup = id.clone();
    let order = app.store.read(move |tx| rows::by_id(tx, &lookup)).await?;
    let order = order.ok_or_else(|| Error::fault("an order vanished"))?;
    let supplier = app.supplier(&order.supplier)?;
    let lost = match supplier.cancel(Cancel { profile, cost: order.cost }).await {
        Answer::Done(Cancelled::Yes { .. }) => None,
        Answer::Done(Cancelled::No(_)) | Answer::Refused(_) => {
            Some(Entry::orphan(&order.id, supplier.name(), order.cost))
        }
        Answer::NotSent(why) | Answer::Doubt(why) => return Err(Error::fault(why)),
    };
    let now = app.now();
    app.store
        .finish(order.account.0, move |tx| {
            let outcome = if lost.is_some() { "LOST" } else { "CANCELLED" };
            if rows::orphan_ended(tx, &order.id, outcome)?
                && let Some(entry) = &lost
            {
                ledger::post(tx, entry, now, Note::default(), false)?;
            }
            Ok(())
        })
        .await
}
