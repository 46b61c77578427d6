//! A look over the whole service for `simgate doctor`: each check says what it found and what to do about it. These are
//! quick facts; `ledger::verify` proves the books.

mod log;
mod running;
mod webhooks;
mod withdrawn;

use std::time::Duration;

use super::suppliers::{self, Overview};
use super::{operator, restore, transfers};
use crate::app::App;
use crate::chain::Chain;
use crate::domain::money::Usd;
use crate::domain::network::AddressKind;
use crate::domain::number::{self, Series};
use crate::domain::words::words;
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::wallet::Drawn;
use crate::store::{accounts, cursors, meta, reports, wallet};
use crate::supplier::Answer;
use crate::x402::settler::{SettledBy, Settler, Terminal, Unfit};

/// How long a supplier or a chain may take before it counts as unable to serve.
const PATIENCE: Duration = Duration::from_secs(10);
/// Every network makes a block within seconds: a node whose newest one is older has lost its peers.
const STALE_HEAD_MS: i64 = 2 * 60_000;
/// How far the scanner may be behind; normally it is seconds.
const LATE_SCAN_MS: i64 = 5 * 60_000;
/// How many addresses an operator compares with the wallet that holds the spending key.
const SHOWN_ADDRESSES: u32 = 3;

words! {
    pub enum Health {
        Ok = "ok",
        Warn = "warn",
        Fail = "fail",
    }
}

pub struct Check {
    pub subject: &'static str,
    pub health: Health,
    pub finding: String,
    /// What to do; empty when there is nothing to do.
    pub advice: String,
}

impl Check {
    pub fn ok(subject: &'static str, finding: impl Into<String>) -> Check {
        Check { subject, health: Health::Ok, finding: finding.into(), advice: String::new() }
    }

    pub fn warn(subject: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { subject, health: Health::Warn, finding: finding.into(), advice: advice.into() }
    }

    pub fn fail(subject: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { subject, health: Health::Fail, finding: finding.into(), advice: advice.into() }
    }
}

/// All checks of an open application.
pub async fn examine(app: &App) -> Result<Vec<Check>> {
    let mut checks = suppliers(app).await?;
    checks.extend([catalog(app), ledger(app).await?, stuck(app).await?]);
    checks.extend(withdrawn::open(app).await?);
    if restore::is_on_hold(app).await? {
        let advice = "check what the restore printed, then run `simgate restore --confirm`";
        checks.push(Check::warn("restore", "buying is on hold since a backup was restored", advice));
    }
    for kind in AddressKind::ALL {
        checks.push(addresses(app, kind).await?);
    }
    for chain in app.chains.values() {
        checks.push(nodes(app, &**chain).await?);
    }
    if let Some(settler) = &app.settler {
        for terminal in settler.terminals.values() {
            checks.push(settling(settler, terminal).await);
        }
    }
    checks.push(running::gateway(app).await);
    checks.extend(running::turns(app).await?);
    checks.push(webhooks::deliveries(app).await?);
    checks.push(numbers(app).await?);
    checks.push(unmatched(app).await?);
    checks.push(support(app));
    checks.extend(log::length(app)?);
    Ok(checks)
}

/// Order numbers are short and can run out; the operator should know long before.
async fn numbers(app: &App) -> Result<Check> {
    let read = |tx: &mut Tx| Ok((accounts::last(tx)?, wallet::drawn(tx, Series::LEAST_HALF)?));
    let (last, drawn) = app.store.snapshot(read).await?;
    let half_used = |drawn: &&Drawn| {
        Series::Orders.is_half_used_up(drawn.account, drawn.orders)
            || Series::Checkouts.is_half_used_up(drawn.account, drawn.checkouts)
    };
    let few_left = drawn.iter().filter(half_used).count();
    Ok(if last.0 >= number::ACCOUNTS / 2 {
        let finding =
            format!("of {} accounts that can have order numbers, {} exist", number::ACCOUNTS, last.0);
        Check::warn(
            "numbers",
            finding,
            "new accounts are refused when these run out: plan for a second gateway",
        )
    } else if few_left > 0 {
        let finding = format!("accounts that have used up half of their order numbers: {few_left}");
        Check::warn(
            "numbers",
            finding,
            "their orders are refused when these run out: give them second accounts",
        )
    } else {
        Check::ok("numbers", "every account has more than half of its order numbers left")
    })
}

