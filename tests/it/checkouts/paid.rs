//! From a payment to an eSIM: in time, late, too much, too little, twice, by another way, taken back by the chain;
//! with a supplier that refuses or says nothing, and with the operator's help.

use serde_json::json;
use simgate::chain::sim::{ChainMode, Keep};
use simgate::domain::ids::InvoiceId;
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::plan::Plan;
use simgate::ops::checkout::paid;
use simgate::ops::{find, ledger};
use simgate::store::catalog;
use simgate::store::tx::Tx;

use crate::support::buying::*;
use crate::support::coupons::plan;
use crate::support::harness::{Gateway, booked, both_databases};
use crate::support::logins::{mails, sign_in, with_token};

/// The subjects of the mails to an address about its payments, newest first.
async fn news(gateway: &Gateway, email: &str) -> Vec<String> {
    let subjects =
        mails(gateway, email).await.into_iter().map(|mail| mail["subject"].as_str().unwrap().to_string());
    subjects.filter(|subject| subject.contains("payment") || subject.contains("eSIM")).collect()
}

/// The supplier does not sell the usual plan any more.
async fn withdraw(gateway: &Gateway) {
    let write = |tx: &mut Tx| {
        catalog::withdraw(tx, PLAN)?;
        catalog::publish(tx)
    };
    gateway.app.store.write(0, write).await.unwrap();
}

