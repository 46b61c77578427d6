//! From what a chain shows to what is in a wallet. The scanner, a partner's verify and the daily look at balances
//! all come through here, so a transfer is written down, credited and taken back by one set of rules.

use metrics::counter;

use super::checkout;
use crate::app::App;
use crate::chain::{Chain, Mined, Tip, Witness};
use crate::config::{FinalBy, NetworkSettings};
use crate::domain::network::AddressKind;
use crate::domain::transfer::{Sighting, Transfer, TransferState};
use crate::error::{Error, Result};
use crate::store::transfers::{self, Noted, Vanished};

/// So many sightings are written down at once: a write stays short.
const AT_ONCE: usize = 100;

/// The write lane of transfers whose owner is not known yet.
const LANE: i64 = 0;

/// Writes down what was seen. Transfers to addresses that are not ours are left out.
pub async fn note(app: &App, seen: &[Sighting]) -> Result<()> {
    let (dust, now) = (app.settings.settlement.dust, app.now());
    for part in seen.chunks(AT_ONCE) {
        let part = part.to_vec();
        let noted = app
            .store
            .finish(LANE, move |tx| {
                part.iter().map(|seen| transfers::note(tx, seen, dust, now)).collect::<Result<Vec<Noted>>>()
            })
            .await?;
        for (seen, noted) in seen.iter().zip(noted) {
            if noted == Noted::New {
                tell(seen.id.network.as_str(), "seen");
                tracing::info!(transfer = %seen.id, amount = %seen.amount, "a transfer was seen");
            }
        }
    }
    Ok(())
}

fn tell(network: &'static str, outcome: &'static str) {
    counter!("simgate_transfers_total", "network" => network, "outcome" => outcome).increment(1);
}

/// The network's settings; a chain exists only for a network that has them.
pub fn terms(app: &App, chain: &dyn Chain) -> Result<NetworkSettings> {
    let found = app.settings.settlement.networks.get(&chain.network()).cloned();
    found.ok_or_else(|| Error::fault("a chain without settings"))
}

/// Up to which block a transfer of this size counts.
pub fn final_up_to(terms: &NetworkSettings, chain: &dyn Chain, transfer: &Transfer, tip: &Tip) -> i64 {
    let deep_enough = tip.head.number - terms.confirmations + 1;
    let called_final = match terms.final_by {
        FinalBy::Safe => tip.safe,
        FinalBy::Finalized => tip.finalized,
    };
    match chain.network().kind() {
        // A block there is final when most of the producers have built on it, whatever its depth.
        AddressKind::Tron => tip.finalized,
        AddressKind::Evm if transfer.amount >= terms.final_from => deep_enough.min(called_final),
        AddressKind::Evm => deep_enough,
    }
}

/// The transfer as this transaction makes it, if it does.
fn shown<'a>(mined: &'a Mined, transfer: &Transfer) -> Option<&'a Sighting> {
    let found = mined.transfers.iter().find(|seen| seen.id == transfer.id).filter(|_| mined.succeeded)?;
    let same = found.currency == transfer.currency
        && found.recipient == transfer.address
        && found.amount == transfer.amount;
    same.then_some(found)
}

/// Credits a transfer if it is final by now, on the word of a second node. A transfer that this node does not
/// have where we saw it waits; the scanner finds out what became of it.
pub async fn credit_if_final(app: &App, chain: &dyn Chain, transfer: &Transfer, tip: &Tip) -> Result<()> {
    let terms = terms(app, chain)?;
    let Some(block) = &transfer.block else { return Ok(()) };
    if !transfer.state.is_open() || block.number > final_up_to(&terms, chain, transfer, tip) {
        return Ok(());
    }
    let mined = match chain.transaction(&transfer.id.tx_hash, Witness::Second).await {
        Ok(mined) => mined,
        Err(trouble) => {
            tracing::warn!(transfer = %transfer.id, %trouble, "a final transfer waits: no second node confirms it");
            return Ok(());
        }
    };
    match mined.as_ref().and_then(|mined| shown(mined, transfer)) {
        Some(seen) if seen.block.hash == block.hash => credit(app, transfer, &block.hash).await,
        Some(seen) => note(app, std::slice::from_ref(seen)).await,
        None => {
            tell(chain.network().as_str(), "disputed");
            tracing::warn!(transfer = %transfer.id, "a second node does not show this transfer; nothing is credited");
            recheck(app, chain, transfer).await
        }
    }
}

async fn credit(app: &App, transfer: &Transfer, block_hash: &str) -> Result<()> {
    let (dust, now) = (app.settings.settlement.dust, app.now());
    let (id, hash) = (transfer.id.clone(), block_hash.to_string());
    let lane = transfer.account.map_or(LANE, |account| account.0);
    let credited = match &transfer.invoice {
        Some(invoice) if checkout::is_one(app, invoice).await? => {
            checkout::settle(app, transfer, block_hash).await?
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

/// A transfer was not where we had seen it: finds it again, or takes back what it gave. Money that was posted
/// is taken back only when two nodes agree that the transfer is gone.
pub async fn recheck(app: &App, chain: &dyn Chain, transfer: &Transfer) -> Result<()> {
    let posted = !matches!(transfer.state, TransferState::Seen | TransferState::Orphaned);
    let witnesses = if posted { &[Witness::Any, Witness::Second][..] } else { &[Witness::Any] };
    for witness in witnesses {
        match chain.transaction(&transfer.id.tx_hash, *witness).await {
            Err(trouble) => {
                tracing::debug!(transfer = %transfer.id, %trouble, "cannot tell what became of a transfer");
                return Ok(());
            }
            Ok(mined) => {
                if let Some(seen) = mined.as_ref().and_then(|mined| shown(mined, transfer)) {
                    return note(app, std::slice::from_ref(seen)).await;
                }
            }
        }
    }
    vanish(app, transfer).await
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
                "a credited transfer vanished from the chain; it was taken back and its account may not buy until \
                 `simgate partner resume`");
        }
        Some(Vanished::TooLate) => {
            tell(network, "lost");
            tracing::error!(%transfer, %amount,
                "a transfer that was returned or written off vanished from the chain; see docs/settlement.md");
        }
    }
    Ok(())
}
