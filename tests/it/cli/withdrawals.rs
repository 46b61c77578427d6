//! "I keep it": a buyer takes a cancel back while people at the supplier decide. The code is back, no money moves, and
//! whatever the supplier does then, nobody has both the eSIM and its price.

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::ops::{operator, recover};

use crate::support::command_line::{ok, simgate};
use crate::support::harness::{Gateway, Reply, booked, both_databases, reply};
use crate::support::{customers, database, tool_caller};

const ORDERS: &str = "/api/b2b/v1/orders";
const PLAN: &str = "JP-1GB-7D";

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn cancel_path(order: &Value) -> String {
    format!("{ORDERS}/{}/cancel", text(&order["id"]))
}

async fn find(gateway: &Gateway, order: &Value) -> Value {
    gateway.get(&format!("{ORDERS}/{}", text(&order["id"]))).await.expect(200)["order"].clone()
}

/// An order whose cancel is under review; the supplier takes everything back at once from now on.
async fn under_review(gateway: &Gateway) -> Value {
    let order = gateway.order(PLAN).await;
    gateway.supplier("reviewed").await;
    gateway.post(&cancel_path(&order), json!({})).await.expect(202);
    gateway.supplier("ok").await;
    order
}

async fn withdraw(gateway: &Gateway, order: &Value) -> Reply {
    reply(gateway.request("DELETE", &cancel_path(order))).await
}

/// What `doctor` says of requests that were withdrawn, if anything.
fn warned(gateway: &Gateway) -> Option<String> {
    let told = simgate(gateway, &["doctor", "--json"]);
    let checks = serde_json::from_str::<Value>(&told.stdout).unwrap()["checks"].clone();
    let checks = checks.as_array().unwrap().clone();
    let mut found = checks.iter().filter(|check| check["check"] == "cancels");
    found.next().map(|check| text(&check["finding"]).to_string())
}

fn refused(gateway: &Gateway, args: &[&str]) -> String {
    simgate(gateway, &[args, &["--json"]].concat()).refused(1, "NOT_CANCELLABLE")
}

