//! The life of a coupon's use, with something going wrong between each two of its steps: a checkout that expires, a
//! payment that is late, second, wrong or taken back by the chain, a supplier that refuses or says nothing.

use serde_json::{Value, json};
use simgate::chain::sim::Keep;
use simgate::domain::coupon::Coupon;
use simgate::domain::ids::InvoiceId;
use simgate::domain::money::Usd;
use simgate::ops::checkout::paid;
use simgate::ops::coupons::desk;
use simgate::ops::operator;

use crate::support::buying::*;
use crate::support::coupons::{DEAR, limited, make, off, plain, tally};
use crate::support::harness::{Gateway, both_databases};
use crate::support::logins::{mails, sign_in};

const CODE: &str = "TEN";

fn wish() -> Value {
    json!({ "packageCode": DEAR, "discountCode": CODE })
}

async fn asked(gateway: &Gateway, token: &str) -> Value {
    ask(gateway, token, &wish()).await.expect(402)
}

async fn refused(gateway: &Gateway, token: &str) {
    assert_eq!(ask(gateway, token, &wish()).await.problem(422), "COUPON_INVALID");
}

both_databases! {
    async fn an_expired_checkout_gives_its_use_back(gateway) {
        limited(gateway, CODE, 1).await;
        let (ann, bob) = (sign_in(gateway, "ann@example.com", "agent").await, sign_in(gateway, "bob@example.com", "agent").await);
        let first = asked(gateway, &ann).await;
        refused(gateway, &bob).await;
        expire(gateway, &first).await;
        assert_eq!(tally(gateway, CODE).await, (0, 0));
        let second = asked(gateway, &bob).await;
        assert_eq!(tally(gateway, CODE).await, (1, 0));
        // Late, and somebody else has it now: the money is in the wallet, and one use is one use.
        let late = settle(gateway, &first, "FAILED").await;
        assert_eq!(usd(&late["refund"]["amountUsd"]), amount(&first));
        assert_eq!(balance(gateway, &ann).await, amount(&first));
        assert_eq!(mails(gateway, "ann@example.com").await[0]["subject"], "Your payment came too late");
        settle(gateway, &second, "COMPLETED").await;
        assert_eq!(tally(gateway, CODE).await, (0, 1));
        assert_eq!(gateway.journalled("sold").len(), 1);
    }

    async fn a_late_payment_takes_a_use_again_while_there_is_one(gateway) {
        limited(gateway, CODE, 2).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let (late, later) = (asked(gateway, &token).await, asked(gateway, &token).await);
        expire(gateway, &later).await;
        until_status(gateway, &late, "EXPIRED").await;
        assert_eq!(tally(gateway, CODE).await, (0, 0));
        let done = settle(gateway, &late, "COMPLETED").await;
        assert_eq!(done["coupon"], late["coupon"]);
        assert_eq!((tally(gateway, CODE).await, balance(gateway, &token).await), ((0, 1), Usd::ZERO));
        desk::disable(&gateway.app, "test", CODE).await.unwrap();
        settle(gateway, &later, "FAILED").await;
        assert_eq!((tally(gateway, CODE).await, balance(gateway, &token).await), ((0, 1), amount(&later)));
    }

    async fn a_late_payment_counts_for_its_person(gateway) {
        make(gateway, Coupon { uses_per_user: Some(1), ..plain(gateway, CODE, 10) }).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let first = asked(gateway, &token).await;
        refused(gateway, &token).await;
        expire(gateway, &first).await;
        let second = asked(gateway, &token).await;
        settle(gateway, &first, "FAILED").await;
        settle(gateway, &second, "COMPLETED").await;
        refused(gateway, &token).await;
        assert_eq!(tally(gateway, CODE).await, (0, 1));
    }

    /// The payment was seen in time, so the checkout does not expire and nobody else gets its use.
    async fn a_payment_that_was_seen_keeps_its_use(gateway) with [("polygon_confirmations", "600")] {
        limited(gateway, CODE, 1).await;
        let (ann, bob) = (sign_in(gateway, "ann@example.com", "agent").await, sign_in(gateway, "bob@example.com", "agent").await);
        let first = asked(gateway, &ann).await;
        gateway.pass_time(29 * MINUTE_MS);
        pay(gateway, &first).await;
        gateway.until("the payment is seen", async || {
            (record(gateway, &first).await["confirmations"].as_i64().unwrap() > 0).then_some(())
        }).await;
        gateway.pass_time(MINUTE_MS + 1_000);
        refused(gateway, &bob).await;
        gateway.pass_time(2 * MINUTE_MS);
        until_status(gateway, &first, "COMPLETED").await;
        refused(gateway, &bob).await;
        assert_eq!(tally(gateway, CODE).await, (0, 1));
    }

    async fn a_disabled_coupon_keeps_its_word_to_open_checkouts(gateway) {
        limited(gateway, CODE, 5).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = asked(gateway, &token).await;
        desk::disable(&gateway.app, "test", CODE).await.unwrap();
        refused(gateway, &token).await;
        settle(gateway, &made, "COMPLETED").await;
        assert_eq!(tally(gateway, CODE).await, (0, 1));
    }

    async fn what_the_supplier_refuses_gives_its_use_back(gateway) {
        limited(gateway, CODE, 1).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        gateway.supplier("reject").await;
        let made = asked(gateway, &token).await;
        let failed = settle(gateway, &made, "FAILED").await;
        assert_eq!(usd(&failed["refund"]["amountUsd"]), amount(&made));
        assert_eq!(tally(gateway, CODE).await, (0, 0));
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        let from_wallet = json!({ "packageCode": DEAR, "discountCode": CODE, "payWith": "wallet" });
        let before = balance(gateway, &token).await;
        assert_eq!(ask_with_key(gateway, &token, "again", &from_wallet).await.problem(502), "SUPPLIER_REJECTED");
        assert_eq!((tally(gateway, CODE).await, balance(gateway, &token).await), ((0, 0), before));
        gateway.supplier("ok").await;
        let bought = ask_with_key(gateway, &token, "again", &from_wallet).await.expect(200);
        assert!(off(&bought).is_positive());
        assert_eq!(tally(gateway, CODE).await, (0, 1));
    }

    async fn a_doubt_keeps_its_use(gateway) with [("supplier_timeout_ms", "300"), ("answer_within_ms", "200")] {
        limited(gateway, CODE, 2).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        gateway.supplier("timeout").await;
        let made = asked(gateway, &token).await;
        settle(gateway, &made, "PROCESSING").await;
        let from_wallet = json!({ "packageCode": DEAR, "discountCode": CODE, "payWith": "wallet" });
        let waiting = ask(gateway, &token, &from_wallet).await.expect(202);
        assert_eq!(waiting["orderStatus"], "PROVISIONING");
        assert_eq!(tally(gateway, CODE).await, (0, 2));
        refused(gateway, &token).await;
        gateway.supplier("ok").await;
        gateway.until("recovery finishes it", async || {
            gateway.pass_time(5_000);
            (record(gateway, &made).await["status"] == "COMPLETED").then_some(())
        }).await;
        gateway.settle().await;
        assert_eq!(tally(gateway, CODE).await, (0, 2));
        assert_eq!(gateway.journalled("sold").len(), 2);
    }

    async fn a_second_payment_takes_no_second_use(gateway) {
        limited(gateway, CODE, 5).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = asked(gateway, &token).await;
        pay(gateway, &made).await;
        pay(gateway, &made).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_status(gateway, &made, "COMPLETED").await;
        gateway.until("the other one is in the wallet", async || {
            (balance(gateway, &token).await == amount(&made)).then_some(())
        }).await;
        assert_eq!(tally(gateway, CODE).await, (0, 1));
    }

    async fn a_payment_that_vanishes_moves_no_use_until_it_ends(gateway) with [("polygon_confirmations", "30")] {
        limited(gateway, CODE, 1).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = asked(gateway, &token).await;
        pay_and_vanish(gateway, &made).await;
        assert_eq!(tally(gateway, CODE).await, (1, 0));
        settle(gateway, &made, "COMPLETED").await;
        assert_eq!(tally(gateway, CODE).await, (0, 1));
        // Taken back after the delivery: the eSIM is out, and so is the use.
        polygon(gateway).reorg(DEEP, Keep::Nothing).await.unwrap();
        let ann = account(gateway, "ann@example.com").await;
        gateway.until("it is owed", async || {
            operator::account_by_no(&gateway.app, ann).await.unwrap().suspended.then_some(())
        }).await;
        assert_eq!(tally(gateway, CODE).await, (0, 1));
    }

    async fn the_operator_assigns_a_payment_with_its_coupon(gateway) {
        limited(gateway, CODE, 1).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let more = Usd::from_micros(100_000);
        let first = asked(gateway, &token).await;
        pay_amount(gateway, &first, amount(&first).plus(more)).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        let waiting = unmatched(gateway, 1).await.remove(0);
        expire(gateway, &first).await;
        let second = asked(gateway, &token).await;
        let invoice = InvoiceId::from_text(id(&first));
        let gone = paid::assign(&gateway.app, "test", &waiting.transfer.id, &invoice, None).await.err().unwrap();
        assert!(gone.to_string().contains("coupon"), "{gone}");
        expire(gateway, &second).await;
        let assigned = paid::assign(&gateway.app, "test", &waiting.transfer.id, &invoice, None).await.unwrap();
        assert_eq!((assigned.surplus, assigned.order.price), (more, amount(&first)));
        assert_eq!(assigned.order.coupon.unwrap().discount, off(&first));
        until_status(gateway, &first, "COMPLETED").await;
        assert_eq!(tally(gateway, CODE).await, (0, 1));
        refused(gateway, &token).await;
    }

    /// The operator gives up on an order that the supplier never answered for.
    async fn a_given_up_order_gives_its_use_back(gateway) with [("supplier_timeout_ms", "300"), ("answer_within_ms", "200")] {
        limited(gateway, CODE, 1).await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(100)).await;
        gateway.supplier("timeout").await;
        let from_wallet = json!({ "packageCode": DEAR, "discountCode": CODE, "payWith": "wallet" });
        let waiting = ask(gateway, &token, &from_wallet).await.expect(202);
        let order = waiting["orderId"].as_str().unwrap();
        let failed = operator::fail_order(&gateway.app, "test", order, "nobody\u{202e} answers\u{e0041}").await.unwrap();
        assert_eq!(failed.failure.unwrap().detail, "nobody answers", "nothing hidden is kept");
        assert_eq!((tally(gateway, CODE).await, balance(gateway, &token).await), ((0, 0), Usd::dollars(100)));
        gateway.supplier("ok").await;
        let bought = ask(gateway, &token, &from_wallet).await;
        assert!(bought.status == 200 || bought.status == 202, "{}", bought.text);
        assert_eq!(tally(gateway, CODE).await, (0, 1));
    }
}
