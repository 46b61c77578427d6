//! The bytes of a request and what kind of content they are said to be.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::accept::PATIENCE;
use crate::domain::refusal::Refusal;
use crate::error::Result;

const MAX_BODY: usize = 64 * 1024;

pub async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if declared.and_then(|text| text.parse::<usize>().ok()).is_some_and(|length| length > MAX_BODY) {
        return Err(Refusal::PayloadTooLarge);
    }
    match tokio::time::timeout(PATIENCE, Limited::new(body, MAX_BODY).collect()).await {
        Err(_) => Err(Refusal::RequestTimeout),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => Err(Refusal::PayloadTooLarge),
        Ok(Err(_)) => Err(Refusal::Malformed("The body could not be read.".into())),
    }
}

/// The content type without its parameters, in lower case.
pub fn essence(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a client does not say what it sends, or `fetch` said text/plain for it.
pub fn is_untyped(headers: &HeaderMap) -> bool {
    matches!(essence(headers).as_str(), "" | "text/plain")
}

pub fn is_json(headers: &HeaderMap) -> bool {
    let essence = essence(headers);
    essence == "application/json" || essence.ends_with("+json")
}
