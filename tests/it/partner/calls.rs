//! The log of a partner's calls: what it tells of each, what it never keeps, how errors add up, and how it ends.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;
use simgate::app::App;
use simgate::domain::call::{Call, KEPT_DAYS, Method, Wanted};
use simgate::domain::ids::{AccountNo, KeyId};
use simgate::domain::money::Usd;
use simgate::domain::time::Time;
use simgate::ops::calls::{self, Answered, PLACES, Page};
use simgate::ops::operator::{self, KeyTerms};
use simgate::store::calls::Batch;
use simgate::store::{Location, calls as stored};

use crate::support::database;
use crate::support::harness::{
    Db, Gateway, Key, both_databases, each_database, on_place, open_orders, start_gateway,
};
use crate::support::shapes::{API, ORDERS};

const DAY_MS: i64 = 86_400_000;

async fn account(gateway: &Gateway) -> AccountNo {
    operator::account(&gateway.app, &gateway.partner).await.unwrap().no
}

/// A page of this gateway's partner, with all that was answered so far.
async fn page(gateway: &Gateway, wanted: Wanted, limit: i64) -> Page {
    calls::write_out(&gateway.app).await.unwrap();
    calls::list(&gateway.app, account(gateway).await, wanted, limit).await.unwrap()
}

async fn all(gateway: &Gateway, wanted: Wanted) -> Vec<Call> {
    let page = page(gateway, wanted, 1_000).await;
    assert_eq!(page.next, None);
    page.calls
}

/// What a line tells.
fn told(call: &Call) -> (&str, &str, i64, Option<&str>) {
    (call.method.as_str(), &call.route, call.status, call.code.as_deref())
}

fn count(location: &Location, what: &str) -> i64 {
    database::rows(location, &format!("SELECT CAST({what} AS TEXT) FROM api_calls"))[0][0].parse().unwrap()
}

fn counted(location: &Location) -> i64 {
    let sql = "SELECT CAST(COALESCE(SUM(calls), 0) AS TEXT) FROM api_call_counts";
    database::rows(location, sql)[0][0].parse().unwrap()
}

/// Every text that the log holds.
fn texts(location: &Location) -> String {
    let calls = "SELECT method, route, COALESCE(code, ''), request_id, key_id FROM api_calls";
    let counts = "SELECT method, route, code FROM api_call_counts";
    let batches = "SELECT writer FROM api_call_batches";
    let rows = [calls, counts, batches].into_iter().flat_map(|sql| database::rows(location, sql));
    rows.map(|row| row.join("\n")).collect::<Vec<_>>().join("\n")
}

/// The job stops; only what the test writes is written.
async fn hang(gateway: &Gateway) {
    gateway.sandbox("job", json!({ "job": "calls", "mode": "hang" })).await;
}

fn kept(account: AccountNo, at: Time, status: i64) -> Call {
    let code = (status >= 400).then(|| "ORDER_NOT_FOUND".into());
    let (route, request_id, key_id) = (format!("{ORDERS}/{{id}}"), "r".into(), KeyId::from_text("key_1"));
    Call { account, at, method: Method::Get, route, status, code, ms: 1, request_id, key_id }
}

async fn write(
    app: &App,
    writer: &str,
    no: i64,
    calls: Vec<Call>,
    counts: Vec<simgate::domain::call::Count>,
) {
    let batch = Arc::new(Batch { writer: writer.into(), no, at: app.now(), calls, counts });
    app.store.write(0, move |tx| stored::write(tx, &batch)).await.unwrap();
}

