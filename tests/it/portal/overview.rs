//! The first page: the balance, what needs attention, the figures of a month, the latest orders.

use serde_json::json;
use simgate::domain::money::Usd;
use simgate::domain::role::Role;
use simgate::ops::company;
use simgate::ops::operator::{self, KeyTerms};

use super::{DEV, EVE, EYE, OWNER};
use crate::support::desk::{OPEN, account, account_of, member, member_of};
use crate::support::harness::both_databases;

both_databases! {
    async fn it_shows_how_the_company_stands(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let page = ann.open("/portal").await;
        assert!(page.text.contains("No order yet") && !page.text.contains("Needs attention"), "{}", page.text);
        for reference in ["one", "two"] {
            let order = json!({ "packageCode": "JP-1GB-7D", "partnerRefId": reference });
            gateway.post("/api/b2b/v1/orders", order).await.expect(200);
        }
        let balance = gateway.get("/api/b2b/v1/balance").await.json()["balanceUsd"].as_f64().unwrap();
        let page = ann.open("/portal").await;
        assert!(page.text.contains(&format!("{balance:.2} USD")), "{balance} is not in {}", page.text);
        // The figures of today, behind the chart.
        let today = simgate::wire::dates::iso(gateway.app.now());
        let row = format!("<tr><td>{}</td><td class=\"number\">2</td></tr>", &today[..10]);
        assert!(page.text.contains(&row), "{row} is not in {}", page.text);
        let spent = format!("<td class=\"number\">{:.2} USD</td>", 1_000.0 - balance);
        assert!(page.text.contains(&spent), "{spent} is not in {}", page.text);
        assert_eq!(page.text.matches("href=\"/portal/orders/ord_").count(), 2);
        // Nobody else sees any of it.
        let (other, _) = gateway.partner("Other Travel", Usd::dollars(5_000)).await;
        let mut eve = member_of(gateway, account_of(gateway, &other).await, EVE, Role::Owner).await;
        let page = eve.open("/portal").await;
        assert!(page.text.contains("No order yet") && page.text.contains("5000.00 USD"), "{}", page.text);
    }

    async fn it_tells_what_needs_attention(gateway) with [OPEN[0], OPEN[1]] {
        let mut ann = member(gateway, OWNER, Role::Owner).await;
        let acme = account(gateway).await;
        let ends = Some(gateway.app.now().plus_days(13));
        let terms = KeyTerms { name: "Shop <1>".into(), expires_at: ends, ..KeyTerms::default() };
        operator::create_key(&gateway.app, "test", acme, terms).await.unwrap();
        let terms = KeyTerms { name: "Later".into(), expires_at: Some(gateway.app.now().plus_days(40)), ..KeyTerms::default() };
        operator::create_key(&gateway.app, "test", acme, terms).await.unwrap();
        let page = ann.open("/portal").await;
        assert!(page.text.contains("The API key Shop &#60;1&#62; ends on") && !page.text.contains("Later"), "{}", page.text);
        assert!(!page.text.contains("is below"), "{}", page.text);
        let owner = simgate::ops::team::list(&gateway.app, acme).await.unwrap().remove(0);
        let me = simgate::ops::team::Member {
            id: owner.id, account: acme, email: owner.email, role: owner.role, company: owner.company,
            price_list: "default".into(), low_balance: Usd::ZERO, balance: Usd::ZERO, suspended: false,
        };
        company::warn(&gateway.app, &me, Usd::dollars(5_000), None).await.unwrap();
        let page = ann.open("/portal").await;
        assert!(page.text.contains("is below 5000.00 USD") && page.text.contains(", which is low"), "{}", page.text);
        assert!(page.text.find("is below").unwrap() < page.text.find("The API key").unwrap(), "the urgent one first");
    }

    /// What a role may not do is not offered.
    async fn it_offers_what_a_role_may_do(gateway) with [OPEN[0], OPEN[1]] {
        for (email, role, funds, orders) in [
            (OWNER, Role::Owner, true, true),
            (DEV, Role::Developer, false, true),
            (EYE, Role::Viewer, false, false),
        ] {
            let page = member(gateway, email, role).await.open("/portal").await;
            assert_eq!((page.text.contains(">Add funds</a>"), page.text.contains(">Place an order</a>")), (funds, orders), "{role:?}");
        }
    }
}
