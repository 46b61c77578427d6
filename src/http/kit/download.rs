//! Files that pages hand over, written while they go out: however long a file is, little of it is in memory.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, TryStreamExt};

use super::answers::Answer;
use super::html::guard;
use crate::error::{Error, Result};

/// A CSV file that a browser saves by this name.
pub fn csv(name: &str, text: impl Stream<Item = Result<String>> + Send + 'static) -> Answer {
    let saved = HeaderValue::try_from(format!("attachment; filename=\"{name}\"")).map_err(Error::fault)?;
    // The status is out when a later part fails: the file breaks off, and nobody takes it for a whole one.
    let text = text.inspect_err(|error| tracing::warn!(%error, "a file broke off"));
    let mut response: Response = Body::from_stream(text).into_response();
    let headers = response.headers_mut();
    guard(headers);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    headers.insert(header::CONTENT_DISPOSITION, saved);
    Ok(response)
}
