//! Orders, top-ups, plans and usage as every door shows them, and a page of an account's orders.

use axum::http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::answers::{Answer, json};
use super::details::DetailsView;
use super::fields::{ICCID_RULE, Query, REFERENCE_CHARS, listed, named_iccid};
use super::wire::{EsimStatusWord, Money, OrderStatusWord, PlanTypeWord, gigabytes, iso, iso_exact};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::order::OrderStatus;
use crate::domain::plan::{Plan, PlanType};
use crate::error::Result;
use crate::ops::install;
use crate::ops::orders::{self, ListQuery, Listed};
use crate::ops::usage::Report;
use crate::wire::esims::{percent_used, remaining_gb};
use crate::wire::orders::OrderFacts;
pub use crate::wire::orders::{FailureView, RefundableView, TopUpOrderView, topup_view};

/// An opaque place in a list. Lists walk by a number that never changes, so new rows do not shift a page.
pub fn cursor(number: i64) -> String {
    format!("c{number}")
}

pub fn parse_cursor(text: &str) -> Option<i64> {
    text.strip_prefix('c')?.parse().ok().filter(|number| *number > 0)
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct OrdersQuery {
    #[param(minimum = 1, maximum = 1000000000, default = 1, example = 1)]
    page: Option<i64>,
    #[param(minimum = 1, maximum = 100, default = 20, example = 20)]
    limit: Option<i64>,
    #[param(pattern = "^[0-9]{19,20}$", example = "8901234567890123455")]
    iccid: Option<String>,
    /// Every order that used this reference, in any state.
    #[param(rename = "partnerRefId", max_length = 128, pattern = "printable", example = "booking-1001")]
    partner_ref_id: Option<String>,
    #[param(inline, value_type = Option<OrderStatusWord>, example = "FULFILLED")]
    status: Option<String>,
    /// Only orders placed at or after this time.
    #[param(format = DateTime, example = "2026-01-01T00:00:00.000Z")]
    from: Option<String>,
    /// Only orders placed before this time.
    #[param(format = DateTime, example = "2026-02-01T00:00:00.000Z")]
    to: Option<String>,
    /// A place in the list that does not shift while orders arrive; the `Link` header holds the next one.
    #[param(pattern = "^c[1-9][0-9]{0,17}$", example = "c20")]
    after: Option<String>,
}

/// A page of an account's orders, for partners and users alike; `base` is the URL of the list.
pub async fn orders_page(app: &App, account: AccountNo, mut query: Query, base: &str) -> Answer {
    let statuses = listed(OrderStatus::ALL.map(OrderStatus::as_str));
    let wanted = ListQuery {
        page: query.whole("page", 1, 1_000_000_000).unwrap_or(1),
        limit: query.whole("limit", 1, 100).unwrap_or(20),
        after: query.take("after", "must be the place that a Link header gave", parse_cursor),
        iccid: query.take("iccid", ICCID_RULE, named_iccid),
        reference: query.text("partnerRefId", REFERENCE_CHARS),
        status: query.take("status", format_args!("must be one of {statuses}"), |text| {
            OrderStatus::parse(&text.to_ascii_uppercase())
        }),
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
    for (name, value) in [
        ("iccid", wanted.iccid.clone()),
        ("partnerRefId", wanted.reference.clone()),
        ("status", wanted.status.map(|status| status.as_str().to_string())),
        ("from", wanted.from.map(iso_exact)),
        ("to", wanted.to.map(iso_exact)),
    ] {
        if let Some(value) = value {
            link.append_pair(name, &value);
        }
    }
    link.finish().replacen("?&", "?", 1)
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
    #[serde(flatten)]
    #[schema(inline)]
    pub details: DetailsView,
}

impl From<&Plan> for PlanView {
    fn from(plan: &Plan) -> PlanView {
        PlanView { details: plan.into(), ..PlanView::without_details(plan) }
    }
}

impl PlanView {
    pub fn without_details(plan: &Plan) -> PlanView {
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
            details: DetailsView::default(),
        }
    }
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
    /// 18 to 20 digits; null until the eSIM is delivered.
    #[schema(required = true, example = "8901234567890123455")]
    pub iccid: Option<String>,
    #[schema(example = "JP-5GB-30D")]
    pub package_code: String,
    #[schema(example = "Japan 5 GB 30 days")]
    pub plan_name: String,
    /// What was charged for it.
    pub charged_usd: Money,
    /// An image of the activation code, to be scanned. It says "being prepared" until the eSIM is delivered.
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

pub fn order_view(app: &App, listed: &Listed) -> Result<OrderView> {
    let Listed { order, topups } = listed;
    let activation = install::activation(app, order)?;
    let order_no = app.numbers.of_order(order).unwrap_or_default();
    let facts = OrderFacts::of(order, order_no, topups, app.now());
    Ok(OrderView {
        id: facts.id,
        partner_ref_id: facts.partner_ref_id,
        order_no: facts.order_no,
        status: facts.status,
        iccid: facts.iccid,
        package_code: facts.package_code,
        plan_name: facts.plan_name,
        charged_usd: facts.charged_usd,
        qr_code_url: install::qr_url(app, &order.id),
        install_url: install::page_url(app, &order.id),
        smdp_address: activation.as_ref().map(|a| a.smdp_address.clone()),
        matching_id: activation.as_ref().map(|a| a.matching_id.clone()),
        lpa_string: activation.as_ref().map(|a| a.lpa_string()),
        created_at: facts.created_at,
        refundable: facts.refundable,
        top_ups: facts.top_ups,
        failure: facts.failure,
    })
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
    #[schema(example = "8901234567890123455")]
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
    UsageView {
        success: true,
        iccid: iccid.into(),
        status: EsimStatusWord(usage.status()),
        total_gb: gigabytes(usage.total_mb),
        used_gb: gigabytes(usage.used_mb),
        remaining_gb: remaining_gb(usage),
        percent_used: percent_used(usage),
        as_of: iso(usage.as_of),
        expires_at: usage.expires_at.map(iso),
        stale: report.stale,
    }
}
