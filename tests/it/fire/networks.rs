//! Whoever has an IPv6 network has as many addresses as he likes. He gets no further with them: a /64 counts as one
//! client, and the /56 and the /48 around it have their shares. Everybody else is served all the same.

use std::time::Instant;

use futures_util::future::join_all;
use reqwest::RequestBuilder;
use serde_json::json;
use simgate::domain::checkout::{NETWORKS, USUAL_CURRENCY};
use simgate::domain::email::Email;
use simgate::domain::refusal::Refusal;
use simgate::domain::token::TokenKind;
use simgate::error::Error;
use simgate::ops::buying::{Means, Wish, buy};
use simgate::ops::coupons;
use simgate::ops::orders::Buyer;

use crate::support::browser::{form, onward, submit};
use crate::support::buying::{self, HOUR_MS, PLAN};
use crate::support::coupons::{DEAR, limited, plan};
use crate::support::database;
use crate::support::harness::{Db, both_databases, each_database, reply};
use crate::support::logins::{AUTH, sign_in, with_token};
use crate::support::ports::free_port;
use crate::support::process::on_site;
use crate::support::shapes::API;

const BEHIND: (&str, &str) = ("trusted_proxies", "127.0.0.1");

/// An address of the attacker's /48: in this /56, this /64 of it, and this one there.
fn at(site: usize, client: usize, host: usize) -> String {
    format!("2001:db8:bad:{:x}::{:x}", site << 8 | client, host + 1)
}

/// How many of these are answered like this, and the most that so many, and one more for each second, can be.
async fn passed(burst: u64, status: u16, requests: impl Iterator<Item = RequestBuilder>) -> u64 {
    let started = Instant::now();
    let mut passed = 0;
    for request in requests {
        let heard = reply(request).await;
        assert!(heard.status == status || heard.status == 429, "{}", heard.text);
        passed += u64::from(heard.status == status);
    }
    let most = burst + started.elapsed().as_secs() + 1;
    assert!(passed <= most, "{passed} of at most {most}");
    passed
}

/// A token that nobody was given.
fn made_up(n: usize) -> String {
    TokenKind::Personal.make(7, n as u128)
}

/// Tokens that are turned away by the limit are not looked up either. What a process counts is seen at a second address,
/// since behind a proxy `/metrics` is not at the first.
fn what_is_refused_is_not_looked_up(db: Db) {
    let metrics = format!("127.0.0.1:{}", free_port());
    let settings = vec![
        BEHIND,
        ("ip_rate_limit", "1"),
        ("ip_rate_burst", "10"),
        ("metrics_listen", metrics.clone().leak()),
    ];
    on_site(db, settings, async move |site| {
        let server = site.start().await;
        let looked_up = async || -> u64 {
            let text = reply(site.client.get(format!("http://{metrics}/metrics"))).await.text;
            let line = text.lines().find(|line| line.starts_with("simgate_lookups_total{of=\"token\"} "));
            line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
        };
        let guess = |n: usize| {
            let request = site.client.get(format!("{}{AUTH}/tokens", server.base));
            request.header("x-forwarded-for", at(0, 0, n)).bearer_auth(made_up(n))
        };
        let started = Instant::now();
        let passed = passed(10, 401, (0..200).map(guess)).await;
        // Answers are counted after the look-up and by another clock: one may be refused that was just looked up.
        let most = 10 + started.elapsed().as_secs() + 1;
        let looked_up = looked_up().await;
        assert!(
            passed >= 10 && (passed..=most).contains(&looked_up),
            "{passed}, {looked_up} of at most {most}"
        );
    });
}

mod look_ups {
    super::each_database!(super::what_is_refused_is_not_looked_up);
}

