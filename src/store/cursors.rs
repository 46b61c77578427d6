//! How far each network was scanned, which instance scans it, and the recent blocks as they were then. One instance
//! holds a network at a time; its fence number rises with every change of hands, and a write under an old number does
//! nothing. A turn that would last longer than a new one was taken by a wrong clock, and is void.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::time::Time;
use crate::domain::transfer::Block;
use crate::error::Result;

/// How many recent blocks are remembered for each network.
const REMEMBERED: i64 = 512;

queries! {
    GET = text!("SELECT ", Cursor::COLUMNS, " FROM cursors WHERE network = ?1");
    CREATE = "INSERT INTO cursors (network, scanned, scanned_time, head, holder, fence, held_until, balances_at)
              VALUES (?1, ?2, ?3, ?2, '', 0, 0, 0) ON CONFLICT (network) DO NOTHING";
    TAKE = "UPDATE cursors SET fence = CASE WHEN holder = ?2 THEN fence ELSE fence + 1 END, holder = ?2, held_until = ?4
            WHERE network = ?1 AND (holder = ?2 OR held_until < ?3 OR held_until > ?5) RETURNING fence";
    TURN = text!("SELECT ", Held::COLUMNS, " FROM cursors WHERE network = ?1");
    RELEASE = "UPDATE cursors SET held_until = 0 WHERE holder = ?1";
    ADVANCE = "UPDATE cursors SET scanned = ?3, scanned_time = ?4, head = ?5, held_until = ?6
               WHERE network = ?1 AND fence = ?2";
    REWIND = "UPDATE cursors SET scanned = ?3, scanned_time = ?4 WHERE network = ?1 AND fence = ?2 AND scanned > ?3";
    REMEMBER = "INSERT INTO blocks (network, number, hash, time) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (network, number) DO UPDATE SET hash = excluded.hash, time = excluded.time";
    FORGET_ABOVE = "DELETE FROM blocks WHERE network = ?1 AND number > ?2";
    FORGET_OLD = "DELETE FROM blocks WHERE network = ?1 AND number < (
                      SELECT MIN(number) FROM (SELECT number FROM blocks WHERE network = ?1 ORDER BY number DESC LIMIT ?2) AS newest)";
    NEWEST = text!("SELECT ", Block::COLUMNS, " FROM blocks WHERE network = ?1 ORDER BY number DESC LIMIT ?2");
    TAKE_BALANCES = "UPDATE cursors SET balances_at = ?2 WHERE network = ?1 AND (balances_at < ?3 OR balances_at > ?4)";
    GIVE_BACK_BALANCES = "UPDATE cursors SET balances_at = ?3 WHERE network = ?1 AND balances_at = ?2";
    CHECKED = "SELECT amount, block FROM balance_checks WHERE network = ?1 AND address = ?2 AND currency = ?3";
    CHECK = "INSERT INTO balance_checks (network, address, currency, amount, block) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (network, address, currency) DO UPDATE SET amount = excluded.amount, block = excluded.block";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Every block up to this one was read.
    pub scanned: i64,
    pub scanned_time: Time,
    pub head: i64,
    pub fence: i64,
    /// When the balances of all addresses were last checked.
    pub balances_at: Time,
}

columns! { Cursor { scanned, scanned_time, head, fence, balances_at } }

columns! { Block { number, hash, time } }

pub fn get(tx: &mut Tx, network: Network) -> Result<Option<Cursor>> {
    tx.opt(GET, params![network])
}

/// Sets where scanning begins: after this block. Does nothing when it has begun.
pub fn create(tx: &mut Tx, network: Network, after: i64, time: Time) -> Result<()> {
    tx.execute(CREATE, params![network, after, time]).map(drop)
}

/// Takes or keeps a network until then. `None` while another instance holds it.
pub fn take(tx: &mut Tx, network: Network, holder: &str, now: Time, until: Time) -> Result<Option<i64>> {
    let values = params![network, holder, now, until, until.and_a_little()];
    tx.write_opt(TAKE, values)
}

/// The holder of a turn, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub holder: String,
    pub until: Time,
}

columns! { Held { holder, until = "held_until" } }

/// The holder of a network's scan, even when that turn is over.
pub fn turn(tx: &mut Tx, network: Network) -> Result<Option<Held>> {
    tx.opt(TURN, params![network])
}

/// Releases what this instance holds, so that another need not wait.
pub fn release(tx: &mut Tx, holder: &str) -> Result<()> {
    tx.execute(RELEASE, params![holder]).map(drop)
}

/// Moves to a scanned block and keeps the turn. False when another instance has it: then nothing may be written.
pub fn advance(tx: &mut Tx, network: Network, cursor: &Cursor, until: Time) -> Result<bool> {
    let values = params![network, cursor.fence, cursor.scanned, cursor.scanned_time, cursor.head, until];
    Ok(tx.execute(ADVANCE, values)? == 1)
}

/// Rewinds after a reorganisation above this block: everything after it is read again.
pub fn rewind(tx: &mut Tx, network: Network, fence: i64, to: i64, time: Time) -> Result<bool> {
    let moved = tx.execute(REWIND, params![network, fence, to, time])? == 1;
    if moved {
        tx.execute(FORGET_ABOVE, params![network, to])?;
    }
    Ok(moved)
}

pub fn remember(tx: &mut Tx, network: Network, block: &Block) -> Result<()> {
    tx.execute(REMEMBER, params![network, block.number, &block.hash, block.time])?;
    tx.execute(FORGET_OLD, params![network, REMEMBERED]).map(drop)
}

/// The remembered blocks, the newest first.
pub fn newest_blocks(tx: &mut Tx, network: Network, limit: i64) -> Result<Vec<Block>> {
    tx.all(NEWEST, params![network, limit])
}

/// Takes the task of checking every address. False when it was done after `due`, or is being done.
pub fn take_balances(tx: &mut Tx, network: Network, now: Time, due: Time) -> Result<bool> {
    Ok(tx.execute(TAKE_BALANCES, params![network, now, due, now.and_a_little()])? == 1)
}

/// Gives back a check that was taken at `taken` and did not finish: it is due again.
pub fn give_back_balances(tx: &mut Tx, network: Network, taken: Time, due: Time) -> Result<()> {
    tx.execute(GIVE_BACK_BALANCES, params![network, taken, due]).map(drop)
}

/// The balance of an address when it was last checked, and the block of that.
pub fn checked_balance(
    tx: &mut Tx,
    network: Network,
    address: &str,
    currency: Currency,
) -> Result<Option<(Usd, i64)>> {
    tx.opt(CHECKED, params![network, address, currency])
}

pub fn check_balance(
    tx: &mut Tx,
    network: Network,
    address: &str,
    currency: Currency,
    amount: Usd,
    block: i64,
) -> Result<()> {
    tx.execute(CHECK, params![network, address, currency, amount, block]).map(drop)
}
