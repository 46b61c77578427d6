//! The header `Idempotency-Key` is another name of `partnerRefId`: it holds, replays and conflicts in the same way.

use serde_json::{Value, json};

use crate::support::harness::{Gateway, Reply, both_databases, reply};
use crate::support::shapes::ORDERS;

/// Sends a purchase with these values of the header.
async fn keyed(gateway: &Gateway, path: &str, keys: &[&str], body: Value) -> Reply {
    let mut request =
        gateway.request("POST", path).header("content-type", "application/json").body(body.to_string());
    for key in keys {
        request = request.header("idempotency-key", *key);
    }
    reply(request).await
}

/// What is wrong with the header of a refused request.
#[track_caller]
fn told(refused: &Reply) -> Value {
    assert_eq!(refused.problem(400), "INVALID_REQUEST");
    let listed = refused.json()["errors"].clone();
    let about = |wrong: &&Value| wrong["field"] == "Idempotency-Key";
    listed.as_array().unwrap().iter().find(about).unwrap_or_else(|| panic!("{listed}"))["message"].clone()
}

both_databases! {
    async fn the_header_is_the_reference_of_an_order(gateway) {
        let wish = json!({ "packageCode": "JP-1GB-7D" });
        let first = keyed(gateway, ORDERS, &["booking-1"], wish.clone()).await;
        assert_eq!(first.header("idempotent-replayed"), "");
        let first = first.expect(200);
        let (id, balance) = (&first["order"]["id"], gateway.balance().await);
        assert_eq!(first["order"]["partnerRefId"], "booking-1");
        let named = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "booking-1" });
        for again in [
            keyed(gateway, ORDERS, &["booking-1"], wish.clone()).await,
            keyed(gateway, ORDERS, &["booking-1"], named.clone()).await,
            keyed(gateway, ORDERS, &[], named).await,
        ] {
            assert_eq!(again.header("idempotent-replayed"), "true");
            assert_eq!(again.expect(200)["order"]["id"], *id);
        }
        let listed = gateway.get(&format!("{ORDERS}?partnerRefId=booking-1")).await.expect(200);
        assert_eq!((&listed["total"], &listed["orders"][0]["id"]), (&json!(1), id));
        let other = keyed(gateway, ORDERS, &["booking-1"], json!({ "packageCode": "JP-3GB-30D" })).await;
        assert_eq!(other.problem(409), "IDEMPOTENCY_CONFLICT");
        let other = other.json();
        assert_eq!((&other["orderId"], &other["differs"]), (id, &json!(["packageCode"])));
        let detail = other["detail"].as_str().unwrap();
        assert!(detail.contains("partnerRefId") && detail.contains("Idempotency-Key"), "{detail}");
        assert_eq!(gateway.balance().await, balance, "one order was charged");
    }

    async fn a_top_up_takes_it_too(gateway) {
        let order = keyed(gateway, ORDERS, &["one"], json!({ "packageCode": "JP-1GB-7D" })).await.expect(200);
        let fill = format!("{ORDERS}/{}/topup", order["order"]["iccid"].as_str().unwrap());
        let wish = json!({ "packageCode": "JP-1GB-7D-TOPUP" });
        let first = keyed(gateway, &fill, &["two"], wish.clone()).await.expect(200);
        assert_eq!(first["topUpOrder"]["partnerRefId"], "two");
        let again = keyed(gateway, &fill, &["two"], wish.clone()).await;
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(again.expect(200)["topUpOrder"]["id"], first["topUpOrder"]["id"]);
        // Orders and top-ups share their references.
        assert_eq!(keyed(gateway, &fill, &["one"], wish).await.problem(409), "IDEMPOTENCY_CONFLICT");
    }

    async fn a_bad_header_buys_nothing(gateway) {
        let (wish, balance) = (json!({ "packageCode": "JP-1GB-7D" }), gateway.balance().await);
        let named = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "b" });
        let differs = "must be the same as partnerRefId, or be left out";
        let refused = "must have 1 to 128 printable ASCII characters, and be sent once";
        let long = "x".repeat(129);
        for (keys, body, message) in [
            (&["a"][..], &named, differs),
            (&["a", "a"], &wish, refused),
            (&["a", "b"], &wish, refused),
            (&["b", "b"], &named, refused),
            (&[""], &wish, refused),
            (&["caf\u{e9}"], &wish, refused),
            (&[long.as_str()], &wish, refused),
        ] {
            assert_eq!(told(&keyed(gateway, ORDERS, keys, body.clone()).await), message, "{keys:?}");
        }
        // It is named together with everything else that is wrong.
        let both = keyed(gateway, ORDERS, &[""], json!({ "maxPriceUsd": 0 })).await;
        assert_eq!((told(&both), both.json()["errors"].as_array().unwrap().len()), (json!(refused), 3));
        assert_eq!(gateway.balance().await, balance);
    }
}
