//! The agent's purchase: ask for a plan, get a 402 that says what to pay where, poll until it is delivered. Parse,
//! call one operation, render. An invoice id opens the order without a login, so it stands in bodies only: never in
//! a header and never in a log line.

use axum::extract::State as FromState;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use utoipa::ToSchema;

use super::State;
use super::auth::{Bearer, Client};
use super::fields::{Fields, JsonBody, printable};
use super::partner::{Answer, REFERENCE_CHARS, RETRY_SECONDS, json};
use super::problem::Problem;
use super::purchase::{self, CouponView, PlanView};
use super::qr;
use super::wire::*;
use super::x402::{self, RequirementsView, ResourceView, Unpaid};
use crate::app::App;
use crate::domain::checkout::{CURRENCY, Checkout, NETWORKS, Stage};
use crate::domain::email::Email;
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Network};
use crate::domain::refusal::Refusal;
use crate::domain::slot::Band;
use crate::error::Result;
use crate::ops::checkout::progress::{self, Progress};
use crate::ops::checkout::{self, NewCheckout, Opened};
use crate::ops::orders::{self, Purchase};
use crate::ops::{accounts, deposits};
use crate::x402::wire::{self, PaymentRequired};

const CODE_CHARS: usize = 64;
/// Small, because a language model may have to read every letter of it.
const QR_PIXELS: usize = 4;
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct CheckoutRequest {
    /// From a search.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[^\\x00-\\x1F\\x7F-\\x9F]{1,64}$",
        example = "JP-1GB-7D"
    )]
    package_code: String,
    /// POLYGON, ARBITRUM or TRON, in any case.
    #[schema(
        pattern = "^([Pp][Oo][Ll][Yy][Gg][Oo][Nn]|[Aa][Rr][Bb][Ii][Tt][Rr][Uu][Mm]|[Tt][Rr][Oo][Nn])$",
        default = "POLYGON"
    )]
    preferred_network: Option<String>,
    /// Gets a receipt with the install link when the eSIM is delivered.
    #[schema(format = "email", max_length = 254, example = "ann@example.com")]
    customer_email: Option<String>,
    /// A coupon, in any case.
    #[schema(
        min_length = 1,
        max_length = 64,
        pattern = "^[^\\x00-\\x1F\\x7F-\\x9F]{1,64}$",
        example = "SUMMER"
    )]
    discount_code: Option<String>,
    /// `wallet` buys from the wallet at once; without it a payment on a chain is asked for.
    #[schema(pattern = "^wallet$")]
    pay_with: Option<String>,
}

/// What to pay, and where.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PaymentDue)]
pub struct PaymentDueView {
    pub currency: CurrencyWord,
    pub network: NetworkWord,
    #[schema(example = "Polygon")]
    pub network_name: &'static str,
    #[schema(example = "PRC-20")]
    pub token_standard: &'static str,
    #[schema(example = 137)]
    pub chain_id: u64,
    /// The token's contract.
    #[schema(example = "0xc2132D05D31c914a87C6611C10748AEb04B58e8F")]
    pub contract_address: String,
    #[schema(example = 6)]
    pub decimals: u8,
    #[schema(example = "0x9858EfFD232B4033E47d90003D41EC34EcaEda94")]
    pub receiving_address: String,
    /// Pay exactly this, unless `wide` is true: the amount is what tells your payment from others.
    pub expected_amount: Money,
    /// Whether a rounded amount is known as your payment too, as things stand: anything from `minAmount` to `maxAmount`.
    pub wide: bool,
    /// The least that is taken as this payment; `expectedAmount` unless `wide` is true.
    pub min_amount: Money,
    /// The most that is taken as this payment; `expectedAmount` unless `wide` is true.
    pub max_amount: Money,
    /// The same in the token's base units.
    #[schema(example = "4485112", pattern = "^[0-9]+$")]
    pub expected_amount_units: String,
    /// What was taken off the price to make the amount unique.
    pub spot_discount_offset: Money,
    /// A link that wallets understand.
    pub payment_uri: String,
    /// A QR code of `paymentUri`.
    #[schema(pattern = "^data:image/png;base64,[0-9A-Za-z+/]+=*$")]
    pub qr_data_url: String,
    /// In milliseconds since 1970.
    #[schema(example = 1769860800000i64)]
    pub expires_at: i64,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub expires_at_iso: String,
    /// Where to ask how it stands.
    #[schema(format = "uri")]
    pub polling_url: String,
    /// How many blocks the payment waits for, its own included.
    #[schema(example = 12, minimum = 1)]
    pub required_confirmations: i64,
    #[schema(example = 30)]
    pub typical_confirmation_seconds: u32,
}

