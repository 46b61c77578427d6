//! The partner API: parse, call one operation, render. Nothing is decided here.

use axum::extract::{RawQuery, State as FromState};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::State;
use super::auth::Partner;
use super::fields::{Fields, JsonBody, Query, Segment};
use super::plans::Wanted;
use super::problem::Refused;
use super::wire::{self, *};
use crate::app::App;
use crate::domain::esim::is_iccid;
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::money::Usd;
use crate::domain::order::OrderStatus;
use crate::domain::plan::PlanType;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::ops::orders::{ListQuery, Listed, Purchase, Receipt};
use crate::ops::topups::NewTopUp;
use crate::ops::{accounts, cancel, orders, topups, usage};

pub const REFERENCE_CHARS: usize = 128;
const CODE_CHARS: usize = 64;
/// A client that has to come back should leave the supplier a moment.
pub const RETRY_SECONDS: &str = "2";

pub type Answer = Result<Response, Refused>;

pub fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    let bytes = serde_json::to_vec(body).map_err(crate::error::Error::fault)?;
    Ok((status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], bytes)
        .into_response())
}

/// 200 for what is done, 202 with directions for what is still with the supplier.
fn purchase_answer(receipt: &Receipt, body: &impl Serialize) -> Answer {
    let open = receipt.order.status == OrderStatus::Provisioning;
    let mut response = json(if open { StatusCode::ACCEPTED } else { StatusCode::OK }, body)?;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if open {
        come_back(headers, &receipt.order.id);
    }
    if receipt.replayed {
        headers.insert(HeaderName::from_static("idempotent-replayed"), HeaderValue::from_static("true"));
    }
    Ok(response)
}

fn come_back(headers: &mut HeaderMap, id: &OrderId) {
    if let Ok(place) = HeaderValue::try_from(format!("/api/b2b/v1/orders/{id}")) {
        headers.insert(header::LOCATION, place);
    }
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
}

fn iccid(text: String) -> Result<String, Refusal> {
    if is_iccid(&text) { Ok(text) } else { Err(Refusal::field("iccid", "must have 19 or 20 digits")) }
}

/// Ids of a wrong shape are simply not found.
pub fn order_id(text: String) -> Result<OrderId, Refusal> {
    let known_kind = text.starts_with("ord_") || text.starts_with("top_");
    let plain = text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if known_kind && plain { Ok(OrderId::from_text(text)) } else { Err(Refusal::OrderNotFound) }
}

/// An opaque place in a list. Lists walk by a number that never changes, so new rows do not shift a page.
fn cursor(number: i64) -> String {
    format!("c{number}")
}

fn parse_cursor(text: &str) -> Option<i64> {
    text.strip_prefix('c')?.parse().ok().filter(|number| *number > 0)
}

/// Balance
///
/// The prepaid wallet: what can be spent, what is held for orders in progress.
#[utoipa::path(get, path = "/api/b2b/v1/balance", operation_id = "getBalance", tag = "wallet",
    responses((status = 200, description = "The wallet", body = BalanceView)))]
pub async fn balance(partner: Partner, FromState(state): FromState<State>) -> Answer {
    let balance = accounts::balance(&state.app, partner.account).await?;
    let view = BalanceView {
        success: true,
        company_name: partner.company.clone(),
        currency: "USD",
        balance_usd: Money(balance.available),
        held_usd: Money(balance.held),
        low_balance_threshold: Money(partner.low_balance),
        is_low_balance: balance.available < partner.low_balance,
        status: if balance.suspended { "SUSPENDED" } else { "ACTIVE" },
    };
    json(StatusCode::OK, &view)
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct TransactionsQuery {
    /// Only lines at or after this time.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Only lines before this time.
    #[param(format = DateTime)]
    to: Option<String>,
    /// Where the last page ended: its `nextAfter`.
    #[param(pattern = "^c[1-9][0-9]{0,17}$")]
    after: Option<String>,
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<i64>,
}

/// Statement
///
/// Every movement of the wallet with its running balance, newest first.
#[utoipa::path(get, path = "/api/b2b/v1/balance/transactions", operation_id = "listTransactions", tag = "wallet",
    params(TransactionsQuery),
    responses((status = 200, description = "Lines of the statement", body = TransactionsView)))]
