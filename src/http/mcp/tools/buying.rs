//! What the two tools that buy have in common: how a purchase is paid, and what is shown of it. A signature pays the
//! whole price, instead of the wallet. As everywhere, a payer whose signature may still be used is never asked for
//! another.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::App;
use crate::domain::money::Usd;
use crate::error::{Error, Result};
use crate::http::kit::notice::Sandbox;
use crate::http::kit::payment::{RequirementsView, ResourceView, instructions};
use crate::http::kit::wire::{Money, StageWord, iso};
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::{failure, schema};
use crate::ops::buying::{self, Means, Outcome, Short, Signing, Wish};
use crate::ops::orders::Receipt;
use crate::ops::preview::{self, Preview};
use crate::ops::tokens::Holder;
use crate::x402::wire::{PaymentRequired, SettlementResponse};

/// What clients are told as long as nothing is wrong.
const UNSIGNED: &str =
    "Payment required: sign one of accepts and call again with it in _meta[\"x402/payment\"]";

/// Where a payment comes in.
const FIELD: &str = "_meta[\"x402/payment\"]";

/// The wallet does not hold enough. Nothing was bought or charged.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ShortView {
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
    /// Only in a sandbox: true. No real money is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sandbox: Option<bool>,
    /// Only in a sandbox: the customer must not send real money, and what to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sandbox_notice: Option<&'static str>,
}

/// What a purchase would cost, after `dryRun`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PreviewView {
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

/// A demand for payment (x402 version 2), with the link that fills the wallet beside it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DueView {
    #[serde(flatten)]
    short: ShortView,
    #[serde(rename = "x402Version")]
    version: u32,
    /// Why payment is asked for.
    error: String,
    resource: ResourceView,
    accepts: Vec<RequirementsView>,
    /// What became of a signature that was sent.
    #[serde(rename = "x402/payment-response", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    receipt: Option<SettlementResponse>,
}

/// A signature was accepted, and what it buys is not delivered yet.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct UnderwayView {
    /// Always false: the order is not delivered yet.
    #[schema(example = false)]
    purchased: bool,
    /// Always true: do not pay again.
    pending: bool,
    status: StageWord,
    order_ref: String,
    message: String,
}

/// The results of a purchase: the tool's own for what was bought, and what is shown instead of it.
pub fn results(bought: Value) -> Value {
    schema::results([
        bought,
        schema::of::<ShortView>(),
        schema::of::<PreviewView>(),
        schema::of::<DueView>(),
        schema::of::<UnderwayView>(),
    ])
}

/// What came of a purchase. A receipt is shown by the tool that sold it.
pub enum Sold {
    Order(Box<Receipt>, Option<SettlementResponse>),
    Shown(Output),
}

pub async fn sell(
    call: &Call,
    holder: &Holder,
    tool: &'static str,
    wish: Wish,
    dry_run: bool,
) -> Result<Sold> {
    if dry_run {
        return previewed(call, holder, &wish).await.map(Sold::Shown);
    }
    let signing = Signing {
        payment: call.payment.as_ref().map(String::as_bytes),
        field: FIELD,
        // As the x402 transport for tools names what is paid for.
        resource: format!("mcp://tool/{tool}"),
        unsigned: UNSIGNED,
    };
    let means = Means::WalletOrLink { can_sign: call.takes_x402, client: call.client, signing };
    let (output, settled) = match buying::buy(call.app(), holder.buyer(), wish, means).await? {
        Outcome::Bought { receipt, settled } => return Ok(Sold::Order(receipt, settled)),
        Outcome::Short(short) => (shown(call.app(), *short)?, None),
        Outcome::Undelivered { refusal, settled } => {
            (failure::of(tool, &refusal.into(), &call.request_id)?, settled)
        }
        Outcome::Underway { progress, settled, .. } => {
            let view = UnderwayView {
                purchased: false,
                pending: true,
                status: StageWord(progress.stage),
                order_ref: call.app().numbers.of_checkout(&progress.checkout),
                message: instructions(call.app(), &progress),
            };
            (Output::of(&view)?, settled)
        }
        Outcome::Due(_) => return Err(Error::fault("a tool shows no invoices")),
    };
    output.with_receipt(settled.as_ref()).map(Sold::Shown)
}

fn shown(app: &App, short: Short) -> Result<Output> {
    let sandbox = Sandbox::anywhere(&app.settings);
    let missing = short.missing();
    let Short { balance, required, link, offer, settled } = short;
    let view = ShortView {
        purchased: false,
        balance_usd: Money(balance),
        required_usd: Money(required),
        shortfall_usd: Money(missing),
        magic_link: link.url,
        magic_link_expires_at: iso(link.expires_at),
        message: "Nothing was bought or charged. Give the customer magicLink, wait until the money has arrived \
                  (get_wallet_balance), then call this tool again.",
        sandbox: sandbox.map(|_| true),
        sandbox_notice: sandbox.map(Sandbox::notice),
    };
    match offer {
        Some(offer) => due(view, offer, settled),
        None => Output::of(&view),
    }
}

fn due(short: ShortView, offer: PaymentRequired, receipt: Option<SettlementResponse>) -> Result<Output> {
    let view = DueView {
        short,
        version: offer.version,
        error: offer.error,
        resource: ResourceView::from(&offer.resource),
        accepts: offer.accepts.iter().map(RequirementsView::from).collect(),
        receipt,
    };
    Output::failed(&view, "PAYMENT_REQUIRED")
}

/// What a purchase would do.
async fn previewed(call: &Call, holder: &Holder, wish: &Wish) -> Result<Output> {
    let preview: Preview = preview::purchase(call.app(), holder, wish).await?;
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
