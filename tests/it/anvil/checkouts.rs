//! Checkouts that are paid by an ordinary transfer on a real node, through the door, with everything running behind it:
//! how deep is deep enough, reorganisations, and what only nearly fits.

use serde_json::{Value, json};
use simgate::domain::money::Usd;
use simgate::domain::transfer::Transfer;
use simgate::ops::transfers;

use super::desk::{CONFIRMATIONS, LAG};
use super::till::{PLAN, Setup, Till, at_till};
use crate::support::harness::until;
use crate::support::logins::with_token;

const CENT: Usd = Usd::from_micros(10_000);

/// What a 402 asks for.
struct Due {
    invoice: Value,
    address: String,
    amount: Usd,
}

impl Till {
    async fn checkout(&self) -> Due {
        let asked = self.ask(&self.token, json!({ "packageCode": PLAN })).await.expect(402);
        let payment = &asked["payment"];
        let units = payment["expectedAmountUnits"].as_str().unwrap();
        Due {
            invoice: asked["invoiceId"].clone(),
            address: payment["receivingAddress"].as_str().unwrap().to_string(),
            amount: Usd::from_micros(units.parse().unwrap()),
        }
    }

    /// Pays to where a checkout asks for it, into the next block.
    async fn transfer(&self, due: &Due, amount: Usd) -> String {
        self.node.pay(&self.node.usdt, &due.address, amount).await
    }

    /// Waits until a checkout shows so many confirmations. It must not count as paid.
    async fn until_seen(&self, due: &Due, confirmations: i64) {
        until("the payment is seen", async || {
            let order = self.poll(&due.invoice).await;
            assert_eq!((&order["status"], &order["orderId"]), (&json!("PENDING_PAYMENT"), &Value::Null));
            (order["confirmations"] == confirmations).then_some(())
        })
        .await;
    }

    /// Waits, while there are blocks, until so many transfers are kept for the operator.
    async fn until_unmatched(&self, count: usize) -> Vec<Transfer> {
        until("what fits nothing is kept", async || {
            self.node.mine(1).await;
            let kept = transfers::unmatched(&self.gateway.app).await.unwrap();
            (kept.len() == count).then(|| kept.into_iter().map(|kept| kept.transfer).collect())
        })
        .await
    }

    async fn wallet(&self) -> Usd {
        let wallet = with_token(&self.gateway, &self.token, "GET", "/api/agentic/wallet").await.expect(200);
        Usd::parse(&wallet["balanceUsd"].to_string()).unwrap()
    }
}

at_till! {
    async fn paid_when_it_is_deep_enough_and_not_before(till) {
        let due = till.checkout().await;
        till.transfer(&due, due.amount).await;
        till.node.mine(LAG).await;
        for confirmations in 1 + LAG..CONFIRMATIONS {
            till.node.mine(1).await;
            till.until_seen(&due, confirmations).await;
        }
        till.until_completed(&due.invoice).await;
    }

    /// The payment's block is replaced by one without it; later another block holds it.
    async fn a_payment_that_moves_counts_once(till) {
        let due = till.checkout().await;
        let hash = till.transfer(&due, due.amount).await;
        till.node.mine(1 + LAG).await;
        till.until_seen(&due, 1 + LAG).await;
        let (raw, before) = (till.node.raw(&hash).await, till.node.block_of(&hash).await);
        till.node.reorg(1 + LAG, &[]).await;
        till.until_seen(&due, 0).await;
        till.node.send_again(&raw).await;
        let order = till.until_completed(&due.invoice).await;
        assert_eq!(order["txHash"], hash.as_str());
        assert_ne!(till.node.block_of(&hash).await, before);
        assert_eq!(till.wallet().await, Usd::ZERO, "nothing is left over");
    }

    /// The payer replaces the payment by a smaller one, which is nobody's.
    async fn a_payment_replaced_by_another_amount_is_kept(till) {
        let due = till.checkout().await;
        let hash = till.transfer(&due, due.amount).await;
        till.node.mine(1 + LAG).await;
        till.until_seen(&due, 1 + LAG).await;
        let smaller = due.amount.minus(Usd::from_micros(500_000));
        let other = till.node.instead_of(&hash, &till.node.usdt, &due.address, smaller).await;
        till.node.reorg(1 + LAG, &[(other, 0)]).await;
        let kept = till.until_unmatched(1).await;
        assert_eq!(kept[0].amount, smaller);
        till.until_seen(&due, 0).await;
    }

    async fn two_checkouts_paid_in_one_transaction(till) {
        let (first, second) = (till.checkout().await, till.checkout().await);
        let payments = [&first, &second].map(|due| (&*due.address, due.amount));
        let hash = till.node.pay_two(&till.node.usdt, payments[0], payments[1]).await;
        for due in [&first, &second] {
            assert_eq!(till.until_completed(&due.invoice).await["txHash"], hash.as_str());
        }
    }

    /// Too little, too much, the other token: kept. A worthless token, nothing at all: no payment. Twice: the wallet.
    async fn only_what_fits_pays(till) {
        let due = till.checkout().await;
        let fake = till.node.deploy("USDT", 6).await;
        till.node.pay(&fake, &due.address, due.amount).await;
        till.node.pretend(&till.node.usdt, &due.address).await;
        // Nearer ones are taken for rounded.
        let (less, more) = (due.amount.minus(CENT.plus(CENT)), due.amount.plus(CENT).plus(CENT).plus(CENT));
        till.transfer(&due, less).await;
        till.transfer(&due, more).await;
        till.node.mint(&till.node.payer, due.amount).await;
        till.node.pay(&till.node.usdc, &due.address, due.amount).await;
        let mut kept: Vec<Usd> = till.until_unmatched(3).await.iter().map(|transfer| transfer.amount).collect();
        kept.sort();
        assert_eq!(kept, [less, due.amount, more]);
        till.until_seen(&due, 0).await;

        till.transfer(&due, due.amount).await;
        till.until_completed(&due.invoice).await;
        assert_eq!(till.wallet().await, Usd::ZERO);
        till.transfer(&due, due.amount).await;
        until("what was paid twice is in the wallet", async || {
            till.node.mine(1).await;
            (till.wallet().await == due.amount).then_some(())
        })
        .await;
    }
}
