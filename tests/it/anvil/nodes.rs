//! Nodes that fail, lag, limit, contradict each other or are the wrong ones: money waits, and none is lost.

use simgate::domain::invoice::InvoiceStatus::{Confirmed, Confirming, Pending};
use simgate::domain::money::Usd;
use simgate::domain::network::Network;
use simgate::domain::refusal::Refusal;
use simgate::domain::transfer::TransferState::{Credited, Reversed, Seen};
use simgate::store::cursors;

use super::desk::{CONFIRMATIONS, Desk, LAG, Setup};
use super::node::Kind;
use super::proxy::Mood;
use crate::support::harness::Db;

before_nodes! {
    async fn down_and_back(desk) with { proxies: 1 } {
        let invoice = desk.invoice(25).await;
        desk.pay(&invoice).await;
        desk.mine(LAG + 1).await;
        assert_eq!(desk.standing(&invoice).await, (Confirming, Usd::ZERO));
        desk.proxies[0].set(Mood::Down);
        desk.node.mine(CONFIRMATIONS).await;
        for _ in 0..5 {
            assert!(desk.try_round().await.is_err());
        }
        assert_eq!(desk.verify(&invoice.id, None).await.err(), Some(Refusal::ChainUnavailable));
        assert_eq!(desk.standing(&invoice).await, (Confirming, Usd::ZERO), "kept while nobody knows better");
        desk.proxies[0].set(Mood::Honest);
        desk.round_after_trouble().await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
    }

    /// "No logs" from a node that has no such block is not an answer.
    async fn behind_a_balancer_that_knows_the_head(desk) with { proxies: 1 } {
        let invoice = desk.invoice(25).await;
        desk.mine(1).await;
        let last = desk.node.head().await;
        desk.proxies[0].set(Mood::Behind(last));
        let hash = desk.pay(&invoice).await;
        desk.node.mine(CONFIRMATIONS + LAG).await;
        for _ in 0..5 {
            desk.node.mine(1).await;
            assert!(desk.try_round().await.is_err());
            assert!(desk.cursor().await.scanned <= last, "nothing was seen of what the node has not got");
        }
        assert_eq!(desk.transfers(&hash).await, []);
        desk.proxies[0].set(Mood::Honest);
        desk.round_after_trouble().await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
    }

    /// Others make up for one that lags; of two, both are needed.
    async fn behind_with_others_that_are_not(desk) with { proxies: 3 } {
        let invoice = desk.invoice(25).await;
        desk.mine(1).await;
        desk.proxies[0].set(Mood::Behind(desk.node.head().await));
        desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
        desk.proxies[1].set(Mood::Behind(desk.node.head().await));
        let second = desk.invoice(30).await;
        desk.pay(&second).await;
        desk.node.mine(2 * CONFIRMATIONS).await;
        for _ in 0..5 {
            assert!(desk.try_round().await.is_err(), "one node is not enough");
        }
        assert_eq!(desk.standing(&second).await.1, Usd::ZERO);
        desk.proxies[1].set(Mood::Honest);
        desk.until_credited(&second).await;
    }

    /// Blocks are looked at again and again, so a late index loses nothing.
    async fn logs_that_come_late(desk) with { proxies: 1 } {
        let invoice = desk.invoice(25).await;
        desk.proxies[0].set(Mood::NoLogs);
        let hash = desk.pay(&invoice).await;
        desk.mine(4 * CONFIRMATIONS).await;
        assert!(desk.cursor().await.scanned > desk.node.block_of(&hash).await);
        assert_eq!(desk.standing(&invoice).await, (Pending, Usd::ZERO));
        desk.proxies[0].set(Mood::Honest);
        desk.mine(1).await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
    }

    /// A credited transfer whose logs are gone for a moment is not taken back while its receipt is there.
    async fn logs_that_go_missing(desk) with { proxies: 1 } {
        let invoice = desk.invoice(25).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS).await;
        desk.proxies[0].set(Mood::NoLogs);
        desk.mine(CONFIRMATIONS).await;
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(25)));
    }

    async fn a_node_that_limits_ranges(desk) with { proxies: 1 } {
        let invoice = desk.invoice(25).await;
        desk.proxies[0].set(Mood::Range(7));
        desk.pay(&invoice).await;
        desk.node.mine(100).await;
        desk.proxies[0].ranges();
        desk.round().await;
        assert_eq!(desk.cursor().await.scanned, desk.node.head().await - LAG);
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
        let ranges = desk.proxies[0].ranges();
        let allowed = ranges.iter().position(|blocks| *blocks <= 7).unwrap();
        assert!(ranges[allowed..].iter().all(|blocks| *blocks <= 7), "the limit is learnt: {ranges:?}");
        desk.mine(1).await;
        // After many good answers it is tried whether more is allowed by now.
        assert!(desk.proxies[0].ranges().iter().filter(|blocks| **blocks > 7).count() <= 1, "and kept in mind");
    }

    /// Two nodes, of which one never heard of the payment: nothing is credited until both agree.
    async fn nodes_that_disagree_whether_it_happened(desk) with { proxies: 2 } {
        let invoice = desk.invoice(25).await;
        let hash = desk.pay(&invoice).await;
        for doubter in [1, 0] {
            desk.proxies[doubter].set(Mood::Without(hash.clone()));
            desk.mine(CONFIRMATIONS).await;
            assert_eq!(desk.balance().await, Usd::ZERO);
            desk.proxies[doubter].set(Mood::Honest);
        }
        desk.mine(1).await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
        assert_eq!(desk.states(&hash).await, [Credited]);
    }

    async fn nodes_that_disagree_about_the_amount(desk) with { proxies: 2 } {
        let invoice = desk.invoice(25).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(LAG + 1).await;
        assert_eq!(desk.states(&hash).await, [Seen]);
        desk.proxies[1].set(Mood::OtherAmounts);
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.standing(&invoice).await, (Confirming, Usd::ZERO));
        desk.proxies[1].set(Mood::Honest);
        desk.mine(1).await;
        assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
    }

    /// One node's word takes nothing back; both together do, and both together bring it back.
    async fn taking_back_needs_both(desk) with { proxies: 2 } {
        let invoice = desk.invoice(25).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.balance().await, Usd::dollars(25));
        for doubter in [0, 1] {
            desk.proxies[doubter].set(Mood::Without(hash.clone()));
            desk.mine(3).await;
            assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(25)));
            desk.proxies[doubter].set(Mood::Honest);
        }
        desk.proxies.iter().for_each(|proxy| proxy.set(Mood::Without(hash.clone())));
        desk.mine(1).await;
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Reversed], Usd::ZERO));
        desk.proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
        desk.mine(1).await;
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(25)));
    }

    /// One of two nodes is down: the payment is credited once the second can be asked.
    async fn one_of_two_is_down(desk) with { proxies: 2 } {
        let invoice = desk.invoice(25).await;
        desk.proxies[0].set(Mood::Down);
        desk.pay(&invoice).await;
        desk.node.mine(2 * CONFIRMATIONS).await;
        for _ in 0..5 {
            assert!(desk.try_round().await.is_err());
        }
        assert_eq!(desk.standing(&invoice).await, (Pending, Usd::ZERO));
        desk.proxies[0].set(Mood::Honest);
        desk.until_credited(&invoice).await;
        assert_eq!(desk.balance().await, Usd::dollars(25));
    }
}

