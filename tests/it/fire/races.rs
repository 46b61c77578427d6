//! Many callers at the same moment: for one reference, for one wallet, and a flood of refusals beside honest work.

use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use serde_json::json;
use simgate::domain::money::Usd;

use crate::support::harness::{Gateway, both_databases};

const ORDERS: &str = "/api/b2b/v1/orders";
const PLAN: &str = "JP-1GB-7D";
const CLIENTS: usize = 64;

/// How many jobs the writer had to run a second time, as `/metrics` counts them.
async fn reruns(gateway: &Gateway) -> u64 {
    let text = gateway.get("/metrics").await.text;
    let line = text.lines().find(|line| line.starts_with("simgate_writer_reruns_total"));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

both_databases! {
    async fn one_reference_is_one_order(gateway) with [("rate_limit", "0")] {
        let price = gateway.price(PLAN).await;
        let body = json!({ "packageCode": PLAN, "partnerRefId": "the-same" });
        let replies = join_all((0..CLIENTS).map(|_| gateway.post(ORDERS, body.clone()))).await;
        let order = replies[0].expect(200)["order"].clone();
        for reply in &replies {
            let seen = reply.expect(200)["order"].clone();
            assert_eq!(seen["status"], "FULFILLED");
            for field in ["id", "iccid", "orderNo", "lpaString", "chargedUsd", "qrCodeUrl"] {
                assert_eq!(seen[field], order[field], "{field}");
            }
        }
        let first = replies.iter().filter(|reply| reply.header("idempotent-replayed").is_empty()).count();
        assert_eq!(first, 1, "exactly one caller placed the order");
        assert_eq!(gateway.balance().await, Usd::dollars(1_000).minus(price).to_string());
        let sold = gateway.journal();
        assert_eq!(sold, [["sold", order["id"].as_str().unwrap(), order["iccid"].as_str().unwrap()]]);
    }

    async fn a_wallet_pays_for_what_it_holds(gateway) with [("rate_limit", "0")] {
        let price = gateway.price(PLAN).await;
        let (_, key) = gateway.partner("Ten Orders", Usd::from_micros(price.micros() * 10)).await;
        let replies = join_all((0..CLIENTS).map(|number| {
            let body = json!({ "packageCode": PLAN, "partnerRefId": format!("race-{number}") });
            gateway.send_as(&key, "POST", ORDERS, Some(body))
        }))
        .await;
        let delivered = replies.iter().filter(|reply| reply.status == 200).count();
        assert_eq!(delivered, 10);
        for reply in replies.iter().filter(|reply| reply.status != 200) {
            assert_eq!(reply.problem(402), "INSUFFICIENT_BALANCE");
            assert_eq!(reply.json()["requiredUsd"].to_string(), price.to_string());
        }
        let wallet = gateway.send_as(&key, "GET", "/api/b2b/v1/balance", None).await.expect(200);
        assert_eq!((wallet["balanceUsd"].to_string(), wallet["heldUsd"].to_string()), ("0".into(), "0".into()));
        let list = gateway.send_as(&key, "GET", &format!("{ORDERS}?limit=100"), None).await.expect(200);
        assert_eq!(list["total"], 10);
        assert_eq!(gateway.journalled("sold").len(), 10);
        // A refusal leaves no claim: the reference is free when there is money.
        let refused = replies.iter().position(|reply| reply.status == 402).unwrap();
        let path = format!("{ORDERS}?partnerRefId=race-{refused}");
        assert_eq!(gateway.send_as(&key, "GET", &path, None).await.expect(200)["total"], 0);
    }

    async fn refusals_cost_nobody_else(gateway) with [("rate_limit", "0")] {
        simgate::telemetry::metrics().expect("the recorder is installed");
        let (_, poor) = gateway.partner("No Money", Usd::ZERO).await;
        gateway.order(PLAN).await;
        let before = reruns(gateway).await;
        let flood = join_all((0..16).map(async |_| {
            for _ in 0..40 {
                let reply = gateway.send_as(&poor, "POST", ORDERS, Some(json!({ "packageCode": PLAN }))).await;
                assert_eq!(reply.problem(402), "INSUFFICIENT_BALANCE");
            }
        }));
        let honest = async {
            let mut slowest = Duration::ZERO;
            for _ in 0..40 {
                let started = Instant::now();
                gateway.order(PLAN).await;
                slowest = slowest.max(started.elapsed());
            }
            slowest
        };
        let (_, slowest) = join(flood, honest).await;
        assert!(slowest < Duration::from_secs(25), "an order beside the flood took {slowest:?}");
        assert_eq!(reruns(gateway).await, before, "a refusal rolled a group back");
    }
}
