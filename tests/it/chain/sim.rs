//! The simulated chain: one world for all instances, blocks that never change without a new hash, and trouble on
//! demand. What is promised here is what the settlement tests build on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use simgate::chain::address::SANDBOX_EVM_XPUB;
use simgate::chain::sim::{ChainMode, Keep, Payment, SimChain};
use simgate::chain::{Chain, Token, Watched, Witness, address};
use simgate::clock::Clock;
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Currency, Network};
use simgate::domain::transfer::{Sighting, TransferId, parse_tx_hash};
use simgate::start::{self, Role};

use crate::support::buying::DEEP;
use crate::support::database;
use crate::support::harness::{Gateway, both_databases};

const TEN: Usd = Usd::dollars(10);
/// So many blocks may come while a test looks at the chain: time does not stand still.
const MARGIN: i64 = 40;

/// A chain with a clock of its own, so that time can pass for it alone.
fn chain(gateway: &Gateway, network: Network) -> (SimChain, Arc<Clock>) {
    let clock = Arc::new(Clock::default());
    (on(&gateway.app.store, &clock, network), clock)
}

fn on(store: &Arc<simgate::store::Store>, clock: &Arc<Clock>, network: Network) -> SimChain {
    let token = |currency: Currency| Token { currency, contract: "simulated".into() };
    let tokens = Currency::ALL.into_iter().map(token).collect();
    SimChain::new(store.clone(), clock.clone(), network, tokens)
}

fn somebody(kind: AddressKind, n: u8) -> String {
    address::text(kind, &[n; 20])
}

/// Balances are asked for as of the newest block.
const HEAD: i64 = i64::MAX;

fn watching(kind: AddressKind, addresses: &[&String]) -> Watched {
    Watched::new(kind, addresses.iter().map(|address| address.to_string()))
}

/// Everything that these addresses were sent, as the chain shows it now.
async fn all(chain: &SimChain, watched: &Watched) -> Vec<Sighting> {
    let head = chain.tip().await.unwrap().head.number;
    chain.scan(0, head, watched, Witness::Any).await.unwrap().sightings
}

