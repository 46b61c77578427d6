//! The wallet on its owner's pages: paying in, the history, and the data to take along.

use serde_json::json;
use simgate::domain::money::Usd;

use super::{ANN, EVE, OPEN};
use crate::support::browser::{onward, wallet_of};
use crate::support::buying::{PLAN, fund};
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::sign_in;
use crate::support::visitor::Visitor;

const DEPOSIT: &str = "/account/deposit";

async fn signed_in(gateway: &Gateway, email: &str) -> Visitor {
    let mut visitor = Visitor::new(gateway);
    visitor.sign_in(gateway, email).await;
    visitor
}

both_databases! {
    async fn money_that_is_added_arrives(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN).await;
        let page = ann.open(&format!("{DEPOSIT}?amount=12.345678")).await;
        assert!(page.text.contains("value=\"12.345678\""), "{}", page.text);
        assert!(ann.open(&format!("{DEPOSIT}?amount=1")).await.text.contains("value=\"10\""));
        let sent = [("amountUsd", "25"), ("means", "USDC BASE")];
        let invoice = onward(&ann.submit(&page, DEPOSIT, &sent).await);
        // Pressed twice, it is the same payment.
        assert_eq!(onward(&ann.submit(&page, DEPOSIT, &sent).await), invoice);
        gateway.sandbox("pay", json!({ "invoiceId": invoice })).await;
        gateway.until("it is credited", async || {
            (wallet_of(gateway, ANN).await == Usd::dollars(25)).then_some(())
        }).await;
        let page = ann.open("/account/wallet").await;
        assert!(page.text.contains("Money was paid in") && page.text.contains("+25.00"), "{}", page.text);
        // Once that is paid, the next one is another.
        let page = ann.open(DEPOSIT).await;
        assert_ne!(onward(&ann.submit(&page, DEPOSIT, &sent).await), invoice);
    }

    async fn what_cannot_be_paid_in_is_said_above_the_form(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN).await;
        let page = ann.open(DEPOSIT).await;
        for (amount, means, why) in [
            ("9", "USDC BASE", "must be at least 10"),
            ("1000001", "USDC BASE", "must be at most 1000000"),
            ("x", "USDC BASE", "must be a number"),
            ("25", "DOGE MOON", "must be one of"),
        ] {
            let refused = ann.submit(&page, DEPOSIT, &[("amountUsd", amount), ("means", means)]).await;
            assert!(refused.status == 400 && refused.text.contains(why), "{amount} {means}: {}", refused.text);
        }
        for amount in ["11", "12", "13", "14", "15"] {
            onward(&ann.submit(&page, DEPOSIT, &[("amountUsd", amount), ("means", "USDC BASE")]).await);
        }
        let full = ann.submit(&page, DEPOSIT, &[("amountUsd", "16"), ("means", "USDC BASE")]).await;
        assert!(full.status == 429 && full.text.matches("href=\"/pay/inv_").count() == 5, "{}", full.text);
    }

    async fn the_history_has_pages(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = signed_in(gateway, ANN).await;
        assert!(ann.open("/account/wallet").await.text.contains("Nothing has moved yet"));
        for _ in 0..21 {
            fund(gateway, ANN, Usd::dollars(1)).await;
        }
        let first = ann.open("/account/wallet").await;
        assert!(first.text.contains("Page 1 of 2") && first.text.contains("?page=2"), "{}", first.text);
        assert_eq!(first.text.matches("+1.00").count(), 20);
        let last = ann.open("/account/wallet?page=2").await;
        assert!(last.text.contains("Page 2 of 2") && last.text.matches("+1.00").count() == 1, "{}", last.text);
        for odd in ["0", "-1", "x", "99999999999999999999", "3"] {
            assert_eq!(ann.open(&format!("/account/wallet?page={odd}")).await.status, 200);
            assert_eq!(ann.open(&format!("/account/orders?page={odd}")).await.status, 200);
        }
    }

    /// All that is kept about somebody, and nothing that opens an eSIM or a wallet.
    async fn the_data_is_taken_along(gateway) with [OPEN[0], OPEN[1]] {
        let agent = sign_in(gateway, ANN, "Trip planner").await;
        fund(gateway, ANN, Usd::dollars(50)).await;
        gateway.pass_time(2 * crate::support::buying::MINUTE_MS);
        let mut ann = signed_in(gateway, ANN).await;
        let path = format!("/account/buy/{PLAN}");
        let page = ann.open(&path).await;
        let order = ann.submit(&page, &path, &[]).await.header("location").to_string();
        let data = ann.open("/account/settings/data").await;
        assert_eq!(data.header("content-disposition"), "attachment; filename=\"simgate-data.json\"");
        assert_eq!(data.header("cache-control"), "no-store");
        let json = data.expect(200);
        assert_eq!((&json["email"], &json["suspended"]), (&json!(ANN), &json!(false)));
        assert!(order.contains(json["orders"][0]["id"].as_str().unwrap()));
        assert_eq!(json["transactions"].as_array().unwrap().len(), 2);
        assert_eq!(json["tokens"][0]["agentName"], "Trip planner");
        assert_eq!(json["sessions"].as_array().unwrap().len(), 1);
        for secret in ["LPA:1$", "/esim/", &agent, &ann.cookies["simgate"]] {
            assert!(!data.text.contains(secret), "{secret}");
        }
        let again = ann.open("/account/settings/data").await;
        assert!(again.status == 429 && !again.header("retry-after").is_empty(), "one a minute: {}", again.text);
        // What failed is kept too, and so it is told.
        gateway.supplier("reject").await;
        let page = ann.open(&path).await;
        ann.submit(&page, &path, &[]).await;
        gateway.supplier("ok").await;
        gateway.pass_time(crate::support::buying::MINUTE_MS);
        let json = ann.open("/account/settings/data").await.expect(200);
        let states: Vec<&str> = json["orders"].as_array().unwrap().iter().map(|order| order["status"].as_str().unwrap()).collect();
        assert_eq!(states, ["FAILED", "FULFILLED"]);
        let eves = signed_in(gateway, EVE).await.open("/account/settings/data").await.expect(200);
        assert_eq!((&eves["orders"], &eves["email"]), (&json!([]), &json!(EVE)));
        let nobody = Visitor::new(gateway).open("/account/settings/data").await;
        assert_eq!((nobody.status, nobody.header("location")), (303, "/account?next=settings"));
    }
}
