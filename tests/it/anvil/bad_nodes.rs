//! One node of three is bad, whichever and however: payments are credited once, none early, and nobody waits for it.

use simgate::domain::invoice::InvoiceStatus::{Confirmed, Confirming, Pending};
use simgate::domain::money::Usd;
use simgate::domain::network::{Currency, Network};
use simgate::domain::transfer::TransferState::{Credited, Reversed};
use simgate::ops::{balance_audit, scan::Halt};
use simgate::store::cursors;

use super::desk::{CONFIRMATIONS, Desk, LAG, Setup};
use super::node::Kind;
use super::proxy::Mood;
use crate::support::harness::until;

const DAY_MS: i64 = 24 * 3_600_000;
/// More blocks than are read again.
const MANY: i64 = 80;

impl Desk {
    /// The daily look at balances.
    async fn look_at_balances(&self) {
        self.app.clock.advance(DAY_MS + 60_000);
        let chain = &self.app.chains[&Network::Polygon];
        balance_audit::look(&self.app, &**chain).await.unwrap_or_else(|halt| match halt {
            Halt::Chain(trouble) => panic!("{trouble}"),
            Halt::Ours(error) => panic!("{error}"),
        });
    }

    /// Why the nodes are demoted that are.
    fn demoted(&self) -> Vec<(String, &'static str)> {
        let demoted = self.app.chains[&Network::Polygon].demoted();
        demoted.into_iter().map(|demoted| (demoted.node, demoted.why)).collect()
    }

    /// Blocks go on until one of these nodes is demoted for one of these reasons. A demotion is over after a while, and
    /// comes again as long as the node is bad.
    async fn finds_out(&self, nodes: &[usize], reasons: &[&str]) {
        let names: Vec<String> = nodes.iter().map(|index| format!("node {}", index + 1)).collect();
        until("a bad node is found out", async || {
            self.mine(1).await;
            let found = |(node, why): &(String, &str)| names.contains(node) && reasons.contains(why);
            self.demoted().iter().any(found).then_some(())
        })
        .await;
    }

