//! Payers' authorizations. A signature is claimed by inserting it, under the key that the token itself never accepts
//! twice; what happened to it afterwards moves its state, each time from the state that was seen.

use super::tx::{Row, Tx, params, queries};
use crate::domain::authorization::{Authorization, AuthorizationId, AuthorizationState, Reason};
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::domain::transfer::Transfer;
use crate::error::Result;

macro_rules! select_authorization {
    ($tail:literal) => {
        concat!(
            "SELECT network, asset, payer, nonce, invoice, account, pay_to, amount, valid_after, valid_before, signature,
                    state, reason, created_at, updated_at, reference FROM authorizations ",
            $tail
        )
    };
}

queries! {
    INSERT = "INSERT INTO authorizations (network, asset, payer, nonce, invoice, account, pay_to, amount, valid_after,
                  valid_before, signature, state, next_try, created_at, updated_at, reference)
              VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13, ?13, ?14)";
    BY_ID = select_authorization!("WHERE network = ?1 AND payer = ?2 AND nonce = ?3 AND asset = ?4");
    BY_NONCE = select_authorization!("WHERE network = ?1 AND payer = ?2 AND nonce = ?3 ORDER BY created_at");
    /// SQLite needs no lock: a write transaction has the database to itself.
    LOCK (Postgres) = select_authorization!("WHERE network = ?1 AND payer = ?2 AND nonce = ?3 AND asset = ?4 FOR UPDATE");
    LIVE = select_authorization!("WHERE invoice = ?1 AND state IN ('CLAIMED', 'SENT', 'SETTLED')");
    DUE = select_authorization!("WHERE network = ?1 AND state IN ('CLAIMED', 'SENT') AND next_try <= ?2 ORDER BY CASE state WHEN 'CLAIMED' THEN 0 ELSE 1 END, next_try, created_at LIMIT ?3");
    FAR_AHEAD = select_authorization!("WHERE network = ?1 AND state IN ('CLAIMED', 'SENT') AND next_try > ?2 LIMIT ?3");
    MOVE = "UPDATE authorizations SET state = ?5, reason = ?6, updated_at = ?7
            WHERE network = ?1 AND payer = ?2 AND nonce = ?3 AND asset = ?4 AND state = ?8";
    SETTLE = "UPDATE authorizations SET state = 'SETTLED', updated_at = ?4
              WHERE network = ?1 AND payer = ?2 AND nonce = ?3 AND invoice || '' = ?5 AND state IN ('CLAIMED', 'SENT')";
    LATER = "UPDATE authorizations SET next_try = ?5 WHERE network = ?1 AND payer = ?2 AND nonce = ?3 AND asset = ?4
             AND state IN ('CLAIMED', 'SENT')";
}

pub fn insert(tx: &mut Tx, new: &Authorization) -> Result<()> {
    let values = params![
        new.id.network.as_str(),
        &new.id.asset,
        &new.id.payer,
        &new.id.nonce,
        new.invoice.as_str(),
        new.account,
        &new.pay_to,
        new.amount,
        new.valid_after,
        new.valid_before,
        &new.signature,
        new.state.as_str(),
        new.created_at,
        new.reference.as_deref()
    ];
    tx.execute(INSERT, values).map(drop)
}

pub fn by_id(tx: &mut Tx, id: &AuthorizationId) -> Result<Option<Authorization>> {
    tx.opt(BY_ID, params![id.network.as_str(), &id.payer, &id.nonce, &id.asset], read)
}

/// The same without its token: a network has one at a time that takes signatures. The first to be claimed comes first.
pub fn by_nonce(tx: &mut Tx, network: Network, payer: &str, nonce: &str) -> Result<Vec<Authorization>> {
    tx.all(BY_NONCE, params![network.as_str(), payer, nonce], read)
}

/// `by_id`, and nobody else changes it before this write ends.
pub fn lock(tx: &mut Tx, id: &AuthorizationId) -> Result<Option<Authorization>> {
    let sql = if tx.is_postgres() { LOCK } else { BY_ID };
    tx.opt(sql, params![id.network.as_str(), &id.payer, &id.nonce, &id.asset], read)
}

/// The one that pays for an invoice, or is to.
pub fn live(tx: &mut Tx, invoice: &InvoiceId) -> Result<Option<Authorization>> {
    tx.opt(LIVE, params![invoice.as_str()], read)
}

/// No authorization rests for longer; one that does was laid to rest by a clock that was wrong.
const LONGEST_REST_MS: i64 = 120_000;

/// Those that somebody should look at now; first those that nobody has sent yet.
pub fn due(tx: &mut Tx, network: Network, now: Time, limit: i64) -> Result<Vec<Authorization>> {
    let mut due = tx.all(DUE, params![network.as_str(), now, limit], read)?;
    let far = now.plus_millis(LONGEST_REST_MS);
    due.extend(tx.all(FAR_AHEAD, params![network.as_str(), far, limit], read)?);
    Ok(due)
}

/// False when it was not in that state any more.
pub fn advance(
    tx: &mut Tx,
    id: &AuthorizationId,
    from: AuthorizationState,
    to: AuthorizationState,
    reason: Option<Reason>,
    now: Time,
) -> Result<bool> {
    let values = params![
        id.network.as_str(),
        &id.payer,
        &id.nonce,
        &id.asset,
        to.as_str(),
        reason.map(Reason::as_str),
        now,
        from.as_str()
    ];
    Ok(tx.execute(MOVE, values)? == 1)
}

/// The transfer is in our books: so is the authorization that moved it, if one did. One that was given up for dead
/// stays dead, since its invoice may have another by now.
pub fn settle(tx: &mut Tx, transfer: &Transfer, now: Time) -> Result<()> {
    let (Some(nonce), Some(invoice)) = (&transfer.payment_nonce, &transfer.invoice) else { return Ok(()) };
    let values = params![transfer.id.network.as_str(), &transfer.sender, nonce, now, invoice.as_str()];
    tx.execute(SETTLE, values).map(drop)
}

/// Nobody need look at it before then.
pub fn rest(tx: &mut Tx, id: &AuthorizationId, until: Time) -> Result<()> {
    tx.execute(LATER, params![id.network.as_str(), &id.payer, &id.nonce, &id.asset, until]).map(drop)
}

fn read(row: &Row) -> Result<Authorization> {
    Ok(Authorization {
        id: AuthorizationId {
            network: row.word(0, Network::parse)?,
            asset: row.text(1)?,
            payer: row.text(2)?,
            nonce: row.text(3)?,
        },
        invoice: InvoiceId::from_text(row.text(4)?),
        account: AccountNo(row.int(5)?),
        pay_to: row.text(6)?,
        amount: row.usd(7)?,
        valid_after: row.time(8)?,
        valid_before: row.time(9)?,
        signature: row.text(10)?,
        state: row.word(11, AuthorizationState::parse)?,
        reason: match row.opt_text(12)? {
            Some(_) => Some(row.word(12, Reason::parse)?),
            None => None,
        },
        created_at: row.time(13)?,
        updated_at: row.time(14)?,
        reference: row.opt_text(15)?,
    })
}
