//! Values that go into a statement, for both databases.

use tokio_postgres::types::{IsNull, Kind, ToSql, Type, private::BytesMut};

use crate::error::Result;

#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    Int(i64),
    Text(&'a str),
    Blob(&'a [u8]),
    Null,
    /// A column of values, for a text that only PostgreSQL runs.
    List(&'a [Param<'a>]),
}

/// Parameters from mixed values: `params![&id, now, &note]`.
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::store::engine::Param::from($value)),*] };
}
pub(crate) use params;

/// What can be stored in a column.
pub trait Value {
    fn param(&self) -> Param<'_>;
}

impl<'a, T: Value + ?Sized> From<&'a T> for Param<'a> {
    fn from(value: &'a T) -> Self {
        value.param()
    }
}

impl<T: Value> Value for Option<T> {
    fn param(&self) -> Param<'_> {
        self.as_ref().map_or(Param::Null, T::param)
    }
}

impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Param::Null, Into::into)
    }
}

macro_rules! values {
    ($($type:ty: |$value:ident| $param:expr;)*) => {$(
        impl Value for $type {
            fn param(&self) -> Param<'_> {
                let $value = self;
                $param
            }
        }
    )*};
}

values! {
    i64: |value| Param::Int(*value);
    bool: |value| Param::Int(i64::from(*value));
    str: |value| Param::Text(value);
    &str: |value| Param::Text(value);
    String: |value| Param::Text(value);
    [u8]: |value| Param::Blob(value);
    [u8; 32]: |value| Param::Blob(value);
    Vec<u8>: |value| Param::Blob(value);
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
