//! Claims on what is owed to guests: one, whoever comes first; none before it is sure; and what becomes of them when the
//! chain takes the payment back.

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::chain::sim::Keep;
use simgate::domain::money::Usd;
use simgate::ops::operator;

use crate::support::browser::{
    check_out, claim, claim_code, failed, guest, guest_record, open as look, owed, submit, wallet_of,
};
use crate::support::buying::*;
use crate::support::harness::{Gateway, booked, both_databases};
use crate::support::logins::sign_in;

/// A guest's checkout that was paid for, and of which the supplier has said nothing yet.
async fn undelivered(gateway: &Gateway) -> Value {
    let made = guest(gateway, "kid@example.com").await;
    gateway.sandbox("supplier", json!({ "mode": "slow", "delayMs": 3_600_000 })).await;
    settle(gateway, &made, "PROCESSING").await;
    made
}

/// The operator gives the order up: the supplier never spoke.
async fn give_up(gateway: &Gateway, checkout: &Value) {
    let order = guest_record(gateway, id(checkout)).await["orderId"].as_str().unwrap().to_string();
    operator::fail_order(&gateway.app, "test", &order, "given up").await.unwrap();
}

async fn ask_for_code(gateway: &Gateway, checkout: &Value) -> u16 {
    submit(gateway, &format!("/pay/{}/code", id(checkout)), &[("email", "mum@example.com")]).await.status
}

