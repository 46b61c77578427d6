//! The simulated chains' world, shared by all instances and kept over restarts. Heights and hashes follow from the
//! clock and are not stored; transfers, forks and each chain's mode are rows. `chain::sim` gives them their meaning.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    CHAIN = text!("SELECT c.genesis, ", Mode::COLUMNS, ", ", Fork::COLUMNS, "
             FROM sim_chains c LEFT JOIN sim_forks f ON f.network = c.network WHERE c.network = ?1 ORDER BY f.fork");
    FOUND = "INSERT INTO sim_chains (network, genesis, mood, behind, lie_block) VALUES (?1, ?2, ?3, 0, 0) ON CONFLICT (network) DO NOTHING";
    SET_MODE = "UPDATE sim_chains SET mood = ?2, behind = ?3, lie_block = ?4 WHERE network = ?1";
    ADD_FORK = "INSERT INTO sim_forks (network, fork, from_block) VALUES (?1, ?2, ?3) ON CONFLICT (network, fork) DO NOTHING";
    HAS_FORK = "SELECT 1 FROM sim_forks WHERE network = ?1 AND fork = ?2 AND from_block = ?3";
    DROP_COVERED = "DELETE FROM sim_forks WHERE network = ?1 AND fork < ?2 AND from_block >= ?3";
    DROP_TRANSFERS = "UPDATE sim_transfers SET block = NULL WHERE network = ?1 AND block >= ?2 AND block <= ?3";
    MOVE_TRANSFERS = "UPDATE sim_transfers SET block = block + ?4 WHERE network = ?1 AND block >= ?2 AND block <= ?3";
    /// A transaction that a reorganisation took back can be mined again.
    ADD_TRANSFER = text!(insert_into!("sim_transfers", New), " ON CONFLICT (network, tx_hash, position) DO UPDATE
                    SET currency = excluded.currency, recipient = excluded.recipient, amount = excluded.amount,
                        succeeded = excluded.succeeded, block = excluded.block
                    WHERE sim_transfers.block IS NULL");
    IN_BLOCKS = text!("SELECT ", Transfer::COLUMNS, " FROM sim_transfers
                 WHERE network = ?1 AND block >= ?2 AND block <= ?3 AND succeeded = 1 ORDER BY block, tx_hash, position");
    OF_TRANSACTION = text!("SELECT ", Transfer::COLUMNS, " FROM sim_transfers
                      WHERE network = ?1 AND tx_hash = ?2 AND block <= ?3 ORDER BY position");
    BALANCE = "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM sim_transfers
               WHERE network = ?1 AND recipient = ?2 AND currency = ?3 AND block <= ?4 AND succeeded = 1";
}

pub struct Chain {
    pub genesis: Time,
    pub mode: Mode,
    /// Oldest first; each begins above the one before it.
    pub forks: Vec<Fork>,
}

pub struct Mode {
    pub word: String,
    pub behind: i64,
    pub lie_block: i64,
}

columns! { Mode in "c" { word = "c.mood", behind, lie_block } }

/// The chain was replaced from this block on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    pub number: i64,
    pub from_block: i64,
}

columns! { Fork in "f" { number = "f.fork", from_block } }

#[derive(Clone, Debug)]
pub struct Transfer {
    pub tx_hash: String,
    pub position: i64,
    pub currency: Currency,
    pub sender: String,
    pub recipient: String,
    pub amount: Usd,
    pub succeeded: bool,
    pub block: i64,
    /// The nonce of the signature that moved it.
    pub payment_nonce: Option<String>,
}

columns! { Transfer { tx_hash, position, currency, sender, recipient, amount, succeeded, block, payment_nonce } }

values! {
    New(new: Transfer, network: Network) {
        network = network, tx_hash, position, currency, sender, recipient, amount, succeeded, block,
        payment_nonce,
    }
}

pub fn chain(tx: &mut Tx, network: Network) -> Result<Option<Chain>> {
    let mut found: Option<Chain> = None;
    for (genesis, mode, fork) in tx.all::<(Time, Mode, Option<Fork>)>(CHAIN, params![network])? {
        found.get_or_insert_with(|| Chain { genesis, mode, forks: Vec::new() }).forks.extend(fork);
    }
    Ok(found)
}

/// Founds a chain: the first caller decides when it began.
pub fn found(tx: &mut Tx, network: Network, genesis: Time, mode: &str) -> Result<()> {
    tx.execute(FOUND, params![network, genesis, mode]).map(drop)
}

pub fn set_mode(tx: &mut Tx, network: Network, mode: &Mode) -> Result<()> {
    let values = params![network, &mode.word, mode.behind, mode.lie_block];
    tx.execute(SET_MODE, values).map(drop)
}

/// Replaces the blocks from `fork.from_block` on. Their transfers up to `head` are mined again `later` blocks further
/// on, or not at all. False when another process took the fork's number: look again.
pub fn fork(tx: &mut Tx, network: Network, fork: Fork, head: i64, later: Option<i64>) -> Result<bool> {
    let Fork { number, from_block } = fork;
    if tx.execute(ADD_FORK, params![network, number, from_block])? == 0 {
        // The fork may be our own, from a run whose answer was lost.
        let ours = tx.any(HAS_FORK, params![network, number, from_block])?;
        return Ok(tx.is_rerun() && ours);
    }
    // An older fork that begins no lower no longer shows in any hash.
    tx.execute(DROP_COVERED, params![network, number, from_block])?;
    match later {
        Some(blocks) => tx.execute(MOVE_TRANSFERS, params![network, from_block, head, blocks])?,
        None => tx.execute(DROP_TRANSFERS, params![network, from_block, head])?,
    };
    Ok(true)
}

/// False when its transaction is on the chain already.
pub fn add_transfer(tx: &mut Tx, network: Network, transfer: &Transfer) -> Result<bool> {
    Ok(tx.execute(ADD_TRANSFER, &New::params(transfer, network))? > 0)
}

/// The transfers in these blocks, in the order of the chain.
pub fn in_blocks(tx: &mut Tx, network: Network, from: i64, to: i64) -> Result<Vec<Transfer>> {
    tx.all(IN_BLOCKS, params![network, from, to])
}

/// What a transaction moved, or tried to move, if it is in a block up to `head`.
pub fn of_transaction(tx: &mut Tx, network: Network, tx_hash: &str, head: i64) -> Result<Vec<Transfer>> {
    tx.all(OF_TRANSACTION, params![network, tx_hash, head])
}

pub fn balance(tx: &mut Tx, network: Network, recipient: &str, currency: Currency, head: i64) -> Result<Usd> {
    tx.one(BALANCE, params![network, recipient, currency, head])
}