pub async fn transactions(
    partner: Partner,
    FromState(state): FromState<State>,
    RawQuery(query): RawQuery,
) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let (from, to) = (query.time("from"), query.time("to"));
    let after = query.take("after", "must be a nextAfter of an earlier page", parse_cursor);
    let limit = query.whole("limit", 1, 1000).unwrap_or(100);
    query.finish()?;
    let statement = accounts::statement(&state.app, partner.account, from, to, after, limit).await?;
    let transactions = statement.lines.into_iter().map(|line| TransactionView {
        line: line.line,
        r#type: line.kind,
        amount_usd: Money(line.change),
        balance_usd: Money(line.balance),
        order_id: line.order,
        invoice_id: line.invoice.map(|id| id.to_string()),
        note: line.note,
        created_at: iso(line.at),
    });
    let view = TransactionsView {
        success: true,
        currency: "USD",
        transactions: transactions.collect(),
        next_after: statement.next.map(cursor),
    };
    json(StatusCode::OK, &view)
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct PlansQuery {
    /// Two-letter ISO 3166 code, in any case: only plans that work there.
    #[param(pattern = "^[A-Za-z]{2}$", example = "JP")]
    country: Option<String>,
    #[param(required = false, schema_with = plan_type_or_base)]
    r#type: Option<String>,
    /// Words that must all occur in name, code, operator or country names.
    #[param(
        min_length = 1,
        max_length = 128,
        pattern = "^[^\\x00-\\x1F\\x7F-\\x9F]{1,128}$",
        example = "japan 5"
    )]
    query: Option<String>,
    /// With `page` or `limit` the list is cut into pages; without them it is whole.
    #[param(minimum = 1, maximum = 1000000)]
    page: Option<i64>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<i64>,
}

/// Plans
///
/// What can be bought, at your wholesale price. Send the `ETag` back as `If-None-Match` to learn cheaply that nothing changed.
#[utoipa::path(get, path = "/api/b2b/v1/plans", operation_id = "listPlans", tag = "plans", params(PlansQuery),
    responses(
        (status = 200, description = "Plans on sale", body = PlansView, headers(("ETag" = String, description = "Hash of the list"))),
        (status = 304, description = "The list is the one whose ETag was sent")))]
pub async fn plans(
    partner: Partner,
    FromState(state): FromState<State>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answer {
    let mut query = Query::parse(query.as_deref());
    let country = query.take("country", "must be a two-letter country code", |text| {
        (text.len() == 2 && text.bytes().all(|b| b.is_ascii_alphabetic())).then(|| text.to_ascii_uppercase())
    });
    let plan_type =
        query.take("type", "must be one of BASE, TOPUP", PlanType::parse).unwrap_or(PlanType::Base);
    let words = query.text("query", 128);
    let (page, limit) = (query.whole("page", 1, 1_000_000), query.whole("limit", 1, 1000));
    query.finish()?;
    let page = (page.is_some() || limit.is_some()).then(|| (page.unwrap_or(1), limit.unwrap_or(1000)));
    let shelves = state.shelves.load();
    let shelf = shelves.get(&partner.price_list, plan_type).unwrap_or(&state.empty_shelf);
    Ok(shelf.answer(&Wanted { country, query: words, page }).respond(&headers))
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct OrderRequest {
    /// From the list of plans.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[^\\x00-\\x1F\\x7F-\\x9F]{1,64}$",
        example = "JP-1GB-7D"
    )]
    package_code: String,
    /// Your own reference. The same reference with the same package is the same order, for ever: send one, and retry safely.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = "^[^\\x00-\\x1F\\x7F-\\x9F]{1,128}$",
        example = "booking-1001"
    )]
    partner_ref_id: Option<String>,
    /// Refuse with PRICE_CHANGED when the plan costs more than this.
    #[schema(exclusive_minimum = 0, exclusive_maximum = 1000000000, multiple_of = 0.000001, example = 25)]
    max_price_usd: Option<f64>,
}

struct OrderFields {
    package_code: String,
    reference: Option<String>,
    max_price: Option<Usd>,
}

fn order_fields(body: &JsonBody) -> Result<OrderFields, Refusal> {
    let mut fields = Fields::parse(body)?;
    let read = OrderFields {
        package_code: fields.required_text("packageCode", CODE_CHARS),
        reference: fields.text("partnerRefId", REFERENCE_CHARS),
        max_price: fields.positive_usd("maxPriceUsd"),
    };
    fields.finish()?;
    Ok(read)
}

/// Order an eSIM
///
/// Deducts the wholesale price and returns the activation code. When the supplier takes longer than 25 seconds the
/// answer is 202: the order goes on, and its page in `Location` tells how it ends.
#[utoipa::path(post, path = "/api/b2b/v1/orders", operation_id = "placeOrder", tag = "orders", request_body = OrderRequest,
    responses(
        (status = 200, description = "Delivered, or the same order again (header Idempotent-Replayed)", body = PlacedView),
        (status = 202, description = "Accepted; the supplier has not answered yet", body = PlacedView)))]
