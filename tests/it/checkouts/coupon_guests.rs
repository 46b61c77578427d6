//! Checkouts reserve uses of a coupon for nothing, so nobody holds many, and all guests together leave half to others.
//! Whoever pays keeps what he has.

use serde_json::json;
use simgate::domain::money::Usd;

use crate::support::browser::{form, guest_record, onward};
use crate::support::buying::{MINUTE_MS, ask, fund, settle, until_status};
use crate::support::coupons::{DEAR, limited, make, plain, tally};
use crate::support::harness::{Gateway, Reply, both_databases, reply};
use crate::support::logins::{sameness, sign_in};
use crate::support::visitor::hidden;

const CODE: &str = "TENOFF";
const NONSENSE: &str = "NOSUCH";
const BEHIND: (&str, &str) = ("trusted_proxies", "127.0.0.1");

/// A guest at this address asks for a plan with this code.
async fn visit(gateway: &Gateway, from: &str, code: &str) -> Reply {
    let fields = [("plan", DEAR), ("email", "guest@example.com"), ("discount", code)];
    reply(form(gateway, "/checkout", &fields).header("x-forwarded-for", from)).await
}

/// The same of one who is told what everybody is told whose code is not good.
#[track_caller]
fn refused(heard: &Reply, nonsense: &Reply) {
    let told = |page: &Reply, code: &str| {
        let (_, once) = hidden(page, "/checkout").into_iter().find(|(name, _)| name == "once").unwrap();
        page.text.replace(code, "CODE").replace(&once, "ONCE")
    };
    assert_eq!(heard.status, 422, "{}", heard.text);
    assert_eq!(told(heard, CODE), told(nonsense, NONSENSE));
}

