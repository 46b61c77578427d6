//! Giving an order back: the supplier decides, and nobody ever has both the money and the eSIM.

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::harness::{Gateway, Reply, both_databases};

const ORDERS: &str = "/api/b2b/v1/orders";
const PLAN: &str = "JP-1GB-7D";
const ROUNDS: usize = 25;
/// After the caller was answered, and before the supplier is given up (`a_cancel_without_an_answer`).
const LATE: i64 = 3_000;

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

async fn cancel(gateway: &Gateway, order: &Value) -> Reply {
    gateway.post(&format!("{ORDERS}/{}/cancel", text(&order["id"])), json!({})).await
}

/// The reason for which a cancel must have been refused.
#[track_caller]
fn reason(reply: &Reply) -> String {
    assert_eq!(reply.problem(409), "NOT_CANCELLABLE");
    text(&reply.json()["reason"]).to_string()
}

async fn find(gateway: &Gateway, order: &Value) -> Value {
    gateway.get(&format!("{ORDERS}/{}", text(&order["id"]))).await.expect(200)["order"].clone()
}

async fn top_up(gateway: &Gateway, order: &Value) -> Reply {
    let path = format!("{ORDERS}/{}/topup", text(&order["iccid"]));
    gateway.post(&path, json!({ "packageCode": format!("{PLAN}-TOPUP") })).await
}

async fn install(gateway: &Gateway, order: &Value, status: &str) -> Reply {
    gateway.try_sandbox("usage", json!({ "iccid": order["iccid"], "status": status })).await
}

/// The status of what an address in an order shows.
async fn shown(gateway: &Gateway, order: &Value, field: &str) -> u16 {
    crate::support::harness::reply(gateway.client.get(text(&order[field]))).await.status
}

async fn check_hidden(gateway: &Gateway, order: &Value) {
    let seen = find(gateway, order).await;
    // Withheld while the cancel is being decided, gone afterwards.
    let hidden = if seen["status"] == "CANCELLING" { 409 } else { 410 };
    for field in ["qrCodeUrl", "installUrl"] {
        assert_eq!(shown(gateway, order, field).await, hidden, "{field}");
    }
    for field in ["smdpAddress", "matchingId", "lpaString"] {
        assert_eq!(seen[field], Value::Null, "{field}");
    }
}

/// Waits for the end of a cancel, with recovery having its turn.
async fn end_of(gateway: &Gateway, order: &Value) -> Value {
    gateway
        .until("the cancel ends", async || {
            let order = find(gateway, order).await;
            gateway.pass_time(1_000);
            (order["status"] != "CANCELLING").then_some(order)
        })
        .await
}

fn cancelled_at_supplier(gateway: &Gateway, order: &Value) -> bool {
    gateway.journalled("cancelled").iter().any(|line| line[1].starts_with(text(&order["id"])))
}

