//! How fast transfers are found: run by `bench/run`, or alone.
//!
//! - `matching COUNT SECONDS`: logs per second of one core, parsed from a node's answer and looked up among that
//!   many watched addresses; one log in a thousand is ours;
//! - `scanning DIR BLOCKS`: blocks per second of the whole scanner, database included, behind a simulated chain;
//! - `polling DIR COUNT SECONDS`: rounds per second of the scanner with three nodes, a new block in each, and that many
//!   watched addresses;
//! - `crediting DIR DUST`: seconds from a payment's block to its credit with three nodes, at Arbitrum's pace, after
//!   that many transfers of next to nothing to one of our addresses in the hundred blocks before it.

mod node;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use simgate::app::App;
use simgate::chain::address;
use simgate::chain::evm::{Contracts, parse_logs};
use simgate::chain::{Chain, Token, Watched};
use simgate::config::{Raw, Settings};
use simgate::domain::ids::AccountNo;
use simgate::domain::invoice::Invoice;
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Currency, Network};
use simgate::jobs;
use simgate::ops::deposits::{self, NewDeposit};
use simgate::ops::operator::{self, NewPartner};
use simgate::ops::scan::Scanner;
use simgate::start::{self, Role};
use simgate::store::addresses::{self, Address};
use simgate::store::tx::Tx;
use tokio_util::sync::CancellationToken;

use node::Node;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TOKEN: &str = "0xc2132D05D31c914a87C6611C10748AEb04B58e8F";
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const LOGS: usize = 10_000;
const OURS_EVERY: usize = 1_000;
const BLOCK_MS: i64 = 200;
/// How many nodes follow a real network, and how many blocks it has when we come.
const NODES: usize = 3;
const HEAD: i64 = 5_000;
/// Transfers of others in a block of a busy chain.
const STRANGERS: usize = 50;
/// The fastest of the real networks, and the blocks that dust is spread over.
const ARBITRUM_MS: i64 = 250;
const DUSTY: usize = 100;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["matching", count, seconds] => matching(count.parse()?, Duration::from_secs(seconds.parse()?)),
        ["scanning", dir, blocks] => run(scanning(Path::new(dir), blocks.parse()?)),
        ["polling", dir, count, seconds] => {
            run(polling(Path::new(dir), count.parse()?, Duration::from_secs(seconds.parse()?)))
        }
        ["crediting", dir, dust] => run(crediting(Path::new(dir), dust.parse()?)),
        other => Err(format!("unknown arguments {other:?}").into()),
    }
}

