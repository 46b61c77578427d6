//! Transactions of gas keys: which instance may send them now, the number of the next one, and what was sent. A number
//! is taken in the write that stores the transaction, so a crash neither reuses nor skips one.

use super::authorizations;
use super::cursors::Held;
use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use crate::domain::authorization::{AuthorizationEvent, AuthorizationId};
use crate::domain::ids::AccountNo;
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    CREATE = "INSERT INTO settlers (network, sender, next_nonce, holder, fence, held_until)
              VALUES (?1, ?2, 0, '', 0, 0) ON CONFLICT (network, sender) DO NOTHING";
    TAKE = "UPDATE settlers SET fence = CASE WHEN holder = ?3 THEN fence ELSE fence + 1 END, holder = ?3, held_until = ?5
            WHERE network = ?1 AND sender = ?2 AND (holder = ?3 OR held_until < ?4 OR held_until > ?6) RETURNING fence";
    HOLDER = text!("SELECT ", Held::COLUMNS, " FROM settlers WHERE network = ?1 AND sender = ?2");
    RELEASE = "UPDATE settlers SET held_until = 0 WHERE holder = ?1";
    TURN and LOCK_TURN = "SELECT next_nonce FROM settlers WHERE network = ?1 AND sender = ?2 AND fence = ?3";
    NEXT = "UPDATE settlers SET next_nonce = ?3 WHERE network = ?1 AND sender = ?2";
    INSERT = insert_into!("settlements", New);
    EXISTS = "SELECT 1 FROM settlements WHERE network = ?1 AND tx_hash = ?2";
    PENDING = text!("SELECT ", Settlement::COLUMNS, "
               FROM settlements WHERE network = ?1 AND sender = ?2 AND state = 'PENDING' ORDER BY tx_nonce, sent_at");
    /// Worded, here and below, so that only the small index over pending ones is used.
    REPLACED = "UPDATE settlements SET cost = 0 WHERE network || '' = ?1 AND sender = ?2 AND tx_nonce = ?3 AND state = 'PENDING'";
    DONE = "UPDATE settlements SET state = 'DONE', cost = CASE WHEN tx_hash = ?4 THEN ?5 ELSE 0 END
            WHERE network || '' = ?1 AND sender = ?2 AND tx_nonce = ?3 AND state = 'PENDING'";
    WAITS = "SELECT 1 FROM settlements WHERE network || '' = ?1 AND sender = ?2 AND tx_nonce = ?3 AND state = 'PENDING' LIMIT 1";
    GIVE_UP = "UPDATE settlements SET state = 'DONE', cost = 0
               WHERE network || '' = ?1 AND sender = ?2 AND tx_nonce > ?3 AND state = 'PENDING'";
    SPENT = "SELECT CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM settlements WHERE network = ?1 AND sent_at >= ?2";
    SPENT_ON = "SELECT CAST(COALESCE(SUM(cost), 0) AS BIGINT) FROM settlements WHERE account = ?1 AND network = ?2 AND sent_at >= ?3";
}

/// A transaction that a gas key signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub tx_hash: String,
    pub sender: String,
    pub tx_nonce: i64,
    /// The authorization that it settles, and for which account.
    pub authorization: AuthorizationId,
    pub account: AccountNo,
    /// What it offers for each unit of gas, in wei, and the most gas it may use.
    pub tip: i64,
    pub max_fee: i64,
    pub gas: i64,
    pub raw: String,
    /// In gwei: the most that it can cost, until the true cost is known.
    pub cost: i64,
    pub sent_at: Time,
}

columns! {
    Settlement {
        authorization: AuthorizationId = "network, asset, payer, payment_nonce", tx_hash, sender, tx_nonce, account, tip,
        max_fee, gas, raw, cost, sent_at,
    }
}

values! {
    New(new: Settlement, network: Network) {
        network = network, tx_hash, sender, tx_nonce, asset = &new.authorization.asset,
        payer = &new.authorization.payer, payment_nonce = &new.authorization.nonce, account, tip, max_fee, gas, raw,
        state = "PENDING", cost, sent_at,
    }
}

/// A turn at settling: its key, and its fence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub network: Network,
    pub sender: String,
    pub fence: i64,
}

/// Takes or keeps the turn until then. `None` while another instance has it.
pub fn take(
    tx: &mut Tx,
    network: Network,
    sender: &str,
    holder: &str,
    now: Time,
    until: Time,
) -> Result<Option<Turn>> {
    tx.execute(CREATE, params![network, sender])?;
    // As with scanners, a turn taken by a wrong clock is void.
    let values = params![network, sender, holder, now, until, until.and_a_little()];
    let fence: Option<i64> = tx.write_opt(TAKE, values)?;
    Ok(fence.map(|fence| Turn { network, sender: sender.to_string(), fence }))
}

