//! Everything the service may refuse, by name. The caller can act on each of these; our own failures are a `Fault`
//! instead. Status, code and sentence stand in one table in `crate::error`.

use super::money::Usd;
use super::network::{Currency, Network};
use super::order::CancelReason;
use super::time::Time;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Malformed as a whole; the sentence says how.
    Malformed(String),
    /// Well-formed JSON with wrong fields: all of them at once.
    Invalid(Vec<FieldError>),
    Unauthenticated,
    /// Like `Unauthenticated`, at a door that takes bearer tokens.
    TokenRequired,
    OtpInvalid,
    PersonalTokenOnly,
    InsufficientBalance {
        balance: Usd,
        required: Usd,
    },
    /// The same with the page that fills the wallet, until its link ends.
    WalletShort {
        balance: Usd,
        required: Usd,
        link: String,
        until: Time,
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
    /// The code is invalid for any reason: unknown, ended, used up, or for something else.
    CouponInvalid,
    CouponExists,
    CouponNotFound,
    /// Others have used up the coupon of an expired checkout.
    CouponGone,
    /// Too many invalid codes: the caller may be guessing.
    TooManyCodes {
        retry_after_secs: u64,
    },
    TxNotForInvoice,
    TxFailed,
    TransferAlreadyUsed,
    TransferNotFound,
    TransferNotUnmatched,
    /// A payer's signature was already claimed for another order.
    SignatureAlreadyUsed,
    /// The order that a signature is for is paid already, or is being paid by another signature.
    NothingToPay,
    /// The payment was requested for another plan or eSIM.
    PaidForAnother,
    /// Nothing is owed for this invoice, or somebody has claimed it already.
    NothingOwed,
    /// A top-up link is unknown or too old.
    MagicLinkEnded,
    ChainUnavailable,
    /// A restored backup waits for the operator's approval.
    BuyingOnHold,
    /// The database takes no writes at the moment.
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
