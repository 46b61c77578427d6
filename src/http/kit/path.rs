//! The variable part of a path, and the ids that stand there.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use crate::domain::esim;
use crate::domain::ids::{BatchId, InvoiceId, KeyId, MemberId, OrderId, SessionId, TokenId, WebhookId};
use crate::domain::refusal::Refusal;

pub const ICCID_RULE: &str = "must have 19 or 20 digits";

/// The longest id of ours.
pub const ID_CHARS: usize = 64;

/// The variable part of a path. A part that does not decode to text becomes empty, and nothing has an empty name.
pub struct Segment(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Segment, Infallible> {
        let decoded = Path::<String>::from_request_parts(parts, state).await;
        Ok(Segment(decoded.map(|Path(text)| text).unwrap_or_default()))
    }
}

/// The two variable parts of a path, in the same way.
pub struct Segments(pub String, pub String);

impl<S: Send + Sync> FromRequestParts<S> for Segments {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Segments, Infallible> {
        let decoded = Path::<(String, String)>::from_request_parts(parts, state).await;
        let (first, second) = decoded.map(|Path(both)| both).unwrap_or_default();
        Ok(Segments(first, second))
    }
}

/// An ICCID as callers write it. One that is shorter is named by the id of its order.
pub fn named_iccid(text: &str) -> Option<String> {
    esim::iccid(text).filter(|iccid| iccid.len() >= 19 && iccid.len() == text.len())
}

pub fn iccid(text: &str) -> Result<String, Refusal> {
    named_iccid(text).ok_or_else(|| Refusal::field("iccid", ICCID_RULE))
}

/// Whether a text has the shape of our ids.
fn is_plain(text: &str) -> bool {
    text.len() <= ID_CHARS && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Ids of a wrong shape are simply not found.
pub fn order_id(text: String) -> Result<OrderId, Refusal> {
    let known_kind = text.starts_with("ord_") || text.starts_with("top_");
    if known_kind && is_plain(&text) { Ok(OrderId::from_text(text)) } else { Err(Refusal::OrderNotFound) }
}

/// Ids of a wrong shape are simply not found.
pub fn invoice_id(text: String) -> Result<InvoiceId, Refusal> {
    let is_ours = is_plain(&text) && text.starts_with(InvoiceId::PREFIX);
    if is_ours { Ok(InvoiceId::from_text(text)) } else { Err(Refusal::InvoiceNotFound) }
}

/// Ids of a wrong shape are simply not found.
pub fn token_id(text: &str) -> Result<TokenId, Refusal> {
    let is_ours = is_plain(text) && text.starts_with(TokenId::PREFIX);
    if is_ours { Ok(TokenId::from_text(text)) } else { Err(Refusal::TokenNotFound) }
}

/// Ids of a wrong shape are simply not found.
pub fn session_id(text: &str) -> Result<SessionId, Refusal> {
    let is_ours = is_plain(text) && text.starts_with(SessionId::PREFIX);
    if is_ours { Ok(SessionId::from_text(text)) } else { Err(Refusal::NotFound) }
}

/// Ids of a wrong shape are simply not found.
pub fn webhook_id(text: &str) -> Result<WebhookId, Refusal> {
    let is_ours = is_plain(text) && text.starts_with(WebhookId::PREFIX);
    if is_ours { Ok(WebhookId::from_text(text)) } else { Err(Refusal::WebhookNotFound) }
}

/// Ids of a wrong shape are simply not found.
pub fn member_id(text: &str) -> Result<MemberId, Refusal> {
    let is_ours = is_plain(text) && text.starts_with(MemberId::PREFIX);
    if is_ours { Ok(MemberId::from_text(text)) } else { Err(Refusal::MemberNotFound) }
}

/// Ids of a wrong shape are simply not found.
pub fn key_id(text: &str) -> Result<KeyId, Refusal> {
    let is_ours = is_plain(text) && text.starts_with(KeyId::PREFIX);
    if is_ours { Ok(KeyId::from_text(text)) } else { Err(Refusal::KeyNotFound) }
}

/// Ids of a wrong shape are simply not found.
pub fn batch_id(text: &str) -> Result<BatchId, Refusal> {
    let is_ours = is_plain(text) && text.starts_with(BatchId::PREFIX);
    if is_ours { Ok(BatchId::from_text(text)) } else { Err(Refusal::NotFound) }
}
