//! The whole abstraction over two databases: `Tx`, with `param.rs` and `row.rs`. A business write is a function over
//! `&mut Tx` and is the same on both. Texts come from `queries!` blocks, so that a test can prepare every one of them
//! on both databases. Placeholders are `?1`: SQLite numbers `$` names by first appearance.

use super::param::Param;
use super::postgres::Session;
use super::row::{Columns, Fields, Row};
use crate::error::{Error, Fault, FaultKind, Result};

/// A statement text. `only` names its one database, when a second text serves the other.
#[derive(Clone, Copy)]
pub struct Sql {
    pub text: &'static str,
    pub only: Option<Backend>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

/// A read that also locks what it finds. SQLite needs no lock: a write transaction has the database to itself.
#[derive(Clone, Copy)]
pub struct Lock {
    pub plain: Sql,
    pub locking: Sql,
}

/// Declares a module's statements as constants, and lists them in `ALL` for the test that prepares each. `READ and
/// LOCK` declares a statement, and a second one that locks what it reads.
macro_rules! queries {
    ($($(#[$doc:meta])* $name:ident $(($only:ident))? $(and $lock:ident)? = $text:expr;)*) => {
        $($(#[$doc])* const $name: $crate::store::engine::tx::Sql = $crate::store::engine::tx::Sql {
            text: $text,
            only: queries!(@only $($only)?),
        };
        $(const $lock: $crate::store::engine::tx::Lock = $crate::store::engine::tx::Lock {
            plain: $name,
            locking: $crate::store::engine::tx::Sql {
                text: $crate::store::engine::text!($text, " FOR UPDATE"),
                only: Some($crate::store::engine::tx::Backend::Postgres),
            },
        };)?)*
        pub const ALL: &[(&str, $crate::store::engine::tx::Sql)] =
            &[$((stringify!($name), $name), $((stringify!($lock), $lock.locking),)?)*];
    };
    (@only) => { None };
    (@only $only:ident) => { Some($crate::store::engine::tx::Backend::$only) };
}
pub(crate) use queries;

pub(super) enum Db<'c> {
    Sqlite(&'c rusqlite::Connection),
    Postgres(&'c mut Session),
}

pub struct Tx<'c> {
    db: Db<'c>,
    wrote: bool,
    rerun: bool,
}

/// What is done with a transaction. It may run more than once, and on another thread.
pub trait Body<T>: Fn(&mut Tx) -> Result<T> + Send + 'static {}

impl<T, F: Fn(&mut Tx) -> Result<T> + Send + 'static> Body<T> for F {}

impl<'c> Tx<'c> {
    pub(super) fn new(db: Db<'c>, rerun: bool) -> Tx<'c> {
        Tx { db, wrote: false, rerun }
    }

    /// A transaction that the caller has begun and will end. The benchmark's reference uses it; the service
    /// writes through `Store`.
    pub fn sqlite(connection: &'c rusqlite::Connection) -> Tx<'c> {
        Tx::new(Db::Sqlite(connection), false)
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.db, Db::Postgres(_))
    }

    /// Whether this job has written anything. A refusal must come before its job's first write.
    pub fn wrote(&self) -> bool {
        self.wrote
    }

    /// True when the job may have run before, even to the end: its COMMIT's answer may have been lost.
    pub fn is_rerun(&self) -> bool {
        self.rerun
    }

    pub fn execute(&mut self, sql: Sql, params: &[Param]) -> Result<u64> {
        let changed = match &mut self.db {
            Db::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.text).map_err(sqlite_error)?;
                statement.execute(rusqlite::params_from_iter(params)).map_err(sqlite_error)? as u64
            }
            Db::Postgres(session) => session.execute(sql.text, params)?,
        };
        self.wrote |= changed > 0;
        Ok(changed)
    }

    /// The row, if there is one; more than one is a fault.
    pub fn opt<T: Columns>(&mut self, sql: Sql, params: &[Param]) -> Result<Option<T>> {
        match &mut self.db {
            Db::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.text).map_err(sqlite_error)?;
                let mut rows = statement.query(rusqlite::params_from_iter(params)).map_err(sqlite_error)?;
                let found = match rows.next().map_err(sqlite_error)? {
                    Some(row) => Some(T::read(&mut Fields::of(&Row::Sqlite(row)))?),
                    None => return Ok(None),
                };
                // A statement that writes and returns rows is finished only when it is stepped to its end.
                if rows.next().map_err(sqlite_error)?.is_some() {
                    return Err(Error::fault(format!("more than one row from {}", sql.text)));
                }
                Ok(found)
            }
            Db::Postgres(session) => {
                let rows = session.query(sql.text, params)?;
                match rows.as_slice() {
                    [] => Ok(None),
                    [row] => T::read(&mut Fields::of(&Row::Postgres(row))).map(Some),
                    _ => Err(Error::fault(format!("more than one row from {}", sql.text))),
                }
            }
        }
    }

