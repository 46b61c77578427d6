//! Tests and redeliveries: what is sent, what is written down of it, and how often it may be done.

use std::sync::{Arc, Mutex, mpsc};

use serde_json::{Value, json};

use super::{
    PRIVATE, WEBHOOKS, active, change, events, friendly, made, sent, tested, text, unfriendly, url_of,
};
use crate::support::database::execute;
use crate::support::harness::both_databases;
use crate::support::shapes::{API, ORDERS};
use crate::webhook_sender::receiver::{Receiver, answer};

/// The body of the last message with this id.
fn body_of(receiver: &Receiver, message: &str) -> String {
    let requests = receiver.requests();
    let wanted = format!("\r\nwebhook-id: {message}\r\n");
    let request = requests.iter().rfind(|request| request.contains(&wanted)).expect("it was sent");
    request.split_once("\r\n\r\n").unwrap().1.to_string()
}

both_databases! {
    async fn a_test_is_an_event_of_its_own(gateway) with [PRIVATE] {
        let receiver = friendly().await;
        let (id, _) = made(gateway, &url_of(&receiver)).await;
        let told = tested(gateway, &id).await["delivery"].clone();
        let message = text(&told["eventId"]);
        assert!(message.starts_with("tst_") && text(&told["id"]).starts_with("dlv_"), "{told}");
        assert_eq!((&told["type"], &told["attempt"], &told["httpStatus"]), (&json!("webhook.test"), &Value::Null, &json!(200)));
        assert_eq!((&told["answer"], &told["trouble"]), (&json!("thank you"), &Value::Null));
        let body: Value = serde_json::from_str(&body_of(&receiver, message)).unwrap();
        assert_eq!((&body["id"], &body["type"], &body["sequence"], &body["apiVersion"]), (&json!(message), &json!("webhook.test"), &json!(1), &json!("1.0.0")));
        assert_eq!((&body["data"]["webhookId"], &body["createdAt"].is_string()), (&json!(id), &true));
        assert!(body["data"]["message"].is_string());
    }

    async fn an_endpoint_that_is_not_there_is_no_error_of_the_call(gateway) with [PRIVATE] {
        let (id, _) = made(gateway, "http://127.0.0.1:1/").await;
        let answer = tested(gateway, &id).await;
        let told = &answer["delivery"];
        assert_eq!((&answer["success"], &told["accepted"], &told["httpStatus"]), (&json!(true), &json!(false), &Value::Null));
        assert!(text(&told["trouble"]).starts_with("no connection"), "{told}");
    }

    async fn a_redelivery_sends_the_same_again(gateway) with [PRIVATE] {
        let receiver = friendly().await;
        let (id, _) = active(gateway, &url_of(&receiver)).await;
        change(gateway, &id, json!({ "status": "DISABLED" })).await;
        let standing = sent(gateway, "GET", "", None).await.expect(200);
        gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(200);
        let event = events(gateway).await[0].clone();
        let place = gateway.app.numbers.event_place(&event).unwrap();
        let (database, now) = (&gateway.app.settings.database, gateway.app.now().micros());
        execute(database, &format!("INSERT INTO webhook_deliveries (no, webhook, event, message, kind, try, at, ms, trouble)
            VALUES (1000, '{id}', {place}, '{event}', 'order.fulfilled', 1, {now}, 5, 'no connection')")).unwrap();
        let delivery = gateway.app.numbers.delivery_id(1000);
        let path = format!("/{id}/deliveries/{delivery}/redeliver");
        gateway.pass_time(1_000);
        let again = sent(gateway, "POST", &path, None).await.expect(200)["delivery"].clone();
        assert_eq!((&again["eventId"], &again["type"], &again["accepted"], &again["attempt"]), (&json!(event), &json!("order.fulfilled"), &json!(true), &Value::Null));
        assert_ne!(again["id"], json!(delivery));
        let first = body_of(&receiver, &event);
        let log = gateway.get(&format!("{API}/events")).await;
        assert!(log.text.contains(&first), "{first} is not as it is in the log: {}", log.text);
        gateway.pass_time(1_000);
        sent(gateway, "POST", &path, None).await.expect(200);
        assert_eq!(body_of(&receiver, &event), first);
        assert_eq!(sent(gateway, "GET", "", None).await.expect(200), standing, "it is as healthy as before");

        // A test is sent again in the same bytes, too.
        let test = tested(gateway, &id).await["delivery"].clone();
        let message = text(&test["eventId"]);
        let first = body_of(&receiver, message);
        gateway.pass_time(60_000);
        let path_of_test = format!("/{id}/deliveries/{}/redeliver", text(&test["id"]));
        assert_eq!(sent(gateway, "POST", &path_of_test, None).await.expect(200)["delivery"]["eventId"], json!(message));
        assert_eq!(body_of(&receiver, message), first);

        execute(database, "DELETE FROM events").unwrap();
        gateway.pass_time(1_000);
        assert_eq!(sent(gateway, "POST", &path, None).await.problem(410), "NOT_FOUND");
        for unknown in [gateway.app.numbers.delivery_id(999_999), "dlv_1".into(), "x".into()] {
            let reply = sent(gateway, "POST", &format!("/{id}/deliveries/{unknown}/redeliver"), None).await;
            assert_eq!(reply.problem(404), "NOT_FOUND");
        }
    }

    async fn a_redelivery_that_is_refused_changes_nothing_either(gateway) with [PRIVATE] {
        let receiver = unfriendly().await;
        let (id, _) = made(gateway, &url_of(&receiver)).await;
        let test = tested(gateway, &id).await["delivery"].clone();
        change(gateway, &id, json!({ "status": "DISABLED" })).await;
        let standing = sent(gateway, "GET", "", None).await.expect(200);
        gateway.pass_time(1_000);
        let path = format!("/{id}/deliveries/{}/redeliver", text(&test["id"]));
        let again = sent(gateway, "POST", &path, None).await.expect(200);
        assert_eq!((&again["success"], &again["delivery"]["accepted"]), (&json!(true), &json!(false)));
        assert_eq!(sent(gateway, "GET", "", None).await.expect(200), standing);
    }

    async fn deliveries_are_listed_newest_first(gateway) with [PRIVATE] {
        let receiver = unfriendly().await;
        let (id, _) = made(gateway, &url_of(&receiver)).await;
        // From here on nothing is sent but by hand.
        change(gateway, &id, json!({ "status": "DISABLED" })).await;
        let mut expected = Vec::new();
        for _ in 0..5 {
            expected.insert(0, tested(gateway, &id).await["delivery"].clone());
        }
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = sent(gateway, "GET", &format!("/{id}/deliveries?limit=2{after}"), None).await.expect(200);
            found.extend(page["deliveries"].as_array().unwrap().iter().filter(|one| one["attempt"].is_null()).cloned());
            match page["nextAfter"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        assert_eq!(found, expected);
        // Those of another webhook are not among them.
        let (other, _) = made(gateway, &url_of(&receiver)).await;
        let path = format!("/{other}/deliveries/{}/redeliver", text(&expected[0]["id"]));
        assert_eq!(sent(gateway, "POST", &path, None).await.problem(404), "NOT_FOUND");
    }

    async fn tries_by_hand_are_few(gateway) with [PRIVATE] {
        let (release, held) = mpsc::channel::<()>();
        let (held, seen) = (Arc::new(Mutex::new(held)), Arc::new(Mutex::new(0)));
        let count = seen.clone();
        let receiver = Receiver::start(move |_| {
            *count.lock().unwrap() += 1;
            tokio::task::block_in_place(|| held.lock().unwrap().recv().unwrap());
            answer("200 OK", "")
        })
        .await;
        // So that nothing is sent to it but by hand.
        let (id, _) = made(gateway, "http://127.0.0.1:1/").await;
        change(gateway, &id, json!({ "status": "DISABLED" })).await;
        change(gateway, &id, json!({ "url": url_of(&receiver) })).await;
        let path = format!("{WEBHOOKS}/{id}/test");
        let trying = tokio::spawn({
            let request = gateway.request("POST", &path);
            async move { request.send().await.unwrap().status().as_u16() }
        });
        gateway.until("it is under way", async || (*seen.lock().unwrap() > 0).then_some(())).await;
        gateway.pass_time(5_000);
        let refused = gateway.send_as(&gateway.key, "POST", &path, None).await;
        assert_eq!(refused.problem(429), "RATE_LIMITED");
        assert_eq!(refused.header("retry-after"), "1");
        (0..3).for_each(|_| release.send(()).unwrap());
        assert_eq!(trying.await.unwrap(), 200);
        gateway.pass_time(1_000);
        let statuses = [
            gateway.send_as(&gateway.key, "POST", &path, None).await.status,
            gateway.send_as(&gateway.key, "POST", &path, None).await.status,
        ];
        // A slow machine may take more than the second.
        assert!(statuses == [200, 429] || statuses == [200, 200], "{statuses:?}");
        // Another webhook has its own turn.
        let other = friendly().await;
        let (other, _) = made(gateway, &url_of(&other)).await;
        sent(gateway, "POST", &format!("/{other}/test"), None).await.expect(200);
    }
}
