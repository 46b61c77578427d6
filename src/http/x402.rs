//! Payment by signature at the checkout's door (x402 version 2): its members and headers in the 402, and the answer to
//! a signed request.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::checkout::{record, uncached};
use super::problem::Refused;
use crate::app::App;
use crate::domain::checkout::Checkout;
use crate::domain::ids::AccountNo;
use crate::error::{Error, Result};
use crate::ops::x402::{self, Outcome, Tender};
use crate::x402::wire::{self, PaymentRequired, Requirements, Resource, SettlementResponse};

/// What clients are told as long as nothing is wrong.
const UNSIGNED: &str = "PAYMENT-SIGNATURE header is required";
/// Scripts on pages of other origins read no other headers.
const EXPOSED: HeaderValue = HeaderValue::from_static("PAYMENT-REQUIRED, PAYMENT-RESPONSE, Retry-After");

/// What is paid for.
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

/// What the scheme `exact` needs besides, and which order it is for.
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

/// A payment that moved nothing, and why.
pub struct Unpaid {
    pub error: &'static str,
    pub receipt: Option<SettlementResponse>,
    /// What can still be paid instead.
    pub checkout: Option<Box<Checkout>>,
}

/// The offer that goes with a 402, if there is one.
pub fn offer(app: &App, checkout: &Checkout, unpaid: Option<&Unpaid>) -> Option<PaymentRequired> {
    let url = format!("{}/api/agentic/checkout", app.settings.agent_url);
    x402::offer(app, checkout, url, unpaid.map_or(UNSIGNED, |unpaid| unpaid.error))
}

/// The headers of a 402.
pub fn add_headers(
    response: &mut Response,
    offer: Option<&PaymentRequired>,
    unpaid: Option<&Unpaid>,
) -> Result<()> {
    if let Some(offer) = offer {
        insert(response, wire::REQUIRED, &wire::encode(offer))?;
    }
    if let Some(receipt) = unpaid.and_then(|unpaid| unpaid.receipt.as_ref()) {
        insert(response, wire::RESPONSE, &wire::encode(receipt))?;
    }
    Ok(())
}

fn insert(response: &mut Response, name: &'static str, value: &str) -> Result<()> {
    let value = HeaderValue::from_str(value).map_err(Error::fault)?;
    response.headers_mut().insert(HeaderName::from_static(name), value);
    response.headers_mut().insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    Ok(())
}

/// Takes a signed request: the order as it stands, or why the signature buys nothing.
pub async fn pay(
    app: &App,
    account: AccountNo,
    package_code: &str,
    signature: &HeaderValue,
) -> Result<Result<Response, Unpaid>, Refused> {
    let tender =
        Tender { account, package_code, esim_order: None, reference: None, header: signature.as_bytes() };
    Ok(match x402::pay(app, tender).await? {
        Outcome::Refused { reason, receipt, checkout } => {
            Err(Unpaid { error: reason.as_str(), receipt, checkout })
        }
        Outcome::Taken { progress, receipt } => {
            let mut response = uncached(record(app, &progress)?)?;
            if let Some(receipt) = receipt {
                insert(&mut response, wire::RESPONSE, &wire::encode(&receipt))?;
            }
            Ok(response)
        }
    })
}
