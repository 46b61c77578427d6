//! Orders and top-ups, as answers show them and events carry them.

use serde::Serialize;
use utoipa::ToSchema;

use super::dates::iso;
use super::{CancelReasonWord, Money, OrderStatusWord};
use crate::domain::esim::Usage;
use crate::domain::money::Usd;
use crate::domain::order::{self, Order, OrderStatus};
use crate::domain::time::Time;

/// An order without what opens its eSIM: no activation code, and no link to one.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderFacts)]
pub struct OrderFacts {
    #[schema(example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub id: String,
    /// The caller's reference, as it was sent.
    #[schema(required = true)]
    pub partner_ref_id: Option<String>,
    /// A short reference for people.
    #[schema(example = "SG4K7M2Q9XTB")]
    pub order_no: String,
    pub status: OrderStatusWord,
    /// 18 to 20 digits; null until the eSIM is delivered.
    #[schema(required = true, example = "8901234567890123455")]
    pub iccid: Option<String>,
    #[schema(example = "JP-5GB-30D")]
    pub package_code: String,
    #[schema(example = "Japan 5 GB 30 days")]
    pub plan_name: String,
    /// What was charged for it.
    pub charged_usd: Money,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub created_at: String,
    pub refundable: RefundableView,
    pub top_ups: Vec<TopUpOrderView>,
    /// Why the order failed, and what was given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<FailureView>,
}

impl OrderFacts {
    /// `order_no` is the reference for people. Whether it can be given back is as of `now`.
    pub fn of(order: &Order, order_no: String, topups: &[Order], now: Time) -> OrderFacts {
        let esim = order.esim.as_ref();
        let is_live =
            |topup: &Order| matches!(topup.status, OrderStatus::Provisioning | OrderStatus::Fulfilled);
        let usage = esim.and_then(|esim| esim.last_usage.as_ref()).map(Usage::status);
        let refundable = order::refundable(order, topups.iter().any(is_live), usage, now);
        OrderFacts {
            id: order.id.to_string(),
            partner_ref_id: order.given_reference().map(str::to_string),
            order_no,
            status: OrderStatusWord(order.status),
            iccid: esim.map(|esim| esim.iccid.clone()),
            package_code: order.package_code.clone(),
            plan_name: order.plan_name.clone(),
            charged_usd: Money(order.price),
            created_at: iso(order.created_at),
            refundable: RefundableView {
                eligible: refundable.is_ok(),
                reason: refundable.err().map(CancelReasonWord),
                until: esim.and_then(|esim| esim.install_by).filter(|_| refundable.is_ok()).map(iso),
            },
            top_ups: topups.iter().map(topup_view).collect(),
            failure: failure(order),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Refundable)]
pub struct RefundableView {
    /// Whether a cancel has a chance; the supplier decides when it is asked.
    pub eligible: bool,
    /// When not: why.
    #[schema(required = true)]
    pub reason: Option<CancelReasonWord>,
    /// The last moment to cancel, when known.
    #[schema(required = true, format = DateTime)]
    pub until: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Failure)]
pub struct FailureView {
    #[schema(example = "SUPPLIER_REJECTED")]
    pub code: String,
    pub detail: String,
    pub refunded_usd: Money,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TopUpOrder)]
pub struct TopUpOrderView {
    #[schema(example = "top_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub id: String,
    #[schema(required = true)]
    pub partner_ref_id: Option<String>,
    #[schema(example = "8901234567890123455")]
    pub iccid: String,
    #[schema(example = "JP-5GB-30D-TOPUP")]
    pub package_code: String,
    pub charged_usd: Money,
    /// Never CANCELLING or CANCELLED: a top-up cannot be taken back.
    pub status: OrderStatusWord,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<FailureView>,
}

fn failure(order: &Order) -> Option<FailureView> {
    order.failure.as_ref().map(|failure| FailureView {
        code: failure.code.clone(),
        detail: failure.detail.clone(),
        refunded_usd: Money(if order.status == OrderStatus::Failed { order.given_back() } else { Usd::ZERO }),
    })
}

pub fn topup_view(order: &Order) -> TopUpOrderView {
    TopUpOrderView {
        id: order.id.to_string(),
        partner_ref_id: order.given_reference().map(str::to_string),
        iccid: order.esim.as_ref().map(|esim| esim.iccid.clone()).unwrap_or_default(),
        package_code: order.package_code.clone(),
        charged_usd: Money(order.price),
        status: OrderStatusWord(order.status),
        created_at: iso(order.created_at),
        failure: failure(order),
    }
}