both_databases! {
    async fn blocks_come_by_the_clock(gateway) {
        let mut hashes = BTreeSet::new();
        for network in Network::ALL {
            let (chain, clock) = chain(gateway, network);
            chain.check().await.unwrap();
            let tip = chain.tip().await.unwrap();
            assert!(tip.head.number >= 300, "a chain has a past: {tip:?}");
            assert_eq!(tip.finalized, tip.head.number - network.confirmations() + 1);
            assert_eq!(tip.safe, tip.finalized);
            clock.advance(10_000);
            let later = chain.tip().await.unwrap().head;
            assert!(later.number >= tip.head.number + 50);
            let [one, two] = [later.number - 1, later.number].map(|number| chain.block(number));
            let (one, two) = (one.await.unwrap().unwrap(), two.await.unwrap().unwrap());
            assert_eq!(two, later);
            assert_eq!(one.time.plus_millis(200), two.time);
            assert!(two.time <= clock.now());
            assert_eq!(chain.block(later.number + 1_000).await.unwrap(), None);
            assert_eq!(chain.block(-1).await.unwrap(), None);
            for block in [tip.head, one, two] {
                assert_eq!(parse_tx_hash(network.kind(), &block.hash), Some(block.hash.clone()));
                hashes.insert(block.hash);
            }
        }
        assert_eq!(hashes.len(), 3 * Network::ALL.len(), "every block has its own hash");
    }

    async fn a_clock_that_is_set_back_a_little_unmakes_no_block(gateway) {
        let (chain, clock) = chain(gateway, Network::Base);
        clock.advance(5_000);
        let before = chain.head().await.unwrap();
        clock.advance(-5_000);
        assert!(chain.head().await.unwrap() >= before);
        let address = somebody(AddressKind::Evm, 1);
        let hash = chain.pay(&address, Currency::Usdc, TEN).await.unwrap();
        clock.advance(10_000);
        let mined = chain.transaction(&hash, Witness::Any).await.unwrap().unwrap();
        assert!(mined.block.number > before);
    }

    async fn a_payment_is_in_the_next_block_and_not_before(gateway) {
        for network in Network::ALL {
            let kind = network.kind();
            let (chain, clock) = chain(gateway, network);
            let [ours, other, stranger] = [1, 2, 3].map(|n| somebody(kind, n));
            let watched = watching(kind, &[&ours, &other]);
            let before = chain.head().await.unwrap();
            let hash = chain.pay(&ours, Currency::Usdt, TEN).await.unwrap();
            assert_eq!(parse_tx_hash(kind, &hash), Some(hash.clone()));
            let payment = |recipient: &String, dollars| Payment {
                recipient: recipient.clone(),
                currency: Currency::Usdc,
                amount: Usd::dollars(dollars),
            };
            let list = [payment(&stranger, 1), payment(&other, 2), payment(&ours, 3)];
            let many = chain.pay_many(&list).await.unwrap();
            let vain = chain.pay_in_vain(payment(&ours, 4)).await.unwrap();
            clock.advance(1_000);

            let seen = all(&chain, &watched).await;
            let short = |seen: &Sighting| (seen.id.tx_hash.clone(), seen.id.position, seen.recipient.clone(), seen.amount);
            let mut got: Vec<_> = seen.iter().map(short).collect();
            got.sort_by_key(|(_, _, _, amount)| *amount);
            let dollars = Usd::dollars;
            assert_eq!(got, [
                (many.clone(), 1, other.clone(), dollars(2)),
                (many.clone(), 2, ours.clone(), dollars(3)),
                (hash.clone(), 0, ours.clone(), dollars(10)),
            ]);
            for sighting in &seen {
                assert_eq!(sighting.id.network, network);
                assert!(sighting.block.number > before);
                assert_eq!(chain.block(sighting.block.number).await.unwrap().as_ref(), Some(&sighting.block));
                assert!(address::bytes(kind, &sighting.sender).is_some(), "{}", sighting.sender);
            }
            let mined = chain.transaction(&many, Witness::Quorum).await.unwrap().unwrap();
            assert!(mined.succeeded);
            assert_eq!(mined.transfers.len(), 3, "to whomever");
            assert_eq!(mined.transfers[1], *seen.iter().find(|seen| seen.recipient == other).unwrap());
            let reverted = chain.transaction(&vain, Witness::Any).await.unwrap().unwrap();
            assert!(!reverted.succeeded && reverted.transfers.is_empty());
            assert_eq!(chain.transaction(&spelled(kind, "ab"), Witness::Any).await.unwrap(), None);

            let addresses = [ours.clone(), other.clone(), somebody(kind, 9)];
            assert_eq!(chain.balances(Currency::Usdc, &addresses, HEAD).await.unwrap(), [dollars(3), dollars(2), Usd::ZERO]);
            assert_eq!(chain.balances(Currency::Usdt, &addresses, HEAD).await.unwrap(), [dollars(10), Usd::ZERO, Usd::ZERO]);
        }
    }

    async fn a_scan_goes_as_far_as_the_chain(gateway) {
        let (chain, clock) = chain(gateway, Network::Arbitrum);
        let address = somebody(AddressKind::Evm, 1);
        let watched = watching(AddressKind::Evm, &[&address]);
        let head = chain.head().await.unwrap();
        let hash = chain.pay(&address, Currency::Usdc, TEN).await.unwrap();
        clock.advance(1_000);
        let block = chain.transaction(&hash, Witness::Any).await.unwrap().unwrap().block;
        let scanned = chain.scan(head, head + 1_000_000, &watched, Witness::Any).await.unwrap();
        assert!(scanned.last.number >= block.number && scanned.last.number < head + 1_000);
        assert_eq!(scanned.sightings.len(), 1);
        let below = chain.scan(0, block.number - 1, &watched, Witness::Any).await.unwrap();
        assert_eq!((below.last.number, below.sightings.len()), (block.number - 1, 0));
        assert_eq!(chain.scan(block.number, block.number, &watched, Witness::Any).await.unwrap().sightings.len(), 1);
        chain.scan(head + 1_000_000, head + 1_000_001, &watched, Witness::Any).await.unwrap_err();
        let nobody = watching(AddressKind::Evm, &[]);
        assert_eq!(all(&chain, &nobody).await, []);
    }

    async fn two_processes_see_one_chain(gateway) {
        let second = start::open(gateway.app.settings.clone(), Role::Command).await.unwrap();
        for network in [Network::Polygon, Network::Tron] {
            let kind = network.kind();
            let clock = Arc::new(Clock::default());
            let [a, b] = [&gateway.app.store, &second.store].map(|store| on(store, &clock, network));
            // Nobody has looked at this chain before, perhaps: who founds it must not matter.
            let (one, two) = futures_util::join!(a.head(), b.head());
            assert!((one.unwrap() - two.unwrap()).abs() < MARGIN);
            let address = somebody(kind, 1);
            let watched = watching(kind, &[&address]);
            let (one, two) = futures_util::join!(a.pay(&address, Currency::Usdt, TEN), b.pay(&address, Currency::Usdt, TEN));
            let paid = BTreeSet::from([one.unwrap(), two.unwrap()]);
            clock.advance(1_000);
            let depth = 4;
            b.reorg(depth, Keep::Later(3)).await.unwrap();
            clock.advance(1_000);
            let seen = all(&a, &watched).await;
            assert_eq!(seen, all(&b, &watched).await);
            assert_eq!(seen.iter().map(|seen| seen.id.tx_hash.clone()).collect::<BTreeSet<_>>(), paid);
            let head = a.head().await.unwrap();
            for number in (0..=head).rev().take(20) {
                assert_eq!(a.block(number).await.unwrap(), b.block(number).await.unwrap());
            }
            a.behave(ChainMode::Down, 0).await.unwrap();
            assert_eq!(b.mood().await.unwrap().0, ChainMode::Down);
            b.tip().await.unwrap_err();
            b.behave(ChainMode::Ok, 0).await.unwrap();
            a.tip().await.unwrap();
        }
        database::on_plain_thread(|| second.store.close());
    }

    async fn a_reorganisation_replaces_blocks_from_one_on(gateway) {
        let (chain, clock) = chain(gateway, Network::Base);
        let address = somebody(AddressKind::Evm, 1);
        let watched = watching(AddressKind::Evm, &[&address]);
        let old = chain.pay(&address, Currency::Usdc, TEN).await.unwrap();
        clock.advance(30_000);
        let hash = chain.pay(&address, Currency::Usdc, TEN).await.unwrap();
        clock.advance(2_000);
        let first = chain.transaction(&hash, Witness::Any).await.unwrap().unwrap().block;
        let tip = chain.tip().await.unwrap();
        assert!(first.number < tip.finalized, "final blocks are replaced too");

        // Mined again, two blocks later, as the same transaction.
        let hashes = hashes_of(&chain, tip.head.number).await;
        let from = chain.reorg(tip.head.number - first.number + MARGIN, Keep::Later(2)).await.unwrap();
        assert!(from < first.number && from > first.number - MARGIN, "{from} {}", first.number);
        let changed = hashes_of(&chain, tip.head.number).await;
        for (number, hash) in &hashes {
            assert_eq!(changed[number] != *hash, *number >= from, "block {number}, replaced from {from} on");
        }
        clock.advance(1_000);
        let again = chain.transaction(&hash, Witness::Any).await.unwrap().unwrap();
        assert_eq!(again.block.number, first.number + 2);
        assert_ne!(again.block.hash, first.hash);
        assert_eq!(again.transfers[0].id, TransferId { network: Network::Base, tx_hash: hash.clone(), position: 0 });
        assert_eq!(all(&chain, &watched).await.len(), 2);

        // And dropped: it is nowhere.
        chain.reorg(chain.head().await.unwrap() - again.block.number + MARGIN, Keep::Nothing).await.unwrap();
        clock.advance(1_000);
        assert_eq!(chain.transaction(&hash, Witness::Quorum).await.unwrap(), None);
        assert_eq!(chain.balances(Currency::Usdc, std::slice::from_ref(&address), HEAD).await.unwrap(), [TEN]);
        let left = all(&chain, &watched).await;
        assert_eq!(left.iter().map(|seen| &seen.id.tx_hash).collect::<Vec<_>>(), [&old]);

        // A reorganisation of everything is one too.
        assert_eq!(chain.reorg(1_000_000, Keep::Nothing).await.unwrap(), 0);
        assert_eq!(all(&chain, &watched).await, []);
    }

    async fn nodes_misbehave_on_demand(gateway) {
        for network in [Network::Polygon, Network::Tron] {
            let kind = network.kind();
            let (chain, clock) = chain(gateway, network);
            let (ours, other) = (somebody(kind, 1), somebody(kind, 2));
            let watched = watching(kind, &[&ours, &other]);
            let hash = chain.pay(&ours, Currency::Usdc, TEN).await.unwrap();
            clock.advance(2_000);

            chain.behave(ChainMode::Down, 0).await.unwrap();
            chain.check().await.unwrap_err();
            chain.tip().await.unwrap_err();
            chain.block(1).await.unwrap_err();
            chain.scan(0, 1, &watched, Witness::Any).await.unwrap_err();
            chain.transaction(&hash, Witness::Any).await.unwrap_err();
            chain.transaction(&hash, Witness::Quorum).await.unwrap_err();
            chain.balances(Currency::Usdc, std::slice::from_ref(&ours), HEAD).await.unwrap_err();

            chain.behave(ChainMode::Lagging, 4 * MARGIN).await.unwrap();
            let (tip, head) = (chain.tip().await.unwrap().head.number, chain.head().await.unwrap());
            assert!((4 * MARGIN..5 * MARGIN).contains(&(head - tip)), "{head} {tip}");
            assert_eq!(chain.block(head - 10).await.unwrap(), None);
            let scanned = chain.scan(0, head, &watched, Witness::Any).await.unwrap();
            assert!((tip..tip + MARGIN).contains(&scanned.last.number));
            assert_eq!(scanned.sightings, []);
            chain.scan(head - 10, head, &watched, Witness::Any).await.unwrap_err();
            assert_eq!(chain.transaction(&hash, Witness::Any).await.unwrap(), None);
            assert!(chain.transaction(&hash, Witness::Quorum).await.unwrap().is_some());

            chain.behave(ChainMode::Lying, 0).await.unwrap();
            clock.advance(2_000);
            let lies: Vec<_> = all(&chain, &watched).await.into_iter().filter(|seen| seen.id.tx_hash != hash).collect();
            assert_eq!(lies.iter().map(|lie| &lie.recipient).collect::<Vec<_>>(), [&ours, &other]);
            for lie in &lies {
                let hash = &lie.id.tx_hash;
                assert_eq!(parse_tx_hash(kind, hash).as_ref(), Some(hash));
                let told = chain.transaction(hash, Witness::Any).await.unwrap().unwrap();
                assert_eq!((told.succeeded, &told.transfers[..]), (true, std::slice::from_ref(lie)));
                assert_eq!(chain.transaction(hash, Witness::Quorum).await.unwrap(), None);
            }
            assert!(chain.transaction(&hash, Witness::Any).await.unwrap().is_some(), "some of it is true");

            chain.behave(ChainMode::Ok, 0).await.unwrap();
            assert_eq!(chain.transaction(&lies[0].id.tx_hash, Witness::Any).await.unwrap(), None);
            assert_eq!(all(&chain, &watched).await.len(), 1);
        }
    }

    /// However slow the database, however often blocks are replaced: who follows the hashes has in the end seen
    /// just what the chain holds, and that is every payment.
    async fn who_follows_the_hashes_misses_nothing(gateway) {
        let network = Network::Arbitrum;
        let clock = Arc::new(Clock::default());
        let [payer, node] = [(); 2].map(|()| on(&gateway.app.store, &clock, network));
        let ours = somebody(AddressKind::Evm, 1);
        let watched = watching(AddressKind::Evm, &[&ours]);
        let mut follower = Follower::default();
        let pays = async {
            let mut paid = BTreeSet::new();
            for n in 0..12 {
                // Some payments are written down only after their block has come, and was looked at.
                let busy = Duration::from_millis([0, 150, 350, 500][n as usize % 4]);
                let slow = gateway.app.store.write(0, move |_| {
                    std::thread::sleep(busy);
                    Ok(())
                });
                let (slow, hash) = futures_util::join!(slow, payer.pay(&ours, Currency::Usdc, TEN));
                slow.unwrap();
                paid.insert(hash.unwrap());
                clock.advance([0, 90, 3_000][n as usize % 3]);
                if n % 5 == 3 {
                    payer.reorg(1 + n % 6, Keep::Later(n % 3)).await.unwrap();
                }
            }
            paid
        };
        let paid = {
            tokio::pin!(pays);
            loop {
                tokio::select! {
                    paid = &mut pays => break paid,
                    () = follower.step(&node, &watched) => {}
                }
            }
        };
        clock.advance(5_000);
        follower.step(&node, &watched).await;
        let seen = follower.seen.values().map(|seen| seen.id.tx_hash.clone());
        assert_eq!(seen.collect::<BTreeSet<_>>(), paid);
        let held = all(&node, &watched).await.into_iter().map(|seen| (seen.id.clone(), seen));
        assert_eq!(follower.seen, held.collect());
    }
}

