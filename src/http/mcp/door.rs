//! The way in and out of `/api/mcp`, around the protocol library: which origins and names are let in, what a client may
//! leave out, and that every error is written in JSON-RPC. This file knows no tools, so that the conformance suite goes
//! through the same door with tools of its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Full};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{
    SessionManager, StreamableHttpServerConfig, StreamableHttpService,
};
use serde_json::{Value, json};

use super::search_cache::Asked;
use crate::config::{Settings, origin};
use crate::domain::refusal::Refusal;
use crate::http::kit::doorway::mentions;
use crate::http::kit::fields;
use crate::http::kit::members::mistake;

const INVALID_REQUEST: i32 = -32600;
const INTERNAL: i32 = -32603;
const PARSE_ERROR: i32 = -32700;
/// For refusals that are not about the message itself.
const REFUSED: i32 = -32000;

const EVENT_STREAM: &str = "text/event-stream";
/// What the library wants to see on every request. Its answers are JSON, which every client can read.
const BOTH_KINDS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, OPTIONS");
/// What a page may try: a client that ends a session it does not have must be able to read that there is none.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
const WRONG_METHOD: &str = "Method not allowed. This is MCP over Streamable HTTP: POST every message to this URL. There is \
    no event stream to GET and no session to DELETE. If your client is set to the old transport \"sse\", set it to \"http\" \
    (also called \"streamable-http\"). A GET without Accept: text/event-stream describes this server.";
const SENT_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, accept, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id",
);
const SEEN_HEADERS: HeaderValue =
    HeaderValue::from_static("mcp-protocol-version, mcp-session-id, ratelimit, retry-after, x-request-id");
const A_DAY: HeaderValue = HeaderValue::from_static("86400");
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The origins and hosts that are let in: a page of another site must not call a gateway that only its visitor reaches.
pub struct Guard {
    origins: BTreeSet<String>,
    /// `None`: by any name.
    hosts: Option<BTreeSet<String>>,
}

impl Guard {
    pub fn new(settings: &Settings) -> Guard {
        let own = [&settings.base_url, &settings.agent_url, &settings.checkout_url];
        let origins: BTreeSet<String> =
            own.iter().filter_map(|url| origin(url)).chain(settings.mcp.origins.iter().cloned()).collect();
        let bound = settings.listen.ip().is_loopback() || !settings.mcp.hosts.is_empty();
        let hosts = bound.then(|| {
            let named = own.iter().filter_map(|url| origin(url)).filter_map(|url| {
                let (_, authority) = url.split_once("://")?;
                Some(without_port(authority).to_string())
            });
            let listed = settings.mcp.hosts.iter().cloned();
            named.chain(listed).chain(LOOPBACK.map(str::to_string)).collect()
        });
        Guard { origins, hosts }
    }