/// How a checkout can be paid and followed here.
#[derive(Serialize, ToSchema)]
#[schema(as = Capabilities)]
pub struct CapabilitiesView {
    pub networks: Vec<NetworkWord>,
    pub currencies: Vec<CurrencyWord>,
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
    /// What to do, for people; the sentence of x402 while payments by signature are taken.
    pub error: String,
    /// Always PENDING_PAYMENT.
    pub status: StageWord,
    /// Whoever has this id can see the order, without a login.
    #[schema(example = "inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub invoice_id: String,
    /// A short reference for people; the order will have it too.
    #[schema(example = "SG4K7M2Q9XTB")]
    pub order_ref: String,
    pub plan: PlanView,
    /// Only with a coupon: what it takes off `plan.basePriceUsd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub coupon: Option<CouponView>,
    pub payment: PaymentDueView,
    pub capabilities: CapabilitiesView,
    /// A page where a person can pay.
    #[schema(format = "uri")]
    pub checkout_url: String,
    /// This and the next two while payments by signature are taken: as in the header PAYMENT-REQUIRED.
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

/// The 402: everything there is to say about how a checkout can be paid, and why a signature did not pay for it.
fn challenge(app: &App, asked: Asked, unpaid: Option<&Unpaid>) -> Answer {
    let offer = x402::offer(app, asked.checkout, unpaid);
    let view = challenge_view(app, asked, offer.as_ref())?;
    let mut response = uncached(json(StatusCode::PAYMENT_REQUIRED, &view)?)?;
    x402::add_headers(&mut response, offer.as_ref(), unpaid)?;
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
            None => format!(
                "Pay {amount} on {network} to {} before {}, then poll pollingUrl.",
                checkout.address, payment.expires_at_iso
            ),
        },
        status: StageWord(Stage::PendingPayment),
        invoice_id: checkout.id.to_string(),
        order_ref: app.numbers.of_checkout(checkout),
        plan: PlanView::asked_by(checkout),
        coupon: checkout.coupon.as_ref().map(CouponView::from),
        payment,
        capabilities: CapabilitiesView {
            networks: checkout::networks(app).into_iter().map(NetworkWord).collect(),
            currencies: vec![CurrencyWord(CURRENCY)],
            polling: true,
            x402: offer.is_some(),
            webhooks: false,
        },
        checkout_url: deposits::checkout_url(app, &checkout.id),
        x402_version: offer.map(|offer| offer.version),
        resource: offer.map(|offer| ResourceView::from(&offer.resource)),
        accepts: offer.map(|offer| offer.accepts.iter().map(RequirementsView::from).collect()),
    })
}

/// A checkout, and whether a rounded amount pays it too.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub checkout: &'a Checkout,
    pub rounds: bool,
}

impl<'a> From<&'a Progress> for Asked<'a> {
    fn from(progress: &'a Progress) -> Asked<'a> {
        Asked { checkout: &progress.checkout, rounds: progress.rounds }
    }
}

impl Asked<'_> {
    /// What pays it.
    pub fn band(self) -> Band {
        let Checkout { amount, .. } = *self.checkout;
        if self.rounds { self.checkout.band() } else { Band { least: amount, most: amount } }
    }

    /// What to send, in words.
    pub fn amount(self) -> String {
        let (amount, token, Band { least, most }) = (self.checkout.amount, CURRENCY.as_str(), self.band());
        if self.rounds {
            format!("exactly {amount} {token}, or a rounded amount from {least} to {most} {token},")
        } else {
            format!("exactly {amount} {token}")
        }
    }
}

pub fn payment_due(app: &App, asked: Asked) -> Result<PaymentDueView> {
    let (checkout, Band { least, most }) = (asked.checkout, asked.band());
    let network = checkout.network;
    let terms = app.settings.settlement.networks.get(&network);
    let token = terms.and_then(|terms| terms.tokens.iter().find(|token| token.currency == CURRENCY));
    let contract_address = token.map(|token| token.contract.clone()).unwrap_or_default();
    let payment_uri = payment_uri(network, &contract_address, &checkout.address, checkout.amount);
    let code = qr::png(&qr::encode(&payment_uri)?, QR_PIXELS)?;
    Ok(PaymentDueView {
        currency: CurrencyWord(CURRENCY),
        network: NetworkWord(network),
        network_name: network.name(),
        token_standard: network.token_standard(),
        chain_id: network.chain_id(),
        contract_address,
        decimals: 6,
        receiving_address: checkout.address.clone(),
        expected_amount: Money(checkout.amount),
        wide: asked.rounds,
        min_amount: Money(least),
        max_amount: Money(most),
        expected_amount_units: checkout.amount.micros().to_string(),
        spot_discount_offset: Money(checkout.uniqueness_discount()),
        payment_uri,
        qr_data_url: format!("data:image/png;base64,{}", STANDARD.encode(code)),
        expires_at: checkout.expires_at.micros() / 1_000,
        expires_at_iso: iso(checkout.expires_at),
        polling_url: format!("{}/api/agentic/order/{}", app.settings.agent_url, checkout.id),
        required_confirmations: terms.map_or(network.confirmations(), |terms| terms.confirmations),
        typical_confirmation_seconds: network.typical_seconds(),
    })
}

