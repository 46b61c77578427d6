//! Which of our APIs scripts on pages of other origins may call. Those for buyers are open to every page: their calls
//! carry a token of their own and never a cookie, so a page can do no more than any other program. The partner API is
//! for servers and open to none; the tools have a list of origins (`mcp/door.rs`).

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// The APIs that are open, by what comes after `/api/`.
const OPEN: [&str; 8] = ["agentic", "auth", "consumer", "discount", "esims", "orders", "products", "wallet"];
/// The one address of the consumer API that is below the tools'.
const KNOWLEDGE: &str = "mcp/knowledge";

const ANY: HeaderValue = HeaderValue::from_static("*");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PATCH, DELETE, OPTIONS");
/// What clients of ours send. The star stands for the rest, but never for Authorization, and old browsers do not know it.
/// x402 clients send Access-Control-Expose-Headers themselves.
const SENT: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Accept, Idempotency-Key, If-None-Match, PAYMENT-SIGNATURE, X-PAYMENT, \
     Access-Control-Expose-Headers, X-Request-Id, *",
);
/// What scripts may read besides the few headers that they always may.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "PAYMENT-REQUIRED, PAYMENT-RESPONSE, Idempotent-Replayed, Location, Link, ETag, Retry-After, RateLimit, \
     RateLimit-Policy, WWW-Authenticate, X-Request-Id",
);
const A_DAY: HeaderValue = HeaderValue::from_static("86400");

pub fn is_open(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/api/") else { return false };
    OPEN.contains(&rest.split('/').next().unwrap_or_default()) || rest == KNOWLEDGE
}

/// The answer to a browser that asks before it calls. `open` adds who may.
pub fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, SENT),
        (header::ACCESS_CONTROL_MAX_AGE, A_DAY),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Lets every page read this answer.
pub fn open(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_apis_for_buyers_are_open() {
        for open in ["/api/orders", "/api/orders/ord_1/cancel", "/api/mcp/knowledge", "/api/agentic/nothing"]
        {
            assert!(is_open(open), "{open}");
        }
        for closed in
            ["/api/b2b/v1/orders", "/api/mcp", "/api/mcp/server-card", "/api/ordersx", "/orders", "/api/"]
        {
            assert!(!is_open(closed), "{closed}");
        }
    }
}
