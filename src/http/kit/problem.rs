//! Errors on their way out. Handlers return `Refused`; it rides on the response as an extension until the
//! outermost layer (`doorway.rs`), which knows the request id, writes the body (RFC 9457, or a small page for a browser).

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::hints::Api;
use super::notice::Sandbox;
use super::wire::{CancelReasonWord, CurrencyWord, DifferenceWord, Money, NetworkWord, iso};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::{FieldError, Refusal};
use crate::error::{self, Error};

/// What a handler returns instead of an answer.
pub struct Refused(pub Error);

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused(error)
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        Refused(refusal.into())
    }
}

/// The error, waiting on the response for its body.
#[derive(Clone)]
pub struct Pending(pub Error);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = self.0.refusal().map_or(500, |refusal| refusal.problem().status);
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.extensions_mut().insert(Pending(self.0));
        response
    }
}

/// An error, as every HTTP door of the service answers it (RFC 9457 with members of our own).
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Problem")]
pub struct Problem {
    /// The section of the documentation that explains the code.
    #[schema(format = "uri", example = "http://127.0.0.1:8402/docs#insufficient-balance")]
    pub r#type: String,
    #[schema(example = "Insufficient balance")]
    pub title: &'static str,
    #[schema(example = 402, minimum = 400, maximum = 599)]
    pub status: u16,
    /// What happened, in a sentence for people.
    pub detail: String,
    #[schema(example = false)]
    pub success: bool,
    /// What happened, in a word for programs.
    #[schema(example = "INSUFFICIENT_BALANCE")]
    pub code: &'static str,
    /// The same text as `detail`.
    pub error: String,
    /// Quote this when you ask for help.
    pub request_id: String,
    /// For an invalid request: every field that is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldProblem>,
    /// With INSUFFICIENT_BALANCE: what the wallet holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub balance_usd: Option<Money>,
    /// With INSUFFICIENT_BALANCE: what the purchase costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub required_usd: Option<Money>,
    /// With INSUFFICIENT_BALANCE: what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub shortfall_usd: Option<Money>,
    /// With INSUFFICIENT_BALANCE, for users: a page that pays money into this wallet, and can do nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uri")]
    pub magic_link: Option<String>,
    /// The link ends then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub magic_link_expires_at: Option<String>,
    /// With `magicLink`, only in a sandbox: true. No real money is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sandbox: Option<bool>,
    /// With `magicLink`, only in a sandbox: do not send real money, and what to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sandbox_notice: Option<&'static str>,
    /// With PRICE_CHANGED: what the plan costs now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub price_usd: Option<Money>,
    /// With NOT_CANCELLABLE: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<CancelReasonWord>,
    /// With IDEMPOTENCY_CONFLICT: the order that holds the reference, or the invoice of the checkout that does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub order_id: Option<String>,
    /// With IDEMPOTENCY_CONFLICT: in what the request differs from the one that holds the reference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub differs: Vec<DifferenceWord>,
    /// With UNSUPPORTED_PAIR: the currencies that are accepted, each with its network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub pairs: Vec<PairView>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Pair)]
pub struct PairView {
    pub currency: CurrencyWord,
    pub network: NetworkWord,
}

impl From<(Currency, Network)> for PairView {
    fn from((currency, network): (Currency, Network)) -> PairView {
        PairView { currency: CurrencyWord(currency), network: NetworkWord(network) }
    }
}

#[derive(Serialize, ToSchema)]
pub struct FieldProblem {
    #[schema(example = "packageCode")]
    pub field: String,
    #[schema(example = "is required")]
    pub message: String,
}

impl From<&FieldError> for FieldProblem {
    fn from(wrong: &FieldError) -> FieldProblem {
        FieldProblem { field: wrong.field.clone(), message: wrong.message.clone() }
    }
}

/// The header that this error adds to its answer.
pub fn extra_header(error: &Error) -> Option<(HeaderName, HeaderValue)> {
    match error.refusal()? {
        Refusal::Unauthenticated => {
            Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("X-B2B-Key realm=\"partner\"")))
        }
        Refusal::TokenRequired | Refusal::OtpInvalid => {
            Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"simgate\"")))
        }
        Refusal::NoRoom => Some((header::RETRY_AFTER, HeaderValue::from_static("5"))),
        Refusal::Overloaded
        | Refusal::SupplierUnavailable { .. }
        | Refusal::CarrierUnavailable
        | Refusal::ChainUnavailable => Some((header::RETRY_AFTER, HeaderValue::from_static("1"))),
        other => other.retry_after_secs().map(|secs| (header::RETRY_AFTER, HeaderValue::from(secs))),
    }
}

/// What an error's body needs to know besides the error.
pub struct Told<'a> {
    pub request_id: &'a str,
    /// The address of the page that explains the codes.
    pub docs: &'a str,
    /// The API that was called, if it was one.
    pub api: Option<Api>,
    /// Whether no real money is meant.
    pub sandbox: Option<Sandbox>,
}

/// The body of an error.
pub fn body(refusal: Option<&Refusal>, told: &Told) -> Problem {
    let Told { request_id, docs, api, sandbox } = *told;
    let (status, code, title, detail) = match refusal {
        Some(refusal) => {
            let problem = refusal.problem();
            let detail = match api.and_then(|api| api.hint(refusal)) {
                Some(hint) => format!("{} {hint}", problem.detail),
                None => problem.detail,
            };
            (problem.status, problem.code, problem.title, detail)
        }
        None => (500, "INTERNAL", "Internal error", "Something went wrong on our side.".to_string()),
    };
    let mut body = Problem {
        r#type: format!("{docs}#{}", error::anchor(code)),
        title,
        status,
        error: detail.clone(),
        detail,
        success: false,
        code,
        request_id: request_id.into(),
        ..Problem::default()
    };
    match refusal {
        Some(Refusal::Invalid(fields)) => {
            body.errors = fields.iter().map(FieldProblem::from).collect();
        }
        Some(Refusal::InsufficientBalance { balance, required }) => short(&mut body, *balance, *required),
        Some(Refusal::WalletShort { balance, required, link, until }) => {
            short(&mut body, *balance, *required);
            body.magic_link = Some(link.clone());
            body.magic_link_expires_at = Some(iso(*until));
            body.sandbox = sandbox.map(|_| true);
            body.sandbox_notice = sandbox.map(Sandbox::notice);
        }
        Some(Refusal::PriceChanged { price }) => body.price_usd = Some(Money(*price)),
        Some(Refusal::NotCancellable(reason)) => body.reason = Some(CancelReasonWord(*reason)),
        Some(Refusal::IdempotencyConflict(conflict)) => {
            body.order_id = conflict.holder.clone();
            body.differs = conflict.differs.iter().map(|what| DifferenceWord(*what)).collect();
        }
        Some(Refusal::UnsupportedPair(pairs)) => {
            body.pairs = pairs.iter().copied().map(PairView::from).collect();
        }
        _ => {}
    }
    body
}

fn short(body: &mut Problem, balance: Usd, required: Usd) {
    body.balance_usd = Some(Money(balance));
    body.required_usd = Some(Money(required));
    body.shortfall_usd = Some(Money(required.minus(balance)));
}
