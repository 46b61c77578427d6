//! Agents' tokens on their owner's pages: the limit that is set there counts, and so does the end.

use serde_json::json;
use simgate::domain::money::Usd;

use super::{ANN, EVE, OPEN};
use crate::support::browser::claimed;
use crate::support::buying::{HOUR_MS, MINUTE_MS, PLAN, ask_with_key, fund};
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::{sign_in, with_token};
use crate::support::tool_caller;
use crate::support::visitor::{Visitor, hidden};

async fn signed_in(gateway: &Gateway, email: &str) -> Visitor {
    // A new mail is sent after a minute.
    gateway.pass_time(2 * MINUTE_MS);
    let mut visitor = Visitor::new(gateway);
    visitor.sign_in(gateway, email).await;
    visitor
}

/// The path of the only token's page.
async fn token_path(visitor: &mut Visitor) -> String {
    let page = visitor.open("/account/agents").await;
    let (_, rest) =
        page.text.split_once("href=\"/account/agents/").unwrap_or_else(|| panic!("{}", page.text));
    format!("/account/agents/{}", rest.split(['"', '/']).next().unwrap())
}

async fn buys(gateway: &Gateway, token: &str, key: &str) -> u16 {
    let wish = serde_json::json!({ "packageCode": PLAN, "payWith": "wallet" });
    ask_with_key(gateway, token, key, &wish).await.status
}

both_databases! {
    async fn the_limit_that_is_set_counts(gateway) with [OPEN[0], OPEN[1]] {
        gateway.away_from_midnight();
        let agent = sign_in(gateway, ANN, "Trip <b>planner</b> \" onload=x").await;
        fund(gateway, ANN, Usd::dollars(50)).await;
        let mut ann = signed_in(gateway, ANN).await;
        let list = ann.open("/account/agents").await;
        assert!(list.text.contains("Trip &#60;b&#62;planner&#60;/b&#62; &#34; onload=x"), "{}", list.text);
        assert!(list.text.contains(&agent[..8]) && !list.text.contains(&agent) && list.text.contains("500.00 USD a day"));
        let path = token_path(&mut ann).await;
        assert_eq!(buys(gateway, &agent, "one").await, 200);
        let page = ann.open(&path).await;
        for wrong in ["-1", "500.000001", "", "many", "1e99"] {
            let refused = ann.submit(&page, &path, &[("limitUsd", wrong)]).await;
            assert!(refused.status == 400 && refused.text.contains("Please check"), "{wrong}: {}", refused.text);
        }
        assert_eq!(buys(gateway, &agent, "two").await, 200);
        let saved = ann.submit(&page, &path, &[("limitUsd", "0")]).await;
        assert_eq!((saved.status, saved.header("location")), (303, "/account/agents?done=limited"));
        assert!(ann.open("/account/agents").await.text.contains("0.00 USD a day"));
        assert_eq!(buys(gateway, &agent, "three").await, 403);
        // What it has spent today counts.
        let spent = Usd::dollars(50).minus(crate::support::browser::wallet_of(gateway, ANN).await);
        ann.submit(&page, &path, &[("limitUsd", &spent.to_string())]).await;
        assert_eq!(buys(gateway, &agent, "four").await, 403);
        ann.submit(&page, &path, &[("limitUsd", "100")]).await;
        assert_eq!(buys(gateway, &agent, "five").await, 200);
    }

    async fn a_revoked_token_opens_nothing(gateway) with [OPEN[0], OPEN[1]] {
        let agent = sign_in(gateway, ANN, "Trip planner").await;
        let mut ann = signed_in(gateway, ANN).await;
        let path = token_path(&mut ann).await;
        let revoke = format!("{path}/revoke");
        let page = ann.open(&revoke).await;
        assert!(page.text.contains("cannot be undone"), "{}", page.text);
        assert_eq!(with_token(gateway, &agent, "GET", "/api/agentic/wallet").await.status, 200);
        let done = ann.submit(&page, &revoke, &[]).await;
        assert_eq!((done.status, done.header("location")), (303, "/account/agents?done=revoked"));
        assert_eq!(with_token(gateway, &agent, "GET", "/api/agentic/wallet").await.status, 401);
        assert_eq!(ann.submit(&page, &revoke, &[]).await.status, 404);
        assert!(ann.open("/account/agents").await.text.contains("No agent has a token"));
        assert!(ann.is_signed_in().await);
    }

    /// An assistant's token ends by itself, and until then its owner sees it, limits it and ends it. Those that nobody was
    /// given are not listed: the session's own, and the one that was made for a claim.
    async fn an_assistants_token_is_its_owners_too(gateway) with [OPEN[0], OPEN[1]] {
        claimed(gateway, ANN).await;
        let mut ann = signed_in(gateway, ANN).await;
        assert!(ann.open("/account/agents").await.text.contains("No agent has a token"));
        gateway.pass_time(2 * MINUTE_MS);
        let assistant = tool_caller::log_in(gateway, ANN).await;
        let list = ann.open("/account/agents").await;
        assert!(list.text.contains(&assistant[..8]) && !list.text.contains(&assistant) && list.text.contains("<dt>Ends</dt>"), "{}", list.text);
        let path = token_path(&mut ann).await;
        let page = ann.open(&path).await;
        assert_eq!(ann.submit(&page, &path, &[("limitUsd", "0")]).await.status, 303);
        fund(gateway, ANN, Usd::dollars(50)).await;
        let refused = tool_caller::call(gateway, "purchase_esim_with_wallet", json!({ "packageCode": PLAN, "token": assistant })).await;
        assert_eq!(tool_caller::failure(&refused), "LIMIT_EXCEEDED");
        let revoke = format!("{path}/revoke");
        let page = ann.open(&revoke).await;
        assert_eq!(ann.submit(&page, &revoke, &[]).await.status, 303);
        let refused = tool_caller::call(gateway, "get_wallet_balance", json!({ "token": assistant })).await;
        assert_eq!(tool_caller::failure(&refused), "UNAUTHENTICATED");
        // One that has ended is gone from the list.
        gateway.pass_time(20 * MINUTE_MS);
        tool_caller::log_in(gateway, ANN).await;
        assert!(ann.open("/account/agents").await.text.contains("<dt>Ends</dt>"));
        gateway.pass_time(25 * HOUR_MS);
        let mut ann = signed_in(gateway, ANN).await;
        assert!(ann.open("/account/agents").await.text.contains("No agent has a token"));
    }

    async fn tokens_of_others_are_not_found(gateway) with [OPEN[0], OPEN[1]] {
        let agent = sign_in(gateway, ANN, "Trip planner").await;
        let mut ann = signed_in(gateway, ANN).await;
        let path = token_path(&mut ann).await;
        let mut eve = signed_in(gateway, EVE).await;
        let page = eve.open("/account").await;
        let token = hidden(&page, "/account/sign-out").remove(0).1;
        for path in [path.clone(), format!("{path}/revoke")] {
            assert_eq!(eve.open(&path).await.status, 404);
            assert_eq!(eve.post(&path, &[("form", &token), ("limitUsd", "1")]).await.status, 404);
        }
        assert_eq!(with_token(gateway, &agent, "GET", "/api/agentic/wallet").await.status, 200);
        assert!(ann.open("/account/agents").await.text.contains("500.00 USD a day"));
    }
}
