//! Pages of a list, as the tools count them.

use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

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
pub struct Page {
    pub number: i64,
    pub limit: i64,
}

/// The same in an answer, beside its entries.
#[derive(Serialize, ToSchema)]
pub struct PageView {
    #[schema(example = true)]
    success: bool,
    #[schema(example = 1, minimum = 1)]
    page: i64,
    #[schema(example = 20, minimum = 1, maximum = 100)]
    limit: i64,
    /// How many there are, on all pages.
    #[schema(minimum = 0)]
    total: i64,
}

impl Page {
    pub fn read(mut query: Query) -> Result<Page, Refusal> {
        let number = query.whole("page", 1, 1_000_000).unwrap_or(1);
        let limit = query.whole("limit", 1, 100).unwrap_or(20);
        query.finish()?;
        Ok(Page { number, limit })
    }

    pub fn view(&self, total: i64) -> PageView {
        PageView { success: true, page: self.number, limit: self.limit, total }
    }
}
