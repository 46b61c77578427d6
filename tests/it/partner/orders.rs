//! Buying an eSIM and giving it back: every state, every refusal, and what the answers look like.

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::ops::{operator, recover};

use crate::support::harness::{Gateway, both_databases};
use crate::support::shapes::{ORDERS, mask, money};

/// Orders one of these, which must be delivered, and answers it.
async fn buy(gateway: &Gateway, reference: &str) -> Value {
    gateway.delivered(json!({ "packageCode": "JP-1GB-7D", "partnerRefId": reference })).await
}

async fn show(gateway: &Gateway, order: &Value) -> Value {
    gateway.get(&format!("{ORDERS}/{}", order["id"].as_str().unwrap())).await.expect(200)["order"].clone()
}

async fn cancel(gateway: &Gateway, order: &Value) -> crate::support::harness::Reply {
    gateway
        .send_as(&gateway.key, "POST", &format!("{ORDERS}/{}/cancel", order["id"].as_str().unwrap()), None)
        .await
}

/// Lets recovery finish what is open.
async fn recovered(gateway: &Gateway, order: &Value, wanted: &str) -> Value {
    let wait = async || {
        gateway.pass_time(60_000);
        recover::round(&gateway.app).await.unwrap();
        Some(show(gateway, order).await).filter(|order| order["status"] == wanted)
    };
    gateway.until(wanted, wait).await
}

