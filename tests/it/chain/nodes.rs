//! Real chains through nodes that lag, lie, refuse and fall silent. The node is in `support/mock_node.rs`.

use std::sync::Arc;

use serde_json::json;
use simgate::chain::evm::{Evm, EvmSettings};
use simgate::chain::{Chain, Scanned, Token, Trouble, Watched, Witness, address};
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Currency, Network};
use simgate::domain::time::Time;
use simgate::domain::transfer::Sighting;

use crate::support::harness::until;
use crate::support::mock_node::*;

fn connect(nodes: &[&Node]) -> Evm {
    connect_by(nodes.iter().map(|node| node.url.clone()).collect(), 500)
}

fn connect_by(providers: Vec<String>, addresses_per_call: usize) -> Evm {
    let token = |currency, contract: &str| Token { currency, contract: contract.into() };
    let tokens = vec![token(Currency::Usdc, USDC), token(Currency::Usdt, USDT)];
    let network = Network::Polygon;
    Evm::new(EvmSettings {
        network,
        providers,
        api_key: None,
        tokens,
        addresses_per_call,
        clock: Arc::default(),
    })
    .unwrap()
}

fn watch(addresses: &[&str]) -> Watched {
    Watched::new(AddressKind::Evm, addresses.iter().map(|address| address.to_string()))
}

/// Position, currency, recipient and micro-dollars.
fn seen(sightings: &[Sighting]) -> Vec<(i64, &str, &str, i64)> {
    sightings
        .iter()
        .map(|s| (s.id.position, s.currency.as_str(), s.recipient.as_str(), s.amount.micros()))
        .collect()
}

#[track_caller]
fn trouble<T: std::fmt::Debug>(answer: Result<T, Trouble>, words: &str) {
    let Trouble(said) = answer.unwrap_err();
    assert!(said.contains(words), "{said}");
    assert!(said.starts_with("POLYGON: node 1 ") || said.starts_with("POLYGON: node 2 "), "{said}");
    assert!(!said.contains(KEY) && !said.contains("127.0.0.1"), "{said}");
}

fn two_payments() -> Tx {
    let approval =
        Log { topics: vec![APPROVAL.into(), word(CAROL), word(ALICE)], ..moved(USDC, CAROL, ALICE, 5) };
    tx("two", 90, vec![approval, moved(USDC, CAROL, ALICE, 5_000_000), moved(USDT, CAROL, BOB, 7_000_001)])
}

#[tokio::test]
async fn positions_come_from_the_receipt() {
    let node = Node::start().await;
    node.set().txs = vec![tx("later", 95, vec![moved(USDC, CAROL, BOB, 1)]), two_payments()];
    // One address to a question: the two transfers of one transaction come in different answers.
    let chain = connect_by(vec![node.url.clone()], 1);
    let watched = watch(&[ALICE, BOB]);
    let scanned = chain.scan(1, 100, &watched, Witness::Any).await.unwrap();
    assert_eq!((scanned.last.number, scanned.last.hash.as_str()), (100, hash("main", 100).as_str()));
    let expected = [(1, "USDC", ALICE, 5_000_000), (2, "USDT", BOB, 7_000_001), (0, "USDC", BOB, 1)];
    assert_eq!(seen(&scanned.sightings), expected);
    let first = &scanned.sightings[0];
    assert_eq!((first.id.tx_hash.as_str(), first.sender.as_str()), (hash("two", 0).as_str(), CAROL));
    assert_eq!(first.block.time, Time::from_micros((1_700_000_000 + 180) * 1_000_000));
    assert_eq!(first.block.hash, hash("main", 90));
    // What was read once is not fetched again, and is seen again all the same.
    let receipts = node.asked("eth_getTransactionReceipt");
    assert_eq!(chain.scan(1, 100, &watched, Witness::Any).await.unwrap(), scanned);
    assert_eq!(
        chain.scan(1, 100, &watch(&[BOB]), Witness::Any).await.unwrap().sightings,
        scanned.sightings[1..]
    );
    assert_eq!((receipts, node.asked("eth_getTransactionReceipt")), (2, 2));
    let mined = chain.transaction(&hash("two", 0), Witness::Any).await.unwrap().unwrap();
    assert_eq!(mined.transfers, scanned.sightings[..2]);
    assert!(mined.succeeded);
    assert_eq!(chain.transaction(&hash("none", 0), Witness::Any).await.unwrap(), None);
}

