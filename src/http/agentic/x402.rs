//! The headers of payment by signature (x402 version 2) at the checkout's door.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

use crate::app::App;
use crate::error::{Error, Result};
use crate::ops::buying::Signing;
use crate::x402::wire::{self, PaymentRequired, SettlementResponse};

/// The signature that came with a request, and the words for a 402.
pub fn signing<'a>(app: &App, header: Option<&'a HeaderValue>) -> Signing<'a> {
    Signing {
        payment: header.map(HeaderValue::as_bytes),
        field: "PAYMENT-SIGNATURE",
        resource: format!("{}/api/agentic/checkout", app.settings.agent_url),
        unsigned: "PAYMENT-SIGNATURE header is required",
    }
}

pub fn add_offer(response: &mut Response, offer: Option<&PaymentRequired>) -> Result<()> {
    match offer {
        Some(offer) => insert(response, wire::REQUIRED, &wire::encode(offer)),
        None => Ok(()),
    }
}

pub fn add_receipt(response: &mut Response, receipt: Option<&SettlementResponse>) -> Result<()> {
    match receipt {
        Some(receipt) => insert(response, wire::RESPONSE, &wire::encode(receipt)),
        None => Ok(()),
    }
}

fn insert(response: &mut Response, name: &'static str, value: &str) -> Result<()> {
    let value = HeaderValue::from_str(value).map_err(Error::fault)?;
    response.headers_mut().insert(HeaderName::from_static(name), value);
    Ok(())
}
