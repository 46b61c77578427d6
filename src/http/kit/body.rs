//! The bytes of a request and what kind of content they are said to be.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::accept::PATIENCE;
use super::problem::Refused;
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

/// The raw bytes of a JSON request.
pub struct JsonBody(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<JsonBody, Refused> {
        if !is_json(request.headers()) {
            return Err(Refusal::UnsupportedMediaType.into());
        }
        let (parts, body) = request.into_parts();
        Ok(JsonBody(read(&parts.headers, body).await?))
    }
}

/// A body that may be left out. One that is sent is a JSON object.
pub struct OptionalBody(pub(super) Option<JsonBody>);

/// The same from clients that do not say what they send.
pub struct OptionalUntyped(pub OptionalBody);

impl<S: Send + Sync> FromRequest<S> for OptionalBody {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<OptionalBody, Refused> {
        OptionalBody::read(request, is_json).await
    }
}

impl<S: Send + Sync> FromRequest<S> for OptionalUntyped {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<OptionalUntyped, Refused> {
        let taken = |headers: &HeaderMap| is_json(headers) || is_untyped(headers);
        OptionalBody::read(request, taken).await.map(OptionalUntyped)
    }
}

impl OptionalBody {
    async fn read(request: Request, taken: fn(&HeaderMap) -> bool) -> Result<OptionalBody, Refused> {
        let (parts, body) = request.into_parts();
        let bytes = read(&parts.headers, body).await?;
        if bytes.is_empty() {
            return Ok(OptionalBody(None));
        }
        if !taken(&parts.headers) {
            return Err(Refusal::UnsupportedMediaType.into());
        }
        Ok(OptionalBody(Some(JsonBody(bytes))))
    }
}

/// The same from clients that do not say what they send: they name no type, or `fetch` writes text/plain for them.
pub struct UntypedJson(pub JsonBody);

impl<S: Send + Sync> FromRequest<S> for UntypedJson {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<UntypedJson, Refused> {
        let (parts, body) = request.into_parts();
        if !is_json(&parts.headers) && !is_untyped(&parts.headers) {
            return Err(Refusal::UnsupportedMediaType.into());
        }
        Ok(UntypedJson(JsonBody(read(&parts.headers, body).await?)))
    }
}
