//! Paying for a new eSIM or a top-up by signature (x402), instead of from the wallet: the demand for it, and what a
//! signed call gets. The price is the whole plan; the wallet is not touched. As everywhere, a payer whose signature may
//! still be used is never asked for another.

use serde::Serialize;
use utoipa::ToSchema;

use super::purchase::{self, ShortView};
use super::topup;
use crate::domain::checkout::{Checkout, Stage};
use crate::domain::ids::OrderId;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::failure;
use crate::http::purchase::instructions;
use crate::http::wire::StageWord;
use crate::http::x402::{RequirementsView, ResourceView};
use crate::ops::accounts;
use crate::ops::checkout::progress::Progress;
use crate::ops::checkout::{self, NewCheckout};
use crate::ops::orders::{Purchase, Receipt};
use crate::ops::tokens::Holder;
use crate::ops::x402::{self, Earlier, Outcome, Tender};
use crate::x402::wire::{PaymentRequired, SettlementResponse};

/// What clients are told as long as nothing is wrong.
const UNSIGNED: &str =
    "Payment required: sign one of accepts and call again with it in _meta[\"x402/payment\"]";

/// Where a payment comes in.
const FIELD: &str = "_meta[\"x402/payment\"]";

/// A demand for payment (x402 version 2), with the link that fills the wallet beside it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DueView {
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

/// A signature was taken, and what it buys is not there yet.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnderwayView {
    /// Always false: the order is not there yet.
    #[schema(example = false)]
    purchased: bool,
    /// Always true: do not pay again.
    pending: bool,
    status: StageWord,
    order_ref: String,
    message: String,
}

/// What a customer wants to pay for.
pub struct Wish<'a> {
    /// The tool that sells it.
    pub tool: &'static str,
    pub package_code: &'a str,
    /// A top-up: the order whose eSIM it fills.
    pub esim_order: Option<&'a OrderId>,
    pub discount: Option<&'a str>,
    /// The caller's own reference for this purchase.
    pub key: Option<&'a str>,
}

impl Wish<'_> {
    /// The same from the wallet.
    pub fn purchase(&self) -> Purchase {
        Purchase {
            package_code: self.package_code.into(),
            reference: self.key.map(str::to_string),
            max_price: None,
            esim_order: self.esim_order.cloned(),
            customer_email: None,
            discount_code: self.discount.map(str::to_string),
        }
    }

    /// As the x402 transport for tools names what is paid for.
    fn url(&self) -> String {
        format!("mcp://tool/{}", self.tool)
    }
}

/// A payment is asked for where the client can sign one and somebody settles it; everybody gets the link.
pub async fn or_link(call: &Call, holder: &Holder, wish: Wish<'_>, short: ShortView) -> Result<Output> {
    if !call.takes_x402 || call.app().settler.is_none() {
        return Output::of(&short);
    }
    let checkout = match open(call, holder, &wish).await {
        Ok(checkout) => checkout,
        // The link is there for everybody, also for whoever asked too often.
        Err(Error::Refused(Refusal::TooManyCheckouts { .. })) => return Output::of(&short),
        Err(error) => return Err(error),
    };
    match x402::offer(call.app(), &checkout, wish.url(), UNSIGNED).await? {
        Some(offer) => due(short, offer, None),
        None => Output::of(&short),
    }
}

/// What was bought, or is being bought, with the reference of a purchase.
pub async fn earlier(call: &Call, holder: &Holder, wish: Wish<'_>) -> Result<Output> {
    match x402::earlier(call.app(), holder.buyer(), wish.purchase()).await? {
        Earlier::Bought(receipt) => bought(call, &wish, *receipt).await,
        Earlier::Underway(progress) => taken(call, holder, &wish, *progress).await,
    }
}

/// A call with a signature: the order as it stands, or why the signature buys nothing.
pub async fn pay(call: &Call, holder: &Holder, wish: Wish<'_>, payment: &str) -> Result<Output> {
    if call.app().settler.is_none() {
        let message = "is not taken here: nobody settles payments by signature; nothing was charged";
        return Err(Refusal::field(FIELD, message).into());
    }
    let tender = Tender {
        account: holder.account,
        package_code: wish.package_code,
        esim_order: wish.esim_order,
        reference: wish.key,
        header: payment.as_bytes(),
    };
    let outcome = match x402::pay(call.app(), tender).await {
        Err(Error::Refused(Refusal::IdempotencyConflict)) => return earlier(call, holder, wish).await,
        outcome => outcome.map_err(in_tools_words)?,
    };
    match outcome {
        Outcome::Taken { progress, receipt } => {
            let output = taken(call, holder, &wish, *progress).await?;
            match receipt {
                Some(receipt) => output.with_receipt(&receipt),
                None => Ok(output),
            }
        }
        Outcome::Refused { reason, receipt, checkout } => {
            let checkout = match checkout {
                Some(checkout) => *checkout,
                None => open(call, holder, &wish).await?,
            };
            let offer = x402::offer(call.app(), &checkout, wish.url(), reason.as_str()).await?;
            let offer = offer.ok_or(Refusal::ChainUnavailable)?;
            let balance = accounts::balance(call.app(), holder.account).await?.available;
            let short = purchase::short(call, holder, balance, checkout.price()).await?;
            due(short, offer, receipt)
        }
    }
}

/// A payment that cannot be read comes in no header here.
fn in_tools_words(error: Error) -> Error {
    match error {
        Error::Refused(Refusal::Invalid(mut wrong)) => {
            wrong.iter_mut().for_each(|wrong| wrong.field = FIELD.into());
            Refusal::Invalid(wrong).into()
        }
        other => other,
    }
}

async fn open(call: &Call, holder: &Holder, wish: &Wish<'_>) -> Result<Checkout> {
    let network = checkout::networks(call.app()).first().copied().ok_or(Refusal::ChainUnavailable)?;
    let new = NewCheckout {
        buyer: holder.buyer(),
        package_code: wish.package_code.into(),
        esim_order: wish.esim_order.cloned(),
        network,
        customer_email: None,
        reference: None,
        client: call.client,
        is_offer: true,
        discount_code: wish.discount.map(str::to_string),
    };
    Ok(checkout::open(call.app(), new).await?.checkout)
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

async fn bought(call: &Call, wish: &Wish<'_>, receipt: Receipt) -> Result<Output> {
    match wish.esim_order {
        Some(_) => topup::topped_up(&receipt),
        None => purchase::bought(call, receipt).await,
    }
}

async fn taken(call: &Call, holder: &Holder, wish: &Wish<'_>, progress: Progress) -> Result<Output> {
    if let Some(refusal) = progress.refusal() {
        return failure::of(wish.tool, &refusal.into(), &call.request_id);
    }
    let ended = matches!(progress.stage, Stage::Completed | Stage::Failed);
    match progress.order {
        Some(order) if ended => {
            let balance = accounts::balance(call.app(), holder.account).await?.available;
            bought(call, wish, Receipt { order, balance, replayed: false }).await
        }
        _ => Output::of(&UnderwayView {
            purchased: false,
            pending: true,
            status: StageWord(progress.stage),
            order_ref: call.app().numbers.of_checkout(&progress.checkout),
            message: instructions(&progress),
        }),
    }
}
