//! The machinery of the store: transactions, the writer, the readers, both drivers, migrations and backups. It knows
//! no noun of the business; the files beside this folder do, and `Store` brings the two together.

pub mod backup;
pub mod checkpoints;
pub mod explain;
pub mod migrate;
mod param;
mod postgres;
pub mod reader;
pub mod readiness;
pub mod room;
mod row;
mod serving;
mod sqlite;
mod still;
pub mod text;
pub mod tx;
mod unusable;
pub mod writer;

use std::path::PathBuf;

pub use self::checkpoints::LogSize;
pub(super) use self::param::{Param, Value, params};
use self::postgres::Address;
pub use self::postgres::hide_password;
pub(super) use self::row::{Column, Columns, Fields, Row, Stored, word};
pub use self::serving::Serving;
pub use self::sqlite::writer_connection;
pub(super) use self::text::{columns, const_text, insert_into, lists, names, places, text, values};
pub(super) use self::tx::{Sql, Tx, queries};
pub use self::writer::WriteJob;

/// Where the data lives, as `SIMGATE_DATABASE_URL` says it.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Location {
    /// `Err` is a sentence for the operator, without the password.
    pub fn parse(url: &str) -> Result<Location, String> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Address::parse(url).map(|_| Location::Postgres(url.into()));
        }
        match url.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => Ok(Location::Sqlite(PathBuf::from(path))),
            _ => Err("it must be sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME".into()),
        }
    }

    /// How the connection to the database can be attacked, and what to do about it.
    pub fn weakness(&self) -> Option<(String, &'static str)> {
        match self {
            Location::Sqlite(_) => None,
            Location::Postgres(url) => Address::parse(url).ok()?.weakness(),
        }
    }
}
