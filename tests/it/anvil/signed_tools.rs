//! Payment by signature inside a tool: who can sign is asked to, who cannot gets the link, and the wallet stays as it is.

use serde_json::{Value, json};
use simgate::domain::ledger::CreditKind;
use simgate::domain::money::Usd;
use simgate::ops::operator::{self, Adjustment, Direction};

use super::till::{PLAN, Setup, Till, at_till, while_mining};
use crate::support::buying;
use crate::support::harness::{Reply, reply};
use crate::support::payer::decoded;
use crate::support::tool_caller::{call, failure, fine, request, result, told, tool_call};

pub const BUY: &str = "purchase_esim_with_wallet";
pub const TOP_UP: &str = "purchase_topup";

/// A call of a tool with this in its `_meta`.
pub async fn paying(till: &Till, tool: &str, mut arguments: Value, meta: Value) -> Reply {
    arguments["token"] = json!(till.token);
    let mut message = tool_call(tool, arguments);
    message["params"]["_meta"] = meta;
    reply(request(&till.gateway, &message)).await
}

async fn purchase(till: &Till, meta: Value) -> Reply {
    paying(till, BUY, json!({ "packageCode": PLAN }), meta).await
}

/// What a signer must pay, once payments are taken.
pub async fn demanded(till: &Till, tool: &str, arguments: &Value) -> Value {
    till.gateway
        .until("payments by signature are taken", async || {
            let meta = json!({ "x402/client": { "version": 2 } });
            let asked = paying(till, tool, arguments.clone(), meta).await;
            let content = told(&till.gateway, tool, &asked).await;
            content["accepts"].is_array().then_some(content)
        })
        .await
}

async fn demand(till: &Till) -> Value {
    demanded(till, BUY, &json!({ "packageCode": PLAN })).await
}

/// An eSIM that was paid by signature, and what fills it: the arguments of a top-up.
pub async fn filled(till: &Till) -> Value {
    let payment = decoded(&till.payer.pay(&demand(till).await["accepts"][0], 1));
    let paid = while_mining(&till.node, purchase(till, json!({ "x402/payment": payment }))).await;
    let order = fine(told(&till.gateway, BUY, &paid).await)["orderId"].clone();
    let asked = json!({ "orderId": order, "token": till.token });
    let listed = fine(call(&till.gateway, "get_topup_packages", asked).await);
    json!({ "orderId": order, "packageCode": listed["packages"][0]["packageCode"] })
}

/// The top-ups of the one eSIM.
async fn topups(till: &Till) -> Vec<Value> {
    let listed = fine(call(&till.gateway, "get_user_orders", json!({ "token": till.token })).await);
    listed["orders"][0]["topUps"].as_array().unwrap().clone()
}

async fn empty_wallet(till: &Till, amount: Usd) {
    let account = buying::account(&till.gateway, "ann@example.com").await;
    let all = Adjustment { account, amount, kind: CreditKind::Promo, reason: "test".into() };
    operator::adjust_wallet(&till.gateway.app, "test", Direction::Debit, all, None).await.unwrap();
}

pub fn price(due: &Value) -> Usd {
    Usd::from_micros(due["accepts"][0]["amount"].as_str().unwrap().parse().unwrap())
}

