//! Webhooks as partners make and manage them. Endpoints listen on loopback, which a sandbox may reach when it is told so.

mod by_hand;
mod changes;
mod commands;
mod secrets;

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::ops::operator::KeyTerms;

use crate::support::database::{execute, rows};
use crate::support::harness::{Gateway, Key, Reply, both_databases};
use crate::support::shapes::{API, ORDERS};
use crate::webhook_sender::receiver::{Receiver, answer};

const WEBHOOKS: &str = "/api/b2b/v1/webhooks";
const PRIVATE: (&str, &str) = ("webhook_allow_private", "true");

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn url_of(receiver: &Receiver) -> String {
    format!("http://{}/in?key=hush", receiver.address)
}

async fn friendly() -> Receiver {
    Receiver::start(|_| answer("200 OK", "thank you")).await
}

async fn unfriendly() -> Receiver {
    Receiver::start(|_| answer("500 Oh", "not today")).await
}

/// A new webhook: its id and its secret.
async fn made(gateway: &Gateway, url: &str) -> (String, String) {
    let answer = gateway.post(WEBHOOKS, json!({ "url": url })).await.expect(200);
    (text(&answer["webhook"]["id"]).into(), text(&answer["secret"]).into())
}

async fn sent(gateway: &Gateway, method: &str, path: &str, body: Option<Value>) -> Reply {
    gateway.send_as(&gateway.key, method, &format!("{WEBHOOKS}{path}"), body).await
}

async fn change(gateway: &Gateway, id: &str, body: Value) -> Value {
    sent(gateway, "PATCH", &format!("/{id}"), Some(body)).await.expect(200)["webhook"].clone()
}

/// Tests a webhook, after the pause that must be between two tries.
async fn tested(gateway: &Gateway, id: &str) -> Value {
    gateway.pass_time(1_000);
    sent(gateway, "POST", &format!("/{id}/test"), None).await.expect(200)
}

/// One that has accepted its test.
async fn active(gateway: &Gateway, url: &str) -> (String, String) {
    let (id, secret) = made(gateway, url).await;
    assert_eq!(tested(gateway, &id).await["webhook"]["status"], "ACTIVE");
    (id, secret)
}

fn column(gateway: &Gateway, id: &str, name: &str) -> i64 {
    let sql = format!("SELECT CAST({name} AS TEXT) FROM webhooks WHERE id = '{id}'");
    rows(&gateway.app.settings.database, &sql)[0][0].parse().unwrap()
}

/// The ids of the events of the account's orders, the oldest first.
async fn events(gateway: &Gateway) -> Vec<String> {
    let log = gateway.get(&format!("{API}/events?types=order.fulfilled&limit=100")).await.expect(200);
    log["events"].as_array().unwrap().iter().map(|event| text(&event["id"]).to_string()).collect()
}

/// What was said about one field.
#[track_caller]
fn mistake(reply: &Reply, field: &str) -> String {
    assert_eq!(reply.problem(400), "INVALID_REQUEST");
    let body = reply.json();
    let wrong = body["errors"].as_array().unwrap().iter().find(|one| one["field"] == field);
    text(&wrong.unwrap_or_else(|| panic!("{field} is not in {body}"))["message"]).into()
}

