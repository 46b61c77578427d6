//! Cancels that people at the supplier decide: a request goes out once, the order waits with its code withheld, and the
//! operator enters the supplier's word.

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::domain::order::OrderStatus;
use simgate::ops::{operator, recover};

use crate::support::command_line::{ok, simgate};
use crate::support::harness::{Gateway, Reply, both_databases};

const ORDERS: &str = "/api/b2b/v1/orders";
const PLAN: &str = "JP-1GB-7D";

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

async fn cancel(gateway: &Gateway, order: &Value) -> Reply {
    gateway.post(&format!("{ORDERS}/{}/cancel", text(&order["id"])), json!({})).await
}

async fn find(gateway: &Gateway, order: &Value) -> Value {
    gateway.get(&format!("{ORDERS}/{}", text(&order["id"]))).await.expect(200)["order"].clone()
}

/// An order whose cancel is under review.
async fn under_review(gateway: &Gateway) -> Value {
    gateway.supplier("reviewed").await;
    let order = gateway.order(PLAN).await;
    let answer = cancel(gateway, &order).await.expect(202);
    assert_eq!((&answer["order"]["status"], &answer["refundedUsd"]), (&json!("CANCELLING"), &json!(0)));
    order
}

/// How often the supplier was asked to review something, repeats included.
fn requests(gateway: &Gateway) -> usize {
    gateway.journal().iter().filter(|line| line[0] == "requested").count()
}

/// Everything that recovery does in some minutes.
async fn some_minutes(gateway: &Gateway) {
    for _ in 0..3 {
        gateway.pass_time(120_000);
        recover::round(&gateway.app).await.unwrap();
    }
}

async fn refused(gateway: &Gateway, args: &[&str]) -> String {
    simgate(gateway, &[args, &["--json"]].concat()).refused(1, "NOT_CANCELLABLE")
}

