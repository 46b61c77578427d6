//! A purchase in a tool that can be paid from the wallet or by signature: one key buys once, whichever way; and an offer
//! that nobody signs takes nothing from anybody.

use serde_json::{Value, json};
use simgate::domain::coupon::Coupon;
use simgate::domain::money::Usd;

use super::proxy::Mood;
use super::signed_doubts::LATER_MS;
use super::signed_tools::{BUY, TOP_UP, demanded, filled, paying, price};
use super::till::{OTHER_PLAN, PLAN, Setup, Till, at_till, while_mining};
use crate::support::buying;
use crate::support::coupons::{self, limited, tally};
use crate::support::customers::{ORDERS, post_with_key};
use crate::support::harness::until;
use crate::support::payer::decoded;
use crate::support::tool_caller::{call, failure, fine, told};

const ANN: &str = "ann@example.com";
/// Answers come at once, and may be asked for as often as a quick machine can.
const POLLING: &[(&str, &str)] =
    &[("answer_within_ms", "50"), ("token_rate_limit", "0"), ("ip_rate_limit", "0")];

impl Till {
    /// What a tool answers to a caller that can sign, with a payment or without.
    async fn use_tool(&self, tool: &str, wish: &Value, signature: Option<&str>) -> Value {
        let meta = match signature {
            Some(signature) => json!({ "x402/payment": decoded(signature) }),
            None => json!({ "x402/client": { "version": 2 } }),
        };
        told(&self.gateway, tool, &paying(self, tool, wish.clone(), meta).await).await
    }

    /// The same until it has bought, while blocks come.
    async fn until_bought(&self, tool: &str, wish: &Value) -> Value {
        until("it is bought", async || {
            self.node.mine(1).await;
            let answer = self.use_tool(tool, wish, None).await;
            assert!(answer["accepts"].is_null(), "nobody is asked to pay again: {answer}");
            (answer["purchased"] == true).then_some(answer)
        })
        .await
    }
}