both_databases! {
    async fn a_payment_becomes_an_esim(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let body = json!({ "packageCode": PLAN, "customerEmail": "kid@example.com" });
        let made = ask(gateway, &token, &body).await.expect(402);
        assert_eq!(mails(gateway, "kid@example.com").await.len(), 0, "nothing before it is paid");
        let hash = pay(gateway, &made).await;
        let seen = gateway.until("the payment is seen", async || {
            let record = record(gateway, &made).await;
            (record["confirmations"].as_i64().unwrap() > 0).then_some(record)
        }).await;
        if seen["status"] == "PENDING_PAYMENT" {
            assert_eq!(seen["txHash"], hash);
            assert!(seen["instructions"].as_str().unwrap().contains("Do not pay again"));
        }
        gateway.pass_time(UNTIL_FINAL_MS);
        let done = until_status(gateway, &made, "COMPLETED").await;
        assert_eq!((&done["orderStatus"], &done["orderRef"], &done["txHash"]), (&json!("FULFILLED"), &made["orderRef"], &json!(hash)));
        let esim = &done["esim"];
        let lpa = format!("LPA:1${}${}", esim["smdpAddress"].as_str().unwrap(), esim["matchingId"].as_str().unwrap());
        assert_eq!(esim["lpaString"], lpa);
        assert!(esim["iccid"].as_str().unwrap().len() >= 19);
        assert!(esim["qrCodeUrl"].as_str().unwrap().starts_with(&gateway.base));
        assert!(done["confirmations"].as_i64().unwrap() >= 12);
        assert_eq!(done.get("refund"), None);
        assert_eq!(balance(gateway, &token).await, Usd::ZERO, "it never was in the wallet");
        let receipts = mails(gateway, "kid@example.com").await;
        let text = receipts[0]["text"].as_str().unwrap();
        assert!(text.contains(esim["installUrl"].as_str().unwrap()) && text.contains(made["orderRef"].as_str().unwrap()));
        assert_eq!((receipts.len(), news(gateway, "ann@example.com").await.len()), (1, 0));
        assert_eq!(gateway.journalled("sold").len(), 1);
        assert_eq!(booked(&gateway.app, "cash:POLYGON:USDT").await, amount(&made));
        assert_eq!(booked(&gateway.app, "discount:spot").await, usd(&made["payment"]["spotDiscountOffset"]));
        assert_eq!(booked(&gateway.app, "sales").await.negated(), usd(&made["plan"]["basePriceUsd"]));
        let found = find::find(&gateway.app, id(&made)).await.unwrap();
        assert_eq!((found.checkouts.len(), found.transfers.len(), found.orders.len()), (1, 1, 1));
        for text in [made["orderRef"].as_str().unwrap(), done["orderId"].as_str().unwrap(), &hash, esim["iccid"].as_str().unwrap()] {
            let found = find::find(&gateway.app, text).await.unwrap();
            assert_eq!(found.checkouts.iter().map(|c| c.id.as_str()).collect::<Vec<_>>(), [id(&made)], "{text}");
        }
    }

    async fn what_the_supplier_refuses_is_in_the_wallet(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        gateway.supplier("reject").await;
        let made = open(gateway, &token).await;
        let failed = settle(gateway, &made, "FAILED").await;
        assert_eq!(usd(&failed["refund"]["amountUsd"]), amount(&made));
        assert_eq!((&failed["refund"]["to"], &failed["orderStatus"]), (&json!("WALLET"), &json!("FAILED")));
        assert_eq!(failed.get("esim"), None);
        assert_eq!(balance(gateway, &token).await, amount(&made));
        assert_eq!(news(gateway, "ann@example.com").await, ["Your eSIM could not be delivered"]);
        gateway.supplier("ok").await;
        let listed = with_token(gateway, &token, "GET", "/api/agentic/orders?status=FAILED").await.expect(200);
        assert_eq!(listed["orders"][0]["orderNo"], made["orderRef"]);
    }

    async fn a_doubt_is_no_answer(gateway) with [("supplier_timeout_ms", "300"), ("answer_within_ms", "200")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        gateway.supplier("timeout").await;
        let made = open(gateway, &token).await;
        let waiting = settle(gateway, &made, "PROCESSING").await;
        assert_eq!(waiting["orderStatus"], "PROVISIONING");
        assert_eq!(balance(gateway, &token).await, Usd::ZERO);
        gateway.supplier("ok").await;
        gateway.until("recovery finishes it", async || {
            gateway.pass_time(5_000);
            (record(gateway, &made).await["status"] == "COMPLETED").then_some(())
        }).await;
        assert_eq!(gateway.journalled("sold").len(), 1, "sold once");
    }

    async fn a_late_payment_is_delivered_while_it_can_be(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = open(gateway, &token).await;
        expire(gateway, &made).await;
        let late = record(gateway, &made).await;
        assert!(late["instructions"].as_str().unwrap().contains("check out again"));
        gateway.pass_time(20 * HOUR_MS);
        settle(gateway, &made, "COMPLETED").await;
        assert_eq!(news(gateway, "ann@example.com").await, ["Your late payment arrived"]);
        assert_eq!(balance(gateway, &token).await, Usd::ZERO);
    }

    async fn a_late_payment_for_what_is_not_sold_any_more_is_in_the_wallet(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let (in_time, made) = (open(gateway, &token).await, open(gateway, &token).await);
        pay(gateway, &in_time).await;
        withdraw(gateway).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_status(gateway, &in_time, "COMPLETED").await;
        expire(gateway, &made).await;
        let failed = settle(gateway, &made, "FAILED").await;
        assert_eq!(usd(&failed["refund"]["amountUsd"]), amount(&made));
        assert_eq!(failed.get("orderId"), None);
        assert_eq!(balance(gateway, &token).await, amount(&made));
        assert_eq!(news(gateway, "ann@example.com").await, ["Your payment came too late"]);
    }

    async fn a_late_payment_below_our_cost_is_in_the_wallet(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = open(gateway, &token).await;
        expire(gateway, &made).await;
        let dear = Plan { cost: amount(&made).plus(Usd::from_micros(1)), ..Plan::clone(&plan(gateway, PLAN)) };
        let write = move |tx: &mut Tx| catalog::put(tx, &[(dear.clone(), PLAN.into())], "sim", true);
        gateway.app.store.write(0, write).await.unwrap();
        settle(gateway, &made, "FAILED").await;
        assert_eq!(balance(gateway, &token).await, amount(&made));
    }

    async fn a_payment_in_time_is_delivered_for_the_cost_that_was_agreed(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = open(gateway, &token).await;
        let agreed = plan(gateway, PLAN).cost;
        let dear = Plan { cost: amount(&made).plus(Usd::from_micros(1)), ..Plan::clone(&plan(gateway, PLAN)) };
        let write = move |tx: &mut Tx| catalog::put(tx, &[(dear.clone(), PLAN.into())], "sim", true);
        gateway.app.store.write(0, write).await.unwrap();
        settle(gateway, &made, "COMPLETED").await;
        assert_eq!(booked(&gateway.app, "cost:sim").await, agreed);
    }

    async fn after_its_late_hours_a_payment_is_the_operators(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = open(gateway, &token).await;
        gateway.pass_time(25 * HOUR_MS);
        until_status(gateway, &made, "EXPIRED").await;
        pay(gateway, &made).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        unmatched(gateway, 1).await;
        assert_eq!(record(gateway, &made).await["status"], "EXPIRED");
        assert_eq!(balance(gateway, &token).await, Usd::ZERO);
    }

    async fn a_second_payment_is_in_the_wallet(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = open(gateway, &token).await;
        settle(gateway, &made, "COMPLETED").await;
        pay(gateway, &made).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        gateway.until("the second payment is in the wallet", async || {
            (balance(gateway, &token).await == amount(&made)).then_some(())
        }).await;
        assert_eq!(news(gateway, "ann@example.com").await, ["Your second payment is in your wallet"]);
        assert_eq!(gateway.journalled("sold").len(), 1);
        // Both at once: one pays, the other does not.
        let twice = open(gateway, &token).await;
        pay(gateway, &twice).await;
        pay(gateway, &twice).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_status(gateway, &twice, "COMPLETED").await;
        gateway.until("the other one is in the wallet", async || {
            (balance(gateway, &token).await == amount(&made).plus(amount(&twice))).then_some(())
        }).await;
        assert_eq!(gateway.journalled("sold").len(), 2);
    }

    async fn another_amount_waits_for_the_operator(gateway)
        with [("wide_addresses_evm", "0"), ("least_kept_usd", "0.01")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let (over, under, far) = (open(gateway, &token).await, open(gateway, &token).await, open(gateway, &token).await);
        let cent = Usd::from_micros(10_000);
        pay_amount(gateway, &over, amount(&over).plus(cent)).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        let waiting = unmatched(gateway, 1).await.remove(0);
        assert!(waiting.near.iter().any(|near| near.id.as_str() == id(&over)), "it is suggested");
        assert_eq!(record(gateway, &over).await["confirmations"], 0);
        let over_id = InvoiceId::from_text(id(&over));
        let assigned = paid::assign(&gateway.app, "test", &waiting.transfer.id, &over_id, Some("asked by mail")).await.unwrap();
        assert_eq!((assigned.surplus, assigned.order.price), (cent, amount(&over)));
        until_status(gateway, &over, "COMPLETED").await;
        assert_eq!(balance(gateway, &token).await, cent);
        assert_eq!(news(gateway, "ann@example.com").await, ["Your payment was found"]);
        let again = paid::assign(&gateway.app, "test", &waiting.transfer.id, &over_id, None).await.err().unwrap();
        assert!(again.to_string().contains("UNMATCHED"), "{again}");

        let less = amount(&under).minus(cent);
        pay_amount(gateway, &under, less).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        let waiting = unmatched(gateway, 1).await.remove(0);
        let assigned = paid::assign(&gateway.app, "test", &waiting.transfer.id, &InvoiceId::from_text(id(&under)), None).await.unwrap();
        assert_eq!((assigned.surplus, assigned.order.price), (Usd::ZERO, less));
        until_status(gateway, &under, "COMPLETED").await;

        pay_amount(gateway, &far, cent).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        let waiting = unmatched(gateway, 1).await.remove(0);
        let refused = paid::assign(&gateway.app, "test", &waiting.transfer.id, &InvoiceId::from_text(id(&far)), None).await.err().unwrap();
        assert!(refused.to_string().contains("more than was paid"), "{refused}");
        let refused = paid::assign(&gateway.app, "test", &waiting.transfer.id, &over_id, None).await.err().unwrap();
        assert!(refused.to_string().contains("paid already"), "{refused}");
        let user = simgate::ops::operator::account_by_no(&gateway.app, account(gateway, "ann@example.com").await).await.unwrap();
        simgate::ops::transfers::assign(&gateway.app, "test", &waiting.transfer.id, &user, None).await.unwrap();
        assert_eq!(balance(gateway, &token).await, cent.plus(cent));
        assert_eq!(news(gateway, "ann@example.com").await[0], "A payment was put into your wallet");
    }

    async fn another_token_or_network_waits_for_the_operator(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = open(gateway, &token).await;
        for (network, currency) in [("ARBITRUM", "USDT"), ("POLYGON", "USDC"), ("BASE", "USDC")] {
            gateway.sandbox("pay", json!({ "invoiceId": id(&made), "network": network, "currency": currency })).await;
        }
        gateway.pass_time(UNTIL_FINAL_MS);
        for waiting in unmatched(gateway, 3).await {
            assert_eq!(waiting.near.iter().map(|near| near.id.as_str()).collect::<Vec<_>>(), [id(&made)]);
        }
        assert_eq!(record(gateway, &made).await["status"], "PENDING_PAYMENT");
    }

    async fn a_checkout_never_takes_what_came_before_it(gateway) with [("wide_addresses_evm", "0")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let first = open(gateway, &token).await;
        let price = usd(&first["plan"]["basePriceUsd"]);
        // What the next two will be asked for is there before they are: once seen in time, once seen later.
        send(gateway, Network::Polygon, address(&first), amount_at(gateway, price, 1)).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        unmatched(gateway, 1).await;
        let second = open(gateway, &token).await;
        assert_eq!(amount(&second), amount_at(gateway, price, 1));
        let chain = &gateway.app.sim_chains[&Network::Polygon];
        chain.behave(ChainMode::Down, 0).await.unwrap();
        chain.pay(address(&first), Currency::Usdt, amount_at(gateway, price, 2)).await.unwrap();
        gateway.pass_time(5_000);
        let third = open(gateway, &token).await;
        assert_eq!(amount(&third), amount_at(gateway, price, 2));
        chain.behave(ChainMode::Ok, 0).await.unwrap();
        gateway.pass_time(UNTIL_FINAL_MS);
        unmatched(gateway, 2).await;
        for checkout in [&second, &third] {
            assert_eq!(record(gateway, checkout).await["confirmations"], 0);
            settle(gateway, checkout, "COMPLETED").await;
        }
        assert_eq!(unmatched(gateway, 2).await.len(), 2);
    }

    async fn a_payment_in_time_is_found_however_late_we_look(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let (paid, unpaid) = (open(gateway, &token).await, open(gateway, &token).await);
        let chain = &gateway.app.sim_chains[&Network::Polygon];
        chain.behave(ChainMode::Down, 0).await.unwrap();
        chain.pay(address(&paid), Currency::Usdt, amount(&paid)).await.unwrap();
        gateway.pass_time(3 * HOUR_MS);
        for checkout in [&paid, &unpaid] {
            assert_eq!(record(gateway, checkout).await["status"], "PENDING_PAYMENT", "nobody has looked yet");
        }
        chain.behave(ChainMode::Ok, 0).await.unwrap();
        until_status(gateway, &paid, "COMPLETED").await;
        until_status(gateway, &unpaid, "EXPIRED").await;
        assert_eq!(news(gateway, "ann@example.com").await.len(), 0, "it was not late");
    }

    async fn a_payment_that_was_seen_does_not_expire(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let (made, other) = (open(gateway, &token).await, open(gateway, &token).await);
        gateway.pass_time(29 * MINUTE_MS + 59_000);
        pay(gateway, &made).await;
        gateway.until("the payment is seen", async || {
            (record(gateway, &made).await["confirmations"].as_i64().unwrap() > 0).then_some(())
        }).await;
        gateway.pass_time(1_000);
        until_status(gateway, &other, "EXPIRED").await;
        let shown = record(gateway, &made).await;
        assert_ne!(shown["status"], "EXPIRED");
        gateway.pass_time(UNTIL_FINAL_MS);
        until_status(gateway, &made, "COMPLETED").await;
    }

    async fn a_payment_that_vanishes_before_it_counts_is_awaited_again(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = open(gateway, &token).await;
        pay_and_vanish(gateway, &made).await;
        settle(gateway, &made, "COMPLETED").await;
        assert_eq!(gateway.journalled("sold").len(), 1);
    }

    async fn a_payment_that_vanishes_after_the_delivery_is_owed(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(1)).await;
        let made = open(gateway, &token).await;
        settle(gateway, &made, "COMPLETED").await;
        polygon(gateway).reorg(DEEP, Keep::Nothing).await.unwrap();
        gateway.until("it is taken back", async || {
            (balance(gateway, &token).await == Usd::ZERO).then_some(())
        }).await;
        assert_eq!(booked(&gateway.app, "receivable").await, amount(&made).minus(Usd::dollars(1)));
        assert_eq!(booked(&gateway.app, "cash:POLYGON:USDT").await, Usd::ZERO);
        assert_eq!(ask(gateway, &token, &json!({ "packageCode": PLAN })).await.problem(403), "ACCOUNT_SUSPENDED");
        assert_eq!(record(gateway, &made).await["status"], "COMPLETED", "what was delivered is delivered");
    }

    async fn a_payment_that_comes_back_is_settled_once(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        fund(gateway, "ann@example.com", Usd::dollars(1)).await;
        let made = open(gateway, &token).await;
        settle(gateway, &made, "COMPLETED").await;
        move_payments(gateway).await;
        gateway.until("it was taken back, or has come back", async || {
            gateway.pass_time(2_000);
            let cash = booked(&gateway.app, "cash:POLYGON:USDT").await;
            (cash == amount(&made) && balance(gateway, &token).await == Usd::dollars(1)).then_some(())
        }).await;
        assert_eq!(booked(&gateway.app, "receivable").await, Usd::ZERO);
        assert_eq!(gateway.journalled("sold").len(), 1);
        assert!(ledger::verify(&gateway.app).await.unwrap().breaches.is_empty());
        assert_eq!(news(gateway, "ann@example.com").await.len(), 0);
    }
}
