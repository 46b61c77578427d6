//! A finished body that many ask for: hashed once, compressed once for each encoding.

use std::io::Write;
use std::sync::OnceLock;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use ring::digest::{SHA256, digest};

use crate::vault::hex;

/// A finished body with its hash and, once asked for, its compressed forms.
pub struct Packed {
    json: Bytes,
    etag: HeaderValue,
    gzip: OnceLock<Bytes>,
    brotli: OnceLock<Bytes>,
}

impl Packed {
    pub fn new(json: impl Into<Bytes>) -> Packed {
        let json = json.into();
        let hash = digest(&SHA256, &json);
        Packed::with_hash(json, hash.as_ref())
    }

    /// For a caller that has a cheaper hash that changes with the body.
    pub fn with_hash(json: impl Into<Bytes>, hash: &[u8]) -> Packed {
        // Weak, because the same catalog goes out plain and compressed.
        let etag = HeaderValue::try_from(format!("W/\"{}\"", hex(&hash[..16])));
        Packed {
            json: json.into(),
            etag: etag.unwrap_or(HeaderValue::from_static("W/\"\"")),
            gzip: OnceLock::new(),
            brotli: OnceLock::new(),
        }
    }

    /// Bytes, uncompressed.
    pub fn len(&self) -> usize {
        self.json.len()
    }

    pub fn respond(&self, request: &HeaderMap) -> Response {
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.etag.clone());
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        if self.is_known_to(request) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (body, encoding) = match accepted_encoding(request) {
            Encoding::Brotli => (self.brotli.get_or_init(|| brotli(&self.json)), Some("br")),
            Encoding::Gzip => (self.gzip.get_or_init(|| gzip(&self.json)), Some("gzip")),
            Encoding::Plain => (&self.json, None),
        };
        if let Some(encoding) = encoding {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        *response.body_mut() = Body::from(body.clone());
        response
    }

    fn is_known_to(&self, request: &HeaderMap) -> bool {
        let ours = self.etag.to_str().unwrap_or_default().trim_start_matches("W/");
        request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).any(|tags| {
            tags.split(',')
                .map(|tag| tag.trim().trim_start_matches("W/"))
                .any(|tag| tag == ours || tag == "*")
        })
    }
}

pub enum Encoding {
    Plain,
    Gzip,
    Brotli,
}

pub fn accepted_encoding(request: &HeaderMap) -> Encoding {
    let accepted =
        request.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let accepts = |name: &str| {
        accepted.split(',').any(|part| {
            let mut pieces = part.split(';').map(str::trim);
            pieces.next() == Some(name)
                && !pieces.any(|piece| matches!(piece, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        })
    };
    if accepts("br") {
        Encoding::Brotli
    } else if accepts("gzip") {
        Encoding::Gzip
    } else {
        Encoding::Plain
    }
}

fn gzip(json: &[u8]) -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    // Writing to memory does not fail.
    let _ = encoder.write_all(json);
    Bytes::from(encoder.finish().unwrap_or_default())
}

fn brotli(json: &[u8]) -> Bytes {
    let mut compressed = Vec::new();
    let mut encoder = brotli::CompressorWriter::new(&mut compressed, 4096, 5, 20);
    let _ = encoder.write_all(json);
    drop(encoder);
    Bytes::from(compressed)
}
