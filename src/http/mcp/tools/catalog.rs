//! Searching what is on sale, by the same search as `/api/products/search`.

use serde::Serialize;
use utoipa::ToSchema;

use super::{MOST_BYTES, READS, Tool};
use crate::error::Result;
use crate::http::kit::catalog::products::{MOST_CHARS, MOST_SHOWN, ProductView, SHOWN};
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema::{self, number, text};
use crate::http::mcp::search_cache::SEARCH;

// Results are put together from prepared pieces; this type describes them.
/// Plans that answer a search.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CatalogView {
    /// How many plans match, shown or not.
    #[schema(minimum = 0)]
    total_count: usize,
    /// Best first, as the tool says; fewer than asked for when they are long.
    plans: Vec<ProductView<'static>>,
    /// When nothing was found: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message: Option<String>,
    /// When no place was recognised: up to three places with a name that is near, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    did_you_mean: Option<Vec<String>>,
}

pub fn search() -> Tool {
    Tool {
        name: SEARCH,
        title: "Search eSIM plans",
        description: "Finds travel eSIM data plans on sale for a destination, with retail prices in USD. \
            Use it to answer what is available or what it costs, and to get the packageCode that get_checkout_url and \
            purchase_esim_with_wallet need. Understands country names, ISO codes, regions, several places at once, \
            data amounts, days and price limits, also misspelt, for example \"Japan and Korea 5GB 30 days under $20\". \
            Plans for just that destination come first, then wider ones; among these the nearest size and time, then the \
            cheapest gigabyte, or the lowest price if you write \"cheapest\". Fewer than limit come when they are long. When \
            nothing is found, message says why and didYouMean names places that are near. Needs no login and changes nothing. \
            For more data on an eSIM the customer already has, use get_topup_packages instead.",
        hints: READS,
        input: schema::input(
            [
                (
                    "countryCode",
                    text(
                        "Destination in plain words: name, country code or keywords, with size, days or price if wanted. Without it: featured plans.",
                        MOST_CHARS,
                    ),
                ),
                ("limit", number("How many plans to show.", 1, MOST_SHOWN as i64, SHOWN as i64)),
            ],
            &[],
        )
        .also_called("country", "countryCode"),
        output: schema::results([schema::of::<CatalogView>()]),
        run: |call| Box::pin(run(call)),
    }
}

async fn run(call: Call) -> Result<Output> {
    let mut fields = call.fields()?;
    let text = fields.free_text("countryCode", MOST_CHARS);
    let limit = fields.whole("limit", 1, MOST_SHOWN as i64).map_or(SHOWN, |limit| limit as usize);
    fields.finish()?;
    let text = text.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let products = call.state.catalog.products().await?;
    Output::of_text(products.list(text, limit, MOST_BYTES))
}
