//! Second factors, and the recovery codes that stand in for them, by person: an email in a realm. Whoever decides about
//! one takes `lock` first, so that nothing is decided twice; each code is used by a conditional write all the same.

use super::engine::{Param, Stored, Tx, columns, params, queries, text};
use crate::domain::email::Email;
use crate::domain::ids::AttemptId;
use crate::domain::login::Realm;
use crate::domain::second_factor::Tries;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    FIND and LOCK = text!("SELECT ", Factor::COLUMNS, " FROM second_factors WHERE realm = ?1 AND email = ?2");
    IS_ON = "SELECT 1 FROM second_factors WHERE realm = ?1 AND email = ?2 AND confirmed_at IS NOT NULL";
    BEGIN = "INSERT INTO second_factors (realm, email, secret, begun_at, confirmed_at, last_step, wrong, wrong_since, rests, rests_until, judged, judged_right)
             VALUES (?1, ?2, ?3, ?4, NULL, 0, 0, 0, 0, 0, '', 0)
             ON CONFLICT (realm, email) DO UPDATE SET secret = excluded.secret, begun_at = excluded.begun_at
             WHERE second_factors.confirmed_at IS NULL";
    CONFIRM = "UPDATE second_factors SET confirmed_at = ?3, last_step = ?4 WHERE realm = ?1 AND email = ?2 AND confirmed_at IS NULL";
    USE_STEP = "UPDATE second_factors SET last_step = ?3, judged = ?4, judged_right = 1
                WHERE realm = ?1 AND email = ?2 AND last_step < ?3 AND confirmed_at IS NOT NULL";
    JUDGE = "UPDATE second_factors SET wrong = ?3, wrong_since = ?4, rests = ?5, rests_until = ?6, judged = ?7, judged_right = ?8
             WHERE realm = ?1 AND email = ?2";
    REMOVE = "DELETE FROM second_factors WHERE realm = ?1 AND email = ?2";
    ADD_RECOVERY = "INSERT INTO recovery_codes (realm, email, hash) VALUES (?1, ?2, ?3)";
    USE_RECOVERY = "DELETE FROM recovery_codes WHERE realm = ?1 AND email = ?2 AND hash = ?3";
    COUNT_RECOVERY = "SELECT COUNT(*) FROM recovery_codes WHERE realm = ?1 AND email = ?2";
    REMOVE_RECOVERY = "DELETE FROM recovery_codes WHERE realm = ?1 AND email = ?2";
}

/// Whose it is.
#[derive(Clone, Debug)]
pub struct Person {
    pub realm: Realm,
    pub email: Email,
}

impl Person {
    fn key(&self) -> [Param<'_>; 2] {
        [Param::from(self.realm.as_str()), Param::from(&self.email)]
    }
}

pub struct Factor {
    /// Sealed for its person.
    pub secret: Vec<u8>,
    pub begun_at: Time,
    /// Without this it does not count.
    pub confirmed_at: Option<Time>,
    /// The half minute of the last code that was used.
    pub last_step: i64,
    pub tries: Tries,
    /// The try that was last found right or wrong.
    pub judged: AttemptId,
    pub judged_right: bool,
}

columns! { Tries { wrong, since = "wrong_since", rests, until = "rests_until" } }

columns! {
    Factor { secret, begun_at, confirmed_at, last_step, tries: Tries = Tries::COLUMNS, judged, judged_right }
}

pub fn find(tx: &mut Tx, person: &Person) -> Result<Option<Factor>> {
    tx.opt(FIND, &person.key())
}

pub fn lock(tx: &mut Tx, person: &Person) -> Result<Option<Factor>> {
    tx.lock(LOCK, &person.key())
}

pub fn is_on(tx: &mut Tx, person: &Person) -> Result<bool> {
    tx.any(IS_ON, &person.key())
}

/// Stores a secret that does not count yet, in place of another such. False when one is on, which stays.
pub fn begin(tx: &mut Tx, person: &Person, secret: &[u8], now: Time) -> Result<bool> {
    let [realm, email] = person.key();
    Ok(tx.execute(BEGIN, &[realm, email, Param::from(secret), Param::from(now)])? == 1)
}

/// Turns on what was begun. False when it is on already.
pub fn confirm(tx: &mut Tx, person: &Person, step: i64, now: Time) -> Result<bool> {
    let [realm, email] = person.key();
    Ok(tx.execute(CONFIRM, &[realm, email, Param::from(now), Param::from(step)])? == 1)
}

/// Uses the code of a half minute by this try. False when it, or a later one, was used before.
pub fn use_step(tx: &mut Tx, person: &Person, step: i64, by: &AttemptId) -> Result<bool> {
    let [realm, email] = person.key();
    Ok(tx.execute(USE_STEP, &[realm, email, Param::from(step), Param::from(by)])? == 1)
}

/// Writes down what a try was found to be, and what the wrong ones have come to.
pub fn judge(tx: &mut Tx, person: &Person, tries: Tries, by: &AttemptId, right: bool) -> Result<()> {
    let Tries { wrong, since, rests, until } = tries;
    let Person { realm, email } = person;
    tx.execute(JUDGE, params![realm.as_str(), email, wrong, since, rests, until, by, right]).map(drop)
}

/// Uses up a recovery code. False when the person has none with this hash.
pub fn use_recovery(tx: &mut Tx, person: &Person, hash: &[u8; 32]) -> Result<bool> {
    let [realm, email] = person.key();
    Ok(tx.execute(USE_RECOVERY, &[realm, email, Param::from(hash)])? == 1)
}

pub fn count_recovery(tx: &mut Tx, person: &Person) -> Result<i64> {
    tx.one(COUNT_RECOVERY, &person.key())
}

/// Gives a person these recovery codes in place of all earlier ones.
pub fn replace_recovery(tx: &mut Tx, person: &Person, hashes: &[[u8; 32]]) -> Result<()> {
    tx.execute(REMOVE_RECOVERY, &person.key())?;
    let [realm, email] = person.key();
    for hash in hashes {
        tx.execute(ADD_RECOVERY, &[realm, email, Param::from(hash)])?;
    }
    Ok(())
}

/// Removes the second factor of a person and its recovery codes.
pub fn remove(tx: &mut Tx, person: &Person) -> Result<()> {
    tx.execute(REMOVE_RECOVERY, &person.key())?;
    tx.execute(REMOVE, &person.key()).map(drop)
}
