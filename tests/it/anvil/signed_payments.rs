//! Payments by signature that go well, and those that are refused before anything has left us.

use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::domain::money::Usd;

use super::till::{CHECKOUT, OTHER_PLAN, PLAN, Setup, Till, at_till, receipt, while_mining};
use crate::support::logins::sign_in;
use crate::support::payer::{Payer, Wish, decoded};

/// Makes a wish wrong.
type Spoil<'a> = &'a dyn Fn(&mut Wish);

fn units(amount: &Value) -> Usd {
    Usd::from_micros(amount.as_str().unwrap().parse().unwrap())
}

at_till! {
    /// The offer, the payment, the eSIM, and the same signature again.
    async fn a_signature_buys_an_esim(till) {
        let challenge = till.challenge().await;
        let asked = till.ask(&till.token, json!({ "packageCode": PLAN })).await;
        assert_eq!(asked.header("content-type"), "application/json");
        assert_eq!(asked.header("cache-control"), "no-store");
        let (body, header) = (asked.expect(402), decoded(asked.header("payment-required")));
        for member in ["x402Version", "resource", "accepts", "error"] {
            assert_eq!(header[member], body[member], "{member}");
        }
        assert_eq!(body["error"], "PAYMENT-SIGNATURE header is required");
        assert_eq!(body["resource"]["url"], format!("{}/api/agentic/checkout", till.gateway.app.settings.agent_url));
        let text = header.to_string();
        assert!(!text.contains(body["invoiceId"].as_str().unwrap()), "an invoice id is a key");

        let offer = &challenge["accepts"][0];
        assert_eq!(offer["network"], "eip155:137");
        assert_eq!(offer["amount"], challenge["payment"]["expectedAmountUnits"]);
        assert_eq!(offer["payTo"], challenge["payment"]["receivingAddress"]);
        assert_eq!(offer["extra"], json!({
            "name": "USD Coin", "version": "2", "paymentFlow": "upfront", "orderRef": challenge["orderRef"],
        }));
        let signature = till.payer.pay(offer, 1);
        let paid = till.pay_and_mine(&signature).await;
        let order = paid.json();
        assert_eq!(order["invoiceId"], challenge["invoiceId"]);
        assert!(order["esim"]["lpaString"].as_str().unwrap().starts_with("LPA:1$"));
        let settled = receipt(&paid.headers);
        assert_eq!(settled["success"], true);
        assert_eq!(settled["transaction"], order["txHash"]);
        assert_eq!(settled["payer"], till.payer.address);
        assert_eq!(settled["amount"], offer["amount"]);
        assert_eq!(till.spent().await, units(&offer["amount"]));

        let again = till.pay(&signature).await;
        assert_eq!(again.expect(200)["esim"], order["esim"]);
        assert_eq!(receipt(&again.headers), settled);
        assert_eq!(till.node.transfers_to(offer["payTo"].as_str().unwrap()).await, 1);

        // For another order it is nothing.
        let mut other = till.payer.wish(offer, 1);
        other.accepted = till.offer().await;
        assert_eq!(till.pay(&till.payer.sign(&other)).await.problem(409), "TRANSFER_ALREADY_USED");
        // Another signature for the paid order is not used.
        let second = till.payer.pay(offer, 2);
        assert_eq!(till.pay(&second).await.problem(409), "IDEMPOTENCY_CONFLICT");
        assert_eq!(till.spent().await, units(&offer["amount"]));
    }

    async fn one_header_sent_many_times_at_once_pays_once(till) {
        let offer = till.offer().await;
        let signature = till.payer.pay(&offer, 1);
        let posts = join_all((0..8).map(|_| till.pay(&signature)));
        let answers = while_mining(&till.node, posts).await;
        let first = answers[0].expect(200);
        for answer in &answers {
            assert_eq!(answer.expect(200)["esim"]["iccid"], first["esim"]["iccid"]);
        }
        assert_eq!(till.node.transfers_to(offer["payTo"].as_str().unwrap()).await, 1);
        assert_eq!(till.spent().await, units(&offer["amount"]));
    }

    /// Nothing has left us, so the same invoice can be paid by a better signature.
    async fn what_does_not_fit_is_refused_by_name(till) {
        let offer = till.offer().await;
        let poor = Payer::new(2);
        let wrong: [(&str, Spoil); 10] = [
            ("invalid_exact_evm_payload_authorization_valid_before", &|wish| wish.permission.valid_before = 1_700_000_000),
            ("invalid_exact_evm_payload_authorization_valid_before", &|wish| wish.permission.valid_before += 86_400),
            ("invalid_exact_evm_payload_authorization_valid_after", &|wish| wish.permission.valid_after = wish.permission.valid_before - 9),
            ("invalid_exact_evm_payload_recipient_mismatch", &|wish| wish.permission.to = [7; 20]),
            ("invalid_exact_evm_payload_authorization_value_mismatch", &|wish| wish.permission.value -= 1),
            ("invalid_exact_evm_payload_signature", &|wish| wish.domain.version = "1".into()),
            ("invalid_exact_evm_payload_signature", &|wish| wish.domain.chain_id = 8_453),
            ("invalid_payment_requirements", &|wish| wish.accepted["amount"] = json!("1")),
            ("invalid_payment_requirements", &|wish| wish.accepted["extra"]["name"] = json!("USDC")),
            ("invalid_network", &|wish| wish.accepted["network"] = json!("eip155:8453")),
        ];
        for (reason, spoil) in wrong {
            let mut wish = till.payer.wish(&offer, 1);
            spoil(&mut wish);
            let refused = till.pay(&till.payer.sign(&wish)).await;
            assert_eq!(refused.expect(402)["error"], reason);
            assert_eq!(decoded(refused.header("payment-required"))["error"], reason);
        }
        assert_eq!(till.pay(&poor.pay(&offer, 1)).await.expect(402)["error"], "insufficient_funds");
        till.node.bar(&till.payer.address, true).await;
        assert_eq!(till.pay(&till.payer.pay(&offer, 1)).await.expect(402)["error"], "invalid_transaction_state");
        till.node.bar(&till.payer.address, false).await;
        assert_eq!(till.pay("nonsense").await.problem(400), "INVALID_REQUEST");

        // Bound to package and owner.
        let signature = till.payer.pay(&offer, 1);
        let other = till.post(&till.token, json!({ "packageCode": OTHER_PLAN }), Some(&signature)).await;
        assert_eq!(other.problem(409), "IDEMPOTENCY_CONFLICT");
        let stranger = sign_in(&till.gateway, "bob@example.com", "agent").await;
        let stolen = till.post(&stranger, json!({ "packageCode": PLAN }), Some(&signature)).await;
        assert_eq!(stolen.problem(404), "INVOICE_NOT_FOUND");
        assert_eq!(till.spent().await, Usd::ZERO);
        assert_eq!(till.pending().await, 0);
        till.pay_and_mine(&signature).await;
    }

    /// Above the quick sum a payment waits for the network's confirmations.
    async fn a_large_payment_waits(till) with { settings: &[("x402_quick_usd", "0.5"), ("answer_within_ms", "50")] } {
        let offer = till.offer().await;
        let signature = till.payer.pay(&offer, 1);
        let first = till.pay(&signature).await;
        let invoice = first.expect(202)["invoiceId"].clone();
        assert_eq!(receipt(&first.headers), Value::Null);
        till.until_pooled(1).await;
        till.node.mine(1).await;
        let seen = crate::support::harness::until("the payment is seen", async || {
            let order = till.poll(&invoice).await;
            (order["confirmations"] != 0).then_some(order)
        }).await;
        assert_eq!((&seen["status"], &seen["requiredConfirmations"]), (&json!("PENDING_PAYMENT"), &json!(5)));
        let again = till.pay(&signature).await;
        again.expect(202);
        assert_eq!(receipt(&again.headers)["success"], true);
        till.node.mine(3).await;
        assert_eq!(till.pay(&signature).await.expect(202)["status"], "PENDING_PAYMENT");
        till.until_completed(&invoice).await;
        assert_eq!(till.pay(&signature).await.expect(200)["status"], "COMPLETED");
    }

    /// A checkout on TRON is paid on another network, to an address of ours there.
    async fn a_checkout_on_tron_can_be_paid_by_signature(till) {
        till.challenge().await;
        let body = json!({ "packageCode": PLAN, "preferredNetwork": "tron" });
        let challenge = till.ask(&till.token, body.clone()).await.expect(402);
        let offer = &challenge["accepts"][0];
        assert!(offer["payTo"].as_str().unwrap().starts_with("0x"));
        let signature = till.payer.pay(offer, 1);
        let paid = while_mining(&till.node, till.post(&till.token, body, Some(&signature))).await;
        assert_eq!(paid.expect(200)["status"], "COMPLETED");
    }

    /// TRON's and POLYGON's rings have one seed and order, and signatures for both named one address: the first try gave
    /// both one amount there, so whoever saw the one's signature on the chain could bring it for the other.
    async fn what_is_signed_for_is_nobody_elses(till) with { settings: &[("wide_addresses_evm", "0"), ("wide_addresses_tron", "0")] } {
        till.challenge().await;
        let mut asked: Vec<(String, String)> = Vec::new();
        for network in ["POLYGON", "TRON", "ARBITRUM", "TRON", "POLYGON", "TRON"] {
            let body = json!({ "packageCode": PLAN, "preferredNetwork": network });
            let made = till.ask(&till.token, body).await.expect(402);
            let offer = &made["accepts"][0];
            let one = (offer["payTo"].as_str().unwrap().to_string(), offer["amount"].as_str().unwrap().to_string());
            assert!(!asked.contains(&one), "{one:?} twice");
            assert_eq!(offer["payTo"] == made["payment"]["receivingAddress"], network != "TRON");
            asked.push(one);
        }
        let of = |turns: [usize; 3]| turns.map(|turn| asked[turn].0.clone());
        assert!(of([1, 3, 5]).iter().all(|address| !of([0, 2, 4]).contains(address)), "{asked:?}");
    }

    /// With an Idempotency-Key the same request is not asked to pay while a signature is on its way.
    async fn a_signed_checkout_asks_for_no_second_payment(till) with { settings: &[("answer_within_ms", "50")] } {
        till.challenge().await;
        let post = async |signature: Option<&str>| {
            let request = till.gateway.client.post(format!("{}{}", till.gateway.base, CHECKOUT));
            let request = request.header("authorization", format!("Bearer {}", till.token)).header("idempotency-key", "trip");
            let request = request.header("content-type", "application/json").body(json!({ "packageCode": PLAN }).to_string());
            crate::support::harness::reply(match signature {
                Some(signature) => request.header("payment-signature", signature),
                None => request,
            }).await
        };
        let challenge = post(None).await.expect(402);
        let signature = till.payer.pay(&challenge["accepts"][0], 1);
        post(Some(&signature)).await.expect(202);
        let again = post(None).await.expect(202);
        assert_eq!(again["invoiceId"], challenge["invoiceId"]);
        assert!(again["instructions"].as_str().unwrap().contains("Do not pay again"));
        till.until_completed(&challenge["invoiceId"]).await;
        post(None).await.expect(200);
        assert_eq!(till.spent().await, units(&challenge["accepts"][0]["amount"]));
    }

    async fn nothing_is_spent_beyond_the_budget(till) with { settings: &[("polygon_gas_per_account", "0.000000001")] } {
        let offer = till.offer().await;
        let refused = till.pay(&till.payer.pay(&offer, 1)).await;
        assert_eq!(refused.expect(402)["error"], "unexpected_settle_error");
        assert_eq!(receipt(&refused.headers)["success"], false);
        assert_eq!(till.pending().await, 0);
        assert_eq!(till.spent().await, Usd::ZERO);
    }

    async fn a_token_that_takes_no_signatures_is_not_offered(till) with { signing: None } {
        till.is_not_offered("the token has no version(): it takes no signatures").await;
    }

    async fn without_gas_nothing_is_offered(till) with { gas: false } {
        till.is_not_offered("too little on it").await;
    }
}

impl Till {
    /// The doctor says why, and a 402 is as if there were no such thing.
    async fn is_not_offered(&self, why: &str) {
        let checks = simgate::ops::doctor::examine(&self.gateway.app).await.unwrap();
        let found = checks.iter().find(|check| check.subject == "x402").expect("a check of the settler");
        assert!(found.finding.contains(why), "{}", found.finding);
        let asked = self.ask(&self.token, json!({ "packageCode": PLAN })).await;
        let body = asked.expect(402);
        assert_eq!(body["capabilities"]["x402"], false);
        assert_eq!(asked.header("payment-required"), "");
        assert!(body.get("accepts").is_none() && body.get("x402Version").is_none());
        let pays = body["error"].as_str().unwrap().starts_with("Pay exactly");
        assert!(pays, "{body}");
    }
}
