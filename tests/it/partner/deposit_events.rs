//! Every change of a deposit is told once, in order, with the record as it was then; and nothing else is.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::ops::operator;

use crate::support::buying::{self, DEEP};
use crate::support::database::execute;
use crate::support::deposits::{id, pay, until, until_status};
use crate::support::events::{self, EVENTS, brief, page_of};
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::{sign_in, with_token};
use crate::support::shapes::{DEPOSIT, names};

/// More blocks than any network asks for come in this time, also where tests ask for 250.
const UNTIL_FINAL_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;

async fn open(gateway: &Gateway) -> Value {
    gateway.post(DEPOSIT, json!({ "amountUsd": 25, "currency": "USDC" })).await.expect(200)
}

/// Waits for the block of every payment to become final.
async fn until_credited(gateway: &Gateway, invoice: &Value, amount: &str) -> Value {
    gateway.pass_time(UNTIL_FINAL_MS);
    let amount: serde_json::Number = amount.parse().unwrap();
    until(gateway, invoice, "it is credited", |record| record["creditedUsd"] == json!(amount)).await
}

/// All events about deposits, from the first on.
async fn told(gateway: &Gateway) -> Vec<Value> {
    let mut events = events::all(gateway).await;
    events.retain(|event| event["type"].as_str().unwrap().starts_with("deposit."));
    events
}

/// The same, when there are so many. A long transaction of another test's on the same server may hold back the newest.
async fn so_many(gateway: &Gateway, count: usize) -> Vec<Value> {
    gateway
        .until("the events are told", async || {
            let events = told(gateway).await;
            (events.len() >= count).then_some(events)
        })
        .await
}

/// Each event's type and place, and what was in the wallet then.
fn gist(events: &[Value]) -> Vec<(String, i64, String)> {
    let one = |event: &Value| {
        let kind = event["type"].as_str().unwrap().trim_start_matches("deposit.").to_string();
        (kind, event["sequence"].as_i64().unwrap(), event["data"]["creditedUsd"].to_string())
    };
    events.iter().map(one).collect()
}

fn expected(list: &[(&str, i64, &str)]) -> Vec<(String, i64, String)> {
    list.iter()
        .map(|(kind, sequence, credited)| (kind.to_string(), *sequence, credited.to_string()))
        .collect()
}

/// The parts of a record that do not grow with the chain.
fn still(record: &Value) -> Value {
    let mut still = record.clone();
    let fields = still.as_object_mut().unwrap();
    for name in ["success", "sandbox", "sandboxNotice", "confirmations"] {
        fields.remove(name);
    }
    for transaction in fields["transactions"].as_array_mut().unwrap() {
        transaction.as_object_mut().unwrap().remove("confirmations");
    }
    still
}

/// The event tells what the door shows, of the same moment or a later one in which only blocks have come.
#[track_caller]
fn check_same(event: &Value, record: &Value) {
    assert_eq!(still(&event["data"]), still(record));
    let mut shown = names(record);
    shown.retain(|name| !["success", "sandbox", "sandboxNotice"].contains(name));
    assert_eq!(names(&event["data"]), shown, "every field, and nothing about sandboxes");
    let depth = |of: &Value| of["confirmations"].as_i64().unwrap();
    assert!(depth(&event["data"]) <= depth(record), "{event} {record}");
}

