//! A purchase as an agent sees it: the order record, whether it was paid on a chain or from the wallet, and the list
//! of orders. The invoice id is the key to a checkout's record; a token that is sent with it must own it.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::domain::checkout::{Checkout, Stage};
use crate::domain::coupon::Applied;
use crate::domain::ids::InvoiceId;
use crate::domain::money::Usd;
use crate::domain::order::Order;
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json, uncached};
use crate::http::kit::auth::{Bearer, MaybeBearer};
use crate::http::kit::fields::{Query, Segment, invoice_id, order_id};
use crate::http::kit::orders::{OrdersQuery, OrdersView, orders_page};
use crate::http::kit::payment::{Asked, PaymentDueView, after_payment, instructions, payment_due};
use crate::http::kit::wire::{Money, OrderStatusWord, StageWord, gigabytes, iso};
use crate::ops::checkout::progress::{self, Progress};
use crate::ops::{deposits, install, owned};

/// The plan of a purchase.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PurchasedPlan)]
pub struct PurchasedPlanView {
    #[schema(example = "JP-1GB-7D")]
    pub package_code: String,
    #[schema(example = "Japan 1 GB 7 days")]
    pub name: String,
    #[schema(example = 1.0, minimum = 0)]
    pub data_amount_gb: f64,
    #[schema(example = 7, minimum = 1)]
    pub duration_days: i64,
    /// The retail price, before any discount.
    pub base_price_usd: Money,
}

impl PurchasedPlanView {
    pub fn asked_by(checkout: &Checkout) -> PurchasedPlanView {
        PurchasedPlanView {
            package_code: checkout.package_code.clone(),
            name: checkout.plan_name.clone(),
            data_amount_gb: gigabytes(checkout.data_mb),
            duration_days: checkout.duration_days,
            base_price_usd: Money(checkout.list_price),
        }
    }

    fn bought_by(order: &Order) -> PurchasedPlanView {
        PurchasedPlanView {
            package_code: order.package_code.clone(),
            name: order.plan_name.clone(),
            data_amount_gb: gigabytes(order.data_mb),
            duration_days: order.duration_days,
            base_price_usd: Money(order.charge().list_price()),
        }
    }
}

/// A coupon on a purchase.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PurchaseCoupon)]
pub struct CouponView {
    #[schema(example = "SUMMER")]
    pub code: String,
    /// What it takes off the retail price.
    pub discount_usd: Money,
}

impl From<&Applied> for CouponView {
    fn from(applied: &Applied) -> CouponView {
        CouponView { code: applied.code.clone(), discount_usd: Money(applied.discount) }
    }
}

/// What is needed to install the eSIM.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PurchasedEsim)]
pub struct EsimView {
    #[schema(example = "8901234567890123455")]
    pub iccid: String,
    /// The activation code: `LPA:1$`, the SM-DP+ address, `$`, the matching id.
    #[schema(example = "LPA:1$smdp.sim.example$SIM-0123")]
    pub lpa_string: String,
    /// An image of the activation code, to be scanned.
    #[schema(format = "uri")]
    pub qr_code_url: String,
    #[schema(example = "smdp.sim.example")]
    pub smdp_address: String,
    pub matching_id: String,
    /// A page that helps with the installation.
    #[schema(format = "uri")]
    pub install_url: String,
}

/// Money that was given back.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Refund)]
pub struct RefundView {
    pub amount_usd: Money,
    /// Where it is now: always WALLET.
    #[schema(example = "WALLET")]
    pub to: &'static str,
}

/// Money that is owed to a guest's invoice.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Owed)]
pub struct OwedView {
    pub amount_usd: Money,
    /// The page where the holder of the invoice can claim it to a wallet, once.
    #[schema(format = "uri")]
    pub claim_url: String,
}

/// A purchase and how it stands.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderRecord)]
pub struct OrderRecordView {
    #[schema(example = true)]
    pub success: bool,
    /// PENDING_PAYMENT: not paid, or seen and not final (`confirmations` above 0). EXPIRED: not paid in time; until
    /// `lateUntil` a payment still counts. FAILED: not delivered, and the money is in the wallet, or owed to a guest.
    pub status: StageWord,
    /// Of a checkout; a purchase from the wallet has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub invoice_id: Option<String>,
    #[schema(example = "SG4K7M2Q9XTB")]
    pub order_ref: String,
    /// Once it is paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub order_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub order_status: Option<OrderStatusWord>,
    /// Of a top-up: the order whose eSIM it fills.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub esim_order_id: Option<String>,
    pub plan: PurchasedPlanView,
    /// Only with a coupon: what it takes off `plan.basePriceUsd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub coupon: Option<CouponView>,
    /// Of a checkout: what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub payment: Option<PaymentDueView>,
    /// Once it is delivered, until its activation code is forgotten; a top-up has nothing to install.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub esim: Option<EsimView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub refund: Option<RefundView>,
    /// Of a guest's checkout: what can be claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub owed: Option<OwedView>,
    /// What to do next, for people and agents.
    pub instructions: String,
    /// Of the payment; its own block counts as 1.
    #[schema(example = 3, minimum = 0)]
    pub confirmations: i64,
    #[schema(example = 12, minimum = 0)]
    pub required_confirmations: i64,
    /// The transaction that pays for it, once it was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tx_hash: Option<String>,
    /// Of a purchase from the wallet: the balance now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub balance_usd: Option<Money>,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub created_at: String,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub updated_at: String,
    /// Until when a late payment of a checkout still counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub late_until: Option<String>,
}

