//! Whether a coupon is good for a plan, and what the plan then costs.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::refusal::Refusal;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json, uncached};
use crate::http::kit::auth::Bearer;
use crate::http::kit::fields::{CODE_CHARS, Fields, UntypedJson};
use crate::http::kit::wire::{Money, iso};
use crate::ops::{catalog, coupons};

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct CouponRequest {
    /// In any case.
    #[schema(max_length = 64, pattern = "printable", example = "SUMMER")]
    code: String,
    #[schema(max_length = 64, pattern = "printable", example = "JP-1GB-7D")]
    package_code: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Coupon)]
pub struct CouponView {
    #[schema(example = true)]
    success: bool,
    /// Always true; a code that is not good is 422.
    #[schema(example = true)]
    valid: bool,
    code: String,
    #[schema(example = "JP-1GB-7D")]
    package_code: String,
    description: String,
    #[schema(example = "USD")]
    currency: &'static str,
    retail_price: Money,
    /// What it takes off.
    discount: Money,
    /// What is left to pay.
    final_price: Money,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    ends_at: Option<String>,
}

/// Check a coupon
///
/// What a plan costs with this code. Nothing is reserved: name the code again in the order. Affiliates' codes are not
/// confirmed here, and work in an order.
#[utoipa::path(post, path = "/api/discount/validate", operation_id = "validateCoupon", tag = "products",
    request_body = CouponRequest,
    responses((status = 200, description = "The code is good for this plan", body = CouponView)))]
pub async fn validate(bearer: Bearer, state: State, UntypedJson(body): UntypedJson) -> Answer {
    let mut fields = Fields::parse(&body)?;
    let code = fields.required_text("code", CODE_CHARS);
    let package_code = fields.package_code();
    fields.finish()?;
    let plan = catalog::find(&state.app, &package_code).ok_or(Refusal::PlanNotFound)?;
    let quote = coupons::validate(&state.app, bearer.account, &code, &plan).await?;
    uncached(json(
        StatusCode::OK,
        &CouponView {
            success: true,
            valid: true,
            code: quote.code,
            package_code,
            description: quote.description,
            currency: "USD",
            retail_price: Money(quote.list_price),
            discount: Money(quote.discount),
            final_price: Money(quote.price),
            ends_at: quote.ends_at.map(iso),
        },
    ))
}