/// A node that must not be followed: says why, and nothing of its chain is written down.
async fn is_refused(desk: &Desk, why: &str) {
    let invoice = desk.invoice(25).await;
    desk.pay(&invoice).await;
    desk.node.mine(2 * CONFIRMATIONS).await;
    let trouble = desk.try_round().await.unwrap_err();
    assert!(trouble.contains(why), "{trouble}");
    assert_eq!(desk.app.store.read(|tx| cursors::get(tx, Network::Polygon)).await.unwrap(), None);
    assert_eq!(desk.standing(&invoice).await, (Pending, Usd::ZERO));
}

#[test]
#[ignore = "needs anvil"]
fn the_wrong_chain_is_refused() {
    let setup = Setup { kind: Kind { chain_id: 8_453, ..Kind::default() }, ..Setup::default() };
    Desk::run(Db::Sqlite, setup, async |desk| {
        is_refused(desk, "POLYGON: node 1 is on the wrong chain: 8453 instead of 137").await;
        let invoice = desk.invoice(10).await;
        assert_eq!(desk.verify(&invoice.id, None).await.err(), Some(Refusal::ChainUnavailable));
        desk.books_apart_from_chain();
    });
}

#[test]
#[ignore = "needs anvil"]
fn a_token_with_other_decimals_is_refused() {
    let setup = Setup { kind: Kind { decimals: 18, ..Kind::default() }, ..Setup::default() };
    Desk::run(Db::Sqlite, setup, async |desk| {
        is_refused(desk, "node 1 shows no USDC there: decimals() is not 6").await;
        desk.books_apart_from_chain();
    });
}

/// Nor can it be had by asking, before the scanner has looked at the node or after.
#[test]
#[ignore = "needs anvil"]
fn asking_is_no_way_around_the_check() {
    let setup = Setup { kind: Kind { decimals: 18, ..Kind::default() }, ..Setup::default() };
    Desk::run(Db::Sqlite, setup, async |desk| {
        let invoice = desk.invoice(10).await;
        desk.pay(&invoice).await;
        desk.node.mine(2 * CONFIRMATIONS).await;
        let verified = desk.verify(&invoice.id, None).await;
        assert_eq!(desk.balance().await, Usd::ZERO);
        assert_eq!(verified.err(), Some(Refusal::ChainUnavailable));
        desk.books_apart_from_chain();
    });
}

/// The main net's contract is not on this chain.
#[test]
#[ignore = "needs anvil"]
fn a_token_that_is_not_there_is_refused() {
    let settings = &[("polygon_usdt", "0xc2132D05D31c914a87C6611C10748AEb04B58e8F")];
    Desk::run(Db::Sqlite, Setup { settings, ..Setup::default() }, async |desk| {
        is_refused(desk, "node 1 shows no USDT there").await;
        desk.books_apart_from_chain();
    });
}
