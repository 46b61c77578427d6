//! When a payment counts: after so many confirmations and never before, once, and only while it is on the chain.

use simgate::domain::invoice::InvoiceException;
use simgate::domain::invoice::InvoiceStatus::{Confirmed, Confirming, Expired, Pending};
use simgate::domain::money::Usd;
use simgate::domain::network::Network;
use simgate::domain::transfer::TransferState::{Credited, Orphaned, Reversed, Seen};

use super::desk::{CONFIRMATIONS, Desk, LAG, Setup, by_hand};
use super::node::{Kind, Node};
use crate::support::harness::Db;

const HOUR: i64 = 3_600;

by_hand! {
    /// The scanner credits at exactly the block that makes the number full.
    async fn so_many_confirmations_and_never_before(desk) {
        let invoice = desk.invoice(25).await;
        let hash = desk.pay(&invoice).await;
        assert_eq!(desk.standing(&invoice).await, (Pending, Usd::ZERO), "what is in no block is nowhere");
        for confirmations in 1..CONFIRMATIONS {
            desk.mine(1).await;
            let status = if confirmations > LAG { Confirming } else { Pending };
            assert_eq!(desk.standing(&invoice).await, (status, Usd::ZERO), "{confirmations} confirmations");
            assert_eq!(desk.balance().await, Usd::ZERO);
            if confirmations > LAG {
                assert_eq!(desk.deposit(&invoice).await.confirmations(), confirmations);
            }
        }
        desk.mine(1).await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
        let entries = desk.entries().await;
        desk.mine(10).await;
        assert_eq!((desk.balance().await, desk.entries().await), (Usd::dollars(25), entries), "credited once");
        assert_eq!(desk.states(&hash).await, [Credited]);
        assert_eq!(desk.deposit(&invoice).await.confirmations(), CONFIRMATIONS + 10);
    }

    /// A partner who asks sees the payment sooner, and is credited no sooner.
    async fn asking_hastens_nothing(desk) {
        let (by_hash, by_address) = (desk.invoice(30).await, desk.invoice(40).await);
        let hash = desk.pay(&by_hash).await;
        desk.pay(&by_address).await;
        for confirmations in 1..=CONFIRMATIONS {
            desk.node.mine(1).await;
            // Who asks again within two seconds shares the answer.
            desk.app.clock.advance(2_000);
            let first = desk.verify(&by_hash.id, Some(&hash)).await.ok().unwrap();
            let second = desk.verify(&by_address.id, None).await.ok().unwrap();
            let (status, sums) = match confirmations {
                CONFIRMATIONS => (Confirmed, [30, 40]),
                _ => (Confirming, [0, 0]),
            };
            for (verified, sum) in [first, second].into_iter().zip(sums) {
                assert_eq!(verified.deposit.invoice.status, status, "{confirmations} confirmations");
                assert_eq!(verified.deposit.paid.credited, Usd::dollars(sum));
            }
        }
        let entries = desk.entries().await;
        desk.mine(3).await;
        let again = desk.verify(&by_hash.id, Some(&hash)).await.ok().unwrap();
        assert_eq!((again.deposit.paid.credited, again.balance), (Usd::dollars(30), Usd::dollars(70)));
        assert_eq!(desk.entries().await, entries, "credited once each");
    }

    async fn a_reorg_takes_it_away(desk) {
        let invoice = desk.invoice(25).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS - 1).await;
        assert_eq!(desk.standing(&invoice).await, (Confirming, Usd::ZERO));
        desk.node.reorg(CONFIRMATIONS - 1, &[]).await;
        desk.round().await;
        assert_eq!(desk.standing(&invoice).await, (Pending, Usd::ZERO));
        assert_eq!(desk.states(&hash).await, [Orphaned]);
        assert_eq!(desk.deposit(&invoice).await.paid.received, Usd::ZERO);
        desk.mine(2 * CONFIRMATIONS).await;
        assert_eq!(desk.standing(&invoice).await, (Pending, Usd::ZERO));
        assert_eq!(desk.balance().await, Usd::ZERO);
    }

    /// Another block, another height, another place among the block's logs: the same transfer, counted anew.
    async fn mined_again_elsewhere_it_counts_once(desk) {
        let invoice = desk.invoice(25).await;
        let other = desk.node.pay(&desk.node.usdc, &desk.node.payer, Usd::dollars(1)).await;
        desk.mine(1).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS - 1).await;
        assert_eq!(desk.states(&hash).await, [Seen]);
        let (before, index) = (desk.node.block_of(&hash).await, desk.node.receipt(&hash).await);
        let again = [(desk.node.raw(&other).await, 3), (desk.node.raw(&hash).await, 3)];
        desk.node.reorg(CONFIRMATIONS, &again).await;
        let after = desk.node.block_of(&hash).await;
        assert_eq!(after, before + 2);
        assert_ne!(index["logs"][0]["logIndex"], desk.node.receipt(&hash).await["logs"][0]["logIndex"]);
        desk.round().await;
        for confirmations in desk.node.head().await - after + 1..CONFIRMATIONS {
            assert_eq!(desk.standing(&invoice).await, (Confirming, Usd::ZERO), "{confirmations}");
            assert_eq!(desk.transfers(&hash).await[0].block.as_ref().unwrap().number, after);
            desk.mine(1).await;
        }
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
        desk.mine(CONFIRMATIONS).await;
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(25)));
    }

    /// Gone for a while, and then mined after all.
    async fn what_comes_back_counts_once(desk) {
        let invoice = desk.invoice(25).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS - 1).await;
        let raw = desk.node.raw(&hash).await;
        desk.node.reorg(CONFIRMATIONS - 1, &[]).await;
        desk.mine(3).await;
        assert_eq!(desk.states(&hash).await, [Orphaned]);
        desk.node.send_again(&raw).await;
        desk.mine(CONFIRMATIONS - 1).await;
        assert_eq!(desk.standing(&invoice).await, (Confirming, Usd::ZERO));
        desk.mine(1).await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
        assert_eq!(desk.states(&hash).await, [Credited]);
    }

    async fn a_double_spend_gives_nothing(desk) {
        let invoice = desk.invoice(25).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS - 1).await;
        let payer = desk.node.payer.clone();
        let stolen = desk.node.instead_of(&hash, &desk.node.usdc, &payer, invoice.amount).await;
        desk.node.reorg(CONFIRMATIONS - 1, &[(stolen, 0)]).await;
        assert!(desk.node.receipt(&hash).await.is_null());
        desk.round().await;
        assert_eq!(desk.standing(&invoice).await, (Pending, Usd::ZERO));
        desk.mine(2 * CONFIRMATIONS).await;
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Orphaned], Usd::ZERO));
    }

    /// A replacement that pays us less is another transfer, and the first one still gives nothing.
    async fn a_replaced_payment_counts_as_what_it_is(desk) {
        let invoice = desk.invoice(25).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS - 1).await;
        let less = desk.node.instead_of(&hash, &desk.node.usdc, &invoice.address, Usd::dollars(11)).await;
        desk.node.reorg(CONFIRMATIONS - 1, &[(less, 0)]).await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(11)));
        let deposit = desk.deposit(&invoice).await;
        assert_eq!(deposit.invoice.exception(&deposit.paid, Usd::dollars(1)), Some(InvoiceException::Under));
        assert_eq!(desk.states(&hash).await, [Orphaned]);
    }

    /// `finalized` is eight blocks below the head here.
    async fn large_amounts_wait_until_they_are_final(desk) with {
        kind: Kind { slots: 4, ..Kind::default() },
    } {
        large_amounts_wait(desk, 9).await;
    }

    /// `safe` is eight blocks below the head here.
    async fn large_amounts_wait_until_they_are_safe(desk) with {
        kind: Kind { slots: 8, ..Kind::default() },
        settings: &[("polygon_final_by", "safe")],
    } {
        large_amounts_wait(desk, 9).await;
    }

    /// The chain broke its word: what was credited is taken back, as far as it is there, and comes back once.
    async fn what_vanishes_after_it_was_final_is_reversed(desk) {
        let invoice = desk.invoice(100).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS + 10).await;
        assert_eq!(desk.balance().await, Usd::dollars(100));
        desk.spend(70).await;
        let (raw, block) = (desk.node.raw(&hash).await, desk.node.block_of(&hash).await);
        let tip = desk.app.chains[&Network::Polygon].tip().await.unwrap();
        assert!(tip.finalized > block, "the chain calls it final");
        desk.node.reorg(desk.node.head().await - block + 1, &[]).await;
        desk.round().await;
        assert_eq!((desk.states(&hash).await, desk.standing(&invoice).await), (vec![Reversed], (Pending, Usd::ZERO)));
        let wallet = desk.wallet().await;
        assert_eq!((wallet.balance, wallet.suspended), (Usd::ZERO, true));
        assert_eq!(desk.book("receivable").await, Usd::dollars(70));
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.book("receivable").await, Usd::dollars(70), "taken back once");

        desk.node.send_again(&raw).await;
        desk.mine(CONFIRMATIONS - 1).await;
        assert_eq!(desk.standing(&invoice).await, (Confirming, Usd::ZERO));
        assert_eq!(desk.balance().await, Usd::ZERO);
        desk.mine(1).await;
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(30)));
        assert_eq!(desk.book("receivable").await, Usd::ZERO);
        let entries = desk.entries().await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!((desk.entries().await, desk.balance().await), (entries, Usd::dollars(30)), "credited again once");
        assert!(!desk.wallet().await.suspended, "nothing is owed any more");
    }

    /// What was taken back may be mined again as something else: the books follow the chain.
    async fn what_was_reversed_may_come_back_as_another_amount(desk) {
        let invoice = desk.invoice(25).await;
        let hash = desk.node.pay_by_height(&desk.node.usdc, &invoice.address).await;
        desk.mine(CONFIRMATIONS + 4).await;
        let (raw, first) = (desk.node.raw(&hash).await, desk.node.block_of(&hash).await);
        assert_eq!(desk.balance().await, Usd::dollars(first));
        desk.spend(first - 1).await;

        desk.node.reorg(desk.node.head().await - first + 1, &[(raw, 2)]).await;
        desk.round().await;
        assert_eq!(desk.states(&hash).await, [Reversed]);
        assert_eq!(desk.book("receivable").await, Usd::dollars(first - 1));
        desk.mine(CONFIRMATIONS).await;
        let second = desk.node.block_of(&hash).await;
        assert_eq!(second, first + 2);
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(3)));
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(second)));
        assert_eq!(desk.book("receivable").await, Usd::ZERO);
        let entries = desk.entries().await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!((desk.entries().await, desk.balance().await), (entries, Usd::dollars(3)), "once");
    }

    /// Entries name their owner and their token: when a contract pays somebody else or in another token the next time,
    /// the books do not follow, and a person has to.
    async fn what_was_reversed_does_not_come_back_as_somebody_elses(desk) {
        let (first, second) = (desk.invoice(25).await, desk.invoice(25).await);
        let (usdc, usdt) = (desk.node.usdc.clone(), desk.node.usdt.clone());
        for other in [(&*usdc, &*second.address), (&*usdt, &*first.address)] {
            if desk.node.head().await % 2 == 0 {
                desk.mine(1).await;
            }
            let hash = desk.node.pay_in_turn(&usdc, &first.address, other, Usd::dollars(25)).await;
            desk.mine(CONFIRMATIONS).await;
            assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(25)));
            let (raw, block, entries) = (desk.node.raw(&hash).await, desk.node.block_of(&hash).await, desk.entries().await);

            desk.node.reorg(desk.node.head().await - block + 1, &[(raw, 1)]).await;
            assert_eq!(desk.node.block_of(&hash).await, block + 1);
            desk.mine(2 * CONFIRMATIONS).await;
            assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Reversed], Usd::ZERO));
            assert_eq!(desk.entries().await, entries + 1, "taken back, and nothing since");
            for invoice in [&first, &second] {
                assert_eq!(desk.standing(invoice).await, (Pending, Usd::ZERO));
            }
        }
        for (currency, token, address) in [("USDC", &usdc, &second.address), ("USDT", &usdt, &first.address)] {
            assert_eq!(desk.node.balance_of(token, address).await, Usd::dollars(25));
            assert_eq!(desk.book(&format!("cash:POLYGON:{currency}")).await, Usd::ZERO);
        }
        desk.books_apart_from_chain();
    }

    /// Nobody searches for the address any more when its payment is mined after all: the transaction is asked for.
    async fn what_vanished_is_asked_for_again(desk) {
        const DAY_MS: i64 = 24 * 3_600_000;
        let invoice = desk.invoice(25).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS - 1).await;
        desk.app.clock.advance(6 * DAY_MS);
        let raw = desk.node.raw(&hash).await;
        desk.node.reorg(CONFIRMATIONS - 1, &[]).await;
        desk.round().await;
        assert_eq!(desk.states(&hash).await, [Orphaned]);

        desk.app.clock.advance(2 * DAY_MS);
        desk.node.pass_time(8 * DAY_MS / 1_000).await;
        desk.mine(CONFIRMATIONS).await;
        desk.app.clock.advance(DAY_MS / 12);
        desk.round().await;
        desk.node.send_again(&raw).await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.states(&hash).await, [Orphaned], "not among the blocks that are searched");
        desk.app.clock.advance(60_000);
        desk.round().await;
        desk.round().await;
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(25)));
    }

    /// A node showed blocks that never were. One that is a little behind is waited for; this far it is the truth.
    async fn blocks_that_never_were_are_forgotten(desk) {
        let invoice = desk.invoice(25).await;
        desk.mine(1).await;
        let (truth, head) = (desk.node.snapshot().await, desk.node.head().await);
        desk.node.mine(20).await;
        desk.round().await;
        desk.node.go_back(&truth).await;
        assert!(desk.try_round().await.unwrap_err().contains("behind"));
        let truth = desk.node.snapshot().await;
        desk.node.mine(100).await;
        desk.round_after_trouble().await;
        assert!(desk.cursor().await.scanned > head + 64);
        desk.node.go_back(&truth).await;
        desk.round_after_trouble().await;
        assert!(desk.cursor().await.scanned <= head);
        desk.pay(&invoice).await;
        desk.until_credited(&invoice).await;
        assert_eq!(desk.balance().await, Usd::dollars(25));
    }

    /// Replaced by a chain that holds it somewhere else: nothing happens to the money.
    async fn a_credited_transfer_may_move(desk) {
        let invoice = desk.invoice(100).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS + 2).await;
        let (raw, entries) = (desk.node.raw(&hash).await, desk.entries().await);
        desk.node.reorg(CONFIRMATIONS + 2, &[(raw, 4)]).await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(100)));
        let now = desk.node.block_of(&hash).await;
        assert_eq!(desk.transfers(&hash).await[0].block.as_ref().unwrap().number, now);
        assert_eq!(desk.entries().await, entries);
        assert!(!desk.wallet().await.suspended);
    }

    /// The gateway was down while money came in time, too late, and not at all: it looks first and expires then.
    async fn paid_while_the_gateway_was_down(desk) {
        let (in_time, late, never) = (desk.invoice(20).await, desk.invoice(30).await, desk.invoice(40).await);
        let payments = [in_time.clone(), late.clone()];
        let downtime = async |node: &Node| {
            let [in_time, late] = &payments;
            node.pay(&node.usdc, &in_time.address, in_time.amount).await;
            node.mine(1).await;
            node.pass_time(2 * HOUR).await;
            node.pay(&node.usdc, &late.address, late.amount).await;
            node.mine(CONFIRMATIONS + LAG).await;
        };
        desk.restart_after(downtime, 3 * HOUR * 1_000).await;
        assert_eq!(desk.standing(&in_time).await, (Pending, Usd::ZERO), "not expired before the chain was seen");
        desk.round().await;
        let dust = Usd::dollars(1);
        for (invoice, status, exception) in [
            (in_time, Confirmed, None),
            (late, Confirmed, Some(InvoiceException::Late)),
            (never, Expired, None),
        ] {
            let deposit = desk.deposit(&invoice).await;
            assert_eq!(deposit.invoice.status, status, "{}", invoice.amount);
            assert_eq!(deposit.invoice.exception(&deposit.paid, dust), exception, "{}", invoice.amount);
            assert_eq!(deposit.invoice.expired_at.is_some(), status == Expired, "{}", invoice.amount);
        }
        assert_eq!(desk.balance().await, Usd::dollars(50));
    }
}

