//! Searches that were answered before. The catalog is asked far more often than it changes, and most of a call's time
//! goes into the protocol around it. Only the id of its message ties a search to its caller, so its result is kept as
//! it was written, with the snapshot of the catalog that it came from.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::HeaderMap;
use metrics::counter;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::kit::State;
use crate::http::kit::catalog::products::Products;

/// The tool that searches.
pub const SEARCH: &str = "get_esim_catalog";

const KEY_BYTES: usize = 400;
const ID_BYTES: usize = 15;
pub const VERSION: &str = "mcp-protocol-version";
/// Clients of the newest revision say in headers what they ask for, which the library has to compare with the body.
const METHOD: &str = "mcp-method";

/// A message with these members and no others is a plain call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message<'a> {
    jsonrpc: &'a str,
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

/// A search that may have been answered before.
pub struct Asked {
    products: Arc<Products>,
    id: String,
    key: String,
}

impl Asked {
    pub fn read(state: &State, headers: &HeaderMap, body: &[u8]) -> Option<Asked> {
        if headers.contains_key(METHOD) {
            return None;
        }
        let message: Message = serde_json::from_slice(body).ok()?;
        let Message { jsonrpc, id, method, params } = message;
        let id = id.get();
        let is_search = (jsonrpc, method, params.name) == ("2.0", "tools/call", SEARCH);
        if !is_search || id.len() > ID_BYTES || !id.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let version = headers.get(VERSION).map_or(Some(""), |value| value.to_str().ok())?;
        let arguments = params.arguments.map_or("", |arguments| arguments.get());
        // A search needs no token; if one is sent all the same, it must not be kept.
        if version.len() + arguments.len() > KEY_BYTES || arguments.contains("token") {
            return None;
        }
        let key = format!("{version} {arguments}");
        Some(Asked { products: state.catalog.prepared_products()?, id: id.into(), key })
    }

    /// The answer to this message, if it is known.
    pub fn answer(&self) -> Option<Bytes> {
        let result = self.products.listed.get(&self.key)?;
        counter!("simgate_tool_calls_total", "tool" => SEARCH, "outcome" => "ok").increment(1);
        let id = &self.id;
        Some(Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")))
    }

    /// Keeps the result of an answer that went well, with the snapshot that was searched.
    pub fn keep(self, answer: &[u8]) {
        let Ok(Written { result }) = serde_json::from_slice(answer) else { return };
        if result.get().contains("\"isError\":true") {
            return;
        }
        self.products.listed.put(&self.key, result.get().into());
    }
}
