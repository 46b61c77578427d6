//! Events on their way to webhooks: signed, in order, again when they are refused, and never at another's cost.

use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::events::{all, brief, tell};
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::mails;
use crate::support::receiver::{Receiver, WEBHOOKS, make, subscribe, until_status, webhook};
use crate::support::shapes::ORDERS;

const PRIVATE: (&str, &str) = ("webhook_allow_private", "true");
const UNLIMITED: (&str, &str) = ("ip_rate_limit", "0");
const HOUR_MS: i64 = 3_600_000;

async fn cancel(gateway: &Gateway, order: &Value) {
    gateway.post(&format!("{ORDERS}/{}/cancel", order["id"].as_str().unwrap()), json!({})).await.expect(200);
}

async fn until_accepted(gateway: &Gateway, receiver: &Receiver, count: usize) -> Vec<Value> {
    gateway
        .until("events are accepted", async || {
            Some(receiver.accepted()).filter(|events| events.len() >= count)
        })
        .await
}

/// Of one order.
fn of(events: &[Value], order: &Value) -> Vec<Value> {
    events.iter().filter(|event| event["data"]["id"] == order["id"]).cloned().collect()
}

both_databases! {
    async fn events_come_signed_and_in_order(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        let (_, secret) = subscribe(gateway, &receiver, &[]).await;
        let mut orders = Vec::new();
        for _ in 0..6 {
            orders.push(gateway.order("JP-1GB-7D").await);
        }
        for order in &orders[..3] {
            cancel(gateway, order).await;
        }
        let came = until_accepted(gateway, &receiver, 9).await;
        let mut log = all(gateway).await;
        for order in &orders[..3] {
            assert_eq!(brief(&of(&came, order)), [("order.fulfilled", 1), ("order.cancelled", 2)]);
        }
        // What comes is what the log has, to the letter, under its id.
        let mut sorted = came.clone();
        let id = |event: &Value| event["id"].as_str().unwrap().to_string();
        sorted.sort_by_key(id);
        log.sort_by_key(id);
        assert_eq!(sorted, log);
        for got in receiver.all() {
            assert!(got.is_signed_by(&secret));
            assert_eq!(got.event()["id"], got.id);
        }
    }

    async fn only_what_is_wanted_comes(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        subscribe(gateway, &receiver, &["order.cancelled"]).await;
        let order = gateway.order("JP-1GB-7D").await;
        cancel(gateway, &order).await;
        assert_eq!(brief(&until_accepted(gateway, &receiver, 1).await), [("order.cancelled", 2)]);
        assert_eq!(receiver.all().len(), 2, "and the test");
    }

    /// What happened before it accepted its test comes after it.
    async fn a_webhook_gets_nothing_before_it_has_accepted_its_test(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        receiver.answers(|_| 401);
        let (id, _) = make(gateway, &gateway.key, &receiver, &[]).await;
        gateway.until("a test", async || (!receiver.all().is_empty()).then_some(())).await;
        let order = gateway.order("JP-1GB-7D").await;
        gateway.pass_time(10_000);
        gateway.until("a second test", async || (receiver.all().len() >= 2).then_some(())).await;
        assert!(receiver.all().iter().all(|got| got.event()["type"] == "webhook.test"));
        assert_eq!(receiver.all()[0].body, receiver.all()[1].body);
        receiver.answers(|_| 200);
        gateway.pass_time(60_000);
        until_status(gateway, &id, "ACTIVE").await;
        let came = until_accepted(gateway, &receiver, 1).await;
        assert_eq!(came[0]["data"]["id"], order["id"]);
    }

    async fn what_is_refused_holds_back_its_own_order_only(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        let (id, _) = subscribe(gateway, &receiver, &[]).await;
        let held = gateway.order("JP-1GB-7D").await;
        let other = gateway.order("JP-1GB-7D").await;
        until_accepted(gateway, &receiver, 2).await;
        let key = held["id"].clone();
        receiver.answers(move |event| if event["data"]["id"] == key { 500 } else { 204 });
        cancel(gateway, &held).await;
        gateway.until("a refusal", async || receiver.all().iter().any(|got| got.status == 500).then_some(())).await;
        cancel(gateway, &other).await;
        let came = until_accepted(gateway, &receiver, 3).await;
        assert_eq!(came[2]["data"]["id"], other["id"]);
        gateway.until("it is counted", async || (webhook(gateway, &id).await["waiting"] == 1).then_some(())).await;
        assert_eq!(webhook(gateway, &id).await["status"], "ACTIVE");
        receiver.answers(|_| 204);
        gateway.pass_time(10_000);
        let came = until_accepted(gateway, &receiver, 4).await;
        assert_eq!(brief(&of(&came, &held)), [("order.fulfilled", 1), ("order.cancelled", 2)]);
        let tries: Vec<_> = receiver.all().into_iter().filter(|got| got.event()["data"]["id"] == held["id"] && got.event()["sequence"] == 2).collect();
        assert!(tries.len() >= 2 && tries.windows(2).all(|pair| pair[0].body == pair[1].body && pair[0].id == pair[1].id));
    }

    /// After a day it is set aside, and the next one of its order goes on.
    async fn an_event_that_is_refused_for_a_day_is_set_aside(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        let (id, _) = subscribe(gateway, &receiver, &[]).await;
        receiver.answers(|event| if event["type"] == "order.fulfilled" { 500 } else { 204 });
        let order = gateway.order("JP-1GB-7D").await;
        gateway.until("a refusal", async || receiver.all().iter().any(|got| got.status == 500).then_some(())).await;
        cancel(gateway, &order).await;
        gateway.until("both wait", async || (webhook(gateway, &id).await["waiting"] == 2).then_some(())).await;
        // Something is accepted now and then, so the webhook lives.
        let passed = gateway.until("it is set aside", async || {
            gateway.pass_time(HOUR_MS);
            let seen = receiver.accepted().len();
            gateway.try_sandbox("events", json!({ "type": "wallet.low_balance", "account": gateway.partner })).await.expect(200);
            gateway.until("it is accepted", async || (receiver.accepted().len() > seen).then_some(())).await;
            (webhook(gateway, &id).await["setAside"] == 1).then_some(())
        });
        passed.await;
        gateway.until("the next goes on", async || (!of(&receiver.accepted(), &order).is_empty()).then_some(())).await;
        assert_eq!(brief(&of(&receiver.accepted(), &order)), [("order.cancelled", 2)]);
        // The endpoint has it a moment before it is written down.
        gateway.until("nothing waits", async || (webhook(gateway, &id).await["waiting"] == 0).then_some(())).await;
        let standing = webhook(gateway, &id).await;
        assert_eq!((&standing["status"], &standing["setAside"]), (&json!("ACTIVE"), &json!(1)));
    }

    async fn an_endpoint_that_is_dead_for_a_day_is_disabled_and_gets_all_of_it_later(gateway) with [PRIVATE, UNLIMITED] {
        crate::support::command_line::ok(gateway, &format!("partner set {} --email ops@acme.example", gateway.partner));
        let receiver = Receiver::start().await;
        let (id, _) = subscribe(gateway, &receiver, &[]).await;
        receiver.answers(|_| 503);
        let mut orders = Vec::new();
        for _ in 0..12 {
            orders.push(gateway.order("JP-1GB-7D").await);
        }
        cancel(gateway, &orders[0]).await;
        let until_dead = gateway.until("it is disabled", async || {
            gateway.pass_time(HOUR_MS);
            (webhook(gateway, &id).await["status"] == "DISABLED").then_some(())
        });
        until_dead.await;
        // It was left alone for growing times.
        assert!(receiver.all().len() < 60, "{}", receiver.all().len());
        let mail = gateway.until("a mail", async || mails(gateway, "ops@acme.example").await.pop()).await;
        assert_eq!(mail["subject"], "A webhook was disabled");
        assert!(mail["text"].as_str().unwrap().contains(&id), "{mail}");
        gateway.order("JP-1GB-7D").await;
        receiver.answers(|_| 204);
        gateway.send_as(&gateway.key, "PATCH", &format!("{WEBHOOKS}/{id}"), Some(json!({ "status": "ACTIVE" }))).await.expect(200);
        gateway.post(&format!("{WEBHOOKS}/{id}/replay"), json!({ "since": "2020-01-01" })).await.expect(200);
        // What waited may have come before the replay began, and comes again with it.
        let mut log: Vec<Value> = all(gateway).await.iter().map(|event| event["id"].clone()).collect();
        log.sort_by_key(Value::to_string);
        let every_one = async || {
            let mut came: Vec<Value> = receiver.accepted().iter().map(|event| event["id"].clone()).collect();
            came.sort_by_key(Value::to_string);
            came.dedup();
            (came == log).then_some(())
        };
        gateway.until("all of it comes", every_one).await;
    }

    /// Many refusals at once are one outage: the endpoint is tried again after seconds.
    async fn a_short_outage_is_over_soon(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        let (id, _) = subscribe(gateway, &receiver, &[]).await;
        receiver.answers(|_| 503);
        tell(gateway, "deposit.detected", 40).await;
        gateway.until("it is left alone", async || (webhook(gateway, &id).await["waiting"] == 40).then_some(())).await;
        receiver.answers(|_| 204);
        gateway.pass_time(10_000);
        assert_eq!(until_accepted(gateway, &receiver, 40).await.len(), 40);
    }

    /// One that never answers keeps nobody waiting.
    async fn nobody_waits_for_anothers_endpoint(gateway) with [PRIVATE, UNLIMITED] {
        let (_, key) = gateway.partner("Other Travel", Usd::dollars(100)).await;
        key.until_known(&gateway.app).await;
        let (slow, quick) = (Receiver::start().await, Receiver::start().await);
        subscribe(gateway, &slow, &[]).await;
        make(gateway, &key, &quick, &[]).await;
        gateway.until("its test", async || (!quick.all().is_empty()).then_some(())).await;
        slow.answers(|_| 0);
        for _ in 0..10 {
            gateway.order("JP-1GB-7D").await;
        }
        gateway.until("the slow one is asked", async || slow.all().iter().any(|got| got.status == 0).then_some(())).await;
        for _ in 0..10 {
            gateway.send_as(&key, "POST", ORDERS, Some(json!({ "packageCode": "JP-1GB-7D" }))).await.expect(200);
        }
        assert_eq!(until_accepted(gateway, &quick, 10).await.len(), 10);
        assert_eq!(slow.accepted().len(), 0);
    }

    /// A replay sends the same events again, and nothing about the endpoint's health changes.
    async fn a_replay_sends_again_from_a_place(gateway) with [PRIVATE, UNLIMITED] {
        let receiver = Receiver::start().await;
        let (id, _) = subscribe(gateway, &receiver, &[]).await;
        for _ in 0..4 {
            gateway.order("JP-1GB-7D").await;
        }
        let came = until_accepted(gateway, &receiver, 4).await;
        let log = all(gateway).await;
        gateway.post(&format!("{WEBHOOKS}/{id}/replay"), json!({ "after": log[1]["id"] })).await.expect(200);
        let again = until_accepted(gateway, &receiver, 6).await;
        let mut repeated: Vec<&Value> = again[came.len()..].iter().map(|event| &event["id"]).collect();
        repeated.sort_by_key(|id| id.as_str());
        let mut expected = vec![&log[2]["id"], &log[3]["id"]];
        expected.sort_by_key(|id| id.as_str());
        assert_eq!(repeated, expected);
        assert_eq!(webhook(gateway, &id).await["status"], "ACTIVE");
    }
}
