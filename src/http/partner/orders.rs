//! Orders of a partner: place, list, look at, cancel.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::ids::OrderId;
use crate::domain::order::OrderStatus;
use crate::domain::refusal::Refusal;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, done_or_open, json, marked, uncached};
use crate::http::kit::auth::Partner;
use crate::http::kit::fields::{Fields, JsonBody, NoQuery, OptionalBody, Query, Segment, order_id};
use crate::http::kit::orders::{
    OrderView, OrdersQuery, OrdersView, TopUpOrderView, order_view, orders_page, topup_view,
};
use crate::http::kit::wire::Money;
use crate::ops::buying::{self, Fills, Means, Wish};
use crate::ops::cancel::{self, withdraw};
use crate::ops::orders::{self, Receipt};
use crate::ops::owned;

/// 200 for a purchase that is done, 202 with directions for one that is still with the supplier.
pub fn purchase_answer(receipt: &Receipt, body: &impl Serialize) -> Answer {
    let open = receipt.order.status == OrderStatus::Provisioning;
    Ok(marked(uncached(located(open, &receipt.order.id, body))?, receipt.replayed))
}

/// What is still with the supplier also says where to look.
fn located(open: bool, id: &OrderId, body: &impl Serialize) -> Answer {
    let mut response = done_or_open(open, body)?;
    if open && let Ok(place) = HeaderValue::try_from(format!("/api/b2b/v1/orders/{id}")) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct OrderRequest {
    /// From the list of plans, in any case.
    #[schema(max_length = 64, pattern = "printable", example = "JP-1GB-7D")]
    package_code: String,
    /// Your own reference. The same reference with the same package is the same order, for ever: send one, and retry
    /// safely. The header `Idempotency-Key` is another name for it.
    #[schema(max_length = 128, pattern = "printable", example = "booking-1001")]
    partner_ref_id: Option<String>,
    /// Refuse with PRICE_CHANGED when the plan costs more than this.
    #[schema(exclusive_minimum = 0, exclusive_maximum = 1000000000, multiple_of = 0.000001, example = 25)]
    max_price_usd: Option<f64>,
}

/// What a request asks for.
pub fn wish(headers: &HeaderMap, body: &JsonBody, fills: Option<Fills>) -> Result<Wish, Refusal> {
    let mut fields = Fields::parse(body)?;
    fields.allow(&["packageCode", "partnerRefId", "maxPriceUsd"]);
    let wish = Wish {
        package_code: fields.package_code(),
        fills,
        reference: fields.reference("partnerRefId", headers),
        max_price: fields.positive_usd("maxPriceUsd"),
        ..Wish::default()
    };
    fields.finish()?;
    Ok(wish)
}

/// Order an eSIM
///
/// Deducts the wholesale price and returns the activation code. When the supplier takes longer than 25 seconds the
/// answer is 202: the order goes on, and its page in `Location` tells how it ends.
#[utoipa::path(post, path = "/api/b2b/v1/orders", operation_id = "placeOrder", tag = "orders", request_body = OrderRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "Your own reference, as `partnerRefId`; when both are sent they must be the same",
        min_length = 1, max_length = 128, pattern = "^[\\x20-\\x7E]{1,128}$", example = "booking-1001")),
    responses(
        (status = 200, description = "Delivered, or the same order again (header Idempotent-Replayed)", body = PlacedView),
        (status = 202, description = "Accepted; the supplier has not answered yet", body = PlacedView)))]
pub async fn place_order(
    partner: Partner,
    state: State,
    _: NoQuery,
    headers: HeaderMap,
    body: JsonBody,
) -> Answer {
    let buyer = partner.buyer()?;
    let wish = wish(&headers, &body, None)?;
    let receipt = buying::buy(&state.app, buyer, wish, Means::Wallet).await?.receipt()?;
    let listed = orders::of_receipt(&state.app, &receipt).await?;
    let view = PlacedView {
        success: true,
        balance_remaining_usd: Money(receipt.balance),
        order: order_view(&state.app, &listed)?,
    };
    purchase_answer(&receipt, &view)
}

/// Orders
///
/// Delivered and cancelled orders, newest first; with `partnerRefId` or `status` every state.
#[utoipa::path(get, path = "/api/b2b/v1/orders", operation_id = "listOrders", tag = "orders", params(OrdersQuery),
    responses((status = 200, description = "One page of orders", body = OrdersView)))]
