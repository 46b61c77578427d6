//! Where suppliers send their messages. The path is a secret, so that nobody else can make us ask.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};

use super::kit::State;
use super::kit::auth::Anyone;
use super::kit::body;
use super::kit::fields::Segment;
use super::kit::problem::Refused;
use crate::ops::hooks;

pub async fn message(
    _: Anyone,
    state: State,
    Segment(path): Segment,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Refused> {
    let bytes = body::read(&headers, body).await?;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    hooks::receive(&state.app, &path, &bytes, header).await?;
    Ok(StatusCode::OK)
}
