//! Keys with names and ends, and a key in the place of another.

use serde_json::{Value, json};

use crate::support::command_line::{ok, simgate, split};
use crate::support::harness::{Gateway, Key, both_databases};
use crate::support::shapes::{API, ORDERS};

const DAY_MS: i64 = 86_400_000;

fn key_of(document: &Value) -> Key {
    Key {
        id: document["apiKey"].as_str().unwrap().into(),
        secret: document["apiSecret"].as_str().unwrap().into(),
    }
}

async fn status(gateway: &Gateway, key: &Key) -> u16 {
    gateway.send_as(key, "GET", &format!("{API}/balance"), None).await.status
}

async fn until(gateway: &Gateway, key: &Key, wanted: u16) {
    gateway
        .until("the gateway has seen it", async || (status(gateway, key).await == wanted).then_some(()))
        .await;
}

fn listed(gateway: &Gateway, key: &Key) -> Value {
    let keys = ok(gateway, "key list")["keys"].clone();
    keys.as_array().unwrap().iter().find(|line| line["apiKey"] == key.id.as_str()).unwrap().clone()
}

both_databases! {
    async fn a_key_ends_at_its_time(gateway) {
        let partner = &gateway.partner;
        let made = ok(gateway, &format!("key create {partner} --name website --expires 2d"));
        assert_eq!(made["name"], "website");
        let key = key_of(&made);
        until(gateway, &key, 200).await;
        let line = listed(gateway, &key);
        assert_eq!((&line["name"], &line["status"], &line["expiresAt"]), (&json!("website"), &json!("IN_USE"), &made["expiresAt"]));
        gateway.pass_time(2 * DAY_MS - 60_000);
        assert_eq!(status(gateway, &key).await, 200);
        // At that moment, without a look into the database.
        gateway.pass_time(60_000);
        assert_eq!(gateway.send_as(&key, "GET", &format!("{API}/balance"), None).await.problem(401), "UNAUTHENTICATED");
        let again = simgate(gateway, &split(&format!("key create {partner} --name website --json")));
        assert!(again.refused(1, "INVALID_REQUEST").contains(&key.id), "the clock of the command says that it is in use");
        ok(gateway, &format!("key revoke {}", key.id));
        ok(gateway, &format!("key create {partner} --name website --expires 2099-01-31"));
        for wrong in ["0d", "soon", "2020-01-01", "90"] {
            simgate(gateway, &["key", "create", partner, "--expires", wrong, "--json"]).refused(2, "INVALID_REQUEST");
        }
    }

    /// While both work they share one limit, through a second rotation too.
    async fn a_rotation_spends_one_limit(gateway) {
        gateway.away_from_midnight();
        let (partner, price) = (&gateway.partner, gateway.price("JP-1GB-7D").await);
        // Room for three, and not for four.
        let limit = price.plus(price).plus(price);
        let first = key_of(&ok(gateway, &format!("key create {partner} --daily-limit {limit}")));
        let second = key_of(&ok(gateway, &format!("key rotate {} --overlap 24h", first.id)));
        let third = key_of(&ok(gateway, &format!("key rotate {} --overlap 24h", second.id)));
        for key in [&first, &second, &third] {
            until(gateway, key, 200).await;
        }
        // The keys in memory know who stands in for whom as soon as the newest is known.
        let buy = async |key: &Key| gateway.send_as(key, "POST", ORDERS, Some(json!({ "packageCode": "JP-1GB-7D" }))).await;
        for key in [&first, &second, &third] {
            buy(key).await.expect(200);
        }
        for key in [&first, &second, &third] {
            assert_eq!(buy(key).await.problem(403), "LIMIT_EXCEEDED");
        }
        // A second word of the same changes and logs nothing.
        ok(gateway, &format!("key revoke {}", first.id));
        ok(gateway, &format!("key revoke {}", first.id));
        let deeds = ok(gateway, "audit list --command 'key revoke'");
        assert_eq!(deeds["deeds"].as_array().unwrap().len(), 1, "{deeds}");
        let some = ok(gateway, "audit list --limit 1");
        assert_eq!((some["deeds"].as_array().unwrap().len(), &some["more"]), (1, &json!(true)));
    }

    async fn a_key_is_rotated_with_its_rights(gateway) {
        let partner = &gateway.partner;
        let old = key_of(&ok(gateway, &format!("key create {partner} --name shop --daily-limit 1 --ips 127.0.0.1 --expires 10d")));
        let body = json!({ "packageCode": "JP-1GB-7D" });
        gateway.send_as(&old, "POST", ORDERS, Some(body.clone())).await.expect(200);
        let rotated = ok(gateway, &format!("key rotate {} --overlap 24h", old.id));
        assert_eq!((&rotated["replaces"], &rotated["name"], &rotated["dailyLimitUsd"]), (&json!(old.id), &json!("shop"), &json!(1)));
        assert_eq!(rotated["ips"], json!(["127.0.0.1/32"]));
        assert!(rotated["expiresAt"].is_string(), "it lives as long as the old one was made to live");
        let new = key_of(&rotated);
        until(gateway, &new, 200).await;
        assert_eq!(status(gateway, &old).await, 200, "both work during the overlap");
        let spent = gateway.send_as(&new, "POST", ORDERS, Some(body)).await;
        assert_eq!(spent.problem(403), "LIMIT_EXCEEDED", "what the old key spent today counts");
        let line = listed(gateway, &old);
        assert_eq!((&line["replacedBy"], &line["expiresAt"]), (&json!(new.id), &rotated["oldKeyEndsAt"]));
        let twice = simgate(gateway, &["key", "rotate", &old.id, "--json"]).refused(1, "INVALID_REQUEST");
        assert!(twice.contains(&new.id), "pasted twice: {twice}");
        gateway.until("the end has arrived in memory", async || {
            let keys = simgate::ops::operator::list_keys(&gateway.app, None).await.unwrap();
            keys.iter().any(|key| key.replaced_by.is_some()).then_some(())
        }).await;
        gateway.pass_time(DAY_MS + 1_000);
        until(gateway, &old, 401).await;
        assert_eq!(status(gateway, &new).await, 200);

        // Without an overlap the old one ends within a second.
        let last = key_of(&ok(gateway, &format!("key rotate {} --overlap 0m", new.id)));
        until(gateway, &last, 200).await;
        until(gateway, &new, 401).await;
        simgate(gateway, &["key", "rotate", "key_none", "--json"]).refused(1, "NOT_FOUND");
        ok(gateway, &format!("key revoke {}", last.id));
        simgate(gateway, &["key", "rotate", &last.id, "--json"]).refused(1, "INVALID_REQUEST");
    }
}