fn support(app: &App) -> Check {
    match &app.settings.support_contact {
        Some(contact) => Check::ok("support", format!("the help articles name {contact}")),
        None => Check::warn(
            "support",
            "support_contact is not set, so the help articles name nobody to write to",
            "set SIMGATE_SUPPORT_CONTACT to an email address or a URL",
        ),
    }
}

/// Shows the first addresses: the holder of the spending key sees whether they own them.
async fn addresses(app: &App, kind: AddressKind) -> Result<Check> {
    let xpub = app.settings.settlement.xpub(kind);
    let name = format!("{}_xpub", kind.as_str().to_lowercase());
    let wanted = name.clone();
    let stored = app.store.read(move |tx| meta::get(tx, &wanted)).await?;
    if stored.as_deref().is_some_and(|stored| stored != xpub.fingerprint()) {
        return Ok(Check::fail(
            "addresses",
            format!("{name} is not the key that this database's {} addresses come from", kind.as_str()),
            "set the old key again, or start once with --new-key if it is meant to replace it",
        ));
    }
    let path = kind.account_path();
    let first = (0..SHOWN_ADDRESSES).map(|index| format!("{path}/0/{index} {}", xpub.address(index)));
    let first: Vec<String> = first.collect();
    Ok(Check::ok(
        "addresses",
        format!(
            "the first {} addresses; compare them with your wallet's: {} (key fingerprint {})",
            kind.as_str(),
            first.join(", "),
            xpub.fingerprint()
        ),
    ))
}

/// Whether a network's nodes are right and up to date, and how far we are behind them.
async fn nodes(app: &App, chain: &dyn Chain) -> Result<Check> {
    let network = chain.network();
    let name = network.as_str();
    let look = async {
        chain.check().await?;
        chain.tip().await
    };
    let useless = |finding: String| {
        let advice = format!("deposits there wait until it does; check {}_rpc", name.to_lowercase());
        Ok(Check::fail("chain", finding, advice))
    };
    let tip = match tokio::time::timeout(PATIENCE, look).await {
        Ok(Ok(tip)) => tip,
        Ok(Err(trouble)) => return useless(format!("{name} cannot be used: {trouble}")),
        Err(_) => return useless(format!("{name} does not answer within 10 s")),
    };
    let demoted = chain.demoted();
    let demoted: Vec<String> =
        demoted.into_iter().map(|node| format!("{} {} ({})", node.node, node.said, node.why)).collect();
    let tokens: Vec<&str> = chain.tokens().iter().map(|token| token.currency.as_str()).collect();
    let providers = app.settings.settlement.networks.get(&network).map_or(0, |terms| terms.providers.len());
    let head_ms = (app.now().micros() - tip.head.time.micros()).max(0) / 1_000;
    let facts = match providers {
        0 => format!("{name} is simulated, takes {}", tokens.join(" and ")),
        _ => format!(
            "{name} answers with chain id {}, takes {} of six decimals, has {}",
            network.chain_id(),
            tokens.join(" and "),
            if providers == 1 { "one node".into() } else { format!("{providers} nodes") },
        ),
    };
    let cursor = app.store.read(move |tx| cursors::get(tx, network)).await?;
    let late_ms = cursor.map(|cursor| (tip.head.time.micros() - cursor.scanned_time.micros()).max(0) / 1_000);
    let scanned = match cursor {
        Some(cursor) => behind(tip.head.number - cursor.scanned),
        None => "not scanned yet".into(),
    };
    let finding = format!("{facts}; its newest block is {} s old, {scanned}", head_ms / 1_000);
    Ok(if head_ms > STALE_HEAD_MS {
        Check::warn("chain", finding, "its nodes have stopped following the network: use others")
    } else if late_ms.is_some_and(|late| late > LATE_SCAN_MS) {
        Check::warn(
            "chain",
            finding,
            "the scanner is behind: is a gateway running, and what does its log say?",
        )
    } else if !demoted.is_empty() {
        let advice = format!(
            "the other nodes are used, and it is tried again; if this persists, replace it in {}_rpc",
            name.to_lowercase()
        );
        Check::warn("chain", format!("{finding}; {}", demoted.join("; ")), advice)
    } else if providers == 1 {
        let advice =
            format!("add two more to {}_rpc: nothing confirms what one node says", name.to_lowercase());
        Check::warn("chain", finding, advice)
    } else {
        Check::ok("chain", finding)
    })
}

