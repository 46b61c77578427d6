//! Usage: the carrier's reading, its arithmetic, and the last known one when the carrier is silent.

use serde_json::{Value, json};

use crate::support::harness::{Gateway, both_databases};
use crate::support::shapes::{ORDERS, mask};

async fn usage(gateway: &Gateway, order: &Value) -> crate::support::harness::Reply {
    gateway.get(&format!("{ORDERS}/{}/usage", order["iccid"].as_str().unwrap())).await
}

both_databases! {
    async fn a_new_esim_has_used_nothing(gateway) {
        let order = gateway.order("JP-5GB-30D").await;
        insta::assert_json_snapshot!(mask(&usage(gateway, &order).await.expect(200)), @r#"
        {
          "asOf": "…Z",
          "expiresAt": null,
          "iccid": "89…",
          "percentUsed": 0.0,
          "remainingGb": 5.0,
          "stale": false,
          "status": "NEW",
          "success": true,
          "totalGb": 5.0,
          "usedGb": 0.0
        }
        "#);
    }

    async fn the_arithmetic_is_right_and_never_negative(gateway) {
        let order = gateway.order("JP-5GB-30D").await;
        for (used, expected) in [
            (json!(1.25), json!(["ACTIVE", 1.25, 3.75, 25.0])),
            (json!(2.5), json!(["ACTIVE", 2.5, 2.5, 50.0])),
            (json!(4.999), json!(["ACTIVE", 4.999, 0.001, 99.98])),
            (json!(5), json!(["DEPLETED", 5.0, 0.0, 100.0])),
            (json!(999), json!(["DEPLETED", 5.0, 0.0, 100.0])),
        ] {
            gateway.sandbox("usage", json!({ "iccid": order["iccid"], "usedGb": used })).await;
            let report = usage(gateway, &order).await.expect(200);
            let figures = json!([report["status"], report["usedGb"], report["remainingGb"], report["percentUsed"]]);
            assert_eq!(figures, expected, "{used}");
            assert_eq!(report["totalGb"].to_string(), "5.0");
            assert!(crate::support::shapes::is_time(report["expiresAt"].as_str().unwrap()));
        }
        let fill = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        gateway.post(&fill, json!({ "packageCode": "JP-5GB-30D-TOPUP" })).await.expect(200);
        let report = usage(gateway, &order).await.expect(200);
        assert_eq!(json!([report["status"], report["totalGb"], report["remainingGb"], report["percentUsed"]]), json!(["ACTIVE", 10.0, 5.0, 50.0]));
    }

    /// Where an ICCID stands in a path, the order's id serves as well.
    async fn an_esim_is_also_known_by_its_order(gateway) {
        let order = gateway.order("JP-5GB-30D").await;
        let (id, iccid) = (order["id"].as_str().unwrap(), &order["iccid"]);
        assert_eq!(&gateway.get(&format!("{ORDERS}/{id}/usage")).await.expect(200)["iccid"], iccid);
        let plans = gateway.get(&format!("{ORDERS}/{id}/topup-plans")).await.expect(200);
        assert_eq!(&plans["iccid"], iccid);
        let body = json!({ "packageCode": plans["plans"][0]["packageCode"], "partnerRefId": "more" });
        let first = gateway.post(&format!("{ORDERS}/{id}/topup"), body.clone()).await.expect(200);
        let again = gateway.post(&format!("{ORDERS}/{}/topup", iccid.as_str().unwrap()), body).await;
        assert_eq!(again.header("idempotent-replayed"), "true", "both name the same eSIM");
        assert_eq!(again.expect(200)["topUpOrder"]["id"], first["topUpOrder"]["id"]);
        let (_, other) = gateway.partner("Other", simgate::domain::money::Usd::dollars(1)).await;
        for path in [format!("{ORDERS}/{id}/usage"), format!("{ORDERS}/{id}/topup-plans")] {
            assert_eq!(gateway.send_as(&other, "GET", &path, None).await.problem(404), "ORDER_NOT_FOUND");
        }
        let topup = first["topUpOrder"]["id"].as_str().unwrap();
        assert_eq!(gateway.get(&format!("{ORDERS}/{topup}/usage")).await.problem(400), "INVALID_REQUEST");
    }

    /// What was given back holds nothing that could be used or expire, whoever says so.
    async fn a_cancelled_esim_has_nothing_left(gateway) {
        let order = gateway.order("JP-5GB-30D").await;
        usage(gateway, &order).await.expect(200);
        gateway.post(&format!("{ORDERS}/{}/cancel", order["id"].as_str().unwrap()), json!({})).await.expect(200);
        let figures = |report: &Value| json!([report["status"], report["totalGb"], report["usedGb"], report["remainingGb"], report["percentUsed"], report["expiresAt"]]);
        let over = json!(["CANCELLED", 0.0, 0.0, 0.0, 0.0, null]);
        gateway.supplier("unavailable").await;
        let stale = usage(gateway, &order).await.expect(200);
        assert_eq!((figures(&stale), &stale["stale"]), (over.clone(), &json!(true)));
        gateway.supplier("ok").await;
        let live = usage(gateway, &order).await.expect(200);
        assert_eq!((figures(&live), &live["stale"]), (over, &json!(false)));
    }

    async fn every_status_can_be_seen(gateway) {
        for status in ["NEW", "INSTALLED", "ACTIVE", "DEPLETED", "EXPIRED"] {
            let order = gateway.order("JP-500MB-1D").await;
            gateway.sandbox("usage", json!({ "iccid": order["iccid"], "status": status })).await;
            assert_eq!(usage(gateway, &order).await.expect(200)["status"], status);
        }
    }

    async fn a_silent_carrier_leaves_the_last_known_reading(gateway) with [("supplier_timeout_ms", "1500")] {
        let known = gateway.order("JP-5GB-30D").await;
        let unknown = gateway.order("JP-5GB-30D").await;
        gateway.sandbox("usage", json!({ "iccid": known["iccid"], "usedGb": 2 })).await;
        let live = usage(gateway, &known).await.expect(200);
        for mode in ["unavailable", "reject", "malformed", "timeout"] {
            gateway.supplier(mode).await;
            let mut expected = live.clone();
            expected["stale"] = json!(true);
            assert_eq!(usage(gateway, &known).await.expect(200), expected, "{mode}");
            let refused = usage(gateway, &unknown).await;
            assert_eq!(refused.problem(503), "SUPPLIER_UNAVAILABLE", "{mode}");
            assert!(refused.json()["detail"].as_str().unwrap().contains("nothing was charged"));
            assert!(!refused.header("retry-after").is_empty());
        }
        gateway.supplier("ok").await;
        assert_eq!(usage(gateway, &known).await.expect(200)["stale"], false);
        usage(gateway, &unknown).await.expect(200);
    }
}
