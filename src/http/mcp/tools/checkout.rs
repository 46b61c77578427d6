//! A link to the page where a person buys a plan.

use serde::Serialize;
use utoipa::ToSchema;

use super::{READS, Tool};
use crate::error::Result;
use crate::http::kit::fields::CODE_CHARS;
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema::{self, discount_code, package_code};
use crate::ops::{catalog, guests};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LinkView {
    /// Give this to the customer: a page with the plan, its price and how to pay.
    #[schema(format = "uri")]
    checkout_url: String,
}

pub fn link() -> Tool {
    Tool {
        name: "get_checkout_url",
        title: "Make a checkout link",
        description: "Makes a link to a web page where the customer pays for one plan with stablecoins and gets the eSIM, \
            without an account. Use it when the customer wants to pay on their own or does not want to log in. It charges \
            and reserves nothing; the link can be made as often as wanted. To buy at once from the customer's prepaid \
            wallet, use purchase_esim_with_wallet instead. A discountCode is put into the link and checked on the page; \
            to check one beforehand, use validate_coupon.",
        hints: READS,
        input: schema::input([package_code(), discount_code()], &["packageCode"]),
        output: schema::results([schema::of::<LinkView>()]),
        run: |call| Box::pin(run(call)),
    }
}

async fn run(call: Call) -> Result<Output> {
    let mut fields = call.fields()?;
    let code = fields.package_code();
    let discount = fields.filled("discountCode", CODE_CHARS);
    fields.finish()?;
    catalog::require_base(call.app(), &code)?;
    let path = guests::page_path(&code, discount.as_deref());
    let checkout_url = format!("{}{path}", call.app().settings.checkout_url);
    Output::of(&LinkView { checkout_url })
}