both_databases! {
    async fn an_order_is_delivered_and_charged_once(gateway) {
        let body = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "booking-1" });
        let first = gateway.post(ORDERS, body.clone()).await;
        let answer = first.expect(200);
        money(&first.text);
        assert_eq!(first.header("content-type"), "application/json");
        assert_eq!(first.header("cache-control"), "no-store");
        assert_eq!(first.header("idempotent-replayed"), "");
        insta::assert_json_snapshot!(mask(&answer), @r#"
        {
          "balanceRemainingUsd": 999.18,
          "order": {
            "chargedUsd": 0.82,
            "createdAt": "…Z",
            "iccid": "89…",
            "id": "ord_…",
            "installUrl": "http://…/esim/…",
            "lpaString": "LPA:1$smdp.sim.example$SIM-…",
            "matchingId": "SIM-…",
            "orderNo": "SG…",
            "packageCode": "JP-1GB-7D",
            "partnerRefId": "booking-1",
            "planName": "Japan 1 GB 7 days",
            "qrCodeUrl": "http://…/qr/….svg",
            "refundable": {
              "eligible": true,
              "reason": null,
              "until": "…Z"
            },
            "smdpAddress": "smdp.sim.example",
            "status": "FULFILLED",
            "topUps": []
          },
          "success": true
        }
        "#);
        let order = &answer["order"];
        let (smdp, matching) = (order["smdpAddress"].as_str().unwrap(), order["matchingId"].as_str().unwrap());
        assert_eq!(order["lpaString"], format!("LPA:1${smdp}${matching}"));
        assert_eq!(&show(gateway, order).await, order);

        let again = gateway.post(ORDERS, body).await;
        assert_eq!(&again.expect(200)["order"], order);
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(gateway.balance().await, "999.18");
        let other = json!({ "packageCode": "JP-3GB-30D", "partnerRefId": "booking-1" });
        assert_eq!(gateway.post(ORDERS, other).await.problem(409), "IDEMPOTENCY_CONFLICT");
        let fill = json!({ "packageCode": "JP-1GB-7D-TOPUP", "partnerRefId": "booking-1" });
        let path = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        assert_eq!(gateway.post(&path, fill).await.problem(409), "IDEMPOTENCY_CONFLICT");
        // Without a reference every call is a new order.
        assert_ne!(gateway.order("JP-1GB-7D").await["id"], gateway.order("JP-1GB-7D").await["id"]);
    }

    /// The balance of a replay is the balance now, not then.
    async fn a_replay_tells_how_things_stand_now(gateway) {
        let order = buy(gateway, "r1").await;
        gateway.order("JP-5GB-30D").await;
        let body = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "r1" });
        let replay = gateway.post(ORDERS, body.clone()).await;
        assert_eq!(replay.expect(200)["balanceRemainingUsd"].to_string(), "995.48");
        cancel(gateway, &order).await.expect(200);
        let replay = gateway.post(ORDERS, body).await;
        assert_eq!(replay.expect(200)["order"]["status"], "CANCELLED", "a cancelled order keeps its reference");
        assert_eq!(replay.header("idempotent-replayed"), "true");
    }

    async fn a_silent_supplier_leaves_the_order_provisioning(gateway)
        with [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")]
    {
        gateway.supplier("timeout").await;
        let body = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "slow" });
        let reply = gateway.post(ORDERS, body.clone()).await;
        let answer = reply.expect(202);
        let order = answer["order"].clone();
        assert_eq!(reply.header("location"), format!("{ORDERS}/{}", order["id"].as_str().unwrap()));
        assert!(reply.header("retry-after").parse::<u32>().unwrap() >= 1);
        insta::assert_json_snapshot!(mask(&answer), @r#"
        {
          "balanceRemainingUsd": 999.18,
          "order": {
            "chargedUsd": 0.82,
            "createdAt": "…Z",
            "iccid": null,
            "id": "ord_…",
            "installUrl": "http://…/esim/…",
            "lpaString": null,
            "matchingId": null,
            "orderNo": "SG…",
            "packageCode": "JP-1GB-7D",
            "partnerRefId": "slow",
            "planName": "Japan 1 GB 7 days",
            "qrCodeUrl": "http://…/qr/….svg",
            "refundable": {
              "eligible": false,
              "reason": "PROVISIONING",
              "until": null
            },
            "smdpAddress": null,
            "status": "PROVISIONING",
            "topUps": []
          },
          "success": true
        }
        "#);
        assert_eq!(show(gateway, &order).await, order);
        assert_eq!(gateway.get("/api/b2b/v1/balance").await.expect(200)["heldUsd"].to_string(), "0.82");
        let replay = gateway.post(ORDERS, body.clone()).await;
        assert_eq!(replay.expect(202)["order"]["id"], order["id"]);
        assert_eq!(replay.header("idempotent-replayed"), "true");
        let refused = cancel(gateway, &order).await;
        assert_eq!(refused.problem(409), "NOT_CANCELLABLE");
        assert_eq!(refused.json()["reason"], "PROVISIONING");
        assert_eq!(gateway.get(ORDERS).await.expect(200)["total"], 0);

        gateway.supplier("ok").await;
        let done = recovered(gateway, &order, "FULFILLED").await;
        assert_eq!((&done["qrCodeUrl"], &done["installUrl"]), (&order["qrCodeUrl"], &order["installUrl"]));
        assert_eq!(gateway.post(ORDERS, body).await.expect(200)["order"], done);
        assert_eq!(gateway.get("/api/b2b/v1/balance").await.expect(200)["heldUsd"].to_string(), "0");
    }

    async fn a_refusing_supplier_costs_nothing(gateway) {
        for (mode, status, code) in [("reject", 502, "SUPPLIER_REJECTED"), ("unavailable", 503, "SUPPLIER_UNAVAILABLE")] {
            gateway.supplier(mode).await;
            let body = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": mode });
            let refused = gateway.post(ORDERS, body).await;
            assert_eq!(refused.problem(status), code);
            assert!(refused.json()["detail"].as_str().unwrap().contains("0.82 USD"), "{}", refused.text);
            assert!(refused.json()["detail"].as_str().unwrap().contains("back in the wallet"), "{}", refused.text);
            assert_eq!(refused.header("retry-after").is_empty(), status != 503);
            assert_eq!(gateway.balance().await, "1000");

            let listed = gateway.get(&format!("{ORDERS}?partnerRefId={mode}")).await.expect(200);
            let order = &listed["orders"][0];
            assert_eq!(order["status"], "FAILED");
            assert_eq!(order["failure"]["code"], code);
            assert_eq!(order["failure"]["refundedUsd"].to_string(), "0.82");
            assert!(!order["failure"]["detail"].as_str().unwrap().is_empty());
            assert_eq!((&order["iccid"], &order["lpaString"]), (&Value::Null, &Value::Null));
            assert_eq!(&show(gateway, order).await, order);

            // The reference of a failed order is free again, for any package.
            gateway.supplier("ok").await;
            let body = json!({ "packageCode": "JP-3GB-30D", "partnerRefId": mode });
            let again = gateway.post(ORDERS, body).await;
            assert_eq!(again.expect(200)["order"]["status"], "FULFILLED");
            assert_eq!(again.header("idempotent-replayed"), "");
            let listed = gateway.get(&format!("{ORDERS}?partnerRefId={mode}")).await.expect(200);
            assert_eq!(crate::support::shapes::column(&listed["orders"], "status"), ["FULFILLED", "FAILED"]);
            cancel(gateway, &listed["orders"][0]).await.expect(200);
        }
    }

    async fn what_cannot_be_bought_is_refused_and_leaves_no_claim(gateway) {
        let (_, poor) = gateway.partner("Poor Travel", Usd::parse("0.5").unwrap()).await;
        for (body, status, code) in [
            (json!({ "packageCode": "NO-SUCH-PLAN" }), 404, "PLAN_NOT_FOUND"),
            (json!({ "packageCode": "JP-1GB-7" }), 404, "PLAN_NOT_FOUND"),
            (json!({ "packageCode": "JP-1GB-7D-TOPUP" }), 422, "WRONG_PLAN_TYPE"),
            (json!({ "packageCode": "JP-1GB-7D", "maxPriceUsd": 0.819999 }), 409, "PRICE_CHANGED"),
            (json!({ "packageCode": "JP-1GB-7D" }), 402, "INSUFFICIENT_BALANCE"),
        ] {
            let mut body = body;
            body["partnerRefId"] = json!("tried");
            let refused = gateway.send_as(&poor, "POST", ORDERS, Some(body)).await;
            assert_eq!(refused.problem(status), code);
            let problem = refused.json();
            match code {
                "INSUFFICIENT_BALANCE" => {
                    money(&refused.text);
                    let amounts = ["balanceUsd", "requiredUsd", "shortfallUsd"].map(|name| problem[name].to_string());
                    assert_eq!(amounts, ["0.5", "0.82", "0.32"]);
                }
                "PRICE_CHANGED" => assert_eq!(problem["priceUsd"].to_string(), "0.82"),
                _ => assert_eq!(problem.as_object().unwrap().len(), 8, "{problem}"),
            }
        }
        let body = json!({ "packageCode": "JP-500MB-1D", "partnerRefId": "tried", "maxPriceUsd": 0.38 });
        let placed = gateway.send_as(&poor, "POST", ORDERS, Some(body.clone())).await;
        assert_eq!(placed.expect(200)["balanceRemainingUsd"].to_string(), "0.12");
        // The limit on the price is not part of the comparison.
        for max in [json!(null), json!(0.01), json!(25)] {
            let mut body = body.clone();
            body["maxPriceUsd"] = max;
            let replay = gateway.send_as(&poor, "POST", ORDERS, Some(body)).await;
            assert_eq!(replay.expect(200)["order"]["id"], placed.json()["order"]["id"]);
        }
    }

    async fn a_suspended_partner_reads_and_replays_but_does_not_buy(gateway) {
        let order = buy(gateway, "before").await;
        operator::set_suspended(&gateway.app, "test", &gateway.partner, true).await.unwrap();
        let body = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "after" });
        assert_eq!(gateway.post(ORDERS, body.clone()).await.problem(403), "ACCOUNT_SUSPENDED");
        let topup = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        let bundle = json!({ "packageCode": "JP-1GB-7D-TOPUP" });
        assert_eq!(gateway.post(&topup, bundle).await.problem(403), "ACCOUNT_SUSPENDED");
        assert_eq!(buy(gateway, "before").await, order);
        for path in ["/balance", "/balance/transactions", "/plans?country=JP", "/orders"] {
            gateway.get(&format!("/api/b2b/v1{path}")).await.expect(200);
        }
        assert_eq!(gateway.get("/api/b2b/v1/balance").await.expect(200)["status"], "SUSPENDED");
        assert_eq!(show(gateway, &order).await, order);
        operator::set_suspended(&gateway.app, "test", &gateway.partner, false).await.unwrap();
        gateway.post(ORDERS, body).await.expect(200);
    }

    async fn what_belongs_to_another_is_not_found(gateway) {
        let order = buy(gateway, "mine").await;
        let iccid = order["iccid"].as_str().unwrap();
        let topup = gateway.post(&format!("{ORDERS}/{iccid}/topup"), json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await;
        let topup = topup.expect(200)["topUpOrder"]["id"].as_str().unwrap().to_string();
        let (_, stranger) = gateway.partner("Stranger", Usd::dollars(10)).await;
        let id = order["id"].as_str().unwrap();
        let bundle = json!({ "packageCode": "JP-1GB-7D-TOPUP" });
        for (method, path, body, code) in [
            ("GET", format!("/{id}"), None, "ORDER_NOT_FOUND"),
            ("GET", format!("/{topup}"), None, "ORDER_NOT_FOUND"),
            ("POST", format!("/{id}/cancel"), None, "ORDER_NOT_FOUND"),
            ("GET", format!("/{iccid}/usage"), None, "ESIM_NOT_FOUND"),
            ("GET", format!("/{iccid}/topup-plans"), None, "ESIM_NOT_FOUND"),
            ("POST", format!("/{iccid}/topup"), Some(bundle), "ESIM_NOT_FOUND"),
        ] {
            let reply = gateway.send_as(&stranger, method, &format!("{ORDERS}{path}"), body).await;
            assert_eq!(reply.problem(404), code, "{method} {path}");
        }
        for query in ["", "?partnerRefId=mine", &format!("?iccid={iccid}"), "?status=FULFILLED"] {
            let listed = gateway.send_as(&stranger, "GET", &format!("{ORDERS}{query}"), None).await.expect(200);
            assert_eq!((&listed["total"], &listed["orders"]), (&json!(0), &json!([])), "{query}");
        }
        // One partner's references are nothing to another.
        let body = json!({ "packageCode": "JP-3GB-30D", "partnerRefId": "mine" });
        gateway.send_as(&stranger, "POST", ORDERS, Some(body)).await.expect(200);
    }

    async fn a_cancel_gives_everything_back(gateway) {
        let order = buy(gateway, "c").await;
        let reply = cancel(gateway, &order).await;
        money(&reply.text);
        insta::assert_json_snapshot!(mask(&reply.expect(200)), @r#"
        {
          "balanceRemainingUsd": 1000,
          "order": {
            "chargedUsd": 0.82,
            "createdAt": "…Z",
            "iccid": "89…",
            "id": "ord_…",
            "installUrl": "http://…/esim/…",
            "lpaString": null,
            "matchingId": null,
            "orderNo": "SG…",
            "packageCode": "JP-1GB-7D",
            "partnerRefId": "c",
            "planName": "Japan 1 GB 7 days",
            "qrCodeUrl": "http://…/qr/….svg",
            "refundable": {
              "eligible": false,
              "reason": "ALREADY_CANCELLED",
              "until": null
            },
            "smdpAddress": null,
            "status": "CANCELLED",
            "topUps": []
          },
          "refundedUsd": 0.82,
          "success": true
        }
        "#);
        let again = cancel(gateway, &order).await;
        assert_eq!((again.problem(409).as_str(), &again.json()["reason"]), ("NOT_CANCELLABLE", &json!("ALREADY_CANCELLED")));
        let iccid = order["iccid"].as_str().unwrap();
        assert_eq!(gateway.get(&format!("{ORDERS}/{iccid}/topup-plans")).await.problem(409), "ESIM_NOT_ACTIVE");
        assert_eq!(gateway.get(&format!("{ORDERS}/{iccid}/usage")).await.expect(200)["status"], "CANCELLED");
    }

    async fn the_supplier_decides_about_a_cancel(gateway) {
        for (moved, reason) in [
            (json!({ "status": "INSTALLED" }), "DOWNLOADED"),
            (json!({ "usedGb": 0.1 }), "USED"),
            (json!({ "status": "DEPLETED" }), "USED"),
            (json!({ "status": "EXPIRED" }), "EXPIRED"),
        ] {
            let order = gateway.order("JP-1GB-7D").await;
            let balance = gateway.balance().await;
            let mut body = moved;
            body["iccid"] = order["iccid"].clone();
            gateway.sandbox("usage", body).await;
            let refused = cancel(gateway, &order).await;
            assert_eq!(refused.problem(409), "NOT_CANCELLABLE");
            assert_eq!(refused.json()["reason"], reason);
            assert_eq!(show(gateway, &order).await["status"], "FULFILLED");
            assert_eq!(gateway.balance().await, balance);
            // Once the reading is known, the order itself says so.
            gateway.get(&format!("{ORDERS}/{}/usage", order["iccid"].as_str().unwrap())).await.expect(200);
            assert_eq!(show(gateway, &order).await["refundable"], json!({ "eligible": false, "reason": reason, "until": null }));
        }
        let order = gateway.order("JP-1GB-7D").await;
        let path = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        gateway.post(&path, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await.expect(200);
        assert_eq!(cancel(gateway, &order).await.json()["reason"], "TOPPED_UP");
        assert_eq!(show(gateway, &order).await["refundable"]["reason"], "TOPPED_UP");
        let order = gateway.order("JP-1GB-7D").await;
        gateway.supplier("reject").await;
        assert_eq!(cancel(gateway, &order).await.json()["reason"], "SUPPLIER_CANNOT_CANCEL");
        assert_eq!(show(gateway, &order).await["status"], "FULFILLED");
    }

    async fn an_unanswered_cancel_goes_on_in_the_background(gateway)
        with [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")]
    {
        let order = buy(gateway, "c").await;
        gateway.supplier("timeout").await;
        let reply = cancel(gateway, &order).await;
        let answer = reply.expect(202);
        assert_eq!(reply.header("location"), format!("{ORDERS}/{}", order["id"].as_str().unwrap()));
        assert_eq!(answer["order"]["status"], "CANCELLING");
        assert_eq!(answer["order"]["lpaString"], Value::Null, "withheld from the first write on");
        assert_eq!((answer["refundedUsd"].to_string(), answer["balanceRemainingUsd"].to_string()), ("0".into(), "999.18".into()));
        assert_eq!(cancel(gateway, &order).await.json()["reason"], "ALREADY_CANCELLED");
        let path = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        let refused = gateway.post(&path, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await;
        assert_eq!(refused.problem(409), "ESIM_NOT_ACTIVE");
        gateway.supplier("ok").await;
        recovered(gateway, &order, "CANCELLED").await;
        assert_eq!(gateway.balance().await, "1000");
    }

    /// Ids are not checked for form: what does not exist is simply not there.
    async fn ids_of_any_shape_are_not_found(gateway) {
        for id in ["ord_0", "ord_", "top_x", "ptn_1", "x", "ORD_1", "8912345678901234567", "ord_'--", "%00", "%F0%9F%98%80"] {
            assert_eq!(gateway.get(&format!("{ORDERS}/{id}")).await.problem(404), "ORDER_NOT_FOUND", "{id}");
            let path = format!("{ORDERS}/{id}/cancel");
            assert_eq!(gateway.send_as(&gateway.key, "POST", &path, None).await.problem(404), "ORDER_NOT_FOUND", "{id}");
        }
        let order = gateway.order("JP-1GB-7D").await;
        let path = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        let topup = gateway.post(&path, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await.expect(200);
        let cancel = format!("{ORDERS}/{}/cancel", topup["topUpOrder"]["id"].as_str().unwrap());
        assert_eq!(gateway.send_as(&gateway.key, "POST", &cancel, None).await.problem(404), "ORDER_NOT_FOUND");
    }
}