    /// A payment with one bad node is credited after as many blocks as without, and not before.
    async fn pays_as_usual(&self) {
        let invoice = self.invoice(25).await;
        let hash = self.pay(&invoice).await;
        self.mine(CONFIRMATIONS - 1).await;
        assert_eq!(self.standing(&invoice).await, (Confirming, Usd::ZERO));
        self.mine(LAG + 1).await;
        assert_eq!(self.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
        assert_eq!(self.states(&hash).await, [Credited]);
    }
}

/// The proxies' moods, one bad at a time, each in its turn. It is demoted for one of these reasons, if there are any.
async fn one_at_a_time(desk: &Desk, bad: impl AsyncFn() -> Mood, reasons: &[&str]) {
    for index in 0..desk.proxies.len() {
        desk.proxies[index].set(bad().await);
        // The scanner does that every hour.
        desk.app.chains[&Network::Polygon].check().await.unwrap();
        desk.pays_as_usual().await;
        if !reasons.is_empty() {
            desk.finds_out(&[index], reasons).await;
        }
        desk.proxies[index].set(Mood::Honest);
        until("it is back", async || {
            desk.mine(1).await;
            desk.demoted().iter().all(|(_, why)| !["silent", "busy", "foreign"].contains(why)).then_some(())
        })
        .await;
    }
}

before_nodes! {
    /// Large sums wait for the chain's own word, and that is not one node's.
    async fn finality_is_nobodys_own_word(desk) with { proxies: 3, kind: Kind { slots: 10, ..Kind::default() } } {
        let mut balance = 0;
        for liar in 0..3 {
            desk.proxies[liar].set(Mood::FinalAtOnce);
            let invoice = desk.invoice(50_000).await;
            desk.pay(&invoice).await;
            desk.mine(2 * CONFIRMATIONS).await;
            assert_eq!(desk.standing(&invoice).await, (Confirming, Usd::ZERO));
            desk.mine(2 * CONFIRMATIONS + LAG).await;
            balance += 50_000;
            assert_eq!(desk.balance().await, Usd::dollars(balance));
            desk.proxies[liar].set(Mood::Honest);
        }
    }

    async fn a_head_of_the_future(desk) with { proxies: 3 } {
        one_at_a_time(desk, async || Mood::Ahead(400), &["outvoted"]).await;
    }

    async fn a_fork_of_its_own(desk) with { proxies: 3 } {
        let forked = async || Mood::Forked(desk.node.head().await - 3);
        one_at_a_time(desk, forked, &["forked", "outvoted"]).await;
    }

    async fn another_chain(desk) with { proxies: 3 } {
        one_at_a_time(desk, async || Mood::Foreign, &["foreign"]).await;
    }

    async fn no_word_for_safe(desk) with { proxies: 3 } {
        desk.proxies.iter().for_each(|proxy| proxy.set(Mood::NoSafe));
        desk.pays_as_usual().await;
    }

    async fn too_busy(desk) with { proxies: 3 } {
        one_at_a_time(desk, async || Mood::Busy, &["busy"]).await;
    }

    async fn silent_for_ever(desk) with { proxies: 3 } {
        one_at_a_time(desk, async || Mood::Hangs, &["silent"]).await;
    }

    async fn a_clock_of_the_future(desk) with { proxies: 3 } {
        one_at_a_time(desk, async || Mood::FarFuture, &[]).await;
        desk.proxies.iter().for_each(|proxy| proxy.set(Mood::FarFuture));
        assert!(desk.try_round().await.unwrap_err().contains("of the far future"));
        desk.proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
    }

    /// Whoever leaves out logs is found out by the next one, and two of three hide nothing either.
    async fn logs_left_out(desk) with { proxies: 3 } {
        for honest in 0..3 {
            for (index, proxy) in desk.proxies.iter().enumerate() {
                proxy.set(if index == honest { Mood::Honest } else { Mood::NoLogs });
            }
            let invoice = desk.invoice(25).await;
            desk.pay(&invoice).await;
            desk.mine(3 * CONFIRMATIONS).await;
            assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
            let liars: Vec<usize> = (0..3).filter(|index| *index != honest).collect();
            desk.finds_out(&liars, &["omitting"]).await;
            // One that is still demoted would be asked after the next liars.
            desk.proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
            until("all are trusted again", async || {
                desk.mine(1).await;
                desk.demoted().is_empty().then_some(())
            })
            .await;
        }
    }

    /// The same on a chain with more blocks than are read again.
    async fn logs_left_out_of_a_long_chain(desk) with { proxies: 3 } {
        desk.invoice(25).await;
        desk.node.mine(MANY).await;
        desk.round().await;
        one_at_a_time(desk, async || Mood::NoLogs, &["omitting"]).await;
    }

    /// The gateway was away: what is read only once is read by two.
    async fn logs_left_out_of_what_is_read_once(desk) with { proxies: 3 } {
        let mut balance = 0;
        for liar in 0..3 {
            desk.proxies[liar].set(Mood::NoLogs);
            let invoice = desk.invoice(25).await;
            desk.pay(&invoice).await;
            desk.node.mine(10 * MANY).await;
            desk.round().await;
            balance += 25;
            assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
            assert_eq!(desk.balance().await, Usd::dollars(balance));
            desk.proxies[liar].set(Mood::Honest);
        }
    }

    /// All nodes leave it out, for weeks. The balance gives it away, is not stored as explained, and the deposit is found
    /// when a node shows it.
    async fn what_everybody_leaves_out_is_found_weeks_later(desk) with { proxies: 3 } {
        let invoice = desk.invoice(25).await;
        desk.look_at_balances().await;
        desk.proxies.iter().for_each(|proxy| proxy.set(Mood::NoLogs));
        let second = desk.invoice(40).await;
        desk.pay(&second).await;
        desk.mine(1).await;
        desk.node.mine(MANY).await;
        desk.mine(2).await;
        let checked = async || {
            let address = second.address.clone();
            let read = move |tx: &mut simgate::store::tx::Tx| {
                cursors::checked_balance(tx, Network::Polygon, &address, Currency::Usdc)
            };
            desk.app.store.read(read).await.unwrap().map(|(amount, _)| amount)
        };
        let before = checked().await;
        for _ in 0..3 {
            desk.look_at_balances().await;
            desk.mine(1).await;
            assert_eq!(checked().await, before, "what nothing explains is not stored");
        }
        assert_eq!(desk.balance().await, Usd::ZERO);
        desk.proxies[2].set(Mood::Honest);
        desk.proxies[1].set(Mood::Honest);
        desk.look_at_balances().await;
        desk.mine(1).await;
        assert_eq!(desk.balance().await, Usd::dollars(40));
        desk.look_at_balances().await;
        assert_eq!(checked().await, Some(Usd::dollars(40)));
        assert_eq!(desk.standing(&invoice).await.1, Usd::ZERO);
    }

    /// A balance is what two of three say.
    async fn balances_are_nobodys_own_word(desk) with { proxies: 3 } {
        let invoice = desk.invoice(25).await;
        desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS + LAG).await;
        desk.proxies[0].set(Mood::Generous);
        desk.look_at_balances().await;
        let chain = &desk.app.chains[&Network::Polygon];
        let head = chain.tip().await.unwrap().head.number;
        let held = chain.balances(Currency::Usdc, std::slice::from_ref(&invoice.address), head).await.unwrap();
        assert_eq!(held, [Usd::dollars(25)]);
    }

