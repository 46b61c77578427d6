//! Transfers and what became of them. Each move of a transfer is one conditional statement, with its entry and
//! its invoice in the same write: whoever comes second, on any instance, finds nothing left to do.

mod sighted;

pub use self::sighted::{Noted, Terms, is_old, note, shows};
use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use super::ledger::{self, Note};
use super::owners::Owner;
use super::{checkouts, debts, guests, invoices};
use crate::domain::checkout::{self, Checkout};
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::invoice::{Invoice, Paid};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::payback::Payee;
use crate::domain::time::Time;
use crate::domain::transfer::{Block, Sighting, Transfer, TransferId, TransferState};
use crate::error::{Error, Result};

columns! { TransferId { network, tx_hash, position } }

columns! {
    Transfer {
        id: TransferId = TransferId::COLUMNS, currency, sender, address, amount,
        block: Option<Block> = "block, block_hash, block_time", state, account, invoice, round, payment_nonce, missing,
        doubted,
    }
}

values! {
    /// What a chain shows, and whose it is.
    Facts(seen: Sighting, owner: &'a Owner) {
        network = seen.id.network, tx_hash = &seen.id.tx_hash, position = seen.id.position, currency, sender,
        address = &seen.recipient, amount, block = seen.block.number, block_hash = &seen.block.hash,
        block_time = seen.block.time, account = owner.account, invoice = &owner.invoice,
        payment_nonce = &owner.payment_nonce,
    }
}

values! {
    First(now: Time) { state = TransferState::Seen, round = 0, seen_at = now, updated_at = now }
}

macro_rules! select_transfer {
    ($tail:literal) => {
        text!("SELECT ", Transfer::COLUMNS, " FROM transfers ", $tail)
    };
}

