//! Search for agents: no login, retail prices. Answers come from `kit/catalog/products.rs`.

use axum::extract::RawQuery;
use axum::http::HeaderMap;
use utoipa::IntoParams;

use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::catalog::packed::{Encoding, accepted_encoding};
use crate::http::kit::catalog::products::ProductsView;

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct SearchQuery {
    /// A destination in your own words: countries, regions, codes; also how much data, for how long, at which price.
    /// Without it, featured plans.
    #[param(max_length = 200, example = "Japan 1GB 7 days")]
    country: Option<String>,
    #[param(minimum = 1, maximum = 200, default = 10, example = 10)]
    limit: Option<i64>,
}

/// Search
///
/// Plans for a destination as people write it, at retail prices, best first. No login. Typing errors and extra words
/// do no harm. A text without a known place finds nothing; `message` says so, and `didYouMean` names places that are near.
#[utoipa::path(get, path = "/api/products/search", operation_id = "searchProducts", tag = "products",
    params(SearchQuery), security(()),
    responses(
        (status = 200, description = "Plans on sale", body = ProductsView),
        (status = 304, description = "The list is the one whose ETag was sent")))]
pub async fn search(_: Anyone, state: State, RawQuery(query): RawQuery, headers: HeaderMap) -> Answer {
    let query = query.as_deref().unwrap_or_default();
    let products = state.catalog.products().await?;
    let found = products.search(query)?;
    Ok(match accepted_encoding(&headers) {
        Encoding::Plain => products.answer(&found).respond(&headers),
        Encoding::Gzip | Encoding::Brotli => products.packed(query, &found).respond(&headers),
    })
}
