//! What an agent reads before it acts: the description of its API, and `/llms.txt`. Both must be true to the router.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::buying;
use crate::support::harness::{Gateway, both_databases, reply};
use crate::support::logins::{AUTH, ask, post_from, sign_in, with_token};
use crate::support::openapi::{fits, operations};

/// Every operation, and whether it needs a token.
const OPERATIONS: &[(&str, &str, bool)] = &[
    ("delete", "/api/agentic/auth/tokens/{id}", true),
    ("get", "/api/agentic/auth/tokens", true),
    ("get", "/api/agentic/events", true),
    ("get", "/api/agentic/order/{invoiceId}", false),
    ("get", "/api/agentic/orders", true),
    ("get", "/api/agentic/wallet", true),
    ("get", "/api/products/search", false),
    ("post", "/api/agentic/auth/request-otp", false),
    ("post", "/api/agentic/auth/verify-otp", false),
    ("post", "/api/agentic/checkout", true),
];

/// A token may be sent, and must be good then.
const TOKEN_OPTIONAL: &str = "/api/agentic/order/{invoiceId}";

async fn description(gateway: &Gateway) -> Value {
    let reply = reply(gateway.client.get(format!("{}/api/agentic/openapi.json", gateway.base))).await;
    assert_eq!(reply.header("content-type"), "application/json");
    reply.expect(200)
}

