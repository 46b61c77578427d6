//! Signatures whose fate is in doubt for a while: lost answers, stalled transactions, reorganisations, payers who act
//! on their own. Until it is sure that a signature is dead nobody is asked to pay again.

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::domain::network::Network;
use simgate::domain::transfer::TransferState;
use simgate::store::tx::Tx;
use simgate::store::{cursors, transfers};
use simgate::x402::local::GasKey;

use super::desk::CONFIRMATIONS;
use super::node::{address, number};
use super::proxy::Mood;
use super::till::{GAS_KEY, PLAN, PURSE, Setup, Till, at_till, receipt};
use crate::support::buying;
use crate::support::database;
use crate::support::harness::until;
use crate::support::payer::decoded;

const HASTY: &[(&str, &str)] = &[("answer_within_ms", "50")];
/// Longer than any signature counts, and than a transaction may stall.
pub const LATER_MS: i64 = 400_000;
const STALLED_MS: i64 = 20_000;

/// The call that brings a header's authorization onto the chain, which anybody may send.
pub fn transfer_call(header: &str) -> String {
    let payment = decoded(header);
    let signed = &payment["payload"]["authorization"];
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let seal = text(&payment["payload"]["signature"]);
    let whole = |field: &str| format!("{:064x}", text(&signed[field]).parse::<u64>().unwrap());
    format!(
        "0xe3ee160e{}{}{}{}{}{}{:0>64}{}",
        address(&text(&signed["from"])),
        address(&text(&signed["to"])),
        whole("value"),
        whole("validAfter"),
        whole("validBefore"),
        &text(&signed["nonce"])[2..],
        &seal[130..],
        &seal[2..130],
    )
}

impl Till {
    /// Signs for a new checkout and sends it; it must not be settled yet.
    async fn begin(&self) -> (String, Value, Value) {
        let offer = self.offer().await;
        let signature = self.payer.pay(&offer, 1);
        let sent = self.pay(&signature).await;
        let order = sent.expect(202);
        assert_eq!(order["status"], "PENDING_PAYMENT");
        assert_eq!(receipt(&sent.headers), Value::Null);
        (signature, order["invoiceId"].clone(), offer)
    }

    /// The same signature, until it is given up: every answer before that is a 202.
    async fn until_dead(&self, signature: &str) -> String {
        until("the signature is dead", async || {
            self.node.mine(1).await;
            let answer = self.pay(signature).await;
            if answer.status == 202 {
                return None;
            }
            let body = answer.expect(402);
            assert_eq!(receipt(&answer.headers)["success"], false);
            assert_eq!(receipt(&answer.headers)["errorReason"], body["error"]);
            Some(body["error"].as_str().unwrap().to_string())
        })
        .await
    }

    /// The order came, and the payer paid once.
    async fn completes(&self, invoice: &Value, offer: &Value) {
        self.until_completed(invoice).await;
        assert_eq!(self.spent().await.micros().to_string(), offer["amount"]);
        assert_eq!(self.node.transfers_to(offer["payTo"].as_str().unwrap()).await, 1);
    }
}