#[tokio::test]
async fn only_true_movements_count() {
    let node = Node::start().await;
    let real = moved(USDC, CAROL, ALICE, 1);
    let with_four_topics = [real.topics.clone(), vec![word(BOB)]].concat();
    node.set().txs = vec![
        tx("fake", 10, vec![moved(FAKE, CAROL, ALICE, 5_000_000)]),
        tx("zero", 11, vec![moved(USDC, CAROL, ALICE, 0)]),
        tx("gone", 12, vec![Log { removed: true, ..real.clone() }]),
        tx("four", 13, vec![Log { topics: with_four_topics, ..real.clone() }]),
        tx("long", 14, vec![Log { data: format!("{}00", real.data), ..real.clone() }]),
        tx("huge", 15, vec![moved(USDC, CAROL, ALICE, 1_000_000_000_000_001)]),
        tx("over", 16, vec![moved(USDC, CAROL, ALICE, u128::MAX)]),
        tx("most", 17, vec![moved(USDC, CAROL, ALICE, 1_000_000_000_000_000)]),
        tx("else", 18, vec![moved(USDC, CAROL, BOB, 5_000_000)]),
        Tx { status: "0x0", ..tx("reverted", 19, Vec::new()) },
    ];
    let chain = connect(&[&node]);
    let scanned = chain.scan(1, 100, &watch(&[ALICE]), Witness::Any).await.unwrap();
    assert_eq!(seen(&scanned.sightings), [(0, "USDC", ALICE, 1_000_000_000_000_000)]);
    for name in ["fake", "zero", "gone", "four", "long", "huge", "over"] {
        let mined = chain.transaction(&hash(name, 0), Witness::Any).await.unwrap().unwrap();
        assert_eq!((mined.succeeded, mined.transfers), (true, Vec::new()), "{name}");
    }
    let reverted = chain.transaction(&hash("reverted", 0), Witness::Any).await.unwrap().unwrap();
    assert_eq!((reverted.succeeded, reverted.transfers), (false, Vec::new()));
}

#[tokio::test]
async fn a_lagging_node_is_not_believed() {
    let nodes = [Node::start().await, Node::start().await, Node::start().await];
    let [slow, quick, other] = &nodes;
    for node in &nodes {
        node.set().txs = vec![two_payments()];
    }
    slow.set().head = 85;
    let watched = watch(&[ALICE]);
    let alone = connect(&[slow]);
    trouble(alone.scan(80, 100, &watched, Witness::Any).await, "lags behind: it has no block 100");
    let chain = connect(&[slow, quick, other]);
    for _ in 0..5 {
        assert_eq!(chain.tip().await.unwrap().head.number, 100, "what two of three have reached");
        assert_eq!(chain.scan(80, 100, &watched, Witness::Any).await.unwrap().sightings.len(), 1);
        assert_eq!(chain.scan(80, 100, &watched, Witness::Quorum).await.unwrap().sightings.len(), 1);
        // Nor is its "no such transaction" and "no such block", as long as it is behind.
        assert!(chain.transaction(&hash("two", 0), Witness::Quorum).await.unwrap().is_some());
        assert_eq!(chain.block(100).await.unwrap().unwrap().hash, hash("main", 100));
        assert_eq!(chain.block(101).await.unwrap(), None);
    }
    let two = connect(&[slow, quick]);
    trouble(
        two.transaction(&hash("two", 0), Witness::Quorum).await,
        "node 1 and node 2 tell of different things",
    );
    assert_eq!(two.tip().await.unwrap().head.number, 85, "what both have reached");
}

#[tokio::test]
async fn ranges_shrink_to_what_a_node_allows() {
    let node = Node::start().await;
    node.set().most_blocks = 10;
    node.set().txs = vec![two_payments()];
    let chain = connect(&[&node]);
    let watched = watch(&[ALICE]);
    let Scanned { last, sightings } = chain.scan(1, 100, &watched, Witness::Any).await.unwrap();
    assert_eq!((last.number, sightings.len()), (6, 0), "100, 50, 25, 12 and then 6 blocks");
    let before = node.asked("eth_getLogs");
    let mut from = 7;
    let mut found = 0;
    while from <= 100 {
        let scanned = chain.scan(from, 100, &watched, Witness::Any).await.unwrap();
        found += scanned.sightings.len();
        from = scanned.last.number + 1;
    }
    assert_eq!(found, 1);
    assert_eq!(node.asked("eth_getLogs") - before, 16, "it remembers");
    // A node that refuses even a single block is asked for the receipts of its transactions.
    node.set().most_blocks = 0;
    let scanned = chain.scan(90, 100, &watched, Witness::Any).await.unwrap();
    assert_eq!((scanned.last.number, seen(&scanned.sightings)), (90, vec![(1, "USDC", ALICE, 5_000_000)]));
}

