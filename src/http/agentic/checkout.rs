//! The agent's purchase: ask for a plan, get a 402 that says what to pay where, poll until it is delivered. Parse,
//! call one operation, render. An invoice id opens the order without a login, so it stands in bodies only: never in
//! a header and never in a log line.

use axum::http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::orders::{CouponView, OrderRecordView, PurchasedPlanView, of_checkout, of_order};
use super::x402;
use crate::app::App;
use crate::domain::checkout::{NETWORKS, Stage, USUAL_CURRENCY};
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, done_or_open, json, marked, uncached};
use crate::http::kit::auth::{Bearer, Client};
use crate::http::kit::fields::{CODE_CHARS, Fields, JsonBody, idempotency_key};
use crate::http::kit::notice::{Sandbox, warned};
use crate::http::kit::payment::{
    Asked, PaymentDueView, RequirementsView, ResourceView, currencies_of, currency_names, named_currency,
    named_network, network_names, networks_of, payment_due,
};
use crate::http::kit::problem::{PairView, Problem};
use crate::http::kit::wire::{CurrencyWord, NetworkWord, StageWord};
use crate::ops::buying::{self, Due, Means, Outcome, Wish};
use crate::ops::{checkout, deposits};
use crate::x402::wire::{PaymentRequired, SIGNATURE};

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct CheckoutRequest {
    /// From a search, in any case.
    #[schema(max_length = 64, pattern = "printable", example = "JP-1GB-7D")]
    package_code: String,
    /// POLYGON, ARBITRUM, TRON or BASE, in any case.
    #[schema(
        pattern = "^([Pp][Oo][Ll][Yy][Gg][Oo][Nn]|[Aa][Rr][Bb][Ii][Tt][Rr][Uu][Mm]|[Tt][Rr][Oo][Nn]|[Bb][Aa][Ss][Ee])$",
        default = "POLYGON"
    )]
    preferred_network: Option<String>,
    /// USDT or USDC, in any case.
    #[schema(pattern = "^[Uu][Ss][Dd][TtCc]$", default = "USDT")]
    preferred_currency: Option<String>,
    /// Another spelling of `preferredNetwork`; when both are sent they must agree.
    #[schema(
        pattern = "^([Pp][Oo][Ll][Yy][Gg][Oo][Nn]|[Aa][Rr][Bb][Ii][Tt][Rr][Uu][Mm]|[Tt][Rr][Oo][Nn]|[Bb][Aa][Ss][Ee])$"
    )]
    network: Option<String>,
    /// Another spelling of `preferredCurrency`; when both are sent they must agree.
    #[schema(pattern = "^[Uu][Ss][Dd][TtCc]$")]
    currency: Option<String>,
    /// Gets a receipt with the install link when the eSIM is delivered.
    #[schema(format = "email", max_length = 254, example = "ann@example.com")]
    customer_email: Option<String>,
    /// A coupon, in any case.
    #[schema(max_length = 64, pattern = "printable", example = "SUMMER")]
    discount_code: Option<String>,
    /// `wallet` buys from the wallet at once; without it a payment on a chain is asked for.
    #[schema(pattern = "^wallet$")]
    pay_with: Option<String>,
}

/// How a checkout can be paid and followed here.
#[derive(Serialize, ToSchema)]
#[schema(as = Capabilities)]
pub struct CapabilitiesView {
    /// Every network of `pairs`.
    pub networks: Vec<NetworkWord>,
    /// Every currency of `pairs`.
    pub currencies: Vec<CurrencyWord>,
    /// What a checkout can be paid with, and where.
    pub pairs: Vec<PairView>,
    pub polling: bool,
    pub x402: bool,
    pub webhooks: bool,
}

