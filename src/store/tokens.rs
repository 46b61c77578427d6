//! Bearer tokens. They share the table of API keys, and with it the daily limit that the order path counts by; a
//! token is found by the hash of its whole text, which is unique.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, TokenId};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::domain::token::TokenKind;
use crate::error::Result;

queries! {
    INSERT = insert_into!("api_keys", New);
    BY_HASH = text!("SELECT ", LiveToken::COLUMNS, "
               FROM api_keys k JOIN accounts a ON a.no = k.account
               WHERE k.secret_hash = ?1 AND k.kind <> 'KEY' AND k.revoked_at IS NULL");
    OF_ACCOUNT = text!("SELECT ", Token::COLUMNS, " FROM api_keys
                  WHERE account = ?1 AND kind = 'PERSONAL' AND revoked_at IS NULL ORDER BY created_at DESC, id DESC");
    HELD_BY_AGENTS = text!("SELECT ", Token::COLUMNS, " FROM api_keys
                  WHERE account = ?1 AND kind <> 'KEY' AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)
                  AND id NOT IN (SELECT holder FROM page_sessions WHERE account = ?1) ORDER BY created_at DESC, id DESC");
    BY_ID = text!("SELECT ", Token::COLUMNS, " FROM api_keys
             WHERE id = ?1 AND kind <> 'KEY' AND revoked_at IS NULL");
    REVOKE = "UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1 AND kind <> 'KEY' AND revoked_at IS NULL";
    SET_LIMIT = "UPDATE api_keys SET daily_limit = ?3 WHERE id = ?1 AND account = ?2 AND kind <> 'KEY' AND revoked_at IS NULL
                 AND id NOT IN (SELECT holder FROM page_sessions WHERE account = ?2)";
    OLD_SESSIONS = "DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys WHERE kind = 'SESSION' AND expires_at < ?1 ORDER BY expires_at LIMIT ?2)";
    USED = "UPDATE api_keys SET last_used_at = ?2 WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?3)";
}

pub struct NewToken {
    pub id: TokenId,
    pub kind: TokenKind,
    pub hash: [u8; 32],
    pub prefix: String,
    pub agent_name: String,
    pub daily_limit: Option<Usd>,
    pub created_at: Time,
    pub expires_at: Option<Time>,
}

values! {
    New(new: NewToken, account: AccountNo) {
        id, account = account, secret_hash = &new.hash, daily_limit, spent_day = 0, spent = 0, ips = "",
        read_only = false, created_at, kind, prefix, agent_name, expires_at,
    }
}

/// What a request needs to know about its token.
pub struct LiveToken {
    pub id: TokenId,
    pub account: AccountNo,
    pub kind: TokenKind,
    pub has_daily_limit: bool,
    pub last_used_at: Option<Time>,
    pub expires_at: Option<Time>,
    pub email: Email,
    pub price_list: String,
}

columns! {
    LiveToken in "k" {
        id, account, kind, has_daily_limit = "CAST(CASE WHEN k.daily_limit IS NULL THEN 0 ELSE 1 END AS BIGINT)",
        last_used_at, expires_at, email = "a.email", price_list = "a.price_list",
    }
}

/// A token as its owner sees it.
pub struct Token {
    pub id: TokenId,
    pub account: AccountNo,
    pub kind: TokenKind,
    pub prefix: String,
    pub agent_name: String,
    pub daily_limit: Option<Usd>,
    pub created_at: Time,
    pub last_used_at: Option<Time>,
    pub expires_at: Option<Time>,
}

columns! { Token { id, account, kind, prefix, agent_name, daily_limit, created_at, last_used_at, expires_at } }

pub fn create(tx: &mut Tx, account: AccountNo, new: &NewToken) -> Result<()> {
    tx.execute(INSERT, &New::params(new, account)).map(drop)
}

pub fn by_hash(tx: &mut Tx, hash: &[u8; 32]) -> Result<Option<LiveToken>> {
    tx.opt(BY_HASH, params![hash])
}

/// The personal tokens of an account that are not revoked, newest first.
pub fn of_account(tx: &mut Tx, account: AccountNo) -> Result<Vec<Token>> {
    tx.all(OF_ACCOUNT, params![account])
}

/// The tokens of an account that somebody holds now, newest first: all but those behind page sessions.
pub fn held_by_agents(tx: &mut Tx, account: AccountNo, now: Time) -> Result<Vec<Token>> {
    tx.all(HELD_BY_AGENTS, params![account, now])
}

/// A token that is not revoked.
pub fn by_id(tx: &mut Tx, id: &TokenId) -> Result<Option<Token>> {
    tx.opt(BY_ID, params![id])
}

/// Revokes a token. False when it does not exist or is revoked already.
pub fn revoke(tx: &mut Tx, id: &TokenId, now: Time) -> Result<bool> {
    Ok(tx.execute(REVOKE, params![id, now])? == 1)
}

/// Sets what an agent's token may spend in a day. False when the account has no such token.
pub fn set_limit(tx: &mut Tx, account: AccountNo, id: &TokenId, limit: Option<Usd>) -> Result<bool> {
    Ok(tx.execute(SET_LIMIT, params![id, account, limit])? == 1)
}

/// Records that it was used, unless that was recorded after `since`.
pub fn used(tx: &mut Tx, id: &TokenId, now: Time, since: Time) -> Result<()> {
    tx.execute(USED, params![id, now, since]).map(drop)
}

/// Forgets session tokens that ended before then. True when there may be more.
pub fn forget_sessions(tx: &mut Tx, before: Time, most: i64) -> Result<bool> {
    Ok(tx.execute(OLD_SESSIONS, params![before, most])? >= most.unsigned_abs())
}