/// Also on an instance that has never scanned, and whichever of the two is the odd one.
#[tokio::test]
async fn a_second_witness_is_another_node() {
    let (first, second) = (Node::start().await, Node::start().await);
    let name = hash("two", 0);
    for (liar, honest) in [(&first, &second), (&second, &first)] {
        liar.set().txs = vec![two_payments()];
        let chain = connect(&[&first, &second]);
        let differ = "node 1 and node 2 tell of different things";
        trouble(chain.transaction(&name, Witness::Quorum).await, differ);
        honest.set().txs = vec![two_payments()];
        assert!(chain.transaction(&name, Witness::Quorum).await.unwrap().is_some());
        liar.set().txs[0].logs[1] = moved(USDC, CAROL, ALICE, 5_000_001);
        trouble(chain.transaction(&name, Witness::Quorum).await, differ);
        liar.set().txs = vec![Tx { status: "0x0", ..two_payments() }];
        trouble(chain.transaction(&name, Witness::Quorum).await, differ);
        liar.set().txs = vec![two_payments()];
        liar.set().fork = "other";
        trouble(chain.transaction(&name, Witness::Quorum).await, differ);
        liar.set().receipts_from = Some("third");
        trouble(
            chain.transaction(&name, Witness::Quorum).await,
            "shows a receipt that is not in its block 90",
        );
        // Without the second there is no second opinion, whatever the first says.
        liar.set().status = Some(500);
        trouble(chain.transaction(&name, Witness::Quorum).await, "cannot be reached: HTTP 500");
        assert!(chain.transaction(&name, Witness::Any).await.unwrap().is_some());
        for node in [liar, honest] {
            let mut manners = node.set();
            (manners.status, manners.receipts_from, manners.fork) = (None, None, "main");
            manners.txs.clear();
        }
        assert_eq!(chain.transaction(&name, Witness::Quorum).await.unwrap(), None, "both say so");
    }
    first.set().txs = vec![two_payments()];
    let alone = connect(&[&first]);
    assert!(alone.transaction(&name, Witness::Quorum).await.unwrap().is_some(), "one node is its own second");
}

#[tokio::test]
async fn two_of_three_suffice_when_one_is_silent() {
    let nodes = [Node::start().await, Node::start().await, Node::start().await];
    let name = hash("two", 0);
    for (node, head) in nodes.iter().zip([200, 100, 95]) {
        node.set().txs = vec![two_payments()];
        node.set().head = head;
    }
    for (silent, lowest) in [(0, 95), (1, 95), (2, 100)] {
        let chain = connect(&[&nodes[0], &nodes[1], &nodes[2]]);
        nodes[silent].set().status = Some(500);
        let mined = chain.transaction(&name, Witness::Quorum).await.unwrap().unwrap();
        assert_eq!(mined.head, lowest, "the depth is what both of them grant");
        nodes[silent].set().status = None;
    }
    let mined = connect(&[&nodes[0]]).transaction(&name, Witness::Any).await.unwrap().unwrap();
    assert_eq!(mined.head, 200);
}

/// A receipt that came without its logs, or without some of them, does harm for as long as it is told.
#[tokio::test]
async fn wrong_receipts_are_not_remembered() {
    let node = Node::start().await;
    node.set().txs = vec![two_payments()];
    let chain = connect(&[&node]);
    let watched = watch(&[ALICE, BOB]);
    let right = [(1, "USDC", ALICE, 5_000_000), (2, "USDT", BOB, 7_000_001)];
    node.set().receipts_lack = 3;
    trouble(chain.scan(1, 100, &watched, Witness::Any).await, "shows a log that its receipt does not have");
    node.set().receipts_lack = 0;
    assert_eq!(seen(&chain.scan(1, 100, &watched, Witness::Any).await.unwrap().sightings), right);

    let chain = connect(&[&node]);
    node.set().receipts_lack = 2;
    assert_eq!(
        seen(&chain.scan(1, 100, &watch(&[BOB]), Witness::Any).await.unwrap().sightings),
        [(0, "USDT", BOB, 7_000_001)]
    );
    // Alice's log is not in what was read for Bob.
    node.set().receipts_lack = 0;
    assert_eq!(seen(&chain.scan(1, 100, &watched, Witness::Any).await.unwrap().sightings), right);

    let chain = connect(&[&node]);
    node.set().receipts_lack = 1;
    assert_eq!(chain.scan(1, 100, &watched, Witness::Any).await.unwrap().sightings[0].id.position, 0);
    node.set().receipts_lack = 0;
    chain.transaction(&hash("two", 0), Witness::Any).await.unwrap();
    assert_eq!(seen(&chain.scan(1, 100, &watched, Witness::Any).await.unwrap().sightings), right);
}