/// A deposit invoice of 25 dollars.
async fn invoice(gateway: &Gateway, currency: &str, network: &str) -> Value {
    let body = json!({ "amountUsd": 25, "currency": currency, "network": network });
    gateway.post("/api/b2b/v1/balance/deposit", body).await.expect(200)
}

/// The transfers of a transaction, once it is mined: recipient and amount.
async fn transfers(gateway: &Gateway, network: Network, hash: &Value) -> Vec<(String, Usd)> {
    let chain = &gateway.app.sim_chains[&network];
    let hash = hash.as_str().unwrap();
    let look = async || chain.transaction(hash, Witness::Quorum).await.unwrap();
    let mined = gateway.until("it is mined", look).await;
    mined.transfers.into_iter().map(|transfer| (transfer.recipient, transfer.amount)).collect()
}

both_databases! {
    async fn invoices_are_paid_by_the_sandbox(gateway) {
        for (network, currency) in [(Network::Base, "USDC"), (Network::Tron, "USDT")] {
            let made = invoice(gateway, currency, network.as_str()).await;
            let (id, address) = (&made["invoiceId"], made["depositAddress"].as_str().unwrap());
            let paid = gateway.sandbox("pay", json!({ "invoiceId": id })).await;
            let hash = &paid["txHash"];
            assert!(parse_tx_hash(network.kind(), hash.as_str().unwrap()).is_some());
            let told = json!({
                "success": true, "txHash": hash, "network": network.as_str(), "currency": currency, "amountUsd": 25,
            });
            assert_eq!(paid, told);
            assert_eq!(transfers(gateway, network, hash).await, [(address.to_string(), Usd::dollars(25))]);

            let reply = gateway.try_sandbox("pay", json!({ "invoiceId": id, "amountUsd": 0.000001 })).await;
            assert!(reply.text.contains("\"amountUsd\":0.000001"), "{}", reply.text);
            let paid = reply.expect(200);
            assert_eq!(transfers(gateway, network, &paid["txHash"]).await, [(address.to_string(), Usd::from_micros(1))]);
        }
        // By the wrong network and in the wrong token, and long after it expired.
        let made = invoice(gateway, "USDC", "POLYGON").await;
        gateway.pass_time(2 * 3_600_000);
        let body = json!({ "invoiceId": made["invoiceId"], "amountUsd": 30.5, "network": "ARBITRUM", "currency": "USDT" });
        let paid = gateway.sandbox("pay", body).await;
        assert_eq!((&paid["network"], &paid["currency"]), (&json!("ARBITRUM"), &json!("USDT")));
        let [(address, amount)] = &transfers(gateway, Network::Arbitrum, &paid["txHash"]).await[..] else { panic!() };
        assert_eq!((json!(address), amount.micros()), (made["depositAddress"].clone(), 30_500_000));
    }

    async fn what_cannot_be_paid_is_refused(gateway) with [("base_usdt", "off"), ("staging", "true"), ("evm_xpub", SANDBOX_EVM_XPUB), ("polygon_rpc", "http://127.0.0.1:9")] {
        let made = invoice(gateway, "USDC", "BASE").await;
        let id = &made["invoiceId"];
        for (body, status, code) in [
            (json!({}), 400, "INVALID_REQUEST"),
            (json!({ "invoiceId": 7 }), 400, "INVALID_REQUEST"),
            (json!({ "invoiceId": "inv_000000000000000000000000000000" }), 404, "INVOICE_NOT_FOUND"),
            (json!({ "invoiceId": "nonsense" }), 404, "INVOICE_NOT_FOUND"),
            (json!({ "invoiceId": id, "amountUsd": 0 }), 400, "INVALID_REQUEST"),
            (json!({ "invoiceId": id, "amountUsd": -5 }), 400, "INVALID_REQUEST"),
            (json!({ "invoiceId": id, "amountUsd": "5" }), 400, "INVALID_REQUEST"),
            (json!({ "invoiceId": id, "amountUsd": 0.0000001 }), 400, "INVALID_REQUEST"),
            (json!({ "invoiceId": id, "network": "TRON" }), 400, "INVALID_REQUEST"),
            (json!({ "invoiceId": id, "network": "POLYGON" }), 400, "INVALID_REQUEST"),
            (json!({ "invoiceId": id, "network": "MOON" }), 400, "INVALID_REQUEST"),
            (json!({ "invoiceId": id, "currency": "EUR" }), 400, "INVALID_REQUEST"),
            (json!({ "invoiceId": id, "currency": "USDT" }), 422, "UNSUPPORTED_PAIR"),
        ] {
            let reply = gateway.try_sandbox("pay", body.clone()).await;
            assert_eq!(reply.problem(status), code, "{body}");
        }
        let real = gateway.try_sandbox("chain", json!({ "network": "POLYGON", "mode": "down" })).await;
        assert_eq!(real.problem(400), "INVALID_REQUEST");
        assert!(real.text.contains("POLYGON is not simulated here"), "{}", real.text);
    }

    async fn chains_are_moved_by_the_sandbox(gateway) {
        let chain = &gateway.app.sim_chains[&Network::Tron];
        let at_rest = gateway.sandbox("chain", json!({ "network": "TRON" })).await;
        let head = at_rest["head"].as_i64().unwrap();
        assert_eq!(at_rest, json!({ "success": true, "network": "TRON", "mode": "ok", "behind": 0, "head": head }));
        for mode in ["down", "lagging", "lying"] {
            let told = gateway.sandbox("chain", json!({ "network": "TRON", "mode": mode, "behind": 100 })).await;
            assert_eq!((&told["mode"], &told["network"]), (&json!(mode), &json!("TRON")));
            assert_eq!(chain.mood().await.unwrap().0.as_str(), mode);
            assert!(told["head"].as_i64().unwrap() >= head);
            match mode {
                "down" => drop(chain.tip().await.unwrap_err()),
                "lagging" => assert!(chain.tip().await.unwrap().head.number + 100 <= chain.head().await.unwrap()),
                _ => {}
            }
        }
        gateway.sandbox("chain", json!({ "network": "TRON", "mode": "ok" })).await;

        let made = invoice(gateway, "USDT", "TRON").await;
        let paid = gateway.sandbox("pay", json!({ "invoiceId": made["invoiceId"] })).await;
        let hash = paid["txHash"].as_str().unwrap();
        let block = async || chain.transaction(hash, Witness::Quorum).await.unwrap().map(|mined| mined.block);
        let mut before = gateway.until("it is mined", block).await;
        for (keep, later) in [(json!(true), 0), (json!(0), 0), (json!(3), 3)] {
            let told = gateway.sandbox("chain", json!({ "network": "TRON", "reorg": DEEP, "keep": keep })).await;
            assert_eq!(told["mode"], "ok");
            let after = gateway.until("it is mined again", block).await;
            assert_eq!(after.number, before.number + later);
            assert_ne!(after.hash, before.hash);
            before = after;
        }
        gateway.sandbox("chain", json!({ "network": "TRON", "reorg": DEEP, "keep": false })).await;
        assert_eq!(block().await, None);

        for body in [
            json!({}),
            json!({ "network": "MOON" }),
            json!({ "network": "TRON", "mode": "drunk" }),
            json!({ "network": "TRON", "behind": -1 }),
            json!({ "network": "TRON", "reorg": 0 }),
            json!({ "network": "TRON", "reorg": 1, "keep": "all" }),
            json!({ "network": "TRON", "reorg": 1, "keep": -1 }),
        ] {
            assert_eq!(gateway.try_sandbox("chain", body.clone()).await.problem(400), "INVALID_REQUEST", "{body}");
        }
    }
}

