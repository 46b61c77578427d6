//! Transfers and their states. `insert` and `advance` write them; the rules are in `ops/booking/`. `miss` and `doubt` only
//! leave a mark for a later look.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use crate::domain::checkout::{self, Checkout};
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::invoice::{Invoice, Paid};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::time::Time;
use crate::domain::transfer::{Block, Transfer, TransferEvent, TransferId, TransferState};
use crate::error::Result;

columns! { TransferId { network, tx_hash, position } }

columns! {
    Transfer {
        id: TransferId = TransferId::COLUMNS, currency, sender, address, amount,
        block: Option<Block> = "block, block_hash, block_time", state, account, invoice, round, payment_nonce, missing,
        doubted,
    }
}

values! {
    Facts(transfer: Transfer, now: Time) {
        network = transfer.id.network, tx_hash = &transfer.id.tx_hash, position = transfer.id.position, currency, sender,
        address, amount, block = transfer.block.as_ref().map(|block| block.number),
        block_hash = transfer.block.as_ref().map(|block| block.hash.as_str()),
        block_time = transfer.block.as_ref().map(|block| block.time), state, account, invoice, round, payment_nonce,
        updated_at = now,
    }
}

values! { First(now: Time) { seen_at = now } }

macro_rules! select_transfer {
    ($tail:literal) => {
        text!("SELECT ", Transfer::COLUMNS, " FROM transfers ", $tail)
    };
}

queries! {
    BY_ID and LOCK = select_transfer!("WHERE network = ?1 AND tx_hash = ?2 AND position = ?3");
    INSERT = insert_into!("transfers", Facts, First);
    /// `Facts` come first. A transfer that is moved is not missing, and one that is in no block is not doubted.
    MOVE = "UPDATE transfers SET currency = ?4, sender = ?5, address = ?6, amount = ?7, block = ?8, block_hash = ?9,
                block_time = ?10, state = ?11, account = ?12, invoice = ?13, round = ?14, payment_nonce = ?15, updated_at = ?16,
                missing = 0, doubted = CASE WHEN CAST(?8 AS BIGINT) IS NULL THEN 0 ELSE doubted END
            WHERE network = ?1 AND tx_hash = ?2 AND position = ?3 AND state = ?17 AND block_hash IS NOT DISTINCT FROM ?18
            AND round = ?19";
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
    NEWEST_OF_INVOICE = select_transfer!("WHERE invoice = ?1 ORDER BY seen_at DESC, tx_hash DESC, position DESC LIMIT ?2");
    WITHOUT_INVOICE = text!("SELECT ", Transfer::COLUMNS, ", seen_at FROM transfers
                       WHERE account = ?1 AND invoice IS NULL AND seen_at <= ?2
                       ORDER BY seen_at DESC, tx_hash DESC, position DESC LIMIT ?3");
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

/// A transfer that waits in this block to be posted, with the invoice it counts for; nobody else moves it before this
/// write ends.
pub fn lock_open(tx: &mut Tx, id: &TransferId, block_hash: &str) -> Result<Option<(Transfer, InvoiceId)>> {
    let Some(transfer) = lock(tx, id)?.filter(|transfer| transfer.waits_in(block_hash)) else {
        return Ok(None);
    };
    Ok(transfer.invoice.clone().map(|invoice| (transfer, invoice)))
}

/// A transfer that waits for the operator's decision; nobody else moves it before this write ends.
pub fn lock_unmatched(tx: &mut Tx, id: &TransferId) -> Result<Option<Transfer>> {
    Ok(lock(tx, id)?.filter(|transfer| transfer.state == TransferState::Unmatched))
}

/// `by_id`, and nobody else moves it before this write ends.
pub fn lock(tx: &mut Tx, id: &TransferId) -> Result<Option<Transfer>> {
    tx.lock(LOCK, params![id.network, &id.tx_hash, id.position])
}

/// Stores a transfer that is seen for the first time.
pub fn insert(tx: &mut Tx, new: &Transfer, now: Time) -> Result<()> {
    tx.execute(INSERT, &[&Facts::params(new, now)[..], &First::params(&now)].concat()).map(drop)
}

/// Every change of a transfer's state, and of what the chain shows of it, goes through here. The event leads from `seen`
/// to the next state, and `facts` are what is known of the transfer then. `None` when the state does not allow the event
/// or when the transfer has moved since it was seen.
pub fn advance(
    tx: &mut Tx,
    seen: &Transfer,
    event: TransferEvent,
    facts: Transfer,
    now: Time,
) -> Result<Option<Transfer>> {
    let Some(state) = seen.state.after(event) else { return Ok(None) };
    let doubted = seen.doubted && facts.block.is_some();
    let next = Transfer { state, missing: false, doubted, ..facts };
    let hash = seen.block.as_ref().map(|block| block.hash.as_str());
    let values = [&Facts::params(&next, now)[..], params![seen.state, hash, seen.round]].concat();
    Ok((tx.execute(MOVE, &values)? == 1).then_some(next))
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

/// The newest `most` of them, in the order in which they were seen.
pub fn newest_of_invoice(tx: &mut Tx, invoice: &InvoiceId, most: i64) -> Result<Vec<Transfer>> {
    let mut newest = tx.all(NEWEST_OF_INVOICE, params![invoice, most])?;
    newest.reverse();
    Ok(newest)
}

/// What came to an account up to this time and counts for no invoice, newest first, each with the time when it was seen.
pub fn without_invoice(
    tx: &mut Tx,
    account: AccountNo,
    up_to: Time,
    most: i64,
) -> Result<Vec<(Transfer, Time)>> {
    tx.all(WITHOUT_INVOICE, params![account, up_to, most])
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
