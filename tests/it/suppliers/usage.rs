//! Readings: how often carriers are asked, what is known when they are late or silent, and who is read in advance. The
//! simulator can be told how often it lets a profile be read, and counts the questions while it is told to be slow.

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::app::App;
use simgate::domain::esim::{ProfileState, ServiceState, Usage};
use simgate::domain::ids::OrderId;
use simgate::domain::time::Time;
use simgate::ops::buying::Fills;
use simgate::ops::usage;
use simgate::start::{self, Role};
use simgate::store::{esims, orders};

use crate::support::harness::{Gateway, both_databases, reply};
use crate::support::shapes::ORDERS;
use crate::support::{customers, database, tool_caller};

const PLAN: &str = "JP-1GB-7D";
const QUESTIONS: i64 = 100_000;
const MINUTE_MS: i64 = 60_000;

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Lets the carrier count the questions from now on; each answer takes this long.
async fn count_from_now(gateway: &Gateway, delay_ms: i64) {
    let mood = json!({ "mode": "slow", "delayMs": delay_ms, "count": QUESTIONS });
    gateway.sandbox("supplier", mood).await;
}

async fn questions(gateway: &Gateway) -> i64 {
    let mood = reply(gateway.client.get(format!("{}/sandbox/supplier", gateway.base))).await.expect(200);
    QUESTIONS - mood["count"].as_i64().unwrap()
}

async fn usage_of(gateway: &Gateway, order: &Value) -> Value {
    gateway.get(&format!("{ORDERS}/{}/usage", text(&order["iccid"]))).await.expect(200)
}

async fn use_up_to(gateway: &Gateway, order: &Value, gigabytes: f64) {
    gateway.sandbox("usage", json!({ "iccid": order["iccid"], "usedGb": gigabytes })).await;
}

/// A second instance on the same database.
async fn second(gateway: &Gateway) -> App {
    start::open(gateway.app.settings.clone(), Role::Server).await.unwrap()
}

/// Stores a reading, as an instance does that has heard it from a carrier.
async fn hear(app: &App, order: &Value, reading: Usage) {
    let (id, now) = (OrderId::from_text(text(&order["id"])), app.now());
    let told = |_: &Usage, _| Ok("{}".into());
    app.store.write(0, move |tx| esims::save_reading(tx, &id, &reading, now, |_| None, told)).await.unwrap();
}

fn count(gateway: &Gateway, what: &str) -> i64 {
    let sql = format!("SELECT CAST(COUNT(*) AS TEXT) FROM {what}");
    database::rows(&gateway.app.settings.database, &sql)[0][0].parse().unwrap()
}

