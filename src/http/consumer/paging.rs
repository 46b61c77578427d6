//! Pages of a list, as the tools count them.

use utoipa::IntoParams;

use crate::domain::refusal::Refusal;
use crate::http::kit::fields::Query;

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct PageQuery {
    /// Counted from 1; the newest entries come first.
    #[param(minimum = 1, maximum = 1000000, default = 1, example = 1)]
    page: Option<i64>,
    #[param(minimum = 1, maximum = 100, default = 20, example = 20)]
    limit: Option<i64>,
}

/// Which page, and how many entries it has.
pub fn read(mut query: Query) -> Result<(i64, i64), Refusal> {
    let page = query.whole("page", 1, 1_000_000).unwrap_or(1);
    let limit = query.whole("limit", 1, 100).unwrap_or(20);
    query.finish()?;
    Ok((page, limit))
}
