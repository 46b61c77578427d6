//! Everything the service may refuse, by name. The caller can act on each of these; what is our own fault is
//! a `Fault` instead. Status, code and sentence stand in one table in `crate::error`.

use super::money::Usd;
use super::network::{Currency, Network};
use super::order::CancelReason;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Malformed as a whole; the sentence says how.
    Malformed(String),
    /// Well-formed JSON with fields that are wrong: all of them at once.
    Invalid(Vec<FieldError>),
    Unauthenticated,
    /// As `Unauthenticated`, where a bearer token is the key.
    TokenRequired,
    OtpInvalid,
    PersonalTokenOnly,
    InsufficientBalance {
        balance: Usd,
        required: Usd,
    },
    AccountSuspended,
    DailyLimit {
        limit: Usd,
    },
    ReadOnlyKey,
    AddressNotAllowed,
    HostNotAllowed,
    /// The account has no order numbers left.
    NoNumbersLeft,
    NoMoreAccounts,
    PlanNotFound,
    EsimNotFound,
    OrderNotFound,
    AccountNotFound,
    KeyNotFound,
    TokenNotFound,
    NotFound,
    Gone,
    CodeForgotten,
    MethodNotAllowed,
    NotAcceptable,
    RequestTimeout,
    PayloadTooLarge,
    UnsupportedMediaType,
    IdempotencyConflict,
    PriceChanged {
        price: Usd,
    },
    NotCancellable(CancelReason),
    NotFailable,
    NotRetryable,
    RefundTooLarge {
        left: Usd,
    },
    EsimNotActive,
    EsimCancelled,
    EsimWithheld,
    WrongPlanType,
    RateLimited {
        retry_after_secs: u64,
    },
    SupplierRejected {
        refunded: Usd,
    },
    /// What was paid for is no longer available.
    NotDelivered {
        refunded: Usd,
    },
    SupplierUnavailable {
        refunded: Usd,
    },
    CarrierUnavailable,
    InvoiceNotFound,
    /// This token cannot be taken on this network; these pairs can.
    UnsupportedPair(Vec<(Currency, Network)>),
    TooManyInvoices {
        retry_after_secs: u64,
    },
    TooManyCheckouts {
        retry_after_secs: u64,
    },
    CheckoutEnded,
    BelowCost {
        cost: Usd,
    },
    /// Whatever is wrong with the code: unknown, ended, used up, or for something else.
    CouponInvalid,
    CouponExists,
    CouponNotFound,
    /// The coupon of an expired checkout was used by others since.
    CouponGone,
    /// Too many invalid codes: whoever names them may be guessing.
    TooManyCodes {
        retry_after_secs: u64,
    },
    TxNotForInvoice,
    TxFailed,
    TransferAlreadyUsed,
    TransferNotFound,
    TransferNotUnmatched,
    /// A payer's signature was claimed for another order.
    SignatureAlreadyUsed,
    /// The order that a signature is for was paid, or is being paid by another.
    NothingToPay,
    /// A payment was asked for something else.
    PaidForAnother,
    /// Nobody can claim anything of this invoice, or somebody has.
    NothingOwed,
    /// A link for topping up is unknown or too old.
    MagicLinkEnded,
    ChainUnavailable,
    /// A restored backup waits for the operator's word.
    BuyingOnHold,
    /// The database takes nothing at the moment.
    NoRoom,
    Overloaded,
}

impl Refusal {
    pub fn field(field: &str, message: impl Into<String>) -> Refusal {
        Refusal::Invalid(vec![FieldError { field: field.into(), message: message.into() }])
    }

    /// When the same may be tried again, where that is known.
    pub fn retry_after_secs(&self) -> Option<u64> {
        match self {
            Refusal::RateLimited { retry_after_secs }
            | Refusal::TooManyInvoices { retry_after_secs }
            | Refusal::TooManyCheckouts { retry_after_secs }
            | Refusal::TooManyCodes { retry_after_secs } => Some(*retry_after_secs),
            _ => None,
        }
    }
}
