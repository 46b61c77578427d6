//! Cancels that people at the supplier decide. A request is sent once in the life of an order, and only for a profile
//! that the supplier calls unused. Then the order waits, CANCELLING, with its code withheld, until the operator enters
//! the supplier's word (`ops/operator/reviews.rs`); meanwhile its meter is read.

use std::time::Duration;

use metrics::counter;

use crate::app::App;
use crate::domain::esim::{Esim, EsimStatus, ServiceState, Usage};
use crate::domain::order::{CancelReason, Order};
use crate::error::{Error, Result};
use crate::ops::usage;
use crate::store::cancel_requests;
use crate::supplier::{Answer, Reading, Supplier};
use crate::telemetry::EveryMinute;

/// How often the meter of a profile under review is read; suppliers may want more time between readings.
const READING_EVERY: Duration = Duration::from_secs(60);

static USED: EveryMinute = EveryMinute::new();

/// What may be done about a cancel that needs a review.
pub(super) enum Ready {
    /// The mark is written: the request may be sent, now and never again.
    Send,
    Refuse(CancelReason),
    /// The meter could not be read, or somebody else sends the request.
    Later,
}

pub(super) async fn prepare(app: &App, supplier: &dyn Supplier, order: &Order, esim: &Esim) -> Result<Ready> {
    let answer = supplier.usage(Reading { profile: &esim.profile, now: app.now() }).await;
    let usage = match answer {
        Answer::Done(usage) => usage,
        Answer::Refused(_) | Answer::NotSent(_) | Answer::Doubt(_) => return Ok(Ready::Later),
    };
    if let Some(reason) = why_not(&usage) {
        return Ok(Ready::Refuse(reason));
    }
    // Written before the request leaves us: after a crash nobody knows whether it did.
    let id = order.id.clone();
    let ours = app.store.finish(order.account.0, move |tx| cancel_requests::mark(tx, &id)).await?;
    Ok(if ours { Ready::Send } else { Ready::Later })
}

/// Why a profile with this reading is not taken back. A state that nobody knows is not new.
pub fn why_not(usage: &Usage) -> Option<CancelReason> {
    match usage.status() {
        EsimStatus::New if usage.service == ServiceState::Unknown => Some(CancelReason::SupplierCannotCancel),
        EsimStatus::New => None,
        EsimStatus::Installed => Some(CancelReason::Downloaded),
        EsimStatus::Active | EsimStatus::Depleted => Some(CancelReason::Used),
        EsimStatus::Expired => Some(CancelReason::Expired),
        EsimStatus::Cancelled => Some(CancelReason::AlreadyCancelled),
    }
}

/// Writes down the supplier's name for a request that it has taken.
pub(super) async fn sent(app: &App, order: &Order, request: &str) -> Result<()> {
    let (id, request) = (order.id.clone(), request.to_string());
    tracing::info!(order = %id, %request, "the supplier reviews a cancel; enter its word with `simgate order cancelled` or `order cancel-refused`");
    app.store.finish(order.account.0, move |tx| cancel_requests::keep(tx, &id, &request)).await
}

/// Takes the mark back from a request that certainly was not sent.
pub(super) async fn not_sent(app: &App, order: &Order) -> Result<()> {
    let id = order.id.clone();
    app.store.finish(order.account.0, move |tx| cancel_requests::forget(tx, &id)).await
}

/// Reads the meter while the supplier decides. A profile that is used meanwhile is the operator's business: the supplier
/// may refuse it, or may have agreed before.
pub(super) async fn watch(app: &App, order: &Order) -> Result<()> {
    let report = match usage::read(app, order).await {
        Ok(report) => report,
        // It is read again later.
        Err(Error::Refused(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    if !report.stale && why_not(&report.usage).is_some() {
        counter!("simgate_reviewed_cancels_used_total").increment(1);
        if let Some(left_out) = USED.turn() {
            tracing::error!(order = %order.id, status = report.usage.status().as_str(), left_out,
                "an eSIM is used although its cancel is under review: ask its supplier");
        }
    }
    Ok(())
}

/// How long until the meter of this order is read again; `None` for one that is not under review.
pub fn next_look(app: &App, order: &Order) -> Option<Duration> {
    order.cancel_request.as_ref()?;
    let pace =
        app.supplier(&order.supplier).map_or(READING_EVERY, |supplier| supplier.abilities().reading_every);
    Some(pace.max(READING_EVERY))
}
