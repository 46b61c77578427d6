//! A supplier that refuses, stalls, babbles or repeats itself: no money is lost, no second eSIM is bought, and
//! every caller is told the truth. The supplier's journal is compared with what the gateway says it delivered.

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::ops::{operator, recover};

use crate::support::harness::{Gateway, Reply, both_databases};

const ORDERS: &str = "/api/b2b/v1/orders";
const PLAN: &str = "JP-1GB-7D";
/// After the caller was answered (`answer_within_ms` below), and before its asker gives up.
const LATE: i64 = 3_000;
/// Longer than this process asks (`supplier_timeout_ms` below).
const TOO_SLOW: i64 = 60_000;

/// Counts how often the supplier has answered with a profile.
const ANSWERS: &str = "simgate_supplier_calls_total{call=\"provision\",outcome=\"done\"}";

/// What the supplier is told, what the caller hears, and how the order ends once the supplier behaves again.
struct Case {
    mode: &'static str,
    delay_ms: i64,
    answer: u16,
    code: &'static str,
    end: &'static str,
    /// Whether the supplier has sold before it is asked a second time.
    sells_unheard: bool,
}

const fn case(mode: &'static str, delay_ms: i64, answer: u16, code: &'static str, end: &'static str) -> Case {
    Case { mode, delay_ms, answer, code, end, sells_unheard: false }
}

const fn selling(case: Case) -> Case {
    Case { sells_unheard: true, ..case }
}

const CASES: &[Case] = &[
    case("ok", 0, 200, "", "FULFILLED"),
    case("reject", 0, 502, "SUPPLIER_REJECTED", "FAILED"),
    case("unavailable", 0, 503, "SUPPLIER_UNAVAILABLE", "FAILED"),
    case("slow", 50, 200, "", "FULFILLED"),
    case("slow", LATE, 202, "", "FULFILLED"),
    case("slow", TOO_SLOW, 202, "", "FULFILLED"),
    selling(case("timeout", 0, 202, "", "FULFILLED")),
    selling(case("malformed", 0, 202, "", "FULFILLED")),
    case("duplicate", 0, 202, "", "FULFILLED"),
];

/// Everything that was ever filed under a reference.
async fn filed(gateway: &Gateway, reference: &str) -> Vec<Value> {
    let list = gateway.get(&format!("{ORDERS}?partnerRefId={reference}")).await.expect(200);
    list["orders"].as_array().unwrap().clone()
}

async fn find(gateway: &Gateway, id: &str) -> Value {
    let found = gateway.get(&format!("{ORDERS}/{id}")).await.expect(200);
    if id.starts_with("top_") { found["topUpOrder"].clone() } else { found["order"].clone() }
}

/// Waits for an order's end, with recovery having its turn.
async fn end_of(gateway: &Gateway, id: &str) -> Value {
    gateway
        .until("the order ends", async || {
            let order = find(gateway, id).await;
            gateway.pass_time(1_000);
            (order["status"] != "PROVISIONING" && order["status"] != "CANCELLING").then_some(order)
        })
        .await
}

fn is_202(reply: &Reply, id: &str) {
    reply.expect(202);
    assert_eq!(reply.header("location"), format!("{ORDERS}/{id}"));
    assert!(!reply.header("retry-after").is_empty());
}

async fn check_order(gateway: &Gateway, case: &Case, reference: &str) {
    let price = gateway.price(PLAN).await;
    let before = Usd::parse(&gateway.balance().await).unwrap();
    let sold_before = gateway.journalled("sold").len();
    gateway.sandbox("supplier", json!({ "mode": case.mode, "delayMs": case.delay_ms })).await;
    let body = json!({ "packageCode": PLAN, "partnerRefId": reference });
    let first = gateway.post(ORDERS, body.clone()).await;
    assert_eq!(first.status, case.answer, "{}", first.text);
    if !case.code.is_empty() {
        return check_refused(gateway, case, reference, first, before).await;
    }
    let order = first.json()["order"].clone();
    let id = order["id"].as_str().unwrap().to_string();
    let after = before.minus(price).to_string();
    assert_eq!(first.json()["balanceRemainingUsd"].to_string(), after);
    if case.answer == 202 {
        is_202(&first, &id);
        assert_eq!(order["status"], "PROVISIONING");
        for field in ["iccid", "smdpAddress", "matchingId", "lpaString"] {
            assert_eq!(order[field], Value::Null, "{field}");
        }
        if case.delay_ms != LATE {
            check_waiting(gateway, &body, &order).await;
            let sold = gateway.journalled("sold").iter().any(|line| line[1] == id);
            assert_eq!(sold, case.sells_unheard, "whether the supplier has sold already");
        }
    }
    gateway.supplier("ok").await;
    let ended = end_of(gateway, &id).await;
    assert_eq!(ended["status"], case.end);
    let iccid = ended["iccid"].as_str().unwrap();
    let sold: Vec<_> = gateway.journalled("sold").into_iter().filter(|line| line[1] == id).collect();
    assert_eq!(sold, [["sold", &id, iccid]], "one sale, and it is the one that was delivered");
    assert_eq!(gateway.journalled("sold").len(), sold_before + 1);
    assert_eq!(gateway.balance().await, after, "charged once");
    let replay = gateway.post(ORDERS, body).await;
    assert_eq!(replay.expect(200)["order"]["iccid"], iccid);
    assert_eq!(replay.header("idempotent-replayed"), "true");
    assert_eq!(filed(gateway, reference).await.len(), 1);
}

