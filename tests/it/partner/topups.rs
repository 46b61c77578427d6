//! More data on an eSIM: which bundles fit, what a top-up answers, and when there is none to be had.

use serde_json::{Value, json};
use simgate::ops::recover;

use crate::support::harness::{Gateway, Reply, both_databases};
use crate::support::shapes::{ORDERS, column, mask, money, names};

async fn top_up(gateway: &Gateway, iccid: &str, body: Value) -> Reply {
    gateway.post(&format!("{ORDERS}/{iccid}/topup"), body).await
}

async fn usage(gateway: &Gateway, iccid: &str) -> Value {
    gateway.get(&format!("{ORDERS}/{iccid}/usage")).await.expect(200)
}

both_databases! {
    async fn bundles_fit_the_esim_and_come_cheapest_first(gateway) {
        for (package, family) in [("JP-1GB-7D", "JP-"), ("EAST-ASIA-1GB-7D", "EAST-ASIA-"), ("GLOBAL-1GB-7D", "GLOBAL-")] {
            let order = gateway.order(package).await;
            let iccid = order["iccid"].as_str().unwrap();
            let reply = gateway.get(&format!("{ORDERS}/{iccid}/topup-plans")).await;
            money(&reply.text);
            let list = reply.expect(200);
            assert_eq!(names(&list), ["currency", "iccid", "plans", "success"]);
            assert_eq!((&list["iccid"], &list["currency"]), (&order["iccid"], &json!("USD")));
            let plans = list["plans"].as_array().unwrap();
            assert!(plans.len() > 1);
            for plan in plans {
                assert_eq!(names(plan), ["dataAmountGb", "durationDays", "kind", "name", "packageCode", "planType", "priceUsd"]);
                assert_eq!(plan["planType"], "TOPUP");
                assert!(plan["packageCode"].as_str().unwrap().starts_with(family), "{plan}");
            }
            let prices: Vec<f64> = plans.iter().map(|plan| plan["priceUsd"].as_f64().unwrap()).collect();
            assert!(prices.is_sorted(), "{prices:?}");
        }
    }

    async fn a_top_up_adds_data_and_keeps_the_profile(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let iccid = order["iccid"].as_str().unwrap();
        let body = json!({ "packageCode": "JP-3GB-30D-TOPUP", "partnerRefId": "more" });
        let reply = top_up(gateway, iccid, body.clone()).await;
        money(&reply.text);
        let answer = reply.expect(200);
        insta::assert_json_snapshot!(mask(&answer), @r#"
        {
          "balanceRemainingUsd": 996.75,
          "message": "Japan 3 GB 30 days top-up was added to the eSIM.",
          "success": true,
          "topUpOrder": {
            "chargedUsd": 2.43,
            "createdAt": "…Z",
            "iccid": "89…",
            "id": "top_…",
            "packageCode": "JP-3GB-30D-TOPUP",
            "partnerRefId": "more",
            "status": "FULFILLED"
          }
        }
        "#);
        assert_eq!(usage(gateway, iccid).await["totalGb"].to_string(), "4.0");
        let again = top_up(gateway, iccid, body).await;
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(again.expect(200), answer);
        assert_eq!(usage(gateway, iccid).await["totalGb"].to_string(), "4.0");

        let id = answer["topUpOrder"]["id"].as_str().unwrap();
        let found = gateway.get(&format!("{ORDERS}/{id}")).await.expect(200);
        assert_eq!((names(&found), &found["topUpOrder"]), (vec!["success", "topUpOrder"], &answer["topUpOrder"]));
        let listed = gateway.get(ORDERS).await.expect(200);
        assert_eq!(listed["total"], 1, "a top-up belongs to its order");
        let shown = &listed["orders"][0];
        assert_eq!(shown["topUps"], json!([answer["topUpOrder"]]));
        for same in ["iccid", "qrCodeUrl", "installUrl", "lpaString", "matchingId", "chargedUsd"] {
            assert_eq!(shown[same], order[same], "{same}");
        }
        // The reference is taken for every other purchase.
        for (path, package) in [
            (format!("{ORDERS}/{iccid}/topup"), "JP-1GB-7D-TOPUP"),
            (ORDERS.to_string(), "JP-3GB-30D-TOPUP"),
            (ORDERS.to_string(), "JP-1GB-7D"),
        ] {
            let body = json!({ "packageCode": package, "partnerRefId": "more" });
            assert_eq!(gateway.post(&path, body).await.problem(409), "IDEMPOTENCY_CONFLICT", "{path} {package}");
        }
        let other = gateway.order("JP-1GB-7D").await;
        let body = json!({ "packageCode": "JP-3GB-30D-TOPUP", "partnerRefId": "more" });
        let refused = top_up(gateway, other["iccid"].as_str().unwrap(), body).await;
        assert_eq!(refused.problem(409), "IDEMPOTENCY_CONFLICT", "another eSIM is another request");
    }

    async fn a_top_up_that_does_not_fit_is_refused(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let iccid = order["iccid"].as_str().unwrap();
        let balance = gateway.balance().await;
        for (body, status, code) in [
            (json!({ "packageCode": "JP-1GB-7D" }), 422, "WRONG_PLAN_TYPE"),
            (json!({ "packageCode": "FR-1GB-7D-TOPUP" }), 422, "WRONG_PLAN_TYPE"),
            (json!({ "packageCode": "GLOBAL-1GB-7D-TOPUP" }), 422, "WRONG_PLAN_TYPE"),
            (json!({ "packageCode": "NO-SUCH" }), 404, "PLAN_NOT_FOUND"),
            (json!({ "packageCode": "JP-1GB-7D-TOPUP", "maxPriceUsd": 0.1 }), 409, "PRICE_CHANGED"),
            (json!({ "packageCode": "JP-1GB-7D-TOPUP", "partnerRefId": "" }), 400, "INVALID_REQUEST"),
            (json!({}), 400, "INVALID_REQUEST"),
        ] {
            assert_eq!(top_up(gateway, iccid, body.clone()).await.problem(status), code, "{body}");
        }
        for (iccid, status, code) in [
            ("8900000000000000000", 404, "ESIM_NOT_FOUND"),
            ("89000000000000000000", 404, "ESIM_NOT_FOUND"),
            ("890000000000000000", 400, "INVALID_REQUEST"),
            ("890000000000000000000", 400, "INVALID_REQUEST"),
            ("890000000000000000x", 400, "INVALID_REQUEST"),
            ("%D9%A8900000000000000000", 400, "INVALID_REQUEST"),
            ("ord_1", 404, "ORDER_NOT_FOUND"),
        ] {
            let body = json!({ "packageCode": "JP-1GB-7D-TOPUP" });
            assert_eq!(top_up(gateway, iccid, body).await.problem(status), code, "{iccid}");
            for door in ["topup-plans", "usage"] {
                let refused = gateway.get(&format!("{ORDERS}/{iccid}/{door}")).await;
                assert_eq!(refused.problem(status), code, "{iccid}/{door}");
                if status == 400 {
                    assert_eq!(refused.json()["errors"][0]["field"], "iccid");
                }
            }
        }
        assert_eq!(gateway.balance().await, balance);
    }

    async fn only_a_living_esim_takes_more(gateway) {
        for (status, allowed) in [("NEW", true), ("INSTALLED", true), ("ACTIVE", true), ("DEPLETED", true), ("EXPIRED", false)] {
            let order = gateway.order("JP-1GB-7D").await;
            let iccid = order["iccid"].as_str().unwrap();
            gateway.sandbox("usage", json!({ "iccid": iccid, "status": status })).await;
            assert_eq!(usage(gateway, iccid).await["status"], status);
            let plans = gateway.get(&format!("{ORDERS}/{iccid}/topup-plans")).await;
            let filled = top_up(gateway, iccid, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await;
            if allowed {
                plans.expect(200);
                filled.expect(200);
                let after = usage(gateway, iccid).await;
                assert_eq!(after["totalGb"].to_string(), "2.0");
                let revived = if status == "DEPLETED" { "ACTIVE" } else { status };
                assert_eq!(after["status"], revived);
            } else {
                assert_eq!(plans.problem(409), "ESIM_NOT_ACTIVE");
                assert_eq!(filled.problem(409), "ESIM_NOT_ACTIVE");
            }
        }
    }

    /// A replay is answered whatever has become of the eSIM since.
    async fn a_known_reference_is_answered_after_the_esim_expired(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let iccid = order["iccid"].as_str().unwrap();
        let body = json!({ "packageCode": "JP-1GB-7D-TOPUP", "partnerRefId": "t" });
        let first = top_up(gateway, iccid, body.clone()).await.expect(200);
        gateway.sandbox("usage", json!({ "iccid": iccid, "status": "EXPIRED" })).await;
        assert_eq!(top_up(gateway, iccid, body).await.expect(200)["topUpOrder"], first["topUpOrder"]);
    }

    async fn an_unanswered_top_up_is_accepted_and_finished_later(gateway)
        with [("answer_within_ms", "200"), ("supplier_timeout_ms", "3000")]
    {
        let order = gateway.order("JP-1GB-7D").await;
        let iccid = order["iccid"].as_str().unwrap();
        usage(gateway, iccid).await;
        gateway.supplier("malformed").await;
        let body = json!({ "packageCode": "JP-1GB-7D-TOPUP", "partnerRefId": "t" });
        let reply = top_up(gateway, iccid, body.clone()).await;
        let answer = reply.expect(202);
        let id = answer["topUpOrder"]["id"].as_str().unwrap();
        assert_eq!(reply.header("location"), format!("{ORDERS}/{id}"));
        assert_eq!(answer["topUpOrder"]["status"], "PROVISIONING");
        assert!(answer["message"].as_str().unwrap().contains("not confirmed"), "{answer}");
        assert_eq!(top_up(gateway, iccid, body).await.expect(202)["topUpOrder"]["id"], id);
        let cancel = format!("{ORDERS}/{}/cancel", order["id"].as_str().unwrap());
        let refused = gateway.send_as(&gateway.key, "POST", &cancel, None).await;
        assert_eq!(refused.problem(409), "NOT_CANCELLABLE");
        assert_eq!(refused.json()["reason"], "TOPPED_UP", "a running top-up counts");
        gateway.supplier("ok").await;
        gateway.until("the top-up is done", async || {
            gateway.pass_time(60_000);
            recover::round(&gateway.app).await.unwrap();
            let found = gateway.get(&format!("{ORDERS}/{id}")).await.expect(200);
            (found["topUpOrder"]["status"] == "FULFILLED").then_some(())
        }).await;
        assert_eq!(usage(gateway, iccid).await["totalGb"].to_string(), "2.0", "added once, though asked twice");
    }

    async fn a_refused_top_up_gives_the_money_back(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let iccid = order["iccid"].as_str().unwrap();
        usage(gateway, iccid).await;
        let balance = gateway.balance().await;
        for (mode, status, code) in [("reject", 502, "SUPPLIER_REJECTED"), ("unavailable", 503, "SUPPLIER_UNAVAILABLE")] {
            gateway.supplier(mode).await;
            let body = json!({ "packageCode": "JP-1GB-7D-TOPUP", "partnerRefId": "t" });
            assert_eq!(top_up(gateway, iccid, body).await.problem(status), code);
            assert_eq!(gateway.balance().await, balance);
        }
        gateway.supplier("ok").await;
        let shown = gateway.get(ORDERS).await.expect(200);
        let topups = &shown["orders"][0]["topUps"];
        assert_eq!(column(topups, "status"), ["FAILED", "FAILED"]);
        assert_eq!(topups[0]["failure"]["refundedUsd"].to_string(), "0.82");
        assert_eq!(shown["orders"][0]["refundable"]["eligible"], true, "a failed top-up does not stand in the way");
        top_up(gateway, iccid, json!({ "packageCode": "JP-1GB-7D-TOPUP", "partnerRefId": "t" })).await.expect(200);
    }
}
