//! Calls of the partner API, as the team reads them.

use serde_json::json;
use simgate::domain::money::Usd;
use simgate::domain::role::Role;

use super::support::seconds_are_told;
use super::{EVE, EYE};
use crate::support::desk::{OPEN, account_of, member, member_of};
use crate::support::harness::both_databases;

both_databases! {
    async fn calls_are_listed_filtered_and_grouped(gateway) with [OPEN[0], OPEN[1]] {
        let mut eye = member(gateway, EYE, Role::Viewer).await;
        assert!(eye.open("/portal/logs").await.text.contains("No calls"));
        gateway.get("/api/b2b/v1/balance?tokenish=hush").await;
        gateway.get("/api/b2b/v1/balance").await.expect(200);
        for _ in 0..3 {
            gateway.post("/api/b2b/v1/orders", json!({ "packageCode": "NOPE-SECRET" })).await.expect(404);
        }
        let page = gateway.until("the calls are written", async || {
            let page = eye.again().open("/portal/logs").await;
            (page.text.matches("POST /api/b2b/v1/orders</code>").count() >= 4).then_some(page)
        }).await;
        assert!(page.text.contains("PLAN_NOT_FOUND") && page.text.contains(&gateway.key.id), "{}", page.text);
        seconds_are_told(&page.text, 5);
        let group = page.text.split("<tr>").find(|row| row.contains("/portal/logs?code=PLAN_NOT_FOUND")).unwrap();
        assert!(group.contains("<td class=\"number\">404</td><td class=\"number\">3</td>"), "{group}");
        assert!(!page.text.contains("NOPE-SECRET") && !page.text.contains("hush"), "{}", page.text);
        let rows = |page: &str| {
            let calls = page.split("id=\"calls\"").nth(1).unwrap();
            calls.matches("/api/b2b/v1/").count()
        };
        for (query, count) in [
            ("outcome=refused", 4),
            ("outcome=done", 1),
            ("outcome=fault", 0),
            ("method=POST", 3),
            ("code=PLAN_NOT_FOUND", 3),
            ("code=PLAN_NOT_FOUND&method=GET", 0),
            ("key=key_other", 0),
            ("method=nonsense&before=x", 5),
        ] {
            let page = eye.open(&format!("/portal/logs?{query}")).await;
            assert_eq!((page.status, rows(&page.text)), (200, count), "{query}: {}", page.text);
        }
        // What was asked for stands in the form again.
        let page = eye.open("/portal/logs?outcome=done&code=%22%3E%3Cscript%3E").await;
        assert!(page.text.contains("value=\"done\" selected") && !page.text.contains("<script>"), "{}", page.text);
        // Nobody else sees them.
        let (other, _) = gateway.partner("Other Travel", Usd::dollars(1)).await;
        let mut eve = member_of(gateway, account_of(gateway, &other).await, EVE, Role::Owner).await;
        assert!(eve.open("/portal/logs").await.text.contains("No calls"));
        let theirs = eve.open(&format!("/portal/logs?key={}", gateway.key.id)).await;
        assert!(theirs.text.contains("No calls") && !theirs.text.contains("PLAN_NOT_FOUND"), "{}", theirs.text);
    }
}
