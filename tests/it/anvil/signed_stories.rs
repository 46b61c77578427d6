//! Thieves and their signatures, before a real node. EIP-3009 nonces belong to the payer, so one nonce can carry two
//! authorizations: one is shown to us, the other is brought onto the chain. And what is on the chain is public: somebody
//! else's signature can be shown for one's own checkout. Random stories of this kind are in `stories/`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::domain::network::Network;
use simgate::store::cursors;
use simgate::store::tx::Tx;

use super::desk::CONFIRMATIONS;
use super::signed_doubts::transfer_call;
use super::signed_tools::{BUY, demanded, paying};
use super::till::{PLAN, Setup, Till, at_till};
use crate::support::buying;
use crate::support::harness::{Reply, until};
use crate::support::logins::sign_in;
use crate::support::payer::{Payer, Wish, decoded};
use crate::support::tool_caller::told;

const HASTY: &[(&str, &str)] = &[("answer_within_ms", "50"), ("trusted_proxies", "127.0.0.1")];
/// Offers more for gas than our own transactions do.
const DEAR_GAS: u64 = 500;
const NOT_ASKED_FOR: Usd = Usd::dollars(3);

impl Till {
    /// Somebody brings a signature onto the chain; it is in the next block. Its hash.
    async fn bring(&self, header: &str) -> String {
        self.node.send_as(&self.node.payer, &transfer_call(header), DEAR_GAS).await
    }

    /// The scanner has looked at this transaction's block.
    async fn until_looked_at(&self, hash: &str) {
        self.node.mine(3).await;
        let block = self.node.block_of(hash).await;
        until("the block was looked at", async || {
            let read = |tx: &mut Tx| cursors::get(tx, Network::Polygon);
            let cursor = self.gateway.app.store.read(read).await.unwrap()?;
            (cursor.scanned >= block).then_some(())
        })
        .await;
    }

    /// A signature that buys nothing: it is never answered by an order, and is given up in the end.
    async fn comes_to_nothing(&self, signature: &str) -> Reply {
        let given_up = until("the signature is given up", async || {
            self.node.mine(1).await;
            let answer = self.pay(signature).await;
            assert_ne!(answer.status, 200, "{}", answer.text);
            (answer.status != 202).then_some(answer)
        })
        .await;
        assert_eq!(self.sold(), 0);
        given_up
    }

    fn sold(&self) -> usize {
        self.gateway.journalled("sold").len()
    }

    /// A signature that buys: its order.
    async fn buys(&self, signature: &str) -> Value {
        until("the signature has bought", async || {
            self.node.mine(1).await;
            let answer = self.pay(signature).await;
            (answer.status == 200).then(|| answer.json())
        })
        .await
    }

    /// A better signature still pays for the checkout.
    async fn can_still_be_paid(&self, offer: &Value) {
        let before = self.spent().await;
        self.buys(&Payer::new(1).pay(offer, 99)).await;
        assert_eq!(self.spent().await.minus(before).micros().to_string(), offer["amount"]);
        assert_eq!(self.sold(), 1);
    }

    async fn until_in_wallet(&self, token: &str, amount: Usd) {
        until("the money is in the wallet", async || {
            self.node.mine(1).await;
            (buying::balance(&self.gateway, token).await == amount).then_some(())
        })
        .await;
    }
}

/// The same nonce for another amount.
fn twin(wish: &Wish, value: u64) -> Wish {
    let mut twin = wish.clone();
    twin.permission.value = value;
    twin
}

