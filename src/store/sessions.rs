//! Sessions of people on pages, found by the hash of what their browser holds. A session that ended has no row.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, SessionId, TokenId};
use crate::domain::login::Realm;
use crate::domain::session::Limits;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    INSERT = insert_into!("page_sessions", New);
    BY_HASH = text!("SELECT ", Session::COLUMNS, " FROM page_sessions s JOIN accounts a ON a.no = s.account
              JOIN api_keys k ON k.id = s.token WHERE s.secret_hash = ?1 AND s.realm || '' = ?2");
    OF_ACCOUNT = text!("SELECT ", Listed::COLUMNS, " FROM page_sessions
                 WHERE account = ?1 AND realm || '' = ?2 AND made_at > ?3 AND seen_at > ?4 ORDER BY made_at DESC, id DESC LIMIT ?5");
    ALL_OF_ACCOUNT = "SELECT id FROM page_sessions WHERE account = ?1 AND realm || '' = ?2";
    MADE = "SELECT 1 FROM page_sessions WHERE id = ?1";
    TOKEN_OF = "SELECT token FROM page_sessions WHERE id = ?1 AND account = ?2";
    SEEN = "UPDATE page_sessions SET seen_at = ?2 WHERE id = ?1 AND seen_at < ?3";
    END = "DELETE FROM page_sessions WHERE id = ?1";
    END_OF_TOKEN = "DELETE FROM page_sessions WHERE account = ?1 AND token = ?2";
    OLD = "DELETE FROM page_sessions WHERE id IN (SELECT id FROM page_sessions WHERE made_at < ?1 ORDER BY made_at LIMIT ?2)";
    UNUSED = "DELETE FROM page_sessions WHERE id IN (SELECT id FROM page_sessions WHERE seen_at < ?1 ORDER BY seen_at LIMIT ?2)";
}

pub struct NewSession {
    pub id: SessionId,
    pub secret_hash: [u8; 32],
    pub realm: Realm,
    /// The token that its purchases count against.
    pub token: TokenId,
    pub made_at: Time,
    pub browser: String,
    /// The network that it was made from.
    pub network: String,
}

values! {
    New(new: NewSession, account: AccountNo) {
        id, secret_hash = &new.secret_hash, realm = new.realm.as_str(), account = account, token, made_at,
        seen_at = new.made_at, browser, network,
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
        id, account, token, made_at, seen_at, email = "a.email", price_list = "a.price_list",
        limited = "CAST(CASE WHEN k.daily_limit IS NULL THEN 0 ELSE 1 END AS BIGINT)",
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
pub fn by_hash(tx: &mut Tx, hash: &[u8; 32], realm: Realm) -> Result<Option<Session>> {
    tx.opt(BY_HASH, params![hash, realm.as_str()])
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
