//! What a token may spend in a day: open checkouts count against it, whoever asks for them, in whatever order, and
//! whichever day they are paid on.

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::buying::{self, *};
use crate::support::coupons::plan;
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::sign_in;
use crate::support::tool_caller::{call, failure};

const DAY_MS: i64 = 24 * HOUR_MS;

fn from_wallet() -> Value {
    json!({ "packageCode": PLAN, "payWith": "wallet" })
}

/// The token can buy nothing more, at any door.
async fn is_spent(gateway: &Gateway, token: &str) {
    for body in [json!({ "packageCode": PLAN }), from_wallet()] {
        assert_eq!(ask(gateway, token, &body).await.problem(403), "LIMIT_EXCEEDED", "{body}");
    }
    for dry_run in [true, false] {
        let wish = json!({ "packageCode": PLAN, "token": token, "dryRun": dry_run });
        let refused = call(gateway, "purchase_esim_with_wallet", wish).await;
        assert_eq!(failure(&refused), "LIMIT_EXCEEDED", "dryRun: {dry_run}");
    }
}

/// Moves on to so many minutes before the next midnight (UTC).
fn until_midnight(gateway: &Gateway, minutes: i64) {
    let into_day = gateway.app.now().micros() / 1_000 % DAY_MS;
    let left = DAY_MS - into_day - minutes * MINUTE_MS;
    gateway.pass_time(if left > 0 { left } else { left + DAY_MS });
}

both_databases! {
    async fn an_open_checkout_counts_until_it_ends(gateway) with [("token_daily_limit_usd", "2")] {
        gateway.away_from_midnight();
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        let first = open(gateway, &token).await;
        let price = usd(&first["plan"]["basePriceUsd"]);
        assert!(price < Usd::dollars(2) && price.plus(price) > Usd::dollars(2), "{price}");
        is_spent(gateway, &token).await;
        // A limit is a token's, not its owner's.
        gateway.pass_time(2 * MINUTE_MS);
        let other = sign_in(gateway, "ann@example.com", "other agent").await;
        let second = open(gateway, &other).await;
        // Nobody paid: there is room again.
        expire(gateway, &first).await;
        until_status(gateway, &second, "EXPIRED").await;
        let third = open(gateway, &token).await;
        is_spent(gateway, &token).await;
        // A payment that is on its way, and one that is delivered.
        pay(gateway, &third).await;
        let seen = async || record(gateway, &third).await["confirmations"].as_i64().unwrap() > 0;
        gateway.until("the payment is seen", async || seen().await.then_some(())).await;
        is_spent(gateway, &token).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_status(gateway, &third, "COMPLETED").await;
        is_spent(gateway, &token).await;
        // What was agreed is delivered late too, and counts.
        buying::settle(gateway, &first, "COMPLETED").await;
        is_spent(gateway, &token).await;
        buying::settle(gateway, &second, "COMPLETED").await;
        is_spent(gateway, &other).await;
        gateway.pass_time(DAY_MS);
        open(gateway, &token).await;
    }

    async fn what_fails_is_given_back(gateway) with [("token_daily_limit_usd", "2")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        gateway.supplier("reject").await;
        let refused = open(gateway, &token).await;
        buying::settle(gateway, &refused, "FAILED").await;
        gateway.supplier("ok").await;
        open(gateway, &token).await;
    }

    async fn a_wallet_leaves_no_room_for_checkouts(gateway) with [("token_daily_limit_usd", "2")] {
        gateway.away_from_midnight();
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        ask(gateway, &token, &from_wallet()).await.expect(200);
        is_spent(gateway, &token).await;
    }

    async fn checkouts_and_purchases_at_once_stay_within_it(gateway) with [("token_daily_limit_usd", "5"), ("token_rate_limit", "0"), ("ip_rate_limit", "0")] {
        gateway.away_from_midnight();
        let price = plan(gateway, PLAN).retail;
        let room = Usd::dollars(5).micros() / price.micros();
        assert!((2..8).contains(&room), "{price}");
        let mut tokens = Vec::new();
        for person in 0..3 {
            let email = format!("user{person}@example.com");
            tokens.push(sign_in(gateway, &email, "agent").await);
            fund(gateway, &email, Usd::dollars(100)).await;
        }
        let bodies = [json!({ "packageCode": PLAN }), json!({ "packageCode": PLAN }), from_wallet()];
        let asked = (0..24).map(|nth| {
            let (token, body) = (&tokens[nth % 3], &bodies[nth / 3 % 3]);
            async move { (token, ask(gateway, token, body).await) }
        });
        let answers = join_all(asked).await;
        let mut opened = Vec::new();
        for token in &tokens {
            let mine = answers.iter().filter(|(of, _)| *of == token);
            let (taken, refused): (Vec<_>, Vec<_>) = mine.map(|(_, reply)| reply).partition(|reply| reply.status != 403);
            assert_eq!(taken.len() as i64, room, "exactly what the limit has room for");
            assert!(refused.iter().all(|reply| reply.problem(403) == "LIMIT_EXCEEDED"));
            opened.extend(taken.into_iter().filter(|reply| reply.status == 402).map(|reply| reply.expect(402)));
        }
        for checkout in &opened {
            pay(gateway, checkout).await;
        }
        gateway.pass_time(UNTIL_FINAL_MS);
        for checkout in &opened {
            until_status(gateway, checkout, "COMPLETED").await;
        }
        for token in &tokens {
            is_spent(gateway, token).await;
        }
    }

    async fn an_open_checkout_counts_on_the_day_that_it_is(gateway) with [("token_daily_limit_usd", "2")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        until_midnight(gateway, 10);
        let evening = open(gateway, &token).await;
        // After midnight it may still be paid, and then it is that day's.
        gateway.pass_time(15 * MINUTE_MS);
        is_spent(gateway, &token).await;
        buying::settle(gateway, &evening, "COMPLETED").await;
        is_spent(gateway, &token).await;
        // What was paid before midnight is the day's before.
        until_midnight(gateway, 10);
        is_spent(gateway, &token).await;
        gateway.pass_time(12 * HOUR_MS);
        until_midnight(gateway, 10);
        let paid = open(gateway, &token).await;
        buying::settle(gateway, &paid, "COMPLETED").await;
        is_spent(gateway, &token).await;
        gateway.pass_time(15 * MINUTE_MS);
        open(gateway, &token).await;
    }
}
