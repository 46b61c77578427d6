//! Addresses that no block is searched for any more. Once a day their balances are asked for in batches, and
//! whatever moved since the last look is searched for in the blocks between: money that comes late is found.

use super::scan::{self, Halt};
use crate::app::App;
use crate::chain::{Chain, Tip, Watched};
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{addresses, cursors};

const DAY_MS: i64 = 24 * 3_600_000;
const AT_ONCE: i64 = 100;

/// Looks, if a day has passed since the last time.
pub async fn look(app: &App, chain: &dyn Chain, tip: &Tip) -> Result<(), Halt> {
    let (network, now) = (chain.network(), app.now());
    let cursor = app.store.read(move |tx| cursors::get(tx, network)).await?;
    if cursor.is_none_or(|cursor| cursor.balances_at.plus_millis(DAY_MS) > now) {
        return Ok(());
    }
    let (kind, mut after) = (network.kind(), String::new());
    loop {
        let from = after.clone();
        let page = move |tx: &mut Tx| addresses::resting(tx, kind, now, &from, AT_ONCE);
        let part = app.store.read(page).await?;
        let Some((last, _)) = part.last() else { break };
        after = last.clone();
        look_at(app, chain, tip, &part).await?;
    }
    Ok(app.store.finish(scan::lane(network), move |tx| cursors::balances_done(tx, network, now)).await?)
}

/// Addresses, and since when each of them rests.
async fn look_at(app: &App, chain: &dyn Chain, tip: &Tip, part: &[(String, Time)]) -> Result<(), Halt> {
    let (network, head) = (chain.network(), tip.head.number);
    let names: Vec<String> = part.iter().map(|(address, _)| address.clone()).collect();
    for token in chain.tokens() {
        let currency = token.currency;
        let held = chain.balances(currency, &names).await?;
        for ((address, rests_since), amount) in part.iter().zip(held) {
            let name = address.clone();
            let read = move |tx: &mut Tx| cursors::checked_balance(tx, network, &name, currency);
            let known = app.store.read(read).await?;
            let changed = known.map_or(amount.is_positive(), |(before, _)| before != amount);
            if changed {
                let since = match known {
                    Some((_, block)) => block,
                    // Never looked at: from a day before it was last searched for in every block.
                    None => {
                        let rested_ms = (app.now().micros() - rests_since.micros()) / 1_000;
                        head - scan::blocks_in(app, network, rested_ms + DAY_MS)
                    }
                };
                let one = Watched::new(network.kind(), [address.clone()]);
                scan::look(app, chain, &one, since, head).await?;
            }
            let name = address.clone();
            let write = move |tx: &mut Tx| cursors::check_balance(tx, network, &name, currency, amount, head);
            app.store.finish(scan::lane(network), write).await?;
        }
    }
    Ok(())
}
