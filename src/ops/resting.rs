//! Once a day every address is looked at by its balance, watched or not. What lies there beyond what we know of came
//! when nobody looked, and the blocks since the last look are searched for it.

use super::scan::{self, Halt};
use crate::app::App;
use crate::chain::{Chain, Watched};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{addresses, cursors, transfers};

const DAY_MS: i64 = 24 * 3_600_000;
const AT_ONCE: i64 = 100;

/// Looks, if a day has passed since any instance did.
pub async fn look(app: &App, chain: &dyn Chain) -> Result<(), Halt> {
    let (network, now) = (chain.network(), app.now());
    let due = now.plus_millis(-DAY_MS);
    let cursor = app.store.read(move |tx| cursors::get(tx, network)).await?;
    if cursor.is_none_or(|cursor| cursor.balances_at >= due) {
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

/// Addresses, and when each of them was made.
async fn look_at(app: &App, chain: &dyn Chain, part: &[(String, Time)]) -> Result<(), Halt> {
    let network = chain.network();
    // A payment while we look is in the balance, in a later block than this one, or in both, but not in neither.
    let before = chain.tip().await?.head.number;
    let names: Vec<String> = part.iter().map(|(address, _)| address.clone()).collect();
    let mut changed: Vec<(String, i64)> = Vec::new();
    let mut held = Vec::new();
    for token in chain.tokens() {
        let currency = token.currency;
        let balances = chain.balances(currency, &names).await?;
        for ((address, made_at), amount) in part.iter().zip(balances) {
            let name = address.clone();
            let read = move |tx: &mut Tx| {
                let known = cursors::checked_balance(tx, network, &name, currency)?;
                let (balance, block) = known.unwrap_or((Usd::ZERO, -1));
                let came = transfers::received_since(tx, &name, network, currency, block)?;
                Ok((known.map(|(_, block)| block), balance.plus(came)))
            };
            let (checked, expected) = app.store.read(read).await?;
            if amount != expected {
                let age_ms = (app.now().micros() - made_at.micros()) / 1_000;
                let made = before - scan::blocks_in(app, network, age_ms + DAY_MS);
                changed.push((address.clone(), checked.unwrap_or(made)));
            }
            held.push((address.clone(), currency, amount));
        }
    }
    if let Some(since) = changed.iter().map(|(_, block)| *block).min() {
        let watched = Watched::new(network.kind(), changed.into_iter().map(|(address, _)| address));
        let to = chain.tip().await?.head.number;
        scan::look(app, chain, &watched, since - scan::overlap(app, network), to).await?;
    }
    let write = move |tx: &mut Tx| {
        held.iter().try_for_each(|(address, currency, amount)| {
            cursors::check_balance(tx, network, address, *currency, *amount, before)
        })
    };
    Ok(app.store.finish(scan::lane(network), write).await?)
}
