//! What the consumer API refuses. Clients show nothing but `error`, so that is what must say it.

use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::browser::open;
use crate::support::buying::{PLAN, fund, usd};
use crate::support::command_line::ok;
use crate::support::coupons::{DEAR, plan};
use crate::support::customers::*;
use crate::support::harness::{Reply, both_databases};
use crate::support::logins::{code, sign_in};

const TOPUP: &str = "JP-5GB-30D-TOPUP";

#[track_caller]
fn says(refused: &Reply, status: u16, code: &str, part: &str) {
    assert_eq!(refused.problem(status), code);
    let body = refused.json();
    assert!(body["error"].as_str().unwrap().contains(part), "{body}");
}

both_databases! {
    async fn strangers_are_told_to_log_in(gateway) {
        for token in ["", "sgs_wrong"] {
            for (method, path) in [
                ("POST", "/api/discount/validate"), ("GET", "/api/wallet/balance"), ("GET", "/api/wallet/transactions"),
                ("POST", "/api/orders"), ("GET", "/api/orders"), ("POST", "/api/orders/ord_1/cancel"),
                ("POST", "/api/esims/ord_1/usage"), ("GET", "/api/esims/ord_1/topup"), ("POST", "/api/esims/ord_1/topup"),
            ] {
                let refused = crate::support::harness::reply(request(gateway, token, method, path)).await;
                says(&refused, 401, "UNAUTHENTICATED", "log in");
                assert!(refused.header("www-authenticate").starts_with("Bearer"), "{method} {path}");
            }
        }
    }

    async fn short_of_money(gateway) {
        let token = ann(gateway, 1).await;
        let id = {
            fund(gateway, ANN, plan(gateway, PLAN).retail).await;
            bought(gateway, &token).await
        };
        assert_eq!(balance(gateway, &token).await, Usd::dollars(1));
        let retail = plan(gateway, DEAR).retail;
        let packages = get(gateway, &token, &format!("/api/esims/{id}/topup")).await.expect(200)["packages"].clone();
        let dear = packages.as_array().unwrap().last().unwrap();
        for (path, package, price) in [
            (ORDERS.to_string(), json!(DEAR), retail),
            (format!("/api/esims/{id}/topup"), dear["packageCode"].clone(), usd(&dear["retailPrice"])),
        ] {
            let short = post_with_key(gateway, &token, &path, &path, json!({ "packageCode": package, "source": "mcp" })).await;
            says(&short, 402, "INSUFFICIENT_BALANCE", "Insufficient wallet balance");
            let body = short.json();
            let link = body["magicLink"].as_str().unwrap();
            assert!(body["error"].as_str().unwrap().split_whitespace().any(|word| word == link), "{body}");
            assert_eq!((usd(&body["balanceUsd"]), usd(&body["requiredUsd"])), (Usd::dollars(1), price));
            assert_eq!(usd(&body["shortfallUsd"]), price.minus(Usd::dollars(1)));
            assert!(body["magicLinkExpiresAt"].is_string());
            assert_eq!(body["sandbox"], true);
            assert!(body["sandboxNotice"].as_str().unwrap().contains("do not send real money"), "{body}");
            let page = open(gateway, link.strip_prefix(&gateway.base).unwrap()).await;
            assert!(page.status == 200 && page.text.contains("a***@example.com"), "{}", page.text);
        }
        assert_eq!((balance(gateway, &token).await, orders(gateway, &token).await.len()), (Usd::dollars(1), 1));
        // A refusal holds no key: with money the same call buys.
        fund(gateway, ANN, retail).await;
        post_with_key(gateway, &token, ORDERS, ORDERS, json!({ "packageCode": DEAR })).await.expect(200);
    }

    async fn wrong_codes_open_nothing(gateway) {
        post(gateway, "", "/api/auth/otp/send", json!({ "email": ANN })).await.expect(200);
        let right = code(gateway, ANN).await;
        let verify = async |code: &Value| post(gateway, "", "/api/auth/otp/verify", json!({ "email": ANN, "code": code })).await;
        says(&verify(&json!("00000x")).await, 401, "OTP_INVALID", "wrong, used or expired");
        verify(&json!(right)).await.expect(200);
        says(&verify(&json!(right)).await, 401, "OTP_INVALID", "wrong, used or expired");
        // The code is used up, and the next mail has to wait: nobody is told that one is on its way.
        let soon = post(gateway, "", "/api/auth/otp/send", json!({ "email": ANN })).await;
        says(&soon, 429, "RATE_LIMITED", "try again in");
        assert!((1..=60).contains(&soon.header("retry-after").parse::<i64>().unwrap()));
        let named = post(gateway, "", "/api/auth/otp/verify", json!({ "email": ANN, "otp": right })).await;
        says(&named, 400, "INVALID_REQUEST", "code is required; was it sent as \"otp\"?");
        let wrong = post(gateway, "", "/api/auth/otp/verify", json!({ "email": "ann" })).await;
        says(&wrong, 400, "INVALID_REQUEST", "email must be an email address; code is required");
        says(&post(gateway, "", "/api/auth/otp/send", json!({})).await, 400, "INVALID_REQUEST", "email is required");
    }

    async fn coupons_and_plans_that_are_not_good(gateway) {
        let token = ann(gateway, 50).await;
        ok(gateway, "coupon create --code FRIEND --percent 20 --affiliate");
        let validate = async |code: &str, plan: &str| post(gateway, &token, "/api/discount/validate", json!({ "code": code, "packageCode": plan })).await;
        for code in ["NOTHING", "friend"] {
            says(&validate(code, DEAR).await, 422, "COUPON_INVALID", "discount code");
        }
        says(&validate("FRIEND", "XX-1").await, 404, "PLAN_NOT_FOUND", "on sale");
        says(&post(gateway, &token, "/api/discount/validate", json!({})).await, 400, "INVALID_REQUEST", "code is required; packageCode is required");
        let order = async |body: Value| post(gateway, &token, ORDERS, body).await;
        says(&order(json!({ "packageCode": DEAR, "discountCode": "NOTHING" })).await, 422, "COUPON_INVALID", "discount code");
        says(&order(json!({ "packageCode": TOPUP })).await, 422, "WRONG_PLAN_TYPE", "POST /api/esims/{id}/topup");
        says(&order(json!({ "packageCode": "XX-1" })).await, 404, "PLAN_NOT_FOUND", "on sale");
        assert_eq!((balance(gateway, &token).await, orders(gateway, &token).await.len()), (Usd::dollars(50), 0));
        // An affiliate's code works for whoever was given it, and an empty one is none.
        order(json!({ "packageCode": DEAR, "discountCode": "friend" })).await.expect(200);
        order(json!({ "packageCode": PLAN, "discountCode": "" })).await.expect(200);
        let id = bought(gateway, &token).await;
        let add = async |package: &str| post(gateway, &token, &format!("/api/esims/{id}/topup"), json!({ "packageCode": package })).await;
        says(&add(PLAN).await, 422, "WRONG_PLAN_TYPE", "POST /api/orders");
        says(&add("XX-1").await, 404, "PLAN_NOT_FOUND", "on sale");
    }

    /// Whoever knows an order's id can do nothing with it.
    async fn orders_of_others_are_not_there(gateway) {
        let ann = ann(gateway, 20).await;
        let id = bought(gateway, &ann).await;
        let bob = sign_in(gateway, "bob@example.com", "agent").await;
        fund(gateway, "bob@example.com", Usd::dollars(50)).await;
        for id in [id.as_str(), "ord_1", "1", "inv_1"] {
            for path in [format!("/api/orders/{id}/cancel"), format!("/api/esims/{id}/usage")] {
                says(&press(gateway, &bob, &path).await, 404, "ORDER_NOT_FOUND", "order");
            }
            let topup = format!("/api/esims/{id}/topup");
            says(&get(gateway, &bob, &topup).await, 404, "ORDER_NOT_FOUND", "order");
            says(&post(gateway, &bob, &topup, json!({ "packageCode": TOPUP })).await, 404, "ORDER_NOT_FOUND", "order");
        }
        assert!(orders(gateway, &bob).await.is_empty());
        assert_eq!(balance(gateway, &bob).await, Usd::dollars(50));
        assert_eq!(orders(gateway, &ann).await, [(id, "COMPLETED".into())]);
    }

    async fn members_that_are_not_known_cost_nothing(gateway) {
        let token = ann(gateway, 20).await;
        let id = bought(gateway, &token).await;
        let left = balance(gateway, &token).await;
        let topup = format!("/api/esims/{id}/topup");
        for (path, body, named) in [
            (ORDERS, json!({ "packageCode": PLAN, "discount_code": "TEN" }), "discount_code"),
            (ORDERS, json!({ "packageCode": PLAN, "idempotencyKey": "trip" }), "idempotencyKey"),
            (ORDERS, json!({ "packageCode": PLAN, "maxPriceUsd": 1 }), "maxPriceUsd"),
            (topup.as_str(), json!({ "packageCode": TOPUP, "discountCode": "TEN" }), "discountCode"),
            (topup.as_str(), json!({ "packageCode": TOPUP, "quantity": 2 }), "quantity"),
        ] {
            let refused = post(gateway, &token, path, body).await;
            says(&refused, 400, "INVALID_REQUEST", named);
            assert_eq!(refused.json()["errors"][0]["field"], named);
        }
        assert_eq!((balance(gateway, &token).await, orders(gateway, &token).await.len()), (left, 1));
        for source in [json!("mcp"), json!(7), json!({ "client": "stdio" }), Value::Null] {
            post(gateway, &token, ORDERS, json!({ "packageCode": PLAN, "source": source })).await.expect(200);
        }
    }

    async fn a_suspended_customer_reads_and_buys_nothing(gateway) {
        let token = ann(gateway, 20).await;
        let order = post_with_key(gateway, &token, "trip", ORDERS, wish()).await.expect(200);
        let id = order["orderId"].as_str().unwrap();
        let topup = format!("/api/esims/{id}/topup");
        let package = get(gateway, &token, &topup).await.expect(200)["packages"][0]["packageCode"].clone();
        ok(gateway, &format!("user suspend {ANN}"));
        says(&post(gateway, &token, ORDERS, wish()).await, 403, "ACCOUNT_SUSPENDED", "suspended");
        says(&post(gateway, &token, &topup, json!({ "packageCode": package })).await, 403, "ACCOUNT_SUSPENDED", "suspended");
        assert_eq!(get(gateway, &token, "/api/wallet/balance").await.expect(200)["status"], "SUSPENDED");
        assert_eq!(orders(gateway, &token).await, [(id.to_string(), "COMPLETED".to_string())]);
        press(gateway, &token, &format!("/api/esims/{id}/usage")).await.expect(200);
        let again = post_with_key(gateway, &token, "trip", ORDERS, wish()).await.expect(200);
        assert_eq!(again["orderId"], order["orderId"]);
    }

    async fn a_token_spends_no_more_than_its_limit(gateway) with [("token_daily_limit_usd", "2")] {
        gateway.away_from_midnight();
        let token = ann(gateway, 50).await;
        says(&post(gateway, &token, ORDERS, json!({ "packageCode": DEAR })).await, 403, "LIMIT_EXCEEDED", "2 USD a day");
        assert_eq!(balance(gateway, &token).await, Usd::dollars(50));
    }
}