#[tokio::test]
async fn a_head_of_the_far_future_is_not_believed() {
    const FAR: i64 = 1_000_000;
    let nodes = [Node::start().await, Node::start().await, Node::start().await];
    nodes[0].set().head = FAR;
    let chain = connect(&[&nodes[0], &nodes[1], &nodes[2]]);
    for _ in 0..3 {
        assert_eq!(chain.tip().await.unwrap().head.number, 100);
    }
    let [demoted] = chain.demoted().try_into().unwrap();
    assert_eq!((demoted.node.as_str(), demoted.why), ("node 1", "outvoted"));
    assert_eq!(demoted.said, "is at block 1000000, and others at 100");
    // Of two, nobody knows which one is right: what both have reached is safe to say.
    assert_eq!(connect(&[&nodes[0], &nodes[1]]).tip().await.unwrap().head.number, 100);
    // After a long silence all are far ahead, and agree.
    for node in &nodes {
        node.set().head = FAR;
    }
    assert_eq!(chain.tip().await.unwrap().head.number, FAR);
    nodes[1].set().status = Some(500);
    nodes[2].set().status = Some(500);
    trouble(chain.tip().await, "node 2 cannot be reached: HTTP 500; node 3 cannot be reached");
    nodes[0].set().head = 2 * FAR;
    assert_eq!(connect(&[&nodes[0]]).tip().await.unwrap().head.number, 2 * FAR, "one node is all there is");
}

#[tokio::test]
async fn answers_that_do_not_fit_together_are_trouble() {
    let node = Node::start().await;
    node.set().txs = vec![two_payments()];
    let chain = connect(&[&node]);
    let watched = watch(&[ALICE]);
    node.set().receipts_from = Some("other");
    trouble(chain.scan(1, 100, &watched, Witness::Any).await, "not in block 90 any more");
    node.set().receipts_from = None;
    node.set().flickers = true;
    trouble(chain.scan(1, 100, &watched, Witness::Any).await, "changed its mind about block 100");
    node.set().flickers = false;
    node.set().fork = "main";
    assert_eq!(chain.scan(1, 100, &watched, Witness::Any).await.unwrap().sightings.len(), 1);
    // The same transaction in another block is read anew.
    node.set().fork = "other";
    let scanned = chain.scan(1, 100, &watched, Witness::Any).await.unwrap();
    assert_eq!(scanned.sightings[0].block.hash, hash("other", 90));
    trouble_of_range(&chain, &watched).await;
}

async fn trouble_of_range(chain: &Evm, watched: &Watched) {
    let said = chain.scan(9, 8, watched, Witness::Any).await.unwrap_err();
    assert_eq!(said, Trouble::new("POLYGON: there are no blocks from 9 to 8"));
}

#[tokio::test]
async fn a_node_that_is_down_is_left_alone_and_comes_back() {
    let (first, second, third) = (Node::start().await, Node::start().await, Node::start().await);
    let watched = watch(&[ALICE]);
    let all = connect(&[&first, &second, &third]);
    let alone = connect(&[&first]);
    first.set().status = Some(502);
    for _ in 0..3 {
        trouble(alone.tip().await, "node 1 cannot be reached: HTTP 502");
        all.scan(1, 100, &watched, Witness::Any).await.unwrap();
        all.scan(1, 100, &watched, Witness::Quorum).await.unwrap();
    }
    let rests = async || {
        until("it is left alone", async || {
            alone.tip().await.unwrap_err().0.contains("node 1 rests: it ").then_some(())
        })
        .await;
    };
    // Each pause is longer than the one before.
    rests().await;
    first.set().status = None;
    let back = async || until("it is back", async || alone.tip().await.ok()).await;
    assert_eq!(back().await.head.number, 100);
    first.set().status = Some(429);
    trouble(alone.tip().await, "wants to be left alone: HTTP 429");
    rests().await;
    first.set().status = None;
    back().await;
}

