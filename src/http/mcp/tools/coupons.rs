//! Coupons: whether a code is good for a plan, and which codes there are. Affiliates' codes are never shown.

use serde::Serialize;
use utoipa::ToSchema;

use super::{MOST_BYTES, READS, Tool};
use crate::domain::coupon::{Applicability, Discount};
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::kit::fields::CODE_CHARS;
use crate::http::kit::wire::{Money, iso};
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema::{self, package_code, token};
use crate::ops::{catalog, coupons};

/// The most coupons to read: no more would fit, however short they are.
const MOST_COUPONS: i64 = 300;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ValidView {
    /// Always true; an invalid code is the error COUPON_INVALID.
    #[schema(example = true)]
    valid: bool,
    code: String,
    package_code: String,
    description: String,
    list_price_usd: Money,
    discount_usd: Money,
    /// What is left to pay.
    final_price_usd: Money,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    ends_at: Option<String>,
}

pub fn validate() -> Tool {
    let code = schema::text("The coupon code, in any case.", CODE_CHARS);
    Tool {
        name: "validate_coupon",
        title: "Check a coupon",
        description: "Checks whether a coupon code is good for one plan and this customer, and what the plan then costs. Use \
            it when the customer brings a code, before naming a price. It reserves nothing: pass the code as \
            discountCode to purchase_esim_with_wallet or get_checkout_url to apply it. Login is mandatory: without one the \
            result is HTTP 401 and the customer must log in via send_agent_otp first. A code that is unknown, expired or unfitting, \
            or a partner's, gives COUPON_INVALID: one that a partner gave the customer may be good all the same, so try it with \
            purchase_esim_with_wallet and dryRun. Codes with a number of uses per customer do not work behind get_checkout_url. Do \
            not try codes you were not given; guessing is limited. get_available_coupons lists the public ones.",
        hints: READS,
        input: schema::input([("code", code), package_code(), token()], &["code", "packageCode"]),
        output: schema::results([schema::of::<ValidView>()]),
        run: |call| Box::pin(check(call)),
    }
}

async fn check(call: Call) -> Result<Output> {
    let holder = call.login().await?;
    let mut fields = call.fields()?;
    let code = fields.required_text("code", CODE_CHARS);
    let package_code = fields.package_code();
    fields.finish()?;
    let plan = catalog::find(call.app(), &package_code).ok_or(Refusal::PlanNotFound)?;
    let quote = coupons::validate(call.app(), holder.account, &code, &plan).await?;
    Output::of(&ValidView {
        valid: true,
        code: quote.code,
        package_code,
        description: quote.description,
        list_price_usd: Money(quote.list_price),
        discount_usd: Money(quote.discount),
        final_price_usd: Money(quote.price),
        ends_at: quote.ends_at.map(iso),
    })
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CouponView {
    code: String,
    description: String,
    /// `10 %` or `2.50 USD`.
    discount: String,
    /// GENERAL, or MOBILE_APP: good only in the shop's mobile app, not here.
    applicability: &'static str,
    /// Only for this plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    package_code: Option<String>,
    /// Only for plans that cover this country.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    country: Option<String>,
    /// Only for plans from this price on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    min_price_usd: Option<Money>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    ends_at: Option<String>,
    /// Its uses are counted by customer, so the customer must be logged in: good for purchase_esim_with_wallet, and not
    /// behind get_checkout_url. Absent when it is for everybody.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    login_required: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CouponsView {
    /// How many are active, shown or not.
    #[schema(minimum = 0)]
    total_count: i64,
    /// The newest first; not all of them when there are many.
    coupons: Vec<CouponView>,
}

pub fn list() -> Tool {
    Tool {
        name: "get_available_coupons",
        title: "List public coupons",
        description: "Lists the official promotional coupons that are active now, with what each takes off and what it is \
            good for: GENERAL coupons work here, MOBILE_APP ones only in the shop's app, and those with loginRequired only in \
            purchases of a customer who is logged in. Use it when the customer asks for a discount. Never name a code that neither \
            this tool nor the customer has named. The newest come first; totalCount says how many there are. Needs no login and \
            changes nothing. To learn what one makes of a plan's price, use validate_coupon.",
        hints: READS,
        input: schema::input([], &[]),
        output: schema::results([schema::of::<CouponsView>()]),
        run: |call| Box::pin(show(call)),
    }
}

async fn show(call: Call) -> Result<Output> {
    let coupons::CouponOffers { newest, total } = coupons::available(call.app(), MOST_COUPONS).await?;
    let view = |offer: coupons::CouponOffer| CouponView {
        code: offer.code,
        description: offer.description,
        discount: match offer.discount {
            Discount::Percent(percent) => format!("{percent} %"),
            Discount::Fixed(amount) => format!("{amount} USD"),
        },
        applicability: match offer.applicability {
            Applicability::General => "GENERAL",
            Applicability::MobileApp => "MOBILE_APP",
        },
        package_code: offer.package_code,
        country: offer.country,
        min_price_usd: offer.min_price.map(Money),
        ends_at: offer.ends_at.map(iso),
        login_required: offer.login_required,
    };
    let mut shown = Vec::new();
    let mut bytes = 0;
    for coupon in newest.into_iter().map(view) {
        bytes += serde_json::to_string(&coupon).map_err(Error::fault)?.len() + 1;
        if bytes > MOST_BYTES {
            break;
        }
        shown.push(coupon);
    }
    Output::of(&CouponsView { total_count: total, coupons: shown })
}
