//! The headers of answers: which operation sends which, with which status.

use utoipa::openapi::path::Operation;
use utoipa::openapi::{HeaderBuilder, ObjectBuilder, RefOr, Type};

struct Told {
    name: &'static str,
    about: &'static str,
    kind: Type,
    /// The statuses that it comes with; empty for all.
    with: &'static [u16],
    /// The operations that send it; empty for all.
    by: &'static [&'static str],
}

const fn told(
    name: &'static str,
    about: &'static str,
    with: &'static [u16],
    by: &'static [&'static str],
) -> Told {
    Told { name, about, kind: Type::String, with, by }
}

/// The statuses of requests that were counted: all but those that are refused before anybody looks who asks.
const COUNTED: &[u16] =
    &[200, 202, 304, 400, 401, 402, 403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503];
const BUYING: &[&str] = &["placeOrder", "topUp", "checkout"];

#[rustfmt::skip]
const HEADERS: &[Told] = &[
    told("X-Request-Id", "Names this request", &[], &[]),
    told("RateLimit", "How many requests are left: `\"default\";r=199;t=1`. Absent where limits are off", COUNTED, &[]),
    told("RateLimit-Policy", "How many requests are allowed in how many seconds: `\"default\";q=200;w=2`", COUNTED, &[]),
    told("WWW-Authenticate", "Which credentials are needed", &[401], &[]),
    told("Allow", "The methods that this address takes", &[405], &[]),
    Told { kind: Type::Integer, ..told("Retry-After", "How many seconds to wait before asking again", &[202, 429, 503], &[]) },
    told("Location", "Where the order can be looked at", &[202], &["placeOrder", "topUp", "cancelOrder"]),
    told("Idempotent-Replayed", "`true` when this reference was answered before", &[200, 202], BUYING),
    told("Idempotent-Replayed", "`true` when this reference was answered before", &[402], &["checkout"]),
    told("PAYMENT-REQUIRED", "What may be signed instead (x402 version 2), in base64; only where `capabilities.x402` is true", &[402], &["checkout"]),
    told("PAYMENT-RESPONSE", "What became of a signature (x402 version 2), in base64; only after one was sent", &[200, 202, 402], &["checkout"]),
    told("ETag", "Hash of the list", &[200, 304], &["listPlans", "searchProducts"]),
    told("Link", "Next page (RFC 8288); absent on the last one", &[200], &["listOrders", "listPurchases"]),
];

/// Describes the headers of every answer of an operation.
pub fn add(operation: &mut Operation) {
    let id = operation.operation_id.clone().unwrap_or_default();
    for (status, response) in &mut operation.responses.responses {
        let (RefOr::T(response), Ok(status)) = (response, status.parse::<u16>()) else { continue };
        let comes = |header: &&Told| {
            (header.with.is_empty() || header.with.contains(&status))
                && (header.by.is_empty() || header.by.contains(&id.as_str()))
        };
        for header in HEADERS.iter().filter(comes) {
            let schema = ObjectBuilder::new().schema_type(header.kind.clone());
            let described = HeaderBuilder::new().schema(Some(schema)).description(Some(header.about)).build();
            response.headers.insert(header.name.into(), RefOr::T(described));
        }
    }
}
