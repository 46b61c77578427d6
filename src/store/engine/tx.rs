//! The whole abstraction over two databases: `Tx`, `Param`, `Row`. A business write is a function over
//! `&mut Tx` and reads the same on both. Texts come from `queries!` blocks, so that a test can prepare every
//! one of them on both databases. Placeholders are `?1`: SQLite numbers `$` names by first appearance.

use tokio_postgres::types::{IsNull, Kind, ToSql, Type, private::BytesMut};

use super::postgres::Session;
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::{Error, Fault, FaultKind, Result};

/// A statement text. `only` names the one database it is written for, when a second text serves the other.
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

/// Declares a module's statements as constants, and lists them in `ALL` for the test that prepares each.
macro_rules! queries {
    ($($(#[$doc:meta])* $name:ident $(($only:ident))? = $text:expr;)*) => {
        $($(#[$doc])* const $name: $crate::store::tx::Sql = $crate::store::tx::Sql {
            text: $text,
            only: queries!(@only $($only)?),
        };)*
        pub const ALL: &[(&str, $crate::store::tx::Sql)] = &[$((stringify!($name), $name)),*];
    };
    (@only) => { None };
    (@only $only:ident) => { Some($crate::store::tx::Backend::$only) };
}
pub(crate) use queries;

#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    Int(i64),
    Text(&'a str),
    Blob(&'a [u8]),
    Null,
    /// A column of values, for a text that only PostgreSQL runs.
    List(&'a [Param<'a>]),
}

impl From<i64> for Param<'_> {
    fn from(value: i64) -> Self {
        Param::Int(value)
    }
}
impl From<bool> for Param<'_> {
    fn from(value: bool) -> Self {
        Param::Int(i64::from(value))
    }
}
impl From<Usd> for Param<'_> {
    fn from(value: Usd) -> Self {
        Param::Int(value.micros())
    }
}
impl From<Time> for Param<'_> {
    fn from(value: Time) -> Self {
        Param::Int(value.micros())
    }
}
impl From<AccountNo> for Param<'_> {
    fn from(value: AccountNo) -> Self {
        Param::Int(value.0)
    }
}
impl<'a> From<&'a str> for Param<'a> {
    fn from(value: &'a str) -> Self {
        Param::Text(value)
    }
}
impl<'a> From<&'a String> for Param<'a> {
    fn from(value: &'a String) -> Self {
        Param::Text(value)
    }
}
impl<'a> From<&'a OrderId> for Param<'a> {
    fn from(value: &'a OrderId) -> Self {
        Param::Text(value.as_str())
    }
}
impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(value: &'a [u8]) -> Self {
        Param::Blob(value)
    }
}
impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Param::Null, Into::into)
    }
}

/// Parameters from mixed values: `params![id, now, note.as_deref()]`.
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::store::tx::Param::from($value)),*] };
}
pub(crate) use params;

