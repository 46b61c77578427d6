//! Answers in JSON: what a handler returns, and the headers that several doors set.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::problem::Refused;

/// How long a client should wait before it asks again, so that the supplier has a moment.
pub const RETRY_SECONDS: &str = "2";

pub type Answer = Result<Response, Refused>;

pub fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    let bytes = serde_json::to_vec(body).map_err(crate::error::Error::fault)?;
    Ok((status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], bytes)
        .into_response())
}

pub const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Forbids caches to keep an answer that holds a key to an order, and changes by the second.
pub fn uncached(mut response: Response) -> Answer {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
