//! What must be paid and how a payment stands, as every door shows it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use utoipa::ToSchema;

use super::fields::listed;
use super::notice::{Sandbox, warned};
use super::qr;
use super::wire::{CurrencyWord, Money, NetworkWord, iso};
use crate::app::App;
use crate::domain::checkout::{Checkout, NETWORKS, Stage};
use crate::domain::network::{Currency, Network};
use crate::domain::slot::Band;
use crate::error::Result;
use crate::ops::checkout::progress::Progress;
use crate::wire::payment_uri;
use crate::x402::wire::{Requirements, Resource};

/// Small, because a language model may have to read every letter of it.
const QR_PIXELS: usize = 4;

/// How long a payment may take on a network that is closed by now.
const UNKNOWN_SECONDS: u32 = 60;

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
    /// Whether, at the moment, a rounded amount counts as your payment too: anything from `minAmount` to `maxAmount`.
    pub wide: bool,
    /// The least that counts as this payment; `expectedAmount` unless `wide` is true.
    pub min_amount: Money,
    /// The most that counts as this payment; `expectedAmount` unless `wide` is true.
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
    /// Only in a sandbox: true. No real money is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sandbox: Option<bool>,
    /// Only in a sandbox: do not send real money, and what to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sandbox_notice: Option<&'static str>,
}

/// A text as a QR code, for clients that cannot load an image.
pub fn qr_data_url(text: &str) -> Result<String> {
    let code = qr::png(&qr::encode(text)?, QR_PIXELS)?;
    Ok(format!("data:image/png;base64,{}", STANDARD.encode(code)))
}

/// A network as callers name it: in any case.
pub fn named_network(text: &str) -> Option<Network> {
    Network::parse(&text.to_ascii_uppercase())
}

/// A token as callers name it: in any case.
pub fn named_currency(text: &str) -> Option<Currency> {
    Currency::parse(&text.to_ascii_uppercase())
}

/// The networks of these pairs, the usual one first.
pub fn networks_of(pairs: &[(Currency, Network)]) -> Vec<Network> {
    NETWORKS.into_iter().filter(|network| pairs.iter().any(|(_, on)| on == network)).collect()
}

/// The tokens of these pairs, the usual one first.
pub fn currencies_of(pairs: &[(Currency, Network)]) -> Vec<Currency> {
    Currency::ALL.into_iter().filter(|currency| pairs.iter().any(|(with, _)| with == currency)).collect()
}

/// The names of the networks that checkouts can be paid on.
pub fn network_names() -> String {
    listed(NETWORKS.map(Network::as_str))
}

