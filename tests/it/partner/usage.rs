//! Usage: the carrier's reading, its arithmetic, and the last known one when the carrier is silent.

use serde_json::{Value, json};

use simgate::wire::dates;

use crate::support::buying::MINUTE_MS;
use crate::support::database;
use crate::support::harness::{Gateway, both_databases};
use crate::support::shapes::{ORDERS, mask};

const DAY_MS: i64 = 86_400_000;

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

    async fn each_day_has_its_history(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let path = format!("{ORDERS}/{}/usage?history=days", order["iccid"].as_str().unwrap());
        let history = async || gateway.get(&path).await.expect(200)["history"].clone();
        let day = || dates::date(gateway.app.now());
        let use_up_to = async |used: f64| {
            gateway.sandbox("usage", json!({ "iccid": order["iccid"], "usedGb": used })).await;
        };
        gateway.away_from_midnight();
        let first = json!({ "day": day(), "usedGb": 0.0, "totalGb": 1.0 });
        assert_eq!(history().await, json!([first]));
        // The last reading of a day counts, up to its end.
        use_up_to(0.125).await;
        assert_eq!(usage(gateway, &order).await.expect(200).get("history"), None);
        let left = DAY_MS - gateway.app.now().micros() / 1_000 % DAY_MS;
        gateway.pass_time(left - 30 * MINUTE_MS);
        use_up_to(0.25).await;
        let first = json!({ "day": day(), "usedGb": 0.25, "totalGb": 1.0 });
        assert_eq!(history().await, json!([first]));
        gateway.pass_time(31 * MINUTE_MS);
        use_up_to(0.5).await;
        let second = json!({ "day": day(), "usedGb": 0.5, "totalGb": 1.0 });
        assert_eq!(history().await, json!([first, second]));
        // A day without a change has no line.
        gateway.pass_time(DAY_MS);
        assert_eq!(history().await, json!([first, second]));
        gateway.pass_time(DAY_MS);
        let fill = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        gateway.post(&fill, json!({ "packageCode": "JP-3GB-30D-TOPUP" })).await.expect(200);
        let filled = json!({ "day": day(), "usedGb": 0.5, "totalGb": 4.0 });
        assert_eq!(history().await, json!([first, second, filled]));
        // It is there when the carrier is not.
        gateway.supplier("unavailable").await;
        assert_eq!(history().await, json!([first, second, filled]));
        gateway.supplier("ok").await;
        // Thirteen months later it is forgotten.
        gateway.pass_time(394 * DAY_MS);
        assert_eq!(history().await, json!([second, filled]), "days are counted from today");
        gateway.pass_time(10 * DAY_MS);
        let kept = "SELECT CAST(COUNT(*) AS TEXT) FROM usage_days";
        gateway.until("the days are forgotten", async || (database::rows(&gateway.app.settings.database, kept)[0][0] == "0").then_some(())).await;
        assert_eq!(history().await, json!([]));
    }

    async fn a_history_is_asked_for_in_words(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let path = format!("{ORDERS}/{}/usage", order["iccid"].as_str().unwrap());
        for query in ["history=hours", "history=", "history=days&history=days", "history=days&limit=1", "days"] {
            assert_eq!(gateway.get(&format!("{path}?{query}")).await.problem(400), "INVALID_REQUEST", "{query}");
        }
        gateway.get(&format!("{path}?history=Days")).await.expect(200);
        let refused = gateway.get(&format!("{path}?history=hours")).await.json();
        assert_eq!(refused["errors"], json!([{ "field": "history", "message": "must be days" }]));
    }

    /// Suppliers sell an ICCID again: whoever has it now does not see what the one before used.
    async fn a_history_is_of_one_order(gateway) {
        let old = gateway.order("JP-1GB-7D").await;
        gateway.sandbox("usage", json!({ "iccid": old["iccid"], "usedGb": 0.75 })).await;
        usage(gateway, &old).await.expect(200);
        let new = gateway.order("JP-5GB-30D").await;
        let reuse = format!("UPDATE esims SET iccid = '{}' WHERE order_id = '{}'", old["iccid"].as_str().unwrap(), new["id"].as_str().unwrap());
        database::execute(&gateway.app.settings.database, &reuse).unwrap();
        let path = |name: &Value| format!("{ORDERS}/{}/usage?history=days", name.as_str().unwrap());
        let seen = gateway.get(&path(&old["iccid"])).await.expect(200)["history"].clone();
        assert_eq!(seen, json!([{ "day": dates::date(gateway.app.now()), "usedGb": 0.0, "totalGb": 5.0 }]));
        assert_eq!(gateway.get(&path(&new["id"])).await.expect(200)["history"], seen);
        gateway.get(&path(&old["id"])).await.problem(404);
        let (_, other) = gateway.partner("Other", simgate::domain::money::Usd::dollars(1)).await;
        gateway.send_as(&other, "GET", &path(&old["iccid"]), None).await.problem(404);
    }

    /// A profile does not come back by itself, but whoever plays the phone may begin again.
    async fn a_phone_can_be_played_again(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        for status in ["INSTALLED", "EXPIRED", "ACTIVE", "INSTALLED", "NEW", "DEPLETED", "NEW"] {
            gateway.sandbox("usage", json!({ "iccid": order["iccid"], "status": status })).await;
            assert_eq!(usage(gateway, &order).await.expect(200)["status"], status);
        }
    }
}
