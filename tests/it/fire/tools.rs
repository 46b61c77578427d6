//! Tools whose callers go away, come back, or come all at once: everything is done once.

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::money::Usd;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::buying::{PLAN, fund, usd};
use crate::support::harness::{Gateway, both_databases, open_orders};
use crate::support::tool_caller::{MCP, buy, call, failure, fine, log_in, rpc, tool_call};

const ANN: &str = "ann@example.com";

async fn ann(gateway: &Gateway) -> String {
    let token = log_in(gateway, ANN).await;
    fund(gateway, ANN, Usd::dollars(100)).await;
    token
}

async fn balance(gateway: &Gateway, token: &str) -> Usd {
    usd(&fine(call(gateway, "get_wallet_balance", json!({ "token": token })).await)["balanceUsd"])
}

/// Sends a message on a socket of its own, which is still open.
async fn send(gateway: &Gateway, message: &Value) -> TcpStream {
    let host = gateway.base.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(host).await.unwrap();
    let body = message.to_string();
    let head = format!(
        "POST {MCP} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

/// Until the supplier is being asked, or has answered already.
async fn until_begun(gateway: &Gateway, done: &str) {
    gateway
        .until("it has begun", async || {
            let open = open_orders(&gateway.app).await;
            (open == 1 || !gateway.journalled(done).is_empty()).then_some(())
        })
        .await;
}

both_databases! {
    /// The socket is killed while the supplier is being asked; with the key the same purchase comes back.
    async fn a_killed_socket_is_charged_once(gateway) {
        let token = ann(gateway).await;
        gateway.sandbox("supplier", json!({ "mode": "slow", "delayMs": 500 })).await;
        let purchase = tool_call("purchase_esim_with_wallet", json!({ "packageCode": PLAN, "token": token, "idempotencyKey": "trip-1" }));
        let socket = send(gateway, &purchase).await;
        until_begun(gateway, "sold").await;
        drop(socket);
        let arguments = purchase["params"]["arguments"].clone();
        let again = fine(call(gateway, "purchase_esim_with_wallet", arguments).await);
        assert_eq!((&again["purchased"], &again["replayed"], &again["order"]["status"]), (&json!(true), &json!(true), &json!("FULFILLED")));
        assert_eq!(balance(gateway, &token).await, Usd::dollars(100).minus(usd(&again["order"]["chargedUsd"])));
        assert_eq!(gateway.journalled("sold").len(), 1);
        let listed = fine(call(gateway, "get_user_orders", json!({ "token": token })).await);
        assert_eq!(listed["total"], 1);
    }

    /// Without a key nobody comes back for it, and it is delivered all the same.
    async fn a_purchase_goes_on_without_its_caller(gateway) {
        let token = ann(gateway).await;
        gateway.sandbox("supplier", json!({ "mode": "slow", "delayMs": 300 })).await;
        let socket = send(gateway, &tool_call("purchase_esim_with_wallet", json!({ "packageCode": PLAN, "token": token }))).await;
        until_begun(gateway, "sold").await;
        drop(socket);
        gateway
            .until("it is delivered", async || {
                let listed = fine(call(gateway, "get_user_orders", json!({ "token": token })).await);
                (listed["total"] == 1 && listed["orders"][0]["status"] == "FULFILLED").then_some(())
            })
            .await;
    }

    /// A cancel whose caller was killed is finished, and its key tells how.
    async fn a_killed_cancel_is_refunded_once(gateway) {
        let token = ann(gateway).await;
        let order = buy(gateway, &token).await["orderId"].clone();
        gateway.sandbox("supplier", json!({ "mode": "slow", "delayMs": 500 })).await;
        let arguments = json!({ "orderId": order, "token": token, "idempotencyKey": "back" });
        let socket = send(gateway, &tool_call("cancel_order", arguments.clone())).await;
        until_begun(gateway, "cancelled").await;
        drop(socket);
        let again = fine(call(gateway, "cancel_order", arguments).await);
        assert_eq!((&again["status"], &again["replayed"]), (&json!("CANCELLED"), &json!(true)));
        assert_eq!(balance(gateway, &token).await, Usd::dollars(100));
    }

    /// The supplier says nothing at all: the cancel stays open, its key says so, and recovery ends it.
    async fn a_cancel_without_an_answer_is_ended_by_recovery(gateway) with [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")] {
        let token = ann(gateway).await;
        let order = buy(gateway, &token).await["orderId"].clone();
        gateway.supplier("unavailable").await;
        let arguments = json!({ "orderId": order, "token": token, "idempotencyKey": "back" });
        let open = fine(call(gateway, "cancel_order", arguments.clone()).await);
        assert_eq!((&open["status"], &open["refundedUsd"], &open["replayed"]), (&json!("CANCELLING"), &json!(0), &json!(false)));
        let still = fine(call(gateway, "cancel_order", arguments.clone()).await);
        assert_eq!((&still["status"], &still["replayed"]), (&json!("CANCELLING"), &json!(true)));
        gateway.settle().await;
        let ended = fine(call(gateway, "cancel_order", arguments).await);
        assert_eq!((&ended["status"], &ended["replayed"]), (&json!("CANCELLED"), &json!(true)));
        assert_eq!(balance(gateway, &token).await, Usd::dollars(100));
    }

    /// The supplier sells and says nothing: it is paid for and on its way, and the key tells how it ends.
    async fn a_purchase_without_an_answer_is_ended_by_recovery(gateway) with [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")] {
        let token = ann(gateway).await;
        gateway.supplier("timeout").await;
        let arguments = json!({ "packageCode": PLAN, "token": token, "idempotencyKey": "slow" });
        let open = fine(call(gateway, "purchase_esim_with_wallet", arguments.clone()).await);
        assert_eq!((&open["purchased"], &open["order"]["status"], &open["order"]["lpaString"]), (&json!(true), &json!("PROVISIONING"), &Value::Null));
        let listed = fine(call(gateway, "get_user_orders", json!({ "token": token, "status": "PROVISIONING" })).await);
        assert_eq!(listed["orders"][0]["id"], open["orderId"]);
        let usage = call(gateway, "refresh_esim_usage", json!({ "orderId": open["orderId"], "token": token })).await;
        assert_eq!(failure(&usage), "ESIM_NOT_FOUND");
        gateway.settle().await;
        let ended = fine(call(gateway, "purchase_esim_with_wallet", arguments).await);
        assert_eq!((&ended["orderId"], &ended["order"]["status"], &ended["replayed"]), (&open["orderId"], &json!("FULFILLED"), &json!(true)));
        assert_eq!(balance(gateway, &token).await, Usd::dollars(100).minus(usd(&ended["order"]["chargedUsd"])));
    }

    /// Many at once with one key: one purchase, one cancel.
    async fn a_crowd_with_one_key_is_one(gateway) {
        let token = ann(gateway).await;
        let arguments = json!({ "packageCode": PLAN, "token": token, "idempotencyKey": "once" });
        let message = tool_call("purchase_esim_with_wallet", arguments);
        let answers = join_all((0..16).map(|_| rpc(gateway, &message))).await;
        let bought: Vec<Value> = answers.iter().map(|answer| answer.expect(200)["result"]["structuredContent"].clone()).collect();
        let order = bought[0]["orderId"].clone();
        assert!(bought.iter().all(|bought| bought["orderId"] == order), "{bought:?}");
        assert_eq!(bought.iter().filter(|bought| bought["replayed"] == false).count(), 1);
        assert_eq!(gateway.journalled("sold").len(), 1);
        let message = tool_call("cancel_order", json!({ "orderId": order, "token": token, "idempotencyKey": "back" }));
        let answers = join_all((0..16).map(|_| rpc(gateway, &message))).await;
        for answer in answers {
            assert_eq!(answer.expect(200)["result"]["structuredContent"]["status"], "CANCELLED", "{}", answer.text);
        }
        assert_eq!(balance(gateway, &token).await, Usd::dollars(100));
    }
}
