//! What is paid back for an order, and what a payment that is gone takes with it: never more than the price, never the
//! money of somebody else, and nobody is shut out for longer than something is owed.

use serde_json::{Value, json};
use simgate::chain::sim::Keep;
use simgate::domain::money::Usd;
use simgate::ops::{operator, recover};

use crate::support::browser::{claim, claim_code, guest, wallet_of};
use crate::support::buying::*;
use crate::support::harness::{Gateway, booked, both_databases};
use crate::support::logins::sign_in;
use crate::support::tool_caller::{call, fine};

const ANN: &str = "ann@example.com";
const MUM: &str = "mum@example.com";
/// Clients may ask as often as a test waits for something.
const OPEN: [(&str, &str); 2] = [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")];
/// Short times, so that the supplier's silence is over soon.
const SHORT: [(&str, &str); 2] = [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")];

async fn order_of(gateway: &Gateway, checkout: &Value) -> String {
    record(gateway, checkout).await["orderId"].as_str().unwrap().to_string()
}

/// All that was paid so far vanishes from the chain; so much is owed for it then.
async fn vanish(gateway: &Gateway, owed: Usd) {
    polygon(gateway).reorg(DEEP, Keep::Nothing).await.unwrap();
    gateway
        .until("it is taken back", async || {
            let gone = booked(&gateway.app, "cash:POLYGON:USDT").await == Usd::ZERO;
            (gone && booked(&gateway.app, "receivable").await == owed).then_some(())
        })
        .await;
}

async fn is_suspended(gateway: &Gateway, email: &str) -> bool {
    operator::account(&gateway.app, email).await.unwrap().suspended
}

async fn may_buy(gateway: &Gateway, token: &str) -> bool {
    match ask(gateway, token, &json!({ "packageCode": PLAN })).await {
        reply if reply.status == 402 => true,
        reply => {
            assert_eq!(reply.problem(403), "ACCOUNT_SUSPENDED");
            false
        }
    }
}

/// A purchase that was paid for, and of which the supplier has said nothing yet.
async fn undelivered(gateway: &Gateway, token: &str) -> Value {
    let made = open(gateway, token).await;
    gateway.sandbox("supplier", json!({ "mode": "slow", "delayMs": 3_600_000 })).await;
    settle(gateway, &made, "PROCESSING").await;
    made
}

/// Whether an account may buy again after a payment vanished and came back; the operator may have suspended it too.
async fn buys_when_it_is_back(gateway: &Gateway, ordered: bool) -> bool {
    let token = sign_in(gateway, ANN, "agent").await;
    let made = open(gateway, &token).await;
    settle(gateway, &made, "COMPLETED").await;
    if ordered {
        operator::set_suspended(&gateway.app, "test", ANN, true).await.unwrap();
    }
    polygon(gateway).reorg(DEEP, Keep::Later(LATER)).await.unwrap();
    let owed = async || booked(&gateway.app, "receivable").await;
    gateway.until("it is missed", async || (owed().await == amount(&made)).then_some(())).await;
    assert!(!may_buy(gateway, &token).await);
    until_back(gateway).await;
    may_buy(gateway, &token).await
}

/// Time passes until nothing is owed any more.
async fn until_back(gateway: &Gateway) {
    gateway
        .until("it is back", async || {
            gateway.pass_time(10_000);
            (booked(&gateway.app, "receivable").await == Usd::ZERO).then_some(())
        })
        .await;
}

both_databases! {
    /// Goodwill and a cancel pay the price together, whichever part of it was given before.
    async fn goodwill_and_a_cancel_pay_the_price_once(gateway) {
        let begun = gateway.balance().await;
        for given in [Usd::from_micros(1), Usd::from_micros(1_230_000), Usd::dollars(1_000)] {
            let order = gateway.order(PLAN).await;
            let price = usd(&order["chargedUsd"]);
            let given = given.min(price);
            let id = order["id"].as_str().unwrap();
            operator::refund_order(&gateway.app, "test", id, given, "slow").await.unwrap();
            let path = format!("/api/b2b/v1/orders/{id}/cancel");
            let cancelled = gateway.post(&path, json!({})).await.expect(200);
            assert_eq!(usd(&cancelled["refundedUsd"]), price.minus(given));
            assert_eq!(gateway.balance().await, begun, "the price is back, once");
            let more = operator::refund_order(&gateway.app, "test", id, Usd::from_micros(1), "more").await;
            assert!(more.is_err(), "nothing is left to give");
        }
        assert_eq!(booked(&gateway.app, "goodwill").await, Usd::ZERO, "what was given is the refund now");
    }

    /// What a preview promises, the cancel pays, and the same cancel again says.
    async fn preview_cancel_and_replay_agree(gateway) {
        let token = sign_in(gateway, ANN, "agent").await;
        fund(gateway, ANN, Usd::dollars(20)).await;
        let bought = fine(call(gateway, "purchase_esim_with_wallet", json!({ "packageCode": PLAN, "token": token })).await);
        let id = bought["orderId"].as_str().unwrap();
        let given = Usd::from_micros(500_000);
        operator::refund_order(&gateway.app, "test", id, given, "slow").await.unwrap();
        let left = Usd::dollars(20).minus(usd(&bought["balanceUsd"])).minus(given);
        let ask = json!({ "orderId": id, "token": token, "idempotencyKey": "once" });
        let preview = fine(call(gateway, "cancel_order", json!({ "orderId": id, "token": token, "dryRun": true })).await);
        assert_eq!(usd(&preview["refundableUsd"]), left, "{preview}");
        for _ in 0..2 {
            let cancelled = fine(call(gateway, "cancel_order", ask.clone()).await);
            assert_eq!(usd(&cancelled["refundedUsd"]), left, "{cancelled}");
            assert_eq!(balance(gateway, &token).await, Usd::dollars(20));
        }
    }

    /// The payment is gone before the supplier has sold: it is not asked again, and nobody gets money for it.
    async fn an_order_whose_payment_is_gone_is_not_asked_for(gateway) with [SHORT[0], SHORT[1], OPEN[0], OPEN[1]] {
        let token = sign_in(gateway, ANN, "agent").await;
        let made = undelivered(gateway, &token).await;
        vanish(gateway, amount(&made)).await;
        gateway.supplier("ok").await;
        for _ in 0..3 {
            gateway.pass_time(60_000);
            recover::round(&gateway.app).await.unwrap();
        }
        assert_eq!((gateway.journalled("sold").len(), record(gateway, &made).await["status"].as_str()), (0, Some("PROCESSING")));
        operator::fail_order(&gateway.app, "test", &order_of(gateway, &made).await, "its payment is gone").await.unwrap();
        assert_eq!((balance(gateway, &token).await, booked(&gateway.app, "receivable").await), (Usd::ZERO, Usd::ZERO));
        assert_eq!(usd(&record(gateway, &made).await["refund"]["amountUsd"]), Usd::ZERO);
        assert!(may_buy(gateway, &token).await, "nothing is owed any more");
    }

    /// The same, and the payment comes back: it is delivered, once.
    async fn an_order_whose_payment_comes_back_is_delivered(gateway) with [SHORT[0], SHORT[1], OPEN[0], OPEN[1]] {
        let token = sign_in(gateway, ANN, "agent").await;
        let made = undelivered(gateway, &token).await;
        polygon(gateway).reorg(DEEP, Keep::Later(LATER)).await.unwrap();
        gateway.until("it is missed", async || (booked(&gateway.app, "receivable").await == amount(&made)).then_some(())).await;
        gateway.supplier("ok").await;
        recover::round(&gateway.app).await.unwrap();
        assert_eq!(gateway.journalled("sold").len(), 0);
        gateway.until("it is delivered", async || {
            gateway.pass_time(10_000);
            (record(gateway, &made).await["status"] == "COMPLETED").then_some(())
        }).await;
        assert_eq!((gateway.journalled("sold").len(), booked(&gateway.app, "receivable").await), (1, Usd::ZERO));
        assert!(may_buy(gateway, &token).await);
    }

    /// Giving back an eSIM whose payment is gone settles what is owed for it, and fills no wallet.
    async fn a_cancel_settles_what_the_payment_owes(gateway) with [OPEN[0], OPEN[1]] {
        let token = sign_in(gateway, ANN, "agent").await;
        let made = open(gateway, &token).await;
        settle(gateway, &made, "COMPLETED").await;
        vanish(gateway, amount(&made)).await;
        assert!(!may_buy(gateway, &token).await);
        let ask = json!({ "orderId": order_of(gateway, &made).await, "token": token });
        let cancelled = fine(call(gateway, "cancel_order", ask).await);
        assert_eq!(usd(&cancelled["refundedUsd"]), Usd::ZERO, "{cancelled}");
        assert_eq!((balance(gateway, &token).await, booked(&gateway.app, "receivable").await), (Usd::ZERO, Usd::ZERO));
        assert!(may_buy(gateway, &token).await, "nothing is owed any more");
    }

    /// Goodwill too goes towards what is owed first.
    async fn goodwill_settles_what_the_payment_owes(gateway) with [OPEN[0], OPEN[1]] {
        let token = sign_in(gateway, ANN, "agent").await;
        let made = open(gateway, &token).await;
        settle(gateway, &made, "COMPLETED").await;
        vanish(gateway, amount(&made)).await;
        let (order, part) = (order_of(gateway, &made).await, Usd::from_micros(700_000));
        operator::refund_order(&gateway.app, "test", &order, part, "slow").await.unwrap();
        assert_eq!((balance(gateway, &token).await, booked(&gateway.app, "receivable").await), (Usd::ZERO, amount(&made).minus(part)));
        assert!(!may_buy(gateway, &token).await, "the rest is owed");
        operator::refund_order(&gateway.app, "test", &order, amount(&made).minus(part), "slow").await.unwrap();
        assert!(may_buy(gateway, &token).await);
    }

    /// Who pays again, in another transaction, owes nothing any more.
    async fn new_money_settles_what_is_owed(gateway) with [OPEN[0], OPEN[1]] {
        let token = sign_in(gateway, ANN, "agent").await;
        let made = open(gateway, &token).await;
        settle(gateway, &made, "COMPLETED").await;
        vanish(gateway, amount(&made)).await;
        assert!(!may_buy(gateway, &token).await);
        for paid in [Usd::ZERO, amount(&made)] {
            pay(gateway, &made).await;
            gateway.pass_time(UNTIL_FINAL_MS);
            gateway.until("it counts", async || {
                (booked(&gateway.app, "cash:POLYGON:USDT").await == amount(&made).plus(paid)).then_some(())
            }).await;
            assert_eq!((balance(gateway, &token).await, booked(&gateway.app, "receivable").await), (paid, Usd::ZERO));
            assert!(may_buy(gateway, &token).await);
        }
    }

    /// The payment is gone, and so is the money that it brought: nothing is owed. Whoever pays again may buy again.
    async fn who_owes_nothing_may_buy_again(gateway) with [OPEN[0], OPEN[1]] {
        let token = sign_in(gateway, ANN, "agent").await;
        let made = open(gateway, &token).await;
        gateway.supplier("reject").await;
        settle(gateway, &made, "FAILED").await;
        assert_eq!(balance(gateway, &token).await, amount(&made));
        vanish(gateway, Usd::ZERO).await;
        assert_eq!((balance(gateway, &token).await, may_buy(gateway, &token).await), (Usd::ZERO, false));
        pay(gateway, &made).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        gateway.until("it counts", async || (balance(gateway, &token).await == amount(&made)).then_some(())).await;
        assert!(may_buy(gateway, &token).await);
    }

    /// Who claimed a guest's second payment gives that back, and nothing of his own for the first.
    async fn who_claimed_answers_for_what_he_got(gateway) with [OPEN[0], OPEN[1]] {
        let made = guest(gateway, "kid@example.com").await;
        settle(gateway, &made, "COMPLETED").await;
        pay(gateway, &made).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        gateway.until("the second payment is owed", async || {
            (booked(&gateway.app, "owed").await == amount(&made).negated()).then_some(())
        }).await;
        let otp = claim_code(gateway, id(&made), MUM).await;
        assert_eq!(claim(gateway, id(&made), MUM, &otp).await.status, 200);
        fund(gateway, MUM, Usd::dollars(50)).await;
        vanish(gateway, amount(&made)).await;
        assert_eq!(wallet_of(gateway, MUM).await, Usd::dollars(50), "what is his own stays");
        assert!(!is_suspended(gateway, MUM).await, "he owes nothing");
    }

    /// The same, and he has spent it: he owes that much, until it is back.
    async fn who_claimed_and_spent_owes_what_he_got(gateway) with [OPEN[0], OPEN[1]] {
        let made = guest(gateway, "kid@example.com").await;
        gateway.supplier("reject").await;
        settle(gateway, &made, "FAILED").await;
        gateway.supplier("ok").await;
        let otp = claim_code(gateway, id(&made), MUM).await;
        assert_eq!(claim(gateway, id(&made), MUM, &otp).await.status, 200);
        gateway.pass_time(MINUTE_MS);
        let token = sign_in(gateway, MUM, "agent").await;
        fund(gateway, MUM, Usd::from_micros(10_000)).await;
        fine(call(gateway, "purchase_esim_with_wallet", json!({ "packageCode": PLAN, "token": token })).await);
        let left = balance(gateway, &token).await;
        polygon(gateway).reorg(DEEP, Keep::Later(LATER)).await.unwrap();
        gateway.until("it is missed", async || (booked(&gateway.app, "receivable").await == amount(&made).minus(left)).then_some(())).await;
        assert!(is_suspended(gateway, MUM).await);
        until_back(gateway).await;
        assert!(!is_suspended(gateway, MUM).await);
        assert_eq!(balance(gateway, &token).await, left);
    }

    async fn a_suspension_ends_with_its_cause(gateway) with [OPEN[0], OPEN[1]] {
        assert!(buys_when_it_is_back(gateway, false).await);
    }

    async fn a_suspension_by_the_operator_stays(gateway) with [OPEN[0], OPEN[1]] {
        assert!(!buys_when_it_is_back(gateway, true).await);
    }

    /// The operator lets an account buy that still owes: it is told how much, and a later payback is not the cause of
    /// another suspension.
    async fn resume_shows_what_is_owed(gateway) with [OPEN[0], OPEN[1]] {
        let token = sign_in(gateway, ANN, "agent").await;
        let made = open(gateway, &token).await;
        settle(gateway, &made, "COMPLETED").await;
        vanish(gateway, amount(&made)).await;
        let owner = account(gateway, ANN).await;
        operator::set_suspended(&gateway.app, "test", ANN, false).await.unwrap();
        assert_eq!(operator::owed_by(&gateway.app, owner).await.unwrap(), amount(&made));
        assert!(may_buy(gateway, &token).await);
    }
}
