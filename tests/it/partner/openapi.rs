//! The description that is served: complete, and true to the router.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::support::harness::{Gateway, both_databases, reply};
use crate::support::openapi::{fits, operations};
use crate::support::shapes::API;

/// Every operation of the service specification 4.1 and of the contract 4 that this build has.
const OPERATIONS: &[(&str, &str)] = &[
    ("get", "/balance"),
    ("get", "/balance/address"),
    ("get", "/balance/deposit/{invoiceId}"),
    ("get", "/balance/transactions"),
    ("get", "/events"),
    ("get", "/orders"),
    ("get", "/orders/{iccid}/topup-plans"),
    ("get", "/orders/{iccid}/usage"),
    ("get", "/orders/{id}"),
    ("get", "/plans"),
    ("post", "/balance/deposit"),
    ("post", "/balance/verify-deposit"),
    ("post", "/orders"),
    ("post", "/orders/{iccid}/topup"),
    ("post", "/orders/{id}/cancel"),
    ("delete", "/orders/{id}/cancel"),
    ("get", "/webhooks"),
    ("post", "/webhooks"),
    ("patch", "/webhooks/{webhookId}"),
    ("delete", "/webhooks/{webhookId}"),
    ("post", "/webhooks/{webhookId}/test"),
    ("post", "/webhooks/{webhookId}/rotate"),
    ("post", "/webhooks/{webhookId}/replay"),
    ("get", "/webhooks/{webhookId}/deliveries"),
    ("post", "/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver"),
];

async fn description(gateway: &Gateway) -> Value {
    let reply = reply(gateway.client.get(format!("{}{API}/openapi.json", gateway.base))).await;
    assert_eq!(reply.header("content-type"), "application/json");
    reply.expect(200)
}

