//! The event log: what happened, in order, with the object as it was then.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::ops::{recover, retention};

use crate::support::buying::{open, settle};
use crate::support::database::execute;
use crate::support::events::{EVENTS, all, brief, page_of, read_on};
use crate::support::harness::{Gateway, both_databases, reply};
use crate::support::logins::{sign_in, with_token};
use crate::support::shapes::{ORDERS, mask, names};

/// An order as events show it: without what opens its eSIM.
fn without_codes(mut order: Value) -> Value {
    for name in ["smdpAddress", "matchingId", "lpaString", "qrCodeUrl", "installUrl"] {
        order.as_object_mut().unwrap().remove(name).unwrap();
    }
    order
}

async fn order_now(gateway: &Gateway, id: &Value) -> Value {
    gateway.get(&format!("{ORDERS}/{}", id.as_str().unwrap())).await.expect(200)["order"].clone()
}

async fn cancel(gateway: &Gateway, order: &Value) {
    let path = format!("{ORDERS}/{}/cancel", order["id"].as_str().unwrap());
    gateway.post(&path, json!({})).await.expect(200);
}

both_databases! {
    async fn an_order_tells_what_becomes_of_it(gateway) {
        let (none, start) = read_on(gateway, "").await;
        assert_eq!(none, Vec::<Value>::new());
        let order = gateway.delivered(json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "trip" })).await;
        let (events, _) = read_on(gateway, "").await;
        assert_eq!(brief(&events), [("order.fulfilled", 1)]);
        let event = &events[0];
        assert_eq!(names(event), ["apiVersion", "createdAt", "data", "id", "sequence", "type"]);
        assert_eq!(event["apiVersion"], "1.0.0");
        assert_eq!(event["data"], without_codes(order_now(gateway, &order["id"]).await));
        insta::assert_json_snapshot!(mask(&event["data"]), @r#"
        {
          "chargedUsd": 0.82,
          "createdAt": "…Z",
          "iccid": "89…",
          "id": "ord_…",
          "orderNo": "SG…",
          "packageCode": "JP-1GB-7D",
          "partnerRefId": "trip",
          "planName": "Japan 1 GB 7 days",
          "refundable": {
            "eligible": true,
            "reason": null,
            "until": "…Z"
          },
          "status": "FULFILLED",
          "topUps": []
        }
        "#);

        cancel(gateway, &order).await;
        let (events, end) = read_on(gateway, &format!("after={start}")).await;
        assert_eq!(brief(&events), [("order.fulfilled", 1), ("order.cancelled", 2)]);
        assert_eq!(&events[0], event, "it stays what it was");
        assert_eq!(events[1]["data"], without_codes(order_now(gateway, &order["id"]).await));
        assert_eq!(events[1]["data"]["status"], "CANCELLED");

        // An event's id is a place to go on from, and so is the end.
        let (later, _) = read_on(gateway, &format!("after={}", event["id"].as_str().unwrap())).await;
        assert_eq!(later, [events[1].clone()]);
        assert_eq!(read_on(gateway, &format!("after={end}")).await.0, Vec::<Value>::new());
    }

    async fn a_failure_tells_why_and_what_came_back(gateway) {
        gateway.supplier("reject").await;
        gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.problem(502);
        let events = all(gateway).await;
        assert_eq!(brief(&events), [("order.failed", 1)]);
        let data = &events[0]["data"];
        assert_eq!((&data["status"], &data["iccid"]), (&json!("FAILED"), &Value::Null));
        assert_eq!(data["failure"]["code"], "SUPPLIER_REJECTED");
        assert_eq!(data["failure"]["refundedUsd"], data["chargedUsd"]);
        assert_eq!(*data, without_codes(order_now(gateway, &data["id"]).await));
    }

    async fn a_top_up_has_events_of_its_own(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let path = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
        let body = json!({ "packageCode": "JP-3GB-30D-TOPUP" });
        let done = gateway.post(&path, body.clone()).await.expect(200);
        gateway.supplier("reject").await;
        gateway.post(&path, body).await.problem(502);
        let events = all(gateway).await;
        assert_eq!(brief(&events), [("order.fulfilled", 1), ("topup.completed", 1), ("topup.failed", 1)]);
        assert_eq!(events[1]["data"], done["topUpOrder"]);
        assert_eq!((&events[2]["data"]["status"], &events[2]["data"]["failure"]["code"]), (&json!("FAILED"), &json!("SUPPLIER_REJECTED")));
    }

    /// A slow order is told of when recovery has brought it to its end.
    async fn an_order_that_was_in_doubt_is_told_of_when_it_ends(gateway) with [("answer_within_ms", "300"), ("supplier_timeout_ms", "1000")] {
        gateway.supplier("timeout").await;
        let order = gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(202)["order"].clone();
        assert_eq!(all(gateway).await, Vec::<Value>::new());
        gateway.supplier("ok").await;
        gateway.pass_time(60_000);
        let events = gateway.until("an event", async || {
            let _ = recover::round(&gateway.app).await;
            Some(all(gateway).await).filter(|events| !events.is_empty())
        }).await;
        assert_eq!(brief(&events), [("order.fulfilled", 1)]);
        assert_eq!(events[0]["data"]["id"], order["id"]);
        assert_eq!(events[0]["data"]["status"], "FULFILLED");
    }

    async fn pages_and_filters(gateway) {
        let mut ids = Vec::new();
        for n in 0..5 {
            let order = gateway.order("JP-1GB-7D").await;
            if n % 2 == 0 {
                cancel(gateway, &order).await;
            }
            ids.push(order["id"].clone());
        }
        let whole = all(gateway).await;
        assert_eq!(whole.len(), 8);
        let (mut read, mut query) = (Vec::new(), "limit=3".to_string());
        for has_more in [true, true, false] {
            let page = gateway.get(&format!("{EVENTS}?{query}")).await.expect(200);
            assert_eq!(page["hasMore"], has_more);
            read.extend(page["events"].as_array().unwrap().clone());
            query = format!("limit=3&after={}", page["nextAfter"].as_str().unwrap());
        }
        assert_eq!(read, whole);
        let (cancelled, _) = read_on(gateway, "types=order.cancelled").await;
        assert_eq!(cancelled.len(), 3);
        assert!(cancelled.iter().all(|event| event["type"] == "order.cancelled"));
        let (some, end) = read_on(gateway, "types=order.failed,order.cancelled&limit=2").await;
        assert_eq!(some, cancelled[..2]);
        assert_eq!(read_on(gateway, &format!("types=order.failed,order.cancelled&after={end}")).await.0, cancelled[2..]);
        assert_eq!(read_on(gateway, "types=wallet.low_balance").await.0, Vec::<Value>::new());
        for (query, field) in [
            ("after=evt_00000000000", "after"), ("after=c1", "after"), ("types=order.made", "types"),
            ("types=order.failed,,order.failed", "types"), ("limit=0", "limit"), ("limit=101", "limit"),
            ("wait=31", "wait"), ("wait=-1", "wait"), ("wait=soon", "wait"), ("since=now", "since"),
        ] {
            let refused = gateway.get(&format!("{EVENTS}?{query}")).await;
            assert_eq!(refused.problem(400), "INVALID_REQUEST", "{query}");
            assert!(refused.text.contains(&format!("\"{field}\"")), "{query}: {}", refused.text);
        }
    }

    async fn everybody_hears_of_their_own(gateway) {
        let (_, other) = gateway.partner("Other Travel", Usd::dollars(100)).await;
        other.until_known(&gateway.app).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        gateway.order("JP-1GB-7D").await;
        let paid = open(gateway, &token).await;
        settle(gateway, &paid, "COMPLETED").await;
        let foreign = gateway.send_as(&other, "GET", EVENTS, None).await;
        assert_eq!(page_of(&foreign).0, Vec::<Value>::new());
        let (hers, end) = page_of(&with_token(gateway, &token, "GET", "/api/agentic/events").await);
        assert_eq!(brief(&hers), [("order.fulfilled", 1)]);
        assert_eq!(hers[0]["data"]["orderNo"], paid["orderRef"]);
        assert_eq!(brief(&all(gateway).await), [("order.fulfilled", 1)]);
        assert_ne!(all(gateway).await[0]["id"], hers[0]["id"]);
        // Another's place in the log is a place, and shows nothing of theirs.
        assert_eq!(read_on(gateway, &format!("after={end}")).await.0, Vec::<Value>::new());
        let nobody = reply(gateway.client.get(format!("{}/api/agentic/events", gateway.base))).await;
        assert_eq!(nobody.problem(401), "UNAUTHENTICATED");
    }

    async fn no_event_opens_an_esim(gateway) {
        let order = gateway.delivered(json!({ "packageCode": "JP-1GB-7D" })).await;
        let told = gateway.get(EVENTS).await.text;
        for name in ["smdpAddress", "matchingId", "lpaString"] {
            let secret = order[name].as_str().unwrap();
            assert!(!told.contains(secret) && !told.contains(name), "{told}");
        }
        for name in ["qrCodeUrl", "installUrl"] {
            let token = order[name].as_str().unwrap().rsplit('/').next().unwrap();
            assert!(!told.contains(token) && !told.contains(name), "{told}");
        }
    }

    async fn a_caller_may_wait_for_the_next_event(gateway) {
        let (_, start) = read_on(gateway, "").await;
        let path = format!("{EVENTS}?wait=30&after={start}");
        let begun = Instant::now();
        let (heard, _) = tokio::join!(gateway.get(&path), async {
            gateway.until("somebody waits", async || (gateway.app.tail.callers() == 1).then_some(())).await;
            gateway.order("JP-1GB-7D").await;
        });
        assert_eq!(brief(&page_of(&heard).0), [("order.fulfilled", 1)]);
        assert!(begun.elapsed() < Duration::from_secs(25));
        assert_eq!(gateway.app.tail.callers(), 0);
        // What is there already is not waited for; and what does not come is not waited for longer than asked.
        assert_eq!(page_of(&gateway.get(&path).await).0.len(), 1);
        assert_eq!(page_of(&gateway.get(&format!("{EVENTS}?wait=1&types=order.failed")).await).0.len(), 0);
        assert!(begun.elapsed() < Duration::from_secs(25));
    }

    async fn whoever_waits_is_answered_when_the_gateway_stops(gateway) {
        let begun = Instant::now();
        let path = format!("{EVENTS}?wait=30");
        let (heard, ()) = tokio::join!(gateway.get(&path), async {
            gateway.until("somebody waits", async || (gateway.app.tail.callers() == 1).then_some(())).await;
            gateway.app.stopping.cancel();
        });
        assert_eq!(page_of(&heard).0, Vec::<Value>::new());
        assert!(begun.elapsed() < Duration::from_secs(25));
    }

    async fn ten_calls_of_an_account_may_wait(gateway) {
        let path = format!("{EVENTS}?wait=30");
        let crowd: Vec<_> = (0..10).map(|_| gateway.get(&path)).collect();
        let (heard, ()) = tokio::join!(futures_util::future::join_all(crowd), async {
            gateway.until("all wait", async || (gateway.app.tail.callers() == 10).then_some(())).await;
            let refused = gateway.get(&path).await;
            assert_eq!(refused.problem(429), "RATE_LIMITED");
            assert_eq!(refused.header("retry-after"), "1");
            assert_eq!(page_of(&gateway.get(EVENTS).await).0.len(), 0, "who does not wait is served");
            gateway.order("JP-1GB-7D").await;
        });
        assert!(heard.iter().all(|reply| page_of(reply).0.len() == 1));
    }

    async fn events_are_kept_for_ninety_days(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        let (events, end) = read_on(gateway, "").await;
        gateway.pass_time(89 * 86_400_000);
        retention::forget_events(&gateway.app).await.unwrap();
        assert_eq!(all(gateway).await, events);
        gateway.pass_time(2 * 86_400_000);
        retention::forget_events(&gateway.app).await.unwrap();
        assert_eq!(all(gateway).await, Vec::<Value>::new());
        // Places of what is forgotten are good places, and an order's events are counted on.
        gateway.order("JP-1GB-7D").await;
        for query in [format!("after={}", events[0]["id"].as_str().unwrap()), format!("after={end}"), String::new()] {
            assert_eq!(brief(&read_on(gateway, &query).await.0), [("order.fulfilled", 1)], "{query}");
        }
        execute(&gateway.app.settings.database, "UPDATE esims SET install_by = NULL").unwrap();
        cancel(gateway, &order).await;
        assert_eq!(brief(&all(gateway).await), [("order.fulfilled", 1), ("order.cancelled", 2)]);
    }
}
