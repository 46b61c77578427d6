//! Payment by signature inside a tool: who can sign is asked to, who cannot gets the link, and the wallet stays as it is.

use serde_json::{Value, json};
use simgate::domain::money::Usd;

use super::payer::decoded;
use super::till::{PLAN, Setup, Till, at_till, while_mining};
use crate::customer::{call, fine, request, result, told, tool_call};
use crate::harness::{Reply, reply};
use crate::shop;

const BUY: &str = "purchase_esim_with_wallet";

/// A purchase with this in its `_meta`.
async fn purchase(till: &Till, meta: Value) -> Reply {
    let mut message = tool_call(BUY, json!({ "packageCode": PLAN, "token": till.token }));
    message["params"]["_meta"] = meta;
    reply(request(&till.gateway, &message)).await
}

/// What a signer must pay, once payments are taken.
async fn demand(till: &Till) -> Value {
    till.gateway
        .until("payments by signature are taken", async || {
            let asked = purchase(till, json!({ "x402/client": { "version": 2 } })).await;
            let content = told(&till.gateway, BUY, &asked).await;
            content["accepts"].is_array().then_some(content)
        })
        .await
}

at_till! {
    async fn a_tool_is_paid_by_signature(till) {
        let due = demand(till).await;
        assert_eq!((&due["purchased"], &due["x402Version"]), (&json!(false), &json!(2)));
        assert!(due["magicLink"].as_str().unwrap().contains("/topup/"));
        assert_eq!(due["accepts"][0]["extra"]["paymentFlow"], "upfront");
        // Who says nothing of signatures gets the link alone.
        let plain = fine(call(&till.gateway, BUY, json!({ "packageCode": PLAN, "token": till.token })).await);
        assert_eq!((&plain["accepts"], &plain["purchased"]), (&Value::Null, &json!(false)));

        let payment = decoded(&till.payer.pay(&due["accepts"][0], 1));
        let paid = while_mining(&till.node, purchase(till, json!({ "x402/payment": payment }))).await;
        let bought = fine(told(&till.gateway, BUY, &paid).await);
        assert_eq!((&bought["purchased"], &bought["order"]["status"]), (&json!(true), &json!("FULFILLED")));
        let receipt = result(&paid)["_meta"]["x402/payment-response"].clone();
        assert_eq!((&receipt["success"], &receipt["payer"]), (&json!(true), &json!(till.payer.address)));
        assert_eq!(shop::balance(&till.gateway, &till.token).await, Usd::ZERO);
        let price = Usd::from_micros(due["accepts"][0]["amount"].as_str().unwrap().parse().unwrap());
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
}
