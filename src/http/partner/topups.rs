//! Top-ups of an eSIM, and its usage.

use axum::http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::orders::{self, OrderRequest};
use crate::domain::order::OrderStatus;
use crate::domain::refusal::Refusal;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json};
use crate::http::kit::auth::Partner;
use crate::http::kit::fields::{JsonBody, NoQuery, Segment, iccid, order_id};
use crate::http::kit::orders::{PlanView, TopUpOrderView, UsageView, topup_view, usage_view};
use crate::http::kit::wire::Money;
use crate::ops::buying::{self, Fills, Means};
use crate::ops::{topups, usage};

/// The eSIM that a path names.
fn esim_named(text: String) -> Result<Fills, Refusal> {
    match text.starts_with("ord_") {
        true => order_id(text).map(Fills::Order),
        false => iccid(text).map(Fills::Iccid),
    }
}

/// Top-up plans
///
/// The bundles that fit an eSIM, cheapest first.
#[utoipa::path(get, path = "/api/b2b/v1/orders/{iccid}/topup-plans", operation_id = "listTopUpPlans", tag = "top-ups",
    params(("iccid" = String, Path, description = "The ICCID, 19 or 20 digits; or the id of the order that the eSIM came with", pattern = "^([0-9]{19,20}|ord_[0-9A-Za-z]{30})$", example = "8901234567890123455")),
    responses(
        (status = 200, description = "Bundles for this eSIM", body = TopUpPlansView)))]
pub async fn topup_plans(partner: Partner, state: State, _: NoQuery, Segment(number): Segment) -> Answer {
    let (iccid, plans) =
        topups::plans(&state.app, partner.account, &esim_named(number)?, &partner.price_list).await?;
    let view = TopUpPlansView {
        success: true,
        iccid,
        currency: "USD",
        plans: plans.iter().map(PlanView::from).collect(),
    };
    json(StatusCode::OK, &view)
}

/// Top up an eSIM
///
/// Adds a bundle to an existing eSIM; its QR code and profile stay the same.
#[utoipa::path(post, path = "/api/b2b/v1/orders/{iccid}/topup", operation_id = "topUp", tag = "top-ups", request_body = OrderRequest,
    params(("iccid" = String, Path, description = "The ICCID, 19 or 20 digits; or the id of the order that the eSIM came with", pattern = "^([0-9]{19,20}|ord_[0-9A-Za-z]{30})$", example = "8901234567890123455"),
        ("Idempotency-Key" = Option<String>, Header, description = "Your own reference, as `partnerRefId`; when both are sent they must be the same",
        min_length = 1, max_length = 128, pattern = "^[\\x20-\\x7E]{1,128}$", example = "booking-1001-more")),
    responses(
        (status = 200, description = "Added, or the same top-up again (header Idempotent-Replayed)", body = TopUpPlacedView),
        (status = 202, description = "Accepted; the supplier has not answered yet", body = TopUpPlacedView)))]
pub async fn top_up(
    partner: Partner,
    state: State,
    _: NoQuery,
    Segment(number): Segment,
    headers: HeaderMap,
    body: JsonBody,
) -> Answer {
    let wish = orders::wish(&headers, &body, Some(esim_named(number)?))?;
    let receipt = buying::buy(&state.app, partner.buyer(), wish, Means::Wallet).await?.receipt()?;
    let name = &receipt.order.plan_name;
    let message = match receipt.order.status {
        OrderStatus::Provisioning => format!("{name} is being added; the supplier has not confirmed it yet."),
        _ => format!("{name} was added to the eSIM."),
    };
    let view = TopUpPlacedView {
        success: true,
        message,
        balance_remaining_usd: Money(receipt.balance),
        top_up_order: topup_view(&receipt.order),
    };
    orders::purchase_answer(&receipt, &view)
}

/// Usage
///
/// The carrier's reading, live; the last known one, marked `stale`, when the carrier does not answer.
#[utoipa::path(get, path = "/api/b2b/v1/orders/{iccid}/usage", operation_id = "getUsage", tag = "usage",
    params(("iccid" = String, Path, description = "The ICCID, 19 or 20 digits; or the id of the order that the eSIM came with", pattern = "^([0-9]{19,20}|ord_[0-9A-Za-z]{30})$", example = "8901234567890123455")),
    responses(
        (status = 200, description = "The reading", body = UsageView)))]
pub async fn get_usage(partner: Partner, state: State, _: NoQuery, Segment(number): Segment) -> Answer {
    let (iccid, report) = usage::report(&state.app, partner.account, &esim_named(number)?).await?;
    json(StatusCode::OK, &usage_view(&iccid, &report))
}

#[derive(Serialize, ToSchema)]
#[schema(as = TopUpPlanList)]
pub struct TopUpPlansView {
    #[schema(example = true)]
    pub success: bool,
    #[schema(example = "8901234567890123455")]
    pub iccid: String,
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// Cheapest first.
    pub plans: Vec<PlanView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TopUpPlaced)]
pub struct TopUpPlacedView {
    #[schema(example = true)]
    pub success: bool,
    /// What happened, for people.
    #[schema(example = "5 GB were added to the eSIM.")]
    pub message: String,
    pub balance_remaining_usd: Money,
    pub top_up_order: TopUpOrderView,
}
