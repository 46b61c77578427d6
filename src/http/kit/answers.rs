//! What a handler returns, answers in JSON, and the headers that several doors set.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::problem::Refused;

/// How long a client should wait before it asks again, so that the supplier has a moment.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("2");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

pub type Answer = Result<Response, Refused>;

pub fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    let bytes = serde_json::to_vec(body).map_err(crate::error::Error::fault)?;
    Ok((status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], bytes)
        .into_response())
}

/// 200 for what is done, 202 for what is still open: the client asks again a little later.
pub fn done_or_open(open: bool, body: &impl Serialize) -> Answer {
    let mut response = json(if open { StatusCode::ACCEPTED } else { StatusCode::OK }, body)?;
    if open {
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_SECONDS);
    }
    Ok(response)
}

/// Says whether this was answered before.
pub fn marked(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// Forbids caches to keep an answer that holds a key or a token, or changes by the second.
pub fn uncached(answer: Answer) -> Answer {
    let mut response = answer?;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
