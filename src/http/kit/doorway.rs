//! What surrounds every request: its id, the security headers, the metrics, the line in its partner's log, and the body of
//! every error. Paths with tokens in them are never logged or labelled; routes are.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use metrics::{Counter, Histogram, counter, histogram};

use super::accept::server::Finish;
use super::auth::{Shown, Visit};
use super::hints::Api;
use super::notice::Sandbox;
use super::problem::{self, Pending, Refused, Told};
use super::site::Site;
use super::{cors, html};
use crate::config::Settings;
use crate::domain::call;
use crate::domain::refusal::Refusal;
use crate::error::Error;
use crate::ops::calls::Answered;
use crate::vault;

/// Where the tools are: they have rules of their own for what a client accepts.
pub const TOOLS_PATH: &str = "/api/mcp";
/// What stands for a path that nothing answers at.
const NO_ROUTE: &str = "(none)";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The name of the request, for a door that reports faults in its own words.
#[derive(Clone)]
pub struct RequestId(pub String);

/// Where the codes of problems are explained, and whether their money is real.
#[derive(Clone)]
pub struct Docs {
    page: Arc<str>,
    sandbox: Option<Sandbox>,
    site: Arc<Site>,
}

impl Docs {
    pub fn of(settings: &Settings, site: Arc<Site>) -> Docs {
        let page = format!("{}/docs", settings.base_url).into();
        Docs { page, sandbox: Sandbox::anywhere(settings), site }
    }
}

/// How a request is answered when it is refused.
#[derive(Clone)]
struct Manner {
    request_id: String,
    docs: Docs,
    api: Option<Api>,
    /// Whether a browser reads it, and whether it is at the portal.
    as_page: bool,
    at_portal: bool,
}

