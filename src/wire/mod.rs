//! How values are written in JSON: money as a plain decimal number from its text, times as ISO 8601 UTC with
//! milliseconds, words of closed sets as text. Field names are the contract's; existing clients parse them. Here are the
//! shapes that both answers and events have; what only one door says is described there.

pub mod csv;
pub mod dates;
pub mod deposits;
pub mod esims;
pub mod events;
pub mod orders;
pub mod person;
pub mod wallet;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::esim::EsimStatus;
use crate::domain::event::EventKind;
use crate::domain::invoice::{InvoiceException, InvoiceStatus};
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::order::{CancelReason, OrderStatus};
use crate::domain::transfer::PaymentStatus;
use crate::domain::webhook::WebhookStatus;

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

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.0.as_str())
            }
        }

        impl ::utoipa::PartialSchema for $name {
            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::Schema> {
                let words = $words::ALL.iter().map(|word| word.as_str());
                ::utoipa::openapi::ObjectBuilder::new().schema_type(::utoipa::openapi::Type::String).enum_values(Some(words)).into()
            }
        }

        impl ::utoipa::ToSchema for $name {
            fn name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed($schema)
            }
        }
    )*};
}
pub(crate) use vocabulary;

vocabulary! {
    OrderStatusWord OrderStatus "OrderStatus";
    EsimStatusWord EsimStatus "EsimStatus";
    CancelReasonWord CancelReason "CancelReason";
    NetworkWord Network "Network";
    CurrencyWord Currency "Currency";
    InvoiceStatusWord InvoiceStatus "DepositStatus";
    InvoiceExceptionWord InvoiceException "DepositException";
    PaymentStatusWord PaymentStatus "PaymentStatus";
    EventWord EventKind "EventType";
    WebhookStatusWord WebhookStatus "WebhookStatus";
}

/// Gigabytes from megabytes, to three decimals.
pub fn gigabytes(megabytes: i64) -> f64 {
    (megabytes as f64 / 1024.0 * 1000.0).round() / 1000.0
}

/// A link that asks a wallet to pay. EIP-681 on EVM networks: a call of `transfer` on the token's contract, which has an
/// amount always. TRON's wallets have no common form; this is what most of them read.
pub fn payment_uri(network: Network, contract: &str, address: &str, amount: Usd) -> String {
    match network.kind() {
        AddressKind::Evm => {
            let (chain, units) = (network.chain_id(), amount.micros());
            format!("ethereum:{contract}@{chain}/transfer?address={address}&uint256={units}")
        }
        AddressKind::Tron => format!("tron:{address}?token={contract}&amount={amount}"),
    }
}