/// The names of the tokens that checkouts can be paid with.
pub fn currency_names() -> String {
    listed(Currency::ALL.map(Currency::as_str))
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
    /// The amounts that pay it.
    pub fn band(self) -> Band {
        let Checkout { amount, .. } = *self.checkout;
        if self.rounds { self.checkout.band() } else { Band { least: amount, most: amount } }
    }

    /// What to send, in words.
    pub fn amount(self) -> String {
        let Band { least, most } = self.band();
        let (amount, token) = (self.checkout.amount, self.checkout.currency.as_str());
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
    let token = terms.and_then(|terms| terms.tokens.iter().find(|token| token.currency == checkout.currency));
    let contract_address = token.map(|token| token.contract.clone()).unwrap_or_default();
    let payment_uri = payment_uri(network, &contract_address, &checkout.address, checkout.amount);
    let sandbox = Sandbox::on(&app.settings, network);
    Ok(PaymentDueView {
        currency: CurrencyWord(checkout.currency),
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
        qr_data_url: qr_data_url(&payment_uri)?,
        payment_uri,
        expires_at: checkout.expires_at.micros() / 1_000,
        expires_at_iso: iso(checkout.expires_at),
        polling_url: format!("{}/api/agentic/order/{}", app.settings.agent_url, checkout.id),
        required_confirmations: terms.map_or(network.confirmations(), |terms| terms.confirmations),
        typical_confirmation_seconds: terms.map_or(UNKNOWN_SECONDS, |terms| terms.typical_s),
        sandbox: sandbox.map(|_| true),
        sandbox_notice: sandbox.map(Sandbox::notice),
    })
}

/// What to do next.
pub fn instructions(app: &App, progress: &Progress) -> String {
    let Progress { checkout, stage, required_confirmations, .. } = progress;
    let (amount, network) = (Asked::from(progress).amount(), checkout.network.name());
    let late = iso(checkout.late_until);
    let sandbox = Sandbox::on(&app.settings, checkout.network);
    if progress.nearly_paid {
        let told = format!(
            "A payment that nearly fits was seen at {}, and nobody can be sure whose it is; the operator decides. If it \
             is yours, tell support {} and what proves that you sent it. If it is not: send {amount} on {network} before \
             {}; a later payment counts until {late}.",
            checkout.address,
            app.numbers.of_checkout(checkout),
            iso(checkout.expires_at)
        );
        return warned(told, sandbox);
    }
    match (stage, progress.confirmations()) {
        (Stage::PendingPayment, 0) if progress.signed => {
            "A payment by signature is on its way to the chain. Do not pay again; poll in a few seconds."
                .into()
        }
        (Stage::PendingPayment, 0) => {
            let until = iso(checkout.expires_at);
            warned(format!("Send {amount} on {network} to {} before {until}.", checkout.address), sandbox)
        }
        (Stage::PendingPayment, seen) => format!(
            "The payment was seen and waits for confirmations: {seen} of {required_confirmations}. Do not pay again."
        ),
        (Stage::Expired, _) => format!(
            "The time to pay is over: check out again. If you have sent {amount} already, wait: until {late} \
             it still counts."
        ),
        (Stage::Failed, _) if progress.owed.is_positive() => {
            "It was not delivered. What was paid is owed to this invoice: claim it to a wallet on its page."
                .into()
        }
        (Stage::Failed, _) if checkout.is_nobodys() => {
            "It was not delivered. Nothing can be claimed now: the payment is missing on its chain.".into()
        }
        (Stage::Completed, _) if checkout.esim_order.is_some() => {
            "The data was added to the eSIM; nothing has to be installed.".into()
        }
        (Stage::ConfirmedAwaitingFulfillment | Stage::Processing, _) if checkout.esim_order.is_some() => {
            "It is paid, and the data is being added to the eSIM. Poll again in a few seconds.".into()
        }
        (Stage::ConfirmedAwaitingFulfillment | Stage::Processing | Stage::Completed | Stage::Failed, _) => {
            after_payment(*stage)
        }
    }
}

pub fn after_payment(stage: Stage) -> String {
    match stage {
        Stage::Completed => {
            "Install the eSIM: scan the QR code, open installUrl on the phone, or type in the LPA string. Install \
             it once, with an internet connection, before or at the destination."
        }
        Stage::Failed => "It was not delivered. The money is in the wallet: buy again with payWith: \"wallet\".",
        Stage::ConfirmedAwaitingFulfillment | Stage::Processing | Stage::PendingPayment | Stage::Expired => {
            "It is paid, and the eSIM is being prepared. Poll again in a few seconds."
        }
    }
    .into()
}

/// What the payment is for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = X402Resource)]
pub struct ResourceView {
    #[schema(format = "uri")]
    pub url: String,
    pub description: String,
    #[schema(example = "application/json")]
    pub mime_type: &'static str,
}

/// One way to pay by signature.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = X402Requirements)]
pub struct RequirementsView {
    #[schema(example = "exact")]
    pub scheme: String,
    /// CAIP-2.
    #[schema(example = "eip155:8453")]
    pub network: String,
    /// The token's contract.
    #[schema(example = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")]
    pub asset: String,
    /// In the token's base units.
    #[schema(example = "4485112", pattern = "^[0-9]+$")]
    pub amount: String,
    #[schema(example = "0x9858EfFD232B4033E47d90003D41EC34EcaEda94")]
    pub pay_to: String,
    #[schema(example = 300, minimum = 1)]
    pub max_timeout_seconds: u64,
    pub extra: ExtraView,
}

/// What the scheme `exact` also needs, and the order that it pays for.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = X402Extra)]
pub struct ExtraView {
    /// With `version`, the token's EIP-712 domain.
    #[schema(example = "USD Coin")]
    pub name: String,
    #[schema(example = "2")]
    pub version: String,
    /// The payment is settled before the eSIM is handed over.
    #[schema(example = "upfront")]
    pub payment_flow: String,
    #[schema(example = "SG4K7M2Q9XTB")]
    pub order_ref: String,
}

impl From<&Resource> for ResourceView {
    fn from(resource: &Resource) -> ResourceView {
        ResourceView {
            url: resource.url.clone(),
            description: resource.description.clone(),
            mime_type: resource.mime_type,
        }
    }
}

impl From<&Requirements> for RequirementsView {
    fn from(asked: &Requirements) -> RequirementsView {
        let asked = asked.clone();
        RequirementsView {
            scheme: asked.scheme,
            network: asked.network,
            asset: asked.asset,
            amount: asked.amount,
            pay_to: asked.pay_to,
            max_timeout_seconds: asked.max_timeout_seconds,
            extra: ExtraView {
                name: asked.extra.name,
                version: asked.extra.version,
                payment_flow: asked.extra.payment_flow,
                order_ref: asked.extra.order_ref,
            },
        }
    }
}