pub async fn place_order(partner: Partner, FromState(state): FromState<State>, body: JsonBody) -> Answer {
    let fields = order_fields(&body)?;
    let purchase = Purchase {
        package_code: fields.package_code,
        reference: fields.reference,
        max_price: fields.max_price,
        esim_order: None,
        customer_email: None,
        discount_code: None,
    };
    let mut receipt = orders::place(&state.app, partner.buyer(), purchase).await?;
    let listed = if receipt.replayed {
        orders::with_topups(&state.app, receipt.order.clone()).await?
    } else {
        Listed { order: receipt.order.clone(), topups: Vec::new() }
    };
    receipt.order = listed.order.clone();
    let view = PlacedView {
        success: true,
        balance_remaining_usd: Money(receipt.balance),
        order: order_view(&state.app, &listed)?,
    };
    purchase_answer(&receipt, &view)
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct OrdersQuery {
    #[param(minimum = 1, maximum = 1000000000, default = 1)]
    page: Option<i64>,
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<i64>,
    #[param(pattern = "^[0-9]{19,20}$")]
    iccid: Option<String>,
    /// Every order that used this reference, in any state.
    #[param(
        rename = "partnerRefId",
        min_length = 1,
        max_length = 128,
        pattern = "^[^\\x00-\\x1F\\x7F-\\x9F]{1,128}$"
    )]
    partner_ref_id: Option<String>,
    #[param(inline, value_type = Option<OrderStatusWord>)]
    status: Option<String>,
    /// Only orders placed at or after this time.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Only orders placed before this time.
    #[param(format = DateTime)]
    to: Option<String>,
    /// A place in the list that does not shift while orders arrive; the `Link` header holds the next one.
    #[param(pattern = "^c[1-9][0-9]{0,17}$")]
    after: Option<String>,
}

/// Orders
///
/// Delivered and cancelled orders, newest first; with `partnerRefId` or `status` every state.
#[utoipa::path(get, path = "/api/b2b/v1/orders", operation_id = "listOrders", tag = "orders", params(OrdersQuery),
    responses((status = 200, description = "One page of orders", body = OrdersView,
        headers(("Link" = String, description = "Next page (RFC 8288)")))))]
pub async fn list_orders(
    partner: Partner,
    FromState(state): FromState<State>,
    RawQuery(query): RawQuery,
) -> Answer {
    let base = format!("{}/api/b2b/v1/orders", state.app.settings.base_url);
    orders_page(&state.app, partner.account, query.as_deref(), &base).await
}

/// A page of an account's orders, for partners and users alike; `base` is where the list is.
pub async fn orders_page(app: &App, account: AccountNo, query: Option<&str>, base: &str) -> Answer {
    let mut query = Query::parse(query);
    let wanted = ListQuery {
        page: query.whole("page", 1, 1_000_000_000).unwrap_or(1),
        limit: query.whole("limit", 1, 100).unwrap_or(20),
        after: query.take("after", "must be the place that a Link header gave", parse_cursor),
        iccid: query
            .take("iccid", "must have 19 or 20 digits", |text| is_iccid(text).then(|| text.to_string())),
        reference: query.text("partnerRefId", REFERENCE_CHARS),
        status: query.take("status", "must be an order status", OrderStatus::parse),
        from: query.time("from"),
        to: query.time("to"),
    };
    query.finish()?;
    let (page, limit, next_page) = (wanted.page, wanted.limit, next_link(base, &wanted));
    let list = orders::list(app, account, wanted).await?;
    let orders: Result<Vec<_>, _> = list.orders.iter().map(|listed| order_view(app, listed)).collect();
    let total_pages = (list.total + limit - 1) / limit;
    let view = OrdersView { success: true, page, limit, total: list.total, total_pages, orders: orders? };
    let mut response = json(StatusCode::OK, &view)?;
    if let Some(next) = list.next {
        let link = format!("<{next_page}&after={}>; rel=\"next\"", cursor(next));
        if let Ok(link) = HeaderValue::try_from(link) {
            response.headers_mut().insert(header::LINK, link);
        }
    }
    Ok(response)
}

