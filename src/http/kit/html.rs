//! Answers for browsers: how a page goes out, and errors as pages.

use askama::Template;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;

use super::answers::Answer;
use super::problem::Problem;
use super::site::Site;
use super::state::State;
use crate::error::Error;

/// Scripts of ours may call this gateway and nobody else.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// Headers of every page and of every image behind a token.
pub fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(ROBOTS, HeaderValue::from_static("noindex, nofollow"));
}

/// Headers of a page that search engines may show.
pub fn guard_public(headers: &mut HeaderMap) {
    guard(headers);
    headers.remove(ROBOTS);
}

/// A page's HTML, in the frame that all pages of a site share.
pub fn framed(site: &Site, template: &impl Template) -> askama::Result<String> {
    template.render_with_values(site)
}

pub fn page(state: &State, status: StatusCode, template: &impl Template) -> Answer {
    let html = framed(&state.site, template).map_err(Error::fault)?;
    let mut response = (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response();
    guard(response.headers_mut());
    Ok(response)
}

/// A page that search engines may show.
pub fn public_page(state: &State, template: &impl Template) -> Answer {
    let mut response = page(state, StatusCode::OK, template)?;
    guard_public(response.headers_mut());
    Ok(response)
}

/// What is wrong with each field, in sentences.
pub fn said<'a>(wrong: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    wrong.map(|(field, message)| format!("{} {message}.", label(field))).collect::<Vec<_>>().join(" ")
}

/// What a form calls its fields.
fn label(field: &str) -> String {
    match field {
        "amountUsd" => "The amount".into(),
        "email" => "The email address".into(),
        "expires" => "The last day".into(),
        "ips" => "The addresses".into(),
        "limitUsd" => "The limit".into(),
        "means" => "Currency and network".into(),
        "since" => "The time".into(),
        "url" => "The URL".into(),
        other => format!("The {other}"),
    }
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    title: &'a str,
    detail: String,
    request_id: &'a str,
    /// Whether it was the portal that refused.
    at_portal: bool,
}

/// The body of an error for a browser.
pub fn error_page(site: &Site, problem: &Problem, at_portal: bool) -> String {
    let (title, detail) = for_people(problem);
    let page = ErrorPage { title, detail, request_id: &problem.request_id, at_portal };
    framed(site, &page).unwrap_or_else(|_| problem.detail.clone())
}

/// A problem names fields and headers, for programmers; a person at a page wants to know what to do.
fn for_people(problem: &Problem) -> (&'static str, String) {
    match (problem.status, problem.code) {
        (403, "ACCOUNT_SUSPENDED") => (
            "This account is suspended",
            "Until that is settled, nothing can be paid into its wallet or bought from it. Ask support."
                .into(),
        ),
        (404, "PLAN_NOT_FOUND") => {
            ("This plan is not on sale", "Perhaps the link is old, or a part of it is missing.".into())
        }
        (404, "INVOICE_NOT_FOUND") => {
            ("No payment here", "Perhaps a part of the link is missing: open it just as you got it.".into())
        }
        (405, _) => (
            "Nothing to see here",
            "This address only takes what a form sends. Go back, and use the form there.".into(),
        ),
        (410, _) => (
            "This eSIM is gone",
            "Its order was cancelled or failed, so it cannot be installed. What you paid is back in your wallet; if you \
             bought without signing in, the page of your payment tells how to claim it. Did you buy it elsewhere? Ask there."
                .into(),
        ),
        (400, _) if !problem.errors.is_empty() => {
            let wrong = said(problem.errors.iter().map(|wrong| (&*wrong.field, &*wrong.message)));
            ("Please check what you typed", format!("{wrong} Go back and change it."))
        }
        _ => (problem.title, problem.detail.clone()),
    }
}
