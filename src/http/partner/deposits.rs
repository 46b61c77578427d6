//! Deposits on the partner API: open an invoice, look at it, look at the chain. Nothing is decided here; the
//! operations are in `ops::deposits`. An invoice id opens the pay page, so it stands in bodies only: never in a
//! header and never in a log line.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::domain::invoice::Deposit;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json, uncached};
use crate::http::kit::auth::Partner;
use crate::http::kit::fields::{Fields, JsonBody, NoQuery, Query, Segment, invoice_id, listed};
use crate::http::kit::notice::Sandbox;
use crate::http::kit::payment::{named_currency, named_network, qr_data_url};
use crate::http::kit::wire::{CurrencyWord, InvoiceStatusWord, Money, NetworkWord};
use crate::ops::deposits::{self, MAX_AMOUNT, Verified, by_key, record};
use crate::wire::deposits::DepositFacts;

/// The network to open an invoice on, with its default.
pub fn network_or_base() -> RefOr<Schema> {
    OneOfBuilder::new()
        .item(Ref::from_schema_name(NetworkWord::name()))
        .item(ObjectBuilder::new().schema_type(Type::Null))
        .default(Some(Network::Base.as_str().into()))
        .description(Some("The network that the payment will come by"))
        .into()
}

const MIN_AMOUNT: Usd = Usd::dollars(10);
const TEXT_CHARS: usize = 128;

/// A deposit invoice and everything that came to it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Deposit)]
pub struct DepositView {
    #[schema(example = true)]
    pub success: bool,
    #[serde(flatten)]
    #[schema(inline)]
    pub facts: DepositFacts,
    /// Only in a sandbox: true. No real money is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sandbox: Option<bool>,
    /// Only in a sandbox: do not send real money, and what to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sandbox_notice: Option<&'static str>,
}

/// The result of a look at the chain.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DepositVerified)]
pub struct VerifiedView {
    #[schema(example = true)]
    pub success: bool,
    /// CONFIRMED when something was credited.
    pub status: InvoiceStatusWord,
    /// What happened, or what is awaited, for people.
    #[schema(example = "250 USD were credited to the wallet.")]
    pub message: String,
    #[schema(example = "inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub invoice_id: String,
    /// What this invoice has brought into the wallet, now and before.
    pub credited_usd: Money,
    /// The balance now.
    pub new_balance_usd: Money,
    pub currency: CurrencyWord,
    pub network: NetworkWord,
    /// Another invoice of this account, when the transaction counts for that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub credited_to: Option<String>,
}

fn deposit_view(app: &App, deposit: &Deposit) -> DepositView {
    let sandbox = Sandbox::on(&app.settings, deposit.invoice.network);
    DepositView {
        success: true,
        facts: record::facts(app, deposit),
        sandbox: sandbox.map(|_| true),
        sandbox_notice: sandbox.map(Sandbox::notice),
    }
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct DepositRequest {
    /// How much to ask for. The operator may set a higher minimum on some networks.
    #[schema(minimum = 10, maximum = 1000000, multiple_of = 0.000001, example = 250)]
    amount_usd: f64,
    #[schema(value_type = CurrencyWord, example = "USDC")]
    currency: String,
    #[schema(schema_with = network_or_base, required = false)]
    network: Option<String>,
}

/// Open a deposit invoice
///
/// An address of your own to send stablecoins to. Every payment to it is credited: more or less than was asked for, in
/// several transfers, late, by another network of the same kind, in the other token. An account may have five open
/// invoices on a network. The words of `currency` and `network` are taken in any case.
#[utoipa::path(post, path = "/api/b2b/v1/balance/deposit", operation_id = "openDeposit", tag = "deposits",
    request_body = DepositRequest,
    responses((status = 200, description = "The invoice, waiting for its payment", body = DepositView)))]
pub async fn open(partner: Partner, state: State, _: NoQuery, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["amountUsd", "currency", "network"]);
    let amount = fields.required_usd("amountUsd", MIN_AMOUNT, MAX_AMOUNT);
    let currency =
        fields.required_word("currency", &listed(Currency::ALL.map(Currency::as_str)), named_currency);
    let network = fields.word("network", &listed(Network::ALL.map(Network::as_str)), named_network);
    let (amount, currency) = fields.finish_with(amount.zip(currency))?;
    let network = network.unwrap_or(Network::Base);
    let deposit = by_key::open(&state.app, &partner, amount, currency, network).await?;
    uncached(json(StatusCode::OK, &deposit_view(&state.app, &deposit)))
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "describes the body for OpenAPI; `Fields` reads it")]
pub struct VerifyRequest {
    #[schema(max_length = 128, pattern = "printable", example = "inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    invoice_id: String,
    /// The transaction to look at, with `0x` unless the invoice's network is TRON. Without it, every payment to the
    /// invoice's address is looked for.
    #[schema(
        pattern = "^(0x)?[0-9A-Fa-f]{64}$",
        example = "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060"
    )]
    tx_hash: Option<String>,
}