/// The same question without its place in the list.
fn next_link(base: &str, wanted: &ListQuery) -> String {
    let mut link = form_urlencoded::Serializer::new(format!("{base}?"));
    link.append_pair("limit", &wanted.limit.to_string());
    let time = |time: Time| wire::iso_exact(time);
    for (name, value) in [
        ("iccid", wanted.iccid.clone()),
        ("partnerRefId", wanted.reference.clone()),
        ("status", wanted.status.map(|status| status.as_str().to_string())),
        ("from", wanted.from.map(time)),
        ("to", wanted.to.map(time)),
    ] {
        if let Some(value) = value {
            link.append_pair(name, &value);
        }
    }
    link.finish().replacen("?&", "?", 1)
}

/// One order
///
/// An order (`ord_…`) or top-up (`top_…`) in any state.
#[utoipa::path(get, path = "/api/b2b/v1/orders/{id}", operation_id = "getOrder", tag = "orders",
    params(("id" = String, Path, description = "The order's or top-up's id", example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses(
        (status = 200, description = "The order or top-up", body = FoundView)))]
pub async fn get_order(partner: Partner, FromState(state): FromState<State>, Segment(id): Segment) -> Answer {
    let order = orders::find(&state.app, partner.account, &order_id(id)?).await?;
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
/// the wallet. 202 when the supplier has not answered: the cancel goes on.
#[utoipa::path(post, path = "/api/b2b/v1/orders/{id}/cancel", operation_id = "cancelOrder", tag = "orders",
    params(("id" = String, Path, description = "The order's id", example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses(
        (status = 200, description = "Cancelled and refunded", body = CancelledView),
        (status = 202, description = "The supplier has not answered yet", body = CancelledView)))]
pub async fn cancel_order(
    partner: Partner,
    FromState(state): FromState<State>,
    Segment(id): Segment,
) -> Answer {
    let outcome = cancel::cancel(&state.app, partner.account, &order_id(id)?).await?;
    let open = outcome.order.status == OrderStatus::Cancelling;
    let listed = orders::with_topups(&state.app, outcome.order).await?;
    let view = CancelledView {
        success: true,
        refunded_usd: Money(outcome.refunded),
        balance_remaining_usd: Money(outcome.balance),
        order: order_view(&state.app, &listed)?,
    };
    let mut response = json(if open { StatusCode::ACCEPTED } else { StatusCode::OK }, &view)?;
    if open {
        come_back(response.headers_mut(), &listed.order.id);
    }
    Ok(response)
}

/// Top-up plans
///
/// The bundles that fit an eSIM, cheapest first.
#[utoipa::path(get, path = "/api/b2b/v1/orders/{iccid}/topup-plans", operation_id = "listTopUpPlans", tag = "top-ups",
    params(("iccid" = String, Path, description = "19 or 20 digits", pattern = "^[0-9]{19,20}$", example = "8901234567890123452")),
    responses(
        (status = 200, description = "Bundles for this eSIM", body = TopUpPlansView)))]
pub async fn topup_plans(
    partner: Partner,
    FromState(state): FromState<State>,
    Segment(number): Segment,
) -> Answer {
    let iccid = iccid(number)?;
    let plans = topups::plans(&state.app, partner.account, &iccid, &partner.price_list).await?;
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
    params(("iccid" = String, Path, description = "19 or 20 digits", pattern = "^[0-9]{19,20}$", example = "8901234567890123452")),
    responses(
        (status = 200, description = "Added, or the same top-up again (header Idempotent-Replayed)", body = TopUpPlacedView),
        (status = 202, description = "Accepted; the supplier has not answered yet", body = TopUpPlacedView)))]
pub async fn top_up(
    partner: Partner,
    FromState(state): FromState<State>,
    Segment(number): Segment,
    body: JsonBody,
) -> Answer {
    let iccid = iccid(number)?;
    let fields = order_fields(&body)?;
    let new = NewTopUp {
        iccid,
        package_code: fields.package_code,
        reference: fields.reference,
        max_price: fields.max_price,
    };
    let receipt = topups::place(&state.app, partner.buyer(), new).await?;
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
    purchase_answer(&receipt, &view)
}

/// Usage
///
/// The carrier's reading, live; the last known one, marked `stale`, when the carrier does not answer.
#[utoipa::path(get, path = "/api/b2b/v1/orders/{iccid}/usage", operation_id = "getUsage", tag = "usage",
    params(("iccid" = String, Path, description = "19 or 20 digits", pattern = "^[0-9]{19,20}$", example = "8901234567890123452")),
    responses(
        (status = 200, description = "The reading", body = UsageView)))]
pub async fn get_usage(
    partner: Partner,
    FromState(state): FromState<State>,
    Segment(number): Segment,
) -> Answer {
    let iccid = iccid(number)?;
    let report = usage::report(&state.app, partner.account, &iccid).await?;
    json(StatusCode::OK, &usage_view(&iccid, &report))
}
