//! Bearer tokens. They share the table of API keys, and with it the daily limit that the order path counts by; a
//! token is found by the hash of its whole text, which is unique.

use super::tx::{Row, Tx, params, queries};
use crate::domain::email::Email;
use crate::domain::ids::{AccountId, AccountNo, TokenId};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::domain::token::TokenKind;
use crate::error::Result;

queries! {
    INSERT = "INSERT INTO api_keys (id, account, secret_hash, daily_limit, spent_day, spent, ips, read_only, created_at, kind, prefix, agent_name, expires_at)
              VALUES (?1, ?2, ?3, ?4, 0, 0, '', 0, ?5, ?6, ?7, ?8, ?9)";
    BY_HASH = "SELECT k.id, k.account, k.kind, k.daily_limit, k.agent_name, k.last_used_at, k.expires_at, a.id, a.email, a.price_list
               FROM api_keys k JOIN accounts a ON a.no = k.account
               WHERE k.secret_hash = ?1 AND k.kind <> 'KEY' AND k.revoked_at IS NULL";
    OF_ACCOUNT = "SELECT id, account, kind, prefix, agent_name, daily_limit, created_at, last_used_at FROM api_keys
                  WHERE account = ?1 AND kind = 'PERSONAL' AND revoked_at IS NULL ORDER BY created_at DESC, id DESC";
    BY_ID = "SELECT id, account, kind, prefix, agent_name, daily_limit, created_at, last_used_at FROM api_keys
             WHERE id = ?1 AND kind <> 'KEY' AND revoked_at IS NULL";
    REVOKE = "UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1 AND kind <> 'KEY' AND revoked_at IS NULL";
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

/// What a request needs to know about the token it came with.
pub struct LiveToken {
    pub id: TokenId,
    pub account: AccountNo,
    pub kind: TokenKind,
    pub has_daily_limit: bool,
    pub agent_name: String,
    pub last_used_at: Option<Time>,
    pub expires_at: Option<Time>,
    pub user: AccountId,
    pub email: Email,
    pub price_list: String,
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
}

pub fn create(tx: &mut Tx, account: AccountNo, new: &NewToken) -> Result<()> {
    let values = params![
        new.id.as_str(),
        account,
        new.hash.as_slice(),
        new.daily_limit,
        new.created_at,
        new.kind.as_str(),
        &new.prefix,
        &new.agent_name,
        new.expires_at
    ];
    tx.execute(INSERT, values).map(drop)
}

pub fn by_hash(tx: &mut Tx, hash: &[u8; 32]) -> Result<Option<LiveToken>> {
    tx.opt(BY_HASH, params![hash.as_slice()], |row| {
        Ok(LiveToken {
            id: TokenId::from_text(row.text(0)?),
            account: AccountNo(row.int(1)?),
            kind: row.word(2, TokenKind::parse)?,
            has_daily_limit: row.opt_int(3)?.is_some(),
            agent_name: row.text(4)?,
            last_used_at: row.opt_time(5)?,
            expires_at: row.opt_time(6)?,
            user: AccountId::from_text(row.text(7)?),
            email: Email::from_text(row.text(8)?),
            price_list: row.text(9)?,
        })
    })
}

/// The personal tokens of an account that are not revoked, newest first.
pub fn of_account(tx: &mut Tx, account: AccountNo) -> Result<Vec<Token>> {
    tx.all(OF_ACCOUNT, params![account], read_token)
}

/// A token that is not revoked.
pub fn by_id(tx: &mut Tx, id: &TokenId) -> Result<Option<Token>> {
    tx.opt(BY_ID, params![id.as_str()], read_token)
}

/// False when it is not there or revoked already.
pub fn revoke(tx: &mut Tx, id: &TokenId, now: Time) -> Result<bool> {
    Ok(tx.execute(REVOKE, params![id.as_str(), now])? == 1)
}

/// Writes down that it was used, unless that was done after `since`.
pub fn used(tx: &mut Tx, id: &TokenId, now: Time, since: Time) -> Result<()> {
    tx.execute(USED, params![id.as_str(), now, since]).map(drop)
}

/// Forgets session tokens that ended before then. True when there may be more.
pub fn forget_sessions(tx: &mut Tx, before: Time, most: i64) -> Result<bool> {
    Ok(tx.execute(OLD_SESSIONS, params![before, most])? >= most.unsigned_abs())
}

fn read_token(row: &Row) -> Result<Token> {
    Ok(Token {
        id: TokenId::from_text(row.text(0)?),
        account: AccountNo(row.int(1)?),
        kind: row.word(2, TokenKind::parse)?,
        prefix: row.text(3)?,
        agent_name: row.text(4)?,
        daily_limit: row.opt_int(5)?.map(Usd::from_micros),
        created_at: row.time(6)?,
        last_used_at: row.opt_time(7)?,
    })
}
