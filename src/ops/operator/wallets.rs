//! An operator's credits and debits. With a reference, the same movement is booked once however often it is sent.

use super::account_by_no;
use crate::app::App;
use crate::domain::ids::{AccountId, AccountNo, EntryId};
use crate::domain::ledger::{CreditKind, Entry};
use crate::domain::money::Usd;
use crate::domain::refusal::{Conflict, Refusal};
use crate::domain::words::words;
use crate::error::Result;
use crate::ops::audit::audit_line;
use crate::store::ledger::{self, Note};
use crate::store::tx::Tx;
use crate::store::{audit, wallet};

words! {
    /// Whether money goes in or out; the word is the command's.
    pub enum Direction {
        Credit = "wallet credit",
        Debit = "wallet debit",
    }
}

#[derive(Clone)]
pub struct Adjustment {
    pub account: AccountNo,
    pub amount: Usd,
    pub kind: CreditKind,
    pub reason: String,
}

pub struct Adjusted {
    pub balance: Usd,
    /// The movement was booked before, under the same reference; nothing was done now.
    pub known: bool,
}

/// Puts money into a wallet. Answers the new balance.
pub async fn credit_wallet(app: &App, actor: &str, credit: Adjustment) -> Result<Usd> {
    Ok(adjust_wallet(app, actor, Direction::Credit, credit, None).await?.balance)
}

/// Takes money out of a wallet, never below zero. Answers the new balance.
pub async fn debit_wallet(app: &App, actor: &str, debit: Adjustment) -> Result<Usd> {
    Ok(adjust_wallet(app, actor, Direction::Debit, debit, None).await?.balance)
}

/// How the line in the audit log begins: whose money, and how much.
pub fn gist(owner: &AccountId, amount: Usd) -> String {
    format!("{owner}: {amount} USD")
}

/// The name of the entry that a reference stands for.
pub fn named_by(reference: &str) -> String {
    format!("ref.{reference}")
}

/// Moves money in or out. A reference that another movement has is refused.
pub async fn adjust_wallet(
    app: &App,
    actor: &str,
    direction: Direction,
    what: Adjustment,
    reference: Option<&str>,
) -> Result<Adjusted> {
    let id = match reference {
        Some(reference) => EntryId::from_text(named_by(reference)),
        None => app.new_entry_id(),
    };
    let make = match direction {
        Direction::Credit => Entry::operator_credit,
        Direction::Debit => Entry::operator_debit,
    };
    let entry = make(&id, what.kind, what.account, what.amount);
    let (now, actor_name) = (app.now(), actor.to_string());
    let owner = account_by_no(app, what.account).await?.id;
    let named = reference.map(|reference| format!(" (ref {reference})")).unwrap_or_default();
    let gist = gist(&owner, what.amount);
    let detail = format!("{gist}, {}: {}{named}", what.kind.as_str(), what.reason);
    let line = audit_line(app, actor, direction.as_str(), detail);
    let write = move |tx: &mut Tx| {
        wallet::lock(tx, what.account)?;
        let before = wallet::read(tx, what.account)?.balance;
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(Adjusted { balance: before, known: false });
        }
        match ledger::is_same(tx, &entry)? {
            Some(true) => return Ok(Adjusted { balance: before, known: true }),
            Some(false) => return Err(Refusal::from(Conflict::default()).into()),
            None => {}
        }
        let note = Note { actor: Some(&actor_name), text: Some(&what.reason) };
        let balance = ledger::post(tx, &entry, now, note)?.unwrap_or_default();
        audit::record(tx, &line.changing(format!("{before} USD"), format!("{balance} USD")))?;
        Ok(Adjusted { balance, known: false })
    };
    app.store.write(what.account.0, write).await
}
