//! The style of all pages, and the scripts of the few that have one.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::domain::refusal::Refusal;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::Segment;

const STYLE: &str = include_str!("../../../assets/style.css");
const SCRIPTS: &[(&str, &str)] = &[
    ("copy.js", include_str!("../../../assets/js/copy.js")),
    ("countdown.js", include_str!("../../../assets/js/countdown.js")),
    ("docs-search.js", include_str!("../../../assets/js/docs-search.js")),
    ("docs-try.js", include_str!("../../../assets/js/docs-try.js")),
    ("live.js", include_str!("../../../assets/js/live.js")),
    ("parts.js", include_str!("../../../assets/js/parts.js")),
    ("times.js", include_str!("../../../assets/js/times.js")),
];

pub async fn style() -> Response {
    file("text/css; charset=utf-8", STYLE)
}

pub async fn script(Segment(name): Segment) -> Answer {
    let found = SCRIPTS.iter().find(|(known, _)| *known == name);
    let (_, code) = found.ok_or(Refusal::NotFound)?;
    Ok(file("text/javascript; charset=utf-8", code))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "public, max-age=3600")], text).into_response()
}
