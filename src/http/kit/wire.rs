//! How values are written in JSON. Money is written as a plain decimal number from its text, times as
//! ISO 8601 UTC with milliseconds. Field names are the contract's; existing clients parse them.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::checkout::Stage;
use crate::domain::esim::EsimStatus;
use crate::domain::invoice::{InvoiceException, InvoiceStatus};
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::order::{CancelReason, OrderStatus};
use crate::domain::plan::{PlanType, VolumeKind};
use crate::domain::refusal::Difference;
use crate::domain::transfer::PaymentStatus;
use crate::error::Result;
pub use crate::ops::dates::{date, iso, iso_exact, parse as parse_time, readable};
use crate::ops::jobs::Fate;
use crate::ops::sandbox::ChainMode;
use crate::supplier::sim::{RuleName, SupplierMode};

/// Dollars as a JSON number with at most six decimals and no binary noise.
#[derive(Clone, Copy, Debug)]
pub struct Money(pub Usd);

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl PartialSchema for Money {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Number)
            // Without it, some generators choose a type that is too short for micro-dollars.
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Double)))
            // No `multipleOf`: validators that divide doubles find that 1249.18 is no multiple of a millionth.
            .description(Some("US dollars, exact to the micro-dollar: at most six decimals"))
            .examples([serde_json::json!(4.49)])
            .into()
    }
}

impl ToSchema for Money {}

/// A word of a closed set that clients may match on: written as text, described as an enum.
macro_rules! vocabulary {
    ($($name:ident $words:ident $schema:literal;)*) => {$(
        #[derive(Clone, Copy)]
        pub struct $name(pub $words);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.0.as_str())
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let words = $words::ALL.iter().map(|word| word.as_str());
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($schema)
            }
        }
    )*};
}

vocabulary! {
    OrderStatusWord OrderStatus "OrderStatus";
    EsimStatusWord EsimStatus "EsimStatus";
    PlanTypeWord PlanType "PlanType";
    PlanKindWord VolumeKind "PlanKind";
    CancelReasonWord CancelReason "CancelReason";
    NetworkWord Network "Network";
    CurrencyWord Currency "Currency";
    InvoiceStatusWord InvoiceStatus "DepositStatus";
    InvoiceExceptionWord InvoiceException "DepositException";
    PaymentStatusWord PaymentStatus "PaymentStatus";
    StageWord Stage "PurchaseStatus";
    DifferenceWord Difference "Difference";
    SupplierModeWord SupplierMode "SupplierMode";
    DoubtRuleWord RuleName "DoubtRule";
    ChainModeWord ChainMode "ChainMode";
    JobModeWord Fate "JobMode";
}

/// Gigabytes from megabytes, to three decimals.
pub fn gigabytes(megabytes: i64) -> f64 {
    (megabytes as f64 / 1024.0 * 1000.0).round() / 1000.0
}
