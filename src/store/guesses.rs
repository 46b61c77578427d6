//! Invalid coupon codes, by who tried them and from where: the limits on guessing count these rows. Tries from one
//! place are found by its widest network (see `domain/client.rs`); their origins show which of them came from a
//! narrower one.

use super::engine::{Tx, params, queries};
use crate::domain::client::Origin;
use crate::domain::ids::{AccountNo, AttemptId};
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    RECORDED = "SELECT 1 FROM coupon_guesses WHERE id = ?1";
    RECORD = "INSERT INTO coupon_guesses (id, account, origin, at) VALUES (?1, ?2, ?3, ?4)";
    BY_ACCOUNT = "SELECT at FROM coupon_guesses WHERE account IS NOT NULL AND account = ?1 AND at > ?2 AND at <= ?4 ORDER BY at DESC LIMIT ?3";
    FROM_AREA = "SELECT at, origin FROM coupon_guesses WHERE origin IS NOT NULL
                 AND substr(origin, 1, 17) = substr(CAST(?1 AS TEXT), 1, 17) AND at > ?2 AND at <= ?4 ORDER BY at DESC LIMIT ?3";
    OLD = "DELETE FROM coupon_guesses WHERE id IN (SELECT id FROM coupon_guesses WHERE at < ?1 ORDER BY at LIMIT ?2)";
}

/// Whether an earlier run of this job has recorded it.
pub fn is_recorded(tx: &mut Tx, id: &AttemptId) -> Result<bool> {
    tx.any(RECORDED, params![id])
}

pub fn record(
    tx: &mut Tx,
    id: &AttemptId,
    account: Option<AccountNo>,
    origin: Option<&Origin>,
    now: Time,
) -> Result<()> {
    tx.execute(RECORD, params![id, account, origin.map(Origin::as_str), now]).map(drop)
}

/// When an account tried between these times, the newest first, at most `most` of them.
pub fn by_account(
    tx: &mut Tx,
    account: AccountNo,
    (since, until): (Time, Time),
    most: i64,
) -> Result<Vec<Time>> {
    tx.all(BY_ACCOUNT, params![account, since, most, until])
}

/// The tries between these times from the widest network of this origin, the newest first, at most `most` of them.
pub fn from_area(
    tx: &mut Tx,
    origin: &Origin,
    (since, until): (Time, Time),
    most: i64,
) -> Result<Vec<(Time, Origin)>> {
    tx.all(FROM_AREA, params![origin.as_str(), since, most, until])
}

/// Forgets older rows, a limited number at a time. True when there may be more.
pub fn forget(tx: &mut Tx, before: Time, most: i64) -> Result<bool> {
    Ok(tx.execute(OLD, params![before, most])? >= most.unsigned_abs())
}
