//! One story for each API. Nothing here depends on the database, so SQLite is enough.

use serde_json::{Value, json};
use simgate::domain::coupon::Coupon;
use simgate::domain::money::Usd;

use super::story::{Call, HASTY, PROBLEM, Story, delete, get, patch, post, press};
use crate::support::buying::fund;
use crate::support::coupons::{self, DEAR};
use crate::support::harness::{Db, Gateway, run};
use crate::support::logins::code;
use crate::webhook_sender::receiver::{Receiver, answer};

const ANN: &str = "ann@example.com";
const ORDER: &str = r#"{"packageCode": "JP-1GB-7D", "partnerRefId": "booking-1001", "maxPriceUsd": 1.5}"#;
const ORDERS: &str = "/api/b2b/v1/orders";
const SEARCH: &str = "/api/products/search?country=Japan%201GB%207%20days&limit=1";
const BALANCE: &str = "/api/b2b/v1/balance";
const WEBHOOKS: &str = "/api/b2b/v1/webhooks";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// From now on the supplier answers only when nobody waits any more.
async fn slow_down(gateway: &Gateway) {
    gateway.sandbox("supplier", json!({ "mode": "slow", "delayMs": 60_000 })).await;
}

fn play(story: impl AsyncFnOnce(&Gateway) + 'static) {
    run(Db::Sqlite, HASTY.to_vec(), story);
}

#[test]
fn a_partner() {
    play(async |gateway| {
        gateway.away_from_midnight();
        let mut story = Story::new(gateway, "partner");
        let (_, key) = gateway.partner("Demo Travel", Usd::dollars(1_000)).await;
        story.login = vec![("x-b2b-key", key.id), ("x-b2b-secret", key.secret)];
        fund_a_wallet(&mut story).await;
        let plans = "/api/b2b/v1/plans?country=JP&query=JP-1GB-7D&limit=1";
        story.tell(get("listPlans", plans)).await;
        let order = story.tell(post("placeOrder", ORDERS, ORDER)).await["order"].clone();
        let iccid = text(&order["iccid"]);
        story.tell(get("getOrder", &format!("{ORDERS}/{}", text(&order["id"])))).await;
        story.tell(get("listOrders", &format!("{ORDERS}?limit=1"))).await;
        gateway.sandbox("usage", json!({ "iccid": iccid, "usedGb": 0.4 })).await;
        story.tell(get("getUsage", &format!("{ORDERS}/{iccid}/usage?history=days"))).await;
        let topup_plans = story.tell(get("listTopUpPlans", &format!("{ORDERS}/{iccid}/topup-plans"))).await;
        let bundle = text(&topup_plans["plans"][0]["packageCode"]);
        let topup = format!("{ORDERS}/{iccid}/topup");
        let more = |reference: &str| json!({ "packageCode": bundle, "partnerRefId": reference }).to_string();
        story.tell(post("topUp", &topup, &more("booking-1001-more"))).await;
        cancel(&mut story).await;
        story.tell(get("listTransactions", &format!("{BALANCE}/transactions?limit=1"))).await;
        for reference in (2_001..).map(|number| format!("booking-{number}")) {
            let path = format!("{ORDERS}/{}/cancel", bought(&story, &reference).await);
            if is_kept(&mut story, &path).await {
                break;
            }
        }

        be_told(&mut story).await;

        let unwanted = bought(&story, "booking-1000").await;
        slow_down(gateway).await;
        let second = ORDER.replace("1001", "1002");
        story.tell(Call { status: 202, ..post("placeOrder", ORDERS, &second) }).await;
        story.tell(Call { status: 202, ..post("topUp", &topup, &more("booking-1001-even-more")) }).await;
        let back = format!("{ORDERS}/{unwanted}/cancel");
        story.tell(Call { status: 202, ..press("cancelOrder", &back) }).await;

        let (_, poor) = gateway.partner("Poor Travel", Usd::parse("0.5").unwrap()).await;
        story.login = vec![("x-b2b-key", poor.id), ("x-b2b-secret", poor.secret)];
        story.tell(Call { status: 402, ..post(PROBLEM, ORDERS, ORDER) }).await;
        story.end();
    });
}