both_databases! {
    async fn a_buyer_keeps_it_while_people_decide(gateway) {
        let order = under_review(gateway).await;
        let (id, paid) = (text(&order["id"]), gateway.balance().await);
        assert_eq!((&find(gateway, &order).await["lpaString"], warned(gateway)), (&Value::Null, None));
        let kept = withdraw(gateway, &order).await.expect(200);
        assert_eq!((&kept["order"]["status"], &kept["order"]["lpaString"]), (&json!("FULFILLED"), &order["lpaString"]));
        assert_eq!((withdraw(gateway, &order).await.expect(200), gateway.balance().await), (kept, paid.clone()));
        let found = find(gateway, &order).await;
        assert_eq!((&found["lpaString"], &found["refundable"]["reason"]), (&order["lpaString"], &json!("SUPPLIER_CANNOT_CANCEL")));
        gateway.get(&format!("{ORDERS}/{}/topup-plans", text(&order["iccid"]))).await.expect(200);
        // It is the supplier's no more than before, and no second request is sent.
        gateway.pass_time(600_000);
        recover::round(&gateway.app).await.unwrap();
        let again = gateway.post(&cancel_path(&order), json!({})).await;
        assert_eq!((again.problem(409), text(&again.json()["reason"])), ("NOT_CANCELLABLE".into(), "SUPPLIER_CANNOT_CANCEL"));
        assert_eq!(gateway.journal().iter().filter(|line| line[0] == "requested").count(), 1);
        // The operator is told until the supplier's word is entered.
        assert!(warned(gateway).unwrap().contains(id));
        let shown = ok(gateway, &format!("order show {id}"));
        assert!(shown["cancelWithdrawnAt"].is_string() && shown["cancelRequest"].is_string(), "{shown}");
        assert_eq!(ok(gateway, &format!("order cancel-refused {id} --reason 'told them'"))["status"], "FULFILLED");
        assert_eq!((warned(gateway), gateway.balance().await), (None, paid));
        assert_eq!(ok(gateway, &format!("order show {id}"))["cancelWithdrawnAt"], Value::Null);
        refused(gateway, &["order", "cancel-refused", id, "--reason", "x"]);
        refused(gateway, &["order", "cancelled", id, "--returned", "0.1"]);
        assert_eq!(withdraw(gateway, &order).await.problem(409), "NOT_CANCELLABLE");
    }

    async fn a_refund_for_what_is_kept_is_not_the_buyers(gateway) {
        let order = under_review(gateway).await;
        let (id, paid) = (text(&order["id"]), gateway.balance().await);
        withdraw(gateway, &order).await.expect(200);
        let before = booked(&gateway.app, "supplier:sim").await;
        let told = ok(gateway, &format!("order cancelled {id} --returned 0.4 --despite-usage"));
        assert_eq!(json!([told["status"], told["refundedUsd"]]), json!(["FULFILLED", 0]));
        assert_eq!(booked(&gateway.app, "supplier:sim").await.minus(before), Usd::parse("0.4").unwrap());
        assert_eq!((gateway.balance().await, warned(gateway)), (paid.clone(), None));
        assert_eq!(find(gateway, &order).await["lpaString"], order["lpaString"]);
        assert_eq!(ok(gateway, "audit list --command 'order cancelled'")["deeds"].as_array().unwrap().len(), 1);
        // Once is enough.
        refused(gateway, &["order", "cancelled", id, "--returned", "0.4"]);
        assert_eq!(booked(&gateway.app, "supplier:sim").await.minus(before), Usd::parse("0.4").unwrap());
        // An eSIM that no longer works is the operator's to make good, and no more than its price.
        ok(gateway, &format!("order refund {id} {} --reason gone", order["chargedUsd"]));
        assert_ne!(gateway.balance().await, paid);
    }

    async fn only_what_people_decide_about_is_withdrawn(gateway) with [("answer_within_ms", "1000"), ("supplier_timeout_ms", "1500")] {
        let order = gateway.order(PLAN).await;
        assert_eq!(withdraw(gateway, &order).await.problem(409), "NOT_CANCELLABLE");
        let (_, other) = gateway.partner("Other Travel", Usd::dollars(10)).await;
        let reviewed = under_review(gateway).await;
        let theirs = gateway.send_as(&other, "DELETE", &cancel_path(&reviewed), None).await;
        assert_eq!(theirs.problem(404), "ORDER_NOT_FOUND");
        for unknown in ["ord_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U", "top_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U", "x"] {
            let path = format!("{ORDERS}/{unknown}/cancel");
            assert_eq!(reply(gateway.request("DELETE", &path)).await.problem(404), "ORDER_NOT_FOUND", "{unknown}");
        }
        // While nobody knows whether the request arrived, the supplier's answer may still end it.
        let mark = |request: &str| {
            let sql = format!("UPDATE orders SET cancel_request = {request} WHERE id = '{}'", text(&reviewed["id"]));
            database::execute(&gateway.app.settings.database, &sql).unwrap();
        };
        mark("''");
        assert_eq!(withdraw(gateway, &reviewed).await.problem(409), "NOT_CANCELLABLE");
        mark("'request-1'");
        withdraw(gateway, &reviewed).await.expect(200);
        // A supplier that decides at once, and is silent, decides all the same.
        gateway.supplier("unavailable").await;
        gateway.post(&cancel_path(&order), json!({})).await.expect(202);
        assert_eq!(withdraw(gateway, &order).await.problem(409), "NOT_CANCELLABLE");
        gateway.supplier("ok").await;
    }

    /// Whoever comes first, the buyer has the eSIM or its price.
    async fn keeping_and_the_suppliers_word_at_the_same_moment(gateway) {
        for _ in 0..8 {
            let full = gateway.balance().await;
            let order = under_review(gateway).await;
            let (id, returned) = (text(&order["id"]), Usd::parse("0.1").unwrap());
            let (first, second, decided) = tokio::join!(
                withdraw(gateway, &order),
                withdraw(gateway, &order),
                operator::order_cancelled(&gateway.app, "test", id, returned, false)
            );
            let ended = find(gateway, &order).await;
            let is_kept = ended["status"] == "FULFILLED";
            // One that comes after the operator's word about the other finds nothing to withdraw.
            match [first.status, second.status] {
                [200, 200] => assert!(is_kept),
                [200, 409] | [409, 200] => assert!(is_kept && decided.is_ok()),
                both => assert_eq!((both, is_kept), ([409, 409], false)),
            }
            assert_eq!((gateway.balance().await == full, ended["lpaString"].is_null()), (!is_kept, !is_kept), "{ended}");
            // The operator's word came too early, before the withdrawal, or was about it.
            match decided {
                Ok(outcome) => assert_eq!(outcome.refunded == Usd::ZERO, is_kept),
                Err(_) => assert!(is_kept),
            }
            gateway.supplier("ok").await;
        }
    }

    async fn customers_and_their_agents_keep_it_too(gateway) {
        let token = customers::ann(gateway, 100).await;
        let review = async || {
            let order = customers::bought(gateway, &token).await;
            gateway.supplier("reviewed").await;
            customers::press(gateway, &token, &format!("/api/orders/{order}/cancel")).await.expect(202);
            gateway.supplier("ok").await;
            order
        };
        let order = review().await;
        let paid = customers::balance(gateway, &token).await;
        let path = format!("/api/orders/{order}/cancel");
        for _ in 0..2 {
            let kept = reply(customers::request(gateway, &token, "DELETE", &path)).await.expect(200);
            assert_eq!(json!([kept["status"], kept["refunded"], kept["orderId"]]), json!(["COMPLETED", 0, order]));
        }
        assert_eq!(customers::balance(gateway, &token).await, paid);
        let other = customers::log_in(gateway, "bob@example.com").await;
        let theirs = reply(customers::request(gateway, &other, "DELETE", &path)).await;
        assert_eq!(theirs.problem(404), "ORDER_NOT_FOUND");
        let order = review().await;
        let arguments = json!({ "orderId": order, "token": token, "withdraw": true });
        let dry = json!({ "orderId": order, "token": token, "withdraw": true, "dryRun": true });
        assert_eq!(tool_caller::failure(&tool_caller::call(gateway, "cancel_order", dry).await), "INVALID_REQUEST");
        for replayed in [false, true] {
            let kept = tool_caller::fine(tool_caller::call(gateway, "cancel_order", arguments.clone()).await);
            assert_eq!(json!([kept["status"], kept["refundedUsd"], kept["replayed"]]), json!(["FULFILLED", 0, replayed]));
        }
    }

    /// What was read a moment ago says nothing about now.
    async fn the_meter_is_read_before_money_goes_back(gateway) with [("sandbox_reading_s", "60")] {
        let order = under_review(gateway).await;
        let id = text(&order["id"]);
        let read = async || gateway.get(&format!("{ORDERS}/{}/usage", text(&order["iccid"]))).await.expect(200);
        assert_eq!(read().await["status"], "NEW");
        gateway.sandbox("usage", json!({ "iccid": order["iccid"], "usedGb": 0.1 })).await;
        assert_eq!(read().await["status"], "NEW", "it was read within the pace");
        let why = refused(gateway, &["order", "cancelled", id, "--returned", "0.1"]);
        assert!(why.contains("--despite-usage"), "{why}");
        assert_eq!((read().await["status"].clone(), find(gateway, &order).await["status"].clone()), (json!("ACTIVE"), json!("CANCELLING")));
        assert_eq!(ok(gateway, &format!("order cancelled {id} --returned 0 --despite-usage"))["status"], "CANCELLED");
    }
}