both_databases! {
    async fn readings_that_somebody_waits_for_leave_room_for_purchases(gateway) {
        let (now, step) = (gateway.app.now(), 500_000);
        let turn = async |now: Time| {
            let latest = now.plus_millis(2_000);
            gateway.app.store.write(0, move |tx| esims::next_turn(tx, "acme", now, step, latest)).await.unwrap()
        };
        for taken in 0..5 {
            assert!(turn(now).await, "{taken}");
        }
        assert!(!turn(now).await, "two seconds are taken");
        assert!(turn(now.plus_millis(1_000)).await);
        assert!(turn(now.plus_millis(-3_600_000)).await, "the clock was set back");
    }

    async fn a_simulated_profile_is_read_at_each_call(gateway) {
        let order = gateway.order(PLAN).await;
        count_from_now(gateway, 0).await;
        for _ in 0..3 {
            usage_of(gateway, &order).await;
        }
        assert_eq!(questions(gateway).await, 3);
        assert_eq!(count(gateway, "esims WHERE due_at IS NOT NULL"), 0, "so it need not be read in advance");
    }

    async fn whoever_asks_at_the_same_time_shares_one_question(gateway) with [("sandbox_reading_s", "60")] {
        let order = gateway.order(PLAN).await;
        count_from_now(gateway, 300).await;
        let crowd = join_all((0..12).map(|_| usage_of(gateway, &order))).await;
        assert!(crowd.iter().all(|report| *report == crowd[0] && report["stale"] == false), "{crowd:?}");
        assert_eq!(questions(gateway).await, 1);
        // What is younger than the pace is the answer, and is not stale.
        use_up_to(gateway, &order, 0.5).await;
        assert_eq!(usage_of(gateway, &order).await, crowd[0]);
        gateway.get(&format!("{ORDERS}/{}/topup-plans", text(&order["iccid"]))).await.expect(200);
        assert_eq!(questions(gateway).await, 1);
        gateway.pass_time(61_000);
        let later = usage_of(gateway, &order).await;
        assert_eq!((&later["usedGb"], &later["stale"]), (&json!(0.5), &json!(false)));
        assert_eq!(questions(gateway).await, 2);
    }

    async fn every_door_keeps_the_pace(gateway) with [("sandbox_reading_s", "60")] {
        let token = customers::ann(gateway, 100).await;
        let order = customers::bought(gateway, &token).await;
        count_from_now(gateway, 0).await;
        let consumer = customers::press(gateway, &token, &format!("/api/esims/{order}/usage")).await.expect(200);
        let arguments = json!({ "orderId": order, "token": token });
        let tool = tool_caller::fine(tool_caller::call(gateway, "refresh_esim_usage", arguments.clone()).await);
        assert_eq!((&consumer["asOf"], &consumer["stale"]), (&tool["asOf"], &tool["stale"]));
        tool_caller::fine(tool_caller::call(gateway, "get_topup_packages", arguments).await);
        let preview = json!({ "orderId": order, "token": token, "dryRun": true });
        tool_caller::fine(tool_caller::call(gateway, "cancel_order", preview).await);
        assert_eq!(questions(gateway).await, 1);
    }

    async fn several_instances_ask_once(gateway) with [("sandbox_reading_s", "60")] {
        let order = gateway.order(PLAN).await;
        let iccid = text(&order["iccid"]).to_string();
        let found = iccid.clone();
        let account = gateway.app.store.read(move |tx| orders::by_iccid(tx, &found)).await.unwrap().unwrap().account;
        count_from_now(gateway, 300).await;
        let others = [second(gateway).await, second(gateway).await];
        let fills = Fills::Iccid(iccid);
        let elsewhere = join_all(others.iter().chain(&others).map(|app| usage::report(app, account, &fills)));
        let (here, elsewhere) = tokio::join!(usage_of(gateway, &order), elsewhere);
        let elsewhere: Vec<_> = elsewhere.into_iter().map(|told| told.unwrap().1).collect();
        assert!(here["stale"] == false && elsewhere.iter().all(|report| !report.stale && report.usage == elsewhere[0].usage));
        assert_eq!(questions(gateway).await, 1);
    }

    async fn a_silent_carrier_is_not_asked_at_each_call(gateway) with [("sandbox_reading_s", "60")] {
        let (known, unknown) = (gateway.order(PLAN).await, gateway.order(PLAN).await);
        use_up_to(gateway, &known, 0.25).await;
        let live = usage_of(gateway, &known).await;
        gateway.pass_time(61_000);
        gateway.sandbox("supplier", json!({ "mode": "unavailable", "count": QUESTIONS })).await;
        let mut expected = live.clone();
        expected["stale"] = json!(true);
        assert_eq!(usage_of(gateway, &known).await, expected);
        let nothing = format!("{ORDERS}/{}/usage", text(&unknown["iccid"]));
        assert_eq!(gateway.get(&nothing).await.problem(503), "SUPPLIER_UNAVAILABLE");
        assert_eq!(questions(gateway).await, 2);
        // Who asked may still wait for an answer: five seconds at most.
        gateway.pass_time(6_000);
        assert_eq!(usage_of(gateway, &known).await, expected);
        assert_eq!(gateway.get(&nothing).await.problem(503), "SUPPLIER_UNAVAILABLE");
        assert_eq!(questions(gateway).await, 2);
        gateway.supplier("ok").await;
        gateway.pass_time(61_000);
        assert_eq!(usage_of(gateway, &known).await["stale"], false);
        gateway.get(&nothing).await.expect(200);
    }

    /// Twenty readings of one life reach two instances in any order.
    async fn a_late_reading_moves_nothing_back(gateway) {
        gateway.away_from_midnight();
        let order = gateway.order(PLAN).await;
        let (now, other) = (gateway.app.now(), second(gateway).await);
        let life = |nth: i64| {
            let (service, profile) = match nth {
                0..=4 => (ServiceState::New, ProfileState::Released),
                5..=9 => (ServiceState::New, ProfileState::Installed),
                10..=18 => (ServiceState::Active, ProfileState::Enabled),
                _ => (ServiceState::Depleted, ProfileState::Enabled),
            };
            let used_mb = (nth - 10).max(0) * 1024 / 9;
            let as_of = now.plus_millis((nth - 20) * 1_000);
            Usage { service, profile: Some(profile), total_mb: 1024, used_mb, as_of, expires_at: None }
        };
        // Both hear all of it, in orders that differ.
        let here = (0..20).map(|nth| hear(&gateway.app, &order, life(nth * 7 % 20)));
        let there = (0..20).map(|nth| hear(&other, &order, life(19 - nth * 3 % 20)));
        tokio::join!(join_all(here), join_all(there));
        gateway.supplier("unavailable").await;
        let told = usage_of(gateway, &order).await;
        assert_eq!(json!([told["status"], told["usedGb"], told["stale"]]), json!(["DEPLETED", 1.0, true]));
        let days = gateway.get(&format!("{ORDERS}/{}/usage?history=days", text(&order["iccid"]))).await.expect(200);
        assert_eq!(days["history"].as_array().unwrap().len(), 1);
        assert_eq!(days["history"][0]["usedGb"], 1.0);
        // Late messages after that: the plan was new, and a phone had just fetched the profile.
        for (nth, late) in [0, 5, 12].into_iter().enumerate() {
            hear([&gateway.app, &other][nth % 2], &order, life(late)).await;
            assert_eq!(usage_of(gateway, &order).await, told);
        }
        let over = Usage { service: ServiceState::ExpiredUsed, ..life(19) };
        hear(&other, &order, over).await;
        let again = Usage { service: ServiceState::Active, as_of: now, ..life(12) };
        hear(&gateway.app, &order, again).await;
        assert_eq!(usage_of(gateway, &order).await["status"], "EXPIRED", "what is over stays over");
    }

    async fn words_that_nobody_knows_do_no_harm(gateway) {
        let order = gateway.order(PLAN).await;
        let reading = |service, profile| Usage { service, profile, total_mb: 1024, used_mb: 0, as_of: gateway.app.now(), expires_at: None };
        gateway.supplier("unavailable").await;
        hear(&gateway.app, &order, reading(ServiceState::Unknown, None)).await;
        assert_eq!(usage_of(gateway, &order).await["status"], "NEW");
        hear(&gateway.app, &order, reading(ServiceState::New, Some(ProfileState::Installed))).await;
        hear(&gateway.app, &order, reading(ServiceState::Unknown, None)).await;
        assert_eq!(usage_of(gateway, &order).await["status"], "INSTALLED", "what is known stays");
        // Metrics are kept from the first time that somebody reads them.
        let metrics = async || reply(gateway.client.get(format!("{}/metrics", gateway.base))).await.text;
        metrics().await;
        simgate::supplier::unknown::note("sim", "status", "HIBERNATING");
        let metrics = metrics().await;
        let counted = metrics.lines().find(|line| line.starts_with("simgate_supplier_unknown_values_total"));
        assert!(counted.is_some_and(|line| line.contains("supplier=\"sim\"") && line.contains("field=\"status\"")), "{metrics}");
    }

    /// Readings from before there were two states mean what they meant.
    async fn older_readings_keep_their_meaning(gateway) {
        let order = gateway.order(PLAN).await;
        gateway.supplier("unavailable").await;
        for status in ["NEW", "INSTALLED", "ACTIVE", "DEPLETED", "EXPIRED", "CANCELLED"] {
            let before = format!(
                "UPDATE esims SET usage_status = '{status}', service_state = NULL, profile_state = NULL, total_mb = 1024,
                 used_mb = 512, as_of = 1800000000000000, readings = 0 WHERE order_id = '{}'",
                text(&order["id"])
            );
            database::execute(&gateway.app.settings.database, &before).unwrap();
            assert_eq!(usage_of(gateway, &order).await["status"], status);
        }
    }

    async fn profiles_that_nobody_asks_for_are_read(gateway)
    with [("sandbox_reading_s", "60"), ("reading_active_s", "600"), ("reading_idle_s", "7200"), ("ip_rate_limit", "0")] {
        let (used, fresh, over, given_back) =
            (gateway.order(PLAN).await, gateway.order(PLAN).await, gateway.order(PLAN).await, gateway.order(PLAN).await);
        let due = "esims WHERE due_at IS NOT NULL";
        assert_eq!(count(gateway, due), 4);
        use_up_to(gateway, &used, 0.25).await;
        gateway.sandbox("usage", json!({ "iccid": over["iccid"], "status": "EXPIRED" })).await;
        gateway.post(&format!("{ORDERS}/{}/cancel", text(&given_back["id"])), json!({})).await.expect(200);
        count_from_now(gateway, 0).await;
        gateway.pass_time(7_201_000);
        // Nobody asked for usage, and yet it is known what can no longer be given back.
        let reason = async |order: &Value| {
            gateway.get(&format!("{ORDERS}/{}", text(&order["id"]))).await.expect(200)["order"]["refundable"]["reason"].clone()
        };
        gateway.until("all are read", async || (count(gateway, "esims WHERE answered_at IS NOT NULL") == 3).then_some(())).await;
        gateway.until("what ended is left alone", async || (count(gateway, due) == 2).then_some(())).await;
        assert_eq!((reason(&used).await, reason(&over).await, reason(&fresh).await), (json!("USED"), json!("EXPIRED"), Value::Null));
        assert_eq!(questions(gateway).await, 3, "a cancelled one is not asked for");
        // The one in use is read again soon, the new one later, and what is over never. An answer counts from when it is
        // stored, so no time passes before that.
        for round in 4..7 {
            gateway.pass_time(601_000);
            gateway.until("it is asked for", async || (questions(gateway).await == round).then_some(())).await;
            let waiting = "esims WHERE asked_at > answered_at";
            gateway.until("its answer is stored", async || (count(gateway, waiting) == 0).then_some(())).await;
        }
        gateway.pass_time(7_201_000);
        gateway.until("both are read", async || (questions(gateway).await == 8).then_some(())).await;
        assert_eq!(count(gateway, due), 2);
    }

    /// However many instances there are, one at a time reads, and a clock that was far ahead keeps nobody from it.
    async fn readings_are_taken_in_turns(gateway) {
        let (other, now) = (second(gateway).await, gateway.app.now());
        let take = async |app: &App, millis: i64| {
            let (at, until) = (now.plus_millis(millis), now.plus_millis(millis + 4_000));
            app.store.write(0, move |tx| esims::take_turn(tx, "one", at, until, until)).await.unwrap()
        };
        assert!(take(&gateway.app, 0).await);
        assert!(!take(&other, 3_999).await && !take(&gateway.app, 1_000).await);
        assert!(take(&other, 4_000).await);
        assert!(take(&other, 10 * MINUTE_MS).await);
        assert!(take(&gateway.app, 5_000).await, "a turn of ten minutes to come was taken by a wrong clock");
    }
}
