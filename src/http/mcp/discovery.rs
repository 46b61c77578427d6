//! How clients discover the gateway: the descriptor, server cards and catalogs, all written once
//! from the list of tools and the settings.

use axum::body::Bytes;
use axum::extract::{Request, State as FromState};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use rmcp::model::{ProtocolVersion, Tool as Listing};
use serde_json::{Value, json};

use super::{ABOUT, Desk, NAME, PATH, TITLE, VERSION};
use crate::config::{Settings, origin};

const JSON: &str = "application/json";
const CARD: &str = "application/mcp-server-card+json";
const CATALOG: &str = "application/ai-catalog+json";
const LINKS: &str = "application/linkset+json";
const OPENAPI: &str = "application/vnd.oai.openapi+json;version=3.1";
const CARD_SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";

/// Documents that do not change while the gateway runs.
pub struct Papers {
    descriptor: Bytes,
    card: Bytes,
    ai_catalog: Bytes,
    api_catalog: Bytes,
}

impl Papers {
    pub fn write(settings: &Settings, tools: &[Listing]) -> Papers {
        let bytes = |value: Value| Bytes::from(value.to_string());
        Papers {
            descriptor: bytes(descriptor_of(settings, tools)),
            card: bytes(card_of(settings)),
            ai_catalog: bytes(ai_catalog_of(settings)),
            api_catalog: bytes(api_catalog_of(settings)),
        }
    }
}

fn versions() -> Vec<&'static str> {
    ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect()
}

fn descriptor_of(settings: &Settings, tools: &[Listing]) -> Value {
    let brief =
        |tool: &Listing| json!({ "name": tool.name, "title": tool.title, "description": tool.description });
    json!({
        "status": "active",
        "protocol": "Model Context Protocol over HTTP",
        "version": VERSION,
        "name": NAME,
        "description": ABOUT,
        "endpoint": format!("{}{PATH}", settings.agent_url),
        "transport": "streamable-http",
        "protocolVersions": versions(),
        "tools": tools.iter().map(brief).collect::<Vec<_>>(),
    })
}

fn card_of(settings: &Settings) -> Value {
    json!({
        "$schema": CARD_SCHEMA,
        "name": format!("{}/{NAME}", reversed_host(&settings.agent_url)),
        "version": VERSION,
        "title": TITLE,
        "description": ABOUT,
        "websiteUrl": settings.agent_url,
        "remotes": [{
            "type": "streamable-http",
            "url": format!("{}{PATH}", settings.agent_url),
            "supportedProtocolVersions": versions(),
        }],
    })
}

fn ai_catalog_of(settings: &Settings) -> Value {
    json!({
        "specVersion": "1.0",
        "host": { "displayName": TITLE, "identifier": settings.agent_url },
        "entries": [{
            "identifier": format!("urn:mcp:{}:{NAME}", reversed_host(&settings.agent_url)),
            "displayName": TITLE,
            "description": ABOUT,
            "version": VERSION,
            "type": CARD,
            "url": format!("{}{PATH}/server-card", settings.agent_url),
        }],
    })
}

/// RFC 9727: where every API of this gateway is described.
fn api_catalog_of(settings: &Settings) -> Value {
    let Settings { base_url, agent_url, .. } = settings;
    let openapi = |href: String| json!([{ "href": href, "type": OPENAPI }]);
    json!({ "linkset": [
        {
            "anchor": format!("{base_url}/api/b2b/v1"),
            "service-desc": openapi(format!("{base_url}/api/b2b/v1/openapi.json")),
            "service-doc": [{ "href": format!("{base_url}/docs"), "type": "text/html" }],
        },
        {
            "anchor": format!("{agent_url}/api/agentic"),
            "service-desc": openapi(format!("{agent_url}/api/agentic/openapi.json")),
            "service-doc": [{ "href": format!("{agent_url}/llms.txt"), "type": "text/plain" }],
        },
        {
            "anchor": format!("{agent_url}/api/consumer"),
            "service-desc": openapi(format!("{agent_url}/api/consumer/openapi.json")),
            "service-doc": [{ "href": format!("{agent_url}/llms.txt"), "type": "text/plain" }],
        },
        {
            "anchor": format!("{agent_url}{PATH}"),
            "service-desc": [{ "href": format!("{agent_url}{PATH}/server-card"), "type": CARD }],
            "service-doc": [{ "href": format!("{agent_url}/llms.txt"), "type": "text/plain" }],
        },
    ] })
}

/// The domain in reverse, with which a server's name begins; an IP address has none.
fn reversed_host(url: &str) -> String {
    let origin = origin(url).unwrap_or_default();
    let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
    let host = authority.split(':').next().unwrap_or_default();
    if host.is_empty() || host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok() {
        return "local".into();
    }
    host.rsplit('.').collect::<Vec<_>>().join(".")
}

async fn paper(
    desk: &Desk,
    request: Request,
    kind: &'static str,
    body: impl Fn(&Papers) -> Bytes,
) -> Response {
    if let Err(refused) = desk.anyone(request).await {
        return refused.into_response();
    }
    // Pages of any origin may read these documents: nothing in them is private.
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    ];
    (headers, body(desk.papers())).into_response()
}

pub async fn descriptor(FromState(desk): FromState<Desk>, request: Request) -> Response {
    paper(&desk, request, JSON, |papers| papers.descriptor.clone()).await
}

pub async fn card(FromState(desk): FromState<Desk>, request: Request) -> Response {
    paper(&desk, request, CARD, |papers| papers.card.clone()).await
}

/// The card for scanners of older conventions, which know only JSON.
pub async fn plain_card(FromState(desk): FromState<Desk>, request: Request) -> Response {
    paper(&desk, request, JSON, |papers| papers.card.clone()).await
}

pub async fn ai_catalog(FromState(desk): FromState<Desk>, request: Request) -> Response {
    paper(&desk, request, CATALOG, |papers| papers.ai_catalog.clone()).await
}

pub async fn api_catalog(FromState(desk): FromState<Desk>, request: Request) -> Response {
    paper(&desk, request, LINKS, |papers| papers.api_catalog.clone()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_after_their_domain() {
        assert_eq!(reversed_host("https://agents.shop.example/esim"), "example.shop.agents");
        assert_eq!(reversed_host("http://127.0.0.1:8402"), "local");
        assert_eq!(reversed_host("http://[::1]:8402"), "local");
    }
}
