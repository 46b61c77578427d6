//! Buying an eSIM: the answer, the replay, the refusals.

use serde_json::json;

use crate::harness::both_databases;

both_databases! {
    async fn an_order_is_delivered_and_charged_once(gateway) {
        let body = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "booking-1" });
        let first = gateway.post("/api/b2b/v1/orders", body.clone()).await;
        let order = first.expect(200)["order"].clone();
        assert_eq!(order["status"], "FULFILLED");
        assert_eq!(
            order["lpaString"],
            format!("LPA:1${}${}", order["smdpAddress"].as_str().unwrap(), order["matchingId"].as_str().unwrap())
        );
        assert_eq!(first.header("idempotent-replayed"), "");
        let again = gateway.post("/api/b2b/v1/orders", body).await;
        assert_eq!(again.expect(200)["order"]["id"], order["id"]);
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(gateway.balance().await, first.json()["balanceRemainingUsd"].to_string());
        let other = json!({ "packageCode": "JP-3GB-30D", "partnerRefId": "booking-1" });
        assert_eq!(gateway.post("/api/b2b/v1/orders", other).await.problem(409), "IDEMPOTENCY_CONFLICT");
    }
}
