//! From what a chain shows to what is in a wallet. The scanner, a partner's verify and the daily look at balances
//! all come through here, so a transfer is written down, credited and taken back by one set of rules. `booking/sighted.rs`
//! writes down what is seen, `booking/owners.rs` says whose it is, and `booking/moves.rs` has every later move.

pub mod moves;
mod owners;
pub mod sighted;

use std::collections::{HashMap, HashSet};

use futures_util::future::join_all;
use metrics::counter;

use self::moves::Vanished;
use self::sighted::{Noted, shows};
use super::LANE;
use super::checkout::paid;
use super::depth::{Wait, final_up_to, wait};
use super::{jobs, scan};
use crate::app::App;
use crate::chain::{Chain, Mined, Tip, Witness};
use crate::config::NetworkSettings;
use crate::domain::ids::InvoiceId;
use crate::domain::money::Usd;
use crate::domain::transfer::{Block, Sighting, Transfer, TransferState};
use crate::error::{Error, Result};
use crate::store::tx::Tx;
use crate::store::{checkouts, transfers};
use crate::telemetry::EveryMinute;

/// So many sightings are written down at once: a write stays short.
const AT_ONCE: usize = 100;
/// So many transactions are asked for at once.
const TRANSACTIONS: usize = 8;

/// Writes down what was seen. Transfers to addresses that are not ours are left out.
pub async fn note(app: &App, seen: &[Sighting]) -> Result<()> {
    let (terms, now) = (app.settings.settlement.terms(), app.now());
    for part in seen.chunks(AT_ONCE) {
        let looked_at = part.to_vec();
        let old = move |tx: &mut Tx| {
            looked_at.iter().map(|seen| sighted::is_old(tx, seen, &terms)).collect::<Result<Vec<_>>>()
        };
        let old = app.store.read(old).await?;
        for seen in part.iter().zip(&old).filter(|(_, old)| **old == Some(Noted::Dust)).map(|(seen, _)| seen)
        {
            tell(seen.id.network.as_str(), "dust");
        }
        let new: Vec<Sighting> =
            part.iter().zip(&old).filter(|(_, old)| old.is_none()).map(|(seen, _)| seen.clone()).collect();
        if new.is_empty() {
            continue;
        }
        let written = new.clone();
        let teller = app.clone();
        let noted = app.store.finish(LANE, move |tx| sighted::note(&teller, tx, &written, now)).await?;
        for (seen, noted) in new.iter().zip(noted) {
            let (transfer, amount) = (&seen.id, seen.amount);
            match noted {
                Noted::New => {
                    tell(transfer.network.as_str(), "seen");
                    tracing::info!(%transfer, %amount, "a transfer was seen");
                }
                Noted::Contradicts => {
                    tell(transfer.network.as_str(), "lost");
                    tracing::error!(%transfer, %amount,
                        "a transfer that was taken back is on the chain again with another owner or token; see \
                         docs/settlement.md");
                }
                Noted::Moved | Noted::Known | Noted::Foreign | Noted::Dust => {}
            }
        }
    }
    Ok(())
}

fn tell(network: &'static str, outcome: &'static str) {
    counter!("simgate_transfers_total", "network" => network, "outcome" => outcome).increment(1);
}

/// The network's settings; a chain exists only for a network that has them.
pub fn terms<'a>(app: &'a App, chain: &dyn Chain) -> Result<&'a NetworkSettings> {
    let found = app.settings.settlement.networks.get(&chain.network());
    found.ok_or_else(|| Error::fault("a chain without settings"))
}

/// The transfer as this transaction makes it, if it does.
fn shown<'a>(mined: &'a Mined, transfer: &Transfer) -> Option<&'a Sighting> {
    mined.transfers.iter().find(|seen| mined.succeeded && shows(seen, transfer))
}

/// Credits those of these transfers that are final by now, when enough nodes agree on them and all of them are far enough
/// beyond their blocks. They are given in the order of the chain. One look at a transaction serves all its transfers. What
/// cannot be credited keeps nothing else waiting: the first trouble is answered at the end.
pub async fn credit_final(app: &App, chain: &dyn Chain, transfers: &[Transfer], tip: &Tip) -> Result<()> {
    let mut groups: Vec<Vec<&Transfer>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for transfer in transfers {
        let place = *places.entry(&transfer.id.tx_hash).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(transfer),
            None => groups.push(vec![transfer]),
        }
    }
    let (mut outcome, mut rest) = (Ok(()), &groups[..]);
    while !rest.is_empty() {
        let (together, later) = rest.split_at(independent(rest, app.settings.settlement.least_kept));
        let credited = join_all(together.iter().map(|group| credit_group(app, chain, group, tip))).await;
        outcome = credited.into_iter().fold(outcome, Result::and);
        rest = later;
        jobs::alive();
    }
    outcome
}