/// While the supplier is silent: replays wait and hear the same, the pages say so, and the money is held.
async fn check_waiting(gateway: &Gateway, body: &Value, order: &Value) {
    let id = order["id"].as_str().unwrap();
    let replay = gateway.post(ORDERS, body.clone()).await;
    is_202(&replay, id);
    assert_eq!(replay.header("idempotent-replayed"), "true");
    assert_eq!(replay.json()["order"]["id"], id);
    let wallet = gateway.get("/api/b2b/v1/balance").await.expect(200);
    assert_eq!(wallet["heldUsd"], order["chargedUsd"]);
    for (field, word) in [("qrCodeUrl", "prepared"), ("installUrl", "prepared")] {
        let address = order[field].as_str().unwrap();
        let page = crate::support::harness::reply(gateway.client.get(address)).await;
        assert_eq!(page.status, 200);
        assert!(page.text.contains(word), "{field} says that it is being prepared");
    }
    let cancel = gateway.post(&format!("{ORDERS}/{id}/cancel"), json!({})).await;
    assert_eq!(cancel.problem(409), "NOT_CANCELLABLE");
    assert_eq!(cancel.json()["reason"], "PROVISIONING");
}

/// A definite no: the money is back, the order says why, and the reference is free again.
async fn check_refused(gateway: &Gateway, case: &Case, reference: &str, first: Reply, before: Usd) {
    assert_eq!(first.problem(case.answer), case.code);
    assert_eq!(gateway.balance().await, before.to_string());
    let failed = filed(gateway, reference).await;
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["status"], case.end);
    assert_eq!(failed[0]["failure"]["code"], case.code);
    assert_eq!(failed[0]["failure"]["refundedUsd"], failed[0]["chargedUsd"]);
    let page =
        crate::support::harness::reply(gateway.client.get(failed[0]["qrCodeUrl"].as_str().unwrap())).await;
    assert_eq!(page.status, 410);
    assert!(gateway.journal().iter().all(|line| line[1] != failed[0]["id"].as_str().unwrap()));
    gateway.supplier("ok").await;
    let body = json!({ "packageCode": PLAN, "partnerRefId": reference });
    let second = gateway.post(ORDERS, body).await;
    assert_ne!(second.expect(200)["order"]["id"], failed[0]["id"]);
    assert_eq!(second.header("idempotent-replayed"), "");
    assert_eq!(filed(gateway, reference).await.len(), 2);
}

