//! Coupons at the agent's door: what they take off, what the books say, the one answer to every code that is not good,
//! and what is told of them to whom.

use std::net::{IpAddr, Ipv4Addr};

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use simgate::domain::coupon::{Applicability, Coupon, Discount, LEAST_PRICE};
use simgate::domain::ids::OrderId;
use simgate::domain::money::Usd;
use simgate::domain::refusal::Refusal;
use simgate::error::Error;
use simgate::ops::cancel;
use simgate::ops::coupons::{self, desk};

use crate::support::buying::*;
use crate::support::command_line::ok;
use crate::support::coupons::{DEAR, limited, make, off, plain, plan, tally};
use crate::support::harness::{booked, both_databases};
use crate::support::logins::{sameness, sign_in, with_token};

const GUEST: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// So many wrong codes are answered in an hour.
const TRIES: usize = 20;

fn wish(code: &str) -> Value {
    json!({ "packageCode": DEAR, "discountCode": code })
}

fn from_wallet(code: &str) -> Value {
    json!({ "packageCode": DEAR, "discountCode": code, "payWith": "wallet" })
}

fn is_invalid<T>(answer: &Result<T, Error>) -> bool {
    matches!(answer, Err(Error::Refused(Refusal::CouponInvalid)))
}

both_databases! {
    async fn a_coupon_takes_its_share_off_a_checkout(gateway) {
        let made = ok(gateway, "coupon create --code Summer-26 --percent 15 --description '15% off'");
        assert_eq!((&made["code"], &made["status"], &made["percent"]), (&json!("SUMMER-26"), &json!("ACTIVE"), &json!(15)));
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let retail = plan(gateway, DEAR).retail;
        let asked = ask(gateway, &token, &wish("summer-26")).await.expect(402);
        assert_eq!(asked["coupon"]["code"], "SUMMER-26");
        let discount = off(&asked);
        assert_eq!(discount, Usd::from_micros(retail.micros() * 15 / 100 / 10_000 * 10_000));
        assert_eq!(usd(&asked["plan"]["basePriceUsd"]), retail);
        let spot = usd(&asked["payment"]["spotDiscountOffset"]);
        assert!((1..=9_999).contains(&spot.micros()));
        assert_eq!(amount(&asked), retail.minus(discount).minus(spot));
        assert_eq!(tally(gateway, "SUMMER-26").await, (1, 0));
        let done = settle(gateway, &asked, "COMPLETED").await;
        assert_eq!((&done["coupon"], &done["plan"]), (&asked["coupon"], &asked["plan"]));
        assert_eq!(tally(gateway, "SUMMER-26").await, (0, 1));
        assert_eq!(booked(&gateway.app, "discount:coupon").await, discount);
        assert_eq!(booked(&gateway.app, "discount:spot").await, spot);
        assert_eq!(booked(&gateway.app, "sales").await.negated(), retail);
        let shown = ok(gateway, &format!("order show {}", done["orderId"].as_str().unwrap()));
        assert_eq!((&shown["coupon"], usd(&shown["discountUsd"])), (&json!("SUMMER-26"), discount));
        let margin = ok(gateway, "report margin");
        assert_eq!(usd(&margin["salesUsd"]), amount(&asked));
        let plain = ask(gateway, &token, &json!({ "packageCode": DEAR })).await.expect(402);
        assert_eq!(plain.get("coupon"), None);
    }

    async fn a_coupon_takes_its_amount_off_a_purchase_from_the_wallet(gateway) {
        ok(gateway, "coupon create --code TWO --fixed 2.50 --uses 1");
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let retail = plan(gateway, DEAR).retail;
        let (discount, cent) = (Usd::from_micros(2_500_000), Usd::from_micros(10_000));
        let price = retail.minus(discount);
        fund(gateway, "ann@example.com", price.minus(cent)).await;
        let short = ask(gateway, &token, &from_wallet("two")).await;
        assert_eq!(short.problem(402), "INSUFFICIENT_BALANCE");
        assert_eq!(usd(&short.json()["requiredUsd"]), price);
        assert_eq!(tally(gateway, "TWO").await, (0, 0), "a refusal takes no use");
        fund(gateway, "ann@example.com", cent).await;
        let bought = ask(gateway, &token, &from_wallet("two")).await.expect(200);
        assert_eq!((off(&bought), usd(&bought["balanceUsd"])), (discount, Usd::ZERO));
        assert_eq!((&bought["status"], usd(&bought["plan"]["basePriceUsd"])), (&json!("COMPLETED"), retail));
        assert_eq!(booked(&gateway.app, "discount:coupon").await, discount);
        assert_eq!(tally(gateway, "TWO").await, (0, 1));
        fund(gateway, "ann@example.com", price).await;
        assert_eq!(ask(gateway, &token, &from_wallet("two")).await.problem(422), "COUPON_INVALID", "it is used up");
        // Cancelled, the use can be had again.
        let order = OrderId::from_text(bought["orderId"].as_str().unwrap());
        let refunded = cancel::cancel(&gateway.app, account(gateway, "ann@example.com").await, &order).await.unwrap().refunded;
        assert_eq!(refunded, price);
        assert_eq!(booked(&gateway.app, "discount:coupon").await, Usd::ZERO);
        assert_eq!(tally(gateway, "TWO").await, (0, 0));
        ask(gateway, &token, &from_wallet("TWO")).await.expect(200);
        assert_eq!(balance(gateway, &token).await, price);
        let listed = with_token(gateway, &token, "GET", "/api/agentic/orders").await.expect(200);
        assert_eq!(usd(&listed["orders"][0]["chargedUsd"]), price);
    }

    async fn a_price_stays_above_cost_unless_the_coupon_may_go_below(gateway) {
        ok(gateway, "coupon create --code ALL --percent 100");
        ok(gateway, "coupon create --code MORE --fixed 1000 --below-cost");
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let dear = plan(gateway, DEAR);
        let cent = Usd::from_micros(10_000);
        for (code, least) in [("ALL", dear.cost.plus(cent)), ("MORE", LEAST_PRICE)] {
            let asked = ask(gateway, &token, &wish(code)).await.expect(402);
            let price = dear.retail.minus(off(&asked));
            assert!(least <= price && price < least.plus(cent), "{code}: {price}");
            settle(gateway, &asked, "COMPLETED").await;
        }
    }

    /// Unknown, ended, not begun, disabled, used up, for the app, for another plan, country, price or person.
    async fn every_code_that_is_not_good_has_one_answer(gateway) {
        let (ann, bob) = (sign_in(gateway, "ann@example.com", "agent").await, sign_in(gateway, "bob@example.com", "agent").await);
        let now = gateway.app.now();
        let change = |code: &str, change: &dyn Fn(&mut Coupon)| {
            let mut coupon = plain(gateway, code, 10);
            change(&mut coupon);
            coupon
        };
        for coupon in [
            change("ENDED", &|c| c.ends_at = Some(now)),
            change("LATER", &|c| c.starts_at = Some(now.plus_days(1))),
            change("APP", &|c| c.applicability = Applicability::MobileApp),
            change("OTHER", &|c| c.package_code = Some(PLAN.into())),
            change("FRANCE", &|c| c.country = Some("FR".into())),
            change("RICH", &|c| c.min_price = Some(plan(gateway, DEAR).retail.plus(Usd::from_micros(1)))),
            change("ONCE", &|c| c.uses = Some(1)),
            change("ONE-EACH", &|c| c.uses_per_user = Some(1)),
            change("GONE", &|_| {}),
        ] {
            make(gateway, coupon).await;
        }
        desk::disable(&gateway.app, "test", "gone").await.unwrap();
        for code in ["once", "one-each"] {
            ask(gateway, &bob, &wish(code)).await.expect(402);
        }
        let mut answers = Vec::new();
        for code in ["UNKNOWN", "ended", "Later", "APP", "other", "FRANCE", "rich", "once", "gone"] {
            for body in [wish(code), from_wallet(code)] {
                answers.push(sameness(&ask(gateway, &ann, &body).await));
            }
        }
        for body in [wish("one-each"), from_wallet("one-each")] {
            answers.push(sameness(&ask(gateway, &bob, &body).await));
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
        assert_eq!((answers[0].0, &answers[0].1["code"]), (422, &json!("COUPON_INVALID")));
        ask(gateway, &ann, &wish("one-each")).await.expect(402);
        ask(gateway, &ann, &json!({ "packageCode": PLAN, "discountCode": "other" })).await.expect(402);
        assert_eq!(balance(gateway, &ann).await, Usd::ZERO);
    }

    async fn the_same_key_is_the_same_coupon(gateway) {
        limited(gateway, "ONCE", 1).await;
        limited(gateway, "SPARE", 5).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let first = ask_with_key(gateway, &token, "trip", &wish("once")).await.expect(402);
        let again = ask_with_key(gateway, &token, "trip", &wish(" ONCE ")).await;
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(again.expect(402), first);
        for other in [wish("SPARE"), wish("nothing"), json!({ "packageCode": DEAR })] {
            assert_eq!(ask_with_key(gateway, &token, "trip", &other).await.problem(409), "IDEMPOTENCY_CONFLICT", "{other}");
        }
        settle(gateway, &first, "COMPLETED").await;
        desk::disable(&gateway.app, "test", "ONCE").await.unwrap();
        assert_eq!(ask_with_key(gateway, &token, "trip", &wish("once")).await.expect(200)["invoiceId"], first["invoiceId"]);
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        let bought = ask_with_key(gateway, &token, "wallet", &from_wallet("spare")).await.expect(200);
        let again = ask_with_key(gateway, &token, "wallet", &from_wallet("SPARE")).await.expect(200);
        assert_eq!((&again["orderId"], &again["coupon"]), (&bought["orderId"], &bought["coupon"]));
        let without = json!({ "packageCode": DEAR, "payWith": "wallet" });
        assert_eq!(ask_with_key(gateway, &token, "wallet", &without).await.problem(409), "IDEMPOTENCY_CONFLICT");
        assert_eq!((tally(gateway, "ONCE").await, tally(gateway, "SPARE").await), ((0, 1), (0, 1)));
    }

    async fn whoever_guesses_has_to_wait(gateway) {
        limited(gateway, "GOOD", 100).await;
        let (ann, bob) = (sign_in(gateway, "ann@example.com", "agent").await, sign_in(gateway, "bob@example.com", "agent").await);
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        // At the same moment, at both doors and at the tools': not one more is answered than one after the other.
        let no = account(gateway, "ann@example.com").await;
        let dear = plan(gateway, DEAR);
        let bodies: Vec<Value> = (0..24).map(|n| if n % 2 == 0 { wish(&format!("TRY{n}")) } else { from_wallet(&format!("TRY{n}")) }).collect();
        let codes: Vec<String> = (0..12).map(|n| format!("TRY{n}")).collect();
        let (heard, told) = join(
            join_all(bodies.iter().map(|body| ask(gateway, &ann, body))),
            join_all(codes.iter().map(|code| coupons::validate(&gateway.app, no, code, &dear))),
        ).await;
        let wrong = heard.iter().filter(|reply| reply.status == 422).count() + told.iter().filter(|answer| is_invalid(answer)).count();
        assert_eq!(wrong, TRIES);
        assert!(heard.iter().all(|reply| reply.status == 422 || reply.status == 429));
        for body in [wish("GOOD"), from_wallet("GOOD"), wish("TRY")] {
            let full = ask(gateway, &ann, &body).await;
            assert_eq!(full.problem(429), "RATE_LIMITED", "a good one too: nobody learns by it");
            assert!((1..=3_600).contains(&full.header("retry-after").parse::<i64>().unwrap()));
            assert!(full.text.contains("Too many discount codes") && full.text.contains("or buy without one"), "{}", full.text);
        }
        assert!(matches!(coupons::quote(&gateway.app, no, "GOOD", &dear).await, Err(Error::Refused(Refusal::TooManyCodes { .. }))));
        // Without a code everything goes on, and so does everybody else.
        ask(gateway, &ann, &json!({ "packageCode": DEAR })).await.expect(402);
        ask(gateway, &bob, &wish("good")).await.expect(402);
        coupons::quote_guest(&gateway.app, GUEST, "good", &dear).await.unwrap();
        gateway.pass_time(HOUR_MS);
        ask(gateway, &ann, &wish("good")).await.expect(402);
        assert_eq!(tally(gateway, "GOOD").await.1, 0);
    }

    async fn a_guest_who_guesses_has_to_wait(gateway) {
        limited(gateway, "GOOD", 100).await;
        let dear = plan(gateway, DEAR);
        let mut answered = 0;
        while is_invalid(&coupons::quote_guest(&gateway.app, GUEST, "WRONG", &dear).await) {
            answered += 1;
        }
        assert_eq!(answered, 300);
        assert!(matches!(coupons::quote_guest(&gateway.app, GUEST, "GOOD", &dear).await, Err(Error::Refused(Refusal::TooManyCodes { .. }))));
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        ask(gateway, &token, &wish("good")).await.expect(402);
    }

    async fn what_is_told_of_coupons(gateway) {
        for line in [
            "coupon create --code WELCOME --percent 10 --description 'Ten percent off'",
            "coupon create --code APP5 --fixed 5 --app-only",
            "coupon create --code INFLUENCER --percent 20 --affiliate",
            "coupon create --code save20 --percent 20",
            "coupon create --code Save20-More --percent 20",
            "coupon create --code SOON --percent 20 --starts 2999-01-01",
            "coupon create --code STOPPED --percent 20",
            "coupon disable stopped",
        ] {
            ok(gateway, line);
        }
        make(gateway, Coupon { ends_at: Some(gateway.app.now()), ..plain(gateway, "PAST", 20) }).await;
        limited(gateway, "TAKEN", 1).await;
        ask(gateway, &sign_in(gateway, "bob@example.com", "agent").await, &wish("taken")).await.expect(402);
        let told = coupons::available(&gateway.app, 10).await.unwrap().newest;
        let told: Vec<(&str, String, &str, &str)> = told
            .iter()
            .map(|offer| (offer.code.as_str(), offer.discount.to_string(), offer.applicability.as_str(), offer.description.as_str()))
            .collect();
        assert_eq!(told, [
            ("APP5", "5 USD off".into(), "MOBILE_APP", "5 USD off"),
            ("WELCOME", "10% off".into(), "GENERAL", "Ten percent off"),
        ]);
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let no = account(gateway, "ann@example.com").await;
        let dear = plan(gateway, DEAR);
        let quote = coupons::validate(&gateway.app, no, "welcome", &dear).await.unwrap();
        assert_eq!((quote.code.as_str(), quote.price.plus(quote.discount), quote.list_price), ("WELCOME", dear.retail, dear.retail));
        let asked = ask(gateway, &token, &wish("welcome")).await.expect(402);
        assert_eq!(off(&asked), quote.discount, "what was quoted is what is taken off");
        // A code that starts like this is not told, and works; an affiliate's works, and is confirmed to nobody.
        coupons::validate(&gateway.app, no, "SAVE20", &dear).await.unwrap();
        for code in ["influencer", "app5", "past", "stopped", "nothing"] {
            assert!(is_invalid(&coupons::validate(&gateway.app, no, code, &dear).await), "{code}");
        }
        assert!(is_invalid(&coupons::validate(&gateway.app, no, "welcome", &plan(gateway, "JP-5GB-30D-TOPUP")).await));
        ask(gateway, &token, &wish("influencer")).await.expect(402);
        assert_eq!(tally(gateway, "INFLUENCER").await, (1, 0));
        let fixed = Coupon { discount: Discount::Fixed(Usd::dollars(1)), uses_per_user: Some(1), ..plain(gateway, "MINE", 1) };
        make(gateway, fixed).await;
        assert!(is_invalid(&coupons::quote_guest(&gateway.app, GUEST, "mine", &dear).await), "a guest is nobody to count for");
        coupons::quote(&gateway.app, no, "mine", &dear).await.unwrap();
    }

    async fn a_daily_limit_counts_what_is_paid(gateway) with [("token_daily_limit_usd", "30")] {
        gateway.away_from_midnight();
        make(gateway, Coupon { below_cost: true, discount: Discount::Fixed(Usd::dollars(1_000)), ..plain(gateway, "GIFT", 1) }).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        let retail = plan(gateway, DEAR).retail;
        let left = Usd::dollars(30).minus(LEAST_PRICE);
        assert!(retail <= left, "the plan is for sale within the limit");
        ask(gateway, &token, &from_wallet("gift")).await.expect(200);
        let mut spent = LEAST_PRICE;
        while spent.plus(retail) <= Usd::dollars(30) {
            ask(gateway, &token, &json!({ "packageCode": DEAR, "payWith": "wallet" })).await.expect(200);
            spent = spent.plus(retail);
        }
        for body in [json!({ "packageCode": DEAR }), json!({ "packageCode": DEAR, "payWith": "wallet" })] {
            assert_eq!(ask(gateway, &token, &body).await.problem(403), "LIMIT_EXCEEDED");
        }
        if spent.plus(LEAST_PRICE) <= Usd::dollars(30) {
            ask(gateway, &token, &wish("gift")).await.expect(402);
        }
    }
}