/// How many of the first groups may be credited at once. What pays for one thing counts in the order of the chain, unless
/// it is dust. Of two that one signature may have moved the second proves that the first is gone.
fn independent(groups: &[Vec<&Transfer>], dust: Usd) -> usize {
    let mut paid: HashSet<&InvoiceId> = HashSet::new();
    let mut count = 0;
    for group in groups.iter().take(TRANSACTIONS) {
        let kept = group.iter().filter(|transfer| transfer.amount >= dust);
        let invoices: HashSet<&InvoiceId> = kept.filter_map(|transfer| transfer.invoice.as_ref()).collect();
        if group.iter().any(|transfer| transfer.payment_nonce.is_some()) || !paid.is_disjoint(&invoices) {
            break;
        }
        paid.extend(invoices);
        count += 1;
    }
    count.max(1)
}

/// The same for transfers of one transaction.
async fn credit_group(app: &App, chain: &dyn Chain, group: &[&Transfer], tip: &Tip) -> Result<()> {
    let terms = terms(app, chain)?;
    let mut due = Vec::new();
    for transfer in group.iter().filter(|transfer| transfer.state.is_open()) {
        let wait = wait(app, transfer, is_waited_for(app, transfer).await?);
        let final_up_to = final_up_to(terms, transfer, wait, tip);
        if let Some(block) = transfer.block.as_ref().filter(|block| block.number <= final_up_to) {
            due.push((*transfer, block, wait));
        }
    }
    let Some((first, ..)) = due.first() else { return Ok(()) };
    let mined = match chain.transaction(&first.id.tx_hash, Witness::Quorum).await {
        Ok(mined) => mined,
        Err(trouble) => {
            tell(chain.network().as_str(), "disputed");
            static LINES: EveryMinute = EveryMinute::new();
            if let Some(left_out) = LINES.turn() {
                tracing::warn!(transfer = %first.id, %trouble, left_out, "a final transfer waits: too few nodes agree on it");
            }
            return Ok(());
        }
    };
    let mut outcome = Ok(());
    for (transfer, block, wait) in due {
        let judged = match mined.as_ref().and_then(|mined| Some((mined, shown(mined, transfer)?))) {
            Some((mined, seen)) if seen.block.hash == block.hash => {
                credit_at(app, chain, (transfer, block), wait, mined.head, tip).await
            }
            Some((_, seen)) => note(app, std::slice::from_ref(seen)).await,
            None => vanish(app, transfer).await,
        };
        outcome = outcome.and(judged);
    }
    outcome
}

/// Enough nodes, the least of which is at `head`, show the transfer in this block.
async fn credit_at(
    app: &App,
    chain: &dyn Chain,
    (transfer, block): (&Transfer, &Block),
    wait: Wait,
    head: i64,
    tip: &Tip,
) -> Result<()> {
    let terms = terms(app, chain)?;
    let theirs = Tip { head: Block { number: head, ..tip.head.clone() }, ..tip.clone() };
    if block.number > final_up_to(terms, transfer, wait, &theirs) {
        return Ok(());
    }
    recheck_twins(app, chain, transfer, tip).await?;
    let deep =
        [tip, &theirs].iter().all(|tip| block.number <= final_up_to(terms, transfer, Wait::Usual, tip));
    credit(app, transfer, &block.hash, deep).await
}

/// Whether a signed transfer may be what a checkout waits for.
async fn is_waited_for(app: &App, transfer: &Transfer) -> Result<bool> {
    let (Some(_), Some(invoice)) = (&transfer.payment_nonce, transfer.invoice.clone()) else {
        return Ok(false);
    };
    let found = app.store.read(move |tx| checkouts::by_id(tx, &invoice)).await?;
    Ok(found.is_some_and(|checkout| checkout.status.is_unpaid()))
}

/// What counted before under the same signature is on the chain no more, and is taken back first.
async fn recheck_twins(app: &App, chain: &dyn Chain, transfer: &Transfer, tip: &Tip) -> Result<()> {
    for twin in twins(app, transfer).await?.iter().filter(|twin| twin.state.is_booked()) {
        recheck(app, chain, twin, tip).await?;
    }
    Ok(())
}

async fn twins(app: &App, transfer: &Transfer) -> Result<Vec<Transfer>> {
    if transfer.payment_nonce.is_none() {
        return Ok(Vec::new());
    }
    let transfer = transfer.clone();
    app.store.read(move |tx| transfers::twins(tx, &transfer)).await
}

