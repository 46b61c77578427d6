//! An operator's credits and debits. With a reference, the same movement is booked once however often it is sent.

use super::account_by_no;
use crate::app::App;
use crate::domain::ids::{AccountId, AccountNo, EntryId};
use crate::domain::ledger::{CreditKind, Entry};
use crate::domain::money::Usd;
use crate::domain::refusal::{Conflict, Refusal};
use crate::domain::time::Time;
use crate::domain::words::words;
use crate::error::Result;
use crate::ops::audit::audit_line;
use crate::store::audit::Line;
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

/// How the line in the audit log begins: whose money, and how much.
pub fn gist(owner: &AccountId, amount: Usd) -> String {
    format!("{owner}: {amount} USD")
}

/// The name of the entry that a reference stands for.
pub fn named_by(reference: &str) -> String {
    format!("ref.{reference}")
}

/// The reference that such an entry carries.
pub fn reference_of(entry: &str) -> Option<&str> {
    entry.strip_prefix("ref.")
}

/// A movement with all that its write must not make itself. Whose wallet it moves is said there: a new partner's is made
/// in the same write.
pub(super) struct Booking {
    id: EntryId,
    direction: Direction,
    amount: Usd,
    kind: CreditKind,
    reason: String,
    actor: String,
    now: Time,
    line: Line,
}

impl Booking {
    pub(super) fn new(
        app: &App,
        actor: &str,
        direction: Direction,
        owner: &AccountId,
        amount: Usd,
        kind: CreditKind,
        reason: &str,
    ) -> Booking {
        let detail = format!("{}, {}: {reason}", gist(owner, amount), kind.as_str());
        let line = audit_line(app, actor, direction.as_str(), detail);
        let (id, now) = (app.new_entry_id(), app.now());
        Booking { id, direction, amount, kind, reason: reason.into(), actor: actor.into(), now, line }
    }

    /// The same under an operator's own reference.
    fn referring_to(mut self, reference: &str) -> Booking {
        self.id = EntryId::from_text(named_by(reference));
        self.line.detail.push_str(&format!(" (ref {reference})"));
        self
    }

    pub(super) fn book(&self, tx: &mut Tx, account: AccountNo) -> Result<Adjusted> {
        let make = match self.direction {
            Direction::Credit => Entry::operator_credit,
            Direction::Debit => Entry::operator_debit,
        };
        let entry = make(&self.id, self.kind, account, self.amount);
        wallet::lock(tx, account)?;
        let before = wallet::read(tx, account)?.balance;
        if tx.is_rerun() && audit::exists(tx, &self.line.id)? {
            return Ok(Adjusted { balance: before, known: false });
        }
        match ledger::is_same(tx, &entry)? {
            Some(true) => return Ok(Adjusted { balance: before, known: true }),
            Some(false) => return Err(Refusal::from(Conflict::default()).into()),
            None => {}
        }
        let note = Note { actor: Some(&self.actor), text: Some(&self.reason) };
        let balance = ledger::post(tx, &entry, self.now, note)?.unwrap_or_default();
        audit::record(tx, &self.line.changing(format!("{before} USD"), format!("{balance} USD")))?;
        Ok(Adjusted { balance, known: false })
    }
}

/// Moves money in or out. A reference that another movement has is refused.
pub async fn adjust_wallet(
    app: &App,
    actor: &str,
    direction: Direction,
    what: Adjustment,
    reference: Option<&str>,
) -> Result<Adjusted> {
    let Adjustment { account, amount, kind, reason } = what;
    let owner = account_by_no(app, account).await?.id;
    let booking = Booking::new(app, actor, direction, &owner, amount, kind, &reason);
    let booking = match reference {
        Some(reference) => booking.referring_to(reference),
        None => booking,
    };
    app.store.write(account.0, move |tx| booking.book(tx, account)).await
}
