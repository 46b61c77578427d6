//! The customer's orders: buy from the wallet, list, give back.

use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::paging::{Page, PageQuery, PageView};
use crate::domain::order::OrderStatus;
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, done_or_open, json, marked, uncached};
use crate::http::kit::auth::{Bearer, Client};
use crate::http::kit::fields::{
    CODE_CHARS, Fields, JsonBody, OptionalUntyped, Query, Segment, UntypedJson, idempotency_key, order_id,
};
use crate::http::kit::orders::{self as shapes, order_view};
use crate::http::kit::wire::Money;
use crate::ops::buying::{self, Fills, Means, Signing, Wish};
use crate::ops::cancel::{self, Outcome, withdraw};
use crate::ops::orders::{self, Receipt};

/// How an order stands.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schema(as = OrderStatus)]
pub enum StatusWord {
    Processing,
    Completed,
    Failed,
    Cancelling,
    Cancelled,
}

impl From<OrderStatus> for StatusWord {
    fn from(status: OrderStatus) -> StatusWord {
        match status {
            OrderStatus::Provisioning => StatusWord::Processing,
            OrderStatus::Fulfilled => StatusWord::Completed,
            OrderStatus::Failed => StatusWord::Failed,
            OrderStatus::Cancelling => StatusWord::Cancelling,
            OrderStatus::Cancelled => StatusWord::Cancelled,
        }
    }
}

/// What to buy. Other members are refused: one that is misspelt could cost money.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct OrderRequest {
    /// From a search.
    #[schema(max_length = 64, pattern = "printable", example = "JP-1GB-7D")]
    package_code: String,
    /// A coupon, in any case; empty for none.
    #[schema(max_length = 64, pattern = "printable or empty", example = "SUMMER")]
    discount_code: Option<String>,
    /// Ignored: where the caller says it comes from.
    source: Option<Value>,
}

/// What a body asks for, and the caller's own reference. Only for a new eSIM there are coupons.
pub fn wish(headers: &HeaderMap, body: &JsonBody, fills: Option<Fills>) -> Result<Wish, Refusal> {
    let reference = idempotency_key(headers)?;
    let mut fields = Fields::parse(body)?;
    let package_code = fields.package_code();
    let discount_code = match fills {
        Some(_) => {
            fields.allow(&["packageCode", "source"]);
            None
        }
        None => {
            fields.allow(&["packageCode", "discountCode", "source"]);
            fields.filled("discountCode", CODE_CHARS)
        }
    };
    fields.finish()?;
    Ok(Wish { package_code, fills, reference, discount_code, ..Wish::default() })
}

/// Buys from the wallet; a wallet that is short is refused, with a link that fills it.
pub async fn buy(state: &State, bearer: &Bearer, client: IpAddr, wish: Wish) -> Result<Receipt> {
    let means = Means::WalletOrLink { can_sign: false, client, signing: Signing::default() };
    buying::buy(&state.app, bearer.buyer(), wish, means).await?.receipt()
}

/// 200 for a purchase that is done, 202 for one that is still with the supplier.
pub fn purchase_answer(receipt: &Receipt, view: &impl Serialize) -> Answer {
    let open = receipt.order.status == OrderStatus::Provisioning;
    Ok(marked(uncached(done_or_open(open, view))?, receipt.replayed))
}

/// What was bought.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderedProduct)]
pub struct ProductView {
    #[schema(example = "Japan 1 GB 7 days")]
    name: String,
    #[schema(example = "JP-1GB-7D")]
    package_code: String,
}

/// What an order shows wherever it is shown.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoughtView {
    /// COMPLETED, or PROCESSING while the supplier has not delivered. An order may have been given back since.
    status: StatusWord,
    product: ProductView,
    /// What was charged for it.
    amount: Money,
    /// 18 to 20 digits; null until the eSIM is delivered.
    #[schema(required = true, example = "8901234567890123455")]
    iccid: Option<String>,
    /// With the two below, null until it is delivered and after it was given back.
    #[schema(required = true, example = "smdp.sim.example")]
    smdp_address: Option<String>,
    #[schema(required = true)]
    matching_id: Option<String>,
    /// The activation code: `LPA:1$`, the SM-DP+ address, `$`, the matching id.
    #[schema(required = true, example = "LPA:1$smdp.sim.example$SIM-0123")]
    lpa_url: Option<String>,
    /// An image of the activation code, to be scanned. It says "being prepared" until the eSIM is delivered.
    #[schema(format = "uri")]
    qr_code: String,
    /// A page that helps with the installation.
    #[schema(format = "uri")]
    install_url: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Order)]
pub struct OrderView {
    #[schema(example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    id: String,
    /// A short reference for people.
    #[schema(example = "SG4K7M2Q9XTB")]
    order_no: String,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    created_at: String,
    #[serde(flatten)]
    #[schema(inline)]
    bought: BoughtView,
}

/// The order of every door, in the words of this one.
fn view(order: shapes::OrderView) -> OrderView {
    OrderView {
        id: order.id,
        order_no: order.order_no,
        created_at: order.created_at,
        bought: BoughtView {
            status: StatusWord::from(order.status.0),
            product: ProductView { name: order.plan_name, package_code: order.package_code },
            amount: order.charged_usd,
            iccid: order.iccid,
            smdp_address: order.smdp_address,
            matching_id: order.matching_id,
            lpa_url: order.lpa_string,
            qr_code: order.qr_code_url,
            install_url: order.install_url,
        },
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Purchase)]
pub struct PurchaseView {
    #[schema(example = true)]
    success: bool,
    #[schema(example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    order_id: String,
    #[serde(flatten)]
    #[schema(inline)]
    bought: BoughtView,
    /// What the wallet holds now.
    balance: Money,
}