/// The address is used again by the next invoice, and a bot pays in the second in which it was opened.
#[test]
#[ignore = "needs anvil"]
fn paid_in_the_second_of_its_invoice() {
    let setup = Setup { kind: Kind { seconds_ahead: 0, ..Kind::default() }, ..Setup::default() };
    Desk::run(Db::Sqlite, setup, async |desk| {
        let first = desk.invoice(20).await;
        desk.pay(&first).await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.standing(&first).await, (Confirmed, Usd::dollars(20)));
        let second = desk.invoice(30).await;
        assert_eq!(second.address, first.address);
        desk.pay(&second).await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.standing(&second).await, (Confirmed, Usd::dollars(30)));
    });
}

/// An amount from the limit on waits for the chain's own word, a smaller one does not.
async fn large_amounts_wait(desk: &Desk, confirmations_when_final: i64) {
    let (small, large) = (desk.invoice(499).await, desk.invoice(500).await);
    let (_, hash) = (desk.pay(&small).await, desk.pay(&large).await);
    for confirmations in 1..=confirmations_when_final {
        assert_eq!(desk.standing(&large).await.1, Usd::ZERO, "before {confirmations} confirmations");
        desk.mine(1).await;
        let credited = if confirmations < CONFIRMATIONS { Usd::ZERO } else { small.amount };
        assert_eq!(desk.standing(&small).await.1, credited, "{confirmations} confirmations");
    }
    assert_eq!(desk.standing(&large).await, (Confirmed, Usd::dollars(500)));
    assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(999)));
}
