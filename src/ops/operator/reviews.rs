//! The supplier's word about a cancel that it reviewed. No API tells it, so the operator enters it.

use crate::app::App;
use crate::domain::amount::Amount;
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::domain::text;
use crate::error::{Error, Result};
use crate::ops::audit::audit_line;
use crate::ops::{cancel, deliver, suppliers, usage};

use super::order;

/// The supplier took an eSIM back, and gave us `returned` of its cost, in its own currency: the owner gets the price. An
/// eSIM that was used meanwhile needs the operator's decision, because somebody has both then.
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
    if !despite_usage && !is_unused(app, &order).await? {
        return Err(Refusal::UsedUnderReview.into());
    }
    let line = audit_line(app, actor, "order cancelled", format!("{}: returned {returned}", order.id));
    let line = line.changing(order.status.as_str(), OrderStatus::Cancelled.as_str());
    let returned = cancel::came_back(app, &order, returned)?;
    cancel::grant_by_hand(app, order, returned, line).await
}

/// The supplier does not take an eSIM back: the order is FULFILLED again, with its code, and cannot be given back any
/// more.
pub async fn cancel_refused(app: &App, actor: &str, id: &str, reason: &str) -> Result<Order> {
    let open = under_review(app, id).await?;
    let reason = text::visible(reason, deliver::WHY_CHARS);
    let line = audit_line(app, actor, "order cancel-refused", format!("{}: {reason}", open.id));
    let line = line.changing(open.status.as_str(), OrderStatus::Fulfilled.as_str());
    cancel::deny_by_hand(app, &open, line).await?;
    order(app, open.id.as_str()).await
}

/// Whether the supplier says so, and now.
async fn is_unused(app: &App, order: &Order) -> Result<bool> {
    match usage::read(app, order).await {
        Ok(report) => Ok(!report.stale && cancel::review::why_not(report.usage.status()).is_none()),
        Err(Error::Refused(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn under_review(app: &App, id: &str) -> Result<Order> {
    let order = order(app, id).await?;
    match order.status == OrderStatus::Cancelling && order.cancel_request.is_some() {
        true => Ok(order),
        false => Err(Refusal::NotUnderReview.into()),
    }
}
