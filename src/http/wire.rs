//! The JSON shapes of the partner API. Money is written as a plain decimal number from its text, times as
//! ISO 8601 UTC with milliseconds. Field names are the contract's; existing clients parse them.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{Number, PartialSchema, ToSchema};

use super::deposits::PaymentStatus;
use crate::app::App;
use crate::domain::checkout::Stage;
use crate::domain::esim::EsimStatus;
use crate::domain::invoice::{InvoiceException, InvoiceStatus};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::order::{self, CancelReason, Order, OrderStatus};
use crate::domain::plan::{Plan, PlanType};
use crate::error::Result;
pub use crate::ops::dates::{iso, iso_exact, parse as parse_time, readable};
use crate::ops::install;
use crate::ops::orders::Listed;
use crate::ops::usage::Report;

/// Dollars as a JSON number with at most six decimals and no binary noise.
#[derive(Clone, Copy, Debug)]
pub struct Money(pub Usd);

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl PartialSchema for Money {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Number)
            .description(Some("US dollars, exact to the micro-dollar"))
            .multiple_of(Some(Number::Float(0.000001)))
            .examples([serde_json::json!(4.49)])
            .into()
    }
}

impl ToSchema for Money {}

/// A word of a closed set that clients may match on: written as text, described as an enum.
macro_rules! vocabulary {
    ($($name:ident $words:ident $schema:literal;)*) => {$(
        #[derive(Clone, Copy)]
        pub struct $name(pub $words);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.0.as_str())
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let words = $words::ALL.iter().map(|word| word.as_str());
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($schema)
            }
        }
    )*};
}

vocabulary! {
    OrderStatusWord OrderStatus "OrderStatus";
    EsimStatusWord EsimStatus "EsimStatus";
    PlanTypeWord PlanType "PlanType";
    CancelReasonWord CancelReason "CancelReason";
    NetworkWord Network "Network";
    CurrencyWord Currency "Currency";
    InvoiceStatusWord InvoiceStatus "DepositStatus";
    InvoiceExceptionWord InvoiceException "DepositException";
    PaymentStatusWord PaymentStatus "PaymentStatus";
    StageWord Stage "PurchaseStatus";
}

/// The type of plan to list, and what is listed when none is named.
pub fn plan_type_or_base() -> RefOr<Schema> {
    let words = PlanType::ALL.map(PlanType::as_str);
    let default = serde_json::Value::from(PlanType::Base.as_str());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).default(Some(default)).into()
}

/// The network to open an invoice on, and which one it is when none is named.
pub fn network_or_base() -> RefOr<Schema> {
    OneOfBuilder::new()
        .item(Ref::from_schema_name(NetworkWord::name()))
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .default(Some(Network::Base.as_str().into()))
        .description(Some("Where the payment will come by"))
        .into()
}

/// Gigabytes from megabytes, to three decimals.
pub fn gigabytes(megabytes: i64) -> f64 {
    (megabytes as f64 / 1024.0 * 1000.0).round() / 1000.0
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Balance)]
pub struct BalanceView {
    #[schema(example = true)]
    pub success: bool,
    #[schema(example = "Demo Travel")]
    pub company_name: String,
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// What can be spent now.
    pub balance_usd: Money,
    /// Charged for orders that the supplier has not delivered yet.
    pub held_usd: Money,
    pub low_balance_threshold: Money,
    pub is_low_balance: bool,
    /// ACTIVE or SUSPENDED: a suspended account can read, but not buy.
    #[schema(example = "ACTIVE")]
    pub status: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Transaction)]
pub struct TransactionView {
    /// Position on the statement, counted from 1.
    #[schema(example = 2, minimum = 1)]
    pub line: i64,
    /// ORDER, TOPUP, FAILED, CANCELLED, REFUND, CREDIT, DEBIT, DEPOSIT, REVERSAL (of a deposit that vanished from its
    /// chain), ASSIGNED (money that was nobody's) or PAYOUT.
    #[schema(example = "ORDER")]
    pub r#type: String,
    /// Positive when money came in.
    pub amount_usd: Money,
    /// The balance after this line.
    pub balance_usd: Money,
    #[schema(required = true)]
    pub order_id: Option<String>,
    /// The invoice that a deposit counts for.
    #[schema(required = true)]
    pub invoice_id: Option<String>,
    /// A note by the operator.
    #[schema(required = true)]
    pub note: Option<String>,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub created_at: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TransactionList)]