at_till! {
    async fn a_key_is_paid_once(till) with { settings: POLLING } {
        let wish = json!({ "packageCode": PLAN, "idempotencyKey": "trip" });
        let (first, second) = (demanded(till, BUY, &wish).await, demanded(till, BUY, &wish).await);
        let signature = till.payer.pay(&first["accepts"][0], 1);
        assert_eq!(till.use_tool(BUY, &wish, Some(&signature)).await["pending"], true);
        // Nothing is in a block yet. Whoever lost the answer calls again, unsigned or with another signature.
        for again in [None, Some(till.payer.pay(&second["accepts"][0], 2))] {
            let answer = till.use_tool(BUY, &wish, again.as_deref()).await;
            assert_eq!((&answer["pending"], &answer["accepts"]), (&json!(true), &Value::Null));
        }
        let other = json!({ "packageCode": OTHER_PLAN, "idempotencyKey": "trip" });
        assert_eq!(failure(&till.use_tool(BUY, &other, None).await), "IDEMPOTENCY_CONFLICT");

        // At a door that shows no payments, the wallet does not pay for what a signature is paying for.
        buying::fund(&till.gateway, ANN, Usd::dollars(50)).await;
        let by_wallet = async || post_with_key(&till.gateway, &till.token, "trip", ORDERS, json!({ "packageCode": PLAN })).await;
        assert_eq!(by_wallet().await.problem(409), "IDEMPOTENCY_CONFLICT");

        let bought = till.until_bought(BUY, &wish).await;
        assert_eq!(by_wallet().await.expect(200)["orderId"], bought["orderId"]);
        assert_eq!(buying::balance(&till.gateway, &till.token).await, Usd::dollars(50));
        assert_eq!((&bought["replayed"], &bought["order"]["partnerRefId"]), (&json!(true), &json!("trip")));
        for again in [signature, till.payer.pay(&second["accepts"][0], 3)] {
            assert_eq!(till.use_tool(BUY, &wish, Some(&again)).await["orderId"], bought["orderId"]);
        }
        assert_eq!(failure(&till.use_tool(BUY, &other, None).await), "IDEMPOTENCY_CONFLICT");
        assert_eq!(till.spent().await, price(&first));
        assert_eq!(till.gateway.journalled("sold").len(), 1);
    }

    async fn a_key_of_a_topup_is_paid_once(till) {
        let mut wish = filled(till).await;
        wish["idempotencyKey"] = json!("more");
        let before = till.spent().await;
        let due = demanded(till, TOP_UP, &wish).await;
        let signature = till.payer.pay(&due["accepts"][0], 2);
        let paid = while_mining(&till.node, till.use_tool(TOP_UP, &wish, Some(&signature))).await;
        let again = fine(till.use_tool(TOP_UP, &wish, None).await);
        assert_eq!((&again["replayed"], &again["topUpOrder"]["id"]), (&json!(true), &paid["topUpOrder"]["id"]));
        assert_eq!(till.spent().await, before.plus(price(&due)));
    }

    /// A key that the wallet paid for is not paid for again by a signature that comes late.
    async fn what_the_wallet_bought_is_not_signed_for(till) {
        let wish = json!({ "packageCode": PLAN, "idempotencyKey": "trip" });
        let due = demanded(till, BUY, &wish).await;
        buying::fund(&till.gateway, ANN, Usd::dollars(50)).await;
        let bought = fine(till.use_tool(BUY, &wish, None).await);
        assert_eq!((&bought["purchased"], &bought["replayed"]), (&json!(true), &json!(false)));
        let again = till.use_tool(BUY, &wish, Some(&till.payer.pay(&due["accepts"][0], 1))).await;
        assert_eq!((&again["orderId"], &again["replayed"]), (&bought["orderId"], &json!(true)));
        assert_eq!(till.spent().await, Usd::ZERO);
    }

    /// A signature that died and an order that failed leave their key free.
    async fn a_key_that_bought_nothing_is_free(till) with { proxies: 1, settings: POLLING } {
        let wish = json!({ "packageCode": PLAN, "idempotencyKey": "trip" });
        let due = demanded(till, BUY, &wish).await;
        till.proxies[0].set(Mood::Swallows);
        let signature = till.payer.pay(&due["accepts"][0], 1);
        assert_eq!(till.use_tool(BUY, &wish, Some(&signature)).await["pending"], true);
        until("it was written down", async || (till.pending().await == 1).then_some(())).await;
        till.gateway.pass_time(LATER_MS);
        till.node.pass_time(LATER_MS / 1_000).await;
        let due = until("the signature is dead", async || {
            till.node.mine(1).await;
            let answer = till.use_tool(BUY, &wish, None).await;
            answer["accepts"].is_array().then_some(answer)
        }).await;
        till.proxies[0].set(Mood::Honest);

        till.gateway.supplier("reject").await;
        let mut fresh = till.payer.wish(&due["accepts"][0], 2);
        fresh.permission.valid_before += (LATER_MS / 1_000).unsigned_abs();
        assert_eq!(till.use_tool(BUY, &wish, Some(&till.payer.sign(&fresh))).await["pending"], true);
        let refunded = until("the payment is in the wallet", async || {
            till.node.mine(1).await;
            Some(buying::balance(&till.gateway, &till.token).await).filter(|balance| balance.is_positive())
        }).await;
        assert_eq!(refunded, price(&due));
        till.gateway.supplier("ok").await;
        buying::fund(&till.gateway, ANN, Usd::dollars(1)).await;
        let bought = fine(till.use_tool(BUY, &wish, None).await);
        assert_eq!((&bought["purchased"], &bought["replayed"]), (&json!(true), &json!(false)));
        assert_eq!(till.spent().await, price(&due));
    }

    /// A use of a coupon is taken by whoever pays, or signs: an offer leaves it where it is.
    async fn an_offer_does_not_use_up_a_coupon(till) with { settings: POLLING } {
        limited(&till.gateway, "ONCE", 1).await;
        let wish = json!({ "packageCode": PLAN, "discountCode": "once" });
        let due = demanded(till, BUY, &wish).await;
        let other = demanded(till, BUY, &wish).await;
        assert_eq!(tally(&till.gateway, "ONCE").await, (0, 0));
        let signature = till.payer.pay(&due["accepts"][0], 1);
        assert_eq!(till.use_tool(BUY, &wish, Some(&signature)).await["pending"], true);
        assert_eq!(tally(&till.gateway, "ONCE").await, (1, 0));
        // It is gone for everybody else, and nothing is taken for another offer.
        buying::fund(&till.gateway, ANN, Usd::dollars(50)).await;
        assert_eq!(failure(&till.use_tool(BUY, &wish, None).await), "COUPON_INVALID");
        let late = till.use_tool(BUY, &wish, Some(&till.payer.pay(&other["accepts"][0], 2))).await;
        assert_eq!(failure(&late), "COUPON_INVALID");
        until("it is spent", async || {
            till.node.mine(1).await;
            (tally(&till.gateway, "ONCE").await == (0, 1)).then_some(())
        }).await;
        assert_eq!(till.spent().await, price(&due));
        assert_eq!(buying::balance(&till.gateway, &till.token).await, Usd::dollars(50));
    }

    /// Whoever was shown an offer can still pay from the wallet, with the same coupon and the same key.
    async fn the_wallet_pays_for_what_was_offered(till) {
        coupons::make(&till.gateway, Coupon { uses_per_user: Some(1), ..coupons::plain(&till.gateway, "MINE", 10) }).await;
        let wish = json!({ "packageCode": PLAN, "discountCode": "MINE", "idempotencyKey": "trip" });
        let due = demanded(till, BUY, &wish).await;
        assert!(demanded(till, BUY, &wish).await["magicLink"].is_string());
        buying::fund(&till.gateway, ANN, Usd::dollars(50)).await;
        assert_eq!(fine(till.use_tool(BUY, &wish, None).await)["purchased"], true);
        assert_eq!(tally(&till.gateway, "MINE").await, (0, 1));
        let mut other = wish.clone();
        other["idempotencyKey"] = json!("another trip");
        let signature = till.payer.pay(&due["accepts"][0], 1);
        assert_eq!(failure(&till.use_tool(BUY, &other, Some(&signature)).await), "COUPON_INVALID");
        assert_eq!(till.spent().await, Usd::ZERO);
    }

    /// The time to pay passes while a signature is on its way: nobody is told to begin anew.
    async fn what_was_signed_for_does_not_expire(till) with { proxies: 1, settings: POLLING } {
        let offer = till.offer().await;
        let other = till.ask(&till.token, json!({ "packageCode": PLAN })).await.expect(402);
        till.proxies[0].set(Mood::Swallows);
        let mut wish = till.payer.wish(&offer, 1);
        wish.permission.valid_before += 3_000;
        let signature = till.payer.sign(&wish);
        let invoice = till.pay(&signature).await.expect(202)["invoiceId"].clone();
        until("it was written down", async || (till.pending().await == 1).then_some(())).await;
        till.gateway.pass_time(31 * 60_000);
        till.node.pass_time(31 * 60).await;
        until("what nobody paid is expired", async || {
            till.node.mine(1).await;
            (till.poll(&other["invoiceId"]).await["status"] == "EXPIRED").then_some(())
        }).await;
        assert_eq!(till.pay(&signature).await.expect(202)["status"], "PENDING_PAYMENT");
        till.proxies[0].set(Mood::Honest);
        till.until_completed(&invoice).await;
        assert_eq!(till.spent().await.micros().to_string(), offer["amount"]);
    }

    /// Offers are bounded; the link is not.
    async fn whoever_asks_often_still_gets_the_link(till) {
        let wish = json!({ "packageCode": PLAN });
        demanded(till, BUY, &wish).await;
        for _ in 0..50 {
            assert!(till.use_tool(BUY, &wish, None).await["magicLink"].is_string());
        }
        let short = fine(call(&till.gateway, BUY, json!({ "packageCode": PLAN, "token": till.token })).await);
        assert!(short["magicLink"].is_string());
        let last = till.use_tool(BUY, &wish, None).await;
        assert_eq!((&last["purchased"], &last["accepts"]), (&json!(false), &Value::Null));
    }
}
