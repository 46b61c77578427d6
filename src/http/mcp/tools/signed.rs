//! Paying for a plan by signature (x402), instead of from the wallet: the demand for it, and what a signed call gets.
//! The price is the whole plan; the wallet is not touched. As everywhere, a payer whose signature may still be used is
//! never asked for another.

use serde::Serialize;
use utoipa::ToSchema;

use super::purchase::{self, ShortView};
use crate::domain::checkout::{Checkout, Stage};
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::http::mcp::call::{Call, Output};
use crate::http::purchase::instructions;
use crate::http::wire::StageWord;
use crate::http::x402::{RequirementsView, ResourceView};
use crate::ops::checkout::progress::Progress;
use crate::ops::checkout::{self, NewCheckout};
use crate::ops::orders::Receipt;
use crate::ops::tokens::Holder;
use crate::ops::x402::{self, Outcome, Tender};
use crate::ops::{accounts, preview};
use crate::x402::wire::{PaymentRequired, SettlementResponse};

/// What clients are told as long as nothing is wrong.
const UNSIGNED: &str =
    "Payment required: sign one of accepts and call again with it in _meta[\"x402/payment\"]";

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

/// A payment is asked for where the client can sign one and somebody settles it; everybody gets the link.
pub async fn or_link(
    call: &Call,
    holder: &Holder,
    package_code: String,
    discount: Option<String>,
    short: ShortView,
) -> Result<Output> {
    if !call.takes_x402 || call.app().settler.is_none() {
        return Output::of(&short);
    }
    let checkout = open(call, holder, package_code, discount).await?;
    match x402::offer(call.app(), &checkout, UNSIGNED).await? {
        Some(offer) => due(short, offer, None),
        None => Output::of(&short),
    }
}

/// A call with a signature: the order as it stands, or why the signature buys nothing.
pub async fn pay(
    call: &Call,
    holder: &Holder,
    package_code: &str,
    discount: Option<String>,
    payment: &str,
) -> Result<Output> {
    if call.app().settler.is_none() {
        let message = "is not taken here: nobody settles payments by signature; nothing was charged";
        return Err(Refusal::field("_meta[\"x402/payment\"]", message).into());
    }
    let tender = Tender { account: holder.account, package_code, header: payment.as_bytes() };
    match x402::pay(call.app(), tender).await? {
        Outcome::Taken { progress, receipt } => {
            let output = taken(call, holder, *progress).await?;
            match receipt {
                Some(receipt) => output.with_receipt(&receipt),
                None => Ok(output),
            }
        }
        Outcome::Refused { reason, receipt, checkout } => {
            let checkout = match checkout {
                Some(checkout) => *checkout,
                None => open(call, holder, package_code.into(), discount.clone()).await?,
            };
            let offer = x402::offer(call.app(), &checkout, reason.as_str()).await?;
            let offer = offer.ok_or(Refusal::ChainUnavailable)?;
            let price = preview::purchase(call.app(), holder, package_code, discount.as_deref()).await?;
            let short = purchase::short(call, holder, price.balance, price.price).await?;
            due(short, offer, receipt)
        }
    }
}

async fn open(
    call: &Call,
    holder: &Holder,
    package_code: String,
    discount: Option<String>,
) -> Result<Checkout> {
    let network = checkout::networks(call.app()).first().copied().ok_or(Refusal::ChainUnavailable)?;
    let new = NewCheckout {
        buyer: holder.buyer(),
        package_code,
        network,
        customer_email: None,
        reference: None,
        client: call.client,
        discount_code: discount,
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
    Ok(Output::of(&view)?.failed())
}

async fn taken(call: &Call, holder: &Holder, progress: Progress) -> Result<Output> {
    let ended = matches!(progress.stage, Stage::Completed | Stage::Failed);
    match progress.order {
        Some(order) if ended => {
            let balance = accounts::balance(call.app(), holder.account).await?.available;
            purchase::bought(call, Receipt { order, balance, replayed: false }).await
        }
        _ => Output::of(&UnderwayView {
            purchased: false,
            pending: true,
            status: StageWord(progress.stage),
            order_ref: progress.checkout.order_ref(),
            message: instructions(&progress),
        }),
    }
}
