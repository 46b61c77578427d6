//! The customer's eSIMs, by the orders that they came with: usage, what can be added, and adding it.

use axum::http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::orders::{self, StatusWord};
use crate::domain::order::OrderStatus;
use crate::domain::plan::Plan;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json, uncached};
use crate::http::kit::auth::{Bearer, Client};
use crate::http::kit::details::DetailsView;
use crate::http::kit::fields::{Segment, UntypedJson, order_id};
use crate::http::kit::orders::usage_view;
use crate::http::kit::wire::{EsimStatusWord, Money, gigabytes};
use crate::ops::buying::Fills;
use crate::ops::{topups, usage};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Usage)]
pub struct UsageView {
    #[schema(example = true)]
    success: bool,
    #[schema(example = "8901234567890123455")]
    iccid: String,
    status: EsimStatusWord,
    #[schema(example = "0.4 GB")]
    used_volume_formatted: String,
    #[schema(example = "1 GB")]
    total_volume_formatted: String,
    #[schema(example = "0.6 GB")]
    remaining_volume_formatted: String,
    #[schema(example = 0.4, minimum = 0)]
    used_gb: f64,
    #[schema(example = 1.0, minimum = 0)]
    total_gb: f64,
    #[schema(example = 0.6, minimum = 0)]
    remaining_gb: f64,
    #[schema(example = 40.0, minimum = 0, maximum = 100)]
    percent_used: f64,
    /// When the carrier took this reading.
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    as_of: String,
    #[schema(required = true, format = DateTime)]
    expires_at: Option<String>,
    /// True when the carrier did not answer and this is the last known reading.
    stale: bool,
}

/// Usage
///
/// The carrier's reading; the last known one, marked `stale`, when the carrier does not answer. It is asked about an eSIM
/// at most once in the time that its supplier allows, mostly a minute. Takes no body.
#[utoipa::path(post, path = "/api/esims/{id}/usage", operation_id = "refreshUsage", tag = "eSIMs",
    params(("id" = String, Path, description = "The order's id", example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses((status = 200, description = "The reading", body = UsageView)))]
pub async fn refresh(bearer: Bearer, state: State, Segment(id): Segment) -> Answer {
    let (iccid, report) = usage::report(&state.app, bearer.account, &Fills::Order(order_id(id)?)).await?;
    let reading = usage_view(&iccid, &report);
    let volume = |gigabytes: f64| format!("{gigabytes} GB");
    let view = UsageView {
        success: true,
        iccid: reading.iccid,
        status: reading.status,
        used_volume_formatted: volume(reading.used_gb),
        total_volume_formatted: volume(reading.total_gb),
        remaining_volume_formatted: volume(reading.remaining_gb),
        used_gb: reading.used_gb,
        total_gb: reading.total_gb,
        remaining_gb: reading.remaining_gb,
        percent_used: reading.percent_used,
        as_of: reading.as_of,
        expires_at: reading.expires_at,
        stale: reading.stale,
    };
    uncached(json(StatusCode::OK, &view))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Package)]
pub struct PackageView {
    #[schema(example = "JP-5GB-30D-TOPUP")]
    package_code: String,
    #[schema(example = "Japan 5 GB 30 days top-up")]
    name: String,
    #[schema(example = 5.0, minimum = 0)]
    data_amount: f64,
    #[schema(example = "GB")]
    data_unit: &'static str,
    #[schema(example = 30, minimum = 1)]
    duration: i64,
    #[schema(example = "DAY")]
    duration_unit: &'static str,
    /// What the customer pays.
    retail_price: Money,
    #[schema(example = "USD")]
    currency: &'static str,
    #[serde(flatten)]
    #[schema(inline)]
    details: DetailsView,
}

impl From<Plan> for PackageView {
    /// From a plan at this customer's price.
    fn from(plan: Plan) -> PackageView {
        PackageView {
            details: DetailsView::from(&plan),
            package_code: plan.code,
            name: plan.name,
            data_amount: gigabytes(plan.data_mb),
            data_unit: "GB",
            duration: plan.duration_days,
            duration_unit: "DAY",
            retail_price: Money(plan.wholesale),
            currency: "USD",
        }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PackageList)]