both_databases! {
    async fn it_describes_every_route(gateway) {
        let api = description(gateway).await;
        assert_eq!((&api["openapi"], &api["info"]["version"]), (&json!("3.1.0"), &json!("1.0.0")));
        assert_eq!(api["servers"][0]["url"], gateway.base);
        let described: BTreeSet<_> = operations(&api).into_iter().map(|(method, path, _)| (method, path)).collect();
        let wanted: BTreeSet<_> = OPERATIONS.iter().map(|(method, path, _)| (method.to_string(), path.to_string())).collect();
        assert_eq!(described, wanted);
        assert_eq!(api["security"], json!([{ "token": [] }]));
        assert_eq!(api["components"]["schemas"]["CheckoutRequest"]["additionalProperties"], false);
        assert_eq!(api["components"]["securitySchemes"]["token"]["scheme"], "bearer");
        for (method, path, needs_token) in OPERATIONS {
            let operation = &api["paths"][path][method];
            let at = format!("{method} {path}");
            for field in ["summary", "description", "operationId"] {
                assert!(operation[field].as_str().is_some_and(|text| !text.is_empty()), "{at}: {field}");
            }
            let request = gateway.client.request(method.to_uppercase().parse().unwrap(), format!("{}{}", gateway.base, path.replace("{id}", "tok_1").replace("{invoiceId}", "inv_1")));
            let stranger = reply(request).await;
            assert_eq!(stranger.status == 401, *needs_token, "{at}");
            let security = match *path {
                TOKEN_OPTIONAL => json!([{}, { "token": [] }]),
                _ if *needs_token => Value::Null,
                _ => json!([{}]),
            };
            assert_eq!(operation["security"], security, "{at}");
            let responses = operation["responses"].as_object().unwrap();
            for status in ["200", "405", "406", "429", "500", "503"] {
                assert!(responses.contains_key(status), "{at}: no {status}");
            }
            assert_eq!(responses.contains_key("401"), *needs_token || path.ends_with("/verify-otp") || *path == TOKEN_OPTIONAL, "{at}");
            assert_eq!(responses.contains_key("404"), path.contains('{') || path.ends_with("/checkout"), "{at}");
            assert_eq!(responses.contains_key("415"), *method == "post", "{at}");
            for (status, response) in responses {
                let has = |header: &str| response["headers"][header].is_object();
                assert!(has("X-Request-Id"), "{at} {status}");
                assert_eq!(has("Retry-After"), ["202", "429", "503"].contains(&status.as_str()), "{at} {status}");
                assert_eq!(has("WWW-Authenticate"), status == "401", "{at} {status}");
                let of_checkout = path.ends_with("/checkout") && ["200", "202", "402"].contains(&status.as_str());
                assert_eq!((has("Idempotent-Replayed"), has("PAYMENT-RESPONSE")), (of_checkout, of_checkout), "{at} {status}");
                assert_eq!(has("Link"), path.ends_with("/orders") && status == "200", "{at} {status}");
                assert_eq!(has("ETag"), path.ends_with("/search") && ["200", "304"].contains(&status.as_str()), "{at} {status}");
                if status.starts_with(['4', '5']) {
                    let schema = &response["content"]["application/problem+json"]["schema"]["$ref"];
                    assert_eq!(schema, "#/components/schemas/Problem", "{at} {status}");
                }
            }
        }
    }

    async fn every_field_of_an_answer_is_described(gateway) with [("trusted_proxies", "127.0.0.1")] {
        let api = description(gateway).await;
        let check = |method: &str, path: &str, answer: &Value| {
            let schema = &api["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"];
            fits(&api, schema, answer, path);
        };
        check("post", &format!("{AUTH}/request-otp"), &ask(gateway, "bob@example.com").await.expect(200));
        let otp = crate::support::logins::code(gateway, "bob@example.com").await;
        let body = json!({ "email": "bob@example.com", "otp": otp });
        check("post", &format!("{AUTH}/verify-otp"), &post_from(gateway, "192.0.2.1", "verify-otp", body).await.expect(200));
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let listed = with_token(gateway, &token, "GET", &format!("{AUTH}/tokens")).await.expect(200);
        check("get", &format!("{AUTH}/tokens"), &listed);
        let id = listed["tokens"][0]["id"].as_str().unwrap();
        let revoked = with_token(gateway, &token, "DELETE", &format!("{AUTH}/tokens/{id}")).await.expect(200);
        check("delete", &format!("{AUTH}/tokens/{{id}}"), &revoked);
        let found = reply(gateway.client.get(format!("{}/api/products/search?country=japan", gateway.base))).await.expect(200);
        check("get", "/api/products/search", &found);
        let token = sign_in(gateway, "eve@example.com", "agent").await;
        let asked = buying::open(gateway, &token).await;
        let challenge = &api["paths"]["/api/agentic/checkout"]["post"]["responses"]["402"]["content"]["application/json"]["schema"];
        fits(&api, challenge, &asked, "402");
        let record = "/api/agentic/order/{invoiceId}";
        check("get", record, &buying::record(gateway, &asked).await);
        check("get", record, &buying::settle(gateway, &asked, "COMPLETED").await);
        buying::fund(gateway, "eve@example.com", simgate::domain::money::Usd::dollars(20)).await;
        let wish = json!({ "packageCode": buying::PLAN, "payWith": "wallet" });
        check("post", "/api/agentic/checkout", &buying::ask(gateway, &token, &wish).await.expect(200));
        for path in ["/api/agentic/wallet", "/api/agentic/orders"] {
            check("get", path, &with_token(gateway, &token, "GET", path).await.expect(200));
        }
        let refused = post_from(gateway, "192.0.2.1", "request-otp", json!({})).await;
        refused.problem(400);
        fits(&api, &json!({ "$ref": "#/components/schemas/Problem" }), &refused.json(), "Problem");
    }

    /// Every address in the text is there, so that a model that follows it gets somewhere.
    async fn the_text_for_models_leads_somewhere(gateway) {
        let text = reply(gateway.client.get(format!("{}/llms.txt", gateway.base))).await;
        assert_eq!((text.status, text.header("content-type")), (200, "text/plain; charset=utf-8"));
        assert!(text.text.starts_with("# simgate\n\n> "), "{}", text.text);
        let urls = text.text.split(|c: char| c.is_whitespace() || "()`".contains(c)).filter(|word| word.starts_with(&gateway.base));
        let urls: BTreeSet<&str> = urls.map(|url| url.split('?').next().unwrap()).collect();
        for door in ["/api/products/search", "/api/agentic/auth/request-otp", "/api/agentic/auth/verify-otp", "/api/agentic/openapi.json"] {
            assert!(urls.contains(format!("{}{door}", gateway.base).as_str()), "{door}");
        }
        for url in urls {
            assert_ne!(reply(gateway.client.get(url)).await.status, 404, "{url}");
        }
    }
}