fn run(work: impl Future<Output = Outcome>) -> Outcome {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

/// An address that looks like any other: deriving as many as we need from a key would take minutes.
fn some_address(number: usize) -> [u8; 20] {
    let mut bytes = [0; 20];
    let mut state = number as u64;
    for byte in &mut bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
    bytes
}

fn matching(count: usize, time: Duration) -> Outcome {
    let texts = (0..count).map(|number| address::text(AddressKind::Evm, &some_address(number)));
    let watched = Watched::new(AddressKind::Evm, texts);
    let token = Token { currency: Currency::Usdt, contract: TOKEN.into() };
    let contracts = Contracts::new(AddressKind::Evm, &[token]).map_err(|trouble| trouble.to_string())?;
    let mut answer = String::from("[");
    for number in 0..LOGS {
        let ours = number % OURS_EVERY == 0;
        let to = some_address(if ours { number * 7 % count } else { count + number });
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        write!(
            answer,
            r#"{}{{"address":"{}","topics":["{TRANSFER}","0x{:0>64}","0x{:0>64}"],"data":"0x{:064x}","blockNumber":"0x4a1f2b3","transactionHash":"0x{:064x}","transactionIndex":"0x1c","blockHash":"0x{:064x}","logIndex":"0x{:x}","removed":false}}"#,
            if number == 0 { "" } else { "," },
            TOKEN.to_lowercase(),
            hex(&some_address(number + 5)),
            hex(&to),
            4_499_993 + number,
            number,
            number / 50,
            number,
        )?;
    }
    answer.push(']');
    let (started, mut logs) = (Instant::now(), 0);
    while started.elapsed() < time {
        let found = parse_logs(&answer, &contracts, &watched)?;
        assert_eq!(found.len(), LOGS / OURS_EVERY);
        logs += LOGS;
    }
    println!("{:.0}", logs as f64 / started.elapsed().as_secs_f64());
    Ok(())
}

/// A gateway that was away for this many blocks, with a payment in every hundredth, catches up.
async fn scanning(dir: &Path, blocks: i64) -> Outcome {
    let app = gateway(dir, &[]).await?;
    let network = Network::Arbitrum;
    let (account, invoice) = deposit(&app, Currency::Usdt).await?;
    let chain = app.sim_chains[&network].clone();
    let mut scanner = Scanner::new(chain.clone());
    let round =
        async |scanner: &mut Scanner| scanner.round(&app).await.map_err(|_| "a round failed").map(drop);
    round(&mut scanner).await?;
    let before = chain.tip().await.map_err(|trouble| trouble.to_string())?.head.number;
    for _ in 0..blocks / 100 {
        chain.pay(&invoice.address, Currency::Usdt, Usd::dollars(1)).await?;
        app.clock.advance(100 * BLOCK_MS);
    }
    let started = Instant::now();
    let paid = Usd::dollars(blocks / 100);
    app.clock.advance(100 * BLOCK_MS);
    while operator::account_by_no(&app, account).await?.balance < paid {
        round(&mut scanner).await?;
    }
    let took = started.elapsed().as_secs_f64();
    let after = chain.tip().await.map_err(|trouble| trouble.to_string())?.head.number;
    println!("{:.0}", (after - before) as f64 / took);
    Ok(())
}

/// A gateway on SQLite in this folder, with these settings besides.
async fn gateway(dir: &Path, own: &[(&str, &str)]) -> Outcome<App> {
    let url = format!("sqlite:{}", dir.join("bench.db").display());
    let all = [("database_url", url.as_str()), ("log", "error")];
    let flags: BTreeMap<String, String> =
        all.iter().chain(own).map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let mut settings = Settings::check(&Raw::collect(&flags, std::iter::empty(), None)?)?;
    settings.demo_file = dir.join("demo.env");
    Ok(start::open(settings, Role::Server).await?)
}

/// The same, following this node.
async fn gateway_before(dir: &Path, node: &Arc<Node>) -> Outcome<App> {
    let urls = node.serve(NODES).await?;
    let own = [
        ("staging", "true"),
        ("evm_xpub", address::SANDBOX_EVM_XPUB),
        ("arbitrum_rpc", &urls),
        ("arbitrum_usdc", node::USDC),
        ("arbitrum_usdt", node::USDT),
    ];
    gateway(dir, &own).await
}

/// A new partner with an invoice.
async fn deposit(app: &App, currency: Currency) -> Outcome<(AccountNo, Invoice)> {
    let new = NewPartner { name: "Bench".into(), email: None, credit: Usd::ZERO, shares_email: false };
    let partner = operator::create_partner(app, "bench", new).await?;
    let account = operator::account(app, partner.id.as_str()).await?.no;
    let new = NewDeposit { account, amount: Usd::dollars(100), currency, network: Network::Arbitrum };
    Ok((account, deposits::open(app, new).await?.invoice))
}

fn now_ms() -> i64 {
    simgate::clock::Clock::default().now().micros() / 1_000
}

/// One block after the other, and a look at each.
async fn polling(dir: &Path, count: usize, time: Duration) -> Outcome {
    let network = Network::Arbitrum;
    let node = Node::new(network, now_ms(), ARBITRUM_MS, HEAD, STRANGERS);
    let app = gateway_before(dir, &node).await?;
    let (now, until) = (app.now(), app.now().plus_days(30));
    let numbers: Vec<usize> = (0..count).collect();
    for part in numbers.chunks(1_000) {
        let part = part.to_vec();
        let write = move |tx: &mut Tx| {
            part.iter().try_for_each(|&number| {
                let new = Address {
                    address: address::text(AddressKind::Evm, &some_address(number)),
                    kind: AddressKind::Evm,
                    fingerprint: "bench".into(),
                    index: number as i64,
                    account: None,
                    watch_until: until,
                    standing: false,
                };
                addresses::insert(tx, &new, now)
            })
        };
        app.store.write(0, write).await?;
    }
    let mut scanner = Scanner::new(app.chains[&network].clone());
    let mut rounds = 0;
    let mut started = Instant::now();
    while started.elapsed() < time {
        node.mine(Vec::new());
        app.clock.advance(ARBITRUM_MS);
        scanner.round(&app).await.map_err(|_| "a round failed")?;
        rounds += 1;
        // The first ones look further back.
        if rounds == 20 {
            (started, rounds) = (Instant::now(), 21);
        }
    }
    println!("{:.1}", f64::from(rounds - 21) / started.elapsed().as_secs_f64());
    Ok(())
}

/// Somebody is sent dust, and then somebody else pays.
async fn crediting(dir: &Path, dust: usize) -> Outcome {
    let node = Node::new(Network::Arbitrum, now_ms(), ARBITRUM_MS, HEAD, STRANGERS);
    let app = gateway_before(dir, &node).await?;
    let ((_, dusted), (honest, invoice)) =
        (deposit(&app, Currency::Usdc).await?, deposit(&app, Currency::Usdc).await?);
    let (from, to) = (dusted.address.to_lowercase(), invoice.address.to_lowercase());
    jobs::start(&app, &CancellationToken::new());
    let mut blocks = tokio::time::interval(Duration::from_millis(ARBITRUM_MS.unsigned_abs()));
    for _ in 0..DUSTY {
        blocks.tick().await;
        node.mine(vec![(from.clone(), 1_000); dust / DUSTY]);
    }
    blocks.tick().await;
    node.mine(vec![(to, 100_000_000)]);
    let paid = Instant::now();
    while !operator::account_by_no(&app, honest).await?.balance.is_positive() {
        blocks.tick().await;
        node.mine(Vec::new());
    }
    println!("{:.2}", paid.elapsed().as_secs_f64());
    Ok(())
}
