//! Mails to send. A row holds what a text is made from, never the text; it is deleted when the mail is sent or no
//! longer useful. The instance that moves `next_try` first has the mail to itself until then.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::domain::email::Email;
use crate::domain::ids::MailId;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    INSERT = "INSERT INTO mails (id, recipient, kind, data, created_at, next_try, tries, drop_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5, 0, ?6)
              ON CONFLICT (id) DO NOTHING";
    DUE = text!("SELECT ", Mail::COLUMNS, " FROM mails WHERE next_try <= ?1 OR next_try > ?3 ORDER BY next_try LIMIT ?2");
    TO = text!("SELECT ", Mail::COLUMNS, " FROM mails
          WHERE recipient = ?1 AND created_at > ?2 ORDER BY created_at DESC, id DESC LIMIT ?3");
    HOLD = "UPDATE mails SET next_try = ?3, tries = tries + 1 WHERE id = ?1 AND next_try = ?2";
    POSTPONE = "UPDATE mails SET next_try = ?3 WHERE id = ?1 AND next_try = ?2";
    DELETE = "DELETE FROM mails WHERE id = ?1";
    DELETE_OLD = "DELETE FROM mails WHERE id IN (SELECT id FROM mails WHERE drop_at < ?1 ORDER BY drop_at LIMIT ?2)";
    WAITING = "SELECT COUNT(*) FROM mails WHERE next_try <= ?1";
}

pub struct NewMail<'a> {
    pub id: &'a MailId,
    pub to: &'a Email,
    pub kind: &'static str,
    pub data: &'a str,
    pub created_at: Time,
    /// When it is no longer worth sending.
    pub drop_at: Time,
}

#[derive(Clone, Debug)]
pub struct Mail {
    pub id: MailId,
    pub to: Email,
    pub data: String,
    pub created_at: Time,
    pub next_try: Time,
    pub tries: i64,
    pub drop_at: Time,
}

columns! { Mail { id, to = "recipient", data, created_at, next_try, tries, drop_at } }

pub fn queue(tx: &mut Tx, new: &NewMail) -> Result<()> {
    let values = params![new.id, new.to, new.kind, new.data, new.created_at, new.drop_at];
    tx.execute(INSERT, values).map(drop)
}

/// The mails to send now. No mail waits beyond `latest`, unless a clock was wrong.
pub fn due(tx: &mut Tx, now: Time, latest: Time, limit: i64) -> Result<Vec<Mail>> {
    tx.all(DUE, params![now, limit, latest.and_a_little()])
}

/// How many mails wait and should have been sent by then.
pub fn waiting(tx: &mut Tx, before: Time) -> Result<i64> {
    tx.one(WAITING, params![before])
}

/// Mails to one address since then, newest first.
pub fn to(tx: &mut Tx, email: &str, since: Time, limit: i64) -> Result<Vec<Mail>> {
    tx.all(TO, params![email, since, limit])
}

/// Takes a mail to send it: nobody else touches it until then. False when somebody took it first.
pub fn hold(tx: &mut Tx, id: &MailId, seen: Time, until: Time) -> Result<bool> {
    Ok(tx.execute(HOLD, params![id, seen, until])? == 1)
}

/// Sets the next try after a failed one. Does nothing when the hold was lost meanwhile.
pub fn postpone(tx: &mut Tx, id: &MailId, held_until: Time, again: Time) -> Result<()> {
    tx.execute(POSTPONE, params![id, held_until, again]).map(drop)
}

pub fn remove(tx: &mut Tx, id: &MailId) -> Result<()> {
    tx.execute(DELETE, params![id]).map(drop)
}

/// Forgets mails that should have been dropped before then. True when there may be more.
pub fn forget(tx: &mut Tx, before: Time, most: i64) -> Result<bool> {
    Ok(tx.execute(DELETE_OLD, params![before, most])? >= most.unsigned_abs())
}