    fn admits(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let known_origin = match text(header::ORIGIN) {
            Some(sent) => origin(sent).is_some_and(|sent| self.origins.contains(&sent)),
            None => true,
        };
        let host = text(header::HOST).or(uri.authority().map(|authority| authority.as_str()));
        let known_host = match (&self.hosts, host) {
            (Some(hosts), Some(host)) => hosts.contains(&without_port(host).to_ascii_lowercase()),
            (Some(_), None) => false,
            (None, _) => true,
        };
        known_origin && known_host
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Reads headers and body of a call whose answer may be known.
type Reader = Box<dyn Fn(&HeaderMap, &[u8]) -> Option<Asked> + Send + Sync>;

/// A protocol server behind its guard.
pub struct Door<S, M> {
    service: StreamableHttpService<S, M>,
    guard: Guard,
    reader: Option<Reader>,
}

impl<S: ServerHandler + Send + 'static, M: SessionManager> Door<S, M> {
    /// `make` is called for every request; without sessions no request knows of another.
    pub fn new(
        guard: Guard,
        keeps_sessions: bool,
        sessions: Arc<M>,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Door<S, M> {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(keeps_sessions)
            .with_json_response(true)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        Door {
            service: StreamableHttpService::new(move || Ok(make()), sessions, config),
            guard,
            reader: None,
        }
    }

    /// Keeps answers that are the same for everybody.
    pub fn keeping(
        mut self,
        reader: impl Fn(&HeaderMap, &[u8]) -> Option<Asked> + Send + Sync + 'static,
    ) -> Door<S, M> {
        self.reader = Some(Box::new(reader));
        self
    }

    /// The answer to a request that is not let in.
    pub fn turned_away(&self, request: &Request) -> Option<Response> {
        let admitted = self.guard.admits(request.headers(), request.uri());
        let told = || refusal(StatusCode::FORBIDDEN, REFUSED, "This origin or host name is not allowed.");
        (!admitted).then(told)
    }

    pub async fn pass(&self, request: Request) -> Response {
        if let Some(refusal) = self.turned_away(&request) {
            return refusal;
        }
        let page = request.headers().get(header::ORIGIN).cloned();
        let mut response = match *request.method() {
            Method::OPTIONS => preflight(),
            Method::POST => self.post(request).await,
            _ => spoken(self.service.handle(request).await.map(Body::new)).await,
        };
        if let Some(page) = page {
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, page);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, SEEN_HEADERS);
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
        response
    }

    async fn post(&self, request: Request) -> Response {
        let (mut parts, body) = request.into_parts();
        if !fields::is_json(&parts.headers) {
            return refused(&Refusal::UnsupportedMediaType);
        }
        let body = match fields::read(&parts.headers, body).await {
            Ok(body) => body,
            Err(why) => return refused(&why),
        };
        let asked = self.reader.as_ref().and_then(|read| read(&parts.headers, &body));
        if let Some(known) = asked.as_ref().and_then(Asked::answer) {
            return ([(header::CONTENT_TYPE, JSON)], known).into_response();
        }
        parts.headers.insert(header::ACCEPT, BOTH_KINDS);
        parts.headers.insert(header::CONTENT_TYPE, JSON);
        let request = axum::http::Request::from_parts(parts, Full::new(body.clone()));
        let response = self.service.handle(request).await;
        let told = match response.status() {
            StatusCode::BAD_REQUEST => unreadable(&body),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => unreadable(&body).or_else(|| Some(no_message())),
            _ => None,
        };
        if let Some(told) = told {
            return told;
        }
        let response = spoken(response.map(Body::new)).await;
        match asked {
            Some(asked) if response.status() == StatusCode::OK => keep(asked, response).await,
            _ => response,
        }
    }
}

async fn keep(asked: Asked, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map(|collected| collected.to_bytes()).unwrap_or_default();
    asked.keep(&body);
    Response::from_parts(parts, Body::from(body))
}

/// Whether a GET asks for the stream of older protocol revisions, rather than for the descriptor.
pub fn wants_stream(headers: &HeaderMap) -> bool {
    mentions(headers, EVENT_STREAM)
}

fn preflight() -> Response {
    let headers = [
        (header::ALLOW, ALLOWED),
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, SENT_HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, A_DAY),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// The answer to a body that is no message to this server: no JSON at all, or JSON of another kind.
fn unreadable(body: &Bytes) -> Option<Response> {
    let message = match serde_json::from_slice::<Value>(body) {
        Ok(message) => message,
        Err(error) => {
            let why = format!("Parse error: {}.", mistake(&error));
            return Some(refusal(StatusCode::BAD_REQUEST, PARSE_ERROR, &why));
        }
    };
    let why = format!("Invalid request: {}", wrong_with(&message)?);
    let id = message.get("id").filter(|id| id.is_string() || id.is_number());
    Some(refusal_of(id, StatusCode::BAD_REQUEST, INVALID_REQUEST, &why))
}

/// The answer to a body that only the library refuses: it reads a little more strictly than we do.
fn no_message() -> Response {
    let why = "Invalid request: the body is not one JSON-RPC 2.0 message.";
    refusal(StatusCode::BAD_REQUEST, INVALID_REQUEST, why)
}

/// Why this is not a message to a server; `None` when it is one.
fn wrong_with(message: &Value) -> Option<&'static str> {
    let Value::Object(members) = message else {
        // Only one revision of the protocol had batches.
        let why =
            if message.is_array() { "batches are not taken." } else { "a message must be a JSON object." };
        return Some(why);
    };
    let member = |name: &str| members.get(name);
    if member("jsonrpc") != Some(&Value::from("2.0")) {
        return Some("jsonrpc must be \"2.0\".");
    }
    match member("method") {
        None if member("result").is_some() || member("error").is_some() => {
            return Some("this is a response, and nothing was asked.");
        }
        Some(Value::String(_)) => {}
        _ => return Some("method must be a string."),
    }
    match member("id") {
        None | Some(Value::String(_)) => {}
        Some(Value::Number(number)) if number.is_i64() => {}
        _ => return Some("id must be a string or a whole number."),
    }
    match member("params") {
        None | Some(Value::Object(_)) => None,
        _ => Some("params must be an object."),
    }
}

/// Writes the library's refusals in plain text as JSON.
async fn spoken(response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let in_json =
        kind.and_then(|kind| kind.to_str().ok()).is_some_and(|kind| kind.starts_with("application/json"));
    if in_json || !(response.status().is_client_error() || response.status().is_server_error()) {
        return response;
    }
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let mut told = refusal(response.status(), REFUSED, WRONG_METHOD);
        told.headers_mut().insert(header::ALLOW, ALLOWED);
        return told;
    }
    let (parts, body) = response.into_parts();
    let text = body.collect().await.map(|collected| collected.to_bytes()).unwrap_or_default();
    refusal(parts.status, INVALID_REQUEST, &String::from_utf8_lossy(&text))
}

/// A refusal of ours, in JSON-RPC.
pub fn refused(why: &Refusal) -> Response {
    let problem = why.problem();
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = refusal(status, REFUSED, &problem.detail);
    if let Some(seconds) = why.retry_after_secs() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Our own failure, before a tool was reached.
pub fn fault(what: &str) -> Response {
    tracing::error!(what, "a tool call failed");
    refusal(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL, "Internal error")
}

fn refusal(status: StatusCode, code: i32, message: &str) -> Response {
    refusal_of(None, status, code, message)
}

/// The same with the id of the message, if it could be read.
fn refusal_of(id: Option<&Value>, status: StatusCode, code: i32, message: &str) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
    (status, [(header::CONTENT_TYPE, JSON)], body.to_string()).into_response()
}
