//! What a caller mistypes is answered so that it can be mended: the name, what was meant, what is known, and where it is
//! explained. Nothing is charged for it.

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::error;
use simgate::supplier::sim::SupplierMode;

use crate::support::harness::{Gateway, both_databases, reply};
use crate::support::openapi::operations;
use crate::support::shapes::{API, ORDERS};

/// The mistakes of a refused request: each field with its message.
#[track_caller]
fn mistakes(refused: &crate::support::harness::Reply) -> Vec<(String, String)> {
    assert_eq!(refused.problem(400), "INVALID_REQUEST");
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let listed = refused.json()["errors"].as_array().unwrap().clone();
    listed.iter().map(|wrong| (text(&wrong["field"]), text(&wrong["message"]))).collect()
}

async fn description(gateway: &Gateway) -> Value {
    reply(gateway.client.get(format!("{}{API}/openapi.json", gateway.base))).await.expect(200)
}

both_databases! {
    async fn a_misspelt_member_is_named_and_costs_nothing(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let balance = gateway.balance().await;
        let iccid = order["iccid"].as_str().unwrap();
        let cancel = format!("{ORDERS}/{}/cancel", order["id"].as_str().unwrap());
        let (fill, deposit, verify) = (format!("{ORDERS}/{iccid}/topup"), format!("{API}/balance/deposit"), format!("{API}/balance/verify-deposit"));
        for (path, body, field, message) in [
            (ORDERS, json!({ "packageCode": "JP-1GB-7D", "maxPrice": 1 }), "maxPrice", "unknown; did you mean maxPriceUsd?"),
            (ORDERS, json!({ "packageCode": "JP-1GB-7D", "partner_ref_id": "a" }), "partner_ref_id", "unknown; did you mean partnerRefId?"),
            (ORDERS, json!({ "packageCode": "JP-1GB-7D", "partnerRef": "a" }), "partnerRef", "unknown; did you mean partnerRefId?"),
            (ORDERS, json!({ "packageCode": "JP-1GB-7D", "quantity": 2 }), "quantity", "unknown; known are packageCode, partnerRefId, maxPriceUsd"),
            (ORDERS, json!({ "packageCode": "JP-1GB-7D", "quantity": null }), "quantity", "unknown; known are packageCode, partnerRefId, maxPriceUsd"),
            (&fill, json!({ "packageCode": "JP-1GB-7D-TOPUP", "maxpriceusd": 1 }), "maxpriceusd", "unknown; did you mean maxPriceUsd?"),
            (&deposit, json!({ "amountUsd": 25, "currency": "USDC", "netwrok": "TRON" }), "netwrok", "unknown; did you mean network?"),
            (&verify, json!({ "invoiceId": "inv_1", "tx_hash": "0x" }), "tx_hash", "unknown; did you mean txHash?"),
            (&cancel, json!({ "dryRun": true }), "dryRun", "unknown; none is taken here"),
        ] {
            let refused = gateway.post(path, body.clone()).await;
            assert_eq!(mistakes(&refused), [(field.to_string(), message.to_string())], "{body}");
            assert_eq!(refused.json()["detail"], format!("\"{field}\": {message}"), "{body}");
        }
        let both = gateway.post(ORDERS, json!({ "packagecode": "JP-1GB-7D", "b": 1, "a\u{202e}": 1 })).await;
        let fields: Vec<String> = mistakes(&both).into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["a", "b", "packagecode", "packageCode"], "all of them at once, and nothing hidden is echoed");
        let many: serde_json::Map<String, Value> = (0..2_000).map(|n| (format!("{n}{}", "x".repeat(20)), json!(1))).collect();
        assert_eq!(mistakes(&gateway.post(ORDERS, Value::Object(many)).await).len(), 21, "a long list is cut");
        assert_eq!(gateway.balance().await, balance);
        // Other bodies of a cancel say nothing, so they are taken or refused by their kind.
        let text = gateway.client.post(format!("{}{cancel}", gateway.base)).header("x-b2b-key", &gateway.key.id)
            .header("x-b2b-secret", &gateway.key.secret).header("content-type", "text/plain").body("please");
        assert_eq!(reply(text).await.problem(415), "UNSUPPORTED_MEDIA_TYPE");
        assert_eq!(gateway.post(&cancel, json!([])).await.problem(400), "INVALID_REQUEST");
        assert_eq!(gateway.post(&cancel, json!({})).await.expect(200)["order"]["status"], "CANCELLED");
    }

    async fn a_doubled_member_is_named_and_costs_nothing(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let balance = gateway.balance().await;
        let fill = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        let deposit = format!("{API}/balance/deposit");
        for (path, body, fields) in [
            (ORDERS, r#"{"packageCode": "JP-1GB-7D", "packageCode": "JP-5GB-30D"}"#, &["packageCode"][..]),
            (ORDERS, r#"{"packageCode": "JP-1GB-7D", "maxPriceUsd": 1, "maxPrice\u0055sd": 99}"#, &["maxPriceUsd"]),
            (ORDERS, r#"{"packageCode": "JP-1GB-7D", "partnerRefId": null, "partnerRefId": "a"}"#, &["partnerRefId"]),
            (&fill, r#"{"packageCode": "JP-1GB-7D-TOPUP", "packageCode": "JP-1GB-7D-TOPUP", "packageCode": "A"}"#, &["packageCode"]),
            (&deposit, r#"{"amountUsd": 10, "currency": "USDC", "amountUsd": 100, "x": 1, "x": 2}"#, &["x", "amountUsd"]),
        ] {
            let request = gateway.request("POST", path).header("content-type", "application/json").body(body);
            let told: Vec<String> = mistakes(&reply(request).await).into_iter().map(|(field, _)| field).collect();
            assert_eq!(told, fields, "{body}");
        }
        assert_eq!(gateway.balance().await, balance);
    }

    async fn a_body_that_is_no_object_is_told_in_plain_words(gateway) {
        for (body, told) in [
            ("", "The body is empty; send a JSON object."),
            ("[1]", "The body must be a JSON object, in braces: { … }."),
            ("\"JP-1GB-7D\"", "The body must be a JSON object, in braces: { … }."),
            ("{\"packageCode\": \"JP-1GB-7D\"", "The body is not valid JSON: it ends too early, at line 1, column 27."),
            ("packageCode=JP-1GB-7D", "The body is not valid JSON: a value is expected, at line 1, column 1."),
            ("{'packageCode': 1}", "The body is not valid JSON: the name of a member must be in double quotes, at line 1, column 2."),
        ] {
            let request = gateway.request("POST", ORDERS).header("content-type", "application/json").body(body);
            let refused = reply(request).await;
            assert_eq!(refused.problem(400), "INVALID_REQUEST", "{body}");
            assert_eq!(refused.json()["detail"], told, "{body}");
        }
        let both = gateway.post(ORDERS, json!({ "pakageCode": "JP-1GB-7D" })).await;
        assert_eq!(both.json()["detail"], "\"pakageCode\": unknown; did you mean packageCode? packageCode is required");
    }

    async fn words_are_taken_in_any_case(gateway) {
        let body = json!({ "amountUsd": 25, "currency": "usdc", "network": "Base" });
        let opened = gateway.post(&format!("{API}/balance/deposit"), body).await.expect(200);
        assert_eq!((&opened["currency"], &opened["network"]), (&json!("USDC"), &json!("BASE")));
        assert_eq!(opened["sandbox"], true);
        assert!(opened["sandboxNotice"].as_str().unwrap().contains("do not send real money"), "{opened}");
        let again = gateway.get(&format!("{API}/balance/deposit/{}", opened["invoiceId"].as_str().unwrap())).await.expect(200);
        assert_eq!(again["sandboxNotice"], opened["sandboxNotice"]);
        for kind in ["topup", "Base"] {
            let listed = gateway.get(&format!("{API}/plans?country=jp&type={kind}")).await.expect(200);
            assert_eq!(listed["plans"][0]["planType"], kind.to_uppercase());
        }
        let order = gateway.delivered(json!({ "packageCode": "jp-1gb-7d", "partnerRefId": "a" })).await;
        assert_eq!(order["packageCode"], "JP-1GB-7D");
        let again = gateway.post(ORDERS, json!({ "packageCode": "Jp-1Gb-7D", "partnerRefId": "a" })).await;
        assert_eq!((again.header("idempotent-replayed"), again.expect(200)["order"]["id"].clone()), ("true", order["id"].clone()));
        assert_eq!(gateway.get(&format!("{ORDERS}?status=fulfilled")).await.expect(200)["total"], 1);
    }

    async fn a_short_wallet_is_told_how_it_is_filled(gateway) {
        let (_, poor) = gateway.partner("Poor", simgate::domain::money::Usd::dollars(1)).await;
        let short = gateway.send_as(&poor, "POST", ORDERS, Some(json!({ "packageCode": "JP-5GB-30D" }))).await;
        assert_eq!(short.problem(402), "INSUFFICIENT_BALANCE");
        let detail = short.json()["detail"].as_str().unwrap().to_string();
        assert!(detail.contains("POST /api/b2b/v1/balance/deposit"), "{detail}");
        assert_eq!(short.json().get("magicLink"), None);
    }

    /// Every operation knows its parameters, and says so; the description is where they are known from.
    async fn an_unknown_parameter_is_refused_everywhere(gateway) {
        let api = description(gateway).await;
        for (method, path, operation) in operations(&api) {
            let listed = operation["parameters"].as_array().into_iter().flatten();
            let mut known: Vec<&str> =
                listed.filter(|p| p["in"] == "query").map(|p| p["name"].as_str().unwrap()).collect();
            known.sort_unstable();
            let filled = path.replace("{id}", "ord_1").replace("{invoiceId}", "inv_1").replace("{iccid}", "8900000000000000000");
            let body = (method == "post").then(|| json!({}));
            let refused = gateway.send_as(&gateway.key, &method.to_uppercase(), &format!("{filled}?colour=red"), body).await;
            let wrong = mistakes(&refused);
            let (field, message) = wrong.first().unwrap();
            assert_eq!(field, "colour", "{method} {path}");
            let mut told: Vec<&str> = match message.strip_prefix("unknown; known are ") {
                Some(names) => names.split(", ").collect(),
                None => Vec::new(),
            };
            told.sort_unstable();
            assert_eq!(told, known, "{method} {path}: {message}");
            assert!(!known.is_empty() || message == "unknown; none is taken here", "{message}");
        }
        for (query, field, message) in [
            ("/plans?contry=JP", "contry", "unknown; did you mean country? known are country, type, query, page, limit"),
            ("/orders?partner_ref_id=x", "partner_ref_id", "unknown; did you mean partnerRefId? known are page, limit, after, iccid, partnerRefId, status, from, to"),
        ] {
            assert_eq!(mistakes(&gateway.get(&format!("{API}{query}")).await), [(field.to_string(), message.to_string())]);
        }
        let stranger = reply(gateway.client.get(format!("{}{API}/balance?colour=red", gateway.base))).await;
        assert_eq!(stranger.problem(401), "UNAUTHENTICATED", "strangers learn nothing");
    }

    async fn a_wrong_word_is_answered_with_the_right_ones(gateway) {
        let deposit = format!("{API}/balance/deposit");
        let statuses = "must be one of PROVISIONING, FULFILLED, FAILED, CANCELLING, CANCELLED";
        let networks = "must be one of BASE, POLYGON, ARBITRUM, TRON";
        let moods = format!("must be one of {}", SupplierMode::ALL.map(SupplierMode::as_str).join(", "));
        for (refused, field, message) in [
            (gateway.get(&format!("{ORDERS}?status=DONE")).await, "status", statuses),
            (gateway.get(&format!("{API}/plans?type=DATA")).await, "type", "must be one of BASE, TOPUP"),
            (gateway.post(&deposit, json!({ "amountUsd": 25, "currency": "DAI" })).await, "currency", "must be one of USDT, USDC"),
            (gateway.post(&deposit, json!({ "amountUsd": 25, "currency": "USDC", "network": "SOLANA" })).await, "network", networks),
            (gateway.post("/sandbox/pay", json!({ "invoiceId": "inv_1", "network": "SOLANA" })).await, "network", networks),
            (gateway.post("/sandbox/supplier", json!({ "mode": "lazy" })).await, "mode", moods.as_str()),
        ] {
            assert_eq!(mistakes(&refused), [(field.to_string(), message.to_string())]);
        }
    }

    async fn a_country_that_is_none_is_told(gateway) {
        for (code, message) in [
            ("UK", "is UK, the code of no country; did you mean GB (United Kingdom)?"),
            ("uk", "is UK, the code of no country; did you mean GB (United Kingdom)?"),
            ("XX", "is XX, the code of no country"),
            ("EU", "is EU, the code of no country"),
        ] {
            let refused = gateway.get(&format!("{API}/plans?country={code}")).await;
            assert_eq!(mistakes(&refused), [("country".to_string(), message.to_string())], "{code}");
        }
        for code in ["KP", "aq", "TF"] {
            let none = gateway.get(&format!("{API}/plans?country={code}")).await.expect(200);
            assert_eq!(none, json!({ "success": true, "currency": "USD", "total": 0, "plans": [] }), "{code}");
        }
        assert!(gateway.get(&format!("{API}/plans?country=XK")).await.expect(200)["total"].is_u64());
    }

    async fn a_used_reference_tells_who_holds_it(gateway) {
        let first = gateway.delivered(json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "one" })).await;
        let second = gateway.order("JP-1GB-7D").await;
        let path = |order: &Value| format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        let filled = gateway.post(&path(&first), json!({ "packageCode": "JP-1GB-7D-TOPUP", "partnerRefId": "two" })).await.expect(200);
        let filled = &filled["topUpOrder"]["id"];
        for (path, package, reference, holder, differs) in [
            (ORDERS.to_string(), "JP-3GB-30D", "one", &first["id"], json!(["packageCode"])),
            (path(&first), "JP-1GB-7D-TOPUP", "one", &first["id"], json!(["operation", "packageCode"])),
            (path(&first), "JP-3GB-30D-TOPUP", "two", filled, json!(["packageCode"])),
            (path(&second), "JP-1GB-7D-TOPUP", "two", filled, json!(["eSIM"])),
            (ORDERS.to_string(), "JP-1GB-7D", "two", filled, json!(["operation", "packageCode"])),
        ] {
            let body = json!({ "packageCode": package, "partnerRefId": reference });
            // Many at once go another way through the database.
            for refused in join_all((0..4).map(|_| gateway.post(&path, body.clone()))).await {
                assert_eq!(refused.problem(409), "IDEMPOTENCY_CONFLICT", "{path} {body}");
                let told = refused.json();
                assert_eq!((&told["orderId"], &told["differs"]), (holder, &differs), "{path} {body}");
                let detail = told["detail"].as_str().unwrap();
                assert!(detail.contains(holder.as_str().unwrap()) && detail.contains(differs[0].as_str().unwrap()), "{detail}");
            }
        }
    }

    async fn a_wrong_plan_tells_which_kind_it_is(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let fill = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        for (path, package, told) in [
            (ORDERS, "JP-1GB-7D-TOPUP", ["This is a TOPUP plan", "POST /api/b2b/v1/orders/{iccid}/topup"]),
            (&fill, "JP-1GB-7D", ["This is a BASE plan", "POST /api/b2b/v1/orders."]),
            (&fill, "FR-1GB-7D-TOPUP", ["does not fit this eSIM", "GET /api/b2b/v1/orders/{iccid}/topup-plans"]),
        ] {
            for refused in join_all((0..4).map(|_| gateway.post(path, json!({ "packageCode": package })))).await {
                assert_eq!(refused.problem(422), "WRONG_PLAN_TYPE", "{package}");
                let detail = refused.json()["detail"].as_str().unwrap().to_string();
                assert!(told.iter().all(|part| detail.contains(part)), "{package}: {detail}");
            }
        }
    }

    /// The `type` of a problem leads to its section. That every code has one is seen here; the harness looks at the
    /// `type` of every problem of every test.
    async fn every_code_is_explained_at_its_own_address(gateway) {
        let refused = gateway.get(&format!("{API}/nothing")).await;
        assert_eq!(refused.problem(404), "NOT_FOUND");
        assert_eq!(refused.json()["type"], format!("{}/docs#not-found", gateway.base));
        let page = reply(gateway.client.get(format!("{}/docs", gateway.base))).await.text;
        for (code, _) in error::CODES {
            let section = format!("id=\"{}\"", error::anchor(code));
            assert_eq!(page.matches(&section).count(), 1, "{code}");
            assert!(page.contains(&format!("<h3><code>{code}</code></h3>")), "{code}");
        }
    }
}