/// What a counter stands at.
async fn counted(gateway: &Gateway, what: &str) -> u64 {
    let text = gateway.get("/metrics").await.text;
    let line = text.lines().find(|line| line.starts_with(what));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// An eSIM to top up, the bundle that fits it, and the gigabytes on it.
async fn esim(gateway: &Gateway) -> (String, String, f64) {
    let iccid = gateway.order(PLAN).await["iccid"].as_str().unwrap().to_string();
    let plans = gateway.get(&format!("{ORDERS}/{iccid}/topup-plans")).await.expect(200);
    let package = plans["plans"][0]["packageCode"].as_str().unwrap().to_string();
    let total = total_gb(gateway, &iccid).await;
    (iccid, package, total)
}

async fn total_gb(gateway: &Gateway, iccid: &str) -> f64 {
    gateway.get(&format!("{ORDERS}/{iccid}/usage")).await.expect(200)["totalGb"].as_f64().unwrap()
}

async fn check_topup(gateway: &Gateway, case: &Case, reference: &str) {
    let (iccid, package, empty) = esim(gateway).await;
    let path = format!("{ORDERS}/{iccid}/topup");
    let before = gateway.balance().await;
    gateway.sandbox("supplier", json!({ "mode": case.mode, "delayMs": case.delay_ms })).await;
    let body = json!({ "packageCode": package, "partnerRefId": reference });
    let first = gateway.post(&path, body.clone()).await;
    assert_eq!(first.status, case.answer, "{}", first.text);
    if !case.code.is_empty() {
        assert_eq!(first.problem(case.answer), case.code);
        gateway.supplier("ok").await;
        assert_eq!(gateway.balance().await, before);
        assert_eq!(total_gb(gateway, &iccid).await, empty);
        let again = gateway.post(&path, body).await;
        assert_eq!(again.expect(200)["topUpOrder"]["status"], "FULFILLED");
        assert_eq!(again.header("idempotent-replayed"), "");
        assert!(total_gb(gateway, &iccid).await > empty);
        return;
    }
    let id = first.json()["topUpOrder"]["id"].as_str().unwrap().to_string();
    if case.answer == 202 {
        is_202(&first, &id);
        assert_eq!(first.json()["topUpOrder"]["status"], "PROVISIONING");
        let replay = gateway.post(&path, body.clone()).await;
        assert_eq!(replay.json()["topUpOrder"]["id"], id);
        assert_eq!(replay.header("idempotent-replayed"), "true");
    }
    gateway.supplier("ok").await;
    assert_eq!(end_of(gateway, &id).await["status"], case.end);
    let full = total_gb(gateway, &iccid).await;
    assert!(full > empty);
    let replay = gateway.post(&path, body).await;
    assert_eq!(replay.expect(200)["topUpOrder"]["id"], id);
    assert_eq!(total_gb(gateway, &iccid).await, full, "filled once");
    let charged = first.json()["topUpOrder"]["chargedUsd"].to_string();
    let left = Usd::parse(&before).unwrap().minus(Usd::parse(&charged).unwrap());
    assert_eq!(gateway.balance().await, left.to_string(), "charged once");
}

async fn check_both(gateway: &Gateway, case: &Case) {
    eprintln!("supplier {} {}", case.mode, case.delay_ms);
    check_order(gateway, case, &format!("order-{}-{}", case.mode, case.delay_ms)).await;
    // A duplicate answer has no meaning here, and a late one twice (usage, then the sale) is too slow by itself.
    if case.mode != "duplicate" && case.delay_ms != LATE {
        check_topup(gateway, case, &format!("top-up-{}-{}", case.mode, case.delay_ms)).await;
    }
}

both_databases! {
    async fn every_mood_that_is_answered_in_time(gateway) with [("ip_rate_limit", "0")] {
        gateway.order(PLAN).await;
        for case in CASES.iter().filter(|case| case.answer != 202) {
            check_both(gateway, case).await;
        }
    }

    async fn every_mood_that_keeps_callers_waiting(gateway)
    with [("answer_within_ms", "600"), ("supplier_timeout_ms", "5000"), ("ip_rate_limit", "0")] {
        gateway.order(PLAN).await;
        for case in CASES.iter().filter(|case| case.answer == 202) {
            check_both(gateway, case).await;
        }
    }

    async fn orders_and_topups_share_references(gateway) {
        let (iccid, package, _) = esim(gateway).await;
        let (other_iccid, ..) = esim(gateway).await;
        let topup = |iccid: &str| format!("{ORDERS}/{iccid}/topup");
        let request = |package: &str, reference: &str| json!({ "packageCode": package, "partnerRefId": reference });
        gateway.post(ORDERS, request(PLAN, "an-order")).await.expect(200);
        gateway.post(&topup(&iccid), request(&package, "a-topup")).await.expect(200);
        let balance = gateway.balance().await;
        for (path, package, reference) in [
            (topup(&iccid), package.as_str(), "an-order"),
            (ORDERS.to_string(), PLAN, "a-topup"),
            (ORDERS.to_string(), package.as_str(), "a-topup"),
            (topup(&other_iccid), package.as_str(), "a-topup"),
            (ORDERS.to_string(), "JP-3GB-30D", "an-order"),
            (ORDERS.to_string(), "NO-SUCH-PLAN", "an-order"),
        ] {
            let reply = gateway.post(&path, request(package, reference)).await;
            assert_eq!(reply.problem(409), "IDEMPOTENCY_CONFLICT", "{path} {package} {reference}");
        }
        assert_eq!(gateway.balance().await, balance);
        let replay = gateway.post(&topup(&iccid), request(&package, "a-topup")).await;
        assert_eq!(replay.expect(200)["topUpOrder"]["partnerRefId"], "a-topup");
        assert_eq!(replay.header("idempotent-replayed"), "true");
    }

    async fn a_refusal_reaches_everyone_who_raced(gateway) with [("rate_limit", "0")] {
        gateway.supplier("reject").await;
        let body = json!({ "packageCode": PLAN, "partnerRefId": "nobody-gets-it" });
        for reply in join_all((0..16).map(|_| gateway.post(ORDERS, body.clone()))).await {
            assert_eq!(reply.problem(502), "SUPPLIER_REJECTED");
        }
        assert_eq!(gateway.balance().await, "1000");
        assert!(filed(gateway, "nobody-gets-it").await.iter().all(|order| order["status"] == "FAILED"));
        assert!(gateway.journal().is_empty());
    }

    /// The operator gives the order up while the supplier is slow; then the answer comes.
    async fn an_answer_after_we_gave_up(gateway) with [("supplier_timeout_ms", "20000")] {
        gateway.sandbox("supplier", json!({ "mode": "slow", "delayMs": 8_000, "count": 1 })).await;
        simgate::telemetry::metrics().expect("the recorder is installed");
        let replayed = counted(gateway, "simgate_orders_replayed_total").await;
        let body = json!({ "packageCode": PLAN, "partnerRefId": "given-up" });
        let callers = join_all((0..5).map(|_| gateway.post(ORDERS, body.clone())));
        let operator = async {
            let open = gateway.until("the order is there", async || filed(gateway, "given-up").await.pop()).await;
            assert_eq!(open["status"], "PROVISIONING");
            let id = open["id"].as_str().unwrap().to_string();
            gateway.until("all wait for it", async || {
                (counted(gateway, "simgate_orders_replayed_total").await >= replayed + 4).then_some(())
            })
            .await;
            operator::fail_order(&gateway.app, "test", &id, "the customer left").await.unwrap();
            id
        };
        let (replies, id) = join(callers, operator).await;
        for reply in &replies {
            assert_eq!(reply.problem(502), "SUPPLIER_REJECTED");
        }
        gateway.until("the profile is given back", async || {
            gateway.journalled("cancelled").iter().any(|line| line[1].starts_with(&id)).then_some(())
        })
        .await;
        assert!(gateway.journalled("sold").iter().any(|line| line[1] == id));
        let order = find(gateway, &id).await;
        assert_eq!((&order["status"], &order["iccid"]), (&json!("FAILED"), &Value::Null));
        assert_eq!(order["failure"]["detail"], "the customer left");
        assert_eq!(gateway.balance().await, "1000");
        let lines = gateway.get("/api/b2b/v1/balance/transactions").await.expect(200);
        let kinds: Vec<_> = lines["transactions"].as_array().unwrap().iter().map(|line| line["type"].clone()).collect();
        assert_eq!(kinds, ["FAILED", "ORDER", "CREDIT"], "the money came back once");
        let fresh = gateway.post(ORDERS, body).await.expect(200);
        assert_ne!(fresh["order"]["id"], id.as_str());
    }

    /// What turns up for a failed order may belong to somebody else: a duplicate answer must not harm its owner.
    async fn a_duplicate_for_an_order_given_up(gateway)
    with [("answer_within_ms", "100"), ("supplier_timeout_ms", "20000"), ("ip_rate_limit", "0")] {
        let owned = gateway.until("an order is delivered", async || {
            let reply = gateway.post(ORDERS, json!({ "packageCode": PLAN, "partnerRefId": "owner" })).await;
            (reply.status == 200).then(|| reply.json()["order"].clone())
        })
        .await;
        simgate::telemetry::metrics().expect("the recorder is installed");
        gateway.supplier("duplicate").await;
        let open = gateway.post(ORDERS, json!({ "packageCode": PLAN })).await.expect(202)["order"].clone();
        let id = open["id"].as_str().unwrap();
        let asked = counted(gateway, ANSWERS).await;
        operator::fail_order(&gateway.app, "test", id, "given up").await.unwrap();
        gateway.until("the supplier was asked again", async || {
            (counted(gateway, ANSWERS).await > asked).then_some(())
        })
        .await;
        gateway.supplier("ok").await;
        // A later write of the same wallet comes after the one that the answer led to.
        gateway.post(ORDERS, json!({ "packageCode": PLAN })).await;
        recover::round(&gateway.app).await.unwrap();
        let usage = gateway.get(&format!("{ORDERS}/{}/usage", owned["iccid"].as_str().unwrap())).await.expect(200);
        assert_eq!(usage["status"], "NEW", "the owner's eSIM was cancelled");
        assert_eq!(find(gateway, id).await["status"], "FAILED");
    }
}