/// Buy an eSIM
///
/// Takes the price from the wallet and answers with the activation code. Send an `Idempotency-Key`: the same key and
/// body again is the same order, for ever, and is charged once. When the supplier takes long the answer is 202 with
/// `status` PROCESSING; the order goes on, and the list of orders shows how it ends. When the wallet is short, 402: its
/// `error` names a page where the missing money can be paid in.
#[utoipa::path(post, path = "/api/orders", operation_id = "placeOrder", tag = "orders", request_body = OrderRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "Your own reference: 1 to 128 printable characters",
        min_length = 1, max_length = 128, pattern = "^[\\x20-\\x7E]{1,128}$", example = "order-42")),
    responses(
        (status = 200, description = "Delivered, or the same order again (header Idempotent-Replayed)", body = PurchaseView),
        (status = 202, description = "Paid, and still with the supplier", body = PurchaseView)))]
pub async fn place(
    bearer: Bearer,
    state: State,
    Client(client): Client,
    headers: HeaderMap,
    UntypedJson(body): UntypedJson,
) -> Answer {
    let receipt = buy(&state, &bearer, client, wish(&headers, &body, None)?).await?;
    let listed = orders::of_receipt(&state.app, &receipt).await?;
    let order = view(order_view(&state.app, &listed)?);
    let view = PurchaseView {
        success: true,
        order_id: order.id,
        bought: order.bought,
        balance: Money(receipt.balance),
    };
    purchase_answer(&receipt, &view)
}

#[derive(Serialize, ToSchema)]
#[schema(as = OrderList)]
pub struct OrdersView {
    #[serde(flatten)]
    #[schema(inline)]
    page: PageView,
    /// Newest first.
    orders: Vec<OrderView>,
}

/// Orders
///
/// Every eSIM that was bought, however it was paid for, newest first; also those that are still with the supplier or
/// were given back. Orders that failed are not listed: their money is in the wallet.
#[utoipa::path(get, path = "/api/orders", operation_id = "listOrders", tag = "orders", params(PageQuery),
    responses((status = 200, description = "One page", body = OrdersView)))]
pub async fn list(bearer: Bearer, state: State, query: Query) -> Answer {
    let page = Page::read(query)?;
    let found = orders::history(&state.app, bearer.account, page.number, page.limit).await?;
    let shown: Result<Vec<_>> =
        found.orders.iter().map(|listed| order_view(&state.app, listed).map(view)).collect();
    let view = OrdersView { page: page.view(found.total), orders: shown? };
    uncached(json(StatusCode::OK, &view))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Cancelled)]
pub struct CancelledView {
    #[schema(example = true)]
    success: bool,
    #[schema(example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    order_id: String,
    /// CANCELLED, or CANCELLING while the supplier has not answered; COMPLETED after the cancel was withdrawn.
    status: StatusWord,
    /// What came back to the wallet; 0 while the supplier has not answered.
    refunded: Money,
    /// What the wallet holds now.
    balance: Money,
}

/// Cancel an order
///
/// Possible until the eSIM is installed, used or topped up; the supplier decides, and then the full price is back in
/// the wallet. 202 when the supplier has not answered: the cancel goes on. Takes no body. With an `Idempotency-Key` the
/// same cancel again has the same answer.
#[utoipa::path(post, path = "/api/orders/{id}/cancel", operation_id = "cancelOrder", tag = "orders",
    params(("id" = String, Path, description = "The order's id", example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U"),
        ("Idempotency-Key" = Option<String>, Header, description = "Your own reference: 1 to 128 printable characters",
        min_length = 1, max_length = 128, pattern = "^[\\x20-\\x7E]{1,128}$", example = "cancel-42")),
    responses(
        (status = 200, description = "Cancelled and refunded", body = CancelledView),
        (status = 202, description = "The supplier has not answered yet", body = CancelledView)))]
pub async fn cancel(
    bearer: Bearer,
    state: State,
    Segment(id): Segment,
    headers: HeaderMap,
    OptionalUntyped(body): OptionalUntyped,
) -> Answer {
    body.require_only(&["source"])?;
    let key = idempotency_key(&headers)?;
    let outcome = cancel::cancel_once(&state.app, bearer.account, &order_id(id)?, key).await?;
    let open = outcome.order.status == OrderStatus::Cancelling;
    Ok(marked(uncached(done_or_open(open, &cancelled(&outcome)))?, outcome.replayed))
}

fn cancelled(outcome: &Outcome) -> CancelledView {
    CancelledView {
        success: true,
        order_id: outcome.order.id.to_string(),
        status: StatusWord::from(outcome.order.status),
        refunded: Money(outcome.refunded),
        balance: Money(outcome.balance),
    }
}

/// Keep an eSIM after all
///
/// Takes a cancel back while people at the supplier decide about it, which takes days at some suppliers: the order is
/// COMPLETED again, with its activation code. Nothing is charged or given back, and it cannot be cancelled again. Asking
/// twice has the same answer.
#[utoipa::path(delete, path = "/api/orders/{id}/cancel", operation_id = "withdrawCancel", tag = "orders",
    params(("id" = String, Path, description = "The order's id", example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses((status = 200, description = "The order is kept", body = CancelledView)))]
pub async fn withdraw_cancel(bearer: Bearer, state: State, Segment(id): Segment) -> Answer {
    let kept = withdraw::withdraw(&state.app, bearer.account, &order_id(id)?).await?;
    uncached(json(StatusCode::OK, &cancelled(&kept)))
}
