//! Payments by signature in a plain sandbox: its own settler checks them for real and moves money on a simulated chain.

use alloy_primitives::hex;
use futures_util::future::join_all;
use serde_json::{Value, json};
use simgate::chain::{Chain, Witness};
use simgate::domain::authorization::{AuthorizationEvent, AuthorizationState};
use simgate::domain::ids::InvoiceId;
use simgate::domain::network::Network;
use simgate::store::authorizations;
use simgate::store::tx::Tx;

use crate::support::buying::*;
use crate::support::command_line::simgate;
use crate::support::harness::{Gateway, Reply, both_databases, reply};
use crate::support::logins::sign_in;
use crate::support::payer::{Payer, Wish, decoded};

/// It names the tokens that stock clients must be told of.
const AGENTS_MD: &str = include_str!("../../../docs/agents.md");
const POLYGON: &str = "eip155:137";
/// Answers before anything can be settled.
const HASTY: (&str, &str) = ("answer_within_ms", "1");
/// Counts only with the network's confirmations.
const THOROUGH: (&str, &str) = ("x402_quick_usd", "0.01");

/// Makes a wish wrong.
type Spoil<'a> = &'a dyn Fn(&mut Wish);

fn offer_on(challenge: &Value, network: &str) -> Value {
    let offers = challenge["accepts"].as_array().expect("offers");
    offers.iter().find(|offer| offer["network"] == network).unwrap().clone()
}

async fn tender(gateway: &Gateway, token: &str, signature: &str) -> Reply {
    let body = json!({ "packageCode": PLAN });
    reply(request(gateway, token, &body).header("payment-signature", signature)).await
}

/// A new checkout, its offer on Polygon, and a signature for it.
async fn signed(gateway: &Gateway, token: &str, nonce: u64) -> (Value, Value, String) {
    let challenge = open(gateway, token).await;
    let offer = offer_on(&challenge, POLYGON);
    let signature = Payer::new(7).pay(&offer, nonce);
    (challenge, offer, signature)
}

/// What lies where the offer is paid.
async fn received(gateway: &Gateway, offer: &Value) -> String {
    let chain = polygon(gateway);
    let at = chain.head().await.unwrap();
    let address = offer["payTo"].as_str().unwrap().to_string();
    let currency = simgate::domain::authorization::CURRENCY;
    chain.balances(currency, &[address], at).await.unwrap()[0].micros().to_string()
}

/// The state of the signature that is to pay for a checkout.
async fn state(gateway: &Gateway, checkout: &Value) -> Option<AuthorizationState> {
    let invoice = InvoiceId::from_text(id(checkout));
    let live = gateway.app.store.read(move |tx: &mut Tx| authorizations::live(tx, &invoice)).await.unwrap();
    live.map(|live| live.state)
}

async fn settler(gateway: &Gateway, mode: &str) {
    gateway.sandbox("job", json!({ "job": "settle POLYGON", "mode": mode })).await;
}