at_till! {
    async fn a_tool_is_paid_by_signature(till) {
        let due = demand(till).await;
        assert_eq!((&due["purchased"], &due["x402Version"]), (&json!(false), &json!(2)));
        assert!(due["magicLink"].as_str().unwrap().contains("/topup/"));
        assert_eq!(due["accepts"][0]["extra"]["paymentFlow"], "upfront");
        assert_eq!(due["resource"]["url"], "mcp://tool/purchase_esim_with_wallet");
        // Who says nothing of signatures gets the link alone.
        let plain = fine(call(&till.gateway, BUY, json!({ "packageCode": PLAN, "token": till.token })).await);
        assert_eq!((&plain["accepts"], &plain["purchased"]), (&Value::Null, &json!(false)));

        let payment = decoded(&till.payer.pay(&due["accepts"][0], 1));
        let paid = while_mining(&till.node, purchase(till, json!({ "x402/payment": payment }))).await;
        let bought = fine(told(&till.gateway, BUY, &paid).await);
        assert_eq!((&bought["purchased"], &bought["order"]["status"]), (&json!(true), &json!("FULFILLED")));
        let receipt = result(&paid)["_meta"]["x402/payment-response"].clone();
        assert_eq!((&receipt["success"], &receipt["payer"]), (&json!(true), &json!(till.payer.address)));
        assert_eq!(buying::balance(&till.gateway, &till.token).await, Usd::ZERO);
        let price = price(&due);
        assert_eq!(till.spent().await, price);

        // The same signature again is the same purchase.
        let again = purchase(till, json!({ "x402/payment": payment })).await;
        assert_eq!(fine(told(&till.gateway, BUY, &again).await)["orderId"], bought["orderId"]);
        assert_eq!(till.spent().await, price);

        // One that does not fit moves nothing, and says why.
        let mut wish = till.payer.wish(&demand(till).await["accepts"][0], 2);
        wish.permission.value -= 1;
        let refused = purchase(till, json!({ "x402/payment": decoded(&till.payer.sign(&wish)) })).await;
        let refused = told(&till.gateway, BUY, &refused).await;
        assert_eq!(refused["error"], "invalid_exact_evm_payload_authorization_value_mismatch");
        assert!(refused["accepts"].is_array());
        assert_eq!(till.spent().await, price);
    }

    /// Some clients find out by trying: they announce nothing, and sign when they are asked to.
    async fn everybody_may_be_asked_to_sign(till) with { settings: &[("mcp_x402", "always")] } {
        let asked = json!({ "packageCode": PLAN, "token": till.token });
        let due = till.gateway.until("payments by signature are taken", async || {
            let told = call(&till.gateway, BUY, asked.clone()).await;
            told["accepts"].is_array().then_some(told)
        }).await;
        assert!(due["error"].as_str().unwrap().starts_with("Payment required"), "an error, by which such clients know it: {due}");
        assert!(due["magicLink"].as_str().unwrap().contains("/topup/"), "who cannot sign has the link: {due}");
        assert_eq!(buying::balance(&till.gateway, &till.token).await, Usd::ZERO);
        let payment = decoded(&till.payer.pay(&due["accepts"][0], 1));
        let paid = while_mining(&till.node, purchase(till, json!({ "x402/payment": payment }))).await;
        let bought = fine(told(&till.gateway, BUY, &paid).await);
        assert_eq!((&bought["purchased"], till.spent().await), (&json!(true), price(&due)));

        let package = json!({ "orderId": bought["orderId"], "token": till.token });
        let package = fine(call(&till.gateway, "get_topup_packages", package).await)["packages"][0]["packageCode"].clone();
        let wish = json!({ "orderId": bought["orderId"], "packageCode": package, "token": till.token });
        assert!(call(&till.gateway, TOP_UP, wish).await["accepts"].is_array());
        // A dry run asks for nothing.
        let dry = json!({ "packageCode": PLAN, "token": till.token, "dryRun": true });
        assert_eq!(fine(call(&till.gateway, BUY, dry).await)["sufficient"], false);
    }

    async fn a_topup_is_paid_by_signature(till) {
        let wish = filled(till).await;
        let before = till.spent().await;
        let due = demanded(till, TOP_UP, &wish).await;
        assert_eq!((&due["purchased"], &due["resource"]["url"]), (&json!(false), &json!("mcp://tool/purchase_topup")));
        assert!(due["magicLink"].as_str().unwrap().contains("/topup/"));
        // Who says nothing of signatures gets the link alone.
        let plain = told(&till.gateway, TOP_UP, &paying(till, TOP_UP, wish.clone(), json!({})).await).await;
        assert_eq!((&plain["accepts"], &plain["purchased"]), (&Value::Null, &json!(false)));

        let meta = json!({ "x402/payment": decoded(&till.payer.pay(&due["accepts"][0], 2)) });
        // What was signed for a top-up buys no eSIM, and nothing is taken for it.
        let other = told(&till.gateway, BUY, &paying(till, BUY, json!({ "packageCode": wish["packageCode"] }), meta.clone()).await).await;
        assert_eq!(failure(&other), "IDEMPOTENCY_CONFLICT");
        let paid = while_mining(&till.node, paying(till, TOP_UP, wish.clone(), meta.clone())).await;
        let bought = fine(told(&till.gateway, TOP_UP, &paid).await);
        assert_eq!(bought["purchased"], true);
        assert_eq!(result(&paid)["_meta"]["x402/payment-response"]["success"], true);
        assert_eq!(topups(till).await[0]["id"], bought["topUpOrder"]["id"]);
        assert_eq!(buying::balance(&till.gateway, &till.token).await, Usd::ZERO);
        assert_eq!(till.spent().await, before.plus(price(&due)));
        assert_eq!(till.gateway.journalled("topped").len(), 1);

        // The same signature again is the same top-up.
        let again = paying(till, TOP_UP, wish.clone(), meta).await;
        assert_eq!(fine(told(&till.gateway, TOP_UP, &again).await)["topUpOrder"], bought["topUpOrder"]);
        assert_eq!((till.spent().await, topups(till).await.len()), (before.plus(price(&due)), 1));

        // One that does not fit moves nothing, and says why.
        let mut small = till.payer.wish(&demanded(till, TOP_UP, &wish).await["accepts"][0], 3);
        small.permission.value -= 1;
        let meta = json!({ "x402/payment": decoded(&till.payer.sign(&small)) });
        let refused = told(&till.gateway, TOP_UP, &paying(till, TOP_UP, wish, meta).await).await;
        assert_eq!(refused["error"], "invalid_exact_evm_payload_authorization_value_mismatch");
        assert!(refused["accepts"].is_array());
        assert_eq!(till.spent().await, before.plus(price(&due)));
    }

    /// Paid, and the supplier does not sell: an error that says where the money is, with the receipt of the payment.
    async fn a_signed_purchase_that_fails_is_in_the_wallet(till) {
        let wish = filled(till).await;
        for (number, (tool, wish)) in (5..).zip([(TOP_UP, wish), (BUY, json!({ "packageCode": PLAN }))]) {
            let due = demanded(till, tool, &wish).await;
            let meta = json!({ "x402/payment": decoded(&till.payer.pay(&due["accepts"][0], number)) });
            till.gateway.supplier("reject").await;
            let paid = while_mining(&till.node, paying(till, tool, wish, meta)).await;
            till.gateway.supplier("ok").await;
            assert_eq!(failure(&told(&till.gateway, tool, &paid).await), "SUPPLIER_REJECTED");
            assert_eq!(result(&paid)["_meta"]["x402/payment-response"]["success"], true);
            assert_eq!(buying::balance(&till.gateway, &till.token).await, price(&due));
            // Or it could pay for the next one.
            empty_wallet(till, price(&due)).await;
        }
        assert_eq!(till.gateway.journalled("topped").len(), 0);
    }

    /// An eSIM is given back after its top-up was asked for: before the signature is taken nothing is taken, and
    /// afterwards the payment is in the wallet.
    async fn an_esim_that_is_gone_is_not_topped_up(till) {
        let wish = filled(till).await;
        let due = demanded(till, TOP_UP, &wish).await;
        let (early, late) = (till.payer.pay(&due["accepts"][0], 2), till.payer.pay(&due["accepts"][0], 3));
        let before = till.spent().await;
        let sending = paying(till, TOP_UP, wish.clone(), json!({ "x402/payment": decoded(&early) }));
        let cancelling = async {
            till.until_pooled(1).await;
            fine(call(&till.gateway, "cancel_order", json!({ "orderId": wish["orderId"], "token": till.token })).await);
            let refunded = buying::balance(&till.gateway, &till.token).await;
            till.gateway.until("the payment is in the wallet", async || {
                till.node.mine(1).await;
                (buying::balance(&till.gateway, &till.token).await == refunded.plus(price(&due))).then_some(())
            }).await;
        };
        let (sent, ()) = tokio::join!(sending, cancelling);
        assert_eq!(failure(&told(&till.gateway, TOP_UP, &sent).await), "SUPPLIER_REJECTED");
        assert_eq!(till.spent().await, before.plus(price(&due)));
        let meta = json!({ "x402/payment": decoded(&late) });
        let refused = told(&till.gateway, TOP_UP, &paying(till, TOP_UP, wish, meta).await).await;
        assert_eq!(failure(&refused), "IDEMPOTENCY_CONFLICT", "it has been paid for");
        assert_eq!((till.spent().await, till.gateway.journalled("topped").len()), (before.plus(price(&due)), 0));
    }

    /// The eSIM is gone before anybody signs: nothing is taken.
    async fn nothing_is_taken_for_an_esim_that_is_gone(till) {
        let wish = filled(till).await;
        let due = demanded(till, TOP_UP, &wish).await;
        let before = till.spent().await;
        fine(call(&till.gateway, "cancel_order", json!({ "orderId": wish["orderId"], "token": till.token })).await);
        let meta = json!({ "x402/payment": decoded(&till.payer.pay(&due["accepts"][0], 2)) });
        let refused = told(&till.gateway, TOP_UP, &while_mining(&till.node, paying(till, TOP_UP, wish, meta)).await).await;
        assert_eq!(failure(&refused), "ESIM_NOT_ACTIVE");
        assert_eq!(till.spent().await, before);
    }
}
