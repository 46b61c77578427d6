//! The files that pages are made with: the style, the scripts, the marks; and what robots may look at.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::domain::refusal::Refusal;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::Segments;
use crate::http::kit::site::File;

/// The folder's name changes with the files.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const FOR_AN_HOUR: &str = "public, max-age=3600";
/// An operator's logo is a picture and nothing else, also when it is opened by itself.
const PICTURE: &str = "default-src 'none'; sandbox";
const ROBOTS: &str = "User-agent: *\nAllow: /$\nAllow: /help\nAllow: /docs\nDisallow: /\n";

/// `/assets/{folder}/{file}`. While instances of two versions serve one site, a page of the other one names another
/// folder: it gets what we have, and keeps it for no time.
pub async fn file(state: State, Segments(folder, name): Segments) -> Answer {
    let file = state.site.file(&name).ok_or(Refusal::NotFound)?;
    let is_ours = state.site.assets.ends_with(&format!("/{folder}"));
    Ok(sent(file, if is_ours { FOR_EVER } else { "no-store" }))
}

pub async fn favicon(state: State) -> Answer {
    let file = state.site.file("favicon.svg").ok_or(Refusal::NotFound)?;
    Ok(sent(file, FOR_AN_HOUR))
}

/// People find the landing page, help and documentation by searching; everything else is somebody's own.
pub async fn robots() -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, FOR_AN_HOUR)], ROBOTS).into_response()
}

fn sent(file: &File, kept: &'static str) -> Response {
    let headers =
        [(CONTENT_TYPE, file.content_type), (CACHE_CONTROL, kept), (CONTENT_SECURITY_POLICY, PICTURE)];
    (headers, file.bytes.clone()).into_response()
}