pub struct TransactionsView {
    #[schema(example = true)]
    pub success: bool,
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// Newest first.
    pub transactions: Vec<TransactionView>,
    /// Send this as `after` for the next page; null on the last one.
    #[schema(required = true)]
    pub next_after: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Plan)]
pub struct PlanView {
    #[schema(example = "JP-5GB-30D")]
    pub package_code: String,
    #[schema(example = "Japan 5 GB 30 days")]
    pub name: String,
    /// Countries covered, as ISO 3166 codes; base plans only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = json!(["JP"]))]
    pub location_codes: Option<Vec<String>>,
    #[schema(example = 5.0, minimum = 0)]
    pub data_amount_gb: f64,
    #[schema(example = 30, minimum = 1)]
    pub duration_days: i64,
    /// What you pay for it.
    pub price_usd: Money,
    pub plan_type: PlanTypeWord,
    /// Carrier names; base plans only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "NTT Docomo / SoftBank")]
    pub operator: Option<String>,
}

impl From<&Plan> for PlanView {
    fn from(plan: &Plan) -> PlanView {
        let is_base = plan.plan_type == PlanType::Base;
        PlanView {
            package_code: plan.code.clone(),
            name: plan.name.clone(),
            location_codes: is_base.then(|| plan.countries.clone()),
            data_amount_gb: gigabytes(plan.data_mb),
            duration_days: plan.duration_days,
            price_usd: Money(plan.wholesale),
            plan_type: PlanTypeWord(plan.plan_type),
            operator: is_base.then(|| plan.operator.clone()),
        }
    }
}

/// Plans on sale.
// Written from prepared pieces; this type describes the result.
#[derive(Serialize, ToSchema)]
#[schema(as = PlanList)]
pub struct PlansView {
    #[schema(example = true)]
    pub success: bool,
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// How many plans match, on all pages.
    #[schema(minimum = 0)]
    pub total: i64,
    pub plans: Vec<PlanView>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = TopUpPlanList)]
pub struct TopUpPlansView {
    #[schema(example = true)]
    pub success: bool,
    #[schema(example = "8901234567890123452")]
    pub iccid: String,
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// Cheapest first.
    pub plans: Vec<PlanView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Order)]
pub struct OrderView {
    #[schema(example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub id: String,
    /// The caller's reference, as it was sent.
    #[schema(required = true)]
    pub partner_ref_id: Option<String>,
    /// A short reference for people.
    #[schema(example = "SG4K7M2Q9XTB")]
    pub order_no: String,
    pub status: OrderStatusWord,
    /// 19 or 20 digits; null until the eSIM is delivered.
    #[schema(required = true, example = "8901234567890123452")]
    pub iccid: Option<String>,
    #[schema(example = "JP-5GB-30D")]
    pub package_code: String,
    #[schema(example = "Japan 5 GB 30 days")]
    pub plan_name: String,
    /// What was charged for it.
    pub charged_usd: Money,
    /// An image of the activation code, to be scanned. It says "being prepared" until the eSIM is there.
    #[schema(format = "uri")]
    pub qr_code_url: String,
    /// A page that helps with the installation.
    #[schema(format = "uri")]
    pub install_url: String,
    #[schema(required = true, example = "smdp.sim.example")]
    pub smdp_address: Option<String>,
    #[schema(required = true)]
    pub matching_id: Option<String>,
    /// The activation code: `LPA:1$`, the SM-DP+ address, `$`, the matching id.
    #[schema(required = true, example = "LPA:1$smdp.sim.example$SIM-0123")]
    pub lpa_string: Option<String>,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub created_at: String,
    pub refundable: RefundableView,
    pub top_ups: Vec<TopUpOrderView>,
    /// Why the order failed, and what was given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<FailureView>,
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
    #[schema(example = "8901234567890123452")]
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
        partner_ref_id: order.reference.clone(),
        iccid: order.esim.as_ref().map(|esim| esim.iccid.clone()).unwrap_or_default(),
        package_code: order.package_code.clone(),
        charged_usd: Money(order.price),
        status: OrderStatusWord(order.status),
        created_at: iso(order.created_at),
        failure: failure(order),
    }
}