pub struct PackagesView {
    #[schema(example = true)]
    success: bool,
    #[schema(example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    order_id: String,
    /// Cheapest first.
    packages: Vec<PackageView>,
}

/// Top-ups
///
/// What can be added to an eSIM.
#[utoipa::path(get, path = "/api/esims/{id}/topup", operation_id = "listTopUps", tag = "eSIMs",
    params(("id" = String, Path, description = "The order's id", example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses((status = 200, description = "Packages for this eSIM", body = PackagesView)))]
pub async fn packages(bearer: Bearer, state: State, Segment(id): Segment) -> Answer {
    let id = order_id(id)?;
    let fills = Fills::Order(id.clone());
    let (_, plans) = topups::plans(&state.app, bearer.account, &fills, &bearer.price_list).await?;
    let packages = plans.into_iter().map(PackageView::from).collect();
    uncached(json(StatusCode::OK, &PackagesView { success: true, order_id: id.to_string(), packages }))
}

/// What to add. Other members are refused: one that is misspelt could cost money.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct TopUpRequest {
    /// From the list of this eSIM's top-ups.
    #[schema(max_length = 64, pattern = "printable", example = "JP-5GB-30D-TOPUP")]
    package_code: String,
    /// Ignored: where the caller says it comes from.
    source: Option<Value>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TopUp)]
pub struct ToppedUpView {
    #[schema(example = true)]
    success: bool,
    /// Of the top-up.
    #[schema(example = "top_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    order_id: String,
    /// COMPLETED, or PROCESSING while the supplier has not answered.
    status: StatusWord,
    #[schema(example = "JP-5GB-30D-TOPUP")]
    package_code: String,
    /// What was charged for it.
    amount: Money,
    /// What the wallet holds now.
    balance: Money,
    /// What happened, for people.
    #[schema(example = "The data was added to the eSIM; nothing has to be installed.")]
    message: &'static str,
}

/// Top up an eSIM
///
/// Adds data to an eSIM, paid from the wallet; nothing has to be installed. It cannot be taken back, and the order cannot
/// be cancelled afterwards. Send an `Idempotency-Key`: the same key and body again is the same top-up, charged once.
#[utoipa::path(post, path = "/api/esims/{id}/topup", operation_id = "topUp", tag = "eSIMs", request_body = TopUpRequest,
    params(("id" = String, Path, description = "The order's id", example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U"),
        ("Idempotency-Key" = Option<String>, Header, description = "Your own reference: 1 to 128 printable characters",
        min_length = 1, max_length = 128, pattern = "^[\\x20-\\x7E]{1,128}$", example = "order-42-more")),
    responses(
        (status = 200, description = "Added, or the same top-up again (header Idempotent-Replayed)", body = ToppedUpView),
        (status = 202, description = "Paid, and still with the supplier", body = ToppedUpView)))]
pub async fn top_up(
    bearer: Bearer,
    state: State,
    Client(client): Client,
    Segment(id): Segment,
    headers: HeaderMap,
    UntypedJson(body): UntypedJson,
) -> Answer {
    let wish = orders::wish(&headers, &body, Some(Fills::Order(order_id(id)?)))?;
    let receipt = orders::buy(&state, &bearer, client, wish).await?;
    let order = &receipt.order;
    let view = ToppedUpView {
        success: true,
        order_id: order.id.to_string(),
        status: StatusWord::from(order.status),
        package_code: order.package_code.clone(),
        amount: Money(order.price),
        balance: Money(receipt.balance),
        message: match order.status {
            OrderStatus::Provisioning => "It is paid for and being added.",
            OrderStatus::Fulfilled
            | OrderStatus::Failed
            | OrderStatus::Cancelling
            | OrderStatus::Cancelled => "The data was added to the eSIM; nothing has to be installed.",
        },
    };
    orders::purchase_answer(&receipt, &view)
}
