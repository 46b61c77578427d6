//! What a row of an answer is read into: a column into one of our types, several into a tuple or into a struct that
//! `columns!` declares. Reading fails loudly on a wrong type or an unexpected NULL; it never makes up a value.

use tokio_postgres::types::{FromSql, Type};

use super::tx::{postgres_error, sqlite_error};
use crate::error::{Error, Result};

pub enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

impl Row<'_> {
    fn get<'s, T>(&'s self, at: usize) -> Result<T>
    where
        T: rusqlite::types::FromSql + FromSql<'s>,
    {
        match self {
            Row::Sqlite(row) => row.get(at).map_err(sqlite_error),
            Row::Postgres(row) => row.try_get(at).map_err(|error| postgres_error(&error)),
        }
    }

    /// A text that is read but not kept.
    fn text(&self, at: usize) -> Result<Option<&str>> {
        match self {
            Row::Sqlite(row) => {
                let value = row.get_ref(at).map_err(sqlite_error)?;
                value.as_str_or_null().map_err(|error| sqlite_error(error.into()))
            }
            Row::Postgres(row) => row.try_get(at).map_err(|error| postgres_error(&error)),
        }
    }

    fn is_null(&self, at: usize) -> Result<bool> {
        match self {
            Row::Sqlite(row) => Ok(row.get_ref(at).map_err(sqlite_error)? == rusqlite::types::ValueRef::Null),
            Row::Postgres(row) => {
                row.try_get(at).map(|Null(is_null)| is_null).map_err(|error| postgres_error(&error))
            }
        }
    }
}

/// Whether a column is NULL, for any type.
struct Null(bool);

impl FromSql<'_> for Null {
    fn from_sql(_: &Type, _: &[u8]) -> Result<Null, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Null(false))
    }

    fn from_sql_null(_: &Type) -> Result<Null, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Null(true))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// The columns of a row, one after another.
pub struct Fields<'r> {
    row: &'r Row<'r>,
    at: usize,
}

impl<'r> Fields<'r> {
    pub fn of(row: &'r Row<'r>) -> Fields<'r> {
        Fields { row, at: 0 }
    }

    /// The next column.
    pub fn column<T: Column>(&mut self) -> Result<T> {
        let at = self.at;
        self.at += 1;
        T::get(self.row, at)?.ok_or_else(|| Error::fault(format!("column {at} is NULL")))
    }

    /// The next columns; `None` when the first of them is NULL.
    pub fn unless_null<T: Columns>(&mut self) -> Result<Option<T>> {
        if self.row.is_null(self.at)? {
            self.at += T::WIDTH;
            return Ok(None);
        }
        T::read(self).map(Some)
    }
}

/// A type that one column is read into; `None` for NULL.
pub trait Column: Sized {
    fn get(row: &Row, at: usize) -> Result<Option<Self>>;
}

impl Column for i64 {
    fn get(row: &Row, at: usize) -> Result<Option<i64>> {
        row.get(at)
    }
}

impl Column for bool {
    fn get(row: &Row, at: usize) -> Result<Option<bool>> {
        Ok(i64::get(row, at)?.map(|number| number != 0))
    }
}

impl Column for String {
    fn get(row: &Row, at: usize) -> Result<Option<String>> {
        row.get(at)
    }
}

impl Column for Vec<u8> {
    fn get(row: &Row, at: usize) -> Result<Option<Vec<u8>>> {
        row.get(at)
    }
}

impl<T: Column> Column for Option<T> {
    fn get(row: &Row, at: usize) -> Result<Option<Option<T>>> {
        T::get(row, at).map(Some)
    }
}

/// A word that one of our enums must know; any other word means that the row is not ours.
pub fn word<T>(row: &Row, at: usize, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
    let Some(text) = row.text(at)? else { return Ok(None) };
    let unknown = || Error::fault(format!("unknown word {text:?} in column {at}"));
    parse(text).ok_or_else(unknown).map(Some)
}

/// A type that one or more neighbouring columns are read into.
pub trait Columns: Sized {
    const WIDTH: usize;
    fn read(fields: &mut Fields) -> Result<Self>;
}

/// A type whose columns `columns!` has declared.
pub trait Stored: Columns {
    /// As a SELECT lists them.
    const COLUMNS: &'static str;
}

impl<T: Column> Columns for T {
    const WIDTH: usize = 1;

    fn read(fields: &mut Fields) -> Result<T> {
        fields.column()
    }
}

/// Ignores the contents of the row.
impl Columns for () {
    const WIDTH: usize = 0;

    fn read(_: &mut Fields) -> Result<()> {
        Ok(())
    }
}

macro_rules! tuples {
    ($(($($part:ident)+))*) => {$(
        impl<$($part: Columns),+> Columns for ($($part,)+) {
            const WIDTH: usize = 0 $(+ $part::WIDTH)+;

            fn read(fields: &mut Fields) -> Result<Self> {
                Ok(($($part::read(fields)?,)+))
            }
        }
    )*};
}

tuples! { (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) }
