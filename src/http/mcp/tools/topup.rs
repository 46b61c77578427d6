//! More data on an eSIM that the customer has: what fits it, and buying one.

use serde::Serialize;
use utoipa::ToSchema;

use super::buying::{self, Sold};
use super::{BUYS, READS, Tool};
use crate::domain::order::OrderStatus;
use crate::error::Result;
use crate::http::kit::fields::{self, ID_CHARS, REFERENCE_CHARS};
use crate::http::kit::orders::{PlanView, TopUpOrderView, topup_view};
use crate::http::kit::wire::Money;
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema::{self, order_id, text, token};
use crate::ops::buying::{Fills, Wish};
use crate::ops::orders::Receipt;
use crate::ops::topups;

const PURCHASE: &str = "purchase_topup";

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PackagesView {
    order_id: String,
    iccid: String,
    /// Cheapest first; priceUsd is what the customer pays.
    packages: Vec<PackageView>,
}

/// A package by both sets of names: those of orders, and those of the catalog.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PackageView {
    #[serde(flatten)]
    plan: PlanView,
    /// As dataAmountGb.
    #[schema(minimum = 0)]
    data_amount: f64,
    /// Always GB.
    data_unit: &'static str,
    /// As durationDays.
    #[schema(minimum = 1)]
    duration: i64,
    /// As priceUsd.
    retail_price: Money,
}

impl From<PlanView> for PackageView {
    fn from(plan: PlanView) -> PackageView {
        PackageView {
            data_amount: plan.data_amount_gb,
            data_unit: "GB",
            duration: plan.duration_days,
            retail_price: plan.price_usd,
            plan,
        }
    }
}

pub fn packages() -> Tool {
    Tool {
        name: "get_topup_packages",
        title: "List top-ups for an eSIM",
        description: "Lists the data packages that can be added to one eSIM the customer already has, cheapest first, with \
            what the customer pays in USD. Use it when the customer wants more data or days without installing anything, \
            and to get the packageCode that purchase_topup needs. Fails with ESIM_NOT_ACTIVE when the eSIM is expired or \
            cancelled: then offer a new one from get_esim_catalog. Needs a login and changes nothing. It does not list new \
            eSIMs; that is get_esim_catalog.",
        hints: READS,
        input: schema::input([order_id(), token()], &["orderId"]),
        output: schema::results([schema::of::<PackagesView>()]),
        run: |call| Box::pin(list(call)),
    }
}

async fn list(call: Call) -> Result<Output> {
    let holder = call.login().await?;
    let mut fields = call.fields()?;
    let id = fields.required_text("orderId", ID_CHARS);
    fields.finish()?;
    let id = fields::order_id(id)?;
    let fills = Fills::Order(id.clone());
    let (iccid, plans) = topups::plans(call.app(), holder.account, &fills, &holder.price_list).await?;
    let packages = plans.iter().map(|plan| PlanView::from(plan).into()).collect();
    Output::of(&PackagesView { order_id: id.to_string(), iccid, packages })
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ToppedUpView {
    /// Always true: the top-up exists and is paid for.
    #[schema(example = true)]
    purchased: bool,
    top_up_order: TopUpOrderView,
    /// What the wallet holds now.
    balance_usd: Money,
    /// True when this is the result of an earlier call with the same idempotencyKey.
    replayed: bool,
    message: &'static str,
}

pub fn purchase() -> Tool {
    let code = text("packageCode of a package from get_topup_packages for this order.", 64);
    Tool {
        name: PURCHASE,
        title: "Top up an eSIM from the wallet",
        description: "Adds a data package to an eSIM the customer already has and pays for it at once from the wallet; \
            nothing has to be installed again. Use it when a logged-in customer has agreed to a package from \
            get_topup_packages and its price. It spends real money and cannot be taken back; after it the order cannot be \
            cancelled. Without dryRun every call without an idempotencyKey is a new purchase, so send one, and repeat it if \
            the connection breaks. When the wallet holds too little nothing is charged: purchased is false and magicLink is \
            a page where the customer can pay in. For a first or another eSIM use purchase_esim_with_wallet.",
        hints: BUYS,
        input: schema::strict_input(
            [order_id(), ("packageCode", code), token()],
            &["orderId", "packageCode"],
        ),
        output: buying::results(schema::of::<ToppedUpView>()),
        run: |call| Box::pin(run(call)),
    }
}

async fn run(call: Call) -> Result<Output> {
    let holder = call.login().await?;
    let mut fields = call.fields()?;
    let id = fields.required_text("orderId", ID_CHARS);
    let package_code = fields.package_code();
    let key = fields.text("idempotencyKey", REFERENCE_CHARS);
    let dry_run = fields.truth("dryRun");
    fields.finish()?;
    let fills = Some(Fills::Order(fields::order_id(id)?));
    let wish = Wish { package_code, fills, reference: key, ..Wish::default() };
    match buying::sell(&call, &holder, PURCHASE, wish, dry_run).await? {
        Sold::Order(receipt, settled) => topped_up(&receipt)?.with_receipt(settled.as_ref()),
        Sold::Shown(output) => Ok(output),
    }
}

/// A top-up that exists.
fn topped_up(receipt: &Receipt) -> Result<Output> {
    Output::of(&ToppedUpView {
        purchased: true,
        top_up_order: topup_view(&receipt.order),
        balance_usd: Money(receipt.balance),
        replayed: receipt.replayed,
        message: match receipt.order.status {
            OrderStatus::Provisioning => {
                "It is paid for and being added. Look at topUps of the order in get_user_orders in a minute."
            }
            OrderStatus::Fulfilled
            | OrderStatus::Failed
            | OrderStatus::Cancelling
            | OrderStatus::Cancelled => "The data was added to the eSIM; nothing has to be installed.",
        },
    })
}