async fn fund_a_wallet(story: &mut Story<'_>) {
    story.tell(get("getBalance", BALANCE)).await;
    let wish = r#"{"amountUsd": 250, "currency": "USDC", "network": "BASE"}"#;
    let invoice = story.tell(post("openDeposit", &format!("{BALANCE}/deposit"), wish)).await;
    let id = text(&invoice["invoiceId"]);
    story.gateway.sandbox("pay", json!({ "invoiceId": id })).await;
    let body = json!({ "invoiceId": id }).to_string();
    let confirmed = |answer: &Value| answer["status"] == "CONFIRMED";
    story.tell_until(post("verifyDeposit", &format!("{BALANCE}/verify-deposit"), &body), confirmed).await;
    story.tell(get("getDeposit", &format!("{BALANCE}/deposit/{id}"))).await;
    story.tell(get("getDepositAddress", &format!("{BALANCE}/address?network=BASE&currency=USDC"))).await;
}

/// Reads the log, and has it sent to an endpoint.
async fn be_told(story: &mut Story<'_>) {
    let log = story.tell(get("listEvents", "/api/b2b/v1/events?types=order.fulfilled&limit=1")).await;
    let receiver = Receiver::start(|_| answer("204 No Content", "")).await;
    story.calm.replace(&receiver.address.to_string(), "hooks.example.com");
    // An endpoint of a live gateway speaks https.
    story.calm.replace("http", "https");
    let wish = json!({
        "url": format!("http://{}/simgate", receiver.address),
        "events": ["order.fulfilled", "order.failed"],
        "description": "Orders to the back office",
    });
    let made = story.tell(post("createWebhook", WEBHOOKS, &wish.to_string())).await;
    let webhook = format!("{WEBHOOKS}/{}", text(&made["webhook"]["id"]));
    let tested = story.tell(press("testWebhook", &format!("{webhook}/test"))).await;
    story.tell(get("listWebhooks", WEBHOOKS)).await;
    let more = r#"{"events": ["order.fulfilled", "order.failed", "topup.completed", "topup.failed"]}"#;
    story.tell(patch("changeWebhook", &webhook, more)).await;
    story.gateway.pass_time(1_000);
    let again = format!("{webhook}/deliveries/{}/redeliver", text(&tested["delivery"]["id"]));
    story.tell(press("redeliver", &again)).await;
    let by_hand = |page: &Value| page["deliveries"][0]["attempt"].is_null();
    story.tell_until(get("listDeliveries", &format!("{webhook}/deliveries?limit=1")), by_hand).await;
    let replay = json!({ "after": log["events"][0]["id"] }).to_string();
    story.tell(post("replayWebhook", &format!("{webhook}/replay"), &replay)).await;
    story.tell(press("rotateWebhookSecret", &format!("{webhook}/rotate"))).await;
    story.tell(delete("deleteWebhook", &webhook)).await;
}

/// Buys another eSIM and waits until it is delivered: the id of its order.
async fn bought(story: &Story<'_>, reference: &str) -> String {
    let wish = ORDER.replace("booking-1001", reference);
    let is_done = async || {
        let answer = story.send(post("placeOrder", ORDERS, &wish)).await;
        (answer.status == 200).then(|| text(&answer.json()["order"]["id"]).to_string())
    };
    story.gateway.until("the order is delivered", is_done).await
}

/// A cancel has no reference to be asked for again: one that was not answered in time is tried with another order.
async fn cancel(story: &mut Story<'_>) {
    for reference in (1_003..).map(|number| format!("booking-{number}")) {
        let path = format!("{ORDERS}/{}/cancel", bought(story, &reference).await);
        let call = press("cancelOrder", &path);
        let answer = story.send(call).await;
        if answer.status == 200 {
            return story.note(call, &answer);
        }
        answer.expect(202);
    }
}

/// Asks people at the supplier to take an eSIM back, and keeps it after all. False when its request was late.
async fn is_kept(story: &mut Story<'_>, cancel: &str) -> bool {
    story.gateway.supplier("reviewed").await;
    story.send(press("cancelOrder", cancel)).await.expect(202);
    story.gateway.supplier("ok").await;
    let call = delete("withdrawCancel", cancel);
    let answer = story.send(call).await;
    if answer.status == 200 {
        story.note(call, &answer);
    }
    answer.status == 200
}

