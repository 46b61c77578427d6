//! Which pages of other origins may call which door: all of them those for buyers, none the partner API, and the tools
//! those that are listed. No door takes a page's cookies.

use serde_json::json;

use crate::support::buying::{self, PLAN};
use crate::support::customers::{self, ORDERS, request};
use crate::support::harness::{Gateway, Reply, both_databases, reply};
use crate::support::logins::sign_in;
use crate::support::openapi::operations;

const PAGE: &str = "https://shop.example";
const ALLOWED: &str = "access-control-allow-origin";

async fn from_page(gateway: &Gateway, token: &str, method: &str, path: &str) -> Reply {
    reply(request(gateway, token, method, path).header("origin", PAGE)).await
}

async fn preflight(gateway: &Gateway, path: &str, method: &str, page: &str) -> Reply {
    let request = request(gateway, "", "OPTIONS", path)
        .header("origin", page)
        .header("access-control-request-method", method.to_uppercase())
        .header("access-control-request-headers", "authorization,content-type,idempotency-key");
    reply(request).await
}

/// The words of a header that is a list, in lower case.
fn words(answer: &Reply, header: &str) -> Vec<String> {
    answer.header(header).split(',').map(|word| word.trim().to_ascii_lowercase()).collect()
}

#[track_caller]
fn is_readable(answer: &Reply) {
    assert_eq!(answer.header(ALLOWED), "*", "{}", answer.text);
    assert_eq!(answer.header("access-control-allow-credentials"), "");
    assert!(!answer.header("x-request-id").is_empty());
    let exposed = words(answer, "access-control-expose-headers");
    for header in [
        "payment-required",
        "payment-response",
        "idempotent-replayed",
        "location",
        "retry-after",
        "ratelimit",
        "ratelimit-policy",
        "x-request-id",
        "etag",
        "link",
    ] {
        assert!(exposed.contains(&header.to_string()), "{header}: {exposed:?}");
    }
}

#[track_caller]
fn is_closed(answer: &Reply) {
    for header in [
        ALLOWED,
        "access-control-expose-headers",
        "access-control-allow-methods",
        "access-control-allow-headers",
    ] {
        assert_eq!(answer.header(header), "", "{header}");
    }
}

both_databases! {
    async fn every_page_may_call_the_doors_for_buyers(gateway) {
        for api in ["agentic", "consumer"] {
            let file = format!("/api/{api}/openapi.json");
            let described = from_page(gateway, "", "GET", &file).await;
            is_readable(&described);
            for (method, path, _) in operations(&described.json()) {
                let path = path.replace("{id}", "ord_1").replace("{invoiceId}", "inv_1");
                let asked = preflight(gateway, &path, &method, PAGE).await;
                assert_eq!((asked.status, asked.text.as_str()), (204, ""), "{path}");
                is_readable(&asked);
                assert!(words(&asked, "access-control-allow-methods").contains(&method), "{method} {path}");
                let sent = words(&asked, "access-control-allow-headers");
                for header in ["authorization", "content-type", "idempotency-key", "payment-signature", "x-payment", "if-none-match", "access-control-expose-headers"] {
                    assert!(sent.contains(&header.to_string()), "{header}: {sent:?}");
                }
                assert_eq!(asked.header("access-control-max-age"), "86400");
                is_readable(&from_page(gateway, "", &method.to_uppercase(), &path).await);
            }
        }
    }

    /// What goes wrong can be read too, or a page would not know why.
    async fn refusals_can_be_read(gateway) {
        for (method, path, status) in [
            ("GET", "/api/agentic/nothing", 404),
            ("GET", "/api/wallet/nothing", 404),
            ("PUT", ORDERS, 405),
            ("GET", ORDERS, 401),
            ("GET", "/api/products/search?limit=x", 400),
        ] {
            let refused = from_page(gateway, "", method, path).await;
            refused.problem(status);
            is_readable(&refused);
        }
        let picky = reply(request(gateway, "", "GET", ORDERS).header("accept", "image/png")).await;
        picky.problem(406);
        is_readable(&picky);
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let asked = buying::ask(gateway, &token, &json!({ "packageCode": PLAN })).await;
        asked.expect(402);
        is_readable(&asked);
        let short = customers::post(gateway, &token, ORDERS, customers::wish()).await;
        short.problem(402);
        is_readable(&short);
    }

    async fn no_page_may_call_the_other_doors(gateway) with [("mcp_origins", "https://agents.example")] {
        for path in ["/api/b2b/v1/plans", "/api/b2b/v1/orders", "/api/b2b/v1/openapi.json", "/sandbox/outbox?email=a@example.com", "/checkout?plan=JP-1GB-7D", "/help"] {
            let asked = preflight(gateway, path, "GET", PAGE).await;
            assert_eq!(asked.status, 405, "{path}");
            is_closed(&asked);
            is_closed(&reply(gateway.request("GET", path).header("origin", PAGE)).await);
        }
        let listed = preflight(gateway, "/api/mcp", "POST", "https://agents.example").await;
        assert_eq!((listed.status, listed.header(ALLOWED)), (204, "https://agents.example"));
        assert!(words(&listed, "access-control-allow-methods").contains(&"post".to_string()));
        for header in ["authorization", "content-type", "mcp-protocol-version"] {
            assert!(words(&listed, "access-control-allow-headers").contains(&header.to_string()), "{header}");
        }
        assert_eq!(listed.header("access-control-allow-credentials"), "");
        let foreign = preflight(gateway, "/api/mcp", "POST", PAGE).await;
        assert_eq!(foreign.status, 403);
        is_closed(&foreign);
        is_closed(&from_page(gateway, "", "POST", "/api/mcp").await);
    }
}
