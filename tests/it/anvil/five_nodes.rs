//! Five nodes of which two are bad at any time, in turns and each time in another way, while payments come in, blocks are
//! replaced and the gateway is restarted. Every payment is credited once and none of them early. SIMGATE_TEST_TURNS says
//! how many turns there are, SIMGATE_TEST_SEED repeats a run.

use simgate::domain::invoice::Invoice;
use simgate::domain::money::Usd;
use simgate::domain::transfer::TransferState;
use simgate::ops::ledger;

use super::desk::{CONFIRMATIONS, Desk, LAG, Setup};
use super::node::quantity;
use super::proxy::Mood;
use crate::support::dice::Dice;
use crate::support::environment::number;
use crate::support::harness::until;

const NODES: usize = 5;
const TURNS: u64 = 60;
const SEED: u64 = 11;
/// Nodes that were bad may rest for a while when the gateway needs them.
const ROUNDS: usize = 4;
/// Deeper than any block that is replaced.
const SAFE: i64 = 50;

/// A payment, and what it paid.
struct Paid {
    hash: String,
    amount: Usd,
}

/// A way of being bad, about a chain that is so high and on which this was paid last; only the patient wait for silence.
fn mood(dice: &mut Dice, head: i64, last: Option<&Paid>, patient: bool) -> Mood {
    let without = last.map_or(Mood::NoLogs, |paid| Mood::Without(paid.hash.clone()));
    let moods = [
        Mood::Down,
        Mood::Busy,
        Mood::NoLogs,
        without,
        Mood::Behind(head - 1),
        Mood::Behind(head - 30),
        Mood::Range(2),
        Mood::FewLogs(1, false),
        Mood::FewCalls(1),
        Mood::OtherAmounts,
        Mood::FinalAtOnce,
        Mood::Ahead(400),
        Mood::Forked((head - 3).max(1)),
        Mood::Foreign,
        Mood::NoSafe,
        Mood::FarFuture,
        Mood::Generous,
        Mood::Hangs,
    ];
    let count = moods.len() - usize::from(!patient);
    moods[dice.roll(count as u64) as usize].clone()
}

/// Two other nodes are bad from now on.
async fn next_turn(desk: &Desk, dice: &mut Dice, last: Option<&Paid>, patient: bool) {
    let head = desk.node.head().await;
    let one = dice.roll(NODES as u64) as usize;
    let other = (one + 1 + dice.roll(NODES as u64 - 1) as usize) % NODES;
    for (index, proxy) in desk.proxies.iter().enumerate() {
        let bad = index == one || index == other;
        proxy.set(if bad { mood(dice, head, last, patient) } else { Mood::Honest });
    }
}

/// The newest blocks are replaced; the payments in them are in later ones.
async fn replace_blocks(desk: &Desk, dice: &mut Dice, paid: &[Paid]) {
    let (head, depth) = (desk.node.head().await, 1 + dice.roll(CONFIRMATIONS as u64 - 2) as i64);
    let mut moved = Vec::new();
    for payment in paid.iter().rev().take(8) {
        let receipt = desk.node.receipt(&payment.hash).await;
        if !receipt.is_null() && quantity(&receipt["blockNumber"]) > head - depth {
            moved.push((desk.node.raw(&payment.hash).await, depth - 1));
        }
    }
    moved.reverse();
    desk.node.reorg(depth, &moved).await;
}

/// Whatever is in the wallet lies as deep as it should.
async fn none_is_early(desk: &Desk, paid: &[Paid], safe: Usd) {
    let head = desk.node.head().await;
    let mut due = safe;
    for payment in paid {
        let depth = depth(desk, payment, head).await;
        if depth >= CONFIRMATIONS {
            due = due.plus(payment.amount);
        }
        let early =
            depth < CONFIRMATIONS && desk.states(&payment.hash).await.contains(&TransferState::Credited);
        assert!(!early, "{} is credited too early", payment.hash);
    }
    assert!(desk.balance().await <= due, "more is in the wallet than lies deep enough");
}

/// Takes out what is credited for good, and answers its sum.
async fn take_safe(desk: &Desk, paid: &mut Vec<Paid>) -> Usd {
    let (head, mut safe, mut left) = (desk.node.head().await, Usd::ZERO, Vec::new());
    for payment in paid.drain(..) {
        let credited = desk.states(&payment.hash).await == [TransferState::Credited];
        if credited && depth(desk, &payment, head).await > SAFE {
            safe = safe.plus(payment.amount);
        } else {
            left.push(payment);
        }
    }
    *paid = left;
    safe
}

/// How many blocks confirm it; none when it is in no block.
async fn depth(desk: &Desk, payment: &Paid, head: i64) -> i64 {
    let receipt = desk.node.receipt(&payment.hash).await;
    if receipt.is_null() { 0 } else { head - quantity(&receipt["blockNumber"]) + 1 }
}

before_nodes! {
    async fn two_of_five_nodes_are_bad_in_turns(desk) with { proxies: NODES } {
        let turns = number("SIMGATE_TEST_TURNS");
        let mut dice = if turns.is_some() { Dice::new() } else { Dice(SEED) };
        let (mut paid, mut safe, mut invoices) = (Vec::<Paid>::new(), Usd::ZERO, Vec::<Invoice>::new());
        for _ in 0..3 {
            invoices.push(desk.invoice(20).await);
        }
        desk.mine(LAG + 1).await;
        for turn in 0..turns.unwrap_or(TURNS) {
            next_turn(desk, &mut dice, paid.last(), turns.is_some()).await;
            for _ in 0..dice.roll(3) {
                let invoice = &invoices[dice.roll(invoices.len() as u64) as usize];
                let amount = Usd::from_micros(1_000_000 + dice.roll(30_000_000) as i64);
                let hash = desk.node.pay(&desk.node.usdc, &invoice.address, amount).await;
                paid.push(Paid { hash, amount });
            }
            desk.node.mine(1 + dice.roll(2) as i64).await;
            match dice.roll(6) {
                0 => replace_blocks(desk, &mut dice, &paid).await,
                1 if turn % 5 == 0 => desk.restart_after(async |node| node.mine(1).await, 0).await,
                _ => {}
            }
            for _ in 0..ROUNDS {
                desk.try_round().await.ok();
                none_is_early(desk, &paid, safe).await;
            }
            safe = safe.plus(take_safe(desk, &mut paid).await);
        }
        desk.proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
        let all = paid.iter().fold(safe, |sum, payment| sum.plus(payment.amount));
        until("everything is credited", async || {
            desk.node.mine(1).await;
            desk.try_round().await.ok();
            none_is_early(desk, &paid, safe).await;
            (desk.balance().await == all).then_some(())
        })
        .await;
        let compared = ledger::against_chains(&desk.app).await.unwrap();
        assert!(!compared.differs() && compared.silent.is_empty());
    }
}
