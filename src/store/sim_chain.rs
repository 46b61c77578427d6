//! The simulated chains' world, shared by all instances and kept over restarts. Heights and hashes follow from
//! the clock and are no rows; transfers, forks and each chain's mood are. `chain::sim` gives them their meaning.

use super::tx::{Row, Tx, params, queries};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    CHAIN = "SELECT c.genesis, c.mood, c.behind, c.lie_block, f.fork, f.from_block
             FROM sim_chains c LEFT JOIN sim_forks f ON f.network = c.network WHERE c.network = ?1 ORDER BY f.fork";
    FOUND = "INSERT INTO sim_chains (network, genesis, mood, behind, lie_block) VALUES (?1, ?2, ?3, 0, 0) ON CONFLICT (network) DO NOTHING";
    SET_MOOD = "UPDATE sim_chains SET mood = ?2, behind = ?3, lie_block = ?4 WHERE network = ?1";
    ADD_FORK = "INSERT INTO sim_forks (network, fork, from_block) VALUES (?1, ?2, ?3) ON CONFLICT (network, fork) DO NOTHING";
    HAS_FORK = "SELECT 1 FROM sim_forks WHERE network = ?1 AND fork = ?2 AND from_block = ?3";
    DROP_COVERED = "DELETE FROM sim_forks WHERE network = ?1 AND fork < ?2 AND from_block >= ?3";
    DROP_TRANSFERS = "UPDATE sim_transfers SET block = NULL WHERE network = ?1 AND block >= ?2 AND block <= ?3";
    MOVE_TRANSFERS = "UPDATE sim_transfers SET block = block + ?4 WHERE network = ?1 AND block >= ?2 AND block <= ?3";
    ADD_TRANSFER = "INSERT INTO sim_transfers (network, tx_hash, position, currency, sender, recipient, amount, succeeded, block)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (network, tx_hash, position) DO NOTHING";
    IN_BLOCKS = "SELECT tx_hash, position, currency, sender, recipient, amount, succeeded, block FROM sim_transfers
                 WHERE network = ?1 AND block >= ?2 AND block <= ?3 AND succeeded = 1 ORDER BY block, tx_hash, position";
    OF_TRANSACTION = "SELECT tx_hash, position, currency, sender, recipient, amount, succeeded, block FROM sim_transfers
                      WHERE network = ?1 AND tx_hash = ?2 AND block <= ?3 ORDER BY position";
    BALANCE = "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM sim_transfers
               WHERE network = ?1 AND recipient = ?2 AND currency = ?3 AND block <= ?4 AND succeeded = 1";
}

pub struct Chain {
    pub genesis: Time,
    pub mood: Mood,
    /// Oldest first; each begins above the one before it.
    pub forks: Vec<Fork>,
}

pub struct Mood {
    pub word: String,
    pub behind: i64,
    pub lie_block: i64,
}

/// From this block on the chain was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    pub number: i64,
    pub from_block: i64,
}

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
}

pub fn chain(tx: &mut Tx, network: Network) -> Result<Option<Chain>> {
    let mut found: Option<Chain> = None;
    tx.all(CHAIN, params![network.as_str()], |row| {
        let fork = match row.opt_int(4)? {
            Some(number) => Some(Fork { number, from_block: row.int(5)? }),
            None => None,
        };
        if let Some(chain) = &mut found {
            chain.forks.extend(fork);
        } else {
            let mood = Mood { word: row.text(1)?, behind: row.int(2)?, lie_block: row.int(3)? };
            found = Some(Chain { genesis: row.time(0)?, mood, forks: fork.into_iter().collect() });
        }
        Ok(())
    })?;
    Ok(found)
}

/// Whoever comes first decides when a chain began.
pub fn found(tx: &mut Tx, network: Network, genesis: Time, mood: &str) -> Result<()> {
    tx.execute(FOUND, params![network.as_str(), genesis, mood]).map(drop)
}

pub fn set_mood(tx: &mut Tx, network: Network, mood: &Mood) -> Result<()> {
    let values = params![network.as_str(), &mood.word, mood.behind, mood.lie_block];
    tx.execute(SET_MOOD, values).map(drop)
}

/// Replaces the blocks from `fork.from_block` on. What they held up to `head` is mined again `later` blocks
/// further on, or not at all. False when another process took the fork's number: look again.
pub fn fork(tx: &mut Tx, network: Network, fork: Fork, head: i64, later: Option<i64>) -> Result<bool> {
    let Fork { number, from_block } = fork;
    let name = network.as_str();
    if tx.execute(ADD_FORK, params![name, number, from_block])? == 0 {
        // The fork may be our own, from a run whose answer was lost.
        let ours = tx.opt(HAS_FORK, params![name, number, from_block], |_| Ok(()))?.is_some();
        return Ok(tx.is_rerun() && ours);
    }
    // An older fork that begins no lower shows in no hash any more.
    tx.execute(DROP_COVERED, params![name, number, from_block])?;
    match later {
        Some(blocks) => tx.execute(MOVE_TRANSFERS, params![name, from_block, head, blocks])?,
        None => tx.execute(DROP_TRANSFERS, params![name, from_block, head])?,
    };
    Ok(true)
}

pub fn add_transfer(tx: &mut Tx, network: Network, transfer: &Transfer) -> Result<()> {
    let values = params![
        network.as_str(),
        &transfer.tx_hash,
        transfer.position,
        transfer.currency.as_str(),
        &transfer.sender,
        &transfer.recipient,
        transfer.amount,
        transfer.succeeded,
        transfer.block,
    ];
    tx.execute(ADD_TRANSFER, values).map(drop)
}

/// What moved in these blocks, in the order of the chain.
pub fn in_blocks(tx: &mut Tx, network: Network, from: i64, to: i64) -> Result<Vec<Transfer>> {
    tx.all(IN_BLOCKS, params![network.as_str(), from, to], read)
}

/// What a transaction moved, or tried to, when it is in a block up to `head`.
pub fn of_transaction(tx: &mut Tx, network: Network, tx_hash: &str, head: i64) -> Result<Vec<Transfer>> {
    tx.all(OF_TRANSACTION, params![network.as_str(), tx_hash, head], read)
}

pub fn balance(tx: &mut Tx, network: Network, recipient: &str, currency: Currency, head: i64) -> Result<Usd> {
    tx.one(BALANCE, params![network.as_str(), recipient, currency.as_str(), head], |row| row.usd(0))
}

fn read(row: &Row) -> Result<Transfer> {
    Ok(Transfer {
        tx_hash: row.text(0)?,
        position: row.int(1)?,
        currency: row.word(2, Currency::parse)?,
        sender: row.text(3)?,
        recipient: row.text(4)?,
        amount: row.usd(5)?,
        succeeded: row.flag(6)?,
        block: row.int(7)?,
    })
}
