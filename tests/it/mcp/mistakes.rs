//! What a tool says about a used key and about the wrong kind of plan: who holds the key, and which tool is right.

use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::buying::{PLAN, ask_with_key, fund};
use crate::support::harness::both_databases;
use crate::support::tool_caller::{call, failure, fine, log_in};

const ANN: &str = "ann@example.com";

/// What is told about a call that is refused with this code.
#[track_caller]
fn why<'a>(refused: &'a Value, code: &str) -> (&'a Value, &'a str) {
    assert_eq!(failure(refused), code, "{refused}");
    (&refused["error"]["orderId"], refused["error"]["message"].as_str().unwrap())
}

both_databases! {
    async fn a_used_key_tells_who_holds_it(gateway) {
        let token = log_in(gateway, ANN).await;
        fund(gateway, ANN, Usd::dollars(50)).await;
        let keyed = |package: &str, key: &str| json!({ "packageCode": package, "token": token, "idempotencyKey": key });
        let order = fine(call(gateway, "purchase_esim_with_wallet", keyed(PLAN, "k")).await)["orderId"].clone();
        let refused = call(gateway, "purchase_esim_with_wallet", keyed("JP-5GB-30D", "k")).await;
        let (holder, message) = why(&refused, "IDEMPOTENCY_CONFLICT");
        assert_eq!(*holder, order);
        assert!(message.contains(order.as_str().unwrap()) && message.contains("differs in packageCode"), "{message}");
        let cancel = json!({ "orderId": order, "token": token, "idempotencyKey": "k" });
        let refused = call(gateway, "cancel_order", cancel).await;
        let (holder, message) = why(&refused, "IDEMPOTENCY_CONFLICT");
        assert_eq!(*holder, order);
        assert!(message.contains("differs in operation"), "{message}");
        // A checkout holds a key by its invoice.
        let asked = ask_with_key(gateway, &token, "trip", &json!({ "packageCode": PLAN })).await.expect(402);
        let refused = call(gateway, "purchase_esim_with_wallet", keyed(PLAN, "trip")).await;
        let (holder, message) = why(&refused, "IDEMPOTENCY_CONFLICT");
        assert_eq!(*holder, asked["invoiceId"]);
        assert!(message.contains("differs in operation"), "{message}");
    }

    async fn a_customer_of_a_sandbox_is_not_asked_for_real_money(gateway) {
        let token = log_in(gateway, ANN).await;
        let short = fine(call(gateway, "purchase_esim_with_wallet", json!({ "packageCode": "jp-1gb-7d", "token": token })).await);
        assert_eq!((&short["purchased"], &short["sandbox"]), (&json!(false), &json!(true)));
        let notice = short["sandboxNotice"].as_str().unwrap();
        assert!(notice.contains("do not send real money"), "{notice}");
        let link = fine(call(gateway, "get_checkout_url", json!({ "packageCode": "jp-1gb-7d" })).await);
        assert!(link["checkoutUrl"].as_str().unwrap().ends_with("/checkout?plan=JP-1GB-7D"), "{link}");
        let named = call(gateway, "verify_agent_otp", json!({ "email": ANN, "otp": "123456" })).await;
        let (_, message) = why(&named, "INVALID_REQUEST");
        assert_eq!(message, "code is required; was it sent as \"otp\"?");
    }

    async fn a_wrong_plan_names_the_right_tool(gateway) {
        let token = log_in(gateway, ANN).await;
        fund(gateway, ANN, Usd::dollars(50)).await;
        let order = fine(call(gateway, "purchase_esim_with_wallet", json!({ "packageCode": PLAN, "token": token })).await)["orderId"].clone();
        for (tool, package, dry, said) in [
            ("purchase_esim_with_wallet", "JP-1GB-7D-TOPUP", false, ["This is a TOPUP plan", "purchase_topup"]),
            ("purchase_esim_with_wallet", "JP-1GB-7D-TOPUP", true, ["This is a TOPUP plan", "purchase_topup"]),
            ("purchase_topup", PLAN, false, ["This is a BASE plan", "purchase_esim_with_wallet"]),
            ("purchase_topup", PLAN, true, ["This is a BASE plan", "purchase_esim_with_wallet"]),
            ("purchase_topup", "FR-1GB-7D-TOPUP", false, ["does not fit this eSIM", "get_topup_packages"]),
            ("purchase_topup", "FR-1GB-7D-TOPUP", true, ["does not fit this eSIM", "get_topup_packages"]),
        ] {
            let mut arguments = json!({ "packageCode": package, "token": token, "dryRun": dry });
            if tool == "purchase_topup" {
                arguments["orderId"] = order.clone();
            }
            let refused = call(gateway, tool, arguments).await;
            let (_, message) = why(&refused, "WRONG_PLAN_TYPE");
            assert!(said.iter().all(|part| message.contains(part)), "{tool} {package} {dry}: {message}");
        }
    }
}