both_databases! {
    async fn a_cancel_gives_everything_back(gateway) {
        let body = json!({ "packageCode": PLAN, "partnerRefId": "regretted" });
        let order = gateway.post(ORDERS, body.clone()).await.expect(200)["order"].clone();
        assert_eq!(order["refundable"]["eligible"], true);
        assert_eq!(shown(gateway, &order, "qrCodeUrl").await, 200);
        let answer = cancel(gateway, &order).await.expect(200);
        assert_eq!(answer["refundedUsd"], order["chargedUsd"]);
        assert_eq!(answer["balanceRemainingUsd"].to_string(), "1000");
        assert_eq!(answer["order"]["status"], "CANCELLED");
        assert!(cancelled_at_supplier(gateway, &order));
        check_hidden(gateway, &order).await;
        assert_eq!(reason(&cancel(gateway, &order).await), "ALREADY_CANCELLED");
        assert_eq!(top_up(gateway, &order).await.problem(409), "ESIM_NOT_ACTIVE");
        assert_eq!(install(gateway, &order, "INSTALLED").await.problem(409), "ESIM_NOT_ACTIVE");
        let usage = gateway.get(&format!("{ORDERS}/{}/usage", text(&order["iccid"]))).await.expect(200);
        assert_eq!(usage["status"], "CANCELLED");
        // The reference of a cancelled order is not free: it still names that order.
        let replay = gateway.post(ORDERS, body).await;
        assert_eq!(replay.expect(200)["order"]["status"], "CANCELLED");
        assert_eq!(replay.header("idempotent-replayed"), "true");
        assert_eq!(gateway.balance().await, "1000");
        let stranger = gateway.partner("Somebody Else", Usd::ZERO).await.1;
        let path = format!("{ORDERS}/{}/cancel", text(&order["id"]));
        let reply = gateway.send_as(&stranger, "POST", &path, Some(json!({}))).await;
        assert_eq!(reply.problem(404), "ORDER_NOT_FOUND");
    }

    async fn what_cannot_be_cancelled_says_why(gateway) with [("ip_rate_limit", "0")] {
        for (status, expected) in [
            ("INSTALLED", "DOWNLOADED"),
            ("ACTIVE", "USED"),
            ("DEPLETED", "USED"),
            ("EXPIRED", "EXPIRED"),
        ] {
            let order = gateway.order(PLAN).await;
            install(gateway, &order, status).await.expect(200);
            let balance = gateway.balance().await;
            assert_eq!(reason(&cancel(gateway, &order).await), expected, "{status}");
            assert_eq!(find(gateway, &order).await["status"], "FULFILLED");
            assert_eq!(shown(gateway, &order, "qrCodeUrl").await, 200);
            assert_eq!(gateway.balance().await, balance);
        }
        let topped_up = gateway.order(PLAN).await;
        top_up(gateway, &topped_up).await.expect(200);
        assert_eq!(reason(&cancel(gateway, &topped_up).await), "TOPPED_UP");
        assert_eq!(find(gateway, &topped_up).await["refundable"]["reason"], "TOPPED_UP");

        let kept = gateway.order(PLAN).await;
        gateway.supplier("reject").await;
        assert_eq!(reason(&cancel(gateway, &kept).await), "SUPPLIER_CANNOT_CANCEL");
        assert_eq!(find(gateway, &kept).await["status"], "FULFILLED");
        let refused = gateway.post(ORDERS, json!({ "packageCode": PLAN, "partnerRefId": "refused" })).await;
        assert_eq!(refused.problem(502), "SUPPLIER_REJECTED");
        let failed = gateway.get(&format!("{ORDERS}?partnerRefId=refused")).await.expect(200)["orders"][0].clone();
        assert_eq!(reason(&cancel(gateway, &failed).await), "ALREADY_CANCELLED");

        gateway.supplier("ok").await;
        // What was kept is still good for a cancel.
        assert_eq!(cancel(gateway, &kept).await.expect(200)["order"]["status"], "CANCELLED");
        assert!(gateway.journalled("cancelled").iter().all(|line| line[1].starts_with(text(&kept["id"]))));
    }

    async fn what_is_not_delivered_yet_cannot_be_cancelled(gateway)
    with [("answer_within_ms", "500"), ("supplier_timeout_ms", "1000"), ("ip_rate_limit", "0")] {
        gateway.supplier("timeout").await;
        let open = gateway.post(ORDERS, json!({ "packageCode": PLAN })).await.expect(202)["order"].clone();
        assert_eq!(reason(&cancel(gateway, &open).await), "PROVISIONING");
        assert!(gateway.journalled("cancelled").is_empty());
    }

    /// The supplier sells the profile to a phone or takes it back; of the two, exactly one happens.
    async fn cancel_against_install(gateway) with [("rate_limit", "0"), ("ip_rate_limit", "0")] {
        let (mut refunds, mut installs) = (0, 0);
        for round in 0..ROUNDS {
            let order = gateway.order(PLAN).await;
            let before = Usd::parse(&gateway.balance().await).unwrap();
            let price = Usd::parse(&order["chargedUsd"].to_string()).unwrap();
            let (cancelled, installed) = if round % 2 == 0 {
                join(cancel(gateway, &order), install(gateway, &order, "INSTALLED")).await
            } else {
                let (installed, cancelled) =
                    join(install(gateway, &order, "INSTALLED"), cancel(gateway, &order)).await;
                (cancelled, installed)
            };
            let after = Usd::parse(&gateway.balance().await).unwrap();
            if cancelled.status == 200 {
                assert_eq!(installed.problem(409), "ESIM_NOT_ACTIVE");
                assert_eq!(after, before.plus(price));
                check_hidden(gateway, &order).await;
                refunds += 1;
            } else {
                assert_eq!(reason(&cancelled), "DOWNLOADED");
                installed.expect(200);
                assert_eq!(after, before);
                assert_eq!(find(gateway, &order).await["status"], "FULFILLED");
                installs += 1;
            }
            assert_eq!(cancelled_at_supplier(gateway, &order), cancelled.status == 200);
        }
        eprintln!("{refunds} cancels and {installs} installs won");
    }

    async fn cancel_against_topup(gateway) with [("rate_limit", "0"), ("ip_rate_limit", "0")] {
        for round in 0..ROUNDS {
            let order = gateway.order(PLAN).await;
            let (cancelled, topped_up) = if round % 2 == 0 {
                join(cancel(gateway, &order), top_up(gateway, &order)).await
            } else {
                let (topped_up, cancelled) = join(top_up(gateway, &order), cancel(gateway, &order)).await;
                (cancelled, topped_up)
            };
            let seen = find(gateway, &order).await;
            if cancelled.status == 200 {
                assert_eq!(topped_up.problem(409), "ESIM_NOT_ACTIVE");
                assert_eq!((&seen["status"], &seen["topUps"]), (&json!("CANCELLED"), &json!([])));
            } else {
                topped_up.expect(200);
                assert_eq!(reason(&cancelled), "TOPPED_UP");
                assert_eq!(seen["status"], "FULFILLED");
            }
        }
    }

    async fn many_cancels_give_back_once(gateway) with [("rate_limit", "0")] {
        let order = gateway.order(PLAN).await;
        let replies = join_all((0..16).map(|_| cancel(gateway, &order))).await;
        assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
        for reply in replies.iter().filter(|reply| reply.status != 200) {
            assert_eq!(reason(reply), "ALREADY_CANCELLED");
        }
        assert_eq!(gateway.balance().await, "1000");
    }

    /// No answer: the cancel goes on without its caller, and nothing else may happen to the order meanwhile.
    async fn a_cancel_without_an_answer(gateway)
    with [("answer_within_ms", "500"), ("supplier_timeout_ms", "5000"), ("ip_rate_limit", "0")] {
        for (mode, delay_ms, end) in [
            ("timeout", 0, "CANCELLED"),
            ("malformed", 0, "CANCELLED"),
            ("unavailable", 0, "CANCELLED"),
            ("slow", 60_000, "CANCELLED"),
            ("slow", LATE, "CANCELLED"),
        ] {
            eprintln!("cancel, supplier {mode} {delay_ms}");
            let order = gateway.order(PLAN).await;
            let before = gateway.balance().await;
            gateway.sandbox("supplier", json!({ "mode": mode, "delayMs": delay_ms })).await;
            let reply = cancel(gateway, &order).await;
            let answer = reply.expect(202);
            assert_eq!(answer["refundedUsd"], 0);
            assert_eq!(answer["order"]["status"], "CANCELLING");
            assert_eq!(reply.header("location"), format!("{ORDERS}/{}", text(&order["id"])));
            assert!(!reply.header("retry-after").is_empty());
            if delay_ms != LATE {
                assert_eq!(answer["balanceRemainingUsd"].to_string(), before);
                check_hidden(gateway, &order).await;
                assert_eq!(reason(&cancel(gateway, &order).await), "ALREADY_CANCELLED");
                assert_eq!(top_up(gateway, &order).await.problem(409), "ESIM_NOT_ACTIVE");
                assert_eq!(gateway.balance().await, before);
            }
            gateway.supplier("ok").await;
            assert_eq!(end_of(gateway, &order).await["status"], end);
            let back = Usd::parse(&before).unwrap().plus(Usd::parse(&order["chargedUsd"].to_string()).unwrap());
            assert_eq!(gateway.balance().await, back.to_string(), "given back once");
            assert!(cancelled_at_supplier(gateway, &order));
            check_hidden(gateway, &order).await;
        }
    }

    /// Installed before the supplier could be asked again: the customer keeps the eSIM, we keep the money.
    async fn a_cancel_that_lost_to_a_phone(gateway)
    with [("answer_within_ms", "500"), ("supplier_timeout_ms", "1000"), ("ip_rate_limit", "0")] {
        let order = gateway.order(PLAN).await;
        let before = gateway.balance().await;
        gateway.supplier("unavailable").await;
        cancel(gateway, &order).await.expect(202);
        install(gateway, &order, "INSTALLED").await.expect(200);
        gateway.supplier("ok").await;
        assert_eq!(end_of(gateway, &order).await["status"], "FULFILLED");
        assert_eq!(gateway.balance().await, before);
        assert_eq!(shown(gateway, &order, "qrCodeUrl").await, 200);
        assert!(!cancelled_at_supplier(gateway, &order));
    }

    /// The supplier took the profile back without a word; that it refuses other cancels later changes nothing.
    async fn a_cancel_that_was_done_stays_done(gateway)
    with [("answer_within_ms", "500"), ("supplier_timeout_ms", "1000"), ("ip_rate_limit", "0")] {
        let order = gateway.order(PLAN).await;
        gateway.supplier("timeout").await;
        cancel(gateway, &order).await.expect(202);
        gateway.supplier("reject").await;
        assert_eq!(end_of(gateway, &order).await["status"], "CANCELLED");
        assert_eq!(gateway.balance().await, "1000");
    }
}
