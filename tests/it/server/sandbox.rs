//! What a sandbox shows of how its simulators behave.

use serde_json::{Value, json};

use crate::support::harness::{Gateway, both_databases, reply};
use crate::support::shapes::ORDERS;

async fn mood(gateway: &Gateway, of: &str) -> Value {
    reply(gateway.client.get(format!("{}/sandbox/{of}", gateway.base))).await.expect(200)
}

both_databases! {
    async fn the_moods_of_supplier_and_chains_are_shown(gateway) {
        assert_eq!(mood(gateway, "supplier").await, json!({ "success": true, "mode": "ok", "delayMs": 0, "count": null }));
        gateway.sandbox("supplier", json!({ "mode": "reject", "delayMs": 7, "count": 2 })).await;
        assert_eq!(mood(gateway, "supplier").await, json!({ "success": true, "mode": "reject", "delayMs": 7, "count": 2 }));
        gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(502);
        assert_eq!(mood(gateway, "supplier").await["count"], 1, "one call was taken off");
        gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(502);
        assert_eq!(mood(gateway, "supplier").await["mode"], "ok");

        let chains = mood(gateway, "chain").await["chains"].clone();
        let networks: Vec<&str> = chains.as_array().unwrap().iter().map(|chain| chain["network"].as_str().unwrap()).collect();
        assert_eq!(networks.len(), 4);
        assert!(chains.as_array().unwrap().iter().all(|chain| chain["mode"] == "ok" && chain["head"].as_i64().unwrap() > 0));
        gateway.sandbox("chain", json!({ "network": "TRON", "mode": "lagging", "behind": 9 })).await;
        gateway.sandbox("chain", json!({ "network": "BASE", "mode": "down" })).await;
        let chains = mood(gateway, "chain").await["chains"].clone();
        let of = |network: &str| chains.as_array().unwrap().iter().find(|chain| chain["network"] == network).unwrap().clone();
        assert_eq!((of("TRON")["mode"].clone(), of("TRON")["behind"].clone()), (json!("lagging"), json!(9)));
        assert_eq!((of("BASE")["mode"].clone(), of("POLYGON")["mode"].clone()), (json!("down"), json!("ok")));
        for network in ["TRON", "BASE"] {
            gateway.sandbox("chain", json!({ "network": network, "mode": "ok" })).await;
        }
    }
}