both_databases! {
    /// What it asked for was done all the same.
    async fn a_caller_who_hangs_up_leaves_a_line(gateway) {
        gateway.supplier("silent").await;
        let sent = gateway.request("POST", ORDERS).json(&json!({ "packageCode": "JP-1GB-7D" })).send();
        let sending = tokio::spawn(sent);
        gateway
            .until("the order is taken down", async || (open_orders(&gateway.app).await == 1).then_some(()))
            .await;
        sending.abort();
        let wanted = ("POST", ORDERS, 499, Some("CALLER_HUNG_UP"));
        gateway
            .until("the line is there", async || {
                let calls = all(gateway, Wanted::default()).await;
                calls.iter().any(|call| told(call) == wanted).then_some(())
            })
            .await;
        gateway.supplier("ok").await;
    }

    async fn calls_are_told_as_they_were_answered(gateway) {
        let before = gateway.app.now();
        let order = gateway.order("JP-1GB-7D").await;
        let path = format!("{ORDERS}/{}", order["id"].as_str().unwrap());
        gateway.get(&path).await.expect(200);
        let wrong = gateway.post(ORDERS, json!({ "packageCode": 7 })).await;
        assert_eq!(wrong.problem(400), "INVALID_REQUEST");
        let unknown = crate::support::harness::reply(gateway.request("GET", &format!("{ORDERS}/ord_x")).header("x-request-id", "mine-1")).await;
        assert_eq!(unknown.problem(404), "ORDER_NOT_FOUND");
        let calls = all(gateway, Wanted::default()).await;
        let one = format!("{ORDERS}/{{id}}");
        assert_eq!(calls.iter().map(told).collect::<Vec<_>>(), [
            ("GET", one.as_str(), 404, Some("ORDER_NOT_FOUND")),
            ("POST", ORDERS, 400, Some("INVALID_REQUEST")),
            ("GET", one.as_str(), 200, None),
            ("POST", ORDERS, 200, None),
        ]);
        assert_eq!(calls[0].request_id, "mine-1");
        assert_eq!(calls[1].request_id, wrong.header("x-request-id"));
        let now = gateway.app.now();
        for call in &calls {
            assert_eq!(call.key_id.as_str(), gateway.key.id);
            assert!(call.at >= before && call.at <= now && (0..60_000).contains(&call.ms), "{call:?}");
        }
        assert!(calls.is_sorted_by(|newer, older| newer.at > older.at));
    }

    async fn the_job_writes_them_by_itself(gateway) {
        gateway.balance().await;
        let mine = account(gateway).await;
        gateway.until("the call is listed", async || {
            let page = calls::list(&gateway.app, mine, Wanted::default(), 10).await.unwrap();
            (page.calls.len() == 1).then_some(())
        }).await;
    }

    async fn nothing_of_what_was_in_them_is_kept(gateway) {
        let order = gateway.delivered(json!({ "packageCode": "JP-1GB-7D", "partnerRefId": "booking-of-ann" })).await;
        let (id, iccid) = (order["id"].as_str().unwrap(), order["iccid"].as_str().unwrap());
        let wish = json!({ "amountUsd": 20, "currency": "USDT", "network": "POLYGON" });
        let invoice = gateway.post(&format!("{API}/balance/deposit"), wish).await.expect(200)["invoiceId"].clone();
        let invoice = invoice.as_str().unwrap();
        gateway.get(&format!("{API}/balance/deposit/{invoice}")).await.expect(200);
        gateway.get(&format!("{ORDERS}/{iccid}/usage")).await.expect(200);
        gateway.get(&format!("{API}/plans?query=a-secret-place")).await;
        gateway.post(&format!("{ORDERS}/{id}/cancel"), json!({ "reason": "because-of-ann" })).await;
        gateway.post(ORDERS, json!({ "packageCode": "NO-SUCH-PLAN", "customerEmail": "ann@example.com" })).await;
        gateway.post(ORDERS, json!("no-object-at-all")).await;
        assert!(all(gateway, Wanted::default()).await.len() >= 8);
        let texts = texts(&gateway.app.settings.database);
        assert!(texts.contains(&gateway.key.id) && texts.contains("/usage"), "{texts}");
        let inside = [
            id, iccid, invoice, &gateway.key.secret, "booking-of-ann", "JP-1GB-7D", "a-secret-place", "because-of-ann", "NO-SUCH-PLAN",
            "ann@example.com", "no-object-at-all", "POLYGON", order["orderNo"].as_str().unwrap_or("?"),
        ];
        for word in inside {
            assert!(!texts.contains(word), "{word} is in the log");
        }
    }

    async fn another_partner_sees_none_of_them(gateway) {
        gateway.get(&format!("{ORDERS}/ord_x")).await.problem(404);
        assert_eq!(all(gateway, Wanted::default()).await.len(), 1);
        let (other, _) = gateway.partner("Other", Usd::ZERO).await;
        let other = operator::account(&gateway.app, &other).await.unwrap().no;
        assert!(calls::list(&gateway.app, other, Wanted::default(), 10).await.unwrap().calls.is_empty());
        assert!(calls::errors(&gateway.app, other, Time::from_micros(0)).await.unwrap().is_empty());
    }

    /// Who is known is told of a refusal at the door too; a stranger is nobody's.
    async fn refusals_at_the_door_are_told_to_whom_they_concern(gateway) with [("rate_limit", "1"), ("rate_burst", "2")] {
        let terms = KeyTerms { read_only: true, ..KeyTerms::default() };
        let made = operator::create_key(&gateway.app, "test", account(gateway).await, terms).await.unwrap();
        let reader = Key { id: made.id.to_string(), secret: made.secret };
        reader.until_known(&gateway.app).await;
        gateway.send_as(&reader, "POST", ORDERS, Some(json!({}))).await.problem(403);
        let stranger = Key { secret: "sk_wrong".into(), ..reader.clone() };
        gateway.send_as(&stranger, "GET", &format!("{API}/balance"), None).await.problem(401);
        gateway.until("it is too much", async || (gateway.get(&format!("{API}/balance")).await.status == 429).then_some(())).await;
        let calls = all(gateway, Wanted { only_errors: true, ..Wanted::default() }).await;
        let seen: Vec<_> = calls.iter().map(|call| (call.key_id.as_str(), call.status, call.code.as_deref())).collect();
        assert_eq!(seen, [
            (gateway.key.id.as_str(), 429, Some("RATE_LIMITED")),
            (reader.id.as_str(), 403, Some("LIMIT_EXCEEDED")),
        ]);
    }

    async fn errors_are_counted_exactly_though_not_all_are_kept(gateway) with [("rate_limit", "0")] {
        const MISSED: usize = 130;
        let path = format!("{ORDERS}/ord_x");
        for _ in 0..MISSED / 13 {
            join_all((0..13).map(|_| gateway.get(&path))).await;
        }
        gateway.get(&format!("{ORDERS}/ord_x/usage")).await.problem(404);
        gateway.get(&format!("{ORDERS}/ord_x/topup-plans")).await.problem(404);
        for _ in 0..3 {
            gateway.post(ORDERS, json!({ "packageCode": 7 })).await.problem(400);
        }
        gateway.balance().await;
        calls::write_out(&gateway.app).await.unwrap();
        let since = gateway.app.now().plus_millis(-60_000);
        let errors = calls::errors(&gateway.app, account(gateway).await, since).await.unwrap();
        let groups: Vec<_> = errors.iter().map(|group| (group.code.as_str(), group.status, group.calls)).collect();
        assert_eq!(groups[..2], [("ORDER_NOT_FOUND", 404, MISSED as i64 + 2), ("INVALID_REQUEST", 400, 3)]);
        let most = &errors[0].routes[0];
        assert_eq!((most.method, most.route.as_str(), most.calls), (Method::Get, &*format!("{ORDERS}/{{id}}"), MISSED as i64));
        assert_eq!(errors[0].routes.iter().map(|at| at.calls).collect::<Vec<_>>(), [MISSED as i64, 1, 1]);
        assert!(errors.iter().all(|group| group.last_at > since && group.routes.iter().map(|at| at.calls).sum::<i64>() == group.calls));
        let kept = all(gateway, Wanted { code: Some("ORDER_NOT_FOUND".into()), ..Wanted::default() }).await;
        assert!(kept.len() >= 90 && kept.len() < MISSED, "{} are kept", kept.len());
        assert_eq!(counted(&gateway.app.settings.database), MISSED as i64 + 6);
        let later = gateway.app.now().plus_millis(2 * 3_600_000);
        assert!(calls::errors(&gateway.app, account(gateway).await, later).await.unwrap().is_empty());
    }

    async fn the_list_is_read_page_by_page(gateway) {
        for _ in 0..3 {
            gateway.balance().await;
            gateway.get(&format!("{ORDERS}/ord_x")).await.problem(404);
        }
        let newest = all(gateway, Wanted::default()).await;
        assert_eq!(newest.len(), 6);
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let part = page(gateway, Wanted { before, ..Wanted::default() }, 4).await;
            found.extend(part.calls);
            before = part.next;
            if before.is_none() { break }
        }
        assert_eq!(found, newest);
        let only = async |wanted: Wanted| all(gateway, wanted).await.iter().map(|call| call.status).collect::<Vec<_>>();
        let any = Wanted::default;
        assert_eq!(only(Wanted { only_errors: true, ..any() }).await, [404; 3]);
        assert_eq!(only(Wanted { class: Some(4), ..any() }).await, [404; 3]);
        assert_eq!(only(Wanted { class: Some(2), ..any() }).await, [200; 3]);
        assert_eq!(only(Wanted { route: Some(format!("{API}/balance")), ..any() }).await, [200; 3]);
        assert_eq!(only(Wanted { code: Some("ORDER_NOT_FOUND".into()), ..any() }).await, [404; 3]);
        assert!(only(Wanted { code: Some("INTERNAL".into()), ..any() }).await.is_empty());
        assert_eq!(only(Wanted { method: Some(Method::Get), ..any() }).await.len(), 6);
        assert!(only(Wanted { method: Some(Method::Post), ..any() }).await.is_empty());
        assert_eq!(only(Wanted { key: Some(KeyId::from_text(&gateway.key.id)), ..any() }).await.len(), 6);
        assert!(only(Wanted { key: Some(KeyId::from_text("key_x")), ..any() }).await.is_empty());
        let (from, to) = (Some(newest[3].at), Some(newest[1].at));
        assert_eq!(all(gateway, Wanted { from, to, ..any() }).await, newest[2..4]);
        let refused = page(gateway, Wanted { only_errors: true, ..any() }, 2).await;
        let rest = all(gateway, Wanted { only_errors: true, before: refused.next, ..any() }).await;
        assert_eq!((refused.calls.len(), rest.len()), (2, 1));
    }

    /// Whatever is looked for, a page looks at so many calls and says where to go on. Errors are found at once.
    async fn a_page_looks_at_a_limited_number(gateway) {
        const MANY: i64 = 5_200;
        let (mine, now) = (account(gateway).await, gateway.app.now());
        let at = |n: i64| Time::from_micros(now.micros() - n);
        let lines: Vec<Call> = (1..=MANY).map(|n| kept(mine, at(n), if n == MANY { 404 } else { 200 })).collect();
        for (part, no) in lines.chunks(1_000).zip(1..) {
            write(&gateway.app, "another", no, part.to_vec(), Vec::new()).await;
        }
        let other_route = Wanted { route: Some("/elsewhere".into()), ..Wanted::default() };
        let first = page(gateway, other_route.clone(), 10).await;
        assert!(first.calls.is_empty());
        assert_eq!(first.next, Some(at(5_000).micros()));
        let second = page(gateway, Wanted { before: first.next, ..other_route }, 10).await;
        assert!(second.calls.is_empty() && second.next.is_none());
        let errors = page(gateway, Wanted { only_errors: true, ..Wanted::default() }, 10).await;
        assert_eq!((errors.calls.len(), errors.next), (1, None));
        let plain = page(gateway, Wanted::default(), 10).await;
        assert_eq!((plain.calls.len(), plain.next), (10, Some(at(10).micros())));
    }

    /// A commit whose answer was lost is no second one; another process has numbers of its own.
    async fn a_batch_that_is_written_again_counts_once(gateway) {
        let (mine, now) = (account(gateway).await, gateway.app.now());
        let count = |calls| simgate::domain::call::Count {
            account: mine, hour: now.hour(), method: Method::Get, route: ORDERS.into(), status: 404, code: "ORDER_NOT_FOUND",
            calls, ms: 5, last_at: now,
        };
        for (writer, no, calls) in [("one", 1, 10), ("one", 1, 10), ("one", 2, 1), ("one", 1, 10), ("two", 1, 100)] {
            write(&gateway.app, writer, no, vec![kept(mine, now, 404)], vec![count(calls)]).await;
        }
        let errors = calls::errors(&gateway.app, mine, now).await.unwrap();
        assert_eq!((errors.len(), errors[0].calls), (1, 111));
        assert_eq!(all(gateway, Wanted::default()).await, [kept(mine, now, 404)]);
    }

    async fn when_all_places_are_taken_calls_are_still_counted(gateway) {
        let dropped = async || {
            let text = gateway.get("/metrics").await.text;
            let line = text.lines().find_map(|line| line.strip_prefix("simgate_api_calls_dropped_total{from=\"list\"} "));
            line.map_or(0, |number| number.parse::<i64>().unwrap())
        };
        let before = dropped().await;
        hang(gateway).await;
        let now = gateway.app.now();
        for account in 0..PLACES as i64 / 10 {
            for _ in 0..20 {
                let answered = Answered {
                    account: AccountNo(1_000 + account), key_id: "key_1", method: Method::Get, route: ORDERS, status: 200, code: None,
                    ms: 1, request_id: "r",
                };
                gateway.app.calls.note(&answered, now);
            }
        }
        calls::write_out(&gateway.app).await.unwrap();
        let location = &gateway.app.settings.database;
        assert_eq!(count(location, "COUNT(*)"), PLACES as i64 / 2);
        assert_eq!(counted(location), 2 * PLACES as i64);
        assert!(dropped().await - before >= 3 * PLACES as i64 / 2);
        gateway.sandbox("job", json!({ "job": "calls", "mode": "ok" })).await;
    }

    async fn after_a_week_they_are_forgotten(gateway) {
        gateway.get(&format!("{ORDERS}/ord_x")).await.problem(404);
        calls::write_out(&gateway.app).await.unwrap();
        gateway.pass_time((KEPT_DAYS - 1) * DAY_MS);
        gateway.balance().await;
        assert_eq!(all(gateway, Wanted::default()).await.len(), 2);
        gateway.pass_time(DAY_MS + 2 * 3_600_000);
        let location = &gateway.app.settings.database;
        gateway.until("the older one is forgotten", async || (count(location, "COUNT(*)") == 1 && counted(location) == 1).then_some(())).await;
        assert_eq!(all(gateway, Wanted::default()).await[0].status, 200);
    }

    async fn the_log_can_be_turned_off(gateway) with [("log_api_calls", "false")] {
        gateway.balance().await;
        gateway.get(&format!("{ORDERS}/ord_x")).await.problem(404);
        assert!(all(gateway, Wanted::default()).await.is_empty());
        assert_eq!(counted(&gateway.app.settings.database), 0);
        assert_eq!(gateway.try_sandbox("job", json!({ "job": "calls", "mode": "ok" })).await.status, 400);
    }
}

mod a_shutdown_writes_what_waits {
    use super::*;

    fn check(db: Db) {
        on_place(db, async |place| {
            let (gateway, stop, served) = start_gateway(place, &[]).await;
            hang(&gateway).await;
            gateway.balance().await;
            gateway.get(&format!("{ORDERS}/ord_x")).await.problem(404);
            let location = gateway.app.settings.database.clone();
            assert_eq!((count(&location, "COUNT(*)"), counted(&location)), (0, 0));
            stop.cancel();
            served.await.unwrap();
            assert_eq!(
                (count(&location, "COUNT(*)"), count(&location, "COUNT(refused)"), counted(&location)),
                (2, 1, 2)
            );
        });
    }
    each_database!(check);
}
