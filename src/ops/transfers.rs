//! What operators do about money on the chains: find owners for unmatched transfers, and record what they moved
//! themselves (payouts, sweeps). We hold no spending key, so nothing here moves a token.

use super::LANE;
use super::audit::audit_line;
use super::booking::moves::{self, Disposal};
use super::mail::{self, Letter};
use super::operator::gist;
use crate::app::App;
use crate::domain::checkout::Checkout;
use crate::domain::ids::EntryId;
use crate::domain::ledger::{Entry, Purse};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::Refusal;
use crate::domain::transfer::{Transfer, TransferId};
use crate::error::{Error, Result};
use crate::store::accounts::Account;
use crate::store::ledger::{self, Note};
use crate::store::tx::Tx;
use crate::store::{audit, cash, checkouts, transfers, users, wallet};

/// A transfer that waits for an operator's decision, and the checkouts that it may have been meant for.
pub struct Unmatched {
    pub transfer: Transfer,
    pub near: Vec<Checkout>,
}

/// The transfers that wait for an operator's decision, network by network, the longest waiting first.
pub async fn unmatched(app: &App) -> Result<Vec<Unmatched>> {
    let fee = app.settings.settlement.exchange_fee;
    let read = move |tx: &mut Tx| {
        let mut found = Vec::new();
        for transfer in transfers::unmatched(tx)? {
            let near = fitting(tx, &transfer, fee)?;
            found.push(Unmatched { transfer, near });
        }
        Ok(found)
    };
    app.store.snapshot(read).await
}

/// The unpaid checkouts that a transfer may have been meant for: those on its address at its time, near its amount,
/// since exchanges keep a fee and people round.
fn fitting(tx: &mut Tx, transfer: &Transfer, fee: Usd) -> Result<Vec<Checkout>> {
    let Some(block) = &transfer.block else { return Ok(Vec::new()) };
    let amount = transfer.amount;
    let margin = fee.max(Usd::dollars(1)).plus(Usd::from_micros(amount.micros() / 10));
    let range = (amount.minus(margin), amount.plus(margin));
    checkouts::near(tx, &transfer.address, amount, range, block.time)
}

/// What a checkout asks for, in words.
pub fn asked_for(checkout: &Checkout) -> String {
    format!("{} {} on {}", checkout.amount, checkout.currency.as_str(), checkout.network.as_str())
}

/// The reason for giving a transfer to somebody, for the books and the audit log. When several checkouts fit, the
/// operator must say what proves whose it is.
pub async fn grounds(
    app: &App,
    id: &TransferId,
    reason: Option<String>,
    proof: Option<String>,
) -> Result<Option<String>> {
    let (wanted, fee) = (id.clone(), app.settings.settlement.exchange_fee);
    let read = move |tx: &mut Tx| match transfers::by_id(tx, &wanted)? {
        Some(transfer) => fitting(tx, &transfer, fee),
        None => Ok(Vec::new()),
    };
    let near = app.store.read(read).await?;
    if near.len() > 1 && proof.is_none() {
        let named = |near: &Checkout| {
            format!("{} ({}) asks for {}", near.id, app.numbers.of_checkout(near), asked_for(near))
        };
        let named: Vec<String> = near.iter().map(named).collect();
        let message = format!(
            "is needed, because {} checkouts fit: {}. Say what proves whose it is: a signature of the sender, a second \
             transfer from it, an exchange's receipt",
            near.len(),
            named.join("; ")
        );
        return Err(Refusal::field("proof", message).into());
    }
    let proof = proof.map(|proof| format!("proof: {proof}"));
    Ok(match (reason, proof) {
        (Some(reason), Some(proof)) => Some(format!("{reason}; {proof}")),
        (reason, proof) => reason.or(proof),
    })
}

pub async fn count_unmatched(app: &App) -> Result<i64> {
    app.store.read(transfers::count_unmatched).await
}

/// Gives an unmatched transfer to an account.
pub async fn assign(
    app: &App,
    actor: &str,
    id: &TransferId,
    to: &Account,
    reason: Option<&str>,
) -> Result<Transfer> {
    let what = format!("to {}", to.id);
    dispose(app, actor, "transfers assign", id, Disposal::Assign(to.no), &what, reason).await
}

/// Records that the operator has sent an unmatched transfer back, by this transaction.
pub async fn returned(
    app: &App,
    actor: &str,
    id: &TransferId,
    tx_hash: &str,
    reason: Option<&str>,
) -> Result<Transfer> {
    let what = format!("by {tx_hash}");
    dispose(app, actor, "transfers returned", id, Disposal::Return, &what, reason).await
}

/// Gives up the search for an unmatched transfer's owner.
pub async fn write_off(app: &App, actor: &str, id: &TransferId, reason: &str) -> Result<Transfer> {
    dispose(app, actor, "transfers write-off", id, Disposal::WriteOff, "unclaimed", Some(reason)).await
}