/// The simplest scanner there is: it goes back to the last block whose hash it knows, and reads on from there.
#[derive(Default)]
struct Follower {
    hashes: BTreeMap<i64, String>,
    seen: BTreeMap<TransferId, Sighting>,
}

impl Follower {
    async fn step(&mut self, chain: &SimChain, watched: &Watched) {
        let head = chain.tip().await.unwrap().head.number;
        while let Some((&number, hash)) = self.hashes.last_key_value() {
            if chain.block(number).await.unwrap().is_some_and(|block| block.hash == *hash) {
                break;
            }
            self.hashes.remove(&number);
            self.seen.retain(|_, seen| seen.block.number < number);
        }
        let from = self.hashes.last_key_value().map_or(0, |(number, _)| number + 1);
        if from > head {
            return;
        }
        // Hashes first, as a chain client reads them: what is replaced meanwhile is found next time. What was replaced
        // between the look at the last one and these would not be: they do not follow it any more.
        let mut hashes = BTreeMap::new();
        for number in from..=head {
            hashes.insert(number, chain.block(number).await.unwrap().unwrap().hash);
        }
        if let Some((&number, hash)) = self.hashes.last_key_value()
            && chain.block(number).await.unwrap().is_none_or(|block| block.hash != *hash)
        {
            return;
        }
        let scanned = chain.scan(from, head, watched, Witness::Any).await.unwrap();
        self.hashes.append(&mut hashes);
        self.seen.extend(scanned.sightings.into_iter().map(|seen| (seen.id.clone(), seen)));
    }
}

async fn hashes_of(chain: &SimChain, head: i64) -> BTreeMap<i64, String> {
    let mut hashes = BTreeMap::new();
    for number in head - 60..=head {
        hashes.insert(number, chain.block(number).await.unwrap().unwrap().hash);
    }
    hashes
}

fn spelled(kind: AddressKind, digits: &str) -> String {
    parse_tx_hash(kind, &format!("0x{}", digits.repeat(32))).unwrap()
}
