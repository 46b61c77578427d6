//! Teams of partners. A row is an invitation until its owner has joined; one who was removed keeps the row, which the audit
//! log and keys name.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, MemberId};
use crate::domain::role::Role;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    INSERT = insert_into!("members", New);
    BY_ID = text!("SELECT ", Person::COLUMNS, " FROM members m JOIN accounts a ON a.no = m.account
             WHERE m.id = ?1 AND m.removed_at IS NULL");
    BY_EMAIL = text!("SELECT ", Person::COLUMNS, " FROM members m JOIN accounts a ON a.no = m.account
                WHERE m.account = ?1 AND m.email = ?2 AND m.removed_at IS NULL");
    OF_ACCOUNT = text!("SELECT ", Person::COLUMNS, " FROM members m JOIN accounts a ON a.no = m.account
                  WHERE m.account = ?1 AND m.removed_at IS NULL ORDER BY m.invited_at, m.id");
    OF_EMAIL = text!("SELECT ", Person::COLUMNS, " FROM members m JOIN accounts a ON a.no = m.account
                WHERE m.email = ?1 AND m.removed_at IS NULL AND m.joined_at IS NOT NULL
                ORDER BY COALESCE(m.seen_at, 0) DESC, m.joined_at DESC, m.id");
    EXPECTED = "SELECT 1 FROM members WHERE email = ?1 AND removed_at IS NULL AND (joined_at IS NOT NULL OR invited_at > ?2) LIMIT 1";
    INVITE_AGAIN = "UPDATE members SET role = ?2, invited_at = ?3, invited_by = ?4 WHERE id = ?1 AND joined_at IS NULL";
    WITHDRAW_OF = "UPDATE members SET removed_at = ?3
                   WHERE account = ?1 AND invited_by = ?2 AND joined_at IS NULL AND removed_at IS NULL";
    JOIN_TEAM = "UPDATE members SET joined_at = ?3 WHERE id = ?1 AND email = ?2 AND invited_at = ?4 AND joined_at IS NULL
                 AND removed_at IS NULL";
    SEEN = "UPDATE members SET seen_at = ?2 WHERE id = ?1";
    SET_ROLE = "UPDATE members SET role = ?2 WHERE id = ?1";
    REMOVE = "UPDATE members SET removed_at = ?2 WHERE id = ?1 AND removed_at IS NULL";
}

pub struct NewMember {
    pub id: MemberId,
    pub account: AccountNo,
    pub email: Email,
    pub role: Role,
    pub invited_at: Time,
    /// Who invited: a member's email, or an operator.
    pub invited_by: String,
}

values! { New(new: NewMember) { id, account, email, role, invited_at, invited_by } }

/// Somebody in a team, or invited to it.
#[derive(Clone, Debug)]
pub struct Person {
    pub id: MemberId,
    pub account: AccountNo,
    pub company: String,
    pub email: Email,
    pub role: Role,
    pub invited_at: Time,
    pub invited_by: String,
    pub joined_at: Option<Time>,
    pub seen_at: Option<Time>,
}

columns! {
    Person in "m" {
        id, account, company = "a.name", email, role, invited_at, invited_by, joined_at, seen_at,
    }
}

pub fn insert(tx: &mut Tx, new: &NewMember) -> Result<()> {
    tx.execute(INSERT, &New::params(new)).map(drop)
}

pub fn by_id(tx: &mut Tx, id: &MemberId) -> Result<Option<Person>> {
    tx.opt(BY_ID, params![id])
}

/// A person of this team, or invited to it.
pub fn by_email(tx: &mut Tx, account: AccountNo, email: &Email) -> Result<Option<Person>> {
    tx.opt(BY_EMAIL, params![account, email])
}

pub fn of_account(tx: &mut Tx, account: AccountNo) -> Result<Vec<Person>> {
    tx.all(OF_ACCOUNT, params![account])
}

/// The teams that a person has joined, the one visited last first.
pub fn of_email(tx: &mut Tx, email: &Email) -> Result<Vec<Person>> {
    tx.all(OF_EMAIL, params![email])
}

/// Whether somebody with this email is in a team, or was invited to one after that time.
pub fn is_expected(tx: &mut Tx, email: &Email, invited_after: Time) -> Result<bool> {
    tx.any(EXPECTED, params![email, invited_after])
}

/// Makes an open invitation anew. Its earlier links end, since they name its earlier time.
pub fn invite_again(tx: &mut Tx, id: &MemberId, role: Role, now: Time, by: &str) -> Result<()> {
    tx.execute(INVITE_AGAIN, params![id, role, now, by]).map(drop)
}

/// Withdraws the invitations that somebody sent and nobody has used, and answers how many those were.
pub fn withdraw_of(tx: &mut Tx, account: AccountNo, inviter: &Email, now: Time) -> Result<u64> {
    tx.execute(WITHDRAW_OF, params![account, inviter, now])
}

/// Uses an invitation up; false when it was used, replaced or withdrawn.
pub fn join(tx: &mut Tx, id: &MemberId, email: &Email, invited_at: Time, now: Time) -> Result<bool> {
    Ok(tx.execute(JOIN_TEAM, params![id, email, now, invited_at])? == 1)
}

pub fn seen(tx: &mut Tx, id: &MemberId, now: Time) -> Result<()> {
    tx.execute(SEEN, params![id, now]).map(drop)
}

pub fn set_role(tx: &mut Tx, id: &MemberId, role: Role) -> Result<()> {
    tx.execute(SET_ROLE, params![id, role]).map(drop)
}

pub fn remove(tx: &mut Tx, id: &MemberId, now: Time) -> Result<bool> {
    Ok(tx.execute(REMOVE, params![id, now])? == 1)
}