/// Verify a deposit
///
/// Looks at the chain now and credits what is final. Deposits are credited without it too; this call saves the wait for
/// the next look, and tells what is awaited. It credits nothing twice, however often it is called.
#[utoipa::path(post, path = "/api/b2b/v1/balance/verify-deposit", operation_id = "verifyDeposit", tag = "deposits",
    request_body = VerifyRequest,
    responses((status = 200, description = "Credited, or what is awaited", body = VerifiedView)))]
pub async fn verify(partner: Partner, state: State, _: NoQuery, body: JsonBody) -> Answer {
    let mut fields = Fields::parse(&body)?;
    fields.allow(&["invoiceId", "txHash"]);
    let id = fields.required_text("invoiceId", TEXT_CHARS);
    let tx_hash = fields.text("txHash", TEXT_CHARS);
    fields.finish()?;
    let Verified { deposit, balance, message, credited_to } =
        by_key::verify(&state.app, &partner, &invoice_id(id)?, tx_hash.as_deref()).await?;
    let view = VerifiedView {
        success: true,
        status: InvoiceStatusWord(deposit.invoice.status),
        message,
        invoice_id: deposit.invoice.id.to_string(),
        credited_usd: Money(deposit.paid.credited),
        new_balance_usd: Money(balance),
        currency: CurrencyWord(deposit.invoice.currency),
        network: NetworkWord(deposit.invoice.network),
        credited_to: credited_to.map(|id| id.to_string()),
    };
    uncached(json(StatusCode::OK, &view))
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct AddressQuery {
    /// The network that the payments will come by. Absent: BASE.
    #[param(inline, value_type = Option<NetworkWord>, example = "BASE")]
    network: Option<String>,
    /// The token that will be sent. Absent: USDC.
    #[param(inline, value_type = Option<CurrencyWord>, example = "USDC")]
    currency: Option<String>,
}

/// Where to pay in without an invoice.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DepositAddress)]
pub struct AddressView {
    #[schema(example = true)]
    pub success: bool,
    pub network: NetworkWord,
    pub currency: CurrencyWord,
    /// The address is yours for ever, and the same for all networks of its kind. No invoice uses it.
    #[schema(example = "0x9858EfFD232B4033E47d90003D41EC34EcaEda94")]
    pub deposit_address: String,
    /// A link that wallets understand. It names no amount: the wallet asks for one.
    pub payment_uri: String,
    /// A QR code of `paymentUri`.
    #[schema(pattern = "^data:image/png;base64,[0-9A-Za-z+/]+=*$")]
    pub qr_data_url: String,
    /// How many blocks a payment by this network waits for, its own included.
    #[schema(example = 5, minimum = 1)]
    pub required_confirmations: i64,
    /// Only in a sandbox: true. No real money is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sandbox: Option<bool>,
    /// Only in a sandbox: do not send real money, and what to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sandbox_notice: Option<&'static str>,
}

/// Your standing address
///
/// An address of your own that needs no invoice: save it, and send any amount at any time. What comes is credited by the
/// same rules as the payment of an invoice, also by another network of the same kind and in the other token. It is made
/// when you ask for the first time with a key that may open deposits, and the same from then on. The words of `currency` and `network` are taken in any case.
#[utoipa::path(get, path = "/api/b2b/v1/balance/address", operation_id = "getDepositAddress", tag = "deposits",
    params(AddressQuery),
    responses((status = 200, description = "Where to pay in", body = AddressView)))]
pub async fn address(partner: Partner, state: State, query: Query) -> Answer {
    let mut query = query.strictly();
    let networks = listed(Network::ALL.map(Network::as_str));
    let network = query.take("network", format_args!("must be one of {networks}"), named_network);
    let currencies = listed(Currency::ALL.map(Currency::as_str));
    let currency = query.take("currency", format_args!("must be one of {currencies}"), named_currency);
    query.finish()?;
    let (network, currency) = (network.unwrap_or(Network::Base), currency.unwrap_or(Currency::Usdc));
    let standing = by_key::standing(&state.app, &partner, currency, network).await?;
    let sandbox = Sandbox::on(&state.app.settings, standing.network);
    let view = AddressView {
        success: true,
        network: NetworkWord(standing.network),
        currency: CurrencyWord(standing.currency),
        deposit_address: standing.address,
        qr_data_url: qr_data_url(&standing.payment_uri)?,
        payment_uri: standing.payment_uri,
        required_confirmations: standing.required_confirmations,
        sandbox: sandbox.map(|_| true),
        sandbox_notice: sandbox.map(Sandbox::notice),
    };
    uncached(json(StatusCode::OK, &view))
}

/// One deposit
///
/// An invoice of yours in any state, with every transfer that counts for it.
#[utoipa::path(get, path = "/api/b2b/v1/balance/deposit/{invoiceId}", operation_id = "getDeposit", tag = "deposits",
    params(("invoiceId" = String, Path, description = "The invoice's id", example = "inv_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")),
    responses((status = 200, description = "The invoice", body = DepositView)))]
pub async fn get(partner: Partner, state: State, _: NoQuery, Segment(id): Segment) -> Answer {
    let deposit = deposits::find(&state.app, partner.account, &invoice_id(id)?).await?;
    uncached(json(StatusCode::OK, &deposit_view(&state.app, &deposit)))
}