    /// Transfers of nothing fill a block beyond what the node shows at once.
    async fn a_block_full_of_nothing(desk) with { proxies: 1 } {
        for (most, receipts) in [(20, true), (20, false), (0, true)] {
            let invoice = desk.invoice(25).await;
            desk.proxies[0].set(Mood::FewLogs(most, receipts));
            for _ in 0..30 {
                desk.node.pretend(&desk.node.usdc, &invoice.address).await;
            }
            desk.pay(&invoice).await;
            desk.node.mine(CONFIRMATIONS + LAG).await;
            desk.round().await;
            assert_eq!(desk.standing(&invoice).await, (Confirmed, Usd::dollars(25)));
        }
    }

    /// Six transfers, where a node takes few calls at once, or one by one.
    async fn few_calls_at_once(desk) with { proxies: 1 } {
        let mut balance = 0;
        for most in [10, 3, 1, 0] {
            desk.proxies[0].set(Mood::FewCalls(most));
            let invoice = desk.invoice(60).await;
            for _ in 0..6 {
                desk.node.pay(&desk.node.usdc, &invoice.address, Usd::dollars(10)).await;
            }
            desk.node.mine(CONFIRMATIONS + LAG).await;
            desk.round().await;
            balance += 60;
            assert_eq!(desk.balance().await, Usd::dollars(balance));
        }
    }

    /// Two nodes cannot agree on what became of a credited transfer until its block has left what is read again. It is
    /// taken back all the same when they do.
    async fn a_dispute_outlives_the_blocks_that_are_read_again(desk) with { proxies: 2 } {
        let invoice = desk.invoice(25).await;
        let hash = desk.pay(&invoice).await;
        desk.mine(CONFIRMATIONS).await;
        assert_eq!(desk.balance().await, Usd::dollars(25));
        desk.proxies[0].set(Mood::Without(hash.clone()));
        desk.proxies[1].set(Mood::NoLogs);
        desk.mine(2).await;
        desk.node.mine(MANY).await;
        desk.mine(2).await;
        assert_eq!(desk.states(&hash).await, [Credited], "nobody knows");
        desk.proxies[1].set(Mood::Without(hash.clone()));
        desk.mine(1).await;
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Reversed], Usd::ZERO));
        desk.proxies.iter().for_each(|proxy| proxy.set(Mood::Honest));
        desk.app.clock.advance(120_000);
        desk.mine(1).await;
        desk.mine(1).await;
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(25)));
        assert_eq!(desk.standing(&invoice).await.0, Confirmed);
    }

    /// A deposit that nobody shows stays unpaid, and nothing else stops.
    async fn a_payment_that_never_was(desk) with { proxies: 3 } {
        let invoice = desk.invoice(25).await;
        desk.proxies[0].set(Mood::OtherAmounts);
        let paid = desk.invoice(30).await;
        let hash = desk.pay(&paid).await;
        desk.mine(3 * CONFIRMATIONS).await;
        assert_eq!((desk.states(&hash).await, desk.balance().await), (vec![Credited], Usd::dollars(30)));
        assert_eq!(desk.standing(&invoice).await.0, Pending);
    }
}
