//! How many eSIMs a partner's team mails to each mailbox in a day. Whoever counts has locked the team's wallet.

use super::engine::{Tx, params, queries};
use crate::domain::ids::AccountNo;
use crate::error::Result;

queries! {
    SENT = "SELECT mails FROM mailings WHERE account = ?1 AND mailbox = ?2 AND day = ?3";
    ADD = "INSERT INTO mailings (account, mailbox, day, mails) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (account, mailbox, day) DO UPDATE SET mails = mailings.mails + excluded.mails";
    FORGET = "DELETE FROM mailings WHERE (account, mailbox, day) IN
              (SELECT account, mailbox, day FROM mailings WHERE day < ?1 ORDER BY day LIMIT ?2)";
}

pub fn sent(tx: &mut Tx, account: AccountNo, mailbox: &str, day: i64) -> Result<i64> {
    Ok(tx.opt(SENT, params![account, mailbox, day])?.unwrap_or(0))
}

pub fn add(tx: &mut Tx, account: AccountNo, mailbox: &str, day: i64, mails: i64) -> Result<()> {
    tx.execute(ADD, params![account, mailbox, day, mails]).map(drop)
}

/// Forgets days before this one, a limited number of rows at once. True when there may be more.
pub fn forget(tx: &mut Tx, before: i64, most: i64) -> Result<bool> {
    Ok(tx.execute(FORGET, params![before, most])? >= most.unsigned_abs())
}