/// `deep`: it is as deep as every transfer has to be that is not quick.
async fn credit(app: &App, transfer: &Transfer, block_hash: &str, deep: bool) -> Result<()> {
    let (teller, now) = (app.clone(), app.now());
    let (id, hash) = (transfer.id.clone(), block_hash.to_string());
    let lane = transfer.account.map_or(LANE, |account| account.0);
    let credited = match &transfer.invoice {
        Some(invoice) if paid::is_checkout(app, invoice).await? => {
            paid::settle(app, transfer, block_hash, deep).await?
        }
        Some(_) | None => {
            app.store.finish(lane, move |tx| moves::credit(&teller, tx, &id, &hash, now)).await?
        }
    };
    let network = transfer.id.network.as_str();
    match credited {
        Some(TransferState::Credited) => {
            tell(network, "credited");
            tracing::info!(transfer = %transfer.id, amount = %transfer.amount, "a deposit was credited");
        }
        Some(TransferState::Held) => {
            tell(network, "held");
            tracing::info!(transfer = %transfer.id, amount = %transfer.amount, "a checkout was paid");
        }
        Some(_) => {
            tell(network, "unmatched");
            // Anybody can send us dust.
            static LINES: EveryMinute = EveryMinute::new();
            if let Some(left_out) = LINES.turn() {
                tracing::warn!(
                    transfer = %transfer.id,
                    amount = %transfer.amount,
                    left_out,
                    "money arrived that is nobody's; see `simgate transfers unmatched`"
                );
            }
        }
        None => {}
    }
    Ok(())
}

/// A transfer was not where we had seen it: finds it again, or takes back what it gave, when enough nodes agree that
/// it is gone. While they do not, it is looked at again in every round.
pub async fn recheck(app: &App, chain: &dyn Chain, transfer: &Transfer, tip: &Tip) -> Result<()> {
    match chain.transaction(&transfer.id.tx_hash, Witness::Quorum).await {
        Err(trouble) => {
            tracing::debug!(transfer = %transfer.id, %trouble, "cannot tell what became of a transfer");
            doubt(app, transfer, true).await
        }
        Ok(mined) => match mined.as_ref().and_then(|mined| shown(mined, transfer)) {
            Some(seen) => {
                note(app, std::slice::from_ref(seen)).await?;
                doubt(app, transfer, false).await
            }
            None if may_come_back(app, terms(app, chain)?, transfer, tip).await? => {
                if transfer.missing {
                    return Ok(());
                }
                let missed = transfer.clone();
                let lane = transfer.account.map_or(LANE, |account| account.0);
                app.store.finish(lane, move |tx| transfers::miss(tx, &missed)).await
            }
            None => vanish(app, transfer).await,
        },
    }
}

async fn doubt(app: &App, transfer: &Transfer, doubted: bool) -> Result<()> {
    if transfer.doubted == doubted {
        return Ok(());
    }
    let id = transfer.id.clone();
    app.store.finish(LANE, move |tx| transfers::doubt(tx, &id, doubted)).await
}

/// A payment that counted after one block is missed for as many blocks as others wait for: a block that is replaced
/// takes it away and usually the next one brings it back. The scanner looks at these blocks again meanwhile. It cannot
/// come back once its signature has moved something else.
async fn may_come_back(app: &App, terms: &NetworkSettings, transfer: &Transfer, tip: &Tip) -> Result<bool> {
    let Some(block) = &transfer.block else { return Ok(false) };
    let looked_at = scan::overlap(app, transfer.id.network) / 2;
    let young = tip.head.number < block.number + terms.confirmations.min(looked_at);
    let quick = transfer.state == TransferState::Held && wait(app, transfer, false) == Wait::Quick;
    Ok(young && quick && twins(app, transfer).await?.is_empty())
}

/// A transfer that is on no chain, as far as we know, may be in a block again.
pub async fn find_again(app: &App, chain: &dyn Chain, transfer: &Transfer) -> Result<()> {
    match chain.transaction(&transfer.id.tx_hash, Witness::Any).await {
        Ok(Some(mined)) if mined.succeeded => note(app, &mined.transfers).await,
        Ok(_) | Err(_) => Ok(()),
    }
}

async fn vanish(app: &App, transfer: &Transfer) -> Result<()> {
    let Some(block) = &transfer.block else { return Ok(()) };
    let (teller, now) = (app.clone(), app.now());
    let (id, hash) = (transfer.id.clone(), block.hash.clone());
    let lane = transfer.account.map_or(LANE, |account| account.0);
    let vanished = app.store.finish(lane, move |tx| moves::vanish(&teller, tx, &id, &hash, now)).await?;
    let network = transfer.id.network.as_str();
    let (transfer, amount) = (&transfer.id, transfer.amount);
    match vanished {
        None => {}
        Some(Vanished::Harmless) => {
            tell(network, "orphaned");
            tracing::info!(%transfer, "a transfer's block was replaced before it counted");
        }
        Some(Vanished::Reversed { taken, owed }) => {
            tell(network, "reversed");
            tracing::error!(%transfer, %amount, %taken, %owed,
                "a credited transfer vanished from the chain; it was taken back, and its account may not buy until it is \
                 back or settled otherwise, or `simgate partner resume`");
        }
        Some(Vanished::TooLate) => {
            tell(network, "lost");
            tracing::error!(%transfer, %amount,
                "a transfer that was returned or written off vanished from the chain; see docs/settlement.md");
        }
    }
    Ok(())
}
