//! What becomes of a transfer that is on record. Each move changes its row (`transfers::advance`), posts its entry and
//! restates its invoice in one write. When two instances try the same move, only the first one changes anything.

use crate::app::App;
use crate::domain::checkout::Checkout;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::payback::Payee;
use crate::domain::time::Time;
use crate::domain::transfer::{Transfer, TransferEvent, TransferId, TransferState};
use crate::error::{Error, Result};
use crate::ops::deposits::record;
use crate::store::ledger::{self, Note};
use crate::store::tx::Tx;
use crate::store::{checkouts, debts, guests, invoices, transfers};

/// Something about the payment of an invoice changed, be it a deposit or a checkout. `credited` is what this write has
/// posted for it. The owner of a deposit is told when it moves.
pub(super) fn restate(
    app: &App,
    tx: &mut Tx,
    invoice: Option<&InvoiceId>,
    credited: Usd,
    now: Time,
) -> Result<()> {
    let Some(id) = invoice else { return Ok(()) };
    if checkouts::touch(tx, id, now)? {
        return Ok(());
    }
    let moved = invoices::restate(tx, id, app.settings.settlement.dust, credited, now)?;
    record::tell(app, tx, moved, now)
}

/// It pays for an order now. The caller has locked it.
pub fn hold(tx: &mut Tx, payment: &Transfer, now: Time) -> Result<()> {
    advance_locked(tx, payment, TransferEvent::Held, payment.clone(), now).map(drop)
}

/// It pays for the order of this checkout now, as the operator decided. The caller has locked it.
pub fn assign(tx: &mut Tx, transfer: &Transfer, checkout: &Checkout, now: Time) -> Result<Transfer> {
    let (account, invoice) = (Some(checkout.account), Some(checkout.id.clone()));
    let assigned = Transfer { account, invoice, ..transfer.clone() };
    advance_locked(tx, transfer, TransferEvent::Assigned, assigned, now)
}

fn advance_locked(
    tx: &mut Tx,
    seen: &Transfer,
    event: TransferEvent,
    facts: Transfer,
    now: Time,
) -> Result<Transfer> {
    let moved = transfers::advance(tx, seen, event, facts, now)?;
    moved.ok_or_else(|| Error::fault("a transfer moved although it was locked"))
}

/// The transfer is final in this block: its money is posted. `None` when it is not waiting for that any more.
pub fn credit(
    app: &App,
    tx: &mut Tx,
    id: &TransferId,
    block_hash: &str,
    now: Time,
) -> Result<Option<TransferState>> {
    let Some(transfer) = transfers::by_id(tx, id)?.filter(|transfer| transfer.waits_in(block_hash)) else {
        return Ok(None);
    };
    let payee = match transfer.account {
        Some(owner) => Some(guests::payee(tx, owner, transfer.invoice.as_ref())?),
        None => None,
    };
    // What is owed for it must not change between the look and the entry.
    let owner = debts::lock_payee(tx, payee.as_ref())?;
    let (event, entry) = match payee {
        Some(payee) => {
            let settled = debts::settled_by(tx, &transfer, &payee)?;
            (TransferEvent::Credited, Entry::deposit(&transfer, payee, &settled))
        }
        None => (TransferEvent::Unmatched, Entry::unmatched(&transfer)),
    };
    let Some(booked) = transfers::advance(tx, &transfer, event, transfer.clone(), now)? else {
        return Ok(None);
    };
    ledger::post(tx, &entry, now, Note::default())?;
    if let Some(owner) = owner {
        debts::lift_if_settled(tx, owner)?;
    }
    restate(app, tx, booked.invoice.as_ref(), booked.amount, now)?;
    Ok(Some(booked.state))
}

/// What became of a transfer that is no longer on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vanished {
    /// It had not counted yet.
    Harmless,
    /// It had been posted: this much was taken back from its owner, who owes the rest.
    Reversed { taken: Usd, owed: Usd },
    /// The operator had disposed of it already: only a person can put that right.
    TooLate,
}

/// The block that held the transfer is no longer part of the chain, and no other block holds the transfer. `None` when
/// it is not on record in that block.
pub fn vanish(
    app: &App,
    tx: &mut Tx,
    id: &TransferId,
    block_hash: &str,
    now: Time,
) -> Result<Option<Vanished>> {
    let Some(transfer) = transfers::by_id(tx, id)?.filter(|transfer| transfer.is_in(block_hash)) else {
        return Ok(None);
    };
    let posted = transfer.state.is_taken_back();
    let payee = match transfer.account {
        Some(owner) if posted => Some(guests::payee(tx, owner, transfer.invoice.as_ref())?),
        Some(_) | None => None,
    };
    debts::lock_payee(tx, payee.as_ref())?;
    let gone = Transfer { block: None, round: transfer.round + i64::from(posted), ..transfer.clone() };
    let Some(gone) = transfers::advance(tx, &transfer, TransferEvent::Vanished, gone, now)? else {
        return Ok(None);
    };
    let vanished = match (posted, payee) {
        (true, Some(payee)) => take_back(tx, &transfer, payee, now)?,
        (true, None) => {
            ledger::post(tx, &Entry::unmatched_reversal(&transfer), now, Note::default())?;
            Vanished::Reversed { taken: Usd::ZERO, owed: Usd::ZERO }
        }
        (false, _) if gone.state.is_booked() => Vanished::TooLate,
        (false, _) => Vanished::Harmless,
    };
    restate(app, tx, gone.invoice.as_ref(), Usd::ZERO, now)?;
    Ok(Some(vanished))
}

/// The payee gives back what is left of the transfer. Its own account is suspended; an account that claimed the
/// transfer's invoice is suspended when it owes something.
fn take_back(tx: &mut Tx, transfer: &Transfer, payee: Payee, now: Time) -> Result<Vanished> {
    let taken = debts::left_of(tx, transfer, &payee)?.min(transfer.amount);
    let entry = Entry::reversal(transfer, payee.clone(), taken);
    ledger::post(tx, &entry, now, Note::default())?;
    if let Payee::Wallet(owner) = payee
        && (transfer.account == Some(owner) || debts::of_account(tx, owner)?.is_positive())
    {
        debts::suspend(tx, owner)?;
    }
    Ok(Vanished::Reversed { taken, owed: transfer.amount.minus(taken) })
}

/// The operator's decision about a transfer that is nobody's, with its entry. `None` when it is not waiting for one.
pub fn dispose(
    tx: &mut Tx,
    id: &TransferId,
    decision: &Disposal,
    note: Note,
    now: Time,
) -> Result<Option<Transfer>> {
    let Some(transfer) = transfers::lock_unmatched(tx, id)? else { return Ok(None) };
    let (event, account, entry) = match decision {
        Disposal::Assign(owner) => {
            let entry = Entry::assigned(&transfer, *owner, transfer.amount);
            (TransferEvent::Assigned, Some(*owner), entry)
        }
        Disposal::Return => (TransferEvent::Returned, None, Entry::returned(&transfer)),
        Disposal::WriteOff => (TransferEvent::WrittenOff, None, Entry::written_off(&transfer)),
    };
    let facts = Transfer { account, ..transfer.clone() };
    let disposed = advance_locked(tx, &transfer, event, facts, now)?;
    ledger::post(tx, &entry, now, note)?;
    Ok(Some(disposed))
}

#[derive(Clone, Copy, Debug)]
pub enum Disposal {
    Assign(AccountNo),
    Return,
    WriteOff,
}
