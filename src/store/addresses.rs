//! The addresses that money comes to, and the keys they were derived from. One statement on the key's row takes an
//! index, so no two accounts ever get the same address, on any number of instances.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use super::meta::{self, Version};
use crate::domain::ids::AccountNo;
use crate::domain::network::AddressKind;
use crate::domain::time::Time;
use crate::error::{Error, Result};

macro_rules! select_address {
    ($tail:literal) => {
        text!("SELECT ", Address::COLUMNS, " FROM addresses ", $tail)
    };
}

queries! {
    ADD_KEY = "INSERT INTO address_keys (kind, fingerprint, next_idx) VALUES (?1, ?2, 0) ON CONFLICT (kind, fingerprint) DO NOTHING";
    TAKE = "UPDATE address_keys SET next_idx = next_idx + ?3 WHERE kind = ?1 AND fingerprint = ?2 RETURNING next_idx";
    /// An account's own address that no open invoice uses, and that may serve one. Worded so that the database reads neither
    /// the addresses nor the open invoices of others.
    FREE = "SELECT a.address FROM addresses a WHERE a.account = ?1 AND a.kind = ?2 AND a.fingerprint || '' = ?3
            AND a.standing = 0 AND NOT EXISTS (SELECT 1 FROM invoices i WHERE i.address = a.address AND i.status || '' IN ('PENDING', 'CONFIRMING'))
            ORDER BY a.idx LIMIT 1";
    /// One that no invoice ever used.
    UNUSED = "SELECT a.address FROM addresses a WHERE a.account = ?1 AND a.kind = ?2 AND a.fingerprint || '' = ?3
              AND NOT EXISTS (SELECT 1 FROM invoices i WHERE i.address = a.address) ORDER BY a.idx LIMIT 1";
    STANDING = select_address!("WHERE account = ?1 AND kind = ?2 AND fingerprint = ?3 AND standing = 1");
    STAND = "UPDATE addresses SET standing = 1 WHERE address = ?1";
    INSERT = insert_into!("addresses", New);
    WATCH = "UPDATE addresses SET watch_until = ?2, changed = ?3 WHERE address = ?1 AND watch_until < ?2";
    WATCHED = "SELECT address FROM addresses WHERE kind = ?1 AND watch_until > ?2";
    WATCHED_SINCE = "SELECT address FROM addresses WHERE kind = ?1 AND changed > ?3 AND watch_until > ?2";
    /// Worded so that the database reads a page in the order of the addresses, instead of sorting all of that kind.
    PAGE = "SELECT address, created_at FROM addresses WHERE kind || '' = ?1 AND address > ?2 ORDER BY address LIMIT ?3";
    FIND = select_address!("WHERE address = ?1");
    LIST = select_address!("ORDER BY kind, fingerprint, idx");
}

#[derive(Clone, Debug)]
pub struct Address {
    pub address: String,
    pub kind: AddressKind,
    pub fingerprint: String,
    pub index: i64,
    /// `None` for an address of the house.
    pub account: Option<AccountNo>,
    pub watch_until: Time,
    /// It needs no invoice, and never serves one.
    pub standing: bool,
}

columns! { Address { address, kind, fingerprint, index = "idx", account, watch_until, standing } }

values! {
    New(new: Address, created_at: Time, changed: i64) {
        address, kind, fingerprint, idx = new.index, account, watch_until, standing, created_at = created_at,
        changed = changed,
    }
}

impl Address {
    /// The derivation path by which a wallet with the same key finds it.
    pub fn path(&self) -> String {
        format!("{}/0/{}", self.kind.account_path(), self.index)
    }
}

pub fn add_key(tx: &mut Tx, kind: AddressKind, fingerprint: &str) -> Result<()> {
    tx.execute(ADD_KEY, params![kind, fingerprint]).map(drop)
}

/// Takes the next `count` indexes and answers the first of them. They are never given out again.
pub fn take_indexes(tx: &mut Tx, kind: AddressKind, fingerprint: &str, count: i64) -> Result<i64> {
    let next: Option<i64> = tx.write_opt(TAKE, params![kind, fingerprint, count])?;
    let next = next.ok_or_else(|| Error::fault("the extended public key is not in the database"))?;
    Ok(next - count)
}

/// An address of this account that serves no open invoice, and may serve one.
pub fn free(tx: &mut Tx, account: AccountNo, kind: AddressKind, fingerprint: &str) -> Result<Option<String>> {
    tx.opt(FREE, params![account, kind, fingerprint])
}

/// An address of this account that never served an invoice.
pub fn unused(
    tx: &mut Tx,
    account: AccountNo,
    kind: AddressKind,
    fingerprint: &str,
) -> Result<Option<String>> {
    tx.opt(UNUSED, params![account, kind, fingerprint])
}

/// The address of this account that needs no invoice.
pub fn standing(
    tx: &mut Tx,
    account: AccountNo,
    kind: AddressKind,
    fingerprint: &str,
) -> Result<Option<Address>> {
    tx.opt(STANDING, params![account, kind, fingerprint])
}

/// From now on it needs no invoice, and serves none.
pub fn stand(tx: &mut Tx, address: &str) -> Result<()> {
    tx.execute(STAND, params![address]).map(drop)
}

pub fn insert(tx: &mut Tx, address: &Address, now: Time) -> Result<()> {
    let changed = meta::bump(tx, Version::Addresses)?;
    tx.execute(INSERT, &New::params(address, now, changed)).map(drop)
}

/// Watches an address, block by block, at least until then.
pub fn watch(tx: &mut Tx, address: &str, until: Time) -> Result<()> {
    let changed = meta::bump(tx, Version::Addresses)?;
    tx.execute(WATCH, params![address, until, changed]).map(drop)
}

/// The addresses to look for in every block.
pub fn watched(tx: &mut Tx, kind: AddressKind, now: Time) -> Result<Vec<String>> {
    tx.all(WATCHED, params![kind, now])
}

/// The watched addresses that were made, or whose watch was extended, since the change counter was at `version`.
pub fn watched_since(tx: &mut Tx, kind: AddressKind, now: Time, version: i64) -> Result<Vec<String>> {
    tx.all(WATCHED_SINCE, params![kind, now, version])
}

/// The addresses after `after`, sorted, each with the time it was made.
pub fn page(tx: &mut Tx, kind: AddressKind, after: &str, limit: i64) -> Result<Vec<(String, Time)>> {
    tx.all(PAGE, params![kind, after, limit])
}

pub fn find(tx: &mut Tx, address: &str) -> Result<Option<Address>> {
    tx.opt(FIND, params![address])
}

pub fn list(tx: &mut Tx) -> Result<Vec<Address>> {
    tx.all(LIST, &[])
}
