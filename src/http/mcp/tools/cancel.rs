//! Giving an order back.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{Hints, Tool};
use crate::domain::order::OrderStatus;
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::http::kit::fields::{self, ID_CHARS, REFERENCE_CHARS};
use crate::http::kit::wire::{CancelReasonWord, Money, OrderStatusWord, iso};
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema::{self, order_id, token};
use crate::ops::cancel::{self, withdraw as withdrawal};
use crate::ops::preview;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CancelledView {
    order_id: String,
    /// CANCELLED, or CANCELLING while the supplier has not answered; FULFILLED after withdraw.
    status: OrderStatusWord,
    /// What came back to the wallet; 0 while the supplier has not answered.
    refunded_usd: Money,
    balance_usd: Money,
    /// True when this cancel was asked for before with the same idempotencyKey, or was withdrawn before.
    replayed: bool,
    message: &'static str,
}

/// What a cancel would do, after `dryRun`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CancelPreviewView {
    /// Always true: nothing was done.
    dry_run: bool,
    order_id: String,
    status: OrderStatusWord,
    /// Whether a cancel has a chance; the supplier decides when it is asked.
    eligible: bool,
    /// When not: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<CancelReasonWord>,
    /// What would come back to the wallet.
    refundable_usd: Money,
    /// The last moment to cancel, when known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    until: Option<String>,
}

pub fn tool() -> Tool {
    Tool {
        name: "cancel_order",
        title: "Cancel an order",
        description: "Cancels an eSIM order of the customer before it is installed and puts the whole price back into the \
            wallet. Use it only when the customer has said that they want this order cancelled: it cannot be \
            undone and the eSIM stops working. Fails with NOT_CANCELLABLE and a reason once the eSIM is \
            installed, used or topped up. The supplier decides; when it has not answered in time the status is \
            CANCELLING and it goes on by itself. While people there decide, a call with withdraw: true keeps the \
            eSIM after all. Call with dryRun first to see whether it is eligible. Needs a login. It does not end \
            a subscription or pay out money; for what is left on the wallet use get_wallet_balance.",
        hints: Hints { read_only: false, destructive: true, idempotent: false, open_world: false },
        input: schema::strict_input([order_id(), token(), withdraw()], &["orderId"]),
        output: schema::results([schema::of::<CancelledView>(), schema::of::<CancelPreviewView>()]),
        run: |call| Box::pin(run(call)),
    }
}

fn withdraw() -> (&'static str, Value) {
    let about = "true: take back a cancel that people at the supplier are still deciding about (status CANCELLING). The \
                 customer keeps the eSIM, nothing is paid back, and the order cannot be cancelled again.";
    ("withdraw", json!({ "type": "boolean", "default": false, "description": about }))
}

async fn run(call: Call) -> Result<Output> {
    let holder = call.login().await?;
    let mut fields = call.fields()?;
    let id = fields.required_text("orderId", ID_CHARS);
    let key = fields.text("idempotencyKey", REFERENCE_CHARS);
    let (dry_run, keep) = (fields.truth("dryRun"), fields.truth("withdraw"));
    fields.finish()?;
    let id = fields::order_id(id)?;
    if dry_run && keep {
        return Err(
            Refusal::field("withdraw", "costs nothing, so it has no dryRun: leave one of them out").into()
        );
    }
    if dry_run {
        let preview = preview::cancel(call.app(), holder.account, &id).await?;
        return Output::of(&CancelPreviewView {
            dry_run: true,
            order_id: preview.order.id.to_string(),
            status: OrderStatusWord(preview.order.status),
            eligible: preview.refusal.is_none(),
            reason: preview.refusal.map(CancelReasonWord),
            refundable_usd: Money(preview.refund),
            until: preview.until.map(iso),
        });
    }
    let outcome = match keep {
        true => withdrawal::withdraw(call.app(), holder.account, &id).await?,
        false => cancel::cancel_once(call.app(), holder.account, &id, key).await?,
    };
    Output::of(&CancelledView {
        order_id: outcome.order.id.to_string(),
        status: OrderStatusWord(outcome.order.status),
        refunded_usd: Money(outcome.refunded),
        balance_usd: Money(outcome.balance),
        replayed: outcome.replayed,
        message: match outcome.order.status {
            OrderStatus::Cancelled => "The order is cancelled and the money is back in the wallet.",
            OrderStatus::Fulfilled => {
                "The cancel is withdrawn. The customer keeps the eSIM; nothing was paid back."
            }
            OrderStatus::Provisioning | OrderStatus::Failed | OrderStatus::Cancelling => {
                "The supplier has not answered yet. The cancel goes on; look at get_user_orders in a minute."
            }
        },
    })
}