both_databases! {
    async fn a_request_is_sent_once_and_the_code_is_withheld(gateway) {
        let order = under_review(gateway).await;
        let id = text(&order["id"]);
        assert_eq!(requests(gateway), 1);
        some_minutes(gateway).await;
        operator::retry_order(&gateway.app, "test", id).await.unwrap();
        assert_eq!(cancel(gateway, &order).await.problem(409), "NOT_CANCELLABLE");
        // Also when the supplier would take it back at once now: people are deciding about it.
        gateway.supplier("ok").await;
        some_minutes(gateway).await;
        assert_eq!((requests(gateway), gateway.journalled("cancelled").len()), (1, 0));
        let waiting = find(gateway, &order).await;
        assert_eq!((&waiting["status"], &waiting["lpaString"]), (&json!("CANCELLING"), &Value::Null));
        let shown = ok(gateway, &format!("order show {id}"));
        assert_eq!(text(&shown["cancelRequest"]).len(), 12);
        assert_eq!(gateway.get(&format!("{ORDERS}/{}/usage", text(&order["iccid"]))).await.expect(200)["status"], "NEW");
        ok(gateway, &format!("order cancelled {id} --returned 0.5"));
    }

    async fn a_cancel_without_an_answer_is_ended_by_hand(gateway)
        with [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")]
    {
        let before = gateway.balance().await;
        let order = gateway.order(PLAN).await;
        let id = text(&order["id"]);
        gateway.supplier("timeout").await;
        cancel(gateway, &order).await.expect(202);
        let early = refused(gateway, &["order", "cancelled", id, "--returned", "0", "--despite-usage"]).await;
        assert!(early.contains("review"), "{early}");
        gateway.pass_time(31 * 60_000);
        let ended = operator::order_cancelled(&gateway.app, "test", id, Usd::ZERO, true).await.unwrap();
        assert_eq!((ended.order.status, gateway.balance().await), (OrderStatus::Cancelled, before));
        gateway.supplier("ok").await;
        some_minutes(gateway).await;
        assert_eq!(find(gateway, &order).await["status"], "CANCELLED");
    }

    async fn the_money_goes_back_when_the_supplier_agrees(gateway) {
        let before = gateway.balance().await;
        let order = under_review(gateway).await;
        let number = text(&order["orderNo"]);
        let told = ok(gateway, &format!("order cancelled {number} --returned 0.4"));
        assert_eq!((&told["status"], told["refundedUsd"].to_string()), (&json!("CANCELLED"), order["chargedUsd"].to_string()));
        assert_eq!((gateway.balance().await, told["returnedUsd"].to_string()), (before, "0.4".into()));
        let deed = ok(gateway, "audit list --command 'order cancelled'")["deeds"][0].clone();
        assert_eq!((&deed["before"], &deed["after"]), (&json!("CANCELLING"), &json!("CANCELLED")));
        assert!(text(&deed["detail"]).contains("0.40 USD"), "{deed}");
        refused(gateway, &["order", "cancelled", number, "--returned", "0.4"]).await;
        assert_eq!(requests(gateway), 1);
    }

    async fn the_code_is_back_when_the_supplier_refuses(gateway) {
        let before = gateway.balance().await;
        let order = under_review(gateway).await;
        let id = text(&order["id"]);
        let told = ok(gateway, &format!("order cancel-refused {id} --reason 'it was opened'"));
        assert_eq!(told["status"], "FULFILLED");
        let back = find(gateway, &order).await;
        assert_eq!((&back["status"], &back["lpaString"]), (&json!("FULFILLED"), &order["lpaString"]));
        assert!(gateway.balance().await != before, "it is paid");
        let deed = ok(gateway, "audit list --command 'order cancel-refused'")["deeds"][0].clone();
        assert!(text(&deed["detail"]).contains("it was opened") && deed["after"] == "FULFILLED", "{deed}");
        // No second request in the life of an order, whoever asks.
        let again = cancel(gateway, &order).await;
        assert_eq!((again.problem(409), text(&again.json()["reason"])), ("NOT_CANCELLABLE".into(), "SUPPLIER_CANNOT_CANCEL"));
        refused(gateway, &["order", "cancel", id, "--reason", "x"]).await;
        refused(gateway, &["order", "cancel-refused", id, "--reason", "x"]).await;
        assert_eq!(requests(gateway), 1);
    }

    async fn a_used_esim_is_never_offered_for_review(gateway) {
        gateway.supplier("reviewed").await;
        for (status, reason) in [("INSTALLED", "DOWNLOADED"), ("ACTIVE", "USED"), ("EXPIRED", "EXPIRED")] {
            let order = gateway.order(PLAN).await;
            gateway.sandbox("usage", json!({ "iccid": order["iccid"], "status": status })).await;
            let answer = cancel(gateway, &order).await;
            assert_eq!((answer.problem(409), text(&answer.json()["reason"])), ("NOT_CANCELLABLE".into(), reason));
            assert_eq!(find(gateway, &order).await["status"], "FULFILLED");
        }
        assert_eq!(requests(gateway), 0);
    }

    async fn what_is_used_under_review_is_for_the_operator_to_decide(gateway) {
        let order = under_review(gateway).await;
        let id = text(&order["id"]);
        gateway.sandbox("usage", json!({ "iccid": order["iccid"], "usedGb": 0.1 })).await;
        gateway.until("its meter is read meanwhile", async || {
            some_minutes(gateway).await;
            let shown = ok(gateway, &format!("order show {id}"));
            (shown["esim"]["usage"]["status"] == "ACTIVE").then_some(())
        }).await;
        let why = refused(gateway, &["order", "cancelled", id, "--returned", "0.1"]).await;
        assert!(why.contains("--despite-usage"), "{why}");
        assert_eq!(find(gateway, &order).await["status"], "CANCELLING");
        assert_eq!(ok(gateway, &format!("order cancelled {id} --returned 0 --despite-usage"))["status"], "CANCELLED");
    }

    async fn only_what_is_under_review_can_be_decided(gateway) {
        let order = gateway.order(PLAN).await;
        let id = text(&order["id"]);
        refused(gateway, &["order", "cancelled", id, "--returned", "0.1"]).await;
        refused(gateway, &["order", "cancel-refused", id, "--reason", "x"]).await;
        gateway.supplier("reviewed").await;
        cancel(gateway, &order).await.expect(202);
        // More than it cost is a typing error.
        let much = simgate(gateway, &["order", "cancelled", id, "--returned", "1000", "--json"]).refused(1, "INVALID_REQUEST");
        assert!(much.contains("returned must be at most"), "{much}");
        let below = simgate(gateway, &["order", "cancelled", id, "--returned=-1", "--json"]);
        assert_eq!(below.exit, 2, "{}", below.stderr);
        ok(gateway, &format!("order cancel-refused {id} --reason x"));
    }

    async fn a_cancel_that_waits_becomes_a_request_when_the_supplier_is_back(gateway) with [("answer_within_ms", "1000"), ("supplier_timeout_ms", "1500")] {
        let order = gateway.order(PLAN).await;
        gateway.supplier("unavailable").await;
        cancel(gateway, &order).await.expect(202);
        assert_eq!((requests(gateway), find(gateway, &order).await["status"].clone()), (0, json!("CANCELLING")));
        gateway.supplier("reviewed").await;
        gateway.until("the request is sent", async || {
            gateway.pass_time(10_000);
            recover::round(&gateway.app).await.unwrap();
            (requests(gateway) > 0).then_some(())
        }).await;
        some_minutes(gateway).await;
        assert_eq!(requests(gateway), 1);
        ok(gateway, &format!("order cancelled {} --returned 0.1", text(&order["id"])));
    }
}