/// EIP-681 on EVM networks: a call of `transfer` on the token's contract. TRON's wallets have no common form; this
/// is what most of them read.
pub fn payment_uri(network: Network, contract: &str, address: &str, amount: Usd) -> String {
    match network.kind() {
        AddressKind::Evm => {
            let (chain, units) = (network.chain_id(), amount.micros());
            format!("ethereum:{contract}@{chain}/transfer?address={address}&uint256={units}")
        }
        AddressKind::Tron => format!("tron:{address}?token={contract}&amount={amount}"),
    }
}

struct CheckoutFields {
    package_code: String,
    network: Network,
    customer_email: Option<Email>,
    discount_code: Option<String>,
    from_wallet: bool,
}

fn checkout_fields(body: &JsonBody) -> Result<CheckoutFields, Refusal> {
    let mut fields = Fields::parse(body)?;
    let named = |text: &str| Network::parse(&text.to_ascii_uppercase()).filter(|n| NETWORKS.contains(n));
    let read = CheckoutFields {
        package_code: fields.required_text("packageCode", CODE_CHARS),
        network: fields.word("preferredNetwork", "POLYGON, ARBITRUM, TRON", named).unwrap_or(NETWORKS[0]),
        customer_email: fields.email("customerEmail"),
        discount_code: fields.text("discountCode", CODE_CHARS),
        from_wallet: fields.word("payWith", "wallet", |text| (text == "wallet").then_some(())).is_some(),
    };
    fields.finish()?;
    Ok(read)
}

/// The caller's own reference, from the header `Idempotency-Key`.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let mut sent = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = sent.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| sent.next().is_none() && printable(text, REFERENCE_CHARS));
    let message = format!("must have 1 to {REFERENCE_CHARS} printable ASCII characters, and be sent once");
    text.map(|text| Some(text.to_string())).ok_or_else(|| Refusal::field("Idempotency-Key", message))
}

/// Check out a plan
///
/// Answers 402 with the amount of USDT to send, and where. While `payment.wide` is true a rounded amount will do, from
/// `payment.minAmount` to `payment.maxAmount`; otherwise only the exact one is known as your payment. Send it within 30 minutes and poll `pollingUrl`: when
/// the payment is final the eSIM is there. With an `Idempotency-Key` the same request again is the same checkout, for
/// ever: 402 while it waits for its payment, afterwards the order as it stands. `payWith: "wallet"` buys from the
/// wallet instead. `discountCode` names a coupon: the checkout reserves one of its uses and gives it back when it
/// expires; a code that is not good is 422 `COUPON_INVALID`, whatever is wrong with it. Where `capabilities.x402` is true, the same request with a signature for one of `accepts` in the header
/// PAYMENT-SIGNATURE pays at once: 200 with the order, 202 while it is not settled or delivered. The same signature
/// again is the same payment.
#[utoipa::path(post, path = "/api/agentic/checkout", operation_id = "checkout", tag = "checkout",
    params(("Idempotency-Key" = Option<String>, Header, description = "Your own reference: 1 to 128 printable characters",
        min_length = 1, max_length = 128, pattern = "^[\\x20-\\x7E]{1,128}$", example = "trip-42"),
        ("PAYMENT-SIGNATURE" = Option<String>, Header, description = "A payment by signature (x402 version 2), for one of `accepts`")),
    request_body = CheckoutRequest,
    responses(
        (status = 200, description = "Bought from the wallet, or a checkout that was paid before (header Idempotent-Replayed)", body = purchase::OrderRecordView),
        (status = 202, description = "Paid, and still with the supplier", body = purchase::OrderRecordView),
        (status = 402, description = "Pay this; or, when the wallet should pay, INSUFFICIENT_BALANCE", content(
            (ChallengeView = "application/json"), (Problem = "application/problem+json")))))]
