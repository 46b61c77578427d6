//! How far each network was scanned, who scans it, and the recent blocks as they were then. One instance holds a
//! network at a time; its fence number rises with every change of hands, and a write under an old number does nothing.

use super::tx::{Row, Tx, params, queries};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::time::Time;
use crate::domain::transfer::Block;
use crate::error::Result;

/// How many recent blocks are remembered for each network.
const REMEMBERED: i64 = 512;

queries! {
    GET = "SELECT scanned, scanned_time, head, head_time, safe, finalized, fence, balances_at FROM cursors WHERE network = ?1";
    CREATE = "INSERT INTO cursors (network, scanned, scanned_time, head, head_time, safe, finalized, holder, fence, held_until, balances_at)
              VALUES (?1, ?2, ?3, ?2, ?3, 0, 0, '', 0, 0, 0) ON CONFLICT (network) DO NOTHING";
    TAKE = "UPDATE cursors SET fence = CASE WHEN holder = ?2 THEN fence ELSE fence + 1 END, holder = ?2, held_until = ?4
            WHERE network = ?1 AND (holder = ?2 OR held_until < ?3) RETURNING fence";
    RELEASE = "UPDATE cursors SET held_until = 0 WHERE holder = ?1";
    ADVANCE = "UPDATE cursors SET scanned = ?3, scanned_time = ?4, head = ?5, head_time = ?6, safe = ?7, finalized = ?8
               WHERE network = ?1 AND fence = ?2";
    REWIND = "UPDATE cursors SET scanned = ?3 WHERE network = ?1 AND fence = ?2 AND scanned > ?3";
    BACK = "UPDATE cursors SET scanned = scanned - ?2 WHERE network = ?1 AND scanned > ?2";
    REMEMBER = "INSERT INTO blocks (network, number, hash, time) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (network, number) DO UPDATE SET hash = excluded.hash, time = excluded.time";
    FORGET_ABOVE = "DELETE FROM blocks WHERE network = ?1 AND number > ?2";
    FORGET_OLD = "DELETE FROM blocks WHERE network = ?1 AND number < (
                      SELECT MIN(number) FROM (SELECT number FROM blocks WHERE network = ?1 ORDER BY number DESC LIMIT ?2) AS newest)";
    NEWEST = "SELECT number, hash, time FROM blocks WHERE network = ?1 ORDER BY number DESC LIMIT ?2";
    BALANCES_DONE = "UPDATE cursors SET balances_at = ?2 WHERE network = ?1";
    CHECKED = "SELECT amount, block FROM balance_checks WHERE network = ?1 AND address = ?2 AND currency = ?3";
    CHECK = "INSERT INTO balance_checks (network, address, currency, amount, block) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (network, address, currency) DO UPDATE SET amount = excluded.amount, block = excluded.block";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Every block up to this one was looked at.
    pub scanned: i64,
    pub scanned_time: Time,
    pub head: i64,
    pub head_time: Time,
    pub safe: i64,
    pub finalized: i64,
    pub fence: i64,
    /// When resting addresses were last looked at.
    pub balances_at: Time,
}

pub fn get(tx: &mut Tx, network: Network) -> Result<Option<Cursor>> {
    tx.opt(GET, params![network.as_str()], |row| {
        Ok(Cursor {
            scanned: row.int(0)?,
            scanned_time: row.time(1)?,
            head: row.int(2)?,
            head_time: row.time(3)?,
            safe: row.int(4)?,
            finalized: row.int(5)?,
            fence: row.int(6)?,
            balances_at: row.time(7)?,
        })
    })
}

/// Scanning begins after this block. Does nothing when it has begun.
pub fn create(tx: &mut Tx, network: Network, after: i64, time: Time) -> Result<()> {
    tx.execute(CREATE, params![network.as_str(), after, time]).map(drop)
}

/// Takes or keeps a network until then. `None` while another instance holds it.
pub fn take(tx: &mut Tx, network: Network, holder: &str, now: Time, until: Time) -> Result<Option<i64>> {
    tx.write_opt(TAKE, params![network.as_str(), holder, now, until], |row| row.int(0))
}

/// Gives up what this instance holds, so that another need not wait.
pub fn release(tx: &mut Tx, holder: &str) -> Result<()> {
    tx.execute(RELEASE, params![holder]).map(drop)
}

/// Moves on to a scanned block. False when the network has changed hands; then nothing may be written.
pub fn advance(tx: &mut Tx, network: Network, cursor: &Cursor) -> Result<bool> {
    let values = params![
        network.as_str(),
        cursor.fence,
        cursor.scanned,
        cursor.scanned_time,
        cursor.head,
        cursor.head_time,
        cursor.safe,
        cursor.finalized
    ];
    Ok(tx.execute(ADVANCE, values)? == 1)
}

/// The chain was reorganised above this block: everything after it is to be looked at again.
pub fn rewind(tx: &mut Tx, network: Network, fence: i64, to: i64) -> Result<bool> {
    let moved = tx.execute(REWIND, params![network.as_str(), fence, to])? == 1;
    if moved {
        tx.execute(FORGET_ABOVE, params![network.as_str(), to])?;
    }
    Ok(moved)
}

/// Looks at the last `blocks` blocks again, whoever holds the network.
pub fn step_back(tx: &mut Tx, network: Network, blocks: i64) -> Result<()> {
    tx.execute(BACK, params![network.as_str(), blocks]).map(drop)
}

pub fn remember(tx: &mut Tx, network: Network, block: &Block) -> Result<()> {
    tx.execute(REMEMBER, params![network.as_str(), block.number, &block.hash, block.time])?;
    tx.execute(FORGET_OLD, params![network.as_str(), REMEMBERED]).map(drop)
}

/// The remembered blocks, the newest first.
pub fn newest_blocks(tx: &mut Tx, network: Network, limit: i64) -> Result<Vec<Block>> {
    tx.all(NEWEST, params![network.as_str(), limit], |row: &Row| {
        Ok(Block { number: row.int(0)?, hash: row.text(1)?, time: row.time(2)? })
    })
}

pub fn balances_done(tx: &mut Tx, network: Network, now: Time) -> Result<()> {
    tx.execute(BALANCES_DONE, params![network.as_str(), now]).map(drop)
}

/// What an address held when it was last looked at, and at which block that was.
pub fn checked_balance(
    tx: &mut Tx,
    network: Network,
    address: &str,
    currency: Currency,
) -> Result<Option<(Usd, i64)>> {
    tx.opt(CHECKED, params![network.as_str(), address, currency.as_str()], |row| {
        Ok((row.usd(0)?, row.int(1)?))
    })
}

pub fn check_balance(
    tx: &mut Tx,
    network: Network,
    address: &str,
    currency: Currency,
    amount: Usd,
    block: i64,
) -> Result<()> {
    tx.execute(CHECK, params![network.as_str(), address, currency.as_str(), amount, block]).map(drop)
}
