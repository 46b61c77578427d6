//! Buying at the consumer API: once for a key, never half, and what becomes of what the supplier leaves open.

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::buying::{PLAN, usd};
use crate::support::coupons::{DEAR, limited, plan, tally};
use crate::support::customers::*;
use crate::support::harness::{Gateway, both_databases};

async fn topup_for(gateway: &Gateway, token: &str, id: &str) -> Value {
    let found = get(gateway, token, &format!("/api/esims/{id}/topup")).await.expect(200);
    json!({ "packageCode": found["packages"][0]["packageCode"], "source": "mcp" })
}

both_databases! {
    async fn the_same_key_is_charged_once(gateway) {
        let token = ann(gateway, 50).await;
        limited(gateway, "TEN", 9).await;
        let wish = json!({ "packageCode": DEAR, "discountCode": "ten", "source": "mcp" });
        let all = join_all((0..4).map(|_| post_with_key(gateway, &token, "trip", ORDERS, wish.clone()))).await;
        let first = all[0].expect(200);
        for reply in &all {
            assert_eq!(reply.expect(200)["orderId"], first["orderId"]);
        }
        assert_eq!(all.iter().filter(|reply| reply.header("idempotent-replayed") == "true").count(), 3);
        let left = balance(gateway, &token).await;
        // What says where the caller comes from is no part of the request.
        let again = post_with_key(gateway, &token, "trip", ORDERS, json!({ "packageCode": DEAR, "discountCode": "TEN" })).await;
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(again.expect(200)["lpaUrl"], first["lpaUrl"]);
        for other in [json!({ "packageCode": PLAN }), json!({ "packageCode": DEAR }), json!({ "packageCode": DEAR, "discountCode": "other" })] {
            assert_eq!(post_with_key(gateway, &token, "trip", ORDERS, other).await.problem(409), "IDEMPOTENCY_CONFLICT");
        }
        assert_eq!((balance(gateway, &token).await, tally(gateway, "TEN").await), (left, (0, 1)));
        assert_eq!(orders(gateway, &token).await.len(), 1);

        let id = first["orderId"].as_str().unwrap();
        let (path, package) = (format!("/api/esims/{id}/topup"), topup_for(gateway, &token, id).await);
        assert_eq!(post_with_key(gateway, &token, "trip", &path, package.clone()).await.problem(409), "IDEMPOTENCY_CONFLICT");
        let all = join_all((0..3).map(|_| post_with_key(gateway, &token, "more", &path, package.clone()))).await;
        let added = all[0].expect(200);
        assert!(added["orderId"].as_str().unwrap().starts_with("top_"));
        assert!(all.iter().all(|reply| reply.expect(200)["orderId"] == added["orderId"]));
        assert_eq!(usd(&added["amount"]), left.minus(balance(gateway, &token).await));
        // Without a key every call is a purchase.
        bought(gateway, &token).await;
        bought(gateway, &token).await;
        assert_eq!(orders(gateway, &token).await.len(), 3);
        for key in ["", &"x".repeat(129)] {
            let wrong = post_with_key(gateway, &token, key, ORDERS, wish.clone()).await;
            assert_eq!((wrong.problem(400).as_str(), &wrong.json()["errors"][0]["field"]), ("INVALID_REQUEST", &json!("Idempotency-Key")));
        }
    }

    async fn what_is_with_the_supplier_is_shown_as_such(gateway) with [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")] {
        let token = ann(gateway, 20).await;
        gateway.supplier("timeout").await;
        let open = post_with_key(gateway, &token, "slow", ORDERS, wish()).await;
        assert!(!open.header("retry-after").is_empty());
        let order = open.expect(202);
        assert_eq!((&order["status"], order.get("error")), (&json!("PROCESSING"), None));
        for field in ["iccid", "smdpAddress", "matchingId", "lpaUrl"] {
            assert_eq!(order[field], Value::Null, "{field}");
        }
        let id = order["orderId"].as_str().unwrap().to_string();
        assert_eq!(orders(gateway, &token).await, [(id.clone(), "PROCESSING".into())]);
        assert_eq!(get(gateway, &token, ORDERS).await.expect(200)["total"], 1);
        let early = press(gateway, &token, &format!("/api/esims/{id}/usage")).await;
        assert_eq!(early.problem(404), "ESIM_NOT_FOUND");
        let early = press(gateway, &token, &format!("/api/orders/{id}/cancel")).await;
        assert_eq!((early.problem(409).as_str(), &early.json()["reason"]), ("NOT_CANCELLABLE", &json!("PROVISIONING")));
        gateway.supplier("ok").await;
        gateway.until("it is delivered", async || {
            gateway.pass_time(1_000);
            (orders(gateway, &token).await[0].1 == "COMPLETED").then_some(())
        }).await;
        let replayed = post_with_key(gateway, &token, "slow", ORDERS, wish()).await.expect(200);
        assert_eq!((replayed["orderId"].as_str().unwrap(), &replayed["status"]), (id.as_str(), &json!("COMPLETED")));
        assert!(replayed["lpaUrl"].is_string());
    }

    async fn a_cancel_without_an_answer_goes_on(gateway) with [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")] {
        let token = ann(gateway, 20).await;
        gateway.supplier("ok").await;
        let order = post(gateway, &token, ORDERS, wish()).await.json();
        let id = order["orderId"].as_str().unwrap();
        gateway.until("it is delivered", async || {
            gateway.pass_time(1_000);
            (orders(gateway, &token).await[0].1 == "COMPLETED").then_some(())
        }).await;
        gateway.supplier("timeout").await;
        let path = format!("/api/orders/{id}/cancel");
        let open = press(gateway, &token, &path).await.expect(202);
        assert_eq!((&open["status"], &open["refunded"], open.get("error")), (&json!("CANCELLING"), &json!(0), None));
        let withheld = &get(gateway, &token, ORDERS).await.expect(200)["orders"][0];
        assert_eq!((&withheld["status"], &withheld["lpaUrl"]), (&json!("CANCELLING"), &Value::Null));
        gateway.supplier("ok").await;
        gateway.until("the money is back", async || {
            gateway.pass_time(1_000);
            (balance(gateway, &token).await == Usd::dollars(20)).then_some(())
        }).await;
    }

    async fn what_was_given_back_is_gone(gateway) {
        let token = ann(gateway, 20).await;
        let order = post_with_key(gateway, &token, "trip", ORDERS, wish()).await.expect(200);
        let id = order["orderId"].as_str().unwrap();
        let path = format!("/api/orders/{id}/cancel");
        let cancel = async |key: &str| crate::support::harness::reply(request(gateway, &token, "POST", &path).header("idempotency-key", key)).await;
        let first = cancel("back").await.expect(200);
        assert_eq!((&first["status"], usd(&first["balance"])), (&json!("CANCELLED"), Usd::dollars(20)));
        let again = cancel("back").await;
        assert_eq!((again.header("idempotent-replayed"), again.expect(200)), ("true", first));
        assert_eq!(cancel("trip").await.problem(409), "IDEMPOTENCY_CONFLICT");
        let refused = press(gateway, &token, &path).await;
        assert_eq!((refused.problem(409).as_str(), &refused.json()["reason"]), ("NOT_CANCELLABLE", &json!("ALREADY_CANCELLED")));
        // The order is the same one, as it is now.
        let replayed = post_with_key(gateway, &token, "trip", ORDERS, wish()).await.expect(200);
        assert_eq!((&replayed["orderId"], &replayed["status"], &replayed["lpaUrl"]), (&order["orderId"], &json!("CANCELLED"), &Value::Null));
        let topup = format!("/api/esims/{id}/topup");
        assert_eq!(get(gateway, &token, &topup).await.problem(409), "ESIM_NOT_ACTIVE");
        assert_eq!(post(gateway, &token, &topup, json!({ "packageCode": "JP-5GB-30D-TOPUP" })).await.problem(409), "ESIM_NOT_ACTIVE");
        assert_eq!(balance(gateway, &token).await, Usd::dollars(20));
    }

    async fn a_refusal_of_the_supplier_gives_the_money_back(gateway) {
        let token = ann(gateway, 20).await;
        gateway.supplier("reject").await;
        let refused = post_with_key(gateway, &token, "trip", ORDERS, wish()).await;
        assert_eq!(refused.problem(502), "SUPPLIER_REJECTED");
        assert_eq!((balance(gateway, &token).await, orders(gateway, &token).await.len()), (Usd::dollars(20), 0));
        gateway.supplier("ok").await;
        post_with_key(gateway, &token, "trip", ORDERS, wish()).await.expect(200);
        assert_eq!(balance(gateway, &token).await, Usd::dollars(20).minus(plan(gateway, PLAN).retail));
    }
}
