//! Settling by a facilitator, who may be slow, silent, wrong or lying: the order follows the chain, and the payer pays
//! once.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use simgate::domain::money::Usd;

use super::desk::{borrowed, changed, settings_for};
use super::node::Node;
use super::till::{PLAN, PURSE, node_for, receipt, until_open};
use crate::support::harness::{Db, Gateway, Reply, check_books, on_place, start_gateway, until};
use crate::support::logins::sign_in;
use crate::support::payer::Payer;

/// What a facilitator does with a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// Brings it onto the chain and says so.
    Settles,
    /// Brings it onto the chain and never answers.
    GoesSilent,
    /// Brings it onto the chain and says that it failed.
    DeniesIt,
    /// Says that it is settled, in a transaction that does not exist.
    Lies,
    Refuses,
}

#[derive(Clone)]
struct Desk {
    node: Arc<Node>,
    habit: Arc<Mutex<Habit>>,
    asked: Arc<Mutex<Vec<Value>>>,
}

async fn supported() -> Json<Value> {
    Json(json!({
        "kinds": [
            { "x402Version": 2, "scheme": "exact", "network": "eip155:137" },
            { "x402Version": 1, "scheme": "exact", "network": "base" },
        ],
        "extensions": [],
        "signers": { "eip155:*": [] },
    }))
}

async fn settle(State(desk): State<Desk>, Json(request): Json<Value>) -> Response {
    let payload = &request["paymentPayload"]["payload"];
    assert_eq!(request["x402Version"], 2);
    assert_eq!(request["paymentPayload"]["accepted"], request["paymentRequirements"]);
    assert!(!request.to_string().contains("inv_"), "a facilitator learns no invoice id");
    desk.asked.lock().unwrap().push(request.clone());
    let habit = *desk.habit.lock().unwrap();
    let hash = match habit {
        Habit::Settles | Habit::GoesSilent | Habit::DeniesIt => {
            let header = super::till::encoded(&json!({ "payload": payload }));
            desk.node.send_as(&desk.node.payer, &super::signed_doubts::transfer_call(&header), 500).await
        }
        Habit::Lies | Habit::Refuses => format!("0x{}", "7".repeat(64)),
    };
    let payer = &payload["authorization"]["from"];
    let network = "eip155:137";
    match habit {
        Habit::Settles => {
            desk.node.mine(1).await;
            Json(json!({ "success": true, "transaction": hash, "network": network, "payer": payer }))
                .into_response()
        }
        Habit::Lies => {
            Json(json!({ "success": true, "transaction": hash, "network": network })).into_response()
        }
        Habit::GoesSilent => std::future::pending().await,
        Habit::DeniesIt | Habit::Refuses => {
            let body = json!({ "success": false, "errorReason": "unexpected_settle_error", "transaction": "", "network": network });
            (StatusCode::BAD_REQUEST, Json(body)).into_response()
        }
    }
}

struct Counter {
    desk: Desk,
    gateway: Gateway,
    token: String,
    payer: Payer,
}

impl Counter {
    async fn post(&self, signature: Option<&str>) -> Reply {
        super::till::post(&self.gateway, &self.token, json!({ "packageCode": PLAN }), signature).await
    }

    async fn offer(&self) -> Value {
        until_open(&self.gateway).await;
        until("payments by signature are taken", async || {
            let body = self.post(None).await.expect(402);
            (body["capabilities"]["x402"] == true).then(|| body["accepts"][0].clone())
        })
        .await
    }

    async fn spent(&self) -> Usd {
        PURSE.minus(self.desk.node.balance_of(&self.desk.node.usdc, &self.payer.address).await)
    }
}

