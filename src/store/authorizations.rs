//! Payers' authorizations. A signature is claimed by inserting it, under the key that the token itself never accepts
//! twice; what happened to it afterwards moves its state, each time from the state that was seen.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use crate::domain::authorization::{Authorization, AuthorizationEvent, AuthorizationId, Reason};
use crate::domain::ids::InvoiceId;
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::domain::transfer::Transfer;
use crate::error::Result;

macro_rules! select_authorization {
    ($tail:literal) => {
        text!("SELECT ", Authorization::COLUMNS, " FROM authorizations ", $tail)
    };
}

queries! {
    INSERT = insert_into!("authorizations", New);
    BY_ID and LOCK = select_authorization!("WHERE network = ?1 AND payer = ?2 AND nonce = ?3 AND asset = ?4");
    BY_NONCE = select_authorization!("WHERE network = ?1 AND payer = ?2 AND nonce = ?3 ORDER BY created_at");
    LIVE and LOCK_LIVE = select_authorization!("WHERE invoice = ?1 AND state IN ('CLAIMED', 'SENT', 'SETTLED')");
    DUE = select_authorization!("WHERE network = ?1 AND state IN ('CLAIMED', 'SENT') AND next_try <= ?2 ORDER BY CASE state WHEN 'CLAIMED' THEN 0 ELSE 1 END, next_try, created_at LIMIT ?3");
    FAR_AHEAD = select_authorization!("WHERE network = ?1 AND state IN ('CLAIMED', 'SENT') AND next_try > ?2 LIMIT ?3");
    MOVE = "UPDATE authorizations SET state = ?5, reason = ?6, updated_at = ?7
            WHERE network = ?1 AND payer = ?2 AND nonce = ?3 AND asset = ?4 AND state = ?8";
    LATER = "UPDATE authorizations SET next_try = ?5 WHERE network = ?1 AND payer = ?2 AND nonce = ?3 AND asset = ?4
             AND state IN ('CLAIMED', 'SENT')";
}

columns! { AuthorizationId { network, asset, payer, nonce } }

columns! {
    Authorization {
        id: AuthorizationId = AuthorizationId::COLUMNS, invoice, account, pay_to, amount, valid_after, valid_before,
        signature, state, reason, created_at, updated_at, reference,
    }
}

values! {
    New(new: Authorization) {
        network = new.id.network, asset = &new.id.asset, payer = &new.id.payer, nonce = &new.id.nonce, invoice, account,
        pay_to, amount, valid_after, valid_before, signature, state, next_try = new.created_at, created_at,
        updated_at = new.created_at, reference,
    }
}

pub fn insert(tx: &mut Tx, new: &Authorization) -> Result<()> {
    tx.execute(INSERT, &New::params(new)).map(drop)
}

pub fn by_id(tx: &mut Tx, id: &AuthorizationId) -> Result<Option<Authorization>> {
    tx.opt(BY_ID, params![id.network, &id.payer, &id.nonce, &id.asset])
}

/// The same without its token: a network has one at a time that takes signatures. The first to be claimed comes first.
pub fn by_nonce(tx: &mut Tx, network: Network, payer: &str, nonce: &str) -> Result<Vec<Authorization>> {
    tx.all(BY_NONCE, params![network, payer, nonce])
}

/// `by_id`, and nobody else changes it before this write ends.
pub fn lock(tx: &mut Tx, id: &AuthorizationId) -> Result<Option<Authorization>> {
    tx.lock(LOCK, params![id.network, &id.payer, &id.nonce, &id.asset])
}

/// The one that pays for an invoice, or is to.
pub fn live(tx: &mut Tx, invoice: &InvoiceId) -> Result<Option<Authorization>> {
    tx.opt(LIVE, params![invoice])
}

/// No authorization rests for longer; one that does was laid to rest by a clock that was wrong.
const LONGEST_REST_MS: i64 = 120_000;

/// Those that somebody should look at now; first those that nobody has sent yet.
pub fn due(tx: &mut Tx, network: Network, now: Time, limit: i64) -> Result<Vec<Authorization>> {
    let mut due = tx.all(DUE, params![network, now, limit])?;
    let far = now.plus_millis(LONGEST_REST_MS);
    due.extend(tx.all::<Authorization>(FAR_AHEAD, params![network, far, limit])?);
    Ok(due)
}

/// Every change of an authorization's state goes through here. False when the state that was seen does not allow the event
/// or when the authorization has moved since.
pub fn advance(
    tx: &mut Tx,
    seen: &Authorization,
    event: AuthorizationEvent,
    reason: Option<Reason>,
    now: Time,
) -> Result<bool> {
    let Some(to) = seen.state.after(event) else { return Ok(false) };
    let AuthorizationId { network, asset, payer, nonce } = &seen.id;
    let values = params![network, payer, nonce, asset, to, reason, now, seen.state];
    Ok(tx.execute(MOVE, values)? == 1)
}

/// The transfer is in our books: so is the authorization that moved it, if one did. One that was given up for dead
/// stays dead, since its invoice may have another by now.
pub fn settle(tx: &mut Tx, transfer: &Transfer, now: Time) -> Result<()> {
    let (Some(nonce), Some(invoice)) = (&transfer.payment_nonce, &transfer.invoice) else { return Ok(()) };
    let live: Option<Authorization> = tx.lock(LOCK_LIVE, params![invoice])?;
    let signed = (transfer.id.network, &transfer.sender, nonce);
    if let Some(paying) = live.filter(|live| (live.id.network, &live.id.payer, &live.id.nonce) == signed) {
        advance(tx, &paying, AuthorizationEvent::Booked, None, now)?;
    }
    Ok(())
}

/// Nobody need look at it before then.
pub fn rest(tx: &mut Tx, id: &AuthorizationId, until: Time) -> Result<()> {
    tx.execute(LATER, params![id.network, &id.payer, &id.nonce, &id.asset, until]).map(drop)
}
