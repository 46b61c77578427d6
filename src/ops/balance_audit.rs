//! Once a day the balance of every address is checked, watched or not. Money beyond what we know of came while nobody
//! was looking, or a node left it out: the blocks since the last check are searched for it, and a balance is stored
//! only when its transfers explain it.

use metrics::counter;

use super::scan::{self, Halt};
use crate::app::App;
use crate::chain::{Chain, Watched};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{addresses, cursors, transfers};

const DAY_MS: i64 = 24 * 3_600_000;
const AT_ONCE: i64 = 100;

/// Checks all addresses, if a day has passed since any instance did.
pub async fn look(app: &App, chain: &dyn Chain) -> Result<(), Halt> {
    let (network, now) = (chain.network(), app.now());
    let due = now.plus_millis(-DAY_MS);
    let cursor = app.store.read(move |tx| cursors::get(tx, network)).await?;
    if cursor.is_none_or(|cursor| (due..=now.and_a_little()).contains(&cursor.balances_at)) {
        return Ok(());
    }
    let take = move |tx: &mut Tx| cursors::take_balances(tx, network, now, due);
    if !app.store.finish(scan::lane(network), take).await? {
        return Ok(());
    }
    let looked = look_at_all(app, chain).await;
    if looked.is_err() {
        let give_back = move |tx: &mut Tx| cursors::give_back_balances(tx, network, now, due);
        app.store.finish(scan::lane(network), give_back).await?;
    }
    looked
}

async fn look_at_all(app: &App, chain: &dyn Chain) -> Result<(), Halt> {
    let (kind, mut after) = (chain.network().kind(), String::new());
    loop {
        let from = after.clone();
        let part = app.store.read(move |tx| addresses::page(tx, kind, &from, AT_ONCE)).await?;
        let Some((last, _)) = part.last() else { return Ok(()) };
        after = last.clone();
        look_at(app, chain, &part).await?;
    }
}

/// Checks a part of the addresses, each given with the time it was made.
async fn look_at(app: &App, chain: &dyn Chain, part: &[(String, Time)]) -> Result<(), Halt> {
    let network = chain.network();
    // A payment while we look shows in the balance, in a later block than this one, or in both; it cannot be missed.
    let before = chain.tip().await?.head.number;
    let names: Vec<String> = part.iter().map(|(address, _)| address.clone()).collect();
    let mut held = Vec::new();
    for token in chain.tokens() {
        let currency = token.currency;
        let balances = chain.balances(currency, &names, before).await?;
        for ((address, made_at), amount) in part.iter().zip(balances) {
            let name = address.clone();
            let read = move |tx: &mut Tx| {
                let known = cursors::checked_balance(tx, network, &name, currency)?;
                let (balance, block) = known.unwrap_or((Usd::ZERO, -1));
                let came = transfers::received_since(tx, &name, network, currency, block)?;
                Ok((known, balance.plus(came)))
            };
            let (checked, expected) = app.store.read(read).await?;
            let age_ms = (app.now().micros() - made_at.micros()) / 1_000;
            let made = before - scan::blocks_in(app, network, age_ms + DAY_MS);
            let (balance, since) = checked.unwrap_or((Usd::ZERO, made));
            held.push(Held { address: address.clone(), currency, amount, expected, balance, since });
        }
    }
    search(app, chain, &mut held).await?;
    let (explained, strange): (Vec<Held>, Vec<Held>) =
        held.into_iter().partition(|held| held.amount <= held.expected);
    for held in &strange {
        tell(network, held);
    }
    let write = move |tx: &mut Tx| {
        explained.iter().try_for_each(|held| {
            cursors::check_balance(tx, network, &held.address, held.currency, held.amount, before)
        })
    };
    Ok(app.store.finish(scan::lane(network), write).await?)
}

/// The money on one address.
struct Held {
    address: String,
    currency: Currency,
    amount: Usd,
    /// The most that should lie there, by the transfers that we know of.
    expected: Usd,
    /// The balance when it was last explained, and the block of that.
    balance: Usd,
    since: i64,
}

/// Searches the blocks since, where a balance is not the expected one. The transfers found there are stored, even if
/// they are weeks old, and explain the balance.
async fn search(app: &App, chain: &dyn Chain, held: &mut [Held]) -> Result<(), Halt> {
    let changed: Vec<&Held> = held.iter().filter(|held| held.amount != held.expected).collect();
    let Some(since) = changed.iter().map(|held| held.since).min() else { return Ok(()) };
    let network = chain.network();
    let watched = Watched::new(network.kind(), changed.into_iter().map(|held| held.address.clone()));
    let to = chain.tip().await?.head.number;
    let found = scan::look(app, chain, &watched, since - scan::overlap(app, network), to).await?;
    for held in held.iter_mut().filter(|held| held.amount != held.expected) {
        let came = found.iter().filter(|seen| {
            seen.recipient == held.address && seen.currency == held.currency && seen.block.number > held.since
        });
        held.expected = came.fold(held.balance, |sum, seen| sum.plus(seen.amount));
    }
    Ok(())
}

/// Reports money that no node shows us a transfer for. It stays unexplained, so the search begins again tomorrow.
fn tell(network: Network, held: &Held) {
    counter!("simgate_balances_unexplained_total", "network" => network.as_str()).increment(1);
    tracing::error!(
        network = network.as_str(),
        address = held.address,
        currency = held.currency.as_str(),
        amount = %held.amount,
        explained = %held.expected,
        "an address holds more than its transfers explain; do the nodes leave something out? See docs/settlement.md"
    );
}