both_databases! {
    async fn each_change_is_told_with_the_record_of_that_time(gateway) with [("base_confirmations", "250")] {
        let invoice = open(gateway).await;
        assert_eq!(told(gateway).await, [] as [Value; 0], "an open invoice is no news");
        pay(gateway, &invoice, "25").await;
        let seen = until_status(gateway, &invoice, "CONFIRMING").await;
        let events = so_many(gateway, 1).await;
        assert_eq!(gist(&events), expected(&[("detected", 1, "0")]));
        check_same(&events[0], &seen);
        assert!(events[0]["data"]["confirmations"].as_i64().unwrap() >= 1);
        assert_eq!(names(&events[0]), ["apiVersion", "createdAt", "data", "id", "sequence", "type"]);
        let done = until_credited(gateway, &invoice, "25").await;
        let events = so_many(gateway, 2).await;
        assert_eq!(gist(&events), expected(&[("detected", 1, "0"), ("confirmed", 2, "25")]));
        check_same(&events[1], &done);
        assert_eq!(events[1]["createdAt"], done["confirmedAt"]);
        assert!(events[1]["data"]["confirmations"].as_i64().unwrap() >= 250);
        // Looking changes nothing, and so tells nothing.
        gateway.post("/api/b2b/v1/balance/verify-deposit", json!({ "invoiceId": id(&invoice) })).await.expect(200);
        assert_eq!(told(gateway).await.len(), 2);
    }

    async fn every_credit_is_told_but_dust(gateway) {
        let invoice = open(gateway).await;
        pay(gateway, &invoice, "10").await;
        let under = until_credited(gateway, &invoice, "10").await;
        let events = so_many(gateway, 2).await;
        assert_eq!(events[1]["data"]["exception"], "UNDER");
        check_same(&events[1], &under);
        pay(gateway, &invoice, "16").await;
        let over = until_credited(gateway, &invoice, "26").await;
        let mut whole = vec![("detected", 1, "0"), ("confirmed", 2, "10"), ("confirmed", 3, "26")];
        let events = so_many(gateway, whole.len()).await;
        assert_eq!(gist(&events), expected(&whole));
        assert_eq!((&events[2]["data"]["exception"], &events[2]["data"]["amountDueUsd"]), (&json!("OVER"), &json!(0)));
        check_same(&events[2], &over);
        pay(gateway, &invoice, "0.999999").await;
        until_credited(gateway, &invoice, "26.999999").await;
        assert_eq!(gist(&told(gateway).await), expected(&whole), "dust is credited silently");
        pay(gateway, &invoice, "1").await;
        until_credited(gateway, &invoice, "27.999999").await;
        whole.push(("confirmed", 4, "27.999999"));
        assert_eq!(gist(&so_many(gateway, whole.len()).await), expected(&whole));
    }

    async fn two_transfers_at_once_are_seen_once_and_credited_each(gateway) {
        let invoice = open(gateway).await;
        pay(gateway, &invoice, "10").await;
        pay(gateway, &invoice, "15").await;
        let done = until_credited(gateway, &invoice, "25").await;
        let events = so_many(gateway, 3).await;
        assert_eq!(brief(&events), [("deposit.detected", 1), ("deposit.confirmed", 2), ("deposit.confirmed", 3)]);
        check_same(&events[2], &done);
        assert_eq!(done["transactions"].as_array().unwrap().len(), 2);
    }

    async fn dust_alone_tells_nothing_until_it_is_enough(gateway) {
        let invoice = open(gateway).await;
        pay(gateway, &invoice, "0.6").await;
        until_credited(gateway, &invoice, "0.6").await;
        assert_eq!(told(gateway).await.len(), 0);
        pay(gateway, &invoice, "0.6").await;
        let enough = until_credited(gateway, &invoice, "1.2").await;
        let events = so_many(gateway, 2).await;
        assert_eq!(gist(&events), expected(&[("detected", 1, "0.6"), ("confirmed", 2, "1.2")]));
        check_same(&events[1], &enough);
    }

    async fn a_payment_that_vanishes_is_told_when_it_comes_again(gateway) with [("base_confirmations", "250")] {
        let invoice = open(gateway).await;
        let forget = async || {
            gateway.sandbox("chain", json!({ "network": "BASE", "reorg": DEEP, "keep": false })).await;
            until_status(gateway, &invoice, "PENDING").await
        };
        pay(gateway, &invoice, "25").await;
        until_status(gateway, &invoice, "CONFIRMING").await;
        let empty = forget().await;
        assert_eq!(empty["transactions"][0]["status"], "ORPHANED");
        assert_eq!(so_many(gateway, 1).await.len(), 1, "that it vanished is no event");
        pay(gateway, &invoice, "25").await;
        let again = until_status(gateway, &invoice, "CONFIRMING").await;
        let mut whole = vec![("detected", 1, "0"), ("detected", 2, "0")];
        let events = so_many(gateway, whole.len()).await;
        assert_eq!(gist(&events), expected(&whole));
        check_same(&events[1], &again);
        assert_eq!(again["transactions"].as_array().unwrap().len(), 2);
        until_credited(gateway, &invoice, "25").await;
        // What was credited is taken back, and another payment comes.
        let taken_back = forget().await;
        assert_eq!((&taken_back["creditedUsd"], &taken_back["transactions"][1]["status"]), (&json!(0), &json!("REVERSED")));
        pay(gateway, &invoice, "30").await;
        let done = until_credited(gateway, &invoice, "30").await;
        whole.extend([("confirmed", 3, "25"), ("detected", 4, "0"), ("confirmed", 5, "30")]);
        let events = so_many(gateway, whole.len()).await;
        assert_eq!(gist(&events), expected(&whole));
        check_same(&events[4], &done);
    }

    async fn an_expired_invoice_is_told_and_so_is_its_late_payment(gateway) {
        let invoice = open(gateway).await;
        gateway.pass_time(HOUR_MS + 60_000);
        let expired = until_status(gateway, &invoice, "EXPIRED").await;
        let events = so_many(gateway, 1).await;
        assert_eq!(gist(&events), expected(&[("expired", 1, "0")]));
        check_same(&events[0], &expired);
        pay(gateway, &invoice, "25").await;
        let late = until_credited(gateway, &invoice, "25").await;
        let events = so_many(gateway, 3).await;
        assert_eq!(gist(&events), expected(&[("expired", 1, "0"), ("detected", 2, "0"), ("confirmed", 3, "25")]));
        check_same(&events[2], &late);
        assert_eq!(late["exception"], "LATE");
    }

    async fn a_late_payment_that_vanishes_expires_again(gateway) with [("base_confirmations", "250")] {
        let invoice = open(gateway).await;
        gateway.pass_time(HOUR_MS + 60_000);
        until_status(gateway, &invoice, "EXPIRED").await;
        pay(gateway, &invoice, "25").await;
        until_status(gateway, &invoice, "CONFIRMING").await;
        gateway.sandbox("chain", json!({ "network": "BASE", "reorg": DEEP, "keep": false })).await;
        let expired = until_status(gateway, &invoice, "EXPIRED").await;
        let events = so_many(gateway, 3).await;
        assert_eq!(gist(&events), expected(&[("expired", 1, "0"), ("detected", 2, "0"), ("expired", 3, "0")]));
        check_same(&events[2], &expired);
    }

    /// More than one write closes, some of them with dust.
    async fn each_of_many_that_expire_is_told(gateway) {
        const MANY: usize = 620;
        let paid = open(gateway).await;
        pay(gateway, &paid, "0.5").await;
        until_credited(gateway, &paid, "0.5").await;
        let account = operator::account(&gateway.app, &gateway.partner).await.unwrap().no.0;
        let now = gateway.app.now().micros();
        let many = format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY})
            INSERT INTO invoices (id, account, network, currency, amount, address, status, created_at, expires_at)
            SELECT 'inv_' || i, {account}, 'BASE', 'USDC', 25000000, '0x' || i, 'PENDING', {now}, {now} + 3600000000 - i FROM n");
        execute(&gateway.app.settings.database, &many).unwrap();
        gateway.pass_time(HOUR_MS + 60_000);
        let expired = until_status(gateway, &paid, "EXPIRED").await;
        let events = so_many(gateway, MANY + 1).await;
        assert_eq!(events.len(), MANY + 1);
        let subjects: BTreeSet<&str> = events.iter().map(|event| id(&event["data"])).collect();
        assert_eq!(subjects.len(), MANY + 1, "each once");
        for event in &events {
            assert_eq!((&event["type"], &event["sequence"]), (&json!("deposit.expired"), &json!(1)), "{event}");
            assert_eq!(event["data"]["status"], "EXPIRED");
        }
        check_same(events.iter().find(|event| id(&event["data"]) == id(&paid)).unwrap(), &expired);
    }

    async fn only_its_owner_is_told(gateway) {
        let invoice = open(gateway).await;
        let (_, stranger) = gateway.partner("Stranger", Usd::ZERO).await;
        pay(gateway, &invoice, "25").await;
        until_credited(gateway, &invoice, "25").await;
        let theirs = gateway.send_as(&stranger, "GET", EVENTS, None).await.expect(200);
        assert_eq!(theirs["events"], json!([]));
    }

    async fn a_checkout_is_no_deposit(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let paid = buying::open(gateway, &token).await;
        buying::settle(gateway, &paid, "COMPLETED").await;
        let left = buying::open(gateway, &token).await;
        buying::expire(gateway, &left).await;
        let events = gateway.until("the order is told", async || {
            let (events, _) = page_of(&with_token(gateway, &token, "GET", "/api/agentic/events").await);
            (!events.is_empty()).then_some(events)
        }).await;
        assert_eq!(brief(&events), [("order.fulfilled", 1)]);
    }
}