at_till! {
    /// The payer never had the money: what moved is a micro-dollar, before the signature is shown.
    async fn a_tiny_transfer_under_the_same_nonce_buys_nothing(till) with { settings: HASTY } {
        let (offer, thief) = (till.offer().await, Payer::new(2));
        till.node.mint(&thief.address, Usd::from_micros(1)).await;
        let wish = thief.wish(&offer, 1);
        let tiny = till.bring(&thief.sign(&twin(&wish, 1))).await;
        till.node.mine(1).await;
        till.until_looked_at(&tiny).await;
        till.comes_to_nothing(&thief.sign(&wish)).await;
        till.until_in_wallet(&till.token, Usd::from_micros(1)).await;
        till.can_still_be_paid(&offer).await;
    }

    /// The signature is shown before the scanner has seen the tiny transfer: that is its claimer's money, and no more.
    async fn a_tiny_transfer_that_was_not_seen_yet_buys_nothing(till) with { settings: HASTY } {
        let (offer, thief) = (till.offer().await, Payer::new(2));
        till.node.mint(&thief.address, Usd::from_micros(1)).await;
        let wish = thief.wish(&offer, 1);
        till.bring(&thief.sign(&twin(&wish, 1))).await;
        till.node.mine(1).await;
        till.comes_to_nothing(&thief.sign(&wish)).await;
        till.can_still_be_paid(&offer).await;
    }

    /// One block is enough for the eSIM that a checkout waits for. Money in a wallet is never had so soon.
    async fn a_second_signature_for_a_checkout_waits_like_a_deposit(till) with { settings: HASTY } {
        let offer = till.offer().await;
        till.buys(&till.payer.pay(&offer, 1)).await;
        let again = till.bring(&till.payer.pay(&offer, 2)).await;
        till.node.mine(1).await;
        let block = till.node.block_of(&again).await;
        // When a later round has begun, the one before has booked all that counts.
        for depth in [CONFIRMATIONS - 2, CONFIRMATIONS - 1] {
            till.node.mine(block + depth - 1 - till.node.head().await).await;
            until("the scanner knows the newest block", async || {
                let cursor = till.gateway.app.store.read(|tx| cursors::get(tx, Network::Polygon)).await.unwrap()?;
                (cursor.head == block + depth - 1).then_some(())
            })
            .await;
        }
        assert_eq!(buying::balance(&till.gateway, &till.token).await, Usd::ZERO);
        let price = Usd::from_micros(offer["amount"].as_str().unwrap().parse().unwrap());
        till.until_in_wallet(&till.token, price).await;
        assert_eq!(till.sold(), 1);
    }

    /// The same through a tool.
    async fn a_tiny_transfer_buys_nothing_in_a_tool_either(till) with { settings: HASTY } {
        let wanted = json!({ "packageCode": PLAN });
        let (due, thief) = (demanded(till, BUY, &wanted).await, Payer::new(2));
        till.node.mint(&thief.address, Usd::from_micros(1)).await;
        let wish = thief.wish(&due["accepts"][0], 1);
        let tiny = till.bring(&thief.sign(&twin(&wish, 1))).await;
        till.node.mine(1).await;
        till.until_looked_at(&tiny).await;
        let meta = json!({ "x402/payment": decoded(&thief.sign(&wish)) });
        for _ in 0..10 {
            till.node.mine(1).await;
            let answer = told(&till.gateway, BUY, &paying(till, BUY, wanted.clone(), meta.clone()).await).await;
            assert_ne!(answer["order"]["status"], "FULFILLED", "{answer}");
        }
        assert_eq!(till.sold(), 0);
    }

    /// The twin overtakes ours in the pool and moves more than was asked for: all of it is its claimer's.
    async fn a_larger_transfer_under_the_same_nonce_is_no_payment_either(till) with { settings: HASTY } {
        let offer = till.offer().await;
        let wish = till.payer.wish(&offer, 1);
        let signature = till.payer.sign(&wish);
        till.pay(&signature).await.expect(202);
        till.until_pooled(1).await;
        let larger = wish.permission.value + 1_000_000;
        till.bring(&till.payer.sign(&twin(&wish, larger))).await;
        till.until_pooled(2).await;
        till.comes_to_nothing(&signature).await;
        till.until_in_wallet(&till.token, Usd::from_micros(larger as i64)).await;
        till.can_still_be_paid(&offer).await;
    }

    /// The twin pays into somebody's deposit address: that is his, and buys nothing.
    async fn what_the_twin_moves_to_another_address_of_ours_is_its_owners(till) with { settings: HASTY } {
        let deposit = json!({ "amountUsd": 25, "currency": "USDC", "network": "POLYGON" });
        let made = till.gateway.post("/api/b2b/v1/balance/deposit", deposit).await.expect(200);
        let theirs = Payer::new(3).wish(&json!({
            "network": "eip155:137", "asset": till.node.usdc, "amount": "1", "maxTimeoutSeconds": 300,
            "payTo": made["depositAddress"], "extra": { "name": "USD Coin", "version": "2" },
        }), 1).permission.to;
        let offer = till.offer().await;
        let wish = till.payer.wish(&offer, 1);
        let signature = till.payer.sign(&wish);
        till.pay(&signature).await.expect(202);
        till.until_pooled(1).await;
        let mut other = twin(&wish, NOT_ASKED_FOR.micros().unsigned_abs());
        other.permission.to = theirs;
        till.bring(&till.payer.sign(&other)).await;
        till.until_pooled(2).await;
        till.comes_to_nothing(&signature).await;
        until("it is in their wallet", async || {
            till.node.mine(1).await;
            (till.gateway.balance().await == "1003").then_some(())
        }).await;
        assert_eq!(buying::balance(&till.gateway, &till.token).await, Usd::ZERO);
        till.can_still_be_paid(&offer).await;
    }

    /// The twin was on the chain, and is not any more: the signature that was shown pays, in full.
    async fn a_twin_in_a_replaced_block_is_forgotten(till) with { settings: HASTY } {
        let offer = till.offer().await;
        let wish = till.payer.wish(&offer, 1);
        let tiny = till.bring(&till.payer.sign(&twin(&wish, 1))).await;
        till.node.mine(1).await;
        till.until_looked_at(&tiny).await;
        let depth = till.node.head().await - till.node.block_of(&tiny).await + 1;
        till.node.reorg(depth, &[]).await;
        till.buys(&till.payer.sign(&wish)).await;
        assert_eq!(till.spent().await.micros().to_string(), offer["amount"]);
    }

    /// A relayer brings the victim's signature onto the chain, where the thief reads it and shows it for her own
    /// checkouts. The victim gets what he paid for.
    async fn a_signature_seen_on_the_chain_cannot_be_stolen(till) with { settings: HASTY } {
        let challenge = till.challenge().await;
        let (offer, thief) = (&challenge["accepts"][0], sign_in(&till.gateway, "eve@example.com", "agent").await);
        let mut offers = vec![offer.clone()];
        for network in ["tron", "polygon", "arbitrum", "tron", "polygon"] {
            let body = json!({ "packageCode": PLAN, "preferredNetwork": network });
            offers.push(till.ask(&thief, body).await.expect(402)["accepts"][0].clone());
        }
        let asked: BTreeSet<String> =
            offers.iter().map(|offer| format!("{} to {}", offer["amount"], offer["payTo"])).collect();
        assert_eq!(asked.len(), offers.len(), "what is signed for one checkout is asked for by no other");

        let wish = till.payer.wish(offer, 1);
        let signature = till.payer.sign(&wish);
        let hash = till.bring(&signature).await;
        till.node.mine(1).await;
        let steal = async |seen: &str| {
            for theirs in &offers[1..] {
                let stolen = till.payer.sign(&Wish { accepted: theirs.clone(), ..wish.clone() });
                let answer = till.post(&thief, json!({ "packageCode": PLAN }), Some(&stolen)).await;
                assert!(answer.status == 402 || answer.status == 409, "{seen}: {} {}", answer.status, answer.text);
            }
        };
        steal("in a block").await;
        till.until_looked_at(&hash).await;
        steal("seen").await;
        assert_eq!(till.buys(&signature).await["invoiceId"], challenge["invoiceId"]);
        steal("delivered").await;
        assert_eq!((till.sold(), buying::balance(&till.gateway, &thief).await), (1, Usd::ZERO));
    }

    /// Somebody brings it onto the chain and shows it to nobody: the checkout that asked for this amount is paid.
    async fn a_payment_that_nobody_shows_pays_for_what_asked_for_it(till) with { settings: HASTY } {
        let challenge = till.challenge().await;
        let signature = till.payer.pay(&challenge["accepts"][0], 1);
        till.bring(&signature).await;
        till.until_completed(&challenge["invoiceId"]).await;
        assert_eq!(till.buys(&signature).await["invoiceId"], challenge["invoiceId"]);
        assert_eq!(till.sold(), 1);
    }
}
