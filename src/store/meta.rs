//! What the database knows about itself: its mode, its secret (sandbox only), and the counters by which every instance
//! learns within a second that another process changed something.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::error::{Error, Result};

queries! {
    GET = "SELECT value FROM meta WHERE name = ?1";
    SET = "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    TOUCH = "UPDATE meta SET value = value WHERE name = ''";
    BUMP = "UPDATE versions SET n = n + 1 WHERE name = ?1 RETURNING n";
    VERSIONS = text!("SELECT ", Versions::COLUMNS);
    NOW (Postgres) = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)";
}

#[derive(Clone, Copy)]
pub enum Version {
    Accounts,
    Catalog,
    Simulator,
    Addresses,
    Webhooks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Versions {
    pub accounts: i64,
    pub catalog: i64,
    pub simulator: i64,
    pub addresses: i64,
    pub webhooks: i64,
}

columns! {
    Versions {
        accounts = "(SELECT n FROM versions WHERE name = 'accounts')",
        catalog = "(SELECT n FROM versions WHERE name = 'catalog')",
        simulator = "(SELECT n FROM versions WHERE name = 'simulator')",
        addresses = "(SELECT n FROM versions WHERE name = 'addresses')",
        webhooks = "(SELECT n FROM versions WHERE name = 'webhooks')",
    }
}

pub fn get(tx: &mut Tx, name: &str) -> Result<Option<String>> {
    tx.opt(GET, params![name])
}

pub fn set(tx: &mut Tx, name: &str, value: &str) -> Result<()> {
    tx.execute(SET, params![name, value]).map(drop)
}

/// A write that changes nothing, but fails when writes fail.
pub fn touch(tx: &mut Tx) -> Result<()> {
    tx.execute(TOUCH, &[]).map(drop)
}

/// Raises a counter and answers the new number. Nobody else gets the next one before this write ends.
pub fn bump(tx: &mut Tx, version: Version) -> Result<i64> {
    let name = match version {
        Version::Accounts => "accounts",
        Version::Catalog => "catalog",
        Version::Simulator => "simulator",
        Version::Addresses => "addresses",
        Version::Webhooks => "webhooks",
    };
    let number = tx.write_opt(BUMP, params![name])?;
    number.ok_or_else(|| Error::fault("a change counter is not in the database"))
}

pub fn versions(tx: &mut Tx) -> Result<Versions> {
    tx.one(VERSIONS, &[])
}

/// The database server's clock; `None` for SQLite, which has the machine's own.
pub fn database_now(tx: &mut Tx) -> Result<Option<i64>> {
    if tx.is_postgres() { tx.one(NOW, &[]).map(Some) } else { Ok(None) }
}
