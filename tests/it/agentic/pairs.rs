//! What a checkout can be paid with: every token on every network, in every spelling, and never another one than was
//! asked for.

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};

use crate::support::buying::*;
use crate::support::harness::{booked, both_databases};
use crate::support::logins::sign_in;

const NETWORKS: [&str; 4] = ["POLYGON", "ARBITRUM", "TRON", "BASE"];
const CURRENCIES: [&str; 2] = ["USDT", "USDC"];

fn all_pairs() -> Vec<(&'static str, &'static str)> {
    CURRENCIES.into_iter().flat_map(|currency| NETWORKS.map(|network| (currency, network))).collect()
}

fn pair_of(asked: &Value) -> (&str, &str) {
    let word = |field: &str| asked["payment"][field].as_str().unwrap();
    (word("currency"), word("network"))
}

both_databases! {
    async fn every_pair_is_paid_and_delivered(gateway) with [("x402_settler", "off")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let first = open(gateway, &token).await;
        let pairs: Vec<Value> = all_pairs().into_iter().map(|(currency, network)| json!({ "currency": currency, "network": network })).collect();
        assert_eq!(first["capabilities"], json!({
            "networks": NETWORKS, "currencies": CURRENCIES, "pairs": pairs, "polling": true, "x402": false, "webhooks": false,
        }));
        assert_eq!(pair_of(&first), ("USDT", "POLYGON"), "the default");
        for (currency, network) in all_pairs() {
            let asked = ask(gateway, &token, &json!({ "packageCode": PLAN, "preferredNetwork": network, "preferredCurrency": currency })).await.expect(402);
            assert_eq!(pair_of(&asked), (currency, network));
            let terms = &gateway.app.settings.settlement.networks[&Network::parse(network).unwrap()];
            let token = terms.tokens.iter().find(|token| token.currency.as_str() == currency).unwrap();
            assert_eq!(asked["payment"]["contractAddress"], json!(token.contract));
            assert!(asked["error"].as_str().unwrap().contains(&format!(" {currency}")), "{}", asked["error"]);
            let done = settle(gateway, &asked, "COMPLETED").await;
            assert_eq!((&done["payment"]["currency"], &done["payment"]["network"]), (&json!(currency), &json!(network)));
            assert_eq!(booked(&gateway.app, &format!("cash:{network}:{currency}")).await, amount(&asked));
        }
    }

    /// The other token is money of nobody that the operator sees, and pays for nothing, exact or rounded.
    async fn the_other_token_does_not_pay(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let (mut sent, base) = (0, &gateway.app.sim_chains[&Network::Base]);
        for (asked_for, other) in [("USDC", Currency::Usdt), ("USDT", Currency::Usdc)] {
            let asked = ask(gateway, &token, &json!({ "packageCode": PLAN, "network": "BASE", "currency": asked_for })).await.expect(402);
            for paid in [amount(&asked), amount(&asked).plus(Usd::from_micros(3))] {
                base.pay(address(&asked), other, paid).await.unwrap();
                gateway.app.expected.send_modify(|count| *count += 1);
                gateway.pass_time(UNTIL_FINAL_MS);
                sent += 1;
                unmatched(gateway, sent).await;
            }
            assert_eq!(record(gateway, &asked).await["status"], "PENDING_PAYMENT");
            assert_eq!(settle(gateway, &asked, "COMPLETED").await["payment"]["currency"], asked_for);
        }
    }

    /// A rounded amount in the token that was asked for does pay.
    async fn a_rounded_amount_of_usdc_pays(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let asked = ask(gateway, &token, &json!({ "packageCode": PLAN, "network": "base", "currency": "usdc" })).await.expect(402);
        assert_eq!(asked["payment"]["wide"], true);
        pay_amount(gateway, &asked, usd(&asked["plan"]["basePriceUsd"])).await;
        gateway.pass_time(UNTIL_FINAL_MS);
        until_status(gateway, &asked, "COMPLETED").await;
    }

    async fn every_spelling_is_understood_and_two_must_agree(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        for (said, pair) in [
            (json!({ "preferredNetwork": "base", "preferredCurrency": "usdc" }), ("USDC", "BASE")),
            (json!({ "network": "Base", "currency": "UsdC" }), ("USDC", "BASE")),
            (json!({ "network": "TRON" }), ("USDT", "TRON")),
            (json!({ "currency": "USDC" }), ("USDC", "POLYGON")),
            (json!({ "network": "arbitrum", "preferredNetwork": "ARBITRUM", "currency": "usdt", "preferredCurrency": "USDT" }), ("USDT", "ARBITRUM")),
            (json!({ "network": "tron", "preferredNetwork": null }), ("USDT", "TRON")),
        ] {
            let mut body = said;
            body["packageCode"] = json!(PLAN);
            assert_eq!(pair_of(&ask(gateway, &token, &body).await.expect(402)), pair, "{body}");
        }
        for (said, field, message) in [
            (json!({ "network": "TRON", "preferredNetwork": "BASE" }), "network", "must be the same as preferredNetwork, or be left out"),
            (json!({ "currency": "USDC", "preferredCurrency": "USDT" }), "currency", "must be the same as preferredCurrency, or be left out"),
            (json!({ "preferredNetwork": "SOLANA" }), "preferredNetwork", "must be one of POLYGON, ARBITRUM, TRON, BASE"),
            (json!({ "currency": "DAI" }), "currency", "must be one of USDT, USDC"),
            (json!({ "payWith": "card" }), "payWith", "must be wallet"),
            (json!({ "preferred_network": "TRON" }), "preferred_network", "unknown; did you mean preferredNetwork?"),
            (json!({ "discount": "TRIP" }), "discount", "unknown; did you mean discountCode?"),
            (json!({ "maxPriceUsd": 1 }), "maxPriceUsd", "unknown; known are packageCode, preferredNetwork, preferredCurrency, network, currency, customerEmail, discountCode, payWith"),
        ] {
            let mut body = said;
            body["packageCode"] = json!(PLAN);
            let refused = ask(gateway, &token, &body).await;
            assert_eq!(refused.problem(400), "INVALID_REQUEST", "{body}");
            assert_eq!(refused.json()["errors"], json!([{ "field": field, "message": message }]), "{body}");
        }
    }

    async fn a_pair_that_cannot_be_had_is_refused(gateway) with [("tron_usdc", "off"), ("base_usdt", "off")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let asked = open(gateway, &token).await;
        let pairs = &asked["capabilities"]["pairs"];
        assert_eq!(pairs.as_array().unwrap().len(), 6);
        for (currency, network) in [("USDC", "TRON"), ("USDT", "BASE")] {
            assert!(!pairs.as_array().unwrap().contains(&json!({ "currency": currency, "network": network })));
            let refused = ask(gateway, &token, &json!({ "packageCode": PLAN, "network": network, "currency": currency })).await;
            assert_eq!(refused.problem(422), "UNSUPPORTED_PAIR");
            assert_eq!(&refused.json()["pairs"], pairs);
        }
        let refused = ask(gateway, &token, &json!({ "packageCode": PLAN, "preferredNetwork": "BASE" })).await;
        assert_eq!(refused.problem(422), "UNSUPPORTED_PAIR", "the usual token is not taken there, and none is taken instead");
    }

    async fn a_key_stands_for_its_pair_too(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let first = ask_with_key(gateway, &token, "trip", &json!({ "packageCode": PLAN, "currency": "USDC" })).await.expect(402);
        let again = ask_with_key(gateway, &token, "trip", &json!({ "packageCode": PLAN, "preferredCurrency": "usdc", "network": "polygon" })).await;
        assert_eq!((again.header("idempotent-replayed"), again.expect(402)), ("true", first.clone()));
        for (other, differs) in [
            (json!({ "packageCode": PLAN }), json!(["currency"])),
            (json!({ "packageCode": PLAN, "currency": "USDC", "network": "BASE" }), json!(["network"])),
            (json!({ "packageCode": "JP-5GB-30D", "currency": "USDC" }), json!(["packageCode"])),
            (json!({ "packageCode": PLAN, "currency": "USDC", "customerEmail": "a@example.com" }), json!(["customerEmail"])),
            (json!({ "packageCode": PLAN, "payWith": "wallet" }), json!(["operation"])),
        ] {
            let refused = ask_with_key(gateway, &token, "trip", &other).await;
            assert_eq!(refused.problem(409), "IDEMPOTENCY_CONFLICT", "{other}");
            let told = refused.json();
            assert_eq!((&told["orderId"], &told["differs"]), (&first["invoiceId"], &differs), "{other}");
        }
    }
}