    /// Like `opt`, and locks the row until this write ends.
    pub fn lock<T: Columns>(&mut self, lock: Lock, params: &[Param]) -> Result<Option<T>> {
        self.opt(if self.is_postgres() { lock.locking } else { lock.plain }, params)
    }

    pub fn one<T: Columns>(&mut self, sql: Sql, params: &[Param]) -> Result<T> {
        self.opt(sql, params)?.ok_or_else(|| Error::fault(format!("no row from {}", sql.text)))
    }

    /// Whether there is a row.
    pub fn any(&mut self, sql: Sql, params: &[Param]) -> Result<bool> {
        Ok(self.opt::<()>(sql, params)?.is_some())
    }

    pub fn all<T: Columns>(&mut self, sql: Sql, params: &[Param]) -> Result<Vec<T>> {
        let mut found = Vec::new();
        match &mut self.db {
            Db::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.text).map_err(sqlite_error)?;
                let mut rows = statement.query(rusqlite::params_from_iter(params)).map_err(sqlite_error)?;
                while let Some(row) = rows.next().map_err(sqlite_error)? {
                    found.push(T::read(&mut Fields::of(&Row::Sqlite(row)))?);
                }
            }
            Db::Postgres(session) => {
                for row in session.query(sql.text, params)? {
                    found.push(T::read(&mut Fields::of(&Row::Postgres(&row)))?);
                }
            }
        }
        Ok(found)
    }

    /// Like `opt`, for a statement that writes and returns what it wrote.
    pub fn write_opt<T: Columns>(&mut self, sql: Sql, params: &[Param]) -> Result<Option<T>> {
        let found = self.opt(sql, params)?;
        self.wrote |= found.is_some();
        Ok(found)
    }

    /// Like `all`, for a statement that writes and returns what it wrote.
    pub fn write_all<T: Columns>(&mut self, sql: Sql, params: &[Param]) -> Result<Vec<T>> {
        let found = self.all(sql, params)?;
        self.wrote |= !found.is_empty();
        Ok(found)
    }

    /// One statement for many rows of values: each parameter of the text is a list, with one value of every row.
    /// It may write, and must then return what it wrote.
    pub fn for_each<'p, T: Columns>(&mut self, sql: Sql, rows: &[impl AsRef<[Param<'p>]>]) -> Result<Vec<T>> {
        let width = rows.first().map_or(0, |row| row.as_ref().len());
        let columns: Vec<Vec<Param>> =
            (0..width).map(|column| rows.iter().map(|row| row.as_ref()[column]).collect()).collect();
        let lists: Vec<Param> = columns.iter().map(|column| Param::List(column)).collect();
        self.write_all(sql, &lists)
    }
}

pub(super) fn sqlite_error(error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode;
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            FaultKind::Conflict
        }
        // A full disk shows as one of these.
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => FaultKind::NoRoom,
        _ => FaultKind::Other,
    };
    Error::Fault(Fault { what: format!("sqlite: {error}"), kind })
}

pub(super) fn postgres_error(error: &tokio_postgres::Error) -> Error {
    use tokio_postgres::error::SqlState;
    let kind = match error.code() {
        Some(
            &SqlState::UNIQUE_VIOLATION
            | &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::LOCK_NOT_AVAILABLE,
        ) => FaultKind::Conflict,
        Some(
            &SqlState::ADMIN_SHUTDOWN
            | &SqlState::CRASH_SHUTDOWN
            | &SqlState::CANNOT_CONNECT_NOW
            | &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
            | &SqlState::IDLE_SESSION_TIMEOUT
            // The server has become a standby, or refuses writes: another may take them.
            | &SqlState::READ_ONLY_SQL_TRANSACTION,
        ) => FaultKind::Disconnected,
        // A pooler's report of connection trouble.
        Some(code) if code.code().starts_with("08") => FaultKind::Disconnected,
        // The server has run out of disk, memory or connections.
        Some(state) if state.code().starts_with("53") => FaultKind::NoRoom,
        Some(_) => FaultKind::Other,
        // Without a code from the server, the connection failed, or a value of ours does not fit.
        None if error.is_closed()
            || std::error::Error::source(error).is_some_and(|s| s.is::<std::io::Error>()) =>
        {
            FaultKind::Disconnected
        }
        None => FaultKind::Other,
    };
    let cause = match error.as_db_error() {
        Some(server) => format!(": {} {}", server.code().code(), server.message()),
        None => std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default(),
    };
    Error::Fault(Fault { what: format!("postgres: {error}{cause}"), kind })
}
