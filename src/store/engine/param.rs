//! Values that go into a statement, for both databases, and how our types become them and are read again.

use tokio_postgres::types::{IsNull, Kind, ToSql, Type, private::BytesMut};

use super::row::{Column, Row, word};
use crate::domain::account::AccountKind;
use crate::domain::authorization::{AuthorizationState, Reason};
use crate::domain::checkout::CheckoutStatus;
use crate::domain::client::Origin;
use crate::domain::coupon::{Applicability, UseState};
use crate::domain::email::Email;
use crate::domain::esim::EsimStatus;
use crate::domain::ids::{
    AccountId, AccountNo, AttemptId, InvoiceId, KeyId, LoginId, MailId, OrderId, TokenId,
};
use crate::domain::invoice::InvoiceStatus;
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::order::OrderStatus;
use crate::domain::plan::PlanType;
use crate::domain::time::Time;
use crate::domain::token::TokenKind;
use crate::domain::transfer::TransferState;
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

macro_rules! numbers {
    ($($type:ty: |$value:ident| $number:expr;)*) => {$(
        impl Value for $type {
            fn param(&self) -> Param<'_> {
                Param::from(*self)
            }
        }
        impl From<$type> for Param<'_> {
            fn from($value: $type) -> Self {
                Param::Int($number)
            }
        }
    )*};
}

macro_rules! texts {
    ($($type:ty),* $(,)?) => {$(
        impl Value for $type {
            fn param(&self) -> Param<'_> {
                Param::Text(self.as_str())
            }
        }
        impl Column for $type {
            fn read(row: &Row, at: usize) -> Result<$type> {
                String::read(row, at).map(<$type>::from_text)
            }
        }
    )*};
}

macro_rules! words {
    ($($type:ty),* $(,)?) => {$(
        impl Value for $type {
            fn param(&self) -> Param<'_> {
                Param::from(*self)
            }
        }
        impl From<$type> for Param<'_> {
            fn from(value: $type) -> Self {
                Param::Text(value.as_str())
            }
        }
        impl Column for $type {
            fn read(row: &Row, at: usize) -> Result<$type> {
                word(row, at, <$type>::parse)
            }
        }
    )*};
}

macro_rules! bytes {
    ($($type:ty: $kind:ident;)*) => {$(
        impl Value for $type {
            fn param(&self) -> Param<'_> {
                Param::$kind(self)
            }
        }
    )*};
}

numbers! {
    i64: |value| value;
    bool: |value| i64::from(value);
    Usd: |value| value.micros();
    Time: |value| value.micros();
    AccountNo: |value| value.0;
}

bytes! {
    str: Text;
    &str: Text;
    String: Text;
    [u8]: Blob;
    [u8; 32]: Blob;
    Vec<u8>: Blob;
}

texts! { AccountId, AttemptId, Email, InvoiceId, KeyId, LoginId, MailId, OrderId, Origin, TokenId }

words! {
    AccountKind, AddressKind, Applicability, AuthorizationState, CheckoutStatus, Currency, EsimStatus, InvoiceStatus,
    Network, OrderStatus, PlanType, Reason, TokenKind, TransferState, UseState,
}

impl Column for bool {
    fn read(row: &Row, at: usize) -> Result<bool> {
        Ok(i64::read(row, at)? != 0)
    }
}

impl Column for Usd {
    fn read(row: &Row, at: usize) -> Result<Usd> {
        i64::read(row, at).map(Usd::from_micros)
    }
}

impl Column for Time {
    fn read(row: &Row, at: usize) -> Result<Time> {
        i64::read(row, at).map(Time::from_micros)
    }
}

impl Column for AccountNo {
    fn read(row: &Row, at: usize) -> Result<AccountNo> {
        i64::read(row, at).map(AccountNo)
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
