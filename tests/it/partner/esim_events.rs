//! What readings of eSIMs tell in the event log: another status, and how much of the data is used, once for each fill.

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use simgate::app::App;
use simgate::domain::ids::OrderId;
use simgate::domain::money::Usd;
use simgate::ops::buying::Fills;
use simgate::ops::usage;
use simgate::start::{self, Role};
use simgate::store::orders;

use crate::support::customers;
use crate::support::events::{EVENTS, all, page_of, read_on};
use crate::support::harness::{Gateway, both_databases};
use crate::support::shapes::{ORDERS, mask};

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Plays the phone, and lets the carrier be asked.
async fn play(gateway: &Gateway, order: &Value, phone: Value) {
    move_meter(gateway, order, phone).await;
    look(gateway, order).await;
}

async fn move_meter(gateway: &Gateway, order: &Value, mut phone: Value) {
    phone["iccid"] = order["iccid"].clone();
    gateway.sandbox("usage", phone).await;
}

async fn look(gateway: &Gateway, order: &Value) {
    gateway.get(&format!("{ORDERS}/{}/usage", text(&order["id"]))).await.expect(200);
}

/// One line for each event of an order or its eSIM.
fn lines(events: &[Value], order: &Value) -> Vec<String> {
    let data = |event: &Value, field: &str| match &event["data"][field] {
        Value::Null => String::new(),
        Value::String(word) => format!(" {word}"),
        other => format!(" {other}"),
    };
    let line = |event: &Value| {
        let more = match text(&event["type"]) {
            "esim.status_changed" => data(event, "previousStatus") + &data(event, "status"),
            "esim.usage_threshold" => data(event, "threshold"),
            _ => String::new(),
        };
        format!("{} {}{more}", event["sequence"], text(&event["type"]))
    };
    let is_of = |event: &&Value| [&event["data"]["id"], &event["data"]["orderId"]].contains(&&order["id"]);
    events.iter().filter(is_of).map(line).collect()
}

async fn told(gateway: &Gateway, order: &Value) -> Vec<String> {
    lines(&all(gateway).await, order)
}

/// A second instance on the same database.
async fn second(gateway: &Gateway) -> App {
    start::open(gateway.app.settings.clone(), Role::Server).await.unwrap()
}

/// Lets every instance read every eSIM at the same time, each of them twice.
async fn read_everywhere(apps: &[&App], orders: &[Value]) {
    let read = async |app: &App, order: &Value| {
        let id = OrderId::from_text(text(&order["id"]));
        let wanted = id.clone();
        let found = app.store.read(move |tx| orders::by_id(tx, &wanted)).await.unwrap().unwrap();
        usage::report(app, found.account, &Fills::Order(id)).await.unwrap();
    };
    let read = &read;
    let all = apps.iter().chain(apps).flat_map(|app| orders.iter().map(move |order| read(app, order)));
    join_all(all).await;
}

