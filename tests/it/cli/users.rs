//! What an operator does about users, who come by themselves.

use serde_json::json;
use simgate::domain::money::Usd;
use simgate::domain::refusal::Refusal;
use simgate::error::Error;
use simgate::ops::orders::{self, Purchase};
use simgate::ops::tokens;

use crate::support::buying;
use crate::support::command_line::{ok, simgate};
use crate::support::database;
use crate::support::harness::both_databases;
use crate::support::logins::{AUTH, sign_in, with_token};

both_databases! {
    async fn users_are_shown_credited_and_suspended(gateway) {
        let token = sign_in(gateway, "ann@example.com", "Trip planner").await;
        let shown = ok(gateway, "user show Ann@Example.com");
        let id = shown["userId"].as_str().unwrap();
        assert!(id.starts_with("usr_"));
        assert_eq!((&shown["email"], &shown["suspended"], &shown["balanceUsd"]), (&json!("ann@example.com"), &json!(false), &json!(0)));
        assert_eq!((&shown["tokens"][0]["agentName"], &shown["tokens"][0]["prefix"]), (&json!("Trip planner"), &json!(token[..8])));
        assert!(!shown.to_string().contains(&token[8..]));
        let credited = ok(gateway, "wallet credit ann@example.com 20 --reason gift --kind promo");
        assert!(credited["userId"].as_str().unwrap().starts_with("usr_") && credited.get("partnerId").is_none(), "{credited}");
        assert_eq!(ok(gateway, &format!("user show {id}"))["balanceUsd"], 20);
        let found = ok(gateway, "find ann@example.com");
        assert_eq!((&found["users"][0]["userId"], &found["partners"]), (&json!(id), &json!([])));
        let partners = ok(gateway, "partner list");
        assert!(!partners.to_string().contains("ann@example.com"), "users are no partners: {partners}");

        assert_eq!(ok(gateway, "user suspend ann@example.com")["suspended"], true);
        let buyer = tokens::authenticate(&gateway.app, &token).await.unwrap().buyer();
        let purchase = || Purchase { package_code: "JP-1GB-7D".into(), reference: None, max_price: None, esim_order: None, customer_email: None, discount_code: None };
        let refused = orders::place(&gateway.app, buyer.clone(), purchase()).await;
        assert!(matches!(refused, Err(Error::Refused(Refusal::AccountSuspended))));
        with_token(gateway, &token, "GET", &format!("{AUTH}/tokens")).await.expect(200);
        assert_eq!(ok(gateway, "user resume ann@example.com")["suspended"], false);
        orders::place(&gateway.app, buyer, purchase()).await.unwrap();
        let noted = database::rows(&gateway.app.settings.database, "SELECT command FROM audit WHERE command LIKE 'user %' ORDER BY at");
        assert_eq!(noted, [["user suspend"], ["user resume"]]);

        for unknown in ["nobody@example.com", "usr_1", &gateway.partner] {
            simgate(gateway, &["user", "show", unknown, "--json"]).refused(1, "NOT_FOUND");
        }
    }

    /// The binary has the wall clock, so this waits for blocks instead of moving the gateway's clock.
    async fn a_payment_of_another_amount_is_given_to_its_checkout(gateway) {
        let token = sign_in(gateway, "ann@example.com", "Trip planner").await;
        let made = buying::open(gateway, &token).await;
        let more = Usd::from_micros(100_000);
        buying::pay_amount(gateway, &made, buying::amount(&made).plus(more)).await;
        buying::unmatched(gateway, 1).await;
        let waiting = ok(gateway, "transfers unmatched");
        let transfer = &waiting["transfers"][0];
        let (id, near) = (transfer["id"].as_str().unwrap(), &transfer["near"]);
        assert_eq!(*near, json!([format!("{} asks for {} USDT on POLYGON", buying::id(&made), buying::amount(&made))]));
        let assigned = ok(gateway, &format!("transfers assign {id} {} --reason rounded", buying::id(&made)));
        assert_eq!((&assigned["state"], &assigned["orderStatus"]), (&json!("ASSIGNED"), &json!("FULFILLED")));
        assert_eq!((assigned["chargedUsd"].to_string(), assigned["surplusUsd"].to_string()), (buying::amount(&made).to_string(), more.to_string()));
        let found = ok(gateway, &format!("find {}", made["orderRef"].as_str().unwrap()));
        assert_eq!((&found["checkouts"][0]["status"], &found["checkouts"][0]["orderId"]), (&json!("PAID"), &assigned["orderId"]));
        assert_eq!(found["checkouts"][0]["invoiceId"], made["invoiceId"]);
        assert_eq!(buying::record(gateway, &made).await["status"], "COMPLETED");
        let again = simgate(gateway, &["transfers", "assign", id, buying::id(&made), "--json"]);
        assert_eq!(again.exit, 1, "{}", again.stdout);
        let noted = database::rows(&gateway.app.settings.database, "SELECT detail FROM audit WHERE command = 'transfers assign'");
        assert!(noted.len() == 1 && noted[0][0].contains(made["orderRef"].as_str().unwrap()), "{noted:?}");
        assert!(!noted[0][0].contains(buying::id(&made)), "an invoice id is a key");
    }
}