pub fn order_view(app: &App, listed: &Listed) -> Result<OrderView> {
    let Listed { order, topups } = listed;
    let activation = install::activation(app, order)?;
    let esim = order.esim.as_ref();
    let topped_up =
        topups.iter().any(|t| matches!(t.status, OrderStatus::Provisioning | OrderStatus::Fulfilled));
    let usage: Option<EsimStatus> = esim.and_then(|esim| esim.last_usage.as_ref()).map(|usage| usage.status);
    let install_by = esim.and_then(|esim| esim.install_by);
    let refundable = order::refundable(order.status, topped_up, usage, install_by, app.now());
    Ok(OrderView {
        id: order.id.to_string(),
        partner_ref_id: order.reference.clone(),
        order_no: app.numbers.of_order(order).unwrap_or_default(),
        status: OrderStatusWord(order.status),
        iccid: esim.map(|esim| esim.iccid.clone()),
        package_code: order.package_code.clone(),
        plan_name: order.plan_name.clone(),
        charged_usd: Money(order.price),
        qr_code_url: install::qr_url(app, &order.id),
        install_url: install::page_url(app, &order.id),
        smdp_address: activation.as_ref().map(|a| a.smdp_address.clone()),
        matching_id: activation.as_ref().map(|a| a.matching_id.clone()),
        lpa_string: activation.as_ref().map(|a| a.lpa_string()),
        created_at: iso(order.created_at),
        refundable: RefundableView {
            eligible: refundable.is_ok(),
            reason: refundable.err().map(CancelReasonWord),
            until: if refundable.is_ok() { install_by.map(iso) } else { None },
        },
        top_ups: topups.iter().map(topup_view).collect(),
        failure: failure(order),
    })
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

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrderList)]
pub struct OrdersView {
    #[schema(example = true)]
    pub success: bool,
    #[schema(example = 1, minimum = 1)]
    pub page: i64,
    #[schema(example = 20, minimum = 1, maximum = 100)]
    pub limit: i64,
    #[schema(minimum = 0)]
    pub total: i64,
    #[schema(minimum = 0)]
    pub total_pages: i64,
    /// Newest first.
    pub orders: Vec<OrderView>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Usage)]
pub struct UsageView {
    #[schema(example = true)]
    pub success: bool,
    #[schema(example = "8901234567890123452")]
    pub iccid: String,
    pub status: EsimStatusWord,
    #[schema(example = 5.0, minimum = 0)]
    pub total_gb: f64,
    #[schema(example = 1.25, minimum = 0)]
    pub used_gb: f64,
    #[schema(example = 3.75, minimum = 0)]
    pub remaining_gb: f64,
    #[schema(example = 25.0, minimum = 0, maximum = 100)]
    pub percent_used: f64,
    /// When the carrier took this reading.
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub as_of: String,
    #[schema(required = true, format = DateTime)]
    pub expires_at: Option<String>,
    /// True when the carrier did not answer and this is the last known reading.
    pub stale: bool,
}

pub fn usage_view(iccid: &str, report: &Report) -> UsageView {
    let usage = &report.usage;
    let percent = if usage.total_mb > 0 { usage.used_mb as f64 / usage.total_mb as f64 * 100.0 } else { 0.0 };
    UsageView {
        success: true,
        iccid: iccid.into(),
        status: EsimStatusWord(usage.status),
        total_gb: gigabytes(usage.total_mb),
        used_gb: gigabytes(usage.used_mb),
        remaining_gb: gigabytes((usage.total_mb - usage.used_mb).max(0)),
        percent_used: ((percent * 100.0).round() / 100.0).min(100.0),
        as_of: iso(usage.as_of),
        expires_at: usage.expires_at.map(iso),
        stale: report.stale,
    }
}