/// The instance that settles with this key, even when that turn is over.
pub fn turn(tx: &mut Tx, network: Network, sender: &str) -> Result<Option<Held>> {
    tx.opt(HOLDER, params![network, sender])
}

/// Releases what this instance holds, so that another need not wait.
pub fn release(tx: &mut Tx, holder: &str) -> Result<()> {
    tx.execute(RELEASE, params![holder]).map(drop)
}

/// The number of the next transaction. `None` when the turn is over.
pub fn next_nonce(tx: &mut Tx, turn: &Turn) -> Result<Option<i64>> {
    tx.opt(TURN, params![turn.network, &turn.sender, turn.fence])
}

/// `next_nonce`, with the turn locked until this write ends.
fn hold_turn(tx: &mut Tx, turn: &Turn) -> Result<Option<i64>> {
    tx.lock(LOCK_TURN, params![turn.network, &turn.sender, turn.fence])
}

/// Catches up when the key was used elsewhere: its next transaction has this number.
pub fn catch_up(tx: &mut Tx, turn: &Turn, nonce: i64) -> Result<bool> {
    if hold_turn(tx, turn)?.is_none_or(|next| next >= nonce) {
        return Ok(false);
    }
    tx.execute(NEXT, params![turn.network, &turn.sender, nonce])?;
    Ok(true)
}

/// Goes back to the number that the chain waits for: the next transaction gets it, and those with higher numbers are
/// given up. False when the turn is over, or a pending transaction has the number.
pub fn go_back(tx: &mut Tx, turn: &Turn, nonce: i64) -> Result<bool> {
    let values = params![turn.network, &turn.sender, nonce];
    if hold_turn(tx, turn)?.is_none_or(|next| next <= nonce) || tx.any(WAITS, values)? {
        return Ok(false);
    }
    tx.execute(GIVE_UP, values)?;
    tx.execute(NEXT, values)?;
    Ok(true)
}

/// Stores a transaction before it is sent, takes its number and marks what it settles as sent. False when the turn is
/// over, the number is taken, or nothing is left to settle.
pub fn begin(tx: &mut Tx, turn: &Turn, new: &Settlement) -> Result<bool> {
    if exists(tx, turn.network, &new.tx_hash)? {
        return Ok(true);
    }
    let Some(found) = authorizations::lock(tx, &new.authorization)? else { return Ok(false) };
    if hold_turn(tx, turn)? != Some(new.tx_nonce)
        || !authorizations::advance(tx, &found, AuthorizationEvent::Sent, None, new.sent_at)?
    {
        return Ok(false);
    }
    tx.execute(NEXT, params![turn.network, &turn.sender, new.tx_nonce + 1])?;
    insert(tx, turn.network, new)?;
    Ok(true)
}

/// Stores a transaction that replaces the earlier ones with the same number.
pub fn replace(tx: &mut Tx, turn: &Turn, new: &Settlement) -> Result<bool> {
    if exists(tx, turn.network, &new.tx_hash)? {
        return Ok(true);
    }
    if hold_turn(tx, turn)?.is_none() {
        return Ok(false);
    }
    tx.execute(REPLACED, params![turn.network, &turn.sender, new.tx_nonce])?;
    insert(tx, turn.network, new)?;
    Ok(true)
}

fn exists(tx: &mut Tx, network: Network, tx_hash: &str) -> Result<bool> {
    tx.any(EXISTS, params![network, tx_hash])
}

fn insert(tx: &mut Tx, network: Network, new: &Settlement) -> Result<()> {
    tx.execute(INSERT, &New::params(new, network)).map(drop)
}

/// A transaction with this number is in a block for good: ours at this cost, or somebody else's.
pub fn done(tx: &mut Tx, turn: &Turn, tx_nonce: i64, mined: Option<(&str, i64)>) -> Result<()> {
    let (hash, cost) = mined.unwrap_or(("", 0));
    tx.execute(DONE, params![turn.network, &turn.sender, tx_nonce, hash, cost]).map(drop)
}

/// The transactions of a key that are not yet in a block for good, by number and age.
pub fn pending(tx: &mut Tx, network: Network, sender: &str) -> Result<Vec<Settlement>> {
    tx.all(PENDING, params![network, sender])
}

/// What was spent on gas since then, in gwei; pending transactions count at their highest cost.
pub fn spent(tx: &mut Tx, network: Network, since: Time) -> Result<i64> {
    tx.one(SPENT, params![network, since])
}

pub fn spent_on(tx: &mut Tx, account: AccountNo, network: Network, since: Time) -> Result<i64> {
    tx.one(SPENT_ON, params![account, network, since])
}
