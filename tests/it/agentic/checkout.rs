//! The agent's door: the 402 to the letter, the same checkout by the same key, what is refused, and the wallet.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::domain::network::AddressKind;
use simgate::ops::operator;

use crate::support::buying::{self, *};
use crate::support::coupons::plan;
use crate::support::harness::{both_databases, reply};
use crate::support::logins::{self, elsewhere, mails, sign_in, with_token};
use crate::support::qr_codes;
use crate::support::shapes::money;

/// The fields of an object, in the order of their names.
fn fields(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

both_databases! {
    async fn the_challenge_says_what_to_pay_and_where(gateway) with [("x402_settler", "off")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let reply = ask(gateway, &token, &json!({ "packageCode": PLAN })).await;
        money(&reply.text);
        assert_eq!(reply.header("content-type"), "application/json");
        assert_eq!(reply.header("cache-control"), "no-store");
        assert_eq!(reply.header("payment-required"), "", "no settler is on");
        let asked = reply.expect(402);
        assert_eq!(fields(&asked), [
            "capabilities", "checkoutUrl", "code", "error", "invoiceId", "orderRef", "payment", "plan", "status", "success",
        ]);
        assert_eq!((&asked["success"], &asked["code"], &asked["status"]), (&json!(false), &json!("PAYMENT_REQUIRED"), &json!("PENDING_PAYMENT")));
        assert!(asked["error"].as_str().unwrap().contains("Pay exactly"));
        assert!(id(&asked).starts_with("inv_"));
        assert!(asked["orderRef"].as_str().unwrap().starts_with("SG"));
        assert_eq!(asked["checkoutUrl"], format!("{}/pay/{}", gateway.base, id(&asked)));
        let retail = plan(gateway, PLAN).retail;
        let plan = &asked["plan"];
        assert_eq!(fields(plan), ["basePriceUsd", "dataAmountGb", "durationDays", "name", "packageCode"]);
        assert_eq!((&plan["packageCode"], &plan["dataAmountGb"], &plan["durationDays"]), (&json!(PLAN), &json!(1.0), &json!(7)));
        assert_eq!(usd(&plan["basePriceUsd"]), retail);
        let payment = &asked["payment"];
        assert_eq!(fields(payment), [
            "chainId", "contractAddress", "currency", "decimals", "expectedAmount", "expectedAmountUnits", "expiresAt",
            "expiresAtIso", "maxAmount", "minAmount", "network", "networkName", "paymentUri", "pollingUrl", "qrDataUrl",
            "receivingAddress", "requiredConfirmations", "sandbox", "sandboxNotice", "spotDiscountOffset", "tokenStandard", "typicalConfirmationSeconds", "wide",
        ]);
        assert_eq!(usd(&payment["expectedAmount"]).plus(usd(&payment["spotDiscountOffset"])), retail);
        let offset = usd(&payment["spotDiscountOffset"]).micros();
        assert!((1..=9_999).contains(&offset), "{offset}");
        assert_eq!(payment["expectedAmountUnits"], amount(&asked).micros().to_string());
        assert_eq!((&payment["currency"], &payment["decimals"]), (&json!("USDT"), &json!(6)));
        let (contract, address) = (payment["contractAddress"].as_str().unwrap(), address(&asked));
        assert!(simgate::chain::address::bytes(AddressKind::Evm, address).is_some());
        let units = amount(&asked).micros();
        assert_eq!(payment["paymentUri"], format!("ethereum:{contract}@137/transfer?address={address}&uint256={units}"));
        let code = payment["qrDataUrl"].as_str().unwrap().strip_prefix("data:image/png;base64,").unwrap();
        assert_eq!(qr_codes::png(&STANDARD.decode(code).unwrap()), payment["paymentUri"].as_str().unwrap());
        let expires = payment["expiresAt"].as_i64().unwrap();
        let left = expires - gateway.app.now().micros() / 1_000;
        assert!((29 * MINUTE_MS..=30 * MINUTE_MS).contains(&left), "{left}");
        assert!(payment["expiresAtIso"].as_str().unwrap().ends_with('Z'));
        assert_eq!(payment["pollingUrl"], format!("{}/api/agentic/order/{}", gateway.app.settings.agent_url, id(&asked)));
        assert_eq!(asked["capabilities"], json!({
            "networks": ["POLYGON", "ARBITRUM", "TRON", "BASE"], "currencies": ["USDT", "USDC"],
            "pairs": asked["capabilities"]["pairs"], "polling": true, "x402": false, "webhooks": false,
        }));
    }

    async fn every_network_is_asked_for_by_its_own_facts(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        for (asked_as, name, standard, chain, confirmations, seconds) in [
            ("polygon", "Polygon", "PRC-20", 137, 12, 30),
            ("Arbitrum", "Arbitrum", "ERC-20", 42_161, 20, 15),
            ("TRON", "TRON", "TRC-20", 728_126_428, 19, 60),
            ("Base", "Base", "ERC-20", 8_453, 5, 10),
        ] {
            let made = ask(gateway, &token, &json!({ "packageCode": PLAN, "preferredNetwork": asked_as })).await.expect(402);
            let payment = &made["payment"];
            assert_eq!(payment["network"], asked_as.to_uppercase());
            assert_eq!((&payment["networkName"], &payment["tokenStandard"]), (&json!(name), &json!(standard)));
            assert_eq!((&payment["chainId"], &payment["requiredConfirmations"]), (&json!(chain), &json!(confirmations)));
            assert_eq!(payment["typicalConfirmationSeconds"], seconds);
            if asked_as == "TRON" {
                assert!(address(&made).starts_with('T'));
                assert!(payment["paymentUri"].as_str().unwrap().starts_with(&format!("tron:{}?token=T", address(&made))));
            }
            assert_eq!(settle(gateway, &made, "COMPLETED").await["payment"]["network"], asked_as.to_uppercase());
        }
    }

    async fn a_key_is_one_checkout_for_ever(gateway) with [("polygon_confirmations", "250")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let body = json!({ "packageCode": PLAN, "customerEmail": "Kid@Example.com" });
        let first = ask_with_key(gateway, &token, "trip 42", &body).await;
        assert_eq!(first.header("idempotent-replayed"), "");
        let first = first.expect(402);
        let again = ask_with_key(gateway, &token, "trip 42", &json!({ "customerEmail": "kid@example.com", "packageCode": PLAN, "preferredNetwork": "polygon" })).await;
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(again.expect(402), first);
        for other in [
            json!({ "packageCode": "JP-5GB-30D", "customerEmail": "kid@example.com" }),
            json!({ "packageCode": PLAN }),
            json!({ "packageCode": PLAN, "customerEmail": "kid@example.com", "preferredNetwork": "TRON" }),
            json!({ "packageCode": PLAN, "customerEmail": "kid@example.com", "payWith": "wallet" }),
        ] {
            assert_eq!(ask_with_key(gateway, &token, "trip 42", &other).await.problem(409), "IDEMPOTENCY_CONFLICT", "{other}");
        }
        let stranger = sign_in(gateway, "bob@example.com", "agent").await;
        assert_ne!(id(&ask_with_key(gateway, &stranger, "trip 42", &body).await.expect(402)), id(&first));
        // A payment that was seen is not asked for again.
        pay(gateway, &first).await;
        let seen = gateway.until("the payment is seen", async || {
            let reply = ask_with_key(gateway, &token, "trip 42", &body).await;
            (reply.status != 402).then_some(reply)
        }).await;
        assert_eq!(seen.expect(202)["invoiceId"], first["invoiceId"]);
        gateway.pass_time(10 * UNTIL_FINAL_MS);
        until_status(gateway, &first, "COMPLETED").await;
        let done = ask_with_key(gateway, &token, "trip 42", &body).await;
        assert_eq!(done.header("cache-control"), "no-store");
        let done = done.expect(200);
        assert_eq!((&done["invoiceId"], &done["status"]), (&first["invoiceId"], &json!("COMPLETED")));
        assert!(done["esim"]["lpaString"].is_string());
    }

    async fn many_at_once_with_one_key_are_one(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let body = json!({ "packageCode": PLAN });
        let asked = join_all((0..20).map(|_| ask_with_key(gateway, &token, "once", &body))).await;
        let ids: std::collections::BTreeSet<String> =
            asked.iter().map(|reply| id(&reply.expect(402)).to_string()).collect();
        assert_eq!(ids.len(), 1);
        assert_eq!(asked.iter().filter(|reply| reply.header("idempotent-replayed").is_empty()).count(), 1);
    }

    async fn bad_requests_open_nothing(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        for (body, field) in [
            (json!({}), "packageCode"),
            (json!({ "packageCode": null }), "packageCode"),
            (json!({ "packageCode": 5 }), "packageCode"),
            (json!({ "packageCode": "" }), "packageCode"),
            (json!({ "packageCode": "x".repeat(65) }), "packageCode"),
            (json!({ "packageCode": PLAN, "preferredNetwork": "SOLANA" }), "preferredNetwork"),
            (json!({ "packageCode": PLAN, "preferredNetwork": 137 }), "preferredNetwork"),
            (json!({ "packageCode": PLAN, "customerEmail": "kid" }), "customerEmail"),
            (json!({ "packageCode": PLAN, "customerEmail": "a@b.example\r\nBcc: c@d.example" }), "customerEmail"),
            (json!({ "packageCode": PLAN, "customerEmail": ["a@b.example"] }), "customerEmail"),
            (json!({ "packageCode": PLAN, "payWith": "card" }), "payWith"),
            (json!({ "packageCode": PLAN, "payWith": true }), "payWith"),
            (json!({ "packageCode": PLAN, "discountCode": 20 }), "discountCode"),
        ] {
            let reply = ask(gateway, &token, &body).await;
            assert_eq!(reply.problem(400), "INVALID_REQUEST", "{body}");
            assert_eq!(reply.json()["errors"][0]["field"], field, "{body}");
        }
        let both = ask(gateway, &token, &json!({ "preferredNetwork": "x", "customerEmail": "y" })).await;
        assert_eq!(both.expect(400)["errors"].as_array().unwrap().len(), 3, "all of them at once");
        assert_eq!(ask(gateway, &token, &json!([1])).await.problem(400), "INVALID_REQUEST");
        assert_eq!(ask(gateway, &token, &json!({ "packageCode": "NO-SUCH" })).await.problem(404), "PLAN_NOT_FOUND");
        assert_eq!(ask(gateway, &token, &json!({ "packageCode": "JP-5GB-30D-TOPUP" })).await.problem(422), "WRONG_PLAN_TYPE");
        for pay_with in [Value::Null, json!("wallet")] {
            let body = json!({ "packageCode": PLAN, "discountCode": "SAVE10", "payWith": pay_with });
            assert_eq!(ask(gateway, &token, &body).await.problem(422), "COUPON_INVALID");
        }
        let long = "k".repeat(129);
        for key in [long.as_str(), "\u{e9}t\u{e9}"] {
            let request = request(gateway, &token, &json!({ "packageCode": PLAN }));
            let reply = reply(request.header("idempotency-key", key.as_bytes())).await;
            assert_eq!(reply.problem(400), "INVALID_REQUEST");
        }
        let twice = request(gateway, &token, &json!({ "packageCode": PLAN })).header("idempotency-key", "a").header("idempotency-key", "b");
        assert_eq!(reply(twice).await.problem(400), "INVALID_REQUEST");
        let body = json!({ "packageCode": PLAN }).to_string();
        let bare = gateway.client.post(format!("{}{CHECKOUT}", gateway.base)).header("content-type", "application/json").body(body.clone());
        let refused = reply(bare).await;
        assert_eq!(refused.problem(401), "UNAUTHENTICATED");
        assert!(refused.header("www-authenticate").starts_with("Bearer"));
        let plain = gateway.client.post(format!("{}{CHECKOUT}", gateway.base)).header("authorization", format!("Bearer {token}")).body(body);
        assert_eq!(reply(plain).await.problem(415), "UNSUPPORTED_MEDIA_TYPE");
        assert_eq!(with_token(gateway, &token, "GET", CHECKOUT).await.problem(405), "METHOD_NOT_ALLOWED");
    }

    async fn nobody_may_ask_for_too_many(gateway) with [("trusted_proxies", "127.0.0.1"), ("token_rate_limit", "0"), ("ip_rate_limit", "0")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        for _ in 0..50 {
            open(gateway, &token).await;
        }
        let full = ask(gateway, &token, &json!({ "packageCode": PLAN })).await;
        assert_eq!(full.problem(429), "RATE_LIMITED");
        assert!(full.header("retry-after").parse::<u64>().unwrap() > 0);
        let other = sign_in(gateway, "bob@example.com", "agent").await;
        open(gateway, &other).await;
        // They expire, and still count for a day.
        for round in 1..4 {
            gateway.pass_time(31 * MINUTE_MS);
            let from = elsewhere();
            gateway.until("there is room again", async || {
                let request = request(gateway, &token, &json!({ "packageCode": PLAN }));
                (reply(request.header("x-forwarded-for", &from)).await.status == 402).then_some(())
            }).await;
            for _ in 1..50 {
                let request = request(gateway, &token, &json!({ "packageCode": PLAN }));
                reply(request.header("x-forwarded-for", &from)).await.expect(402);
            }
            assert_eq!(ask(gateway, &token, &json!({ "packageCode": PLAN })).await.problem(429), "RATE_LIMITED", "{round}");
        }
        gateway.pass_time(31 * MINUTE_MS);
        let spent = ask(gateway, &token, &json!({ "packageCode": PLAN })).await;
        assert_eq!(spent.problem(429), "RATE_LIMITED", "200 in a day");
        gateway.pass_time(24 * HOUR_MS);
        gateway.until("a day later there is room again", async || {
            (ask(gateway, &token, &json!({ "packageCode": PLAN })).await.status == 402).then_some(())
        }).await;
    }

    async fn an_address_may_not_ask_for_too_many(gateway) with [("trusted_proxies", "127.0.0.1"), ("token_rate_limit", "0"), ("ip_rate_limit", "0")] {
        let here = elsewhere();
        for number in 0..7 {
            let token = sign_in(gateway, &format!("user{number}@example.com"), "agent").await;
            for nth in 0..50 {
                let request = request(gateway, &token, &json!({ "packageCode": PLAN })).header("x-forwarded-for", &here);
                let reply = reply(request).await;
                if number * 50 + nth < 300 {
                    reply.expect(402);
                } else {
                    assert_eq!(reply.problem(429), "RATE_LIMITED");
                    break;
                }
            }
        }
    }

    async fn a_suspended_user_reads_but_does_not_buy(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = ask_with_key(gateway, &token, "before", &json!({ "packageCode": PLAN })).await.expect(402);
        let user = logins::user(&gateway.app, &simgate::domain::email::Email::parse("ann@example.com").unwrap()).await.unwrap();
        operator::set_suspended(&gateway.app, "test", user.id.as_str(), true).await.unwrap();
        for body in [json!({ "packageCode": PLAN }), json!({ "packageCode": PLAN, "payWith": "wallet" })] {
            assert_eq!(ask(gateway, &token, &body).await.problem(403), "ACCOUNT_SUSPENDED");
        }
        assert_eq!(ask_with_key(gateway, &token, "before", &json!({ "packageCode": PLAN })).await.expect(402)["invoiceId"], made["invoiceId"]);
        let wallet = with_token(gateway, &token, "GET", "/api/agentic/wallet").await.expect(200);
        assert_eq!(wallet["status"], "SUSPENDED");
        // What was asked for before is still delivered when it is paid.
        settle(gateway, &made, "COMPLETED").await;
    }

    async fn the_wallet_buys_at_once(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let body = json!({ "packageCode": PLAN, "payWith": "wallet", "customerEmail": "kid@example.com" });
        let short = ask_with_key(gateway, &token, "w1", &body).await;
        assert_eq!(short.problem(402), "INSUFFICIENT_BALANCE");
        assert_eq!(short.json()["balanceUsd"].to_string(), "0");
        fund(gateway, "ann@example.com", Usd::dollars(20)).await;
        let bought = ask_with_key(gateway, &token, "w1", &body).await;
        assert_eq!(bought.header("cache-control"), "no-store");
        money(&bought.text);
        let bought = bought.expect(200);
        let price = usd(&bought["plan"]["basePriceUsd"]);
        assert_eq!((&bought["status"], &bought["orderStatus"]), (&json!("COMPLETED"), &json!("FULFILLED")));
        assert_eq!(usd(&bought["balanceUsd"]).plus(price), Usd::dollars(20));
        assert!(bought["esim"]["lpaString"].as_str().unwrap().starts_with("LPA:1$"));
        assert_eq!(bought.get("invoiceId"), None);
        let again = ask_with_key(gateway, &token, "w1", &body).await;
        assert_eq!(again.header("idempotent-replayed"), "true");
        assert_eq!(again.expect(200)["orderId"], bought["orderId"]);
        let other = json!({ "packageCode": PLAN, "payWith": "wallet" });
        assert_eq!(ask_with_key(gateway, &token, "w1", &other).await.problem(409), "IDEMPOTENCY_CONFLICT", "another customer");
        assert_eq!(ask_with_key(gateway, &token, "w1", &json!({ "packageCode": PLAN })).await.problem(409), "IDEMPOTENCY_CONFLICT", "another way to pay");
        assert_eq!(balance(gateway, &token).await.plus(price), Usd::dollars(20));
        let receipts = mails(gateway, "kid@example.com").await;
        assert_eq!((receipts.len(), &receipts[0]["subject"]), (1, &json!("Your eSIM is ready")));
        assert!(receipts[0]["text"].as_str().unwrap().contains(bought["esim"]["installUrl"].as_str().unwrap()));
        // Its record, with its owner's token only.
        let path = format!("/api/agentic/order/{}", bought["orderId"].as_str().unwrap());
        assert_eq!(with_token(gateway, &token, "GET", &path).await.expect(200)["esim"], bought["esim"]);
        let stranger = sign_in(gateway, "bob@example.com", "agent").await;
        assert_eq!(with_token(gateway, &stranger, "GET", &path).await.problem(404), "ORDER_NOT_FOUND");
        assert_eq!(reply(gateway.client.get(format!("{}{path}", gateway.base))).await.problem(401), "UNAUTHENTICATED");
        // A supplier that refuses leaves the money where it was.
        gateway.supplier("reject").await;
        assert_eq!(ask(gateway, &token, &body).await.problem(502), "SUPPLIER_REJECTED");
        assert_eq!(balance(gateway, &token).await.plus(price), Usd::dollars(20));
    }

    async fn the_invoice_id_is_the_key(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = open(gateway, &token).await;
        let path = format!("/api/agentic/order/{}", id(&made));
        let shown = reply(gateway.client.get(format!("{}{path}", gateway.base))).await;
        assert_eq!(shown.header("cache-control"), "no-store");
        let shown = shown.expect(200);
        assert_eq!(fields(&shown), [
            "confirmations", "createdAt", "instructions", "invoiceId", "lateUntil", "orderRef", "payment", "plan",
            "requiredConfirmations", "status", "success", "updatedAt",
        ]);
        assert_eq!((&shown["plan"], &shown["payment"]), (&made["plan"], &made["payment"]));
        assert_eq!((&shown["status"], &shown["confirmations"]), (&json!("PENDING_PAYMENT"), &json!(0)));
        with_token(gateway, &token, "GET", &path).await.expect(200);
        let stranger = sign_in(gateway, "bob@example.com", "agent").await;
        assert_eq!(with_token(gateway, &stranger, "GET", &path).await.problem(404), "INVOICE_NOT_FOUND");
        assert_eq!(with_token(gateway, "sgp_wrong", "GET", &path).await.problem(401), "UNAUTHENTICATED");
        for wrong in ["inv_", "inv_x", "x", "%00", "inv_%ff", "ord_"] {
            let path = format!("/api/agentic/order/{wrong}");
            assert_eq!(with_token(gateway, &token, "GET", &path).await.status, 404, "{wrong}");
        }
        let listed = with_token(gateway, &token, "GET", "/api/agentic/orders").await.expect(200);
        assert_eq!((&listed["total"], &listed["orders"]), (&json!(0), &json!([])));
        let done = settle(gateway, &made, "COMPLETED").await;
        let listed = with_token(gateway, &token, "GET", "/api/agentic/orders").await.expect(200);
        assert_eq!((&listed["total"], &listed["orders"][0]["id"]), (&json!(1), &done["orderId"]));
        assert_eq!(listed["orders"][0]["orderNo"], made["orderRef"]);
        for path in ["/api/agentic/orders", "/api/agentic/wallet"] {
            assert_eq!(reply(gateway.client.get(format!("{}{path}", gateway.base))).await.problem(401), "UNAUTHENTICATED");
        }
        assert_eq!(with_token(gateway, &token, "GET", "/api/agentic/orders?limit=101").await.problem(400), "INVALID_REQUEST");
    }

    async fn the_pay_page_shows_a_checkout(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let made = open(gateway, &token).await;
        let page = async || {
            let url = made["checkoutUrl"].as_str().unwrap();
            reply(gateway.client.get(url).header("accept", "text/html")).await
        };
        let open = page().await;
        assert_eq!(open.status, 200);
        assert!(open.text.contains("http-equiv=\"refresh\""), "without scripts it loads itself anew");
        assert!(open.text.contains(&amount(&made).to_string()) && open.text.contains("Waiting for your payment"));
        assert!(open.text.contains("<svg"));
        buying::settle(gateway, &made, "COMPLETED").await;
        let done = page().await;
        assert!(!done.text.contains("http-equiv=\"refresh\""), "nothing more happens");
        let install = record(gateway, &made).await["esim"]["installUrl"].as_str().unwrap().to_string();
        assert!(done.text.contains(&install) && !done.text.contains("How to pay"));
        let installed = reply(gateway.client.get(install).header("accept", "text/html")).await;
        assert_eq!(installed.status, 200);
    }
}
