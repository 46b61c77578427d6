//! Top-ups of an eSIM, and its usage.

use axum::http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::orders::{self, OrderRequest};
use crate::domain::esim::UsageDay;
use crate::domain::order::OrderStatus;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json};
use crate::http::kit::auth::Partner;
use crate::http::kit::fields::{JsonBody, NoQuery, Query, Segment, iccid, order_id};
use crate::http::kit::orders::{PlanView, TopUpOrderView, UsageView, topup_view, usage_view};
use crate::http::kit::wire::{Money, date, gigabytes};
use crate::ops::buying::{self, Fills, Means};
use crate::ops::{topups, usage};

/// The eSIM that a path names.
fn esim_named(text: String) -> Result<Fills, Refusal> {
    match text.starts_with("ord_") {
        true => order_id(text).map(Fills::Order),
        false => iccid(&text).map(Fills::Iccid),
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
    let buyer = partner.buyer()?;
    let wish = orders::wish(&headers, &body, Some(esim_named(number)?))?;
    let receipt = buying::buy(&state.app, buyer, wish, Means::Wallet).await?.receipt()?;
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

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct UsageQuery {
    /// `days` adds what was used up to the end of each day.
    #[param(inline, value_type = Option<HistoryWord>, example = "days")]
    history: Option<String>,
}

/// What a history is made of.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "describes the parameter for OpenAPI")]
pub enum HistoryWord {
    Days,
}

/// Usage
///
/// The carrier's reading; the last known one, marked `stale`, when the carrier does not answer. It is asked about an eSIM
/// at most once in the time that its supplier allows, mostly a minute: until then the last reading is the answer.
#[utoipa::path(get, path = "/api/b2b/v1/orders/{iccid}/usage", operation_id = "getUsage", tag = "usage",
    params(("iccid" = String, Path, description = "The ICCID, 19 or 20 digits; or the id of the order that the eSIM came with", pattern = "^([0-9]{19,20}|ord_[0-9A-Za-z]{30})$", example = "8901234567890123455"),
        UsageQuery),
    responses(
        (status = 200, description = "The reading", body = UsageAnswer)))]
pub async fn get_usage(partner: Partner, state: State, query: Query, Segment(number): Segment) -> Answer {
    let mut query = query.strictly();
    let days = query.take("history", "must be days", |text| text.eq_ignore_ascii_case("days").then_some(()));
    query.finish()?;
    let (app, esim) = (&state.app, esim_named(number)?);
    let (iccid, report, history) = match days {
        Some(()) => {
            let (iccid, report, days) = usage::history(app, partner.account, &esim).await?;
            (iccid, report, Some(days.iter().map(UsageDayView::from).collect()))
        }
        None => {
            let (iccid, report) = usage::report(app, partner.account, &esim).await?;
            (iccid, report, None)
        }
    };
    json(StatusCode::OK, &UsageAnswer { usage: usage_view(&iccid, &report), history })
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Usage)]
pub struct UsageAnswer {
    #[serde(flatten)]
    #[schema(inline)]
    usage: UsageView,
    /// With `history=days`: the days of the last thirteen months on which what was used, or what can be, changed; the
    /// oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<UsageDayView>>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UsageDay)]
pub struct UsageDayView {
    /// The day of the readings, in UTC.
    #[schema(format = Date, example = "2026-01-31")]
    day: String,
    /// What was used since the eSIM was bought, by the last reading of the day.
    #[schema(example = 1.25, minimum = 0)]
    used_gb: f64,
    #[schema(example = 5.0, minimum = 0)]
    total_gb: f64,
}

impl From<&UsageDay> for UsageDayView {
    fn from(day: &UsageDay) -> UsageDayView {
        UsageDayView {
            day: date(Time::of_day(day.day)),
            used_gb: gigabytes(day.used_mb),
            total_gb: gigabytes(day.total_mb),
        }
    }
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