both_databases! {
    async fn a_webhook_is_made_changed_and_deleted(gateway) with [PRIVATE] {
        let receiver = friendly().await;
        let url = url_of(&receiver);
        let wish = json!({ "url": url, "events": ["order.failed", "order.fulfilled", "order.failed"], "description": "ours" });
        let answer = gateway.post(WEBHOOKS, wish).await.expect(200);
        let webhook = &answer["webhook"];
        let id = text(&webhook["id"]);
        assert!(id.starts_with("whk_") && text(&answer["secret"]).starts_with("whsec_"), "{answer}");
        assert_eq!(webhook["events"], json!(["order.failed", "order.fulfilled"]));
        assert_eq!((&webhook["url"], &webhook["status"], &webhook["description"]), (&json!(url), &json!("PENDING"), &json!("ours")));
        for absent in ["acceptedAt", "failingSince", "disabledAt", "oldSecretUntil"] {
            assert_eq!(webhook.get(absent), None);
        }
        let tested = tested(gateway, id).await;
        assert_eq!((&tested["success"], &tested["webhook"]["status"], &tested["delivery"]["accepted"]), (&json!(true), &json!("ACTIVE"), &json!(true)));
        let listed = sent(gateway, "GET", "", None).await.expect(200);
        assert_eq!(listed["webhooks"].as_array().unwrap().len(), 1);
        assert_eq!(listed["webhooks"][0], tested["webhook"]);

        // A note of the partner's own is no matter of deliveries; what is wanted is.
        let edition = column(gateway, id, "edition");
        assert_eq!(change(gateway, id, json!({ "description": "" })).await.get("description"), None);
        assert_eq!(column(gateway, id, "edition"), edition);
        let all = change(gateway, id, json!({ "events": ["wallet.low_balance"], "description": "again" })).await;
        assert_eq!((&all["events"], &all["description"], &all["status"]), (&json!(["wallet.low_balance"]), &json!("again"), &json!("ACTIVE")));
        assert_eq!(column(gateway, id, "edition"), edition + 1);
        assert_eq!(change(gateway, id, json!({})).await, all);
        assert_eq!(column(gateway, id, "edition"), edition + 1);

        let gone = sent(gateway, "DELETE", &format!("/{id}"), None).await.expect(200);
        assert_eq!(gone, json!({ "success": true, "id": id }));
        assert_eq!(sent(gateway, "DELETE", &format!("/{id}"), None).await.problem(404), "NOT_FOUND");
        assert_eq!(sent(gateway, "GET", "", None).await.expect(200)["webhooks"], json!([]));
        let left = async || {
            let sql = format!("SELECT CAST(COUNT(*) AS TEXT) FROM webhook_deliveries WHERE webhook = '{id}'");
            (rows(&gateway.app.settings.database, &sql)[0][0] == "0").then_some(())
        };
        gateway.until("its deliveries are deleted", left).await;
    }

    async fn without_a_choice_all_types_are_wanted(gateway) with [PRIVATE] {
        let answer = gateway.post(WEBHOOKS, json!({ "url": "http://127.0.0.1:9/" })).await.expect(200);
        assert_eq!(answer["webhook"]["events"].as_array().unwrap().len(), 11);
        assert_eq!(answer["webhook"]["events"][0], "order.fulfilled");
    }

    /// A name that leads to such an address is found out when it is tried.
    async fn hostile_urls_are_refused_when_they_are_saved(gateway) {
        let (id, _) = made(gateway, "https://hooks.example/in").await;
        for url in [
            "http://127.0.0.1:9000/", "http://localhost/", "http://[::1]/", "http://0.0.0.0/", "http://169.254.169.254/latest",
            "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.1.1/", "http://100.64.0.1/", "http://[fc00::1]/",
            "http://[fe80::1]/", "http://[::ffff:127.0.0.1]/", "http://2130706433/", "http://0177.0.0.1/", "http://0x7f.1/",
            "http://me:word@hooks.example/", "file:///etc/passwd", "ftp://hooks.example/", "gopher://hooks.example/",
            "https://hooks.example/#part", "hooks.example", "https://", "//hooks.example/",
        ] {
            let said = mistake(&gateway.post(WEBHOOKS, json!({ "url": url })).await, "url");
            assert!(said.starts_with("must "), "{url}: {said}");
            let again = sent(gateway, "PATCH", &format!("/{id}"), Some(json!({ "url": url }))).await;
            assert_eq!(mistake(&again, "url"), said, "{url}");
        }
        assert_eq!(sent(gateway, "GET", "", None).await.expect(200)["webhooks"].as_array().unwrap().len(), 1);
    }

    async fn every_mistake_is_named(gateway) {
        let post = async |body: Value| gateway.post(WEBHOOKS, body).await;
        let all = post(json!({ "events": ["order.done"], "description": "x".repeat(201) })).await;
        assert_eq!(mistake(&all, "url"), "is required");
        assert_eq!(mistake(&all, "events"), "has the unknown \"order.done\"; known are order.fulfilled, order.failed, order.cancelled, \
            topup.completed, topup.failed, deposit.detected, deposit.confirmed, deposit.expired, wallet.low_balance, \
            esim.status_changed, esim.usage_threshold");
        assert_eq!(mistake(&all, "description"), "must have 1 to 200 printable characters");
        for (events, said) in [
            (json!("order.failed"), "must be a list of strings"),
            (json!([1]), "must be a list of strings"),
            (json!([]), "must name at least one, or be left out for all"),
            (json!(["order.fulfiled"]), "has the unknown \"order.fulfiled\"; did you mean order.fulfilled?"),
        ] {
            assert_eq!(mistake(&post(json!({ "url": "https://hooks.example/", "events": events })).await, "events"), said);
        }
        let (id, _) = made(gateway, "https://hooks.example/").await;
        for status in ["PENDING", "active", "ON"] {
            let reply = sent(gateway, "PATCH", &format!("/{id}"), Some(json!({ "status": status }))).await;
            assert_eq!(mistake(&reply, "status"), "must be one of ACTIVE, DISABLED");
        }
        let replay = async |body: Value| sent(gateway, "POST", &format!("/{id}/replay"), Some(body)).await;
        assert_eq!(mistake(&replay(json!({})).await, "after"), "is required, unless since is sent");
        let both = json!({ "after": "evt_5tVq0Zk2LmA", "since": "2026-01-31" });
        assert_eq!(mistake(&replay(both).await, "since"), "must be left out when after is sent");
        assert_eq!(mistake(&replay(json!({ "after": "evt_1" })).await, "after"), "must be the id of an event, or a nextAfter of the event log");
        assert_eq!(mistake(&replay(json!({ "since": "soon" })).await, "since"), "must be a time like 2026-01-31T12:00:00Z or a date");
        let page = sent(gateway, "GET", &format!("/{id}/deliveries?after=dlv_1"), None).await;
        assert_eq!(mistake(&page, "after"), "must be the nextAfter of an answer, or the id of a delivery");
        let body = sent(gateway, "POST", &format!("/{id}/test"), Some(json!({ "url": "x" }))).await;
        assert!(mistake(&body, "url").starts_with("unknown"));
    }

    async fn others_see_nothing_and_readers_change_nothing(gateway) with [PRIVATE] {
        let receiver = friendly().await;
        let (id, _) = active(gateway, &url_of(&receiver)).await;
        let delivery = sent(gateway, "GET", &format!("/{id}/deliveries"), None).await.expect(200)["deliveries"][0]["id"].clone();
        let calls = [
            ("PATCH", format!("/{id}"), Some(json!({ "status": "DISABLED" }))),
            ("DELETE", format!("/{id}"), None),
            ("POST", format!("/{id}/test"), None),
            ("POST", format!("/{id}/rotate"), None),
            ("POST", format!("/{id}/replay"), Some(json!({ "since": "2026-01-31" }))),
            ("POST", format!("/{id}/deliveries/{}/redeliver", text(&delivery)), None),
            ("GET", format!("/{id}/deliveries"), None),
        ];
        let (_, stranger) = gateway.partner("Other Travel", Usd::dollars(1)).await;
        let terms = KeyTerms { read_only: true, ..KeyTerms::default() };
        let account = simgate::ops::operator::account(&gateway.app, &gateway.partner).await.unwrap().no;
        let reader = simgate::ops::operator::create_key(&gateway.app, "test", account, terms).await.unwrap();
        let reader = Key { id: reader.id.to_string(), secret: reader.secret };
        reader.until_known(&gateway.app).await;
        for (method, path, body) in calls {
            let path = format!("{WEBHOOKS}{path}");
            let reply = gateway.send_as(&stranger, method, &path, body.clone()).await;
            assert_eq!(reply.problem(404), "NOT_FOUND", "{method} {path}");
            let nobodys = path.replace(&id, "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U");
            let unknown = gateway.send_as(&stranger, method, &nobodys, body.clone()).await;
            assert_eq!(unknown.json()["detail"], reply.json()["detail"], "{method} {path}");
            assert_eq!(gateway.send_as(&stranger, method, &path.replace("whk_", "x"), body.clone()).await.problem(404), "NOT_FOUND");
            let read = gateway.send_as(&reader, method, &path, body).await;
            match method {
                "GET" => assert_eq!(read.status, 200),
                _ => assert_eq!(read.problem(403), "LIMIT_EXCEEDED", "{method} {path}"),
            }
        }
        let listed = gateway.send_as(&stranger, "GET", WEBHOOKS, None).await.expect(200);
        assert_eq!(listed["webhooks"], json!([]));
        let listed = gateway.send_as(&reader, "GET", WEBHOOKS, None).await.expect(200);
        assert_eq!(listed["webhooks"][0]["status"], "ACTIVE");
    }

    async fn an_account_has_ten(gateway) {
        let make = async || gateway.post(WEBHOOKS, json!({ "url": "https://hooks.example/" })).await;
        for _ in 0..8 {
            make().await.expect(200);
        }
        let race = tokio::join!(make(), make(), make(), make());
        let statuses = [race.0.status, race.1.status, race.2.status, race.3.status];
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 2, "{statuses:?}");
        let full = make().await;
        assert_eq!(full.problem(403), "LIMIT_EXCEEDED");
        assert!(text(&full.json()["detail"]).starts_with("An account may have 10 webhooks"));
        let listed = sent(gateway, "GET", "", None).await.expect(200)["webhooks"].clone();
        assert_eq!(listed.as_array().unwrap().len(), 10);
        sent(gateway, "DELETE", &format!("/{}", text(&listed[0]["id"])), None).await.expect(200);
        make().await.expect(200);
    }

    /// Otherwise an account could be made to send to anybody.
    async fn another_url_must_accept_a_test_first(gateway) with [PRIVATE] {
        let (ours, theirs) = (friendly().await, unfriendly().await);
        let (id, _) = active(gateway, &url_of(&ours)).await;
        let same = change(gateway, &id, json!({ "url": url_of(&ours) })).await;
        assert_eq!(same["status"], "ACTIVE");
        let moved = change(gateway, &id, json!({ "url": url_of(&theirs) })).await;
        assert_eq!((&moved["status"], moved.get("acceptedAt")), (&json!("PENDING"), None));
        let refused = tested(gateway, &id).await;
        assert_eq!((&refused["success"], &refused["webhook"]["status"]), (&json!(true), &json!("PENDING")));
        let told = &refused["delivery"];
        assert_eq!((&told["accepted"], &told["httpStatus"], &told["answer"]), (&json!(false), &json!(500), &json!("not today")));
        // Also when it is disabled meanwhile: nobody there has agreed.
        change(gateway, &id, json!({ "status": "DISABLED" })).await;
        assert_eq!(change(gateway, &id, json!({ "status": "ACTIVE" })).await["status"], "PENDING");
        change(gateway, &id, json!({ "status": "DISABLED", "url": url_of(&ours) })).await;
        assert_eq!(change(gateway, &id, json!({ "status": "ACTIVE" })).await["status"], "PENDING");
        assert_eq!(tested(gateway, &id).await["webhook"]["status"], "ACTIVE");
    }

    async fn a_disabled_webhook_is_enabled_at_the_end_of_the_log(gateway) with [PRIVATE] {
        let receiver = friendly().await;
        let (id, _) = active(gateway, &url_of(&receiver)).await;
        let disabled = change(gateway, &id, json!({ "status": "DISABLED" })).await;
        assert_eq!(disabled["status"], "DISABLED");
        assert!(disabled["disabledAt"].is_string());
        gateway.pass_time(60_000);
        assert_eq!(change(gateway, &id, json!({ "status": "DISABLED" })).await, disabled, "it keeps the first time");
        assert_eq!(tested(gateway, &id).await["webhook"]["status"], "DISABLED", "a test does not enable it");
        let before = column(gateway, &id, "cursor");
        gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(200);
        let missed = events(gateway).await;
        let replay = json!({ "after": missed[0] });
        let refused = sent(gateway, "POST", &format!("/{id}/replay"), Some(replay.clone())).await;
        assert_eq!(refused.problem(409), "WEBHOOK_DISABLED");
        assert!(text(&refused.json()["detail"]).contains("Enable it first"));
        let enabled = change(gateway, &id, json!({ "status": "ACTIVE" })).await;
        assert_eq!((&enabled["status"], enabled.get("disabledAt")), (&json!("ACTIVE"), None));
        let place = gateway.app.numbers.event_place(&missed[0]).unwrap();
        assert!(before < place && column(gateway, &id, "cursor") >= place, "what was missed is not sent by itself");
        let replayed = sent(gateway, "POST", &format!("/{id}/replay"), Some(replay)).await.expect(200);
        assert_eq!((&replayed["after"], &replayed["webhook"]["status"]), (&json!(missed[0]), &json!("ACTIVE")));
    }

    async fn a_replay_goes_back_and_never_forward(gateway) with [PRIVATE] {
        // Nobody accepts its test, so nothing else moves it.
        let receiver = unfriendly().await;
        let (id, _) = made(gateway, &url_of(&receiver)).await;
        for _ in 0..3 {
            gateway.post(ORDERS, json!({ "packageCode": "JP-1GB-7D" })).await.expect(200);
            gateway.pass_time(600_000);
        }
        let events = events(gateway).await;
        let places: Vec<i64> = events.iter().map(|id| gateway.app.numbers.event_place(id).unwrap()).collect();
        let replay = async |body: Value| sent(gateway, "POST", &format!("/{id}/replay"), Some(body)).await.expect(200);
        // It has not been sent these yet, and nothing of them is left out.
        let begin = column(gateway, &id, "cursor");
        assert!(begin < places[0]);
        let ahead = replay(json!({ "after": events[2] })).await;
        assert_eq!((gateway.app.numbers.event_place(text(&ahead["after"])), column(gateway, &id, "cursor")), (Some(begin), begin));

        let database = &gateway.app.settings.database;
        let (edition, now) = (column(gateway, &id, "edition"), gateway.app.now());
        let (then, later) = (now.micros(), now.plus_days(1).micros());
        execute(database, &format!("UPDATE webhooks SET cursor = {}, failures = 3, failing_since = {then}, resting_until = {later} WHERE id = '{id}'", places[2])).unwrap();
        for place in &places {
            execute(database, &format!("INSERT INTO webhook_waiting (webhook, event, subject, tries, due_at, aside_at) VALUES ('{id}', {place}, 'x', 1, 4000000000000000, {})",
                if *place == places[0] { "5" } else { "NULL" })).unwrap();
        }
        let standing = sent(gateway, "GET", "", None).await.expect(200)["webhooks"][0].clone();
        assert_eq!((&standing["waiting"], &standing["setAside"]), (&json!(2), &json!(1)));
        let back = replay(json!({ "after": events[1] })).await;
        assert_eq!((&back["after"], &back["webhook"]["waiting"], &back["webhook"]["setAside"]), (&json!(events[1]), &json!(1), &json!(1)));
        assert!(back["webhook"]["failingSince"].is_string(), "it is as healthy as before");
        assert_eq!((column(gateway, &id, "cursor"), column(gateway, &id, "edition")), (places[1], edition + 1));

        let log = gateway.get(&format!("{API}/events?types=order.fulfilled")).await.expect(200)["events"].clone();
        replay(json!({ "since": log[1]["createdAt"] })).await;
        assert!((places[0]..places[1]).contains(&column(gateway, &id, "cursor")));
        replay(json!({ "since": "2020-01-01" })).await;
        assert_eq!(column(gateway, &id, "cursor"), 0);
    }
}