pub async fn list_orders(partner: Partner, state: State, query: Query) -> Answer {
    let base = format!("{}/api/b2b/v1/orders", state.app.settings.base_url);
    orders_page(&state.app, partner.account, query.strictly(), &base).await
}

/// One order
///
/// An order (`ord_…`) or top-up (`top_…`) in any state.
#[utoipa::path(get, path = "/api/b2b/v1/orders/{id}", operation_id = "getOrder", tag = "orders",
    params(("id" = String, Path, description = "The order's or top-up's id", example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses(
        (status = 200, description = "The order or top-up", body = FoundView)))]
pub async fn get_order(partner: Partner, state: State, _: NoQuery, Segment(id): Segment) -> Answer {
    let order = owned::order(&state.app, partner.account, &order_id(id)?).await?;
    let view = if order.id.is_topup() {
        FoundView { success: true, order: None, top_up_order: Some(topup_view(&order)) }
    } else {
        let listed = orders::with_topups(&state.app, order).await?;
        FoundView { success: true, order: Some(order_view(&state.app, &listed)?), top_up_order: None }
    };
    json(StatusCode::OK, &view)
}

/// Cancel an order
///
/// Possible until the eSIM is installed, used or topped up; the supplier decides, and then the full price is back in
/// the wallet. It needs no body; whatever one says is refused. 202 when the supplier has not answered: the cancel goes on.
#[utoipa::path(post, path = "/api/b2b/v1/orders/{id}/cancel", operation_id = "cancelOrder", tag = "orders",
    params(("id" = String, Path, description = "The order's id", example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses(
        (status = 200, description = "Cancelled and refunded", body = CancelledView),
        (status = 202, description = "The supplier has not answered yet", body = CancelledView)))]
pub async fn cancel_order(
    partner: Partner,
    state: State,
    _: NoQuery,
    Segment(id): Segment,
    body: OptionalBody,
) -> Answer {
    body.require_only(&[])?;
    let outcome = cancel::cancel_by_key(&state.app, &partner, &order_id(id)?).await?;
    let open = outcome.order.status == OrderStatus::Cancelling;
    let listed = orders::with_topups(&state.app, outcome.order).await?;
    let view = CancelledView {
        success: true,
        refunded_usd: Money(outcome.refunded),
        balance_remaining_usd: Money(outcome.balance),
        order: order_view(&state.app, &listed)?,
    };
    located(open, &listed.order.id, &view)
}

/// Keep an eSIM after all
///
/// Takes a cancel back while people at the supplier decide about it, which takes days at some suppliers: the order is
/// FULFILLED again, with its activation code. Nothing is charged or given back, and it cannot be cancelled again. Asking
/// twice has the same answer.
#[utoipa::path(delete, path = "/api/b2b/v1/orders/{id}/cancel", operation_id = "withdrawCancel", tag = "orders",
    params(("id" = String, Path, description = "The order's id", example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses((status = 200, description = "The order, as it is again", body = FoundView)))]
pub async fn withdraw_cancel(partner: Partner, state: State, _: NoQuery, Segment(id): Segment) -> Answer {
    let kept = withdraw::withdraw_by_key(&state.app, &partner, &order_id(id)?).await?;
    let listed = orders::with_topups(&state.app, kept.order).await?;
    let order = Some(order_view(&state.app, &listed)?);
    json(StatusCode::OK, &FoundView { success: true, order, top_up_order: None })
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderPlaced)]
pub struct PlacedView {
    #[schema(example = true)]
    pub success: bool,
    /// The balance now.
    pub balance_remaining_usd: Money,
    pub order: OrderView,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderCancelled)]
pub struct CancelledView {
    #[schema(example = true)]
    pub success: bool,
    /// What was given back; 0 while the supplier has not answered.
    pub refunded_usd: Money,
    pub balance_remaining_usd: Money,
    pub order: OrderView,
}

/// One order or one top-up.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderFound)]
pub struct FoundView {
    #[schema(example = true)]
    pub success: bool,
    /// For an id that starts with `ord_`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub order: Option<OrderView>,
    /// For an id that starts with `top_`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub top_up_order: Option<TopUpOrderView>,
}