both_databases! {
    async fn every_network_settles(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let payer = Payer::new(7);
        for (network, chain) in [("eip155:8453", Network::Base), (POLYGON, Network::Polygon), ("eip155:42161", Network::Arbitrum)] {
            let asked = ask(gateway, &token, &json!({ "packageCode": PLAN })).await;
            let challenge = asked.expect(402);
            assert_eq!(challenge["capabilities"]["x402"], true);
            assert_eq!(decoded(asked.header("payment-required"))["accepts"], challenge["accepts"]);
            assert_eq!(challenge["accepts"].as_array().unwrap().len(), 3);
            let offer = offer_on(&challenge, network);
            assert!(AGENTS_MD.contains(&format!("| `{network}` ")) && AGENTS_MD.contains(offer["asset"].as_str().unwrap()));
            let real = gateway.app.settings.settlement.networks[&chain].tokens.iter();
            assert!(real.clone().all(|token| offer["asset"] != token.contract), "a real token");

            let signature = payer.pay(&offer, 1);
            let paid = tender(gateway, &token, &signature).await;
            let order = paid.expect(200);
            assert_eq!((&order["status"], &order["invoiceId"]), (&json!("COMPLETED"), &challenge["invoiceId"]));
            assert!(order["esim"]["lpaString"].as_str().unwrap().starts_with("LPA:1$"));
            let receipt = decoded(paid.header("payment-response"));
            assert_eq!((&receipt["success"], &receipt["network"]), (&json!(true), &json!(network)));
            assert_eq!((&receipt["payer"], &receipt["transaction"]), (&json!(payer.address), &order["txHash"]));
            assert_eq!(receipt["amount"], offer["amount"]);
            let mined = gateway.app.chains[&chain].transaction(order["txHash"].as_str().unwrap(), Witness::Any).await;
            assert_eq!(mined.unwrap().unwrap().transfers[0].amount.micros().to_string(), offer["amount"]);

            let again = tender(gateway, &token, &signature).await;
            assert_eq!(again.expect(200)["esim"], order["esim"]);
            assert_eq!(decoded(again.header("payment-response")), receipt);
        }
        assert_eq!(wallet_of(gateway, &token).await, json!(0));
    }

    /// A thief has the offer, and everything but a signature for exactly what it asks.
    async fn what_was_not_signed_for_buys_nothing(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let payer = Payer::new(7);
        let challenge = open(gateway, &token).await;
        let offer = offer_on(&challenge, POLYGON);
        let real_usdc = hex!("3c499c542cEF5E3811e1192ce70d8cC03d5c3359");
        let wrong: [(&str, Spoil); 9] = [
            ("invalid_exact_evm_payload_signature", &|wish| wish.domain.contract = real_usdc),
            ("invalid_exact_evm_payload_signature", &|wish| wish.domain.chain_id = 8_453),
            ("invalid_exact_evm_payload_signature", &|wish| wish.permission.from = [9; 20]),
            ("invalid_exact_evm_payload_authorization_value_mismatch", &|wish| wish.permission.value -= 1),
            ("invalid_exact_evm_payload_recipient_mismatch", &|wish| wish.permission.to = [9; 20]),
            ("invalid_exact_evm_payload_authorization_valid_before", &|wish| wish.permission.valid_before = 1_700_000_000),
            ("invalid_exact_evm_payload_authorization_valid_after", &|wish| wish.permission.valid_after = wish.permission.valid_before - 9),
            ("invalid_payment_requirements", &|wish| wish.accepted["asset"] = json!("0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359")),
            ("invalid_payment_requirements", &|wish| wish.accepted["payTo"] = json!("0x0909090909090909090909090909090909090909")),
        ];
        for (reason, spoil) in wrong {
            let mut wish = payer.wish(&offer, 1);
            spoil(&mut wish);
            assert_eq!(tender(gateway, &token, &payer.sign(&wish)).await.expect(402)["error"], reason);
        }
        assert_eq!(received(gateway, &offer).await, "0");
        let signature = payer.pay(&offer, 1);
        let stranger = sign_in(gateway, "bob@example.com", "agent").await;
        assert_eq!(tender(gateway, &stranger, &signature).await.problem(404), "INVOICE_NOT_FOUND");
        tender(gateway, &token, &signature).await.expect(200);
        // The same nonce for another checkout, and another signature for the paid one.
        let other = offer_on(&open(gateway, &token).await, POLYGON);
        assert_eq!(tender(gateway, &token, &payer.pay(&other, 1)).await.problem(409), "TRANSFER_ALREADY_USED");
        assert_eq!(tender(gateway, &token, &payer.pay(&offer, 2)).await.problem(409), "IDEMPOTENCY_CONFLICT");
        assert_eq!(received(gateway, &offer).await, offer["amount"]);
    }

    async fn one_signature_sent_many_times_at_once_pays_once(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let (_, offer, signature) = signed(gateway, &token, 1).await;
        let answers = join_all((0..8).map(|_| tender(gateway, &token, &signature))).await;
        let esims: Vec<Value> = answers.iter().map(|answer| answer.expect(200)["esim"]["iccid"].clone()).collect();
        assert!(esims.iter().all(|iccid| *iccid == esims[0]));
        assert_eq!(received(gateway, &offer).await, offer["amount"]);
        assert_eq!(gateway.journalled("sold").len(), 1);
    }

    /// Nobody can look at the chain: nothing is taken, and the same signature works afterwards.
    async fn nothing_is_taken_while_nodes_are_down(gateway) {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let (checkout, offer, signature) = signed(gateway, &token, 1).await;
        gateway.sandbox("chain", json!({ "network": "POLYGON", "mode": "down" })).await;
        assert_eq!(tender(gateway, &token, &signature).await.problem(503), "CHAIN_UNAVAILABLE");
        assert_eq!(state(gateway, &checkout).await, None);
        gateway.sandbox("chain", json!({ "network": "POLYGON", "mode": "ok" })).await;
        tender(gateway, &token, &signature).await.expect(200);
        assert_eq!(received(gateway, &offer).await, offer["amount"]);
    }

    /// The process dies after it wrote down that it settles, and before it did.
    async fn what_was_begun_is_finished_once(gateway) with [HASTY] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        settler(gateway, "hang").await;
        let (checkout, offer, signature) = signed(gateway, &token, 1).await;
        tender(gateway, &token, &signature).await.expect(202);
        assert_eq!(state(gateway, &checkout).await, Some(AuthorizationState::Claimed));
        let (invoice, now) = (InvoiceId::from_text(id(&checkout)), gateway.app.now());
        let sent = move |tx: &mut Tx| {
            let claimed = authorizations::live(tx, &invoice)?.unwrap();
            authorizations::advance(tx, &claimed, AuthorizationEvent::Sent, None, now)
        };
        assert!(gateway.app.store.write(0, sent).await.unwrap());
        // The payer is never asked to pay again meanwhile.
        tender(gateway, &token, &signature).await.expect(202);
        assert_eq!(received(gateway, &offer).await, "0");
        settler(gateway, "ok").await;
        until_status(gateway, &checkout, "COMPLETED").await;
        assert_eq!(state(gateway, &checkout).await, Some(AuthorizationState::Settled));
        assert_eq!(received(gateway, &offer).await, offer["amount"]);
    }

    /// The block that held it is replaced before the payment counted: it is made again, and counts once.
    async fn a_payment_that_vanished_is_made_again(gateway) with [HASTY, THOROUGH, ("polygon_confirmations", "250")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let (checkout, offer, signature) = signed(gateway, &token, 1).await;
        tender(gateway, &token, &signature).await.expect(202);
        let seen = async || (record(gateway, &checkout).await["confirmations"] != 0).then_some(());
        gateway.until("the payment is seen", seen).await;
        let before = record(gateway, &checkout).await["txHash"].clone();
        settler(gateway, "hang").await;
        gateway.sandbox("chain", json!({ "network": "POLYGON", "reorg": 200 })).await;
        assert_eq!(received(gateway, &offer).await, "0");
        settler(gateway, "ok").await;
        let back = async || (received(gateway, &offer).await == offer["amount"]).then_some(());
        gateway.until("it is on the chain again", back).await;
        gateway.pass_time(10 * UNTIL_FINAL_MS);
        let done = until_status(gateway, &checkout, "COMPLETED").await;
        assert_eq!(done["txHash"], before);
        assert_eq!(received(gateway, &offer).await, offer["amount"]);
    }

    /// Its time passes before it is settled: it is dead, the payer is told so, and signs anew.
    async fn a_signature_that_came_too_late_is_dead(gateway) with [HASTY] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        settler(gateway, "hang").await;
        let (checkout, offer, signature) = signed(gateway, &token, 1).await;
        tender(gateway, &token, &signature).await.expect(202);
        gateway.pass_time(10 * MINUTE_MS);
        settler(gateway, "ok").await;
        let dead = gateway.until("the signature is dead", async || {
            let answer = tender(gateway, &token, &signature).await;
            (answer.status != 202).then_some(answer)
        }).await;
        assert_eq!(dead.expect(402)["error"], "invalid_exact_evm_payload_authorization_valid_before");
        assert_eq!(decoded(dead.header("payment-response"))["success"], false);
        assert_eq!(state(gateway, &checkout).await, None);
        assert_eq!(received(gateway, &offer).await, "0");
    }

    /// With the settler off a 402 has no word of signatures.
    async fn it_can_be_turned_off(gateway) with [("x402_settler", "off")] {
        let token = sign_in(gateway, "ann@example.com", "agent").await;
        let asked = ask(gateway, &token, &json!({ "packageCode": PLAN })).await;
        assert_eq!(asked.header("payment-required"), "");
        let challenge = asked.expect(402);
        assert_eq!(challenge["capabilities"]["x402"], false);
        for member in ["x402Version", "resource", "accepts"] {
            assert_eq!(challenge[member], Value::Null, "{member}");
        }
    }

    async fn the_doctor_knows_it(gateway) {
        let told = simgate(gateway, &["doctor", "--json"]);
        let health: Value = serde_json::from_str(&told.stdout).unwrap();
        let lines = health["checks"].as_array().unwrap().iter().filter(|check| check["check"] == "x402");
        let findings: Vec<&str> = lines.map(|check| check["finding"].as_str().unwrap()).collect();
        assert_eq!(findings.len(), 3);
        assert!(findings.iter().all(|finding| finding.ends_with("settling is simulated")), "{findings:?}");
    }
}

async fn wallet_of(gateway: &Gateway, token: &str) -> Value {
    let url = format!("{}/api/agentic/wallet", gateway.base);
    let wallet = reply(gateway.client.get(url).header("authorization", format!("Bearer {token}"))).await;
    wallet.expect(200)["balanceUsd"].clone()
}