both_databases! {
    async fn it_describes_every_route(gateway) {
        let api = description(gateway).await;
        assert_eq!((&api["openapi"], &api["info"]["version"]), (&json!("3.1.0"), &json!("1.0.0")));
        assert_eq!(api["servers"][0]["url"], gateway.base);
        let described: BTreeSet<(String, String)> = operations(&api).into_iter().map(|(method, path, _)| (method, path)).collect();
        let wanted: BTreeSet<(String, String)> =
            OPERATIONS.iter().map(|(method, path)| (method.to_string(), format!("{API}{path}"))).collect();
        assert_eq!(described, wanted);
        // Each of them is there: a stranger is asked who he is, not told that there is nothing.
        for (method, path, _) in operations(&api) {
            let path = path.replace("{id}", "ord_1").replace("{invoiceId}", "inv_1").replace("{iccid}", "8900000000000000000");
            let path = path.replace("{webhookId}", "whk_1").replace("{deliveryId}", "dlv_1");
            let request = gateway.client.request(method.to_uppercase().parse().unwrap(), format!("{}{path}", gateway.base));
            assert_eq!(reply(request).await.problem(401), "UNAUTHENTICATED", "{method} {path}");
        }
    }

    async fn every_operation_is_described_in_full(gateway) {
        let api = description(gateway).await;
        let mut ids = HashSet::new();
        for (method, path, operation) in operations(&api) {
            let at = format!("{method} {path}");
            for field in ["summary", "description", "operationId"] {
                assert!(operation[field].as_str().is_some_and(|text| !text.is_empty()), "{at}: {field}");
            }
            assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{at}: its operationId is used twice");
            assert!(!operation["tags"].as_array().unwrap().is_empty(), "{at}");
            let responses = operation["responses"].as_object().unwrap();
            let mut expected = vec!["200", "401", "403", "405", "406", "429", "500", "503"];
            if operation["parameters"].is_array() || operation["requestBody"].is_object() {
                expected.push("400");
            }
            if operation["requestBody"].is_object() {
                expected.extend(["408", "413", "415"]);
                expected.extend((!path.contains("/webhooks")).then_some("422"));
                let buys = path.contains("/orders");
                expected.extend(if buys { &["202", "402", "404", "409", "502"][..] } else { &[] });
            }
            if path.ends_with("/verify-deposit") {
                expected.extend(["404", "409"]);
            }
            if path.contains('{') {
                expected.push("404");
            }
            for status in expected {
                assert!(responses.contains_key(status), "{at}: no {status}");
            }
            for (status, response) in responses {
                assert!(!response["description"].as_str().unwrap().is_empty(), "{at} {status}");
                assert!(response["headers"]["X-Request-Id"].is_object(), "{at} {status}");
                let has = |header: &str| response["headers"][header].is_object();
                assert_eq!(has("Retry-After"), ["202", "429", "503"].contains(&status.as_str()), "{at} {status}");
                assert_eq!(has("Location"), status == "202", "{at} {status}");
                assert_eq!(has("WWW-Authenticate"), status == "401", "{at} {status}");
                let buys = operation["requestBody"].is_object() && path.contains("/orders");
                assert_eq!(has("Idempotent-Replayed"), buys && ["200", "202"].contains(&status.as_str()), "{at} {status}");
                assert_eq!(has("ETag"), path.ends_with("/plans") && ["200", "304"].contains(&status.as_str()), "{at} {status}");
                assert_eq!(has("Link"), at == format!("get {API}/orders") && status == "200", "{at} {status}");
                assert!(has("RateLimit") || !["200", "202", "400", "429"].contains(&status.as_str()), "{at} {status}");
                if status.starts_with(['4', '5']) {
                    let schema = &response["content"]["application/problem+json"]["schema"]["$ref"];
                    assert_eq!(schema, "#/components/schemas/Problem", "{at} {status}");
                } else if status != "304" {
                    assert!(response["content"]["application/json"]["schema"]["$ref"].is_string(), "{at} {status}");
                }
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let named: Vec<&Value> = vec![&parameter["name"], &parameter["in"], &parameter["schema"]["type"]];
                assert!(named.iter().all(|value| !value.is_null()), "{at}: {parameter}");
                let in_path = parameter["in"] == "path";
                assert_eq!(parameter["required"] == true, in_path, "{at}: {parameter}");
            }
        }
    }

    async fn limits_and_words_are_those_of_the_contract(gateway) {
        let api = description(gateway).await;
        let parameters = |path: &str| -> BTreeMap<String, Value> {
            let listed = api["paths"][format!("{API}{path}")]["get"]["parameters"].as_array().unwrap();
            listed.iter().map(|p| (p["name"].as_str().unwrap().to_string(), p["schema"].clone())).collect()
        };
        let orders = parameters("/orders");
        let names: Vec<&str> = orders.keys().map(String::as_str).collect();
        assert_eq!(names, ["after", "from", "iccid", "limit", "page", "partnerRefId", "status", "to"]);
        assert_eq!((&orders["limit"]["minimum"], &orders["limit"]["maximum"], &orders["limit"]["default"]), (&json!(1), &json!(100), &json!(20)));
        assert_eq!((&orders["page"]["minimum"], &orders["page"]["default"]), (&json!(1), &json!(1)));
        assert_eq!(orders["status"]["enum"], json!(["PROVISIONING", "FULFILLED", "FAILED", "CANCELLING", "CANCELLED"]));
        let plans = parameters("/plans");
        let names: Vec<&str> = plans.keys().map(String::as_str).collect();
        assert_eq!(names, ["country", "limit", "page", "query", "type"]);
        assert_eq!((&plans["type"]["enum"], &plans["type"]["default"]), (&json!(["BASE", "TOPUP"]), &json!("BASE")));
        assert_eq!((&plans["limit"]["minimum"], &plans["limit"]["maximum"]), (&json!(1), &json!(1000)));
        let statement = parameters("/balance/transactions");
        assert_eq!(statement.keys().map(String::as_str).collect::<Vec<_>>(), ["after", "from", "limit", "to"]);
        let schemas = &api["components"]["schemas"];
        assert_eq!(schemas["EsimStatus"]["enum"], json!(["NEW", "INSTALLED", "ACTIVE", "DEPLETED", "EXPIRED", "CANCELLED"]));
        for (schema, field) in [("Plan", "priceUsd"), ("Order", "chargedUsd"), ("Balance", "balanceUsd")] {
            let money = &schemas[schema]["properties"][field]["$ref"];
            assert_eq!(money, "#/components/schemas/Money", "{schema}.{field}");
        }
        // Validators that divide doubles refuse good answers by a `multipleOf`.
        assert_eq!((&schemas["Money"]["type"], &schemas["Money"]["multipleOf"]), (&json!("number"), &Value::Null));
        assert_eq!(schemas["OrderRequest"]["properties"]["maxPriceUsd"]["multipleOf"], json!(0.000001));
        for (method, door) in [("get", "usage"), ("get", "topup-plans"), ("post", "topup")] {
            let iccid = &api["paths"][format!("{API}/orders/{{iccid}}/{door}")][method]["parameters"][0];
            assert_eq!((&iccid["name"], &iccid["schema"]["pattern"]), (&json!("iccid"), &json!("^([0-9]{19,20}|ord_[0-9A-Za-z]{30})$")), "{door}");
        }
        let reference = &schemas["OrderRequest"]["properties"]["partnerRefId"]["pattern"];
        assert_eq!(*reference, orders["partnerRefId"]["pattern"]);
        let reference = reference.as_str().unwrap();
        assert!(reference.starts_with(r"^[^\u0000-\u001F\u007F-\u009F\u00AD") && reference.ends_with("]{1,128}$"), "{reference}");
        assert!(reference.contains(r"\u200B-\u200F") && reference.contains(r"\uFEFF"), "{reference}");
        for request in ["OrderRequest", "DepositRequest", "VerifyRequest"] {
            assert_eq!(schemas[request]["additionalProperties"], false, "{request}");
        }
        let request = &schemas["DepositRequest"];
        assert_eq!(request["required"], json!(["amountUsd", "currency"]));
        let amount = &request["properties"]["amountUsd"];
        assert_eq!((&amount["minimum"], &amount["maximum"]), (&json!(10), &json!(1_000_000)));
        assert_eq!(request["properties"]["network"]["default"], "BASE");
        for (schema, words) in [
            ("Currency", json!(["USDT", "USDC"])),
            ("Network", json!(["BASE", "POLYGON", "ARBITRUM", "TRON"])),
            ("DepositStatus", json!(["PENDING", "CONFIRMING", "CONFIRMED", "EXPIRED"])),
            ("DepositException", json!(["UNDER", "OVER", "LATE"])),
            ("PaymentStatus", json!(["CONFIRMING", "CONFIRMED", "ORPHANED", "REVERSED"])),
        ] {
            assert_eq!(schemas[schema]["enum"], words, "{schema}");
        }
        let request = &schemas["OrderRequest"];
        assert_eq!(request["required"], json!(["packageCode"]));
        assert_eq!(request["properties"]["partnerRefId"]["maxLength"], 128);
        for scheme in [("partnerKey", "X-B2B-Key"), ("partnerSecret", "X-B2B-Secret")] {
            assert_eq!(api["components"]["securitySchemes"][scheme.0]["name"], scheme.1);
            assert_eq!(api["security"][0][scheme.0], json!([]), "both are required together");
        }
        assert_eq!(api["security"].as_array().unwrap().len(), 1);
    }

    async fn every_field_of_an_answer_is_described(gateway) {
        let api = description(gateway).await;
        let order = gateway.order("JP-1GB-7D").await;
        let iccid = order["iccid"].as_str().unwrap();
        let body = json!({ "amountUsd": 25, "currency": "USDC" });
        let invoice = gateway.post(&format!("{API}/balance/deposit"), body).await.expect(200);
        let invoice = invoice["invoiceId"].as_str().unwrap();
        gateway.sandbox("pay", json!({ "invoiceId": invoice })).await;
        let verified = gateway.until("the deposit is credited", async || {
            let answer = gateway.post(&format!("{API}/balance/verify-deposit"), json!({ "invoiceId": invoice })).await.expect(200);
            (answer["status"] == "CONFIRMED").then_some(answer)
        }).await;
        fits(&api, &json!({ "$ref": "#/components/schemas/DepositVerified" }), &verified, "DepositVerified");
        for (path, operation) in [
            (format!("/balance/deposit/{invoice}"), "/balance/deposit/{invoiceId}"),
            ("/balance".to_string(), "/balance"),
            ("/balance/address".into(), "/balance/address"),
            ("/balance/transactions".into(), "/balance/transactions"),
            ("/plans?country=JP".into(), "/plans"),
            ("/orders".into(), "/orders"),
            (format!("/orders/{}", order["id"].as_str().unwrap()), "/orders/{id}"),
            (format!("/orders/{iccid}/usage"), "/orders/{iccid}/usage"),
            (format!("/orders/{iccid}/topup-plans"), "/orders/{iccid}/topup-plans"),
        ] {
            let answer = gateway.get(&format!("{API}{path}")).await.expect(200);
            let schema = &api["paths"][format!("{API}{operation}")]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
            fits(&api, schema, &answer, operation);
        }
        let problem = gateway.get(&format!("{API}/orders?limit=0")).await;
        problem.problem(400);
        fits(&api, &json!({ "$ref": "#/components/schemas/Problem" }), &problem.json(), "Problem");
    }
}