both_databases! {
    async fn each_threshold_is_told_once_for_each_fill(gateway) {
        let order = gateway.order("JP-5GB-30D").await;
        look(gateway, &order).await;
        play(gateway, &order, json!({ "usedGb": 2.499 })).await;
        let mut expected = vec!["1 order.fulfilled", "2 esim.status_changed NEW ACTIVE"];
        assert_eq!(told(gateway, &order).await, expected);
        play(gateway, &order, json!({ "usedGb": 2.5 })).await;
        expected.push("3 esim.usage_threshold 50");
        assert_eq!(told(gateway, &order).await, expected);
        // Less, and the same again: it was told.
        for used in [1.0, 2.5, 3.5, 3.5] {
            play(gateway, &order, json!({ "usedGb": used })).await;
        }
        assert_eq!(told(gateway, &order).await, expected);
        play(gateway, &order, json!({ "usedGb": 5 })).await;
        look(gateway, &order).await;
        expected.extend([
            "4 esim.status_changed ACTIVE DEPLETED",
            "5 esim.usage_threshold 75",
            "6 esim.usage_threshold 90",
            "7 esim.usage_threshold 100",
        ]);
        assert_eq!(told(gateway, &order).await, expected);
        // Half of the new fill is used from its beginning on.
        let fill = format!("{ORDERS}/{}/topup", text(&order["id"]));
        gateway.post(&fill, json!({ "packageCode": "JP-5GB-30D-TOPUP" })).await.expect(200);
        look(gateway, &order).await;
        expected.push("8 esim.status_changed DEPLETED ACTIVE");
        assert_eq!(told(gateway, &order).await, expected);
        play(gateway, &order, json!({ "usedGb": 7.5 })).await;
        play(gateway, &order, json!({ "usedGb": 10 })).await;
        expected.extend([
            "9 esim.usage_threshold 75",
            "10 esim.status_changed ACTIVE DEPLETED",
            "11 esim.usage_threshold 90",
            "12 esim.usage_threshold 100",
        ]);
        assert_eq!(told(gateway, &order).await, expected);
    }

    /// The first reading may come late, and so may the first one after a top-up.
    async fn nothing_is_lost_while_nobody_looks(gateway) {
        let order = gateway.order("JP-5GB-30D").await;
        play(gateway, &order, json!({ "usedGb": 4 })).await;
        let mut expected = vec![
            "1 order.fulfilled",
            "2 esim.status_changed NEW ACTIVE",
            "3 esim.usage_threshold 50",
            "4 esim.usage_threshold 75",
        ];
        assert_eq!(told(gateway, &order).await, expected);
        let fill = format!("{ORDERS}/{}/topup", text(&order["id"]));
        gateway.post(&fill, json!({ "packageCode": "JP-5GB-30D-TOPUP" })).await.expect(200);
        move_meter(gateway, &order, json!({ "usedGb": 6 })).await;
        play(gateway, &order, json!({ "usedGb": 8 })).await;
        expected.extend(["5 esim.usage_threshold 50", "6 esim.usage_threshold 75"]);
        assert_eq!(told(gateway, &order).await, expected);
    }

    async fn each_change_of_status_is_told_with_the_one_before(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        for status in ["NEW", "INSTALLED", "INSTALLED", "ACTIVE", "EXPIRED"] {
            play(gateway, &order, json!({ "status": status })).await;
        }
        let mut expected = vec![
            "1 order.fulfilled",
            "2 esim.status_changed NEW INSTALLED",
            "3 esim.status_changed INSTALLED ACTIVE",
            "4 esim.status_changed ACTIVE EXPIRED",
        ];
        assert_eq!(told(gateway, &order).await, expected);
        // Whoever plays the phone may begin again, as if it had never been read.
        play(gateway, &order, json!({ "status": "ACTIVE", "usedGb": 0.5 })).await;
        expected.extend(["5 esim.status_changed NEW ACTIVE", "6 esim.usage_threshold 50"]);
        assert_eq!(told(gateway, &order).await, expected);
        play(gateway, &order, json!({ "status": "NEW", "usedGb": 0 })).await;
        play(gateway, &order, json!({ "usedGb": 0.5 })).await;
        expected.extend(["7 esim.status_changed NEW ACTIVE", "8 esim.usage_threshold 50"]);
        assert_eq!(told(gateway, &order).await, expected);
    }

    async fn an_event_shows_the_esim_as_it_stands(gateway) {
        let order = gateway.delivered(json!({ "packageCode": "JP-5GB-30D", "partnerRefId": "booking-7" })).await;
        play(gateway, &order, json!({ "usedGb": 3 })).await;
        let events = all(gateway).await;
        let [_, status, threshold] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(status["data"]["iccid"], order["iccid"]);
        assert_eq!(status["data"]["orderId"], order["id"]);
        insta::assert_json_snapshot!(mask(&status["data"]), @r#"
        {
          "asOf": "…Z",
          "expiresAt": "…Z",
          "iccid": "89…",
          "orderId": "ord_…",
          "partnerRefId": "booking-7",
          "percentUsed": 60.0,
          "previousStatus": "NEW",
          "remainingGb": 2.0,
          "status": "ACTIVE",
          "totalGb": 5.0,
          "usedGb": 3.0
        }
        "#);
        insta::assert_json_snapshot!(mask(&threshold["data"]), @r#"
        {
          "asOf": "…Z",
          "expiresAt": "…Z",
          "iccid": "89…",
          "orderId": "ord_…",
          "partnerRefId": "booking-7",
          "percentUsed": 60.0,
          "remainingGb": 2.0,
          "status": "ACTIVE",
          "threshold": 50,
          "totalGb": 5.0,
          "usedGb": 3.0
        }
        "#);
    }

    async fn events_of_an_order_and_its_esim_are_counted_together(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        play(gateway, &order, json!({ "status": "INSTALLED" })).await;
        play(gateway, &order, json!({ "status": "NEW" })).await;
        gateway.post(&format!("{ORDERS}/{}/cancel", text(&order["id"])), json!({})).await.expect(200);
        look(gateway, &order).await;
        look(gateway, &order).await;
        assert_eq!(told(gateway, &order).await, [
            "1 order.fulfilled",
            "2 esim.status_changed NEW INSTALLED",
            "3 order.cancelled",
            "4 esim.status_changed NEW CANCELLED",
        ]);
    }

    /// A carrier that does not answer changes nothing, so nothing is told.
    async fn a_silent_carrier_tells_nothing(gateway) {
        let order = gateway.order("JP-1GB-7D").await;
        play(gateway, &order, json!({ "status": "INSTALLED" })).await;
        move_meter(gateway, &order, json!({ "usedGb": 1 })).await;
        gateway.supplier("unavailable").await;
        look(gateway, &order).await;
        assert_eq!(told(gateway, &order).await.len(), 2);
        gateway.supplier("ok").await;
        look(gateway, &order).await;
        assert_eq!(told(gateway, &order).await.len(), 2 + 1 + 4);
    }

    async fn everybody_sees_their_own(gateway) {
        let ours = gateway.order("JP-1GB-7D").await;
        let token = customers::ann(gateway, 100).await;
        let id = customers::bought(gateway, &token).await;
        let wanted = OrderId::from_text(&id);
        let found = gateway.app.store.read(move |tx| orders::by_id(tx, &wanted)).await.unwrap().unwrap();
        let anns = json!({ "id": id, "iccid": found.esim.unwrap().iccid });
        move_meter(gateway, &anns, json!({ "usedGb": 0.8 })).await;
        customers::press(gateway, &token, &format!("/api/esims/{id}/usage")).await.expect(200);
        let (page, _) = page_of(&customers::get(gateway, &token, "/api/agentic/events").await);
        let expected = [
            "1 order.fulfilled",
            "2 esim.status_changed NEW ACTIVE",
            "3 esim.usage_threshold 50",
            "4 esim.usage_threshold 75",
        ];
        assert_eq!(lines(&page, &anns), expected);
        assert_eq!(lines(&all(gateway).await, &anns), Vec::<String>::new());
        assert_eq!(told(gateway, &ours).await, ["1 order.fulfilled"]);
        let (_, other) = gateway.partner("Other", Usd::dollars(1)).await;
        let seen = gateway.send_as(&other, "GET", EVENTS, None).await;
        assert_eq!(page_of(&seen).0, Vec::<Value>::new());
        let wanted = "types=esim.usage_threshold,esim.status_changed";
        assert_eq!(read_on(gateway, wanted).await.0, Vec::<Value>::new());
        play(gateway, &ours, json!({ "usedGb": 0.5 })).await;
        assert_eq!(read_on(gateway, wanted).await.0.len(), 2);
    }

    async fn instances_that_read_at_the_same_time_tell_once(gateway) {
        let other = second(gateway).await;
        let sold = join_all((0..6).map(|_| gateway.order("JP-1GB-7D"))).await;
        for used in [0.125, 0.5, 1.0] {
            join_all(sold.iter().map(|order| move_meter(gateway, order, json!({ "usedGb": used })))).await;
            read_everywhere(&[&gateway.app, &other], &sold).await;
        }
        let events = all(gateway).await;
        for order in &sold {
            assert_eq!(lines(&events, order), [
                "1 order.fulfilled",
                "2 esim.status_changed NEW ACTIVE",
                "3 esim.usage_threshold 50",
                "4 esim.status_changed ACTIVE DEPLETED",
                "5 esim.usage_threshold 75",
                "6 esim.usage_threshold 90",
                "7 esim.usage_threshold 100",
            ]);
        }
    }

    /// A cancel and a reading both count among the order's events, whichever is first.
    async fn a_cancel_beside_readings_leaves_no_gap(gateway) {
        let other = second(gateway).await;
        let sold = join_all((0..6).map(|_| gateway.order("JP-1GB-7D"))).await;
        let cancel = async |order: &Value| {
            let path = format!("{ORDERS}/{}/cancel", text(&order["id"]));
            gateway.post(&path, json!({})).await.expect(200);
        };
        let readings = async || {
            for _ in 0..5 {
                read_everywhere(&[&gateway.app, &other], &sold).await;
            }
        };
        join(join_all(sold.iter().map(cancel)), readings()).await;
        read_everywhere(&[&gateway.app, &other], &sold).await;
        let events = all(gateway).await;
        for order in &sold {
            let mut told = lines(&events, order);
            assert_eq!(told[0], "1 order.fulfilled");
            let (order, esim) = ("order.cancelled", "esim.status_changed NEW CANCELLED");
            let orders = [[format!("2 {order}"), format!("3 {esim}")], [format!("2 {esim}"), format!("3 {order}")]];
            told.remove(0);
            assert!(orders.iter().any(|lines| *lines == *told), "{told:?}");
        }
    }
}