/// A demand for payment: the normal first answer to a checkout.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PaymentRequired)]
pub struct ChallengeView {
    #[schema(example = false)]
    pub success: bool,
    #[schema(example = "PAYMENT_REQUIRED")]
    pub code: &'static str,
    /// What to do, for people; while payments by signature are accepted, the sentence that x402 wants here.
    pub error: String,
    /// Always PENDING_PAYMENT.
    pub status: StageWord,
    /// Anyone who has this id can see the order, without a login.
    #[schema(example = "inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub invoice_id: String,
    /// A short reference for people; the order will have it too.
    #[schema(example = "SG4K7M2Q9XTB")]
    pub order_ref: String,
    pub plan: PurchasedPlanView,
    /// Only with a coupon: what it takes off `plan.basePriceUsd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub coupon: Option<CouponView>,
    pub payment: PaymentDueView,
    pub capabilities: CapabilitiesView,
    /// A page where a person can pay.
    #[schema(format = "uri")]
    pub checkout_url: String,
    /// Sent with the next two while payments by signature are accepted: the same as in the header PAYMENT-REQUIRED.
    #[serde(rename = "x402Version", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 2)]
    pub x402_version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub resource: Option<ResourceView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub accepts: Option<Vec<RequirementsView>>,
}

/// The 402: every way to pay for a checkout, and why a signature did not pay for it.
fn challenge(app: &App, due: &Due) -> Answer {
    let asked = Asked { checkout: &due.checkout, rounds: due.rounds };
    let view = challenge_view(app, asked, due.offer.as_ref())?;
    let mut response = uncached(json(StatusCode::PAYMENT_REQUIRED, &view))?;
    x402::add_offer(&mut response, due.offer.as_ref())?;
    x402::add_receipt(&mut response, due.settled.as_ref())?;
    Ok(response)
}

fn challenge_view(app: &App, asked: Asked, offer: Option<&PaymentRequired>) -> Result<ChallengeView> {
    let (payment, checkout) = (payment_due(app, asked)?, asked.checkout);
    let (amount, network) = (asked.amount(), checkout.network.name());
    Ok(ChallengeView {
        success: false,
        code: "PAYMENT_REQUIRED",
        error: match offer {
            Some(offer) => offer.error.clone(),
            None => {
                let (address, until) = (&checkout.address, &payment.expires_at_iso);
                let asked =
                    format!("Pay {amount} on {network} to {address} before {until}, then poll pollingUrl.");
                warned(asked, Sandbox::on(&app.settings, checkout.network))
            }
        },
        status: StageWord(Stage::PendingPayment),
        invoice_id: checkout.id.to_string(),
        order_ref: app.numbers.of_checkout(checkout),
        plan: PurchasedPlanView::asked_by(checkout),
        coupon: checkout.coupon.as_ref().map(CouponView::from),
        payment,
        capabilities: capabilities(app, offer.is_some()),
        checkout_url: deposits::checkout_url(app, &checkout.id),
        x402_version: offer.map(|offer| offer.version),
        resource: offer.map(|offer| ResourceView::from(&offer.resource)),
        accepts: offer.map(|offer| offer.accepts.iter().map(RequirementsView::from).collect()),
    })
}

fn capabilities(app: &App, x402: bool) -> CapabilitiesView {
    let pairs = checkout::pairs(app);
    CapabilitiesView {
        networks: networks_of(&pairs).into_iter().map(NetworkWord).collect(),
        currencies: currencies_of(&pairs).into_iter().map(CurrencyWord).collect(),
        pairs: pairs.into_iter().map(PairView::from).collect(),
        polling: true,
        x402,
        webhooks: false,
    }
}

/// Everything that a checkout's body may say.
const MEMBERS: &[&str] = &[
    "packageCode",
    "preferredNetwork",
    "preferredCurrency",
    "network",
    "currency",
    "customerEmail",
    "discountCode",
    "payWith",
];

/// The purchase that is wanted, and the token and network it will be paid by; neither when the wallet pays.
fn checkout_fields(
    body: &JsonBody,
    reference: Option<String>,
) -> Result<(Wish, Option<(Currency, Network)>), Refusal> {
    let mut fields = Fields::parse(body)?;
    fields.allow(MEMBERS);
    let package_code = fields.package_code();
    let networks = ["preferredNetwork", "network"]
        .map(|name| (name, fields.word(name, &network_names(), named_network)));
    let network = fields.agreed(networks).unwrap_or(NETWORKS[0]);
    let currencies = ["preferredCurrency", "currency"]
        .map(|name| (name, fields.word(name, &currency_names(), named_currency)));
    let currency = fields.agreed(currencies).unwrap_or(USUAL_CURRENCY);
    let customer_email = fields.email("customerEmail");
    let discount_code = fields.text("discountCode", CODE_CHARS);
    let from_wallet = fields.word("payWith", "wallet", |text| (text == "wallet").then_some(())).is_some();
    fields.finish()?;
    let wish = Wish { package_code, reference, customer_email, discount_code, ..Wish::default() };
    Ok((wish, (!from_wallet).then_some((currency, network))))
}