both_databases! {
    /// The attack: one guest asked ten times and had all of it, again every half hour.
    async fn a_guest_holds_two_uses_at_a_time(gateway) with [BEHIND, ("ip_rate_limit", "0")] {
        limited(gateway, CODE, 100).await;
        let nonsense = visit(gateway, "198.51.100.1", NONSENSE).await;
        let places: Vec<String> = [(0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (1, 0), (1, 1), (1, 1)].iter().enumerate()
            .map(|(host, (site, client))| format!("2001:db8:bad:{:x}::{host:x}", site << 8 | client)).collect();
        for (n, place) in places.iter().enumerate() {
            onward(&visit(gateway, place, CODE).await);
            if n % 2 == 1 {
                refused(&visit(gateway, place, CODE).await, &nonsense);
            }
            if n == 3 {
                refused(&visit(gateway, "2001:db8:bad:f::1", CODE).await, &nonsense);
            }
        }
        refused(&visit(gateway, "2001:db8:bad:ffff::1", CODE).await, &nonsense);
        assert_eq!(tally(gateway, CODE).await, (8, 0));
        let page = gateway.client.get(format!("{}/checkout?plan={DEAR}&discount={CODE}", gateway.base)).header("accept", "text/html");
        let told = reply(page.header("x-forwarded-for", "2001:db8:bad::9")).await;
        assert!(told.text.contains("This discount code is unknown"), "what is quoted is what can be had: {}", told.text);
        // Without a code, with another one, from elsewhere and with an account everything goes on.
        make(gateway, plain(gateway, "OTHER", 10)).await;
        onward(&visit(gateway, "2001:db8:bad::1", "").await);
        onward(&visit(gateway, "2001:db8:bad::1", "OTHER").await);
        let paid = onward(&visit(gateway, "192.0.2.7", CODE).await);
        onward(&visit(gateway, "192.0.2.7", CODE).await);
        refused(&visit(gateway, "192.0.2.7", CODE).await, &nonsense);
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        ask(gateway, &token, &json!({ "packageCode": DEAR, "discountCode": CODE })).await.expect(402);
        // What is paid for is not held any more.
        settle(gateway, &guest_record(gateway, &paid).await, "COMPLETED").await;
        onward(&visit(gateway, "192.0.2.7", CODE).await);
        refused(&visit(gateway, "192.0.2.7", CODE).await, &nonsense);
        gateway.pass_time(31 * MINUTE_MS);
        gateway.until("the others have expired", async || (tally(gateway, CODE).await == (0, 1)).then_some(())).await;
        onward(&visit(gateway, "2001:db8:bad::1", CODE).await);
        onward(&visit(gateway, "2001:db8:bad::1", CODE).await);
    }

    /// An account opens checkouts for nothing too, and holds no more; what it pays for at once is not held.
    async fn an_account_holds_two_uses_at_a_time(gateway) with [BEHIND, ("ip_rate_limit", "0")] {
        limited(gateway, CODE, 10).await;
        make(gateway, plain(gateway, "OTHER", 10)).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let wish = |code: &str| json!({ "packageCode": DEAR, "discountCode": code });
        let nonsense = ask(gateway, &token, &wish(NONSENSE)).await;
        let first = ask(gateway, &token, &wish(CODE)).await.expect(402);
        ask(gateway, &token, &wish(CODE)).await.expect(402);
        let third = ask(gateway, &token, &wish(CODE)).await;
        assert_eq!(third.problem(422), "COUPON_INVALID");
        assert_eq!(sameness(&third), sameness(&nonsense));
        assert_eq!(tally(gateway, CODE).await, (2, 0));
        // Another code, another account and the wallet go on.
        ask(gateway, &token, &wish("OTHER")).await.expect(402);
        let other = sign_in(gateway, "bob@example.com", "agent").await;
        ask(gateway, &other, &wish(CODE)).await.expect(402);
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        let mut from_wallet = wish(CODE);
        from_wallet["payWith"] = json!("wallet");
        ask(gateway, &token, &from_wallet).await.expect(200);
        // What is paid for is not held any more, and what has ended neither.
        settle(gateway, &first, "COMPLETED").await;
        ask(gateway, &token, &wish(CODE)).await.expect(402);
        assert_eq!(ask(gateway, &token, &wish(CODE)).await.problem(422), "COUPON_INVALID");
        gateway.pass_time(31 * MINUTE_MS);
        gateway.until("the others have expired", async || (tally(gateway, CODE).await == (0, 2)).then_some(())).await;
        for _ in 0..2 {
            ask(gateway, &token, &wish(CODE)).await.expect(402);
        }
    }

    async fn guests_together_hold_half(gateway) with [BEHIND, ("ip_rate_limit", "0")] {
        limited(gateway, CODE, 10).await;
        let nonsense = visit(gateway, "198.51.100.1", NONSENSE).await;
        let mut held = Vec::new();
        for n in 0..5 {
            held.push(onward(&visit(gateway, &format!("192.0.2.{n}"), CODE).await));
        }
        refused(&visit(gateway, "192.0.2.99", CODE).await, &nonsense);
        let mut tokens = Vec::new();
        for person in ["ann", "bob", "eve"] {
            tokens.push(sign_in(gateway, &format!("{person}@example.com"), "agent").await);
        }
        let wish = json!({ "packageCode": DEAR, "discountCode": CODE });
        for n in 0..4 {
            ask(gateway, &tokens[n / 2], &wish).await.expect(402);
        }
        assert_eq!(tally(gateway, CODE).await, (9, 0));
        // Two pay: of the four that neither they nor the accounts have, guests hold three already.
        for invoice in &held[..2] {
            settle(gateway, &guest_record(gateway, invoice).await, "COMPLETED").await;
        }
        refused(&visit(gateway, "192.0.2.99", CODE).await, &nonsense);
        ask(gateway, &tokens[2], &wish).await.expect(402);
        assert_eq!(ask(gateway, &tokens[2], &wish).await.problem(422), "COUPON_INVALID", "all ten are taken");
        // Who pays late gets what is left, though guests could reserve no more.
        gateway.pass_time(31 * MINUTE_MS);
        gateway.until("the others have expired", async || (tally(gateway, CODE).await == (0, 2)).then_some(())).await;
        for n in 0..4 {
            onward(&visit(gateway, &format!("192.0.2.{n}"), CODE).await);
        }
        refused(&visit(gateway, "192.0.2.99", CODE).await, &nonsense);
        settle(gateway, &guest_record(gateway, &held[2]).await, "COMPLETED").await;
        assert_eq!(tally(gateway, CODE).await, (4, 3));
    }

    /// Of the last use a guest has all, and loses it when he does not pay.
    async fn a_guest_who_pays_gets_the_last_use(gateway) with [BEHIND] {
        limited(gateway, CODE, 1).await;
        let nonsense = visit(gateway, "198.51.100.1", NONSENSE).await;
        let first = onward(&visit(gateway, "192.0.2.1", CODE).await);
        refused(&visit(gateway, "192.0.2.2", CODE).await, &nonsense);
        gateway.pass_time(31 * MINUTE_MS);
        until_status(gateway, &guest_record(gateway, &first).await, "EXPIRED").await;
        let second = onward(&visit(gateway, "192.0.2.2", CODE).await);
        settle(gateway, &guest_record(gateway, &second).await, "COMPLETED").await;
        assert_eq!(tally(gateway, CODE).await, (0, 1));
        refused(&visit(gateway, "192.0.2.1", CODE).await, &nonsense);
    }
}