at_till! {
    /// No block comes for a while; then one does.
    async fn an_unmined_payment_is_awaited(till) with { settings: HASTY } {
        let (signature, invoice, offer) = till.begin().await;
        till.until_pooled(1).await;
        for _ in 0..3 {
            till.pay(&signature).await.expect(202);
        }
        let order = till.poll(&invoice).await;
        assert!(order["instructions"].as_str().unwrap().contains("Do not pay again"));
        till.completes(&invoice, &offer).await;
        assert_eq!(till.pay(&signature).await.expect(200)["status"], "COMPLETED");
    }

    /// The node takes the transaction and breaks down before it says so.
    async fn a_lost_answer_is_found_on_the_chain(till) with { proxies: 1, settings: HASTY } {
        till.offer().await;
        till.proxies[0].set(Mood::ChokesOnTransactions);
        let (_, invoice, offer) = till.begin().await;
        till.until_pooled(1).await;
        till.proxies[0].set(Mood::Honest);
        till.completes(&invoice, &offer).await;
    }

    /// Nobody ever sees it: it is sent again, and lands.
    async fn a_transaction_that_got_lost_is_sent_again(till) with { proxies: 1, settings: HASTY } {
        till.offer().await;
        till.proxies[0].set(Mood::Swallows);
        let (_, invoice, offer) = till.begin().await;
        until("it was written down", async || (till.pending().await == 1).then_some(())).await;
        till.node.mine(3).await;
        till.proxies[0].set(Mood::Honest);
        till.gateway.pass_time(STALLED_MS);
        till.completes(&invoice, &offer).await;
    }

    /// Gas becomes dearer than the transaction offers: another takes its place.
    async fn a_stalled_transaction_offers_more(till) with { settings: HASTY } {
        let (_, invoice, offer) = till.begin().await;
        till.until_pooled(1).await;
        // More than twice of what gas cost when it was sent.
        till.node.rpc("anvil_setNextBlockBaseFeePerGas", json!(["0x174876e800"])).await;
        till.node.mine(1).await;
        assert_eq!(till.spent().await, Usd::ZERO);
        till.gateway.pass_time(STALLED_MS);
        until("another takes its place", async || (till.pending().await == 2).then_some(())).await;
        till.completes(&invoice, &offer).await;
        until("both are done with", async || {
            till.node.mine(1).await;
            (till.pending().await == 0).then_some(())
        }).await;
    }

    /// The chain waits for a number that nobody has, and payments wait behind it: they are sent again, from there on.
    async fn a_gap_in_the_numbers_of_the_gas_key_is_closed(till) with { settings: HASTY } {
        let (_, invoice, offer) = till.begin().await;
        till.completes(&invoice, &offer).await;
        database::execute(&till.gateway.app.settings.database, "UPDATE settlers SET next_nonce = 7").unwrap();
        let mut invoices = Vec::new();
        for nonce in [2, 3] {
            let signature = till.payer.pay(&till.offer().await, nonce);
            invoices.push(till.pay(&signature).await.expect(202)["invoiceId"].clone());
        }
        until("they are sent", async || (till.pending().await == 2).then_some(())).await;
        until("nothing waits behind the gap", async || {
            till.gateway.pass_time(5_000);
            till.node.mine(1).await;
            (till.pending().await == 0).then_some(())
        }).await;
        for invoice in invoices {
            till.until_completed(&invoice).await;
        }
        // The next payment follows them.
        let signature = till.payer.pay(&till.offer().await, 4);
        let invoice = till.pay(&signature).await.expect(202)["invoiceId"].clone();
        till.until_completed(&invoice).await;
        let key = GasKey::parse(GAS_KEY).unwrap();
        let count = till.node.rpc("eth_getTransactionCount", json!([key.address, "latest"])).await;
        assert_eq!(count, "0x4");
    }

    /// The payer's money is gone before our transaction is in a block.
    async fn a_reverted_payment_is_given_up_when_that_is_final(till) with { settings: HASTY } {
        let (signature, _, offer) = till.begin().await;
        till.until_pooled(1).await;
        let away = till.node.calldata("transfer(address,uint256)", &[address(&till.node.payer), number(PURSE)]);
        till.node.send_as(&till.payer.address, &away, 500).await;
        till.until_pooled(2).await;
        till.node.mine(1).await;
        till.pay(&signature).await.expect(202);
        assert_eq!(till.until_dead(&signature).await, "invalid_transaction_state");
        assert_eq!(till.node.transfers_to(offer["payTo"].as_str().unwrap()).await, 0);
    }

    /// Its time passes while it is nowhere: dead when a final block says so, and not before.
    async fn an_expired_signature_is_dead_when_a_final_block_says_so(till) with { proxies: 1, settings: HASTY } {
        till.offer().await;
        till.proxies[0].set(Mood::Swallows);
        let (signature, ..) = till.begin().await;
        until("it was written down", async || (till.pending().await == 1).then_some(())).await;
        till.gateway.pass_time(LATER_MS);
        for _ in 0..3 {
            till.pay(&signature).await.expect(202);
        }
        till.node.pass_time(LATER_MS / 1_000).await;
        assert_eq!(till.until_dead(&signature).await, "invalid_exact_evm_payload_authorization_valid_before");
        assert_eq!(till.spent().await, Usd::ZERO);
    }

    /// The payer brings it onto the chain by themselves; ours comes second and fails.
    async fn a_payer_who_sends_it_too_pays_once(till) with { settings: HASTY } {
        let (signature, invoice, offer) = till.begin().await;
        till.until_pooled(1).await;
        till.node.send_as(&till.payer.address, &transfer_call(&signature), 500).await;
        till.until_pooled(2).await;
        till.completes(&invoice, &offer).await;
        assert_eq!(till.pay(&signature).await.expect(200)["status"], "COMPLETED");
    }

    /// … or before we see it at all.
    async fn a_signature_that_was_used_before_pays_all_the_same(till) with { settings: HASTY } {
        let offer = till.offer().await;
        let signature = till.payer.pay(&offer, 1);
        let pending = till.pay(&signature);
        till.node.send_as(&till.payer.address, &transfer_call(&signature), 500).await;
        let invoice = pending.await.expect(202)["invoiceId"].clone();
        till.completes(&invoice, &offer).await;
    }

    async fn a_revoked_signature_is_dead_in_the_end(till) with { proxies: 1, settings: HASTY } {
        till.offer().await;
        till.proxies[0].set(Mood::Swallows);
        let (signature, ..) = till.begin().await;
        until("it was written down", async || (till.pending().await == 1).then_some(())).await;
        let nonce = decoded(&signature)["payload"]["authorization"]["nonce"].as_str().unwrap()[2..].to_string();
        let revoke = till.node.calldata("cancelAuthorization(bytes32)", &[nonce]);
        till.node.send_as(&till.payer.address, &revoke, 500).await;
        till.node.mine(1).await;
        till.gateway.pass_time(LATER_MS);
        till.node.pass_time(LATER_MS / 1_000).await;
        assert_eq!(till.until_dead(&signature).await, "invalid_exact_evm_nonce_already_used");
        assert_eq!(till.spent().await, Usd::ZERO);
    }

    /// The block with the payment is replaced by one without it: it is sent again, and counted once.
    async fn a_payment_in_a_replaced_block_is_sent_again(till) with { settings: &[("answer_within_ms", "50"), ("x402_quick_usd", "0.5")] } {
        let (_, invoice, offer) = till.begin().await;
        till.until_pooled(1).await;
        till.node.mine(2).await;
        until("the payment is seen", async || (till.poll(&invoice).await["confirmations"] != 0).then_some(())).await;
        till.node.reorg(2, &[]).await;
        assert_eq!(till.spent().await, Usd::ZERO);
        till.gateway.pass_time(STALLED_MS);
        till.completes(&invoice, &offer).await;
    }

    /// Delivered after one block, which is then replaced by one without the payment. Some blocks later it is back: nobody
    /// owed anything meanwhile, or was shut out.
    async fn a_quick_payment_is_missed_for_some_blocks(till) with { settings: HASTY } {
        let (_, invoice, _) = till.begin().await;
        till.until_pooled(1).await;
        till.node.mine(1).await;
        let done = until("it is delivered", async || {
            let order = till.poll(&invoice).await;
            (order["status"] == "COMPLETED").then_some(order)
        })
        .await;
        let hash = done["txHash"].as_str().unwrap();
        let (block, raw) = (till.node.block_of(hash).await, till.node.raw(hash).await);
        till.node.reorg(1, &[]).await;
        till.node.mine(2).await;
        let scanned = async || {
            let cursor = till.gateway.app.store.read(|tx| cursors::get(tx, Network::Polygon)).await.unwrap();
            cursor.unwrap().scanned
        };
        until("its block was looked at", async || (scanned().await >= block).then_some(())).await;
        assert_eq!(till.book("receivable").await, Usd::ZERO);
        till.ask(&till.token, json!({ "packageCode": PLAN })).await.expect(402);
        till.node.try_again(&raw).await;
        till.node.mine(1).await;
        let back = till.node.block_of(hash).await;
        until("it is as deep as others have to be", async || {
            till.node.mine(1).await;
            (scanned().await > back + CONFIRMATIONS).then_some(())
        })
        .await;
        assert_eq!((till.book("receivable").await, till.poll(&invoice).await["txHash"].as_str()), (Usd::ZERO, Some(hash)));
        till.ask(&till.token, json!({ "packageCode": PLAN })).await.expect(402);
    }

    /// Delivered after one block, which is then replaced by one in which somebody else's transaction uses the signature: the
    /// money came once, and nobody is owed anything for the other.
    async fn a_signature_that_another_transaction_used_counts_once(till) with { settings: HASTY } {
        let (signature, invoice, offer) = till.begin().await;
        till.until_pooled(1).await;
        let first = till.until_completed(&invoice).await["txHash"].as_str().unwrap().to_string();
        let price = Usd::from_micros(offer["amount"].as_str().unwrap().parse().unwrap());
        let depth = till.node.head().await - till.node.block_of(&first).await + 1;
        till.node.reorg(depth, &[]).await;
        let second = till.node.send_as(&till.node.payer, &transfer_call(&signature), 500).await;
        until("the other transaction counts", async || {
            till.node.mine(1).await;
            let hash = second.clone();
            let read = move |tx: &mut Tx| transfers::of_transaction(tx, Network::Polygon, &hash);
            let seen = till.gateway.app.store.read(read).await.unwrap();
            seen.iter().any(|transfer| transfer.state == TransferState::Credited).then_some(())
        })
        .await;
        assert_eq!((till.book("cash:POLYGON:USDC").await, till.book("receivable").await), (price, Usd::ZERO));
        assert_eq!(buying::balance(&till.gateway, &till.token).await, Usd::ZERO);
        assert_eq!(till.gateway.journalled("sold").len(), 1);
        till.ask(&till.token, json!({ "packageCode": PLAN })).await.expect(402);
    }

    /// Delivered after one block, which is then replaced by one in which the payer spends the money elsewhere: the price
    /// is owed, and the account buys nothing until a person has looked.
    async fn a_payment_taken_back_after_delivery_is_owed(till) with { settings: HASTY } {
        let (_, invoice, offer) = till.begin().await;
        till.until_pooled(1).await;
        let hash = till.until_completed(&invoice).await["txHash"].as_str().unwrap().to_string();
        let price = Usd::from_micros(offer["amount"].as_str().unwrap().parse().unwrap());
        let depth = till.node.head().await - till.node.block_of(&hash).await + 1;
        till.node.reorg(depth, &[]).await;
        let away = till.node.calldata("transfer(address,uint256)", &[address(&till.node.payer), number(PURSE)]);
        till.node.send_as(&till.payer.address, &away, 500).await;
        until("what was taken back is owed", async || {
            till.node.mine(1).await;
            (till.book("receivable").await == price).then_some(())
        })
        .await;
        assert_eq!(till.poll(&invoice).await["status"], "COMPLETED", "it was delivered");
        let next = till.ask(&till.token, json!({ "packageCode": PLAN })).await;
        assert_eq!(next.expect(403)["code"], "ACCOUNT_SUSPENDED");
    }
}