pub async fn open(
    bearer: Bearer,
    FromState(state): FromState<State>,
    Client(client): Client,
    headers: HeaderMap,
    body: JsonBody,
) -> Answer {
    let reference = idempotency_key(&headers)?;
    let fields = checkout_fields(&body)?;
    if fields.from_wallet {
        return from_wallet(&state.app, &bearer, fields, reference).await;
    }
    let signed = match headers.get(wire::SIGNATURE) {
        Some(signature) => {
            Some(x402::pay(&state.app, bearer.account, &fields.package_code, signature).await?)
        }
        None => None,
    };
    let unpaid = match signed {
        Some(Ok(paid)) => return Ok(paid),
        Some(Err(unpaid)) => Some(unpaid),
        None => None,
    };
    if let Some(checkout) = unpaid.as_ref().and_then(|unpaid| unpaid.checkout.as_ref()) {
        let rounds = progress::rounds_now(&state.app, checkout).await?;
        return challenge(&state.app, Asked { checkout, rounds }, unpaid.as_ref());
    }
    let new = NewCheckout {
        buyer: bearer.buyer(),
        package_code: fields.package_code,
        esim_order: None,
        network: fields.network,
        customer_email: fields.customer_email,
        discount_code: fields.discount_code,
        reference,
        client,
        is_offer: false,
    };
    let Opened { checkout, replayed, rounds } = checkout::open(&state.app, new).await?;
    if !replayed {
        return challenge(&state.app, Asked { checkout: &checkout, rounds }, unpaid.as_ref());
    }
    let progress = progress::show(&state.app, &checkout.id, None).await?;
    let waits = progress.stage == Stage::PendingPayment && progress.confirmations() == 0 && !progress.signed;
    let mut response = match waits {
        true => challenge(&state.app, Asked::from(&progress), unpaid.as_ref())?,
        false => uncached(record(&state.app, &progress)?)?,
    };
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(response)
}

/// A checkout as it stands, for whoever has paid, or is too late to: nobody is asked to pay again.
pub fn record(app: &App, progress: &Progress) -> Answer {
    let status = status_of(progress.stage);
    let mut response = json(status, &purchase::of_checkout(app, progress)?)?;
    if status == StatusCode::ACCEPTED {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
    }
    Ok(response)
}

fn status_of(stage: Stage) -> StatusCode {
    match stage {
        Stage::PendingPayment | Stage::ConfirmedAwaitingFulfillment | Stage::Processing => {
            StatusCode::ACCEPTED
        }
        Stage::Completed | Stage::Failed | Stage::Expired => StatusCode::OK,
    }
}

async fn from_wallet(
    app: &App,
    bearer: &Bearer,
    fields: CheckoutFields,
    reference: Option<String>,
) -> Answer {
    let purchase = Purchase {
        package_code: fields.package_code,
        reference,
        max_price: None,
        esim_order: None,
        customer_email: fields.customer_email,
        discount_code: fields.discount_code,
    };
    let receipt = orders::place(app, bearer.buyer(), purchase).await?;
    let status = status_of(Stage::of_order(receipt.order.status));
    let mut response =
        uncached(json(status, &purchase::of_order(app, &receipt.order, Some(receipt.balance))?)?)?;
    if receipt.replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    if status == StatusCode::ACCEPTED {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
    }
    Ok(response)
}

/// What holds a key to an order, and changes by the second, is kept by no cache.
pub fn uncached(mut response: Response) -> Answer {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// A user's wallet.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Wallet)]
pub struct WalletView {
    #[schema(example = true)]
    pub success: bool,
    #[schema(example = "ann@example.com")]
    pub email: String,
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// What can be spent now.
    pub balance_usd: Money,
    /// Charged for orders that the supplier has not delivered yet.
    pub held_usd: Money,
    /// ACTIVE or SUSPENDED: a suspended account can read, but not buy.
    #[schema(example = "ACTIVE")]
    pub status: &'static str,
}

/// Wallet
///
/// What the wallet holds. Refunds, second payments and top-ups by link come here.
#[utoipa::path(get, path = "/api/agentic/wallet", operation_id = "getWallet", tag = "wallet",
    responses((status = 200, description = "The wallet", body = WalletView)))]
pub async fn wallet(bearer: Bearer, FromState(state): FromState<State>) -> Answer {
    let balance = accounts::balance(&state.app, bearer.account).await?;
    let view = WalletView {
        success: true,
        email: bearer.email.to_string(),
        currency: "USD",
        balance_usd: Money(balance.available),
        held_usd: Money(balance.held),
        status: if balance.suspended { "SUSPENDED" } else { "ACTIVE" },
    };
    uncached(json(StatusCode::OK, &view)?)
}