/// How far the scanner is behind the newest block.
fn behind(blocks: i64) -> String {
    match blocks {
        ..=0 => "scanned up to it".into(),
        1 => "scanned up to the block before it".into(),
        blocks => format!("scanned up to {blocks} blocks before it"),
    }
}

/// Whether payments by signature can be settled on a network, and what is left for gas.
async fn settling(settler: &Settler, terminal: &Terminal) -> Check {
    let name = terminal.network.as_str();
    let looked = async {
        let purse = match &terminal.sender {
            Some(sender) => {
                let (purse, least) = terminal.purse().await?;
                let coins = |gwei: i64| format!("{}.{:09}", gwei / 1_000_000_000, gwei % 1_000_000_000);
                format!(
                    "; gas key {} holds {}, of at least {}",
                    sender.gas.key.address,
                    coins(purse.gwei),
                    coins(least)
                )
            }
            None if matches!(settler.by, SettledBy::Simulated) => "; settling is simulated".to_string(),
            None => "; a facilitator settles".to_string(),
        };
        let domain = settler.by.check(terminal).await?;
        Ok(format!("{name} takes {:?} version {:?} by signature{purse}", domain.name, domain.version))
    };
    let advice = format!(
        "no payment by signature is offered there; see the x402 settings of {name} in docs/operate.md"
    );
    match tokio::time::timeout(PATIENCE, looked).await {
        Ok(Ok(finding)) => Check::ok("x402", finding),
        Ok(Err(Unfit::Wrong(why))) => Check::fail("x402", format!("{name}: {why}"), advice),
        Ok(Err(Unfit::Unknown(trouble))) => Check::warn("x402", format!("{name}: {trouble}"), advice),
        Err(_) => Check::warn("x402", format!("{name} does not answer within 10 s"), advice),
    }
}

async fn unmatched(app: &App) -> Result<Check> {
    Ok(match transfers::count_unmatched(app).await? {
        0 => Check::ok("transfers", "none waits for an owner"),
        count => Check::warn(
            "transfers",
            format!("transfers that arrived and belong to nobody: {count}"),
            "see `simgate transfers unmatched`, then `assign`, `returned` or `write-off`",
        ),
    })
}

/// Each supplier: whether it answers, is enabled, synced and has money.
async fn suppliers(app: &App) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for overview in suppliers::list(app).await? {
        checks.push(answers(app, &overview).await?);
        checks.extend(held_back(&overview));
        checks.extend(low_balance(&overview));
        checks.extend(rate(&overview));
    }
    if checks.is_empty() {
        checks.push(Check::fail(
            "supplier",
            "the settings name none",
            "add a table [supplier.NAME]: see docs/suppliers.md",
        ));
    }
    checks.extend(suppliers::missing(app).await?.into_iter().map(|name| {
        Check::fail(
            "supplier",
            format!("{name} is enabled, and the settings do not name it: its plans cannot be sold, read or cancelled"),
            format!("put [supplier.{name}] back into the settings, or end it: `simgate supplier disable {name}`"),
        )
    }));
    Ok(checks)
}

