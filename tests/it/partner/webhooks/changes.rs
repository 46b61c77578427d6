//! What a change of a webhook does to events that are on their way, and that each account has its share of what may be.

use serde_json::{Value, json};
use simgate::domain::money::Usd;

use super::{change, column, sent};
use crate::support::events::{brief, tell};
use crate::support::harness::{Gateway, both_databases};
use crate::support::receiver::{Receiver, make, subscribe, until_status, webhook};
use crate::support::shapes::ORDERS;

const PRIVATE: (&str, &str) = ("webhook_allow_private", "true");
const UNLIMITED: (&str, &str) = ("ip_rate_limit", "0");

async fn until_accepted(gateway: &Gateway, receiver: &Receiver, count: usize) -> Vec<Value> {
    let enough = async || Some(receiver.accepted()).filter(|events| events.len() >= count);
    gateway.until("events are accepted", enough).await
}

async fn until_came(gateway: &Gateway, receiver: &Receiver, count: usize) {
    gateway.until("deliveries come", async || (receiver.all().len() >= count).then_some(())).await;
}

/// Whoever delivers knows of all changes before: a new webhook has got its test.
async fn until_noticed(gateway: &Gateway) -> Receiver {
    let receiver = Receiver::start().await;
    subscribe(gateway, &receiver, &[]).await;
    receiver
}

both_databases! {
    /// Eight are on their way; the other twelve of the batch stay.
    async fn a_deleted_webhook_gets_no_more_of_a_batch(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        let (id, _) = subscribe(gateway, &receiver, &[]).await;
        until_noticed(gateway).await;
        receiver.hold();
        tell(gateway, "deposit.detected", 20).await;
        until_came(gateway, &receiver, 9).await;
        sent(gateway, "DELETE", &format!("/{id}"), None).await.expect(200);
        let other = until_noticed(gateway).await;
        receiver.release();
        tell(gateway, "deposit.detected", 1).await;
        until_accepted(gateway, &other, 1).await;
        assert_eq!(receiver.all().len(), 9, "its test and eight events");
    }

    async fn the_rest_of_a_batch_has_the_new_signature_too(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        let (id, first) = subscribe(gateway, &receiver, &[]).await;
        until_noticed(gateway).await;
        receiver.hold();
        tell(gateway, "deposit.detected", 20).await;
        until_came(gateway, &receiver, 9).await;
        let second = sent(gateway, "POST", &format!("/{id}/rotate"), None).await.expect(200)["secret"].clone();
        until_noticed(gateway).await;
        receiver.release();
        until_accepted(gateway, &receiver, 20).await;
        let all = receiver.all();
        assert!(all.iter().all(|got| got.is_signed_by(&first)));
        assert!(all[9..].iter().all(|got| got.is_signed_by(second.as_str().unwrap())));
    }

    async fn a_wider_filter_sends_nothing_of_the_past(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        let (id, _) = subscribe(gateway, &receiver, &["order.cancelled"]).await;
        gateway.order("JP-1GB-7D").await;
        change(gateway, &id, json!({ "events": ["order.fulfilled", "order.cancelled"] })).await;
        let second = gateway.order("JP-1GB-7D").await;
        let came = until_accepted(gateway, &receiver, 1).await;
        assert_eq!(came[0]["data"]["id"], second["id"]);
        assert_eq!(came.len(), 1);
    }

    /// What it wanted before and has not got yet still comes.
    async fn a_wider_filter_leaves_nothing_out(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        let (id, _) = subscribe(gateway, &receiver, &["deposit.detected"]).await;
        receiver.answers(|_| 503);
        tell(gateway, "deposit.detected", 8).await;
        gateway.until("it is left alone", async || (column(gateway, &id, "failures") >= 5).then_some(())).await;
        // These stay in the log.
        tell(gateway, "deposit.detected", 3).await;
        change(gateway, &id, json!({ "events": ["deposit.detected", "deposit.expired"] })).await;
        receiver.answers(|_| 204);
        gateway.pass_time(3_600_000);
        let came = until_accepted(gateway, &receiver, 11).await;
        let mut ids: Vec<&str> = came.iter().filter_map(|event| event["id"].as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 11);
    }

    async fn what_is_wanted_no_more_holds_nothing_back(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        let (id, _) = subscribe(gateway, &receiver, &[]).await;
        receiver.answers(|event| if event["type"] == "order.fulfilled" { 500 } else { 204 });
        let order = gateway.order("JP-1GB-7D").await;
        gateway.until("it waits", async || (webhook(gateway, &id).await["waiting"] == 1).then_some(())).await;
        assert_eq!(change(gateway, &id, json!({ "events": ["order.cancelled"] })).await["waiting"], 0);
        gateway.post(&format!("{ORDERS}/{}/cancel", order["id"].as_str().unwrap()), json!({})).await.expect(200);
        assert_eq!(brief(&until_accepted(gateway, &receiver, 1).await), [("order.cancelled", 2)]);
    }

    /// So that a look never begins far behind the end of the log.
    async fn a_webhook_moves_over_what_it_does_not_want(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        let (id, _) = subscribe(gateway, &receiver, &["order.failed"]).await;
        let begin = column(gateway, &id, "cursor");
        tell(gateway, "deposit.detected", 600).await;
        gateway.until("it moves", async || (column(gateway, &id, "cursor") > begin + 500).then_some(())).await;
        assert_eq!(receiver.accepted(), Vec::<Value>::new());
    }

    /// Its ten webhooks have ten events each to send, and 32 of these hundred may be on their way.
    async fn an_account_has_its_share_of_what_is_under_way(gateway) with [PRIVATE, UNLIMITED] {
        let (_, key) = gateway.partner("Other Travel", Usd::dollars(100)).await;
        key.until_known(&gateway.app).await;
        let (slow, quick) = (Receiver::start().await, Receiver::start().await);
        let mut ids = Vec::new();
        for _ in 0..10 {
            ids.push(make(gateway, &gateway.key, &slow, &[]).await.0);
        }
        for id in &ids {
            until_status(gateway, id, "ACTIVE").await;
        }
        make(gateway, &key, &quick, &[]).await;
        until_came(gateway, &quick, 1).await;
        slow.hold();
        tell(gateway, "deposit.detected", 10).await;
        until_came(gateway, &slow, 10 + 32).await;
        assert_eq!(slow.peak(), 32);
        for _ in 0..5 {
            gateway.send_as(&key, "POST", ORDERS, Some(json!({ "packageCode": "JP-1GB-7D" }))).await.expect(200);
        }
        until_accepted(gateway, &quick, 5).await;
        slow.release();
        until_accepted(gateway, &slow, 100).await;
    }
}