pub async fn pass(State(docs): State<Docs>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let request_id = kept_or_new(request.headers());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let api = Api::of(request.uri().path());
    let is_api = api.is_some();
    let answers_json = is_api && request.uri().path() != TOOLS_PATH;
    let as_page = !is_api && mentions(request.headers(), "text/html");
    let at_portal = request.uri().path().starts_with("/portal/");
    let is_open = cors::is_open(request.uri().path());
    let shown = Shown::default();
    request.extensions_mut().insert(shown.clone());
    request.extensions_mut().insert(RequestId(request_id.clone()));
    let mut line = CallLine {
        shown: shown.clone(),
        method: method.clone(),
        route: route.clone(),
        request_id: request_id.clone(),
        started,
        answer: HUNG_UP,
    };
    let response = if is_open && method == Method::OPTIONS {
        cors::preflight()
    } else if answers_json && !takes_json(request.headers()) {
        Refused::from(Refusal::NotAcceptable).into_response()
    } else {
        unharmed(next.run(request)).await
    };
    let mut code = None;
    let mut response = match response.extensions().get::<Pending>().cloned() {
        Some(Pending(error)) => {
            let manner = Manner { request_id: request_id.clone(), docs, api, as_page, at_portal };
            let (its_code, mut told) = render(&error, response, &manner);
            code = Some(its_code);
            if told.status() == StatusCode::METHOD_NOT_ALLOWED {
                // Which methods are taken is not known here: the router writes them on the finished response.
                told.extensions_mut().insert(manner);
                told.extensions_mut().insert(Finish(name_methods));
            }
            told
        }
        None => response,
    };
    let status = response.status().as_u16();
    let headers = response.headers_mut();
    if let Some(allowance) = shown.0.allowance.get() {
        allowance.write(headers);
    }
    if is_open {
        cors::open(headers);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(value) = HeaderValue::try_from(request_id.as_str()) {
        headers.insert(REQUEST_ID, value);
    }
    let route = route.as_ref().map_or(NO_ROUTE, |route| route.as_str());
    tracing::debug!(%method, route, status, request_id, ms = started.elapsed().as_millis() as u64, "request");
    measure(route, status, started);
    line.answer = (status, code);
    response
}

/// What a call ends as whose caller did not wait for the answer: what it asked for may have been done all the same.
const HUNG_UP: (u16, Option<&str>) = (499, Some("CALLER_HUNG_UP"));

/// A line in the log of a partner's calls, written when the call has ended in whichever way: a request whose caller hangs up
/// is dropped where it stands.
struct CallLine {
    shown: Shown,
    method: Method,
    route: Option<MatchedPath>,
    request_id: String,
    started: Instant,
    answer: (u16, Option<&'static str>),
}

impl Drop for CallLine {
    fn drop(&mut self) {
        let Some(Visit { app, caller }) = self.shown.0.visit.get() else { return };
        let Some(method) = call::Method::parse(self.method.as_str()) else { return };
        let (account, key_id, request_id) = (caller.account, &caller.key_id, &self.request_id);
        let route = self.route.as_ref().map_or(NO_ROUTE, |route| route.as_str());
        let ((status, code), ms) = (self.answer, self.started.elapsed().as_millis() as i64);
        let answered = Answered { account, key_id, method, route, status, code, ms, request_id };
        app.calls.note(&answered, app.now());
    }
}

/// Says in the body which methods an address takes, after the router has written them on the response.
fn name_methods(mut response: Response) -> Response {
    let Some(manner) = response.extensions_mut().remove::<Manner>() else {
        return response;
    };
    let allowed = response.headers().get(header::ALLOW).and_then(|value| value.to_str().ok());
    let allowed = allowed.map(|methods| methods.split(',').map(str::trim).collect::<Vec<_>>().join(", "));
    // It was measured before.
    response.headers_mut().remove(header::CONTENT_LENGTH);
    render(&Refusal::MethodNotAllowed { allowed }.into(), response, &manner).1
}

/// Writes the body of a pending error, and answers its code. A fault is logged here, once; the caller learns only the request id.
fn render(error: &Error, response: Response, manner: &Manner) -> (&'static str, Response) {
    let Manner { request_id, docs, api, as_page, at_portal } = manner;
    let refusal = error.refusal();
    if let (None, Error::Fault(fault)) = (refusal, error) {
        tracing::error!(request_id, what = %fault.what, "a request failed");
    }
    let told = Told { request_id, docs: &docs.page, api: *api, sandbox: docs.sandbox };
    let body = problem::body(refusal, &told);
    let (mut parts, _) = response.into_parts();
    let kind = if *as_page { "text/html; charset=utf-8" } else { "application/problem+json" };
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    parts.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    parts.headers.extend(problem::extra_header(error));
    let text = if *as_page {
        html::guard(&mut parts.headers);
        html::error_page(&docs.site, &body, *at_portal)
    } else {
        serde_json::to_string(&body).unwrap_or_else(|_| String::from("{}"))
    };
    (body.code, Response::from_parts(parts, Body::from(text)))
}

/// A panic is our fault like any other: a 500 with a request id, and the connection lives on.
async fn unharmed(response: impl Future<Output = Response>) -> Response {
    let caught = futures_util::FutureExt::catch_unwind(AssertUnwindSafe(response)).await;
    caught.unwrap_or_else(|_| Refused(Error::fault("a handler panicked")).into_response())
}

/// The metrics of one route. Looking them up by their labels would cost more than raising them.
struct RouteMetrics {
    seconds: Histogram,
    by_class: [Counter; 4],
}

const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

impl RouteMetrics {
    fn new(route: &str) -> RouteMetrics {
        let count =
            |class| counter!("simgate_http_requests_total", "route" => route.to_string(), "status" => class);
        let seconds = histogram!("simgate_http_request_seconds", "route" => route.to_string());
        RouteMetrics { seconds, by_class: CLASSES.map(count) }
    }
}

thread_local! {
    static ROUTES: RefCell<HashMap<String, RouteMetrics>> = RefCell::default();
}

fn measure(route: &str, status: u16, started: Instant) {
    let class = usize::from(status / 100).clamp(2, 5) - 2;
    ROUTES.with_borrow_mut(|routes| {
        if !routes.contains_key(route) {
            routes.insert(route.to_string(), RouteMetrics::new(route));
        }
        if let Some(metrics) = routes.get(route) {
            metrics.seconds.record(started.elapsed().as_secs_f64());
            metrics.by_class[class].increment(1);
        }
    });
}

/// The caller's own id, when it is short and plain; else a new one.
fn kept_or_new(headers: &HeaderMap) -> String {
    let sane = |text: &&str| {
        (1..=128).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':'))
    };
    match headers.get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(sane) {
        Some(text) => text.into(),
        None => new_id(),
    }
}

/// A random start for this process, then counted: unique, and no call to the system for each request.
fn new_id() -> String {
    static START: LazyLock<u128> = LazyLock::new(vault::random);
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{:032x}", START.wrapping_add(u128::from(NUMBER.fetch_add(1, Ordering::Relaxed))))
}

/// Whether a client names this kind of content as one that it takes.
pub fn mentions(headers: &HeaderMap, kind: &str) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|text| text.contains(kind))
}

/// Without an Accept header a client takes anything; otherwise one of its ranges must cover JSON.
fn takes_json(headers: &HeaderMap) -> bool {
    let mut accepts = headers.get_all(header::ACCEPT).iter().peekable();
    accepts.peek().is_none()
        || accepts.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).any(|range| {
            let mut pieces = range.split(';').map(|piece| piece.trim().to_ascii_lowercase());
            let kind = pieces.next().unwrap_or_default();
            let refused =
                pieces.any(|piece| matches!(piece.as_str(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
            !refused && (kind == "*/*" || kind == "application/*" || kind.ends_with("json"))
        })
}
