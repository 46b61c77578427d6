//! Turns and other promises for later: one that was made by a clock that was wrong holds nobody up, and what an instance
//! waits for can be seen.

use serde_json::{Value, json};
use simgate::domain::network::Network;
use simgate::store::tx::Tx;
use simgate::store::{cursors, settlements};

use crate::support::command_line::simgate;
use crate::support::database;
use crate::support::harness::{Gateway, both_databases};

const DEPOSIT: &str = "/api/b2b/v1/balance/deposit";
const ORDERS: &str = "/api/b2b/v1/orders";
const SIX_HOURS_MS: i64 = 6 * 3_600_000;

fn change(gateway: &Gateway, sql: &str) {
    database::execute(&gateway.app.settings.database, sql).unwrap();
}

/// Gives a network to somebody else.
fn lend(gateway: &Gateway, network: &str, millis: i64) {
    let until = gateway.app.now().plus_millis(millis).micros();
    change(
        gateway,
        &format!(
            "UPDATE cursors SET holder = 'elsewhere/7 x', fence = fence + 1, held_until = {until} WHERE network = '{network}'"
        ),
    );
}

/// What the doctor says of who has the turn at a network.
fn turn_of(gateway: &Gateway, network: &str) -> (String, String) {
    let told = simgate(gateway, &["doctor", "--json"]);
    let health: Value = serde_json::from_str(&told.stdout).unwrap();
    let mut lines = health["checks"].as_array().unwrap().iter().filter(|check| check["check"] == "turn");
    let line = lines.find(|check| check["finding"].as_str().unwrap().starts_with(network)).unwrap();
    let text = |field: &str| line[field].as_str().unwrap().to_string();
    (text("health"), text("finding"))
}

both_databases! {
    async fn a_scanner_does_not_wait_for_a_turn_from_a_wrong_clock(gateway) {
        let wish = json!({ "amountUsd": 20, "currency": "USDT", "network": "POLYGON" });
        let invoice = gateway.post(DEPOSIT, wish).await.expect(200)["invoiceId"].clone();
        let path = format!("{DEPOSIT}/{}", invoice.as_str().unwrap());
        gateway.until("somebody scans", async || turn_of(gateway, "POLYGON").1.contains("scanned by instance").then_some(())).await;
        lend(gateway, "POLYGON", SIX_HOURS_MS);
        gateway.sandbox("pay", json!({ "invoiceId": invoice })).await;
        gateway
            .until("the deposit is confirmed", async || {
                (gateway.get(&path).await.expect(200)["status"] == "CONFIRMED").then_some(())
            })
            .await;
    }

    async fn who_has_a_turn_can_be_seen(gateway) {
        let (ours, host) = (format!("/{}", std::process::id()), " is scanned by instance ");
        gateway
            .until("we scan", async || {
                let (health, finding) = turn_of(gateway, "BASE");
                (health == "ok" && finding.contains(host) && finding.contains(&ours)).then_some(())
            })
            .await;
        // Nobody touches the turn while the scanner hangs.
        gateway.sandbox("job", json!({ "job": "scan BASE", "mode": "hang" })).await;
        gateway
            .until("somebody else scans", async || {
                lend(gateway, "BASE", 9_000);
                let (health, finding) = turn_of(gateway, "BASE");
                (health == "ok" && finding.contains("is scanned by instance elsewhere/7, for ")).then_some(())
            })
            .await;
        lend(gateway, "BASE", SIX_HOURS_MS);
        let (health, finding) = turn_of(gateway, "BASE");
        assert!(health == "warn" && finding.contains("held by instance elsewhere/7"), "{finding}");
        lend(gateway, "BASE", -1);
        let (health, finding) = turn_of(gateway, "BASE");
        assert!(health == "warn" && finding.contains("by nobody"), "{finding}");
        gateway.sandbox("job", json!({ "job": "scan BASE", "mode": "ok" })).await;
        gateway.until("we scan again", async || turn_of(gateway, "BASE").1.contains(&ours).then_some(())).await;
    }

    /// Both kinds of turns, moment by moment.
    async fn turns_last_as_long_as_they_should(gateway) {
        const TURN_MS: i64 = 6_000;
        gateway.until("TRON was scanned", async || turn_of(gateway, "TRON").1.contains("instance").then_some(())).await;
        gateway.sandbox("job", json!({ "job": "scan TRON", "mode": "hang" })).await;
        lend(gateway, "TRON", -1);
        let (store, start) = (&gateway.app.store, gateway.app.now());
        for settles in [false, true] {
            let took = async |holder: &'static str, millis: i64, lasts: i64| {
                let now = start.plus_millis(100_000 + millis);
                let until = now.plus_millis(lasts);
                let take = move |tx: &mut Tx| match settles {
                    true => Ok(settlements::take(tx, Network::Base, "0xkey", holder, now, until)?.is_some()),
                    false => Ok(cursors::take(tx, Network::Tron, holder, now, until)?.is_some()),
                };
                store.write(0, take).await.unwrap()
            };
            assert!(took("one", 0, TURN_MS).await);
            // Its own can always be renewed; another's lasts to its end.
            assert!(took("one", 10, TURN_MS).await);
            assert!(!took("two", 20, TURN_MS).await);
            assert!(!took("two", TURN_MS, TURN_MS).await);
            assert!(took("two", TURN_MS + 11, TURN_MS).await);
            // Two clocks that are a little apart do not take turns from each other.
            assert!(!took("one", TURN_MS + 11 - 1_500, TURN_MS).await);
            // A clock was two days ahead, and is right again.
            assert!(took("two", TURN_MS + 11, 2 * 86_400_000).await);
            assert!(took("one", TURN_MS + 12, TURN_MS).await);
        }
        gateway.sandbox("job", json!({ "job": "scan TRON", "mode": "ok" })).await;
    }

    async fn recovery_does_not_wait_for_an_asker_from_a_wrong_clock(gateway) with [("answer_within_ms", "100")] {
        gateway.supplier("timeout").await;
        let placed = gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(202);
        let later = gateway.app.now().plus_millis(SIX_HOURS_MS).micros();
        change(gateway, &format!("UPDATE orders SET ask_until = {later} WHERE status = 'PROVISIONING'"));
        gateway.supplier("ok").await;
        let path = format!("{ORDERS}/{}", placed["order"]["id"].as_str().unwrap());
        gateway
            .until("the order is delivered", async || {
                (gateway.get(&path).await.expect(200)["order"]["status"] == "FULFILLED").then_some(())
            })
            .await;
    }
}