/// Clients that can be told apart, and may ask as often as a test waits for something.
const OPEN: [(&str, &str); 2] = [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")];
/// Short times, so that the supplier's silence is over soon.
const SHORT: [(&str, &str); 2] = [("answer_within_ms", "200"), ("supplier_timeout_ms", "300")];

both_databases! {
    async fn of_many_who_claim_one_gets_it(gateway) with [OPEN[0], OPEN[1]] {
        let made = failed(gateway, "kid@example.com").await;
        let mut people = Vec::new();
        for n in 0..6 {
            let email = format!("person{n}@example.com");
            let otp = claim_code(gateway, id(&made), &email).await;
            people.push((email, otp));
        }
        let claims = people.iter().map(|(email, otp)| claim(gateway, id(&made), email, otp));
        let mut statuses: Vec<u16> = join_all(claims).await.iter().map(|page| page.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409, 409, 409, 409, 409]);
        let mut wallets = Vec::new();
        for (email, _) in &people {
            wallets.push(wallet_of(gateway, email).await);
        }
        wallets.retain(|balance| balance.is_positive());
        assert_eq!((wallets, owed(gateway).await), (vec![amount(&made)], Usd::ZERO));
    }

    async fn who_claims_twice_at_once_gets_it_once(gateway) with [OPEN[0], OPEN[1]] {
        let made = failed(gateway, "kid@example.com").await;
        let otp = claim_code(gateway, id(&made), "mum@example.com").await;
        let claims = (0..4).map(|_| claim(gateway, id(&made), "mum@example.com", &otp));
        let won = join_all(claims).await.iter().filter(|page| page.status == 200).count();
        assert_eq!((won, wallet_of(gateway, "mum@example.com").await), (1, amount(&made)));
    }

    /// A code that claims nothing is not used up.
    async fn a_code_is_used_up_by_a_claim_alone(gateway) with [OPEN[0], OPEN[1]] {
        let (first, second) = (failed(gateway, "kid@example.com").await, failed(gateway, "kid@example.com").await);
        let (mum, dad) = ("mum@example.com", "dad@example.com");
        let late = claim_code(gateway, id(&first), dad).await;
        let otp = claim_code(gateway, id(&first), mum).await;
        assert_eq!(claim(gateway, id(&first), mum, &otp).await.status, 200);
        assert_eq!(claim(gateway, id(&first), dad, &late).await.status, 409, "too late for this one");
        assert_eq!(claim(gateway, id(&second), mum, &otp).await.status, 401, "used");
        assert_eq!(claim(gateway, id(&second), dad, &late).await.status, 200, "still good for another");
        assert_eq!((wallet_of(gateway, mum).await, wallet_of(gateway, dad).await), (amount(&first), amount(&second)));
    }

    /// A code claims wherever it was asked for. Whoever asks in another's name until no more is mailed does not keep
    /// them from the form.
    async fn a_code_of_any_door_claims(gateway) with [OPEN[0], OPEN[1]] {
        let made = failed(gateway, "kid@example.com").await;
        for _ in 0..4 {
            crate::support::logins::ask(gateway, "mum@example.com").await;
            gateway.pass_time(MINUTE_MS);
        }
        let otp = claim_code(gateway, id(&made), "mum@example.com").await;
        for invoice in ["inv_nope", "nope", &format!("{}x", id(&made))] {
            assert_eq!(claim(gateway, invoice, "mum@example.com", &otp).await.status, 404, "{invoice}");
        }
        assert_eq!((claim(gateway, id(&made), "mum@example.com", "1").await.status, owed(gateway).await), (401, amount(&made)));
        assert_eq!(claim(gateway, id(&made), "mum@example.com", &otp).await.status, 200);
        assert_eq!((wallet_of(gateway, "mum@example.com").await, owed(gateway).await), (amount(&made), Usd::ZERO));
    }

    /// A checkout of an agent's is its owner's: nothing of it is owed to who knows its id.
    async fn an_agents_checkout_cannot_be_claimed(gateway) with [OPEN[0], OPEN[1]] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = open(gateway, &token).await;
        gateway.supplier("reject").await;
        settle(gateway, &made, "FAILED").await;
        assert!(!look(gateway, &format!("/pay/{}", id(&made))).await.text.contains("/code\""));
        assert_eq!(ask_for_code(gateway, &made).await, 409);
        assert_eq!((balance(gateway, &token).await, owed(gateway).await), (amount(&made), Usd::ZERO));
    }

    /// Paid, and the process that asked the supplier is gone: nothing can be claimed until it is sure.
    async fn nothing_is_owed_while_the_order_is_open(gateway) with [SHORT[0], SHORT[1], OPEN[0], OPEN[1]] {
        let made = undelivered(gateway).await;
        assert_eq!((ask_for_code(gateway, &made).await, owed(gateway).await), (409, Usd::ZERO));
        assert_eq!(booked(&gateway.app, "held").await.negated(), amount(&made));
        give_up(gateway, &made).await;
        assert_eq!((owed(gateway).await, booked(&gateway.app, "held").await), (amount(&made), Usd::ZERO));
        let otp = claim_code(gateway, id(&made), "mum@example.com").await;
        assert_eq!(claim(gateway, id(&made), "mum@example.com", &otp).await.status, 200);
    }

    /// Somebody has claimed a second payment; then the supplier refuses: the first one is theirs too.
    async fn what_fails_after_a_claim_goes_to_who_claimed(gateway) with [SHORT[0], SHORT[1], OPEN[0], OPEN[1]] {
        let made = undelivered(gateway).await;
        pay(gateway, &made).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        gateway.until("the second payment is owed", async || (owed(gateway).await == amount(&made)).then_some(())).await;
        let otp = claim_code(gateway, id(&made), "mum@example.com").await;
        assert_eq!(claim(gateway, id(&made), "mum@example.com", &otp).await.status, 200);
        give_up(gateway, &made).await;
        let both = amount(&made).plus(amount(&made));
        assert_eq!((wallet_of(gateway, "mum@example.com").await, owed(gateway).await), (both, Usd::ZERO));
    }

    async fn a_payment_that_vanishes_is_owed_no_more(gateway) with [OPEN[0], OPEN[1]] {
        let made = failed(gateway, "kid@example.com").await;
        polygon(gateway).reorg(DEEP, Keep::Nothing).await.unwrap();
        gateway.until("it is taken back", async || (owed(gateway).await == Usd::ZERO).then_some(())).await;
        assert_eq!((booked(&gateway.app, "receivable").await, booked(&gateway.app, "cash:POLYGON:USDT").await), (Usd::ZERO, Usd::ZERO));
        assert_eq!(ask_for_code(gateway, &made).await, 409);
        check_out(gateway, "other@example.com").await;
    }

    async fn a_payment_that_comes_back_is_owed_again(gateway) with [OPEN[0], OPEN[1]] {
        let made = failed(gateway, "kid@example.com").await;
        move_payments(gateway).await;
        gateway.until("it was taken back, or has come back", async || {
            gateway.pass_time(2_000);
            let cash = booked(&gateway.app, "cash:POLYGON:USDT").await;
            (cash == amount(&made) && owed(gateway).await == amount(&made)).then_some(())
        }).await;
        let otp = claim_code(gateway, id(&made), "mum@example.com").await;
        assert_eq!(claim(gateway, id(&made), "mum@example.com", &otp).await.status, 200);
    }

    async fn a_payment_that_vanishes_after_the_claim_is_taken_from_who_claimed(gateway) with [OPEN[0], OPEN[1]] {
        let made = failed(gateway, "kid@example.com").await;
        let otp = claim_code(gateway, id(&made), "mum@example.com").await;
        assert_eq!(claim(gateway, id(&made), "mum@example.com", &otp).await.status, 200);
        polygon(gateway).reorg(DEEP, Keep::Nothing).await.unwrap();
        gateway.until("it is taken back", async || (wallet_of(gateway, "mum@example.com").await == Usd::ZERO).then_some(())).await;
        let mum = operator::account(&gateway.app, "mum@example.com").await.unwrap();
        assert!(!mum.suspended, "what came of the invoice is gone, and nothing is owed");
        assert_eq!((owed(gateway).await, booked(&gateway.app, "receivable").await), (Usd::ZERO, Usd::ZERO));
        check_out(gateway, "other@example.com").await;
    }

    /// The chain takes the payment back while the supplier is asked. That the supplier then refuses makes nobody richer.
    async fn what_vanished_before_it_failed_cannot_be_claimed(gateway) with [SHORT[0], SHORT[1], OPEN[0], OPEN[1]] {
        let made = undelivered(gateway).await;
        polygon(gateway).reorg(DEEP, Keep::Nothing).await.unwrap();
        gateway.until("it is missing", async || (booked(&gateway.app, "receivable").await == amount(&made)).then_some(())).await;
        give_up(gateway, &made).await;
        assert_eq!((owed(gateway).await, booked(&gateway.app, "receivable").await), (Usd::ZERO, Usd::ZERO));
        assert_eq!(guest_record(gateway, id(&made)).await.get("owed"), None);
        assert_eq!(ask_for_code(gateway, &made).await, 409);
        check_out(gateway, "other@example.com").await;
    }
}
