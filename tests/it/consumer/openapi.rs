//! The description of the consumer API must be true to the router and to every answer.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::buying::PLAN;
use crate::support::command_line::ok;
use crate::support::coupons::DEAR;
use crate::support::customers::*;
use crate::support::harness::{Gateway, both_databases, reply};
use crate::support::logins::code;
use crate::support::openapi::{fits, operations};

/// Every operation, and whether it needs a token.
const OPERATIONS: &[(&str, &str, bool)] = &[
    ("get", "/api/esims/{id}/topup", true),
    ("get", "/api/mcp/knowledge", false),
    ("get", "/api/orders", true),
    ("get", "/api/products/search", false),
    ("get", "/api/wallet/balance", true),
    ("get", "/api/wallet/transactions", true),
    ("post", "/api/auth/otp/send", false),
    ("post", "/api/auth/otp/verify", false),
    ("post", "/api/discount/validate", true),
    ("post", "/api/esims/{id}/topup", true),
    ("post", "/api/esims/{id}/usage", true),
    ("post", "/api/orders", true),
    ("post", "/api/orders/{id}/cancel", true),
    ("delete", "/api/orders/{id}/cancel", true),
];

async fn description(gateway: &Gateway) -> Value {
    get(gateway, "", "/api/consumer/openapi.json").await.expect(200)
}

both_databases! {
    async fn it_describes_every_route(gateway) {
        let api = description(gateway).await;
        assert_eq!((&api["openapi"], &api["servers"][0]["url"]), (&json!("3.1.0"), &json!(gateway.base)));
        let described: BTreeSet<_> = operations(&api).into_iter().map(|(method, path, _)| (method, path)).collect();
        let wanted: BTreeSet<_> = OPERATIONS.iter().map(|(method, path, _)| (method.to_string(), path.to_string())).collect();
        assert_eq!(described, wanted);
        assert_eq!(api["components"]["securitySchemes"]["token"]["scheme"], "bearer");
        for (method, path, needs_token) in OPERATIONS {
            let at = format!("{method} {path}");
            let operation = &api["paths"][path][method];
            let stranger = reply(request(gateway, "", &method.to_uppercase(), &path.replace("{id}", "ord_1"))).await;
            assert_eq!(stranger.status == 401, *needs_token, "{at}");
            assert_eq!(operation["security"], if *needs_token { Value::Null } else { json!([{}]) }, "{at}");
            let responses = operation["responses"].as_object().unwrap();
            for status in ["200", "405", "406", "429", "500", "503"] {
                assert!(responses.contains_key(status), "{at}: no {status}");
            }
            assert_eq!(responses.contains_key("401"), *needs_token || path.ends_with("/verify"), "{at}");
            assert_eq!(responses.contains_key("415"), operation["requestBody"].is_object(), "{at}");
        }
        let strict = |name: &str| api["components"]["schemas"][name]["additionalProperties"].clone();
        assert_eq!((strict("OrderRequest"), strict("TopUpRequest")), (json!(false), json!(false)));
        let catalog = get(gateway, "", "/.well-known/api-catalog").await;
        assert!(catalog.text.contains(&format!("{}/api/consumer/openapi.json", gateway.base)), "{}", catalog.text);
    }

    async fn every_field_of_an_answer_is_described(gateway) {
        let api = description(gateway).await;
        let check = |method: &str, path: &str, answer: &Value| {
            assert!(answer.get("error").is_none(), "{path}: {answer}");
            let schema = &api["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"];
            fits(&api, schema, answer, path);
        };
        let problem = json!({ "$ref": "#/components/schemas/Problem" });
        check("get", "/api/mcp/knowledge", &get(gateway, "", "/api/mcp/knowledge").await.expect(200));
        check("get", "/api/products/search", &get(gateway, "", "/api/products/search?country=japan").await.expect(200));
        let send = "/api/auth/otp/send";
        check("post", send, &post(gateway, "", send, json!({ "email": "bob@example.com" })).await.expect(200));
        let body = json!({ "email": "bob@example.com", "code": code(gateway, "bob@example.com").await });
        check("post", "/api/auth/otp/verify", &post(gateway, "", "/api/auth/otp/verify", body).await.expect(200));

        let token = ann(gateway, 50).await;
        ok(gateway, "coupon create --code TEN --percent 10 --ends 2999-01-01");
        let coupon = json!({ "code": "TEN", "packageCode": DEAR });
        check("post", "/api/discount/validate", &post(gateway, &token, "/api/discount/validate", coupon).await.expect(200));
        let order = post(gateway, &token, ORDERS, wish()).await.expect(200);
        check("post", ORDERS, &order);
        let id = order["orderId"].as_str().unwrap();
        let at = |path: &str| path.replace("{id}", id);
        check("post", "/api/esims/{id}/usage", &press(gateway, &token, &at("/api/esims/{id}/usage")).await.expect(200));
        let topup = "/api/esims/{id}/topup";
        let packages = get(gateway, &token, &at(topup)).await.expect(200);
        check("get", topup, &packages);
        let body = json!({ "packageCode": packages["packages"][0]["packageCode"] });
        check("post", topup, &post(gateway, &token, &at(topup), body).await.expect(200));
        let second = bought(gateway, &token).await;
        let cancelled = press(gateway, &token, &format!("/api/orders/{second}/cancel")).await.expect(200);
        check("post", "/api/orders/{id}/cancel", &cancelled);
        for path in ["/api/wallet/balance", "/api/wallet/transactions", ORDERS] {
            check("get", path, &get(gateway, &token, path).await.expect(200));
        }
        while balance(gateway, &token).await >= crate::support::coupons::plan(gateway, DEAR).retail {
            post(gateway, &token, ORDERS, json!({ "packageCode": DEAR })).await.expect(200);
        }
        let short = post(gateway, &token, ORDERS, json!({ "packageCode": DEAR })).await;
        short.problem(402);
        fits(&api, &problem, &short.json(), "402");
        let wrong = post(gateway, &token, ORDERS, json!({ "packageCode": PLAN, "maxPrice": 1 })).await;
        wrong.problem(400);
        fits(&api, &problem, &wrong.json(), "400");
    }
}