both_databases! {
    async fn a_network_is_limited_as_one_client(gateway) with [BEHIND, ("ip_rate_limit", "1"), ("ip_rate_burst", "10")] {
        let search = format!("{}/api/products/search?country=JP", gateway.base);
        let ask = |from: String| gateway.client.get(&search).header("x-forwarded-for", from);
        let first = reply(ask(at(0, 0, 0))).await;
        assert_eq!(first.header("ratelimit-policy"), "\"default\";q=10;w=10");
        assert_eq!(first.header("ratelimit"), "\"default\";r=9;t=1", "of the tightest");
        assert!(passed(9, 200, (0..150).map(|host| ask(at(0, 0, host)))).await >= 9);
        let refused = reply(ask(at(0, 0, 999))).await;
        if refused.status == 429 {
            assert_eq!(refused.problem(429), "RATE_LIMITED");
            assert!(!refused.header("retry-after").is_empty() && refused.header("ratelimit").contains("r=0"));
        }
        // 40 for the /56, of which 10 are gone, and 160 for the /48; 4 and 16 more come every second.
        let started = Instant::now();
        let mut answered = [0, 0];
        for n in 0..200 {
            answered[0] += usize::from(reply(ask(at(0, 1 + n, 0))).await.status == 200);
        }
        let site = 40 + 4 * (started.elapsed().as_secs() as usize + 1);
        for n in 0..600 {
            answered[1] += usize::from(reply(ask(at(1 + n % 250, n % 256, 0))).await.status == 200);
        }
        let area = 160 + 16 * (started.elapsed().as_secs() as usize + 1);
        assert!((20..=site).contains(&answered[0]) && (60..=area).contains(&answered[1]), "{answered:?} {site} {area}");
        for other in ["2001:db8:600d::1", "192.0.2.7"] {
            reply(ask(other.into())).await.expect(200);
        }
    }

    /// Those who are turned away are counted so too, and a good key or token from the same place is not harmed.
    async fn a_network_that_guesses_is_limited_as_one(gateway) with [BEHIND, ("ip_rate_limit", "1"), ("ip_rate_burst", "10")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let path = format!("{AUTH}/tokens");
        let guess = |n: usize| {
            let request = gateway.client.get(format!("{}{path}", gateway.base));
            request.header("x-forwarded-for", at(0, 0, n)).bearer_auth(made_up(n))
        };
        with_token(gateway, &token, "GET", &path).await.expect(200);
        assert!(passed(10, 401, (0..200).map(guess)).await >= 10);
        let good = gateway.client.get(format!("{}{path}", gateway.base)).header("x-forwarded-for", at(0, 0, 7));
        reply(good.bearer_auth(&token)).await.expect(200);
        // Keys, from another /64 of the same /56.
        let guess = |n: usize| {
            let request = gateway.client.get(format!("{}{API}/balance", gateway.base));
            let request = request.header("x-forwarded-for", at(0, 1, n));
            request.header("x-b2b-key", format!("key_{n}")).header("x-b2b-secret", "sk_guess")
        };
        assert!(passed(10, 401, (0..200).map(guess)).await >= 10);
        let known = gateway.request("GET", &format!("{API}/balance")).header("x-forwarded-for", at(0, 1, 7));
        reply(known).await.expect(200);
    }

    /// 300 unpaid checkouts from a /64, 600 from a /56, 1,200 from a /48: exactly, however many come at once.
    async fn a_network_may_not_ask_for_too_many_checkouts(gateway) with [BEHIND, ("ip_rate_limit", "0")] {
        let ask = async |from: String| {
            let wish = Wish {
                package_code: PLAN.into(), fills: None, reference: None, discount_code: None,
                customer_email: Email::parse("ann@example.com"), max_price: None,
            };
            let means = Means::Transfer { pair: (USUAL_CURRENCY, NETWORKS[0]), client: from.parse().unwrap(), signing: None };
            match buy(&gateway.app, Buyer::guest(), wish, means).await {
                Ok(_) => true,
                Err(Error::Refused(Refusal::TooManyCheckouts { .. })) => false,
                Err(error) => panic!("{error}"),
            }
        };
        let flood = async |site: usize, client: usize| {
            let opened = join_all((0..320).map(|host| ask(at(site, client, host)))).await;
            opened.into_iter().filter(|opened| *opened).count()
        };
        assert_eq!([flood(0, 0).await, flood(0, 1).await, flood(0, 2).await], [300, 300, 0], "a /56");
        assert_eq!([flood(1, 0).await, flood(2, 0).await, flood(3, 0).await], [300, 300, 0], "a /48");
        let fields = [("plan", PLAN), ("email", "ann@example.com")];
        for full in [at(0, 0, 400), at(0, 77, 0), at(77, 0, 0)] {
            let refused = reply(form(gateway, "/checkout", &fields).header("x-forwarded-for", full)).await;
            assert!(refused.status == 429 && refused.text.contains("Too many checkouts are unpaid"), "{}", refused.text);
        }
        let token = sign_in(gateway, "bob@example.com", "agent").await;
        let refused = buying::request(gateway, &token, &json!({ "packageCode": PLAN })).header("x-forwarded-for", at(9, 9, 9));
        assert_eq!(reply(refused).await.problem(429), "RATE_LIMITED");
        // Everybody else goes on.
        for other in ["2001:db8:bae::1", "192.0.2.7"] {
            onward(&reply(form(gateway, "/checkout", &fields).header("x-forwarded-for", other)).await);
        }
        gateway.pass_time(24 * HOUR_MS + 60_000);
        assert!(ask(at(0, 0, 0)).await, "a day later there is room again");
    }

    /// So many guests' checkouts were a limit for all of them, which 67 networks could use up.
    async fn guests_have_no_limit_in_common(gateway) with [BEHIND] {
        let fields = [("plan", PLAN), ("email", "ann@example.com")];
        let invoice = onward(&submit(gateway, "/checkout", &fields).await);
        let copies = format!(
            "INSERT INTO checkouts (id, account, token, seq, package_code, plan_name, family, data_mb, duration_days, supplier,
                 cost, list_price, amount, network, address, status, released, origin, created_at, expires_at, late_until, updated_at, keyed)
             SELECT id || CAST(n.i AS TEXT), account, token, seq + n.i, package_code, plan_name, family, data_mb, duration_days,
                 supplier, cost, list_price, amount, network, 'nowhere' || CAST(n.i AS TEXT), 'EXPIRED', 0,
                 'network' || CAST(n.i AS TEXT) || '/', created_at, expires_at, late_until, updated_at, 1
             FROM checkouts, (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i FROM n) n
             WHERE id = '{invoice}'"
        );
        database::execute(&gateway.app.settings.database, &copies).unwrap();
        database::execute(&gateway.app.settings.database, "UPDATE wallets SET opened = opened + 20000 WHERE account = 0").unwrap();
        onward(&submit(gateway, "/checkout", &fields).await);
    }

    /// 300 codes in an hour from a /64, 600 from a /56, 1,200 from a /48.
    async fn a_network_guesses_at_coupons_as_one_client(gateway) with [BEHIND, ("ip_rate_limit", "0")] {
        limited(gateway, "GOOD", 100).await;
        let dear = plan(gateway, DEAR);
        let tries = async |site: usize, client: usize| {
            for n in 0..320 {
                match coupons::quote_guest(&gateway.app, at(site, client, n).parse().unwrap(), "WRONG", &dear).await {
                    Err(Error::Refused(Refusal::CouponInvalid)) => {}
                    Err(Error::Refused(Refusal::TooManyCodes { .. })) => return n,
                    other => panic!("{other:?}"),
                }
            }
            320
        };
        assert_eq!([tries(0, 0).await, tries(0, 1).await, tries(0, 2).await], [300, 300, 0], "a /56");
        assert_eq!([tries(1, 0).await, tries(2, 0).await, tries(3, 0).await], [300, 300, 0], "a /48");
        let fields = [("plan", DEAR), ("email", "ann@example.com"), ("discount", "GOOD")];
        let page = |from: String| gateway.client.get(format!("{}/checkout?plan={DEAR}&discount=GOOD", gateway.base))
            .header("accept", "text/html").header("x-forwarded-for", from);
        for full in [at(0, 0, 0), at(0, 9, 0), at(9, 9, 9)] {
            let heard = reply(page(full.clone())).await;
            assert!(heard.status == 200 && heard.text.contains("Too many discount codes"), "{}", heard.text);
            let heard = reply(form(gateway, "/checkout", &fields).header("x-forwarded-for", full)).await;
            assert!(heard.status == 429 && heard.text.contains("or buy without one"), "{}", heard.text);
        }
        for other in ["2001:db8:bae::1", "192.0.2.7"] {
            assert!(reply(page(other.into())).await.text.contains("Coupon GOOD"));
        }
        let token = sign_in(gateway, "bob@example.com", "agent").await;
        let wish = json!({ "packageCode": DEAR, "discountCode": "GOOD" });
        reply(buying::request(gateway, &token, &wish).header("x-forwarded-for", "192.0.2.8")).await.expect(402);
        gateway.pass_time(HOUR_MS);
        assert!(reply(page(at(0, 0, 0))).await.text.contains("Coupon GOOD"), "an hour later");
    }
}
