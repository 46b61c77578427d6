//! The wallet: the balance, and a statement whose lines add up.

use serde_json::{Value, json};
use simgate::domain::ids::AccountNo;
use simgate::domain::ledger::CreditKind;
use simgate::domain::money::Usd;
use simgate::ops::operator::{self, Adjustment, Direction};

use crate::support::harness::{Gateway, Key, both_databases};
use crate::support::shapes::{ORDERS, column, mask, money, names};

const STATEMENT: &str = "/api/b2b/v1/balance/transactions";

fn usd(text: &str) -> Usd {
    Usd::parse(text).unwrap()
}

async fn account(gateway: &Gateway) -> AccountNo {
    operator::account(&gateway.app, &gateway.partner).await.unwrap().no
}

fn adjustment(account: AccountNo, amount: &str, kind: CreditKind) -> Adjustment {
    Adjustment { account, amount: usd(amount), kind, reason: format!("a {} matter", kind.as_str()) }
}

async fn adjust(gateway: &Gateway, direction: Direction, what: Adjustment) {
    operator::adjust_wallet(&gateway.app, "test", direction, what, None).await.unwrap();
}

/// One of everything that moves a wallet.
async fn everything(gateway: &Gateway) -> Value {
    let order = gateway.order("JP-1GB-7D").await;
    let topup = format!("{ORDERS}/{}/topup", order["iccid"].as_str().unwrap());
    gateway.post(&topup, json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await.expect(200);
    gateway.supplier("reject").await;
    gateway.post(ORDERS, json!({ "packageCode": "JP-5GB-30D" })).await.problem(502);
    gateway.supplier("ok").await;
    let cancelled = gateway.order("JP-3GB-30D").await;
    let cancel = format!("{ORDERS}/{}/cancel", cancelled["id"].as_str().unwrap());
    gateway.send_as(&gateway.key, "POST", &cancel, None).await.expect(200);
    let account = account(gateway).await;
    operator::refund_order(&gateway.app, "test", order["id"].as_str().unwrap(), usd("0.2"), "slow network")
        .await
        .unwrap();
    adjust(gateway, Direction::Credit, adjustment(account, "19.999123", CreditKind::Bank)).await;
    adjust(gateway, Direction::Debit, adjustment(account, "0.000123", CreditKind::Correction)).await;
    order
}

both_databases! {
    async fn the_balance_has_the_fields_of_the_spec(gateway) {
        let reply = gateway.get("/api/b2b/v1/balance").await;
        money(&reply.text);
        insta::assert_json_snapshot!(reply.expect(200), @r#"
        {
          "balanceUsd": 1000,
          "companyName": "Test Travel",
          "currency": "USD",
          "heldUsd": 0,
          "isLowBalance": false,
          "lowBalanceThreshold": 50,
          "status": "ACTIVE",
          "success": true
        }
        "#);
        for (credit, low) in [("50", false), ("49.999999", true), ("0", true)] {
            let (_, key) = gateway.partner("Edge Travel", usd(credit)).await;
            let reply = gateway.send_as(&key, "GET", "/api/b2b/v1/balance", None).await;
            let balance = reply.expect(200);
            assert_eq!((balance["balanceUsd"].to_string().as_str(), &balance["isLowBalance"]), (credit, &json!(low)));
        }
    }

    async fn every_movement_is_on_the_statement(gateway) {
        let order = everything(gateway).await;
        let reply = gateway.get(STATEMENT).await;
        money(&reply.text);
        let statement = reply.expect(200);
        assert_eq!(names(&statement), ["currency", "nextAfter", "success", "transactions"]);
        assert_eq!(statement["nextAfter"], Value::Null);
        let lines = statement["transactions"].as_array().unwrap();
        let shown: Vec<String> = lines
            .iter()
            .map(|line| format!("{} {} {} {}", line["line"], line["type"].as_str().unwrap(), line["amountUsd"], line["balanceUsd"]))
            .collect();
        insta::assert_json_snapshot!(shown, @r#"
        [
          "10 DEBIT -0.000123 1018.559",
          "9 CREDIT 19.999123 1018.559123",
          "8 REFUND 0.2 998.56",
          "7 CANCELLED 2.43 998.36",
          "6 ORDER -2.43 995.93",
          "5 FAILED 3.7 998.36",
          "4 ORDER -3.7 994.66",
          "3 TOPUP -0.82 998.36",
          "2 ORDER -0.82 999.18",
          "1 CREDIT 1000 1000"
        ]
        "#);
        let mut running = Usd::ZERO;
        for line in lines.iter().rev() {
            running = running.plus(usd(&line["amountUsd"].to_string()));
            assert_eq!(running.to_string(), line["balanceUsd"].to_string(), "{line}");
        }
        assert_eq!(running.to_string(), gateway.balance().await);
        insta::assert_json_snapshot!(mask(&lines[8]), @r#"
        {
          "amountUsd": -0.82,
          "balanceUsd": 999.18,
          "createdAt": "…Z",
          "invoiceId": null,
          "line": 2,
          "note": null,
          "orderId": "ord_…",
          "type": "ORDER"
        }
        "#);
        assert_eq!(lines[8]["orderId"], order["id"]);
        assert_eq!((&lines[1]["orderId"], &lines[1]["note"]), (&Value::Null, &json!("a bank matter")));
        assert_eq!(&lines[2]["orderId"], &order["id"]);
    }

    async fn the_statement_is_read_in_pages_that_do_not_shift(gateway) {
        everything(gateway).await;
        let whole = gateway.get(STATEMENT).await.expect(200)["transactions"].clone();
        for limit in [1, 3, 9, 10] {
            let mut seen = Vec::new();
            let mut query = format!("?limit={limit}");
            loop {
                let page = gateway.get(&format!("{STATEMENT}{query}")).await.expect(200);
                seen.extend(page["transactions"].as_array().unwrap().clone());
                let Some(after) = page["nextAfter"].as_str() else { break };
                query = format!("?limit={limit}&after={after}");
                adjust(gateway, Direction::Credit, adjustment(account(gateway).await, "1", CreditKind::Promo)).await;
            }
            let seen: Vec<Value> = seen.into_iter().filter(|line| line["line"].as_i64() <= Some(10)).collect();
            assert_eq!(json!(seen), whole, "limit {limit}");
        }
        for query in ["limit=0", "limit=1001", "limit=x", "after=5", "after=c0", "from=x", "to=x", "after=", "limit=1&limit=2"] {
            let refused = gateway.get(&format!("{STATEMENT}?{query}")).await;
            assert_eq!(refused.problem(400), "INVALID_REQUEST", "{query}");
        }
    }

    async fn the_statement_of_a_time_is_exact(gateway) {
        gateway.pass_time(5_000);
        let first = gateway.order("JP-1GB-7D").await;
        gateway.pass_time(5_000);
        let second = gateway.order("JP-1GB-7D").await;
        let (a, b) = (first["createdAt"].as_str().unwrap(), second["createdAt"].as_str().unwrap());
        for (query, types) in [
            (format!("?from={a}"), vec!["ORDER", "ORDER"]),
            (format!("?to={a}"), vec!["CREDIT"]),
            (format!("?from={a}&to={b}"), vec!["ORDER"]),
            (format!("?from={b}&to={a}"), vec![]),
            ("?to=1970-01-02".into(), vec![]),
        ] {
            let lines = gateway.get(&format!("{STATEMENT}{query}")).await.expect(200);
            assert_eq!(column(&lines["transactions"], "type"), types, "{query}");
        }
        let (_, stranger): (String, Key) = gateway.partner("Stranger", Usd::ZERO).await;
        let lines = gateway.send_as(&stranger, "GET", STATEMENT, None).await.expect(200);
        assert_eq!(lines["transactions"], json!([]));
    }
}
