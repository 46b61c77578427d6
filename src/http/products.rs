//! The catalog search that agents use, at retail prices and without a login. What a text means is decided in
//! `domain::search`, which plans answer in `ops::search`; here the answer is written, and kept while the catalog is
//! the same: many people ask for the same places.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{RawQuery, State as FromState};
use axum::http::HeaderMap;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::State;
use super::auth::Anyone;
use super::fields::Query;
use super::partner::Answer as Reply;
use super::plans::Answer;
use super::wire::{Money, PlanTypeWord, gigabytes};
use crate::domain::country;
use crate::domain::search;
use crate::error::{Error, Result};
use crate::ops::catalog::Snapshot;
use crate::ops::search::{Found, Index};

const MOST_CHARS: usize = 200;
const SHOWN: usize = 50;
const MOST_SHOWN: usize = 200;
/// Answers are kept up to this many bytes; then the memory starts anew.
const REMEMBERED_BYTES: usize = 4 * 1024 * 1024;
/// Longer answers are rare and would drive out the others.
const LONGEST_REMEMBERED: usize = 256 * 1024;

/// One snapshot of the catalog, ready to be searched.
#[derive(Default)]
pub struct Products {
    index: Index,
    /// The countries of each coverage, written once: many plans share them.
    locations: Vec<Locations>,
    remembered: Mutex<Remembered>,
}

struct Locations {
    codes: Box<RawValue>,
    names: Box<RawValue>,
}

/// Answers by the query string that asked for them.
#[derive(Default)]
struct Remembered {
    answers: HashMap<String, Arc<Answer>>,
    bytes: usize,
}

impl Products {
    pub fn prepare(snapshot: Arc<Snapshot>) -> Result<Products> {
        let index = Index::prepare(snapshot);
        let locations = index.coverages().map(Locations::write).collect::<Result<_>>()?;
        Ok(Products { index, locations, remembered: Mutex::default() })
    }

    fn recall(&self, query: &str) -> Option<Arc<Answer>> {
        self.remembered.lock().ok()?.answers.get(query).cloned()
    }

    fn remember(&self, query: &str, answer: &Arc<Answer>) {
        let bytes = answer.len() + query.len();
        let Ok(mut remembered) = self.remembered.lock() else { return };
        if bytes > LONGEST_REMEMBERED {
            return;
        }
        if remembered.bytes + bytes > REMEMBERED_BYTES {
            *remembered = Remembered::default();
        }
        if remembered.answers.insert(query.to_string(), answer.clone()).is_none() {
            remembered.bytes += bytes;
        }
    }

    fn search(&self, text: Option<&str>, limit: usize) -> Result<Answer> {
        let found = match text {
            Some(text) => self.index.find(&search::read(text), limit),
            None => self.index.featured(limit),
        };
        self.write(&found)
    }

    fn write(&self, found: &Found) -> Result<Answer> {
        let mut json =
            format!("{{\"success\":true,\"currency\":\"USD\",\"totalCount\":{},\"plans\":[", found.total)
                .into_bytes();
        for (place, hit) in found.first.iter().enumerate() {
            if place > 0 {
                json.push(b',');
            }
            let (plan, locations) = (self.index.plan(*hit), &self.locations[hit.coverage as usize]);
            let view = ProductView {
                package_code: &plan.code,
                name: &plan.name,
                data_amount: gigabytes(plan.data_mb),
                data_unit: "GB",
                duration: plan.duration_days,
                duration_unit: "DAY",
                retail_price: Money(plan.retail),
                currency: "USD",
                location_codes: &locations.codes,
                location_names: &locations.names,
                operator: &plan.operator,
                plan_type: PlanTypeWord(plan.plan_type),
            };
            serde_json::to_writer(&mut json, &view).map_err(Error::fault)?;
        }
        json.extend_from_slice(b"]}");
        Ok(Answer::new(json))
    }
}

impl Locations {
    fn write(codes: &[String]) -> Result<Locations> {
        let name = |code: &String| country::by_code(code).map_or(code.clone(), |country| country.name.into());
        let names: Vec<String> = codes.iter().map(name).collect();
        let raw = |texts: &[String]| serde_json::value::to_raw_value(texts).map_err(Error::fault);
        Ok(Locations { codes: raw(codes)?, names: raw(&names)? })
    }
}

/// A plan at its retail price.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Product)]
pub struct ProductView<'a> {
    #[schema(example = "JP-5GB-30D")]
    package_code: &'a str,
    #[schema(example = "Japan 5 GB 30 days")]
    name: &'a str,
    #[schema(example = 5.0, minimum = 0)]
    data_amount: f64,
    #[schema(example = "GB")]
    data_unit: &'static str,
    #[schema(example = 30, minimum = 1)]
    duration: i64,
    #[schema(example = "DAY")]
    duration_unit: &'static str,
    retail_price: Money,
    #[schema(example = "USD")]
    currency: &'static str,
    /// Countries covered, as ISO 3166 codes.
    #[schema(value_type = Vec<String>, example = json!(["JP"]))]
    location_codes: &'a RawValue,
    /// The same countries by name, in the same order.
    #[schema(value_type = Vec<String>, example = json!(["Japan"]))]
    location_names: &'a RawValue,
    /// Carrier names.
    #[schema(example = "NTT Docomo / SoftBank")]
    operator: &'a str,
    plan_type: PlanTypeWord,
}

/// Plans that answer a search. Written from prepared pieces; this type describes the result.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ProductList)]
pub struct ProductsView {
    #[schema(example = true)]
    success: bool,
    #[schema(example = "USD")]
    currency: &'static str,
    /// How many plans match, shown or not.
    #[schema(minimum = 0)]
    total_count: usize,
    /// Best first.
    plans: Vec<ProductView<'static>>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct SearchQuery {
    /// A destination in your own words: countries, regions, codes; also how much data, for how long, at which price.
    /// Without it, featured plans.
    #[param(max_length = 200, example = "Spain 10GB 30 days under $20")]
    country: Option<String>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<i64>,
}

/// Search
///
/// Plans for a destination as people write it, at retail prices, best first. No login. Typing errors and extra words
/// do no harm; a text without a known place finds nothing.
#[utoipa::path(get, path = "/api/products/search", operation_id = "searchProducts", tag = "products",
    params(SearchQuery), security(()),
    responses(
        (status = 200, description = "Plans on sale", body = ProductsView, headers(("ETag" = String, description = "Hash of the list"))),
        (status = 304, description = "The list is the one whose ETag was sent")))]
pub async fn search(
    _: Anyone,
    FromState(state): FromState<State>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Reply {
    let asked = query.as_deref().unwrap_or_default();
    let products = state.products.load();
    if let Some(answer) = products.recall(asked) {
        return Ok(answer.respond(&headers));
    }
    let mut query = Query::parse(Some(asked));
    let allowed = format!("must have at most {MOST_CHARS} characters");
    let text = query.take("country", &allowed, |text| {
        (text.chars().count() <= MOST_CHARS).then(|| text.trim().to_string())
    });
    let limit = query.whole("limit", 1, MOST_SHOWN as i64).map_or(SHOWN, |limit| limit as usize);
    query.finish()?;
    // An empty field of a form is no question.
    let text = text.filter(|text| !text.is_empty());
    let answer = Arc::new(products.search(text.as_deref(), limit)?);
    products.remember(asked, &answer);
    Ok(answer.respond(&headers))
}