queries! {
    BY_ID and LOCK = select_transfer!("WHERE network = ?1 AND tx_hash = ?2 AND position = ?3");
    INSERT = insert_into!("transfers", Facts, First);
    /// A transfer that counts for nothing, yet or any more, is what the chain says it is now. `Facts` come first.
    REWRITE = "UPDATE transfers SET currency = ?4, sender = ?5, address = ?6, amount = ?7, block = ?8, block_hash = ?9,
                   block_time = ?10, account = ?11, invoice = ?12, payment_nonce = ?13, updated_at = ?14, state = ?15
               WHERE network = ?1 AND tx_hash = ?2 AND position = ?3 AND state = ?16";
    PLACE = "UPDATE transfers SET block = ?4, block_hash = ?5, block_time = ?6, state = ?7, updated_at = ?8, missing = 0
             WHERE network = ?1 AND tx_hash = ?2 AND position = ?3 AND state = ?9";
    END = "UPDATE transfers SET state = ?4, account = ?5, updated_at = ?6, invoice = ?9
           WHERE network = ?1 AND tx_hash = ?2 AND position = ?3 AND state = ?7 AND block_hash = ?8";
    VANISH = "UPDATE transfers SET state = ?4, round = ?5, block = NULL, block_hash = NULL, block_time = NULL, updated_at = ?6, missing = 0, doubted = 0
              WHERE network = ?1 AND tx_hash = ?2 AND position = ?3 AND state = ?7 AND block_hash = ?8";
    DOUBT = "UPDATE transfers SET doubted = ?4 WHERE network = ?1 AND tx_hash = ?2 AND position = ?3 AND +block IS NOT NULL";
    /// Worded so that only the small index fits. In no order, so that some that never end do not hide the others.
    DOUBTED = select_transfer!("WHERE doubted = 1 AND network || '' = ?1 ORDER BY random() LIMIT 20");
    MISS = "UPDATE transfers SET missing = 1 WHERE network = ?1 AND tx_hash = ?2 AND position = ?3 AND state = 'HELD' AND block_hash = ?4";
    IN_BLOCKS = select_transfer!("WHERE network = ?1 AND block IS NOT NULL AND block >= ?2 AND block <= ?3");
    /// Network and block are worded so that only the small index over open transfers fits, here and below.
    OPEN = select_transfer!("WHERE network || '' = ?1 AND state IN ('SEEN', 'REVERSED', 'UNMATCHED') AND state <> 'UNMATCHED'
                             AND +block <= ?2 AND invoice || '' <> '' AND amount >= ?3 ORDER BY +block LIMIT 500");
    OPEN_LAST = select_transfer!("WHERE network || '' = ?1 AND state IN ('SEEN', 'REVERSED', 'UNMATCHED') AND state <> 'UNMATCHED'
                                  AND +block <= ?2 AND (COALESCE(invoice, '') = '' OR amount < ?3) ORDER BY +block LIMIT 25");
    OPEN_AT = select_transfer!("WHERE address = ?1 AND state IN ('SEEN', 'REVERSED') AND block IS NOT NULL AND amount >= ?2 ORDER BY block LIMIT 50");
    /// Not on the chain at present, and not long ago.
    LOST = select_transfer!("WHERE network = ?1 AND state IN ('ORPHANED', 'REVERSED') AND block IS NULL AND updated_at > ?2
                             ORDER BY random() LIMIT 20");
    /// Worded so that only the index over addresses fits.
    RECEIVED_SINCE = "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM transfers
                      WHERE address = ?1 AND network || '' = ?2 AND currency = ?3 AND +block > ?4";
    PAID = "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT),
                   CAST(COALESCE(SUM(CASE WHEN state = 'CREDITED' THEN amount ELSE 0 END), 0) AS BIGINT), MAX(block_time)
            FROM transfers WHERE invoice = ?1 AND block IS NOT NULL";
    OF_INVOICE = select_transfer!("WHERE invoice = ?1 ORDER BY seen_at, tx_hash, position");
    MOVED_BY = select_transfer!("WHERE payment_nonce IS NOT NULL AND payment_nonce = ?3 AND network || '' = ?1 AND sender = ?2");
    /// What counts for no invoice has an index of its own.
    NEARLY = "SELECT 1 FROM transfers WHERE address = ?1 AND amount >= ?2 AND amount <= ?3 AND invoice IS NULL AND account IS NULL
              AND state || '' IN ('SEEN', 'UNMATCHED') AND block_time > ?4 AND block_time < ?5 LIMIT 1";
    OF_TRANSACTION = select_transfer!("WHERE network = ?1 AND tx_hash = ?2 ORDER BY position");
    OF_ADDRESS = select_transfer!("WHERE address = ?1 ORDER BY seen_at DESC LIMIT 50");
    UNMATCHED = select_transfer!("WHERE network || '' = ?1 AND state IN ('SEEN', 'REVERSED', 'UNMATCHED') AND state = 'UNMATCHED' ORDER BY seen_at");
    COUNT_UNMATCHED = "SELECT COUNT(*) FROM transfers WHERE state IN ('SEEN', 'REVERSED', 'UNMATCHED') AND state = 'UNMATCHED'";
    PENDING_SUM = "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM transfers
                   WHERE network || '' = ?1 AND currency = ?2 AND state IN ('SEEN', 'REVERSED', 'UNMATCHED') AND state <> 'UNMATCHED'
                   AND +block IS NOT NULL";
}

pub fn by_id(tx: &mut Tx, id: &TransferId) -> Result<Option<Transfer>> {
    tx.opt(BY_ID, params![id.network, &id.tx_hash, id.position])
}

/// Something about the payment of an invoice changed, be it a deposit or a checkout.
fn restate(tx: &mut Tx, invoice: Option<&InvoiceId>, dust: Usd, now: Time) -> Result<()> {
    match invoice {
        Some(id) if checkouts::touch(tx, id, now)? => Ok(()),
        Some(id) => invoices::restate(tx, id, dust, now),
        None => Ok(()),
    }
}

/// A transfer that waits in this block to be posted, with the invoice it counts for; nobody else moves it before this
/// write ends.
pub fn lock_open(tx: &mut Tx, id: &TransferId, block_hash: &str) -> Result<Option<(Transfer, InvoiceId)>> {
    let Some(transfer) = lock(tx, id)?.filter(|transfer| waits_in(transfer, block_hash)) else {
        return Ok(None);
    };
    Ok(transfer.invoice.clone().map(|invoice| (transfer, invoice)))
}

/// A transfer that waits for the operator's decision; nobody else moves it before this write ends.
pub fn lock_unmatched(tx: &mut Tx, id: &TransferId) -> Result<Option<Transfer>> {
    Ok(lock(tx, id)?.filter(|transfer| transfer.state == TransferState::Unmatched))
}

fn lock(tx: &mut Tx, id: &TransferId) -> Result<Option<Transfer>> {
    tx.lock(LOCK, params![id.network, &id.tx_hash, id.position])
}

fn waits_in(transfer: &Transfer, block_hash: &str) -> bool {
    transfer.state.is_open() && transfer.block.as_ref().is_some_and(|block| block.hash == block_hash)
}

/// It pays for an order now. The caller has locked it.
pub fn hold(tx: &mut Tx, transfer: &Transfer, now: Time) -> Result<()> {
    must_end(tx, transfer, TransferState::Held, now)
}

/// It pays for the order of this checkout now, by the operator's word. The caller has locked it.
pub fn assign(tx: &mut Tx, transfer: &Transfer, checkout: &Checkout, now: Time) -> Result<Transfer> {
    let mut ended = transfer.clone();
    (ended.account, ended.invoice) = (Some(checkout.account), Some(checkout.id.clone()));
    must_end(tx, &ended, TransferState::Assigned, now)?;
    Ok(Transfer { state: TransferState::Assigned, ..ended })
}

fn must_end(tx: &mut Tx, transfer: &Transfer, state: TransferState, now: Time) -> Result<()> {
    if end(tx, transfer, state, transfer.account, now)? {
        Ok(())
    } else {
        Err(Error::fault("a transfer moved although it was locked"))
    }
}

fn end(
    tx: &mut Tx,
    transfer: &Transfer,
    state: TransferState,
    account: Option<AccountNo>,
    now: Time,
) -> Result<bool> {
    let TransferId { network, tx_hash, position } = &transfer.id;
    let values = params![
        network,
        tx_hash,
        *position,
        state,
        account,
        now,
        transfer.state,
        transfer.block.as_ref().map(|block| block.hash.as_str()),
        &transfer.invoice
    ];
    Ok(tx.execute(END, values)? == 1)
}

/// The transfer is final in this block: its money is posted. `None` when it is not waiting for that any more.
pub fn credit(
    tx: &mut Tx,
    id: &TransferId,
    block_hash: &str,
    dust: Usd,
    now: Time,
) -> Result<Option<TransferState>> {
    let Some(transfer) = by_id(tx, id)?.filter(|transfer| waits_in(transfer, block_hash)) else {
        return Ok(None);
    };
    let payee = match transfer.account {
        Some(owner) => Some(guests::payee(tx, owner, transfer.invoice.as_ref())?),
        None => None,
    };
    // What is owed for it must not change between the look and the entry.
    let owner = debts::lock_payee(tx, payee.as_ref())?;
    let (state, entry) = match payee {
        Some(payee) => {
            let settled = debts::settled_by(tx, &transfer, &payee)?;
            (TransferState::Credited, Entry::deposit(&transfer, payee, &settled))
        }
        None => (TransferState::Unmatched, Entry::unmatched(&transfer)),
    };
    if !end(tx, &transfer, state, transfer.account, now)? {
        return Ok(None);
    }
    ledger::post(tx, &entry, now, Note::default())?;
    if let Some(owner) = owner {
        debts::lift_if_settled(tx, owner)?;
    }
    restate(tx, transfer.invoice.as_ref(), dust, now)?;
    Ok(Some(state))
}

/// What became of a transfer that is on the chain no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vanished {
    /// It had not counted yet.
    Harmless,
    /// It had been posted: this much was taken back from its owner, who owes the rest.
    Reversed { taken: Usd, owed: Usd },
    /// The operator had disposed of it already: only a person can put that right.
    TooLate,
}

/// The block of a payment that counted at once was replaced, and no other block holds it so far.
pub fn miss(tx: &mut Tx, transfer: &Transfer) -> Result<()> {
    let TransferId { network, tx_hash, position } = &transfer.id;
    let hash = transfer.block.as_ref().map(|block| block.hash.as_str());
    tx.execute(MISS, params![network, tx_hash, *position, hash]).map(drop)
}

/// Whether nodes disagree about where a transfer is: then it is looked at again until they do not.
pub fn doubt(tx: &mut Tx, id: &TransferId, doubted: bool) -> Result<()> {
    let TransferId { network, tx_hash, position } = id;
    tx.execute(DOUBT, params![network, tx_hash, *position, doubted]).map(drop)
}

pub fn doubted(tx: &mut Tx, network: Network) -> Result<Vec<Transfer>> {
    tx.all(DOUBTED, params![network])
}

/// The block that held the transfer is not part of the chain any more, and no other block holds it.
pub fn vanish(
    tx: &mut Tx,
    id: &TransferId,
    block_hash: &str,
    dust: Usd,
    now: Time,
) -> Result<Option<Vanished>> {
    let Some(transfer) = by_id(tx, id)? else { return Ok(None) };
    if transfer.block.as_ref().is_none_or(|block| block.hash != block_hash) {
        return Ok(None);
    }
    let posted = matches!(
        transfer.state,
        TransferState::Credited | TransferState::Held | TransferState::Assigned | TransferState::Unmatched
    );
    let state = match transfer.state {
        TransferState::Seen | TransferState::Orphaned => TransferState::Orphaned,
        TransferState::Credited
        | TransferState::Held
        | TransferState::Assigned
        | TransferState::Unmatched
        | TransferState::Reversed => TransferState::Reversed,
        ended @ (TransferState::Returned | TransferState::WrittenOff) => ended,
    };
    let payee = match transfer.account {
        Some(owner) if posted => Some(guests::payee(tx, owner, transfer.invoice.as_ref())?),
        Some(_) | None => None,
    };
    debts::lock_payee(tx, payee.as_ref())?;
    let TransferId { network, tx_hash, position } = id;
    let round = transfer.round + i64::from(posted);
    let values = params![network, tx_hash, *position, state, round, now, transfer.state, block_hash];
    if tx.execute(VANISH, values)? == 0 {
        return Ok(None);
    }
    let vanished = match (posted, payee) {
        (true, Some(payee)) => {
            let left = debts::left_of(tx, &transfer, &payee)?;
            let taken = left.min(transfer.amount);
            let entry = Entry::reversal(&transfer, payee.clone(), taken);
            ledger::post(tx, &entry, now, Note::default())?;
            if let Payee::Wallet(owner) = payee
                && (transfer.account == Some(owner) || debts::of_account(tx, owner)?.is_positive())
            {
                debts::suspend(tx, owner)?;
            }
            Vanished::Reversed { taken, owed: transfer.amount.minus(taken) }
        }
        (true, None) => {
            ledger::post(tx, &Entry::unmatched_reversal(&transfer), now, Note::default())?;
            Vanished::Reversed { taken: Usd::ZERO, owed: Usd::ZERO }
        }
        (false, _) if state == transfer.state && !transfer.state.is_open() => Vanished::TooLate,
        (false, _) => Vanished::Harmless,
    };
    restate(tx, transfer.invoice.as_ref(), dust, now)?;
    Ok(Some(vanished))
}

/// The operator's decision about a transfer that is nobody's, with its entry. `None` when it is not waiting for one.
pub fn dispose(
    tx: &mut Tx,
    id: &TransferId,
    decision: &Disposal,
    note: Note,
    now: Time,
) -> Result<Option<Transfer>> {
    let Some(transfer) = by_id(tx, id)? else { return Ok(None) };
    if transfer.state != TransferState::Unmatched {
        return Ok(None);
    }
    let (state, account, entry) = match decision {
        Disposal::Assign(owner) => {
            (TransferState::Assigned, Some(*owner), Entry::assigned(&transfer, *owner, transfer.amount))
        }
        Disposal::Return => (TransferState::Returned, None, Entry::returned(&transfer)),
        Disposal::WriteOff => (TransferState::WrittenOff, None, Entry::written_off(&transfer)),
    };
    if !end(tx, &transfer, state, account, now)? {
        return Ok(None);
    }
    ledger::post(tx, &entry, now, note)?;
    Ok(Some(Transfer { state, account, ..transfer }))
}

#[derive(Clone, Copy, Debug)]
pub enum Disposal {
    Assign(AccountNo),
    Return,
    WriteOff,
}

/// Transfers that we have in these blocks.
pub fn in_blocks(tx: &mut Tx, network: Network, from: i64, to: i64) -> Result<Vec<Transfer>> {
    tx.all(IN_BLOCKS, params![network, from, to])
}

/// Transfers up to this block that wait for it to become final, the oldest first: at most 500 that pay for something, and
/// a few that do not or are worth less than `least`. Anybody can send us any number of the latter.
pub fn open(tx: &mut Tx, network: Network, up_to: i64, least: Usd) -> Result<Vec<Transfer>> {
    let mut open = tx.all(OPEN, params![network, up_to, least])?;
    open.extend(tx.all::<Transfer>(OPEN_LAST, params![network, up_to, least])?);
    Ok(open)
}

/// Those that wait at an address, the oldest first, at most 50, and none that are worth less than `least`.
pub fn open_at(tx: &mut Tx, address: &str, least: Usd) -> Result<Vec<Transfer>> {
    tx.all(OPEN_AT, params![address, least])
}

/// Transfers that were on the chain and are not now, since then: somebody should ask for them again.
pub fn lost(tx: &mut Tx, network: Network, since: Time) -> Result<Vec<Transfer>> {
    tx.all(LOST, params![network, since])
}

/// What we know to have come to an address in later blocks than this one.
pub fn received_since(
    tx: &mut Tx,
    address: &str,
    network: Network,
    currency: Currency,
    block: i64,
) -> Result<Usd> {
    tx.one(RECEIVED_SINCE, params![address, network, currency, block])
}

/// What an invoice's transfers come to.
pub fn paid(tx: &mut Tx, invoice: &Invoice) -> Result<Paid> {
    let (received, credited, newest): (Usd, Usd, Option<Time>) = tx.one(PAID, params![&invoice.id])?;
    Ok(Paid { received, credited, late: newest.is_some_and(|time| time >= invoice.expires_at) })
}

/// In the order in which they were seen.
pub fn of_invoice(tx: &mut Tx, invoice: &InvoiceId) -> Result<Vec<Transfer>> {
    tx.all(OF_INVOICE, params![invoice])
}

/// What is on the chain that a payer's signature moved and that pays for an invoice.
pub fn moved_by(tx: &mut Tx, network: Network, payer: &str, nonce: &str) -> Result<Vec<Transfer>> {
    let mut moved: Vec<Transfer> = tx.all(MOVED_BY, params![network, payer, nonce])?;
    moved.retain(|transfer| transfer.block.is_some());
    Ok(moved)
}

/// What else the signature moved that moved this one. A token lets a signature move money once, so one of them is on a
/// branch of the chain that was given up.
pub fn twins(tx: &mut Tx, transfer: &Transfer) -> Result<Vec<Transfer>> {
    let Some(nonce) = &transfer.payment_nonce else { return Ok(Vec::new()) };
    let mut twins = moved_by(tx, transfer.id.network, &transfer.sender, nonce)?;
    twins.retain(|twin| twin.id != transfer.id);
    Ok(twins)
}

/// Whether something came to the address of this checkout, in its time, that is nobody's and nearly what it asks for.
pub fn any_nearly(tx: &mut Tx, checkout: &Checkout) -> Result<bool> {
    let (from, to) = checkout::nearly(checkout.amount);
    // A block's time is told in whole seconds.
    let since = checkout.created_at.plus_millis(-1_000);
    let values = params![&checkout.address, from, to, since, checkout.late_until];
    tx.any(NEARLY, values)
}

pub fn of_transaction(tx: &mut Tx, network: Network, tx_hash: &str) -> Result<Vec<Transfer>> {
    tx.all(OF_TRANSACTION, params![network, tx_hash])
}

pub fn of_address(tx: &mut Tx, address: &str) -> Result<Vec<Transfer>> {
    tx.all(OF_ADDRESS, params![address])
}

/// What waits for the operator, on every network.
pub fn unmatched(tx: &mut Tx) -> Result<Vec<Transfer>> {
    let mut found = Vec::new();
    for network in Network::ALL {
        found.extend(tx.all::<Transfer>(UNMATCHED, params![network])?);
    }
    Ok(found)
}

pub fn count_unmatched(tx: &mut Tx) -> Result<i64> {
    tx.one(COUNT_UNMATCHED, &[])
}

/// Seen on a chain and not booked yet.
pub fn pending_sum(tx: &mut Tx, network: Network, currency: Currency) -> Result<Usd> {
    tx.one(PENDING_SUM, params![network, currency])
}