/// Asks for a code, reads it and logs in with it.
async fn log_in(
    story: &mut Story<'_>,
    ask: Call<'_>,
    verify: impl AsyncFnOnce(&mut Story<'_>, &str) -> Value,
) {
    story.tell(ask).await;
    let code = code(story.gateway, ANN).await;
    story.calm.replace(&code, "123456");
    let session = verify(story, &code).await;
    story.login = vec![("authorization", format!("Bearer {}", text(&session["token"])))];
}

#[test]
fn an_agent() {
    play(async |gateway| {
        let mut story = Story::new(gateway, "agentic");
        let auth = "/api/agentic/auth";
        let ask = format!("{auth}/request-otp");
        let email = json!({ "email": ANN }).to_string();
        log_in(&mut story, post("requestOtp", &ask, &email), async |story, code| {
            let body = format!(r#"{{"email": "{ANN}", "otp": "{code}", "agentName": "Trip planner"}}"#);
            story.tell(post("verifyOtp", &format!("{auth}/verify-otp"), &body)).await
        })
        .await;
        story.tell(get("searchProducts", SEARCH)).await;
        buy_as_an_agent(&mut story).await;
        story.tell(get("listPurchases", "/api/agentic/orders?limit=1")).await;
        fund(gateway, ANN, Usd::dollars(20)).await;
        story.tell(get("getWallet", "/api/agentic/wallet")).await;
        story.tell(get("listEvents", "/api/agentic/events?types=order.fulfilled&limit=1")).await;
        let tokens = story.tell(get("listTokens", &format!("{auth}/tokens"))).await;
        let token = format!("{auth}/tokens/{}", text(&tokens["tokens"][0]["id"]));
        story.tell(Call { method: "DELETE", ..get("revokeToken", &token) }).await;
        story.end();
    });
}

/// One purchase from its beginning to its end: the same request tells how it stands.
async fn buy_as_an_agent(story: &mut Story<'_>) {
    let gateway = story.gateway;
    let wish = r#"{"packageCode": "JP-1GB-7D", "preferredNetwork": "BASE", "preferredCurrency": "USDC"}"#;
    let checkout = Call { key: Some("trip-42"), ..post("checkout", "/api/agentic/checkout", wish) };
    let due = story.tell(Call { status: 402, ..checkout }).await;
    let record = format!("/api/agentic/order/{}", text(&due["invoiceId"]));
    slow_down(gateway).await;
    gateway.sandbox("pay", json!({ "invoiceId": due["invoiceId"] })).await;
    let is = async |status: &str| {
        let found = story.send(get("getPurchase", &record)).await.expect(200);
        (found["status"] == status).then_some(())
    };
    gateway.until("it is paid", async || is("PROCESSING").await).await;
    story.tell(Call { status: 202, ..checkout }).await;
    gateway.supplier("ok").await;
    let delivered = |purchase: &Value| purchase["status"] == "COMPLETED";
    story.tell_until(get("getPurchase", &record), delivered).await;
    story.tell(checkout).await;
}

#[test]
fn a_customer() {
    play(async |gateway| {
        let mut story = Story::new(gateway, "consumer");
        story.tell(get("searchProducts", SEARCH)).await;
        story.tell(get("getKnowledge", "/api/mcp/knowledge")).await;
        let email = json!({ "email": ANN }).to_string();
        log_in(&mut story, post("sendCode", "/api/auth/otp/send", &email), async |story, code| {
            let body = format!(r#"{{"email": "{ANN}", "code": "{code}"}}"#);
            story.tell(post("verifyCode", "/api/auth/otp/verify", &body)).await
        })
        .await;
        fund(gateway, ANN, Usd::dollars(50)).await;
        let summer = Coupon {
            description: "Ten percent off for the summer".into(),
            ends_at: Some(gateway.app.now().plus_days(90)),
            ..coupons::plain(gateway, "SUMMER", 10)
        };
        coupons::make(gateway, summer).await;
        let coupon = format!(r#"{{"code": "SUMMER", "packageCode": "{DEAR}"}}"#);
        story.tell(post("validateCoupon", "/api/discount/validate", &coupon)).await;
        story.tell(get("getBalance", "/api/wallet/balance")).await;
        buy_as_a_customer(&mut story).await;
        story.end();
    });
}

/// Where the order of this call, which is delivered then, can be cancelled.
async fn way_back(story: &Story<'_>, order: Call<'_>) -> String {
    let is_done = async || {
        let answer = story.send(order).await;
        (answer.status == 200).then(|| text(&answer.json()["orderId"]).to_string())
    };
    format!("/api/orders/{}/cancel", story.gateway.until("the order is delivered", is_done).await)
}

async fn buy_as_a_customer(story: &mut Story<'_>) {
    let wish = r#"{"packageCode": "JP-1GB-7D"}"#;
    let order = Call { key: Some("trip-42"), ..post("placeOrder", "/api/orders", wish) };
    let bought = story.tell(order).await;
    story.tell(get("listTransactions", "/api/wallet/transactions?limit=1")).await;
    story.tell(get("listOrders", "/api/orders?limit=1")).await;
    story.gateway.sandbox("usage", json!({ "iccid": bought["iccid"], "usedGb": 0.4 })).await;
    let esim = format!("/api/esims/{}", text(&bought["orderId"]));
    story.tell(press("refreshUsage", &format!("{esim}/usage"))).await;
    let topup = format!("{esim}/topup");
    let packages = story.tell(get("listTopUps", &topup)).await;
    let more = json!({ "packageCode": packages["packages"][0]["packageCode"] }).to_string();
    let more = post("topUp", &topup, &more);
    story.tell(Call { key: Some("trip-42-more"), ..more }).await;

    let mut unwanted = Vec::new();
    for key in ["trip-43", "trip-44"] {
        unwanted.push(way_back(story, Call { key: Some(key), ..order }).await);
    }
    story.tell(Call { key: Some("cancel-43"), ..press("cancelOrder", &unwanted[0]) }).await;
    for key in (46..).map(|number| format!("trip-{number}")) {
        let kept = way_back(story, Call { key: Some(&key), ..order }).await;
        if is_kept(story, &kept).await {
            break;
        }
    }
    slow_down(story.gateway).await;
    story.tell(Call { status: 202, ..press("cancelOrder", &unwanted[1]) }).await;
    story.tell(Call { status: 202, key: Some("trip-45"), ..order }).await;
    story.tell(Call { status: 202, key: Some("trip-42-even-more"), ..more }).await;
}

#[test]
fn the_world_around() {
    play(async |gateway| {
        let mut story = Story::new(gateway, "sandbox");
        let deposit = json!({ "amountUsd": 250, "currency": "USDC" });
        let invoice = gateway.post(&format!("{BALANCE}/deposit"), deposit).await.expect(200);
        let pay = format!(r#"{{"invoiceId": {}}}"#, invoice["invoiceId"]);
        story.tell(post("payInvoice", "/sandbox/pay", &pay)).await;
        let chain = r#"{"network": "POLYGON", "mode": "lagging", "behind": 50}"#;
        story.tell(post("setChain", "/sandbox/chain", chain)).await;
        story.tell(get("getChains", "/sandbox/chain")).await;
        gateway.sandbox("chain", json!({ "network": "POLYGON", "mode": "ok" })).await;
        let order = gateway.order("JP-1GB-7D").await;
        let used = format!(r#"{{"iccid": {}, "usedGb": 0.4}}"#, order["iccid"]);
        story.tell(post("moveUsage", "/sandbox/usage", &used)).await;
        story.tell(post("makeEvent", "/sandbox/events", r#"{"type": "esim.usage_threshold"}"#)).await;
        let slow = r#"{"mode": "slow", "delayMs": 3000, "count": 1}"#;
        story.tell(post("setSupplier", "/sandbox/supplier", slow)).await;
        story.tell(get("getSupplier", "/sandbox/supplier")).await;
        let ask = json!({ "email": ANN });
        gateway.post("/api/agentic/auth/request-otp", ask).await.expect(200);
        story.calm.replace(&code(gateway, ANN).await, "123456");
        story.tell(get("readOutbox", &format!("/sandbox/outbox?email={ANN}"))).await;
        story.tell(post("setJob", "/sandbox/job", r#"{"job": "recover", "mode": "hang"}"#)).await;
        gateway.sandbox("job", json!({ "job": "recover", "mode": "ok" })).await;
        story.end();
    });
}