#[tokio::test]
async fn keys_stay_secret() {
    let node = Node::start().await;
    let chain = connect_by(vec![format!("http://127.0.0.1:1/v2/{KEY}"), node.url.clone()], 500);
    node.set().status = Some(400);
    trouble(chain.tip().await, "node 1 cannot be reached: ");
    trouble(chain.check().await, "; node 2 cannot be reached: HTTP 400");
    node.set().status = Some(200);
    trouble(chain.tip().await, "node 2 answered something unreadable");
    let settings = EvmSettings {
        network: Network::Polygon,
        providers: vec![format!("no url {KEY}")],
        api_key: None,
        tokens: Vec::new(),
        addresses_per_call: 500,
        clock: Arc::default(),
    };
    let Err(Trouble(said)) = Evm::new(settings) else { panic!("that is no URL") };
    assert_eq!(said, "node 1 of POLYGON: its URL cannot be read");
}

#[tokio::test]
async fn tips_tell_what_is_final() {
    let node = Node::start().await;
    let chain = connect(&[&node]);
    let tip = chain.tip().await.unwrap();
    assert_eq!((tip.head.number, tip.safe, tip.finalized), (100, 85, 80));
    node.set().finalized = None;
    let tip = chain.tip().await.unwrap();
    assert_eq!((tip.head.number, tip.safe, tip.finalized), (100, 0, 0), "a young chain");
}

#[tokio::test]
async fn wrong_chains_and_tokens_are_refused() {
    let (node, other) = (Node::start().await, Node::start().await);
    let chain = connect(&[&node, &other]);
    chain.check().await.unwrap();
    node.set().symbols[0] = [b"USDC".as_slice(), &[0; 28]].concat();
    node.set().symbols[1] = abi_text("USD₮0");
    chain.check().await.unwrap();
    node.set().symbols.swap(0, 1);
    trouble(chain.check().await, "node 1 shows no USDC there: symbol() is \"USD₮0\"");
    node.set().symbols = vec![Vec::new(), Vec::new()];
    trouble(chain.check().await, "symbol() cannot be read");
    node.set().symbols = vec![abi_text("DAI"), abi_text("DAI")];
    trouble(chain.check().await, "symbol() is \"DAI\"");
    node.set().decimals = 18;
    trouble(chain.check().await, "node 1 shows no USDC there: decimals() is not 6");
    node.set().decimals = 6;
    node.set().symbols = vec![abi_text("USDC"), abi_text("USDT")];
    node.set().status = Some(500);
    chain.check().await.unwrap();
    node.set().status = None;
    node.set().chain_id = 1;
    trouble(chain.check().await, "node 1 is on the wrong chain: 1 instead of 137");
    // Nor is it asked for anything else, also when nobody has checked.
    let alone = connect(&[&node]);
    trouble(alone.tip().await, "wrong chain");
    assert_eq!(node.asked("eth_getBlockByNumber"), 0);
    node.set().chain_id = 137;
    node.set().decimals = 18;
    node.set().txs = vec![two_payments()];
    let unchecked = connect(&[&node]);
    trouble(unchecked.tip().await, "decimals() is not 6");
    trouble(unchecked.scan(1, 100, &watch(&[ALICE]), Witness::Any).await, "decimals() is not 6");
    trouble(unchecked.transaction(&hash("two", 0), Witness::Any).await, "decimals() is not 6");
    assert_eq!((node.asked("eth_getLogs"), node.asked("eth_getTransactionReceipt")), (0, 0));
    let both = connect(&[&node, &other]);
    assert_eq!(
        both.transaction(&hash("two", 0), Witness::Any).await.unwrap(),
        None,
        "the other has no such one"
    );
    trouble(both.transaction(&hash("two", 0), Witness::Quorum).await, "decimals() is not 6");
    node.set().decimals = 6;
    let again =
        until("it is tried again", async || alone.transaction(&hash("two", 0), Witness::Any).await.ok());
    assert!(again.await.is_some(), "put right");
}

/// One of three is on another chain: the network is followed all the same.
#[tokio::test]
async fn a_foreign_node_stops_nobody() {
    let nodes = [Node::start().await, Node::start().await, Node::start().await];
    for node in &nodes {
        node.set().txs = vec![two_payments()];
    }
    nodes[0].set().chain_id = 1;
    let chain = connect(&[&nodes[0], &nodes[1], &nodes[2]]);
    chain.check().await.unwrap();
    assert_eq!(chain.tip().await.unwrap().head.number, 100);
    assert!(chain.transaction(&hash("two", 0), Witness::Quorum).await.unwrap().is_some());
    assert_eq!(chain.demoted()[0].why, "foreign");
    assert_eq!(nodes[0].asked("eth_getBlockByNumber"), 0);
    nodes[1].set().chain_id = 1;
    trouble(
        chain.check().await,
        "node 1 is on the wrong chain: 1 instead of 137; node 2 is on the wrong chain",
    );
}

