//! Buying an eSIM from the customer's wallet.

use serde::Serialize;
use utoipa::ToSchema;

use super::buying::{self, Sold};
use super::{BUYS, Tool};
use crate::domain::order::OrderStatus;
use crate::error::Result;
use crate::http::kit::fields::{CODE_CHARS, REFERENCE_CHARS};
use crate::http::kit::orders::{OrderView, order_view};
use crate::http::kit::wire::Money;
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema::{self, discount_code, package_code, token};
use crate::ops::buying::Wish;
use crate::ops::orders::{self, Receipt};

const NAME: &str = "purchase_esim_with_wallet";

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BoughtView {
    /// Always true: the order exists and is paid for.
    #[schema(example = true)]
    purchased: bool,
    order_id: String,
    order: OrderView,
    /// What the wallet holds now.
    balance_usd: Money,
    /// True when this is the result of an earlier call with the same idempotencyKey.
    replayed: bool,
    /// What to do now.
    message: &'static str,
}

pub fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "Buy an eSIM from the wallet",
        description: "Buys a new eSIM and pays for it at once from the customer's prepaid wallet; the result has the \
            activation code, a QR code link and an install page. Use it when a logged-in customer has agreed to the plan \
            and its price. It spends real money: without dryRun every call without an idempotencyKey is a new purchase, \
            so send one, and repeat it if the connection breaks. When the wallet holds too little nothing is charged: \
            purchased is false and magicLink is a page where the customer can pay the missing amount in; call again \
            afterwards. For more data on an existing eSIM use purchase_topup; for a customer who wants to pay without \
            logging in use get_checkout_url.",
        hints: BUYS,
        input: schema::strict_input([package_code(), token(), discount_code()], &["packageCode"]),
        output: buying::results(schema::of::<BoughtView>()),
        run: |call| Box::pin(run(call)),
    }
}

async fn run(call: Call) -> Result<Output> {
    let holder = call.login().await?;
    let mut fields = call.fields()?;
    let package_code = fields.package_code();
    let discount = fields.filled("discountCode", CODE_CHARS);
    let key = fields.text("idempotencyKey", REFERENCE_CHARS);
    let dry_run = fields.truth("dryRun");
    fields.finish()?;
    let wish = Wish { package_code, reference: key, discount_code: discount, ..Wish::default() };
    match buying::sell(&call, &holder, NAME, wish, dry_run).await? {
        Sold::Order(receipt, settled) => bought(&call, *receipt).await?.with_receipt(settled.as_ref()),
        Sold::Shown(output) => Ok(output),
    }
}

/// An order that exists, with its activation code once it is delivered.
async fn bought(call: &Call, receipt: Receipt) -> Result<Output> {
    let message = match receipt.order.status {
        OrderStatus::Provisioning => {
            "It is paid for and being delivered. Look at get_user_orders in a minute; until it is delivered, ask there \
             for status PROVISIONING."
        }
        OrderStatus::Fulfilled => {
            "Give the customer installUrl, or the QR code or lpaString. Install it once, with an internet connection."
        }
        OrderStatus::Failed | OrderStatus::Cancelling | OrderStatus::Cancelled => {
            "This order was given back, or is about to be. Use a new idempotencyKey to buy again."
        }
    };
    let listed = orders::of_receipt(call.app(), &receipt).await?;
    Output::of(&BoughtView {
        purchased: true,
        order_id: listed.order.id.to_string(),
        order: order_view(call.app(), &listed)?,
        balance_usd: Money(receipt.balance),
        replayed: receipt.replayed,
        message,
    })
}