/// Check out a plan
///
/// Answers 402 with the amount of `preferredCurrency` to send on `preferredNetwork`, and where to. A pair that cannot be
/// had is 422 `UNSUPPORTED_PAIR`, never another one. While `payment.wide` is true a rounded amount will do, from
/// `payment.minAmount` to `payment.maxAmount`; otherwise only the exact amount counts as your payment. Send it within
/// 30 minutes and poll `pollingUrl`: when the payment is final, the eSIM is delivered. With an `Idempotency-Key` the
/// same request again is the same checkout, for ever: 402 while it waits for its payment, afterwards the order as it
/// stands. `payWith: "wallet"` buys from the wallet instead; when that is short, the 402 has a `magicLink` that fills it.
/// `discountCode` names a coupon: the checkout reserves one
/// of its uses and gives it back when it expires; every invalid code is 422 `COUPON_INVALID`. Where `capabilities.x402`
/// is true, the same request with a signature for one of `accepts` in the header PAYMENT-SIGNATURE pays at once: 200
/// with the order, 202 while it is not settled or delivered. The same signature again is the same payment.
#[utoipa::path(post, path = "/api/agentic/checkout", operation_id = "checkout", tag = "checkout",
    params(("Idempotency-Key" = Option<String>, Header, description = "Your own reference: 1 to 128 printable characters",
        min_length = 1, max_length = 128, pattern = "^[\\x20-\\x7E]{1,128}$", example = "trip-42"),
        ("PAYMENT-SIGNATURE" = Option<String>, Header, description = "A payment by signature (x402 version 2), for one of `accepts`")),
    request_body = CheckoutRequest,
    responses(
        (status = 200, description = "Bought from the wallet, or a checkout that was paid before (header Idempotent-Replayed)", body = OrderRecordView),
        (status = 202, description = "Paid, and still with the supplier", body = OrderRecordView),
        (status = 402, description = "Pay this; or, when the wallet should pay, INSUFFICIENT_BALANCE", content(
            (ChallengeView = "application/json"), (Problem = "application/problem+json")))))]
pub async fn open(
    bearer: Bearer,
    state: State,
    Client(client): Client,
    headers: HeaderMap,
    body: JsonBody,
) -> Answer {
    let (wish, pair) = checkout_fields(&body, idempotency_key(&headers)?)?;
    let signing = Some(x402::signing(&state.app, headers.get(SIGNATURE)));
    let means = match pair {
        Some(pair) => Means::Transfer { pair, client, signing },
        None => Means::WalletWithLink,
    };
    match buying::buy(&state.app, bearer.buyer(), wish, means).await? {
        Outcome::Bought { receipt, .. } => {
            let view = of_order(&state.app, &receipt.order, Some(receipt.balance))?;
            Ok(marked(record(&view)?, receipt.replayed))
        }
        Outcome::Due(due) => Ok(marked(challenge(&state.app, &due)?, due.replayed)),
        Outcome::Underway { progress, settled, replayed } => {
            let mut response = record(&of_checkout(&state.app, &progress)?)?;
            x402::add_receipt(&mut response, settled.as_ref())?;
            Ok(marked(response, replayed))
        }
        Outcome::Short(short) => Err(short.refusal().into()),
        Outcome::Undelivered { refusal, .. } => Err(refusal.into()),
    }
}

/// A purchase as it stands. A buyer who has paid, or is too late to pay, is not asked to pay again.
fn record(view: &OrderRecordView) -> Answer {
    let open = match view.status.0 {
        Stage::PendingPayment | Stage::ConfirmedAwaitingFulfillment | Stage::Processing => true,
        Stage::Completed | Stage::Failed | Stage::Expired => false,
    };
    uncached(done_or_open(open, view))
}
