//! What a sandbox shows of how its simulators behave, and how it describes its helpers.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use simgate::chain::address::SANDBOX_EVM_XPUB;

use crate::support::harness::{Db, Gateway, both_databases, reply, run};
use crate::support::openapi::operations;
use crate::support::shapes::ORDERS;

const OPERATIONS: [(&str, &str, &str); 9] = [
    ("get", "/sandbox/chain", "getChains"),
    ("get", "/sandbox/outbox", "readOutbox"),
    ("get", "/sandbox/supplier", "getSupplier"),
    ("post", "/sandbox/chain", "setChain"),
    ("post", "/sandbox/events", "makeEvent"),
    ("post", "/sandbox/job", "setJob"),
    ("post", "/sandbox/pay", "payInvoice"),
    ("post", "/sandbox/supplier", "setSupplier"),
    ("post", "/sandbox/usage", "moveUsage"),
];

async fn mood(gateway: &Gateway, of: &str) -> Value {
    reply(gateway.client.get(format!("{}/sandbox/{of}", gateway.base))).await.expect(200)
}

both_databases! {
    /// Real chains are watched for tests only, and nobody is sent to a helper that does not work for them.
    async fn a_sandbox_with_a_real_chain_asks_for_test_tokens(gateway) with [("staging", "true"), ("evm_xpub", SANDBOX_EVM_XPUB), ("polygon_rpc", "http://127.0.0.1:9")] {
        for (network, part) in [("POLYGON", "test tokens only"), ("BASE", "/sandbox/pay")] {
            let body = json!({ "amountUsd": 25, "currency": "USDC", "network": network });
            let opened = gateway.post("/api/b2b/v1/balance/deposit", body).await.expect(200);
            assert_eq!(opened["sandbox"], true);
            assert!(opened["sandboxNotice"].as_str().unwrap().contains(part), "{opened}");
        }
    }

    /// Who plays with the sandbox is told of what would be passed over.
    async fn a_helper_refuses_what_it_does_not_know(gateway) {
        for (helper, body, field, message) in [
            ("pay", json!({ "invoiceId": "inv_1", "amount": 5 }), "amount", "unknown; did you mean amountUsd?"),
            ("pay", json!({ "address": "0x1" }), "amountUsd", "is required with address"),
            ("pay", json!({ "address": "0x1", "amountUsd": 5 }), "address", "must be an address of this gateway's"),
            ("pay", json!({ "address": "0x1", "invoiceId": "inv_1" }), "address", "cannot be sent with invoiceId"),
            ("pay", json!({ "amountUsd": 5 }), "invoiceId", "is required"),
            ("supplier", json!({ "mode": "slow", "delay": 5 }), "delay", "unknown; did you mean delayMs?"),
            ("usage", json!({ "iccid": "8900000000000000000", "used": 1 }), "used", "unknown; did you mean usedGb?"),
            ("chain", json!({ "network": "BASE", "depth": 1 }), "depth", "unknown; known are network, mode, behind, reorg, keep"),
            ("job", json!({ "job": "scan", "mode": "ok", "times": 2 }), "times", "unknown; known are job, mode"),
        ] {
            let refused = gateway.try_sandbox(helper, body).await;
            assert_eq!(refused.problem(400), "INVALID_REQUEST", "{helper}");
            assert_eq!(refused.json()["errors"], json!([{ "field": field, "message": message }]), "{helper}");
        }
        assert_eq!(mood(gateway, "supplier").await["mode"], "ok");
    }

    async fn the_moods_of_supplier_and_chains_are_shown(gateway) {
        assert_eq!(mood(gateway, "supplier").await, json!({ "success": true, "mode": "ok", "delayMs": 0, "count": null, "doubtRule": "repeat", "quietSeconds": 900 }));
        gateway.sandbox("supplier", json!({ "mode": "REJECT", "delayMs": 7, "count": 2 })).await;
        assert_eq!(mood(gateway, "supplier").await, json!({ "success": true, "mode": "reject", "delayMs": 7, "count": 2, "doubtRule": "repeat", "quietSeconds": 900 }));
        gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(502);
        assert_eq!(mood(gateway, "supplier").await["count"], 1, "one call was taken off");
        gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(502);
        assert_eq!(mood(gateway, "supplier").await["mode"], "ok");

        let chains = mood(gateway, "chain").await["chains"].clone();
        let networks: Vec<&str> = chains.as_array().unwrap().iter().map(|chain| chain["network"].as_str().unwrap()).collect();
        assert_eq!(networks.len(), 4);
        assert!(chains.as_array().unwrap().iter().all(|chain| chain["mode"] == "ok" && chain["head"].as_i64().unwrap() > 0));
        gateway.sandbox("chain", json!({ "network": "TRON", "mode": "lagging", "behind": 9 })).await;
        gateway.sandbox("chain", json!({ "network": "BASE", "mode": "Down" })).await;
        let chains = mood(gateway, "chain").await["chains"].clone();
        let of = |network: &str| chains.as_array().unwrap().iter().find(|chain| chain["network"] == network).unwrap().clone();
        assert_eq!((of("TRON")["mode"].clone(), of("TRON")["behind"].clone()), (json!("lagging"), json!(9)));
        assert_eq!((of("BASE")["mode"].clone(), of("POLYGON")["mode"].clone()), (json!("down"), json!("ok")));
        for network in ["TRON", "BASE"] {
            gateway.sandbox("chain", json!({ "network": network, "mode": "ok" })).await;
        }
    }
}

#[test]
fn every_helper_is_described() {
    run(Db::Sqlite, vec![], async |gateway| {
        let api = mood(gateway, "openapi.json").await;
        assert_eq!((&api["info"]["title"], &api["security"]), (&json!("simgate sandbox"), &json!([{}])));
        assert_eq!(api["servers"][0]["url"], gateway.base);
        let described = operations(&api).into_iter().map(|(method, path, operation)| {
            (method, path, operation["operationId"].as_str().unwrap().to_string())
        });
        let wanted = OPERATIONS.map(|(method, path, id)| (method.into(), path.into(), id.into()));
        assert_eq!(described.collect::<BTreeSet<_>>(), BTreeSet::from(wanted));
        for (method, path, operation) in operations(&api) {
            let at = format!("{method} {path}");
            for field in ["summary", "description"] {
                assert!(operation[field].as_str().is_some_and(|text| !text.is_empty()), "{at}: {field}");
            }
            assert!(operation["responses"]["403"].is_object(), "{at}: a foreign name is refused");
            let url = format!("{}{path}", gateway.base);
            let there = reply(gateway.client.request(method.to_uppercase().parse().unwrap(), url)).await;
            assert!(matches!(there.status, 200 | 400 | 415), "{at}: {}", there.text);
        }
    });
}
