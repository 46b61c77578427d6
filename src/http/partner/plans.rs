//! What a partner can buy, at its prices. Answers come from `kit/catalog/shelves.rs`.

use axum::http::HeaderMap;
use serde::Serialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::domain::plan::PlanType;
use crate::domain::search;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Partner;
use crate::http::kit::catalog::shelves::Wanted;
use crate::http::kit::fields::{Query, listed};
use crate::http::kit::orders::PlanView;

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct PlansQuery {
    /// Two-letter ISO 3166 code, in any case: only plans that work there. A code of no country is refused.
    #[param(pattern = "^[A-Za-z]{2}$", example = "JP")]
    country: Option<String>,
    /// `BASE` is a new eSIM, `TOPUP` more data on an existing one.
    #[param(inline, value_type = Option<PlanTypeOrBase>, example = "BASE")]
    r#type: Option<String>,
    /// Words that must all occur in name, code, operator or country names.
    #[param(max_length = 128, pattern = "printable", example = "japan 5")]
    query: Option<String>,
    /// With `page` or `limit` the list is cut into pages; without them it is whole.
    #[param(minimum = 1, maximum = 1000000, example = 1)]
    page: Option<i64>,
    #[param(minimum = 1, maximum = 1000, example = 20)]
    limit: Option<i64>,
}

/// Plans
///
/// What can be bought, at your wholesale price. Send the `ETag` back as `If-None-Match` to learn cheaply that nothing changed.
#[utoipa::path(get, path = "/api/b2b/v1/plans", operation_id = "listPlans", tag = "plans", params(PlansQuery),
    responses(
        (status = 200, description = "Plans on sale", body = PlansView),
        (status = 304, description = "The list is the one whose ETag was sent")))]
pub async fn plans(partner: Partner, state: State, query: Query, headers: HeaderMap) -> Answer {
    let mut query = query.strictly();
    let country = country(&mut query);
    let types = listed(PlanType::ALL.map(PlanType::as_str));
    let plan_type = query.take("type", format_args!("must be one of {types}"), |text| {
        PlanType::parse(&text.to_ascii_uppercase())
    });
    let plan_type = plan_type.unwrap_or(PlanType::Base);
    let words = query.text("query", 128);
    let (page, limit) = (query.whole("page", 1, 1_000_000), query.whole("limit", 1, 1000));
    query.finish()?;
    let page = (page.is_some() || limit.is_some()).then(|| (page.unwrap_or(1), limit.unwrap_or(1000)));
    let shelves = state.catalog.shelves().await?;
    let shelf = shelves.get(&partner.price_list, plan_type).unwrap_or(&state.catalog.empty_shelf);
    Ok(shelf.answer(&Wanted { country, query: words, page }).respond(&headers))
}

/// The code of a country that exists, in capitals.
fn country(query: &mut Query) -> Option<String> {
    let text = query.take("country", "must be a two-letter country code", |text| Some(text.to_string()))?;
    search::country_code(&text).map_err(|wrong| query.wrong("country", wrong)).ok()
}

/// The type of plan to list, with its default.
pub struct PlanTypeOrBase;

impl PartialSchema for PlanTypeOrBase {
    fn schema() -> RefOr<Schema> {
        let words = PlanType::ALL.map(PlanType::as_str);
        let default = serde_json::Value::from(PlanType::Base.as_str());
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).default(Some(default)).into()
    }
}

impl ToSchema for PlanTypeOrBase {}

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