impl rusqlite::ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::{ToSqlOutput, ValueRef};
        Ok(ToSqlOutput::Borrowed(match self {
            Param::Int(value) => ValueRef::Integer(*value),
            Param::Text(value) => ValueRef::Text(value.as_bytes()),
            Param::Blob(value) => ValueRef::Blob(value),
            Param::Null => ValueRef::Null,
            Param::List(_) => {
                return Err(rusqlite::Error::ToSqlConversionFailure("SQLite takes no lists".into()));
            }
        }))
    }
}

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Param::Int(value) if *ty == Type::INT4 => i32::try_from(*value)?.to_sql(ty, out),
            Param::Int(value) if *ty == Type::INT8 => value.to_sql(ty, out),
            Param::Text(value) if *ty == Type::TEXT => value.to_sql(ty, out),
            Param::Blob(value) if *ty == Type::BYTEA => value.to_sql(ty, out),
            Param::Null => Ok(IsNull::Yes),
            Param::List(values) if matches!(ty.kind(), Kind::Array(_)) => values.to_sql(ty, out),
            other => Err(format!("{other:?} does not fit a column of type {ty}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

/// One row of an answer. Getters fail loudly on a wrong type or an unexpected NULL; they never make up a value.
pub enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl Row<'_> {
    pub fn int(&self, column: usize) -> Result<i64> {
        match self {
            Row::Sqlite(row) => row.get(column).map_err(sqlite_error),
            Row::Postgres(row) => row.try_get(column).map_err(|error| postgres_error(&error)),
        }
    }

    pub fn opt_usd(&self, column: usize) -> Result<Option<Usd>> {
        Ok(self.opt_int(column)?.map(Usd::from_micros))
    }

    pub fn opt_int(&self, column: usize) -> Result<Option<i64>> {
        match self {
            Row::Sqlite(row) => row.get(column).map_err(sqlite_error),
            Row::Postgres(row) => row.try_get(column).map_err(|error| postgres_error(&error)),
        }
    }

    pub fn text(&self, column: usize) -> Result<String> {
        match self {
            Row::Sqlite(row) => row.get(column).map_err(sqlite_error),
            Row::Postgres(row) => row.try_get(column).map_err(|error| postgres_error(&error)),
        }
    }

    pub fn opt_text(&self, column: usize) -> Result<Option<String>> {
        match self {
            Row::Sqlite(row) => row.get(column).map_err(sqlite_error),
            Row::Postgres(row) => row.try_get(column).map_err(|error| postgres_error(&error)),
        }
    }

    pub fn blob(&self, column: usize) -> Result<Vec<u8>> {
        match self {
            Row::Sqlite(row) => row.get(column).map_err(sqlite_error),
            Row::Postgres(row) => row.try_get(column).map_err(|error| postgres_error(&error)),
        }
    }

    pub fn opt_blob(&self, column: usize) -> Result<Option<Vec<u8>>> {
        match self {
            Row::Sqlite(row) => row.get(column).map_err(sqlite_error),
            Row::Postgres(row) => row.try_get(column).map_err(|error| postgres_error(&error)),
        }
    }

    pub fn flag(&self, column: usize) -> Result<bool> {
        Ok(self.int(column)? != 0)
    }

    pub fn usd(&self, column: usize) -> Result<Usd> {
        self.int(column).map(Usd::from_micros)
    }

    pub fn time(&self, column: usize) -> Result<Time> {
        self.int(column).map(Time::from_micros)
    }

    pub fn opt_time(&self, column: usize) -> Result<Option<Time>> {
        Ok(self.opt_int(column)?.map(Time::from_micros))
    }

    /// A word that one of our enums must know; anything else means the row is not ours.
    pub fn word<T>(&self, column: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
        let text = self.text(column)?;
        parse(&text).ok_or_else(|| Error::fault(format!("unknown word {text:?} in column {column}")))
    }
}

pub(super) enum Db<'c> {
    Sqlite(&'c rusqlite::Connection),
    Postgres(&'c mut Session),
}

pub struct Tx<'c> {
    db: Db<'c>,
    wrote: bool,
    rerun: bool,
}

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

    /// Whether this job has changed anything. A refusal must come before its job's first write.
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

    pub fn opt<T>(
        &mut self,
        sql: Sql,
        params: &[Param],
        read: impl FnOnce(&Row) -> Result<T>,
    ) -> Result<Option<T>> {
        match &mut self.db {
            Db::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.text).map_err(sqlite_error)?;
                let mut rows = statement.query(rusqlite::params_from_iter(params)).map_err(sqlite_error)?;
                let found = match rows.next().map_err(sqlite_error)? {
                    Some(row) => Some(read(&Row::Sqlite(row))?),
                    None => return Ok(None),
                };
                // A statement that writes and returns has done all of its work only when it is stepped to its end.
                if rows.next().map_err(sqlite_error)?.is_some() {
                    return Err(Error::fault(format!("more than one row from {}", sql.text)));
                }
                Ok(found)
            }
            Db::Postgres(session) => {
                let rows = session.query(sql.text, params)?;
                match rows.as_slice() {
                    [] => Ok(None),
                    [row] => read(&Row::Postgres(row)).map(Some),
                    _ => Err(Error::fault(format!("more than one row from {}", sql.text))),
                }
            }
        }
    }

    /// Like `opt`, for a statement that writes and returns what it wrote.
    pub fn write_opt<T>(
        &mut self,
        sql: Sql,
        params: &[Param],
        read: impl FnOnce(&Row) -> Result<T>,
    ) -> Result<Option<T>> {
        let found = self.opt(sql, params, read)?;
        self.wrote |= found.is_some();
        Ok(found)
    }

    /// One statement for many rows of values: each parameter of the text is a list, with one value of every row.
    /// It may write, and must then return what it wrote.
    pub fn for_each<T>(
        &mut self,
        sql: Sql,
        rows: &[Vec<Param>],
        read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let width = rows.first().map_or(0, Vec::len);
        let columns: Vec<Vec<Param>> =
            (0..width).map(|column| rows.iter().map(|row| row[column]).collect()).collect();
        let lists: Vec<Param> = columns.iter().map(|column| Param::List(column)).collect();
        self.write_all(sql, &lists, read)
    }

    /// Like `all`, for a statement that writes and returns what it wrote.
    pub fn write_all<T>(
        &mut self,
        sql: Sql,
        params: &[Param],
        read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let found = self.all(sql, params, read)?;
        self.wrote |= !found.is_empty();
        Ok(found)
    }

    pub fn one<T>(&mut self, sql: Sql, params: &[Param], read: impl FnOnce(&Row) -> Result<T>) -> Result<T> {
        self.opt(sql, params, read)?.ok_or_else(|| Error::fault(format!("no row from {}", sql.text)))
    }

    pub fn all<T>(
        &mut self,
        sql: Sql,
        params: &[Param],
        mut read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        match &mut self.db {
            Db::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql.text).map_err(sqlite_error)?;
                let mut rows = statement.query(rusqlite::params_from_iter(params)).map_err(sqlite_error)?;
                while let Some(row) = rows.next().map_err(sqlite_error)? {
                    found.push(read(&Row::Sqlite(row))?);
                }
            }
            Db::Postgres(session) => {
                for row in session.query(sql.text, params)? {
                    found.push(read(&Row::Postgres(&row))?);
                }
            }
        }
        Ok(found)
    }
}

pub(super) fn sqlite_error(error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode;
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            FaultKind::Conflict
        }
        // A disk that is full says so in one of these ways.
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
            // The server has become a standby, or was told to take no writes: another may take them.
            | &SqlState::READ_ONLY_SQL_TRANSACTION,
        ) => FaultKind::Disconnected,
        // Trouble with the connection, of which a pooler tells.
        Some(code) if code.code().starts_with("08") => FaultKind::Disconnected,
        // The server has run out of something: disk, memory, connections.
        Some(state) if state.code().starts_with("53") => FaultKind::NoRoom,
        Some(_) => FaultKind::Other,
        // Without a code from the server the trouble is the line, or a value of ours that does not fit.
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
