//! API keys. Only a hash of the secret is stored; every instance keeps the live ones in memory.

use super::meta;
use super::tx::{Row, Tx, params, queries};
use crate::domain::ids::{AccountId, AccountNo, KeyId};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    INSERT = "INSERT INTO api_keys (id, account, secret_hash, daily_limit, spent_day, spent, ips, read_only, created_at)
              VALUES (?1, ?2, ?3, ?4, 0, 0, ?5, ?6, ?7)";
    EXISTS = "SELECT 1 FROM api_keys WHERE id = ?1";
    LIST = "SELECT id, account, daily_limit, ips, read_only, created_at, revoked_at FROM api_keys
            WHERE kind = 'KEY' AND (CAST(?1 AS BIGINT) IS NULL OR account = ?1) ORDER BY created_at, id";
    REVOKE = "UPDATE api_keys SET revoked_at = COALESCE(revoked_at, ?2) WHERE id = ?1";
    LIVE = "SELECT k.id, k.account, k.secret_hash, k.ips, k.read_only, k.daily_limit, a.id, a.name, a.price_list, a.low_balance
            FROM api_keys k JOIN accounts a ON a.no = k.account WHERE k.revoked_at IS NULL AND k.kind = 'KEY'";
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
    pub created_at: Time,
}

pub struct Key {
    pub id: KeyId,
    pub account: AccountNo,
    pub daily_limit: Option<Usd>,
    pub ips: String,
    pub read_only: bool,
    pub created_at: Time,
    pub revoked_at: Option<Time>,
}

/// What a request needs to know about the key it came with.
pub struct LiveKey {
    pub id: KeyId,
    pub account: AccountNo,
    pub secret_hash: Vec<u8>,
    pub ips: String,
    pub read_only: bool,
    pub has_daily_limit: bool,
    pub partner: AccountId,
    pub company: String,
    pub price_list: String,
    pub low_balance: Usd,
}

pub fn create(tx: &mut Tx, new: &NewKey) -> Result<()> {
    if tx.is_rerun() && tx.opt(EXISTS, params![new.id.as_str()], |_| Ok(()))?.is_some() {
        return Ok(());
    }
    let values = params![
        new.id.as_str(),
        new.account,
        new.secret_hash.as_slice(),
        new.daily_limit,
        &new.ips,
        new.read_only,
        new.created_at
    ];
    tx.execute(INSERT, values)?;
    meta::bump(tx, meta::Version::Accounts).map(drop)
}

pub fn list(tx: &mut Tx, account: Option<AccountNo>) -> Result<Vec<Key>> {
    tx.all(LIST, params![account], |row: &Row| {
        Ok(Key {
            id: KeyId::from_text(row.text(0)?),
            account: AccountNo(row.int(1)?),
            daily_limit: row.opt_int(2)?.map(Usd::from_micros),
            ips: row.text(3)?,
            read_only: row.flag(4)?,
            created_at: row.time(5)?,
            revoked_at: row.opt_time(6)?,
        })
    })
}

/// False when there is no such key. Revoking twice keeps the first time.
pub fn revoke(tx: &mut Tx, id: &KeyId, now: Time) -> Result<bool> {
    let found = tx.execute(REVOKE, params![id.as_str(), now])? == 1;
    if found {
        meta::bump(tx, meta::Version::Accounts)?;
    }
    Ok(found)
}

pub fn live(tx: &mut Tx) -> Result<Vec<LiveKey>> {
    tx.all(LIVE, &[], |row| {
        Ok(LiveKey {
            id: KeyId::from_text(row.text(0)?),
            account: AccountNo(row.int(1)?),
            secret_hash: row.blob(2)?,
            ips: row.text(3)?,
            read_only: row.flag(4)?,
            has_daily_limit: row.opt_int(5)?.is_some(),
            partner: AccountId::from_text(row.text(6)?),
            company: row.text(7)?,
            price_list: row.text(8)?,
            low_balance: row.usd(9)?,
        })
    })
}
