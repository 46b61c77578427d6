//! How fast transfers are found: run by `bench/run`, or alone.
//!
//! - `matching COUNT SECONDS`: logs per second of one core, parsed from a node's answer and looked up among that
//!   many watched addresses; one log in a thousand is ours;
//! - `scanning DIR BLOCKS`: blocks per second of the whole scanner, database included, behind a simulated chain.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use simgate::chain::address;
use simgate::chain::evm::{Contracts, parse_logs};
use simgate::chain::{Chain, Token, Watched};
use simgate::config::{Raw, Settings};
use simgate::domain::money::Usd;
use simgate::domain::network::{AddressKind, Currency, Network};
use simgate::ops::deposits::{self, NewDeposit};
use simgate::ops::operator::{self, NewPartner};
use simgate::ops::scan::Scanner;
use simgate::start::{self, Role};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TOKEN: &str = "0xc2132D05D31c914a87C6611C10748AEb04B58e8F";
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const LOGS: usize = 10_000;
const OURS_EVERY: usize = 1_000;
const BLOCK_MS: i64 = 200;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["matching", count, seconds] => matching(count.parse()?, Duration::from_secs(seconds.parse()?)),
        ["scanning", dir, blocks] => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(scanning(Path::new(dir), blocks.parse()?))
        }
        other => Err(format!("unknown arguments {other:?}").into()),
    }
}

/// Addresses that look like any others: deriving so many from a key would take minutes.
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

/// A gateway that was away for so many blocks, with a payment in every hundredth, catches up.
async fn scanning(dir: &Path, blocks: i64) -> Outcome {
    let url = format!("sqlite:{}", dir.join("scanning.db").display());
    let flags: BTreeMap<String, String> =
        [("database_url".to_string(), url), ("log".to_string(), "error".to_string())].into();
    let mut settings = Settings::check(&Raw::collect(&flags, std::iter::empty(), None)?)?;
    settings.demo_file = dir.join("demo.env");
    let app = start::open(settings, Role::Server).await?;
    let new = NewPartner { name: "Bench".into(), email: None, credit: Usd::ZERO };
    let partner = operator::create_partner(&app, "bench", new).await?;
    let account = operator::account(&app, partner.id.as_str()).await?.no;
    let network = Network::Arbitrum;
    let new = NewDeposit { account, amount: Usd::dollars(100), currency: Currency::Usdt, network };
    let invoice = deposits::open(&app, new).await?.invoice;
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
