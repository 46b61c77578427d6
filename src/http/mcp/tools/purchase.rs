//! Buying an eSIM from the customer's wallet. What both purchases have in common is here too: what would be paid, and
//! what a customer gets who is short of money.

use serde::Serialize;
use utoipa::ToSchema;

use super::signed::{self, Wish};
use super::{BUYS, Tool};
use crate::domain::money::Usd;
use crate::domain::order::OrderStatus;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema::{self, discount_code, package_code, token};
use crate::http::partner::REFERENCE_CHARS;
use crate::http::wire::{Money, OrderView, iso, order_view};
use crate::ops::magic_link;
use crate::ops::orders::{self, Listed, Receipt};
use crate::ops::preview::{self, Preview};
use crate::ops::tokens::Holder;

pub const CODE_CHARS: usize = 64;
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

/// The wallet does not hold enough. Nothing was bought or charged.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShortView {
    /// Always false.
    #[schema(example = false)]
    purchased: bool,
    balance_usd: Money,
    required_usd: Money,
    /// What is missing.
    shortfall_usd: Money,
    /// Give this to the customer: a page that pays money into this wallet, and can do nothing else.
    #[schema(format = "uri")]
    magic_link: String,
    #[schema(format = DateTime)]
    magic_link_expires_at: String,
    message: &'static str,
}

/// What a purchase would cost, after `dryRun`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewView {
    /// Always false: nothing was bought.
    #[schema(example = false)]
    purchased: bool,
    /// Always true.
    dry_run: bool,
    package_code: String,
    plan_name: String,
    /// What would be charged, after the discount.
    price_usd: Money,
    discount_usd: Money,
    balance_usd: Money,
    /// Whether the wallet holds enough.
    sufficient: bool,
    /// What is missing; 0 when it is enough.
    shortfall_usd: Money,
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
        input: schema::deed([package_code(), token(), discount_code()], &["packageCode"]),
        output: schema::results([
            schema::of::<BoughtView>(),
            schema::of::<ShortView>(),
            schema::of::<PreviewView>(),
            schema::of::<signed::DueView>(),
            schema::of::<signed::UnderwayView>(),
        ]),
        run: |call| Box::pin(run(call)),
    }
}

async fn run(call: Call) -> Result<Output> {
    let holder = call.login().await?;
    let mut fields = call.fields()?;
    let package_code = fields.required_text("packageCode", CODE_CHARS);
    let discount = fields.filled("discountCode", CODE_CHARS);
    let key = fields.text("idempotencyKey", REFERENCE_CHARS);
    let dry_run = fields.truth("dryRun");
    fields.finish()?;
    if dry_run {
        return previewed(preview::purchase(call.app(), &holder, &package_code, discount.as_deref()).await?);
    }
    let wish = Wish {
        tool: NAME,
        package_code: &package_code,
        esim_order: None,
        discount: discount.as_deref(),
        key: key.as_deref(),
    };
    if let Some(payment) = &call.payment {
        return signed::pay(&call, &holder, wish, payment).await;
    }
    match orders::place(call.app(), holder.buyer(), wish.purchase()).await {
        Ok(receipt) => bought(&call, receipt).await,
        Err(Error::Refused(Refusal::IdempotencyConflict)) => signed::earlier(&call, &holder, wish).await,
        Err(Error::Refused(Refusal::InsufficientBalance { balance, required })) => {
            let short = short(&call, &holder, balance, required).await?;
            signed::or_link(&call, &holder, wish, short).await
        }
        Err(error) => Err(error),
    }
}

/// An order that exists, with its activation code once it is delivered.
pub async fn bought(call: &Call, receipt: Receipt) -> Result<Output> {
    let Receipt { order, balance, replayed } = receipt;
    let message = match order.status {
        OrderStatus::Provisioning => {
            "It is paid for and being delivered. Look at get_user_orders in a minute: until it is delivered it is listed \
             with status PROVISIONING only."
        }
        OrderStatus::Fulfilled => {
            "Give the customer installUrl, or the QR code or lpaString. Install it once, with an internet connection."
        }
        OrderStatus::Failed | OrderStatus::Cancelling | OrderStatus::Cancelled => {
            "This order was given back, or is about to be. Use a new idempotencyKey to buy again."
        }
    };
    let listed = match replayed {
        true => orders::with_topups(call.app(), order).await?,
        false => Listed { order, topups: Vec::new() },
    };
    Output::of(&BoughtView {
        purchased: true,
        order_id: listed.order.id.to_string(),
        order: order_view(call.app(), &listed)?,
        balance_usd: Money(balance),
        replayed,
        message,
    })
}

pub fn previewed(preview: Preview) -> Result<Output> {
    let shortfall = preview.price.minus(preview.balance).max(Usd::ZERO);
    Output::of(&PreviewView {
        purchased: false,
        dry_run: true,
        package_code: preview.package_code,
        plan_name: preview.plan_name,
        price_usd: Money(preview.price),
        discount_usd: Money(preview.discount),
        balance_usd: Money(preview.balance),
        sufficient: !shortfall.is_positive(),
        shortfall_usd: Money(shortfall),
    })
}

/// A link by which the missing money can be paid in.
pub async fn short(call: &Call, holder: &Holder, balance: Usd, required: Usd) -> Result<ShortView> {
    let shortfall = required.minus(balance).max(Usd::ZERO);
    let link = magic_link::create(call.app(), holder.account, shortfall.max(Usd::dollars(1))).await?;
    Ok(ShortView {
        purchased: false,
        balance_usd: Money(balance),
        required_usd: Money(required),
        shortfall_usd: Money(shortfall),
        magic_link: link.url,
        magic_link_expires_at: iso(link.expires_at),
        message: "Nothing was bought or charged. Give the customer magicLink, wait until the money has arrived \
                  (get_wallet_balance), then call this tool again.",
    })
}
