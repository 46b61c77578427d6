//! The supplier's word about a cancel that it reviewed. No API tells it, so the operator enters it.

use crate::app::App;
use crate::domain::amount::Amount;
use crate::domain::cost::Cost;
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::domain::text;
use crate::error::{Error, Result};
use crate::ops::audit::audit_line;
use crate::ops::cancel::{self, withdraw};
use crate::ops::{deliver, suppliers, usage};

use super::{STUCK_AFTER_MS, order};

/// The supplier took an eSIM back, and gave us `returned` of its cost, in its own currency: the owner gets the price. An
/// eSIM that was used meanwhile needs the operator's decision, because somebody has both then. An owner who keeps it after
/// all gets nothing.
pub async fn order_cancelled(
    app: &App,
    actor: &str,
    id: &str,
    returned: Usd,
    despite_usage: bool,
) -> Result<cancel::Outcome> {
    let order = under_review(app, id).await?;
    let cost = order.billed_cost().amount(suppliers::currency(app, &order.supplier));
    let returned = Amount { micros: returned.micros(), ..cost };
    if returned.micros > cost.micros {
        let message = format!("must be at most {cost}, what it cost");
        return Err(Refusal::field("returned", message).into());
    }
    let line = audit_line(app, actor, "order cancelled", format!("{}: returned {returned}", order.id));
    let returned = cancel::came_back(app, &order, returned)?;
    if order.cancel_withdrawn_at.is_some() {
        return withdraw::settle(app, order, returned, line).await;
    }
    if !despite_usage && !is_unused(app, &order).await? {
        return Err(Refusal::UsedUnderReview.into());
    }
    let line = line.changing(order.status.as_str(), OrderStatus::Cancelled.as_str());
    cancel::grant_by_hand(app, order, returned, line).await
}

/// The supplier does not take an eSIM back: the order is FULFILLED again, with its code, and cannot be given back any
/// more. An order that was kept after all stays as it is.
pub async fn cancel_refused(app: &App, actor: &str, id: &str, reason: &str) -> Result<Order> {
    let open = under_review(app, id).await?;
    let reason = text::visible(reason, deliver::WHY_CHARS);
    let line = audit_line(app, actor, "order cancel-refused", format!("{}: {reason}", open.id));
    if open.cancel_withdrawn_at.is_some() {
        return Ok(withdraw::settle(app, open, Cost::in_usd(Usd::ZERO), line).await?.order);
    }
    let line = line.changing(open.status.as_str(), OrderStatus::Fulfilled.as_str());
    cancel::deny_by_hand(app, &open, line).await?;
    order(app, open.id.as_str()).await
}

/// Whether the supplier says so, and now: what it said a minute ago is too old for a decision about money.
async fn is_unused(app: &App, order: &Order) -> Result<bool> {
    match usage::read_anew(app, order).await {
        Ok(report) => Ok(!report.stale && cancel::review::why_not(&report.usage).is_none()),
        Err(Error::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// An order whose supplier has a request, and whose word is not entered yet; or one whose cancel is stuck, because the
/// supplier does not say yes or no.
async fn under_review(app: &App, id: &str) -> Result<Order> {
    let order = order(app, id).await?;
    let is_stuck = !app.now().is_within(STUCK_AFTER_MS, order.updated_at);
    let is_open = order.status == OrderStatus::Cancelling && (order.cancel_request.is_some() || is_stuck);
    match is_open || order.cancel_withdrawn_at.is_some() {
        true => Ok(order),
        false => Err(Refusal::NotUnderReview.into()),
    }
}