/// The record of a checkout.
pub fn of_checkout(app: &App, progress: &Progress) -> Result<OrderRecordView> {
    let Progress { checkout, order, stage, required_confirmations, .. } = progress;
    let paid_by = progress.payment();
    let refund = progress.refunded();
    let owed = Some(progress.owed).filter(|owed| owed.is_positive()).map(|owed| OwedView {
        amount_usd: Money(owed),
        claim_url: deposits::checkout_url(app, &checkout.id),
    });
    let updated_at =
        order.as_ref().map_or(checkout.updated_at, |order| order.updated_at.max(checkout.updated_at));
    Ok(OrderRecordView {
        success: true,
        status: StageWord(*stage),
        invoice_id: Some(checkout.id.to_string()),
        order_ref: app.numbers.of_checkout(checkout),
        order_id: order.as_ref().map(|order| order.id.to_string()),
        order_status: order.as_ref().map(|order| OrderStatusWord(order.status)),
        esim_order_id: checkout.esim_order.as_ref().map(ToString::to_string),
        plan: PurchasedPlanView::asked_by(checkout),
        coupon: checkout.coupon.as_ref().map(CouponView::from),
        payment: Some(payment_due(app, Asked::from(progress))?),
        esim: order
            .as_ref()
            .filter(|order| !order.id.is_topup())
            .map_or(Ok(None), |order| esim(app, order))?,
        refund: refund.map(|amount| RefundView { amount_usd: Money(amount), to: "WALLET" }),
        owed,
        instructions: instructions(app, progress),
        confirmations: progress.confirmations(),
        required_confirmations: *required_confirmations,
        tx_hash: paid_by.map(|payment| payment.transfer.id.tx_hash.clone()),
        balance_usd: None,
        created_at: iso(checkout.created_at),
        updated_at: iso(updated_at),
        late_until: Some(iso(checkout.late_until)),
    })
}

/// The record of an order that was paid from the wallet.
pub fn of_order(app: &App, order: &Order, balance: Option<Usd>) -> Result<OrderRecordView> {
    let stage = Stage::of_order(order.status);
    let refund = (stage == Stage::Failed).then(|| order.given_back());
    Ok(OrderRecordView {
        success: true,
        status: StageWord(stage),
        invoice_id: None,
        order_ref: app.numbers.of_order(order).unwrap_or_default(),
        order_id: Some(order.id.to_string()),
        order_status: Some(OrderStatusWord(order.status)),
        esim_order_id: None,
        plan: PurchasedPlanView::bought_by(order),
        coupon: order.coupon.as_ref().map(CouponView::from),
        payment: None,
        esim: esim(app, order)?,
        refund: refund.map(|amount| RefundView { amount_usd: Money(amount), to: "WALLET" }),
        owed: None,
        instructions: after_payment(stage),
        confirmations: 0,
        required_confirmations: 0,
        tx_hash: None,
        balance_usd: balance.map(Money),
        created_at: iso(order.created_at),
        updated_at: iso(order.updated_at),
        late_until: None,
    })
}

fn esim(app: &App, order: &Order) -> Result<Option<EsimView>> {
    let (Some(esim), Some(activation)) = (&order.esim, install::activation(app, order)?) else {
        return Ok(None);
    };
    Ok(Some(EsimView {
        iccid: esim.iccid.clone(),
        lpa_string: activation.lpa_string(),
        qr_code_url: install::qr_url(app, &order.id),
        smdp_address: activation.smdp_address,
        matching_id: activation.matching_id,
        install_url: install::page_url(app, &order.id),
    }))
}

/// One purchase
///
/// A checkout by its invoice id, which is the key to it: no token is needed, and one that is sent must own it. A
/// purchase from the wallet by its order id, with its owner's token.
#[utoipa::path(get, path = "/api/agentic/order/{invoiceId}", operation_id = "getPurchase", tag = "checkout",
    params(("invoiceId" = String, Path, description = "The checkout's invoice id, or an order id", example = "inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    security((), ("token" = [])),
    responses((status = 200, description = "The purchase as it stands", body = OrderRecordView)))]
pub async fn get(MaybeBearer(holder): MaybeBearer, state: State, Segment(id): Segment) -> Answer {
    let owner = holder.map(|holder| holder.account);
    if id.starts_with(InvoiceId::PREFIX) {
        let progress = progress::show(&state.app, &invoice_id(id)?, owner).await?;
        return uncached(json(StatusCode::OK, &of_checkout(&state.app, &progress)?));
    }
    let not_found = Refusal::InvoiceNotFound;
    let id = order_id(id).map_err(|_| not_found.clone())?;
    let order = owned::order(&state.app, owner.ok_or(Refusal::TokenRequired)?, &id).await?;
    if order.id.is_topup() {
        return Err(not_found.into());
    }
    uncached(json(StatusCode::OK, &of_order(&state.app, &order, None)?))
}

/// Orders
///
/// Delivered and cancelled orders, newest first; with `status` every state.
#[utoipa::path(get, path = "/api/agentic/orders", operation_id = "listPurchases", tag = "wallet", params(OrdersQuery),
    responses((status = 200, description = "One page of orders", body = OrdersView)))]
pub async fn list(bearer: Bearer, state: State, query: Query) -> Answer {
    let base = format!("{}/api/agentic/orders", state.app.settings.agent_url);
    uncached(orders_page(&state.app, bearer.account, query, &base).await)
}