/// Another currency than dollars needs a rate that is not old.
fn rate(known: &Overview) -> Option<Check> {
    let (what, advice) = known.rate_age.trouble(known.name)?;
    let finding = format!("{}: {what}", known.name);
    Some(match known.rate_age.stops() {
        true => Check::fail("supplier", finding, advice),
        false => Check::warn("supplier", finding, advice),
    })
}

async fn answers(app: &App, known: &Overview) -> Result<Check> {
    let name = known.name;
    let silent = |why: &str| {
        Check::fail(
            "supplier",
            format!("{name} does not answer: {why}"),
            "orders wait until it does; ask the supplier",
        )
    };
    Ok(match tokio::time::timeout(PATIENCE, app.supplier(name)?.balance()).await {
        Ok(Answer::Done(_)) if !known.enabled => Check::warn(
            "supplier",
            format!("{name} answers, but is not enabled"),
            format!(
                "look at its plans with `simgate supplier sync {name} --dry-run`, then `simgate supplier enable {name}`"
            ),
        ),
        Ok(Answer::Done(_)) => {
            Check::ok("supplier", format!("{name} answers, and {} of its plans are on sale", known.on_sale))
        }
        Ok(other) => silent(&other.told().err().unwrap_or_default()),
        Err(_) => silent("no answer within 10 s"),
    })
}

fn held_back(known: &Overview) -> Option<Check> {
    let (name, why) = (known.name, known.held_back.as_ref()?);
    let advice = format!("look at `simgate supplier sync {name} --dry-run`, then agree with --accept");
    Some(Check::warn("supplier", format!("the last sync of {name} was held back: {why}"), advice))
}

fn low_balance(known: &Overview) -> Option<Check> {
    let left = known.balance.filter(|_| known.low_balance)?;
    Some(Check::warn(
        "supplier",
        format!("{} has {left} left", known.name),
        "pay in there, and book it: `simgate supplier fund`",
    ))
}

fn catalog(app: &App) -> Check {
    match app.catalog.borrow().size() {
        0 => Check::fail("catalog", "nothing is on sale", "run `simgate catalog sync`"),
        plans => Check::ok("catalog", format!("{plans} plans are on sale")),
    }
}

/// Debits against credits, and wallets against their postings, in one state of the database.
async fn ledger(app: &App) -> Result<Check> {
    let (lines, owners) =
        app.store.study(|tx| Ok((reports::trial_balance(tx)?, accounts::list(tx)?))).await?;
    let sum = |amounts: &mut dyn Iterator<Item = Usd>| amounts.fold(Usd::ZERO, Usd::plus);
    let (debit, credit) = (sum(&mut lines.iter().map(|l| l.debit)), sum(&mut lines.iter().map(|l| l.credit)));
    let of_wallets = lines.iter().filter(|line| line.account == "wallet");
    let posted = sum(&mut of_wallets.map(|line| line.credit.minus(line.debit)));
    let kept = sum(&mut owners.iter().map(|owner| owner.balance));
    let advice = "stop selling and run `simgate ledger verify`: it names the rows";
    Ok(if debit != credit {
        Check::fail("ledger", format!("debits are {debit} USD and credits {credit} USD"), advice)
    } else if posted != kept {
        Check::fail("ledger", format!("wallets hold {kept} USD and their postings say {posted} USD"), advice)
    } else {
        Check::ok("ledger", format!("debits equal credits; the wallets together hold {kept} USD"))
    })
}

async fn stuck(app: &App) -> Result<Check> {
    let waiting: i64 = operator::stuck_orders(app).await?.iter().map(|(_, count)| count).sum();
    Ok(match waiting {
        0 => Check::ok("orders", "none has waited for its supplier for more than 30 minutes"),
        count => Check::warn(
            "orders",
            format!("orders that have waited for their supplier for more than 30 minutes: {count}"),
            "see `simgate order list --stuck`, then `simgate order retry ID` or `simgate order fail ID --reason TEXT`",
        ),
    })
}
