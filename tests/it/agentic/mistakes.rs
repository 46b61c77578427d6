//! What an agent that knows only half of the documents is told: which member was meant, that a code is still good, how an
//! empty wallet is filled, and that a sandbox wants no real money.

use serde_json::{Value, json};
use simgate::domain::money::Usd;

use crate::support::browser::open as open_page;
use crate::support::buying::{PLAN, ask, ask_with_key, fund, open, record, settle};
use crate::support::harness::{Gateway, Reply, both_databases, reply};
use crate::support::logins::{ask as ask_for_code, code, post_from, sign_in, verify, with_token};

const ANN: &str = "ann@example.com";
const MINUTE: i64 = 60_000;

#[track_caller]
fn detail(refused: &Reply, status: u16, code: &str) -> String {
    assert_eq!(refused.problem(status), code);
    refused.json()["detail"].as_str().unwrap().to_string()
}

/// What is warned of where money is asked for.
#[track_caller]
fn is_warned(asked: &Value) {
    assert_eq!(asked["sandbox"], true, "{asked}");
    let notice = asked["sandboxNotice"].as_str().unwrap();
    assert!(notice.contains("do not send real money") && notice.contains("/sandbox/pay"), "{notice}");
}

async fn purchase(gateway: &Gateway, id: &str) -> Reply {
    reply(gateway.client.get(format!("{}/api/agentic/order/{id}", gateway.base))).await
}