#[tokio::test]
async fn many_addresses_are_looked_for_at_home() {
    let node = Node::start().await;
    node.set().txs = vec![two_payments()];
    let few = connect_by(vec![node.url.clone()], 1);
    let more: Vec<String> = (0..7).map(|n| address::text(AddressKind::Evm, &[n; 20])).collect();
    let eight: Vec<&str> = more.iter().map(String::as_str).chain([ALICE]).collect();
    assert_eq!(few.scan(1, 100, &watch(&eight), Witness::Any).await.unwrap().sightings.len(), 1);
    assert_eq!(node.asked("eth_getLogs"), 8);
    let nine = [eight.as_slice(), &[BOB]].concat();
    assert_eq!(few.scan(1, 100, &watch(&nine), Witness::Any).await.unwrap().sightings.len(), 2);
    assert_eq!(node.asked("eth_getLogs"), 9);
    let last = node.set().asked.iter().rfind(|(name, _)| name == "eth_getLogs").unwrap().1.clone();
    assert_eq!(last[0]["topics"], json!([TRANSFER]));
    assert_eq!(last[0]["address"], json!([plain(USDC), plain(USDT)]));
    // Nobody to look for: the range is walked all the same.
    assert_eq!(few.scan(1, 100, &watch(&[]), Witness::Any).await.unwrap().last.number, 100);
    assert_eq!(node.asked("eth_getLogs"), 9);
}

#[tokio::test]
async fn balances_are_asked_for_in_batches() {
    let node = Node::start().await;
    let chain = connect(&[&node]);
    let addresses: Vec<String> = (0..50).map(|n| address::text(AddressKind::Evm, &[n; 20])).collect();
    let balances = chain.balances(Currency::Usdt, &addresses, 100).await.unwrap();
    assert_eq!(balances, (0..50).map(Usd::from_micros).collect::<Vec<_>>());
    let call = node.set().asked.last().unwrap().1.clone();
    assert_eq!(call[0]["to"], json!(plain(USDT)));
}

#[tokio::test]
async fn java_tron_speaks_it_too() {
    let (to, from) = ("TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6", "TB7mhtkvfhsRBRhe5FuRa4tFXSEyGDe4eA");
    let node = Node::start().await;
    {
        let mut manners = node.set();
        (manners.java_tron, manners.chain_id) = (true, 728_126_428);
        manners.symbols[1] = abi_text("USDT");
        let fee = moved(FAKE, from, to, 1);
        manners.txs = vec![tx("tron", 90, vec![fee, moved(TRON_USDT, from, to, 12_000_000)])];
    }
    let chain = Evm::new(EvmSettings {
        network: Network::Tron,
        providers: vec![node.url.clone()],
        api_key: Some("trongrid-key".into()),
        tokens: vec![Token { currency: Currency::Usdt, contract: TRON_USDT.into() }],
        addresses_per_call: 500,
        clock: Arc::default(),
    })
    .unwrap();
    chain.check().await.unwrap();
    assert_eq!(node.set().headers["tron-pro-api-key"], "trongrid-key");
    let tip = chain.tip().await.unwrap();
    assert_eq!((tip.head.number, tip.safe, tip.finalized), (100, 80, 80), "solidified, and nothing between");
    let watched = Watched::new(AddressKind::Tron, [to.to_string()]);
    let scanned = chain.scan(81, 100, &watched, Witness::Any).await.unwrap();
    assert_eq!(seen(&scanned.sightings), [(1, "USDT", to, 12_000_000)]);
    let sighting = &scanned.sightings[0];
    let bare = hash("tron", 0)[2..].to_string();
    assert_eq!((&sighting.id.tx_hash, sighting.sender.as_str()), (&bare, from));
    assert_eq!(sighting.block.hash, hash("main", 90)[2..]);
    let mined = chain.transaction(&bare, Witness::Quorum).await.unwrap().unwrap();
    assert_eq!(mined.transfers, scanned.sightings);
    assert_eq!(chain.balances(Currency::Usdt, &[to.into()], 100).await.unwrap().len(), 1);
}
