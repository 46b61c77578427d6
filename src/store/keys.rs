//! API keys. Only a hash of the secret is stored; every instance keeps the live ones in memory.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use super::meta;
use crate::domain::ids::{AccountNo, KeyId};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    INSERT = insert_into!("api_keys", New);
    EXISTS = "SELECT 1 FROM api_keys WHERE id = ?1";
    FIND and LOCK = text!("SELECT ", Key::COLUMNS, " FROM api_keys WHERE id = ?1 AND kind = 'KEY'");
    REPLACE = "UPDATE api_keys SET replaced_by = ?2, expires_at = ?3 WHERE id = ?1";
    /// Those that it had replaced itself, and that have not ended yet.
    PASS_ON = "UPDATE api_keys SET replaced_by = ?2 WHERE account = ?3 AND replaced_by = ?1";
    CARRY = "UPDATE api_keys SET spent_day = (SELECT o.spent_day FROM api_keys o WHERE o.id = ?1),
             spent = (SELECT o.spent FROM api_keys o WHERE o.id = ?1) WHERE id = ?2";
    LIST = text!("SELECT ", Key::COLUMNS, " FROM api_keys WHERE kind = 'KEY' ORDER BY created_at, id");
    OF_ACCOUNT = text!("SELECT ", Key::COLUMNS, " FROM api_keys WHERE account = ?1 AND kind = 'KEY' ORDER BY created_at, id");
    IN_USE = text!("SELECT ", Key::COLUMNS, " FROM api_keys WHERE account = ?1 AND kind = 'KEY' AND revoked_at IS NULL
              AND (expires_at IS NULL OR expires_at > ?2) ORDER BY created_at, id");
    ENDED = text!("SELECT ", Key::COLUMNS, " FROM api_keys WHERE account = ?1 AND kind = 'KEY'
             AND (revoked_at IS NOT NULL OR expires_at <= ?2) AND (created_at < ?3 OR (created_at = ?3 AND id < ?4))
             ORDER BY created_at DESC, id DESC LIMIT ?5");
    /// At most once in a while, whichever instance was called.
    USED = "UPDATE api_keys SET last_used_at = ?2 WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?3)";
    REVOKE = "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, ?2) WHERE id = ?1";
    LIVE = text!("SELECT ", LiveKey::COLUMNS, "
            FROM api_keys k JOIN accounts a ON a.no = k.account WHERE k.revoked_at IS NULL AND k.kind = 'KEY'");
}

#[derive(Clone)]
pub struct NewKey {
    pub id: KeyId,
    pub account: AccountNo,
    pub secret_hash: [u8; 32],
    pub daily_limit: Option<Usd>,
    /// Networks the key may be used from, separated by commas; empty for anywhere.
    pub ips: String,
    pub read_only: bool,
    pub name: String,
    pub expires_at: Option<Time>,
    pub created_at: Time,
    /// The member of the team who made it; empty for an operator.
    pub made_by: String,
}

values! {
    New(new: NewKey) {
        id, account, secret_hash, daily_limit, spent_day = 0, spent = 0, ips, read_only, name, expires_at, created_at, made_by,
    }
}

pub struct Key {
    pub id: KeyId,
    pub account: AccountNo,
    pub daily_limit: Option<Usd>,
    pub ips: String,
    pub read_only: bool,
    pub name: String,
    pub created_at: Time,
    pub expires_at: Option<Time>,
    /// The key that took its place.
    pub replaced_by: Option<String>,
    pub revoked_at: Option<Time>,
    pub last_used_at: Option<Time>,
    /// The member of the team who made it; empty for an operator.
    pub made_by: String,
    /// That member's address, also when they have left.
    pub maker: Option<String>,
    pub spent_day: i64,
    pub spent: Usd,
}

columns! {
    Key {
        id, account, daily_limit, ips, read_only, name, created_at, expires_at, replaced_by, revoked_at, last_used_at, made_by,
        maker = "(SELECT m.email FROM members m WHERE m.id = api_keys.made_by)", spent_day, spent,
    }
}

impl Key {
    pub fn has_ended(&self, now: Time) -> bool {
        self.revoked_at.is_some() || self.expires_at.is_some_and(|end| end <= now)
    }

    /// What was spent today; it is counted for keys with a daily limit only.
    pub fn spent_today(&self, now: Time) -> Usd {
        if self.spent_day == now.day() { self.spent } else { Usd::ZERO }
    }
}

/// What a request needs to know about its key.
pub struct LiveKey {
    pub id: KeyId,
    pub account: AccountNo,
    pub secret_hash: Vec<u8>,
    pub ips: String,
    pub read_only: bool,
    pub has_daily_limit: bool,
    pub expires_at: Option<Time>,
    /// The key that took its place.
    pub replaced_by: Option<String>,
    pub last_used_at: Option<Time>,
    pub company: String,
    pub price_list: String,
    pub low_balance: Usd,
}

columns! {
    LiveKey in "k" {
        id, account, secret_hash, ips, read_only,
        has_daily_limit = "CAST(CASE WHEN k.daily_limit IS NULL THEN 0 ELSE 1 END AS BIGINT)",
        expires_at, replaced_by, last_used_at, company = "a.name", price_list = "a.price_list", low_balance = "a.low_balance",
    }
}

pub fn create(tx: &mut Tx, new: &NewKey) -> Result<()> {
    if tx.is_rerun() && tx.any(EXISTS, params![&new.id])? {
        return Ok(());
    }
    tx.execute(INSERT, &New::params(new))?;
    meta::bump(tx, meta::Version::Accounts).map(drop)
}

/// The keys of a partner, or of all, the oldest first.
pub fn list(tx: &mut Tx, account: Option<AccountNo>) -> Result<Vec<Key>> {
    match account {
        Some(account) => tx.all(OF_ACCOUNT, params![account]),
        None => tx.all(LIST, &[]),
    }
}

/// The keys of a partner that have not ended, the oldest first.
pub fn in_use(tx: &mut Tx, account: AccountNo, now: Time) -> Result<Vec<Key>> {
    tx.all(IN_USE, params![account, now])
}

/// The keys of a partner that have ended, the newest first. They go on before a key that was made then.
pub fn ended(
    tx: &mut Tx,
    account: AccountNo,
    now: Time,
    before: (Time, &str),
    most: i64,
) -> Result<Vec<Key>> {
    let (made_at, id) = before;
    tx.all(ENDED, params![account, now, made_at, id, most])
}

/// Notes a use, unless one was noted after `since`.
pub fn used(tx: &mut Tx, id: &KeyId, now: Time, since: Time) -> Result<()> {
    tx.execute(USED, params![id, now, since]).map(drop)
}

pub fn find(tx: &mut Tx, id: &KeyId) -> Result<Option<Key>> {
    tx.opt(FIND, params![id])
}

pub fn lock(tx: &mut Tx, id: &KeyId) -> Result<Option<Key>> {
    tx.lock(LOCK, params![id])
}

/// Puts a new key in the place of an old one, which ends then. What the old one has spent today counts for the new one,
/// and so does what it still spends: the two share one daily limit.
pub fn replace(tx: &mut Tx, old: &Key, new: &KeyId, ends: Time) -> Result<()> {
    tx.execute(CARRY, params![&old.id, new])?;
    tx.execute(REPLACE, params![&old.id, new, ends])?;
    tx.execute(PASS_ON, params![&old.id, new, old.account])?;
    meta::bump(tx, meta::Version::Accounts).map(drop)
}

/// Revokes a key; false when it does not exist. Revoking twice keeps the first time.
pub fn revoke(tx: &mut Tx, id: &KeyId, now: Time) -> Result<bool> {
    let found = tx.execute(REVOKE, params![id, now])? == 1;
    if found {
        meta::bump(tx, meta::Version::Accounts)?;
    }
    Ok(found)
}

pub fn live(tx: &mut Tx) -> Result<Vec<LiveKey>> {
    tx.all(LIVE, &[])
}