fn with_facilitator(db: Db, habit: Habit, test: impl AsyncFnOnce(&Counter) + 'static) {
    on_place(db, async move |place| {
        let node = Arc::new(node_for(Some("2"), false).await);
        let desk = Desk { node: node.clone(), habit: Arc::new(Mutex::new(habit)), asked: Arc::default() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/x402", listener.local_addr().unwrap());
        let router =
            Router::new().route("/x402/supported", get(supported)).route("/x402/settle", post(settle));
        let router = router.with_state(desk.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let own = [
            ("x402_settler", "remote"),
            ("x402_facilitator_url", &*url),
            ("trusted_proxies", "127.0.0.1"),
            ("answer_within_ms", "1000"),
        ];
        let settings = changed(settings_for(&node, &[]), &own);
        let (gateway, stop, served) = start_gateway(place, &borrowed(&settings)).await;
        let token = sign_in(&gateway, "ann@example.com", "agent").await;
        let counter = Counter { desk, gateway, token, payer: Payer::new(1) };
        test(&counter).await;
        counter.gateway.settle().await;
        check_books(&counter.gateway.app).await;
        stop.cancel();
        served.await.unwrap();
    });
}

/// However the facilitator answers, the payer is never asked twice and the eSIM comes once the chain shows the money.
fn settles_whatever_it_says(db: Db, habit: Habit) {
    with_facilitator(db, habit, async |counter| {
        let offer = counter.offer().await;
        let signature = counter.payer.pay(&offer, 1);
        let order = until("the order is delivered", async || {
            let answer = counter.post(Some(&signature)).await;
            counter.desk.node.mine(1).await;
            assert!(answer.status == 200 || answer.status == 202, "{} {}", answer.status, answer.text);
            (answer.status == 200).then_some(answer)
        })
        .await;
        assert_eq!(order.json()["status"], "COMPLETED");
        assert_eq!(receipt(&order.headers)["success"], true);
        assert_eq!(receipt(&order.headers)["transaction"], order.json()["txHash"]);
        assert_eq!(counter.spent().await.micros().to_string(), offer["amount"]);
        assert_eq!(counter.desk.node.transfers_to(offer["payTo"].as_str().unwrap()).await, 1);
    });
}

/// Its word that something was settled, or was not, settles nothing and kills nothing.
fn waits_for_the_chain(db: Db, habit: Habit) {
    with_facilitator(db, habit, async |counter| {
        let offer = counter.offer().await;
        let signature = counter.payer.pay(&offer, 1);
        let invoice = counter.post(Some(&signature)).await.expect(202)["invoiceId"].clone();
        until("it was asked", async || (!counter.desk.asked.lock().unwrap().is_empty()).then_some(())).await;
        for _ in 0..3 {
            counter.desk.node.mine(1).await;
            let answer = counter.post(Some(&signature)).await;
            assert_eq!(answer.expect(202)["invoiceId"], invoice);
            assert_eq!(receipt(&answer.headers), Value::Null);
        }
        // It thinks better of it when it is asked again.
        *counter.desk.habit.lock().unwrap() = Habit::Settles;
        counter.gateway.pass_time(100_000);
        until("the order is delivered", async || {
            counter.desk.node.mine(1).await;
            (counter.post(Some(&signature)).await.status == 200).then_some(())
        })
        .await;
        assert_eq!(counter.spent().await.micros().to_string(), offer["amount"]);
    });
}

#[test]
#[ignore = "needs anvil"]
fn a_good_facilitator() {
    settles_whatever_it_says(Db::Sqlite, Habit::Settles);
    settles_whatever_it_says(Db::Postgres, Habit::Settles);
}

#[test]
#[ignore = "needs anvil"]
fn one_that_falls_silent() {
    settles_whatever_it_says(Db::Sqlite, Habit::GoesSilent);
}

#[test]
#[ignore = "needs anvil"]
fn one_that_denies_what_it_did() {
    settles_whatever_it_says(Db::Sqlite, Habit::DeniesIt);
}

#[test]
#[ignore = "needs anvil"]
fn one_that_lies() {
    waits_for_the_chain(Db::Sqlite, Habit::Lies);
}

#[test]
#[ignore = "needs anvil"]
fn one_that_refuses() {
    waits_for_the_chain(Db::Postgres, Habit::Refuses);
}
