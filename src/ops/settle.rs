//! From what a chain shows to what is in a wallet. The scanner, a partner's verify and the daily look at balances
//! all come through here, so a transfer is written down, credited and taken back by one set of rules.

use metrics::counter;

use super::checkout::paid;
use super::depth::{Wait, final_up_to, wait};
use super::scan;
use crate::app::App;
use crate::chain::{Chain, Mined, Tip, Witness};
use crate::config::NetworkSettings;
use crate::domain::transfer::{Block, Sighting, Transfer, TransferState};
use crate::error::{Error, Result};
use crate::store::checkouts;
use crate::store::transfers::{self, Noted, Vanished};

/// So many sightings are written down at once: a write stays short.
const AT_ONCE: usize = 100;

/// The write lane of transfers whose owner is not known yet.
const LANE: i64 = 0;

/// Writes down what was seen. Transfers to addresses that are not ours are left out.
pub async fn note(app: &App, seen: &[Sighting]) -> Result<()> {
    let (terms, now) = (app.settings.settlement.terms(), app.now());
    for part in seen.chunks(AT_ONCE) {
        let written = part.to_vec();
        let noted = app
            .store
            .finish(LANE, move |tx| {
                written
                    .iter()
                    .map(|seen| transfers::note(tx, seen, &terms, now))
                    .collect::<Result<Vec<Noted>>>()
            })
            .await?;
        for (seen, noted) in part.iter().zip(noted) {
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
                Noted::Dust => tell(transfer.network.as_str(), "dust"),
                Noted::Moved | Noted::Known | Noted::Foreign => {}
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
    mined.transfers.iter().find(|seen| mined.succeeded && transfers::shows(seen, transfer))
}

/// Credits a transfer if it is final by now, when two nodes agree on it and are both far enough beyond its block.
pub async fn credit_if_final(app: &App, chain: &dyn Chain, transfer: &Transfer, tip: &Tip) -> Result<()> {
    let terms = terms(app, chain)?;
    let Some(block) = &transfer.block else { return Ok(()) };
    if !transfer.state.is_open() {
        return Ok(());
    }
    let wait = wait(app, transfer, is_waited_for(app, transfer).await?);
    if block.number > final_up_to(terms, transfer, wait, tip) {
        return Ok(());
    }
    let mined = match chain.transaction(&transfer.id.tx_hash, Witness::Second).await {
        Ok(mined) => mined,
        Err(trouble) => {
            tell(chain.network().as_str(), "disputed");
            tracing::warn!(transfer = %transfer.id, %trouble, "a final transfer waits: two nodes do not agree on it");
            return Ok(());
        }
    };
    let Some(mined) = mined else { return vanish(app, transfer).await };
    match shown(&mined, transfer) {
        Some(seen) if seen.block.hash == block.hash => {
            let theirs = Tip { head: Block { number: mined.head, ..tip.head.clone() }, ..tip.clone() };
            if block.number > final_up_to(terms, transfer, wait, &theirs) {
                return Ok(());
            }
            recheck_twins(app, chain, transfer, tip).await?;
            let deep = [tip, &theirs]
                .iter()
                .all(|tip| block.number <= final_up_to(terms, transfer, Wait::Usual, tip));
            credit(app, transfer, &block.hash, deep).await
        }
        Some(seen) => note(app, std::slice::from_ref(seen)).await,
        None => vanish(app, transfer).await,
    }
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
    let (dust, now) = (app.settings.settlement.dust, app.now());
    let (id, hash) = (transfer.id.clone(), block_hash.to_string());
    let lane = transfer.account.map_or(LANE, |account| account.0);
    let credited = match &transfer.invoice {
        Some(invoice) if paid::is_checkout(app, invoice).await? => {
            paid::settle(app, transfer, block_hash, deep).await?
        }
        Some(_) | None => {
            app.store.finish(lane, move |tx| transfers::credit(tx, &id, &hash, dust, now)).await?
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
            tracing::warn!(
                transfer = %transfer.id,
                amount = %transfer.amount,
                "money arrived that is nobody's; see `simgate transfers unmatched`"
            );
        }
        None => {}
    }
    Ok(())
}

/// A transfer was not where we had seen it: finds it again, or takes back what it gave, when two nodes agree that
/// it is gone.
pub async fn recheck(app: &App, chain: &dyn Chain, transfer: &Transfer, tip: &Tip) -> Result<()> {
    match chain.transaction(&transfer.id.tx_hash, Witness::Second).await {
        Err(trouble) => {
            tracing::debug!(transfer = %transfer.id, %trouble, "cannot tell what became of a transfer");
            Ok(())
        }
        Ok(mined) => match mined.as_ref().and_then(|mined| shown(mined, transfer)) {
            Some(seen) => note(app, std::slice::from_ref(seen)).await,
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
    let (dust, now) = (app.settings.settlement.dust, app.now());
    let (id, hash) = (transfer.id.clone(), block.hash.clone());
    let lane = transfer.account.map_or(LANE, |account| account.0);
    let vanished = app.store.finish(lane, move |tx| transfers::vanish(tx, &id, &hash, dust, now)).await?;
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
