//! How columns store the domain's types: money, times and account numbers as numbers, ids as texts, enums as words.

use super::engine::{Column, Param, Row, Value, word};
use crate::domain::account::AccountKind;
use crate::domain::amount::Fiat;
use crate::domain::authorization::{AuthorizationState, Reason};
use crate::domain::batch::LineState;
use crate::domain::checkout::CheckoutStatus;
use crate::domain::client::Origin;
use crate::domain::cost::Rate;
use crate::domain::coupon::{Applicability, UseState};
use crate::domain::email::Email;
use crate::domain::esim::{EsimStatus, ProfileState, ServiceState};
use crate::domain::event::EventKind;
use crate::domain::ids::{
    AccountId, AccountNo, AttemptId, BatchId, InvoiceId, KeyId, LoginId, MailId, MemberId, OrderId,
    SessionId, TokenId, WebhookId,
};
use crate::domain::invoice::InvoiceStatus;
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::order::OrderStatus;
use crate::domain::plan::PlanType;
use crate::domain::role::Role;
use crate::domain::time::Time;
use crate::domain::token::TokenKind;
use crate::domain::transfer::TransferState;
use crate::domain::webhook::WebhookStatus;
use crate::error::Result;

macro_rules! numbers {
    ($($type:ty: |$value:ident| $number:expr, $made:expr;)*) => {$(
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
        impl Column for $type {
            fn get(row: &Row, at: usize) -> Result<Option<$type>> {
                Ok(i64::get(row, at)?.map($made))
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
            fn get(row: &Row, at: usize) -> Result<Option<$type>> {
                Ok(String::get(row, at)?.map(<$type>::from_text))
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
            fn get(row: &Row, at: usize) -> Result<Option<$type>> {
                word(row, at, <$type>::parse)
            }
        }
    )*};
}

numbers! {
    Usd: |value| value.micros(), Usd::from_micros;
    Time: |value| value.micros(), Time::from_micros;
    AccountNo: |value| value.0, AccountNo;
    Rate: |value| value.billionths(), Rate::from_billionths;
}

texts! { AccountId, AttemptId, BatchId, Email, InvoiceId, KeyId, LoginId, MailId, MemberId, OrderId, Origin, SessionId, TokenId, WebhookId }

words! {
    AccountKind, AddressKind, Applicability, AuthorizationState, CheckoutStatus, Currency, EsimStatus, EventKind, InvoiceStatus,
    LineState, Network, OrderStatus, PlanType, ProfileState, Reason, Role, ServiceState, TokenKind, TransferState, UseState,
    WebhookStatus,
}

impl Value for Fiat {
    fn param(&self) -> Param<'_> {
        Param::Text(self.as_str())
    }
}

impl Column for Fiat {
    fn get(row: &Row, at: usize) -> Result<Option<Fiat>> {
        word(row, at, Fiat::parse)
    }
}

/// Kinds of events are words with commas between them.
impl Column for Vec<EventKind> {
    fn get(row: &Row, at: usize) -> Result<Option<Vec<EventKind>>> {
        word(row, at, |words| {
            words.split(',').filter(|word| !word.is_empty()).map(EventKind::parse).collect()
        })
    }
}