async fn dispose(
    app: &App,
    actor: &str,
    command: &'static str,
    id: &TransferId,
    decision: Disposal,
    what: &str,
    reason: Option<&str>,
) -> Result<Transfer> {
    let wanted = id.clone();
    let known = app.store.read(move |tx| transfers::by_id(tx, &wanted)).await?;
    let amount = known.ok_or(Refusal::TransferNotFound)?.amount;
    let text = match reason {
        Some(reason) => format!("{what}: {reason}"),
        None => what.to_string(),
    };
    let line = audit_line(app, actor, command, format!("{id}, {amount} USD {text}"));
    let lane = match decision {
        Disposal::Assign(owner) => owner.0,
        Disposal::Return | Disposal::WriteOff => LANE,
    };
    let (id, actor, now, slip) = (id.clone(), actor.to_string(), app.now(), mail::slip(app));
    let decide = move |tx: &mut Tx| {
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return transfers::by_id(tx, &id)?.ok_or_else(|| Error::fault("a transfer is gone"));
        }
        let note = Note { actor: Some(&actor), text: Some(&text) };
        let ended = moves::dispose(tx, &id, &decision, note, now)?;
        let ended = ended.ok_or(Refusal::TransferNotUnmatched)?;
        audit::record(tx, &line.changing("UNMATCHED", ended.state.as_str()))?;
        if let Disposal::Assign(owner) = decision
            && let Some(email) = users::email(tx, owner)?
        {
            mail::queue(tx, &slip, &email, &Letter::Credited { amount: ended.amount.to_string() }, None)?;
        }
        Ok(ended)
    };
    let ended = app.store.write(lane, decide).await?;
    mail::wake(app);
    Ok(ended)
}

/// Money that the operator has paid out to an account.
pub struct Payout {
    pub account: Account,
    pub amount: Usd,
    pub from: Purse,
    /// For a payout from our addresses.
    pub tx_hash: Option<String>,
    pub reason: String,
}

/// Takes a payout off its account's wallet. Answers the new balance.
pub async fn record_payout(app: &App, actor: &str, payout: Payout) -> Result<Usd> {
    let Payout { account, amount, from, tx_hash, reason } = payout;
    // A payout is named after its transaction, so it cannot be recorded twice.
    let (id, way) = match (from, &tx_hash) {
        (Purse::Cash(network, currency), Some(hash)) => (
            EntryId::from_text(format!("payout.{}.{hash}.{}", network.as_str(), account.id)),
            format!("{} on {} by {hash}", currency.as_str(), network.as_str()),
        ),
        (Purse::Cash(..), None) | (Purse::Bank, _) => (app.new_entry_id(), "from the bank".into()),
    };
    let entry = Entry::payout(&id, account.no, from, amount);
    let line =
        audit_line(app, actor, "payout record", format!("{} {way}: {reason}", gist(&account.id, amount)));
    let (no, actor, now) = (account.no, actor.to_string(), app.now());
    let text = format!("{reason} ({way})");
    let pay = move |tx: &mut Tx| {
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(wallet::read(tx, no)?.balance);
        }
        wallet::lock(tx, no)?;
        if ledger::exists(tx, &entry.id)? {
            return Err(Refusal::TransferAlreadyUsed.into());
        }
        if let Purse::Cash(network, currency) = from {
            require_cash(tx, network, currency, amount)?;
        }
        let note = Note { actor: Some(&actor), text: Some(&text) };
        let before = wallet::read(tx, no)?.balance;
        let balance = ledger::post(tx, &entry, now, note)?.unwrap_or_default();
        audit::record(tx, &line.changing(format!("{before} USD"), format!("{balance} USD")))?;
        Ok(balance)
    };
    app.store.write(no.0, pay).await
}

/// Money that the operator has moved from our addresses to the treasury.
pub struct Sweep {
    pub network: Network,
    pub currency: Currency,
    pub amount: Usd,
    pub tx_hash: String,
    pub reason: Option<String>,
}

/// Records a sweep. Answers what the books still hold there.
pub async fn record_sweep(app: &App, actor: &str, sweep: Sweep) -> Result<Usd> {
    let Sweep { network, currency, amount, tx_hash, reason } = sweep;
    // A sweep is named after its transaction, so it cannot be recorded twice.
    let id = EntryId::from_text(format!("sweep.{}.{tx_hash}", network.as_str()));
    let entry = Entry::sweep(&id, network, currency, amount);
    let way = format!("{} on {} by {tx_hash}", currency.as_str(), network.as_str());
    let text = reason.map_or(way.clone(), |reason| format!("{reason} ({way})"));
    let line = audit_line(app, actor, "sweep record", format!("{amount} USD: {text}"));
    let (actor, now) = (actor.to_string(), app.now());
    let move_out = move |tx: &mut Tx| {
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return ledger::cash(tx, network, currency);
        }
        if ledger::exists(tx, &entry.id)? {
            return Err(Refusal::TransferAlreadyUsed.into());
        }
        let held = require_cash(tx, network, currency, amount)?;
        let note = Note { actor: Some(&actor), text: Some(&text) };
        ledger::post(tx, &entry, now, note)?;
        let left = held.minus(amount);
        audit::record(tx, &line.changing(format!("{held} USD"), format!("{left} USD")))?;
        Ok(left)
    };
    app.store.write(LANE, move_out).await
}

/// Refuses to take more from our addresses than the books hold there. Answers what they hold.
fn require_cash(tx: &mut Tx, network: Network, currency: Currency, amount: Usd) -> Result<Usd> {
    let held = cash::held(tx, network, currency)?;
    if amount > held {
        let (currency, network) = (currency.as_str(), network.as_str());
        let message =
            format!("must be at most {held}, which is what the books hold in {currency} on {network}");
        return Err(Refusal::field("amountUsd", message).into());
    }
    Ok(held)
}
