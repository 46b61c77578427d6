//! Sessions of people on pages, found by the hash of what their browser holds. A session that ended has no row.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, MemberId, SessionId, TokenId};
use crate::domain::login::Realm;
use crate::domain::money::Usd;
use crate::domain::role::Role;
use crate::domain::session::Limits;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    INSERT = insert_into!("page_sessions", New);
    BY_HASH = text!("SELECT ", Session::COLUMNS, " FROM page_sessions s JOIN accounts a ON a.no = s.account
              JOIN api_keys k ON k.id = s.holder WHERE s.secret_hash = ?1 AND s.realm || '' = 'BUYERS'");
    MEMBER_BY_HASH = text!("SELECT ", MemberSession::COLUMNS, " FROM page_sessions s JOIN members m ON m.id = s.holder
              JOIN accounts a ON a.no = m.account JOIN wallets w ON w.account = m.account
              WHERE s.secret_hash = ?1 AND s.realm || '' = 'PARTNERS' AND m.removed_at IS NULL");
    FORMER = "SELECT id, account FROM page_sessions WHERE secret_hash = ?1 AND realm || '' = ?2";
    OF_PERSON = text!("SELECT ", Listed::COLUMNS, " FROM page_sessions
                WHERE holder IN (SELECT m.id FROM members m WHERE m.email = ?1 AND m.removed_at IS NULL)
                AND awaits = 0 AND made_at > ?2 AND seen_at > ?3 ORDER BY made_at DESC, id DESC LIMIT ?4");
    WRONG = "UPDATE page_sessions SET wrong = wrong + 1 WHERE id = ?1 RETURNING wrong";
    END_OF_MEMBER = "DELETE FROM page_sessions WHERE holder = ?1";
    END_ONE_OF_MEMBER = "DELETE FROM page_sessions WHERE id = ?1 AND holder = ?2";
    END_OF_PERSON = "DELETE FROM page_sessions
                     WHERE holder IN (SELECT m.id FROM members m WHERE m.email = ?1 AND m.removed_at IS NULL) AND id <> ?2";
    END_ONE_OF_PERSON = "DELETE FROM page_sessions
                         WHERE id = ?1 AND holder IN (SELECT m.id FROM members m WHERE m.email = ?2 AND m.removed_at IS NULL)";
    OF_ACCOUNT = text!("SELECT ", Listed::COLUMNS, " FROM page_sessions
                 WHERE account = ?1 AND realm || '' = ?2 AND made_at > ?3 AND seen_at > ?4 ORDER BY made_at DESC, id DESC LIMIT ?5");
    ALL_OF_ACCOUNT = "SELECT id FROM page_sessions WHERE account = ?1 AND realm || '' = ?2";
    MADE = "SELECT 1 FROM page_sessions WHERE id = ?1";
    TOKEN_OF = "SELECT holder FROM page_sessions WHERE id = ?1 AND account = ?2 AND realm || '' = 'BUYERS'";
    SEEN = "UPDATE page_sessions SET seen_at = ?2 WHERE id = ?1 AND seen_at < ?3";
    END = "DELETE FROM page_sessions WHERE id = ?1";
    END_OF_TOKEN = "DELETE FROM page_sessions WHERE account = ?1 AND holder = ?2";
    OLD = "DELETE FROM page_sessions WHERE id IN (SELECT id FROM page_sessions WHERE made_at < ?1 ORDER BY made_at LIMIT ?2)";
    UNUSED = "DELETE FROM page_sessions WHERE id IN (SELECT id FROM page_sessions WHERE seen_at < ?1 ORDER BY seen_at LIMIT ?2)";
}

pub struct NewSession {
    pub id: SessionId,
    pub secret_hash: [u8; 32],
    pub realm: Realm,
    /// Whose it is: the token that a buyer's purchases count against, or a member.
    pub holder: String,
    /// Whether it opens nothing before a second factor was shown.
    pub awaits: bool,
    pub made_at: Time,
    pub seen_at: Time,
    pub browser: String,
    /// The network that it was made from.
    pub network: String,
}

values! {
    New(new: NewSession, account: AccountNo) {
        id, secret_hash = &new.secret_hash, realm = new.realm.as_str(), account = account, holder, awaits, made_at, seen_at,
        browser, network,
    }
}

/// What a request needs to know about its session.
pub struct Session {
    pub id: SessionId,
    pub account: AccountNo,
    pub token: TokenId,
    pub made_at: Time,
    pub seen_at: Time,
    pub email: Email,
    pub price_list: String,
    /// Whether its token has a daily limit.
    pub limited: bool,
}

columns! {
    Session in "s" {
        id, account, token = "s.holder", made_at, seen_at, email = "a.email", price_list = "a.price_list",
        limited = "CAST(CASE WHEN k.daily_limit IS NULL THEN 0 ELSE 1 END AS BIGINT)",
    }
}

/// What a request needs to know about the session of a member of a partner's team.
#[derive(Clone)]
pub struct MemberSession {
    pub id: SessionId,
    pub account: AccountNo,
    pub member: MemberId,
    pub made_at: Time,
    pub seen_at: Time,
    pub awaits: bool,
    pub email: Email,
    pub role: Role,
    pub company: String,
    pub price_list: String,
    pub low_balance: Usd,
    pub balance: Usd,
    pub suspended: bool,
}

columns! {
    MemberSession in "s" {
        id, account, member = "s.holder", made_at, seen_at, awaits, email = "m.email", role = "m.role",
        company = "a.name", price_list = "a.price_list", low_balance = "a.low_balance", balance = "w.balance",
        suspended = "w.suspended",
    }
}

/// A session as its owner sees it.
pub struct Listed {
    pub id: SessionId,
    pub made_at: Time,
    pub seen_at: Time,
    pub browser: String,
    pub network: String,
}

columns! { Listed { id, made_at, seen_at, browser, network } }

pub fn create(tx: &mut Tx, account: AccountNo, new: &NewSession) -> Result<()> {
    tx.execute(INSERT, &New::params(new, account)).map(drop)
}

pub fn is_made(tx: &mut Tx, id: &SessionId) -> Result<bool> {
    tx.any(MADE, params![id])
}

/// By the hash, however old it is.
pub fn by_hash(tx: &mut Tx, hash: &[u8; 32]) -> Result<Option<Session>> {
    tx.opt(BY_HASH, params![hash])
}

/// The same of a member who is still in the team.
pub fn member_by_hash(tx: &mut Tx, hash: &[u8; 32]) -> Result<Option<MemberSession>> {
    tx.opt(MEMBER_BY_HASH, params![hash])
}

/// The session that a browser held before, of any age.
pub fn former(tx: &mut Tx, hash: &[u8; 32], realm: Realm) -> Result<Option<(SessionId, AccountNo)>> {
    tx.opt(FORMER, params![hash, realm.as_str()])
}

/// Where a person is signed in, in whichever team, newest first.
pub fn of_person(tx: &mut Tx, email: &Email, good: Limits, most: i64) -> Result<Vec<Listed>> {
    tx.all(OF_PERSON, params![email, good.made_after, good.seen_after, most])
}

/// Counts a wrong second factor, and answers how many there were.
pub fn count_wrong(tx: &mut Tx, id: &SessionId) -> Result<i64> {
    Ok(tx.write_opt(WRONG, params![id])?.unwrap_or(0))
}

pub fn end_of_member(tx: &mut Tx, member: &MemberId) -> Result<()> {
    tx.execute(END_OF_MEMBER, params![member]).map(drop)
}

/// Ends one session of this member; false when there is none.
pub fn end_one_of_member(tx: &mut Tx, member: &MemberId, id: &SessionId) -> Result<bool> {
    Ok(tx.execute(END_ONE_OF_MEMBER, params![id, member])? == 1)
}

/// Ends every session of this person, in all teams, but for the one to keep.
pub fn end_of_person(tx: &mut Tx, email: &Email, kept: Option<&SessionId>) -> Result<()> {
    tx.execute(END_OF_PERSON, params![email, kept.map_or("", SessionId::as_str)]).map(drop)
}

/// Ends one session of this person; false when there is none.
pub fn end_one_of_person(tx: &mut Tx, email: &Email, id: &SessionId) -> Result<bool> {
    Ok(tx.execute(END_ONE_OF_PERSON, params![id, email])? == 1)
}

/// The sessions of an account that have not ended, newest first.
pub fn of_account(
    tx: &mut Tx,
    account: AccountNo,
    realm: Realm,
    good: Limits,
    most: i64,
) -> Result<Vec<Listed>> {
    tx.all(OF_ACCOUNT, params![account, realm.as_str(), good.made_after, good.seen_after, most])
}

pub fn all_of_account(tx: &mut Tx, account: AccountNo, realm: Realm) -> Result<Vec<SessionId>> {
    tx.all(ALL_OF_ACCOUNT, params![account, realm.as_str()])
}

/// The token of an account's session.
pub fn token_of(tx: &mut Tx, account: AccountNo, id: &SessionId) -> Result<Option<TokenId>> {
    tx.opt(TOKEN_OF, params![id, account])
}

/// Records a visit, unless one was recorded after `since`.
pub fn seen(tx: &mut Tx, id: &SessionId, now: Time, since: Time) -> Result<()> {
    tx.execute(SEEN, params![id, now, since]).map(drop)
}

pub fn end(tx: &mut Tx, id: &SessionId) -> Result<()> {
    tx.execute(END, params![id]).map(drop)
}

/// Ends the session whose purchases count against this token, if it is one's.
pub fn end_of_token(tx: &mut Tx, account: AccountNo, token: &TokenId) -> Result<()> {
    tx.execute(END_OF_TOKEN, params![account, token]).map(drop)
}

/// Forgets sessions that had ended at that time. True when there may be more.
pub fn forget(tx: &mut Tx, good: Limits, most: i64) -> Result<bool> {
    let old = tx.execute(OLD, params![good.made_after, most])?;
    let unused = tx.execute(UNUSED, params![good.seen_after, most])?;
    Ok([old, unused].into_iter().any(|gone| gone >= most.unsigned_abs()))
}