both_databases! {
    async fn a_code_by_another_name_is_asked_for_by_its_own(gateway) {
        ask_for_code(gateway, ANN).await.expect(200);
        let right = code(gateway, ANN).await;
        let send = async |body: Value| post_from(gateway, "127.0.0.1", "verify-otp", body).await;
        for name in ["code", "OTP", "pin"] {
            let mut body = json!({ "email": ANN });
            body[name] = json!(right);
            let told = detail(&send(body).await, 400, "INVALID_REQUEST");
            assert_eq!(told, format!("otp is required; was it sent as \"{name}\"?"));
        }
        let told = detail(&send(json!({ "e-mail": ANN })).await, 400, "INVALID_REQUEST");
        assert_eq!(told, "email is required; was it sent as \"e-mail\"? otp is required");
        assert_eq!(detail(&send(json!({ "email": ANN })).await, 400, "INVALID_REQUEST"), "otp is required");
        verify(gateway, ANN, &right).await.expect(200);
    }

    async fn whoever_asks_too_soon_is_told_of_the_code_that_is_good(gateway) {
        ask_for_code(gateway, ANN).await.expect(200);
        gateway.pass_time(MINUTE / 2);
        let soon = ask_for_code(gateway, ANN).await;
        let told = detail(&soon, 429, "RATE_LIMITED");
        assert!(told.contains("still good for 5") && told.contains("Another can be asked for in"), "{told}");
        assert!((1..=30).contains(&soon.header("retry-after").parse::<i64>().unwrap()));
        // Nobody is told so of a code that is used.
        let right = code(gateway, ANN).await;
        verify(gateway, ANN, &right).await.expect(200);
        let told = detail(&ask_for_code(gateway, ANN).await, 429, "RATE_LIMITED");
        assert!(told.starts_with("Too many requests"), "{told}");
    }

    async fn a_short_wallet_gets_a_link_that_fills_it(gateway) {
        let token = sign_in(gateway, ANN, "agent").await;
        fund(gateway, ANN, Usd::dollars(1)).await;
        let body = json!({ "packageCode": "JP-5GB-30D", "payWith": "wallet" });
        let short = ask_with_key(gateway, &token, "w", &body).await;
        let told = detail(&short, 402, "INSUFFICIENT_BALANCE");
        let short = short.json();
        let link = short["magicLink"].as_str().unwrap();
        assert!(told.contains(link) && short["magicLinkExpiresAt"].is_string(), "{short}");
        is_warned(&short);
        let page = open_page(gateway, link.strip_prefix(&gateway.base).unwrap()).await;
        assert!(page.status == 200 && page.text.contains("a***@example.com"), "{}", page.text);
        // A refusal holds no key: with money the same request buys.
        fund(gateway, ANN, Usd::dollars(50)).await;
        ask_with_key(gateway, &token, "w", &body).await.expect(200);
    }

    async fn a_sandbox_says_that_no_real_money_is_meant(gateway) {
        let token = sign_in(gateway, ANN, "agent").await;
        for network in ["POLYGON", "tron"] {
            let asked = ask(gateway, &token, &json!({ "packageCode": PLAN, "network": network })).await.expect(402);
            is_warned(&asked["payment"]);
            let polled = record(gateway, &asked).await;
            is_warned(&polled["payment"]);
            assert!(polled["instructions"].as_str().unwrap().contains("do not send real money"), "{polled}");
            // What a payer signs is what it was.
            for way in asked["accepts"].as_array().unwrap() {
                let members: Vec<&String> = way["extra"].as_object().unwrap().keys().collect();
                assert_eq!(members, ["name", "orderRef", "paymentFlow", "version"]);
            }
        }
        let asked = open(gateway, &token).await;
        let paid = settle(gateway, &asked, "COMPLETED").await;
        assert!(!paid["instructions"].as_str().unwrap().contains("real money"), "{paid}");
    }

    async fn without_x402_the_sentence_warns_too(gateway) with [("x402_settler", "off")] {
        let token = sign_in(gateway, ANN, "agent").await;
        let asked = open(gateway, &token).await;
        assert!(asked["error"].as_str().unwrap().contains("do not send real money"), "{asked}");
    }

    /// Where nobody is logged in, nobody has an account.
    async fn an_invoice_that_is_none_is_told_by_door(gateway) {
        let told = detail(&purchase(gateway, "inv_1").await, 404, "INVOICE_NOT_FOUND");
        assert_eq!(told, "No invoice has this id. A token that is sent must be its owner's.");
        let (ann, bob) = (sign_in(gateway, ANN, "agent").await, sign_in(gateway, "bob@example.com", "agent").await);
        let asked = open(gateway, &ann).await;
        let path = format!("/api/agentic/order/{}", asked["invoiceId"].as_str().unwrap());
        assert_eq!(detail(&with_token(gateway, &bob, "GET", &path).await, 404, "INVOICE_NOT_FOUND"), told);
        let played = gateway.try_sandbox("pay", json!({ "invoiceId": "inv_1" })).await;
        assert_eq!(detail(&played, 404, "INVOICE_NOT_FOUND"), "No invoice has this id.");
        let moved = gateway.try_sandbox("usage", json!({ "iccid": "8900000000000000000", "usedGb": 1 })).await;
        assert_eq!(detail(&moved, 404, "ESIM_NOT_FOUND"), "No eSIM has this ICCID or came with this order.");
        let page = reply(gateway.client.get(format!("{}/pay/inv_1", gateway.base))).await;
        assert_eq!(detail(&page, 404, "INVOICE_NOT_FOUND"), "No invoice has this id.");
        let partners = gateway.get("/api/b2b/v1/balance/deposit/inv_1").await;
        assert!(detail(&partners, 404, "INVOICE_NOT_FOUND").contains("of this account"));
    }

    async fn a_top_up_alone_and_a_used_key_are_told_in_this_apis_words(gateway) {
        let token = sign_in(gateway, ANN, "agent").await;
        let told = detail(&ask(gateway, &token, &json!({ "packageCode": "JP-1GB-7D-TOPUP" })).await, 422, "WRONG_PLAN_TYPE");
        assert!(told.contains("POST /api/esims/{id}/topup"), "{told}");
        assert!(!told.contains("b2b") && !told.contains("purchase_topup"), "{told}");
        ask_with_key(gateway, &token, "trip", &json!({ "packageCode": PLAN })).await.expect(402);
        let used = ask_with_key(gateway, &token, "trip", &json!({ "packageCode": "JP-5GB-30D" })).await;
        let told = detail(&used, 409, "IDEMPOTENCY_CONFLICT");
        assert!(told.contains("the header Idempotency-Key") && !told.contains("partnerRefId"), "{told}");
    }

    async fn the_code_of_a_plan_is_taken_in_any_case(gateway) {
        let token = sign_in(gateway, ANN, "agent").await;
        let asked = ask_with_key(gateway, &token, "k", &json!({ "packageCode": "jp-1gb-7d" })).await.expect(402);
        assert_eq!(asked["plan"]["packageCode"], "JP-1GB-7D");
        let again = ask_with_key(gateway, &token, "k", &json!({ "packageCode": "JP-1GB-7D" })).await;
        assert_eq!(again.expect(402)["invoiceId"], asked["invoiceId"]);
        let page = open_page(gateway, "/checkout?plan=jp-1gb-7d").await;
        assert!(page.status == 200 && page.text.contains("JP-1GB-7D"), "{}", page.text);
        assert_eq!(ask(gateway, &token, &json!({ "packageCode": "jp-1gb-7\u{212a}" })).await.problem(404), "PLAN_NOT_FOUND");
    }

    async fn a_doubled_member_is_refused(gateway) {
        let token = sign_in(gateway, ANN, "agent").await;
        let body = r#"{"packageCode": "JP-1GB-7D", "packageCode": "JP-5GB-30D", "payWith": "wallet"}"#;
        let request = gateway.client.post(format!("{}/api/agentic/checkout", gateway.base));
        let sent = request.bearer_auth(&token).header("content-type", "application/json").body(body);
        assert_eq!(detail(&reply(sent).await, 400, "INVALID_REQUEST"), "packageCode must be given once");
    }
}
