//! People round: which amounts near a price are known as its payment, whose they are, and how they are booked. Nobody
//! pays for somebody else, whatever fees exchanges take and however they batch.

use serde_json::{Value, json};
use simgate::chain::sim::Payment;
use simgate::domain::checkout;
use simgate::domain::ids::{InvoiceId, OrderId};
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::transfer::{Block, Sighting, TransferId};
use simgate::ops::{booking, cancel, find, transfers as desk};
use simgate::store::tx::Tx;
use simgate::store::{cursors, transfers};

use crate::support::browser;
use crate::support::buying::*;
use crate::support::database;
use crate::support::harness::{Gateway, booked, both_databases};
use crate::support::logins::sign_in;

/// So few addresses that all strangers are on one of them.
const ONE_ADDRESS: (&str, &str) = ("wide_addresses_evm", "2");

fn micros(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

fn price(checkout: &Value) -> Usd {
    usd(&checkout["plan"]["basePriceUsd"])
}

/// A checkout of the usual plan at another price.
pub async fn open_at(gateway: &Gateway, email: &str, cents: i64) -> Value {
    let token = sign_in(gateway, email, "agent").await;
    set_price(gateway, cents);
    open(gateway, &token).await
}

pub fn set_price(gateway: &Gateway, cents: i64) {
    let sql = format!(
        "UPDATE prices SET price = {} WHERE code = '{PLAN}' AND price_list = 'retail'",
        cents * 10_000
    );
    database::execute(gateway.app.store.location(), &sql).unwrap();
}

/// Pays this much, and waits until it is final.
async fn pay_final(gateway: &Gateway, checkout: &Value, amount: Usd) {
    pay_amount(gateway, checkout, amount).await;
    gateway.pass_time(UNTIL_FINAL_MS);
}

/// Until every network was scanned up to now.
pub async fn all_scanned(gateway: &Gateway) {
    let now = gateway.app.now();
    gateway
        .until("the scanners are there", async || {
            gateway.pass_time(200);
            let read =
                |tx: &mut Tx| Network::ALL.map(|network| cursors::get(tx, network)).into_iter().collect();
            let cursors: Vec<Option<cursors::Cursor>> = gateway.app.store.read(read).await.unwrap();
            cursors.iter().flatten().all(|cursor| cursor.scanned_time > now).then_some(())
        })
        .await;
}

async fn page(gateway: &Gateway, checkout: &Value) -> String {
    browser::open(gateway, &format!("/pay/{}", id(checkout))).await.text
}

both_databases! {
    async fn a_rounded_payment_is_known_to_the_last_micro_dollar(gateway) {
        let (mut off, mut sold) = (Usd::ZERO, 0);
        for (email, rounded) in [("low@example.com", -10_000), ("even@example.com", 0), ("cent@example.com", 9_999), ("high@example.com", 20_000)] {
            let made = open_at(gateway, email, 449).await;
            let payment = &made["payment"];
            assert_eq!((&payment["wide"], usd(&payment["minAmount"]), usd(&payment["maxAmount"])),
                (&json!(true), price(&made).minus(micros(10_000)), price(&made).plus(micros(20_000))));
            assert!(page(gateway, &made).await.contains("anything from 4.48 to 4.51 USDT is known as your payment"));
            pay_final(gateway, &made, price(&made).plus(micros(rounded))).await;
            let done = until_status(gateway, &made, "COMPLETED").await;
            assert_eq!(done["orderStatus"], "FULFILLED");
            off = off.plus(micros(rounded));
            sold += 1;
        }
        assert_eq!(gateway.journalled("sold").len(), sold);
        assert_eq!(booked(&gateway.app, "discount:spot").await, micros(10_000));
        assert_eq!(booked(&gateway.app, "rounding").await, micros(9_999 + 20_000).negated());
        assert_eq!(booked(&gateway.app, "sales").await.negated(), micros(4 * 4_490_000));
        assert_eq!(booked(&gateway.app, "cash:POLYGON:USDT").await, micros(4 * 4_490_000).plus(off));
        // A micro-dollar beyond either end is nobody's.
        for (email, rounded, waiting) in [("short@example.com", -10_001, 1), ("over@example.com", 20_001, 2)] {
            let made = open_at(gateway, email, 449).await;
            assert!(!page(gateway, &made).await.contains("nearly fits"));
            let hash = pay_amount(gateway, &made, price(&made).plus(micros(rounded))).await;
            gateway.pass_time(UNTIL_FINAL_MS);
            unmatched(gateway, waiting).await;
            let told = page(gateway, &made).await;
            assert!(told.contains("A payment that nearly fits was seen") && told.contains(made["orderRef"].as_str().unwrap()));
            assert!(!told.contains(&hash) && !told.contains(&price(&made).plus(micros(rounded)).to_string()));
            assert!(record(gateway, &made).await["instructions"].as_str().unwrap().contains("nearly fits"));
            settle(gateway, &made, "COMPLETED").await;
        }
    }

    async fn another_network_or_token_is_not_rounded(gateway) {
        let made = open_at(gateway, "ann@example.com", 449).await;
        for (network, currency) in [("ARBITRUM", "USDT"), ("POLYGON", "USDC"), ("BASE", "USDC")] {
            let body = json!({ "invoiceId": id(&made), "network": network, "currency": currency, "amountUsd": 4.49 });
            gateway.sandbox("pay", body).await;
        }
        gateway.pass_time(UNTIL_FINAL_MS);
        unmatched(gateway, 3).await;
        assert_eq!(record(gateway, &made).await["status"], "PENDING_PAYMENT");
        assert!(page(gateway, &made).await.contains("nearly fits"));
    }

    async fn a_slot_rests_after_its_payment(gateway) with [ONE_ADDRESS] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        set_price(gateway, 449);
        let made = open(gateway, &token).await;
        pay_final(gateway, &made, price(&made)).await;
        until_status(gateway, &made, "COMPLETED").await;
        // A second rounded payment is its owner's; too much over is nobody's.
        pay_final(gateway, &made, micros(4_500_000)).await;
        gateway.until("the second payment is in the wallet", async || {
            (balance(gateway, &token).await == micros(4_500_000)).then_some(())
        }).await;
        pay_final(gateway, &made, micros(4_530_000)).await;
        unmatched(gateway, 1).await;
        // Nobody else comes near it meanwhile: there is one address, and 4.52 would share a bucket.
        for (email, cents) in [("bob@example.com", 449), ("cat@example.com", 452)] {
            let other = open_at(gateway, email, cents).await;
            assert_eq!(other["payment"]["wide"], false, "{cents}");
            assert!(address(&other) != address(&made));
            assert!(other["payment"]["minAmount"] == other["payment"]["expectedAmount"]);
            assert!(page(gateway, &other).await.contains("a rounded one is not known"));
        }
        // A day after it closed, and when all scanners have passed that time, it is free again.
        gateway.pass_time(26 * HOUR_MS);
        all_scanned(gateway).await;
        let rested = gateway.until("the slot is free", async || {
            gateway.pass_time(200);
            let free = database::rows(gateway.app.store.location(), "SELECT address FROM slots");
            free.is_empty().then_some(())
        });
        rested.await;
        let again = open_at(gateway, "dan@example.com", 449).await;
        assert_eq!((address(&again), &again["payment"]["wide"]), (address(&made), &json!(true)));
        // What was paid for the old one in its time is not for the new one.
        assert_eq!(record(gateway, &again).await["status"], "PENDING_PAYMENT");
    }

    async fn a_fee_may_turn_one_payment_into_anothers(gateway) with [ONE_ADDRESS] {
        let small = open_at(gateway, "ann@example.com", 500).await;
        assert_eq!(small["payment"]["wide"], true);
        let large = open_at(gateway, "bob@example.com", 800).await;
        assert_eq!((address(&small), &large["payment"]["wide"]), (address(&large), &json!(true)));
        // The one page says what has changed.
        let told = record(gateway, &small).await;
        assert_eq!((&told["payment"]["wide"], &told["payment"]["minAmount"]), (&json!(false), &small["payment"]["expectedAmount"]));
        pay_final(gateway, &small, Usd::dollars(5)).await;
        unmatched(gateway, 1).await;
        assert_eq!(record(gateway, &small).await["status"], "PENDING_PAYMENT");
        pay_final(gateway, &large, Usd::dollars(8)).await;
        until_status(gateway, &large, "COMPLETED").await;
        assert_eq!(record(gateway, &small).await["payment"]["wide"], true);
        pay_final(gateway, &small, Usd::dollars(5)).await;
        until_status(gateway, &small, "COMPLETED").await;
        assert_eq!(unmatched(gateway, 1).await.len(), 1);
        // More than three dollars apart nobody is in anybody's way; the exact amount is known anyhow.
        let low = open_at(gateway, "cat@example.com", 1_000).await;
        let (near, far) = (open_at(gateway, "dan@example.com", 1_200).await, open_at(gateway, "eve@example.com", 1_600).await);
        assert!(address(&low) == address(&near) && address(&near) == address(&far));
        settle(gateway, &low, "COMPLETED").await;
        pay_final(gateway, &near, Usd::dollars(12)).await;
        until_status(gateway, &near, "COMPLETED").await;
    }

    async fn slots_lie_first_where_nobody_can_be_mistaken(gateway) {
        let one = open_at(gateway, "ann@example.com", 500).await;
        let near = open_at(gateway, "bob@example.com", 700).await;
        let far = open_at(gateway, "cat@example.com", 1_100).await;
        assert!(address(&near) != address(&one) && address(&far) == address(&one));
        for made in [&one, &near, &far] {
            assert_eq!(made["payment"]["wide"], true);
            pay_final(gateway, made, price(made)).await;
            until_status(gateway, made, "COMPLETED").await;
        }
    }

    async fn one_withdrawal_pays_many(gateway) {
        let emails = ["ann@example.com", "bob@example.com", "cat@example.com", "dan@example.com"];
        let mut made = Vec::new();
        for email in emails {
            made.push(open_at(gateway, email, 499).await);
        }
        let mut payments: Vec<Payment> = made.iter().map(|checkout| Payment {
            recipient: address(checkout).into(),
            currency: Currency::Usdt,
            amount: Usd::dollars(5),
        }).collect();
        // The exchange kept a fee of the last one.
        payments[3].amount = Usd::dollars(4);
        gateway.app.sim_chains[&Network::Polygon].pay_many(&payments).await.unwrap();
        gateway.app.expected.send_modify(|count| *count += 1);
        gateway.pass_time(UNTIL_FINAL_MS);
        for checkout in &made[..3] {
            until_status(gateway, checkout, "COMPLETED").await;
        }
        unmatched(gateway, 1).await;
        assert_eq!(record(gateway, &made[3]).await["status"], "PENDING_PAYMENT");
        assert_eq!(gateway.journalled("sold").len(), 3);
    }

    /// What a signature moved is for what was signed, and nothing near it.
    async fn a_signature_is_never_rounded(gateway) {
        let made = open_at(gateway, "ann@example.com", 449).await;
        let (recipient, now, app) = (address(&made).to_string(), gateway.app.now(), gateway.app.clone());
        let seen = move |position: i64, amount: i64, nonce: Option<&str>| Sighting {
            id: TransferId { network: Network::Polygon, tx_hash: format!("0x{}", "ab".repeat(32)), position },
            currency: Currency::Usdt,
            sender: "0x9858EfFD232B4033E47d90003D41EC34EcaEda94".into(),
            recipient: recipient.clone(),
            amount: micros(amount),
            block: Block { number: 1, hash: "0x01".into(), time: now },
            payment_nonce: nonce.map(str::to_string),
        };
        let noted = [seen(0, 4_490_000, Some("0x07")), seen(1, 4_490_000, None), seen(2, 4_479_999, None)];
        let ids: Vec<TransferId> = noted.iter().map(|seen| seen.id.clone()).collect();
        let write = move |tx: &mut Tx| {
            booking::sighted::note(&app, tx, &noted, now)?;
            ids.iter().map(|id| Ok(transfers::by_id(tx, id)?.unwrap().invoice)).collect::<simgate::error::Result<Vec<_>>>()
        };
        let invoices = gateway.app.store.write(0, write).await.unwrap();
        assert_eq!(invoices, [None, Some(InvoiceId::from_text(id(&made))), None]);
    }

    async fn what_goes_back_is_what_was_paid(gateway) {
        gateway.supplier("reject").await;
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        set_price(gateway, 449);
        let made = open(gateway, &token).await;
        pay_final(gateway, &made, micros(4_510_000)).await;
        let failed = until_status(gateway, &made, "FAILED").await;
        assert_eq!(usd(&failed["refund"]["amountUsd"]), micros(4_510_000));
        assert_eq!(balance(gateway, &token).await, micros(4_510_000));
        gateway.supplier("ok").await;
        let made = open(gateway, &token).await;
        pay_final(gateway, &made, micros(4_500_000)).await;
        let done = until_status(gateway, &made, "COMPLETED").await;
        assert_eq!(booked(&gateway.app, "rounding").await, micros(10_000).negated());
        let order = OrderId::from_text(done["orderId"].as_str().unwrap());
        let refunded = cancel::cancel(&gateway.app, account(gateway, "ann@example.com").await, &order).await.unwrap().refunded;
        assert_eq!(refunded, micros(4_500_000));
        assert_eq!(balance(gateway, &token).await, micros(9_010_000));
        assert_eq!(booked(&gateway.app, "rounding").await, Usd::ZERO);
    }

    async fn dust_at_a_checkout_address_is_not_kept(gateway) {
        let made = open_at(gateway, "ann@example.com", 449).await;
        let dust = pay_amount(gateway, &made, micros(99_999)).await;
        let kept = pay_amount(gateway, &made, micros(100_000)).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        unmatched(gateway, 1).await;
        assert_eq!(find::find(&gateway.app, &kept).await.unwrap().transfers.len(), 1);
        assert_eq!(find::find(&gateway.app, &dust).await.unwrap().transfers.len(), 0);
        settle(gateway, &made, "COMPLETED").await;
    }

    /// A coupon goes down to what the plan costs us, and a cent of it may be missing: late it is delivered all the same.
    async fn a_coupon_leaves_room_for_a_rounded_payment(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        crate::support::coupons::make(gateway, crate::support::coupons::plain(gateway, "ALL", 100)).await;
        let plan = crate::support::coupons::plan(gateway, PLAN);
        let body = json!({ "packageCode": PLAN, "discountCode": "ALL" });
        // One with a slot and, beside it, one without.
        let both = [ask(gateway, &token, &body).await.expect(402), ask(gateway, &token, &body).await.expect(402)];
        for (made, wide) in both.iter().zip([true, false]) {
            assert_eq!(made["payment"]["wide"], wide);
            assert!(plan.cost <= usd(&made["payment"]["minAmount"]));
            expire(gateway, made).await;
            pay_final(gateway, made, usd(&made["payment"]["minAmount"])).await;
            until_status(gateway, made, "COMPLETED").await;
        }
        // By the operator's word too.
        let made = ask(gateway, &token, &body).await.expect(402);
        gateway.pass_time(25 * HOUR_MS);
        until_status(gateway, &made, "EXPIRED").await;
        pay_final(gateway, &made, amount(&made)).await;
        let waiting = unmatched(gateway, 1).await.remove(0);
        let invoice = InvoiceId::from_text(id(&made));
        simgate::ops::checkout::paid::assign(&gateway.app, "test", &waiting.transfer.id, &invoice, None).await.unwrap();
        until_status(gateway, &made, "COMPLETED").await;
    }

    async fn what_fits_two_needs_a_proof(gateway) with [ONE_ADDRESS] {
        let (small, large) = (open_at(gateway, "ann@example.com", 500).await, open_at(gateway, "bob@example.com", 700).await);
        assert_eq!(address(&small), address(&large));
        pay_final(gateway, &small, micros(4_800_000)).await;
        let waiting = unmatched(gateway, 1).await.remove(0);
        assert_eq!(waiting.near.len(), 2);
        let transfer = waiting.transfer.id.to_string();
        for to in [id(&small), "ann@example.com"] {
            let told = crate::support::command_line::simgate(gateway, &["transfers", "assign", &transfer, to, "--json"]).document(1);
            let error = told["error"].as_str().unwrap();
            assert!(error.contains(id(&small)) && error.contains(id(&large)), "{error}");
        }
        let args = ["transfers", "assign", &transfer, id(&small), "--reason", "mail", "--proof", "receipt 77", "--json"];
        let told = crate::support::command_line::simgate(gateway, &args).document(0);
        assert_eq!(told["chargedUsd"].to_string(), "4.8");
        until_status(gateway, &small, "COMPLETED").await;
        let log = database::rows(gateway.app.store.location(), "SELECT detail FROM audit");
        assert!(log.iter().flatten().any(|detail| detail.contains("proof: receipt 77")), "{log:?}");
        assert_eq!(booked(&gateway.app, "discount:spot").await, micros(200_000), "the shortfall is booked");
        assert_eq!(desk::unmatched(&gateway.app).await.unwrap().len(), 0);
    }
}

#[test]
fn offsets_are_drawn_from_the_whole_ring() {
    let drawn: Vec<i64> =
        [0, 1, 9_998, 9_999, u64::MAX].map(|chance| checkout::any_offset(chance).micros()).into();
    assert!(drawn.iter().all(|offset| (1..=checkout::OFFSETS).contains(offset)), "{drawn:?}");
    assert_eq!((drawn[0], drawn[2], drawn[3]), (1, 9_999, 1));
}
