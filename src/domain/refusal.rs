//! Everything the service may refuse, by name. The caller can act on each of these; our own failures are a `Fault`
//! instead. Status, code and sentence stand in one table in `crate::error`.

use std::fmt;

use super::ids::{InvoiceId, OrderId};
use super::money::Usd;
use super::network::{Currency, Network};
use super::order::CancelReason;
use super::role::Ability;
use super::text::is_hidden;
use super::time::Time;
use super::words::words;

/// A name that somebody else made up is shown up to here.
const LONGEST_SHOWN: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    pub message: String,
}

const UNKNOWN: &str = "unknown";

impl FieldError {
    /// For a name that none of the known ones equals.
    pub fn unknown(field: &str, hint: &str) -> FieldError {
        let shown: String = field.chars().filter(|c| !is_hidden(*c)).take(LONGEST_SHOWN).collect();
        FieldError { field: shown, message: format!("{UNKNOWN}{hint}") }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FieldError { field, message } = self;
        match message.starts_with(UNKNOWN) {
            true => write!(f, "\"{field}\": {message}"),
            false => write!(f, "{field} {message}"),
        }
    }
}

words! {
    /// In what a request differs from an earlier one with the same reference.
    pub enum Difference: ALL {
        /// An order, a top-up, a cancel, or a payment in another way.
        Operation = "operation",
        Package = "packageCode",
        Esim = "eSIM",
        Order = "order",
        Email = "customerEmail",
        Coupon = "discountCode",
        Network = "network",
        Currency = "currency",
    }
}

/// Those that are not the same.
pub fn different(compared: impl IntoIterator<Item = (Difference, bool)>) -> Vec<Difference> {
    compared.into_iter().filter(|(_, same)| !same).map(|(what, _)| what).collect()
}

/// A reference that belongs to an earlier request, which was another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflict {
    /// The order that holds it, or the invoice of a checkout.
    pub holder: Option<String>,
    pub differs: Vec<Difference>,
}

impl Conflict {
    pub fn with_order(order: &OrderId, differs: Vec<Difference>) -> Refusal {
        Conflict { holder: Some(order.to_string()), differs }.into()
    }

    pub fn with_checkout(invoice: &InvoiceId, differs: Vec<Difference>) -> Refusal {
        Conflict { holder: Some(invoice.to_string()), differs }.into()
    }
}

impl From<Conflict> for Refusal {
    fn from(conflict: Conflict) -> Refusal {
        Refusal::IdempotencyConflict(Box::new(conflict))
    }
}

/// How a plan does not suit what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanMistake {
    /// A top-up where a new eSIM is bought.
    TopupAlone,
    /// A new eSIM where a top-up is bought.
    BaseAsTopup,
    /// A top-up that is for other eSIMs.
    Unfit,
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
    /// Neither what the authenticator app shows nor a recovery code that is left.
    SecondFactorWrong,
    /// The app's code is right, and was used before.
    SecondFactorUsed,
    /// Too many codes of the app were wrong: somebody may be guessing.
    SecondFactorRests {
        retry_after_secs: u64,
    },
    SecondFactorOn,
    /// None is on, or none was begun lately.
    NoSecondFactor,
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
    /// A form of a page that this browser was not given, or not any more.
    FormNotOurs,
    /// It takes a sign-in of the last minutes.
    SignInAnew,
    /// A member's role does not cover it.
    RoleNotAllowed(Ability),
    MemberNotFound,
    /// The account has no order numbers left.
    NoNumbersLeft,
    NoMoreAccounts,
    PlanNotFound,
    EsimNotFound,
    OrderNotFound,
    AccountNotFound,
    KeyNotFound,
    TokenNotFound,
    WebhookNotFound,
    DeliveryNotFound,
    /// The event of a delivery is not kept any more.
    EventForgotten,
    TooManyWebhooks {
        most: i64,
    },
    WebhookDisabled,
    /// A webhook is tried by hand already, or was a moment ago.
    TryingAlready {
        retry_after_secs: u64,
    },
    NotFound,
    Gone,
    CodeForgotten,
    /// With the methods that are allowed, once they are known.
    MethodNotAllowed {
        allowed: Option<String>,
    },
    NotAcceptable,
    RequestTimeout,
    PayloadTooLarge,
    UnsupportedMediaType,
    IdempotencyConflict(Box<Conflict>),
    PriceChanged {
        price: Usd,
    },
    /// The supplier asks more than it did when the price was made.
    CostChanged {
        refunded: Usd,
    },
    NotCancellable(CancelReason),
    NotFailable,
    NotRetryable,
    NotUnderReview,
    NotWithdrawable,
    /// Its supplier may take it back, but it was used, or nobody knows.
    UsedUnderReview,
    RefundTooLarge {
        left: Usd,
    },
    EsimNotActive,
    EsimCancelled,
    EsimWithheld,
    WrongPlanType(PlanMistake),
    RateLimited {
        retry_after_secs: u64,
    },
    /// No other code is mailed yet, and an earlier one is still good for so long.
    CodeStillGood {
        retry_after_secs: u64,
        good_for_secs: u64,
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
    /// As many calls of the account wait for events as may.
    TooManyWaiting {
        retry_after_secs: u64,
    },
    /// As many pages are told of news as may be.
    TooManyViewers {
        retry_after_secs: u64,
    },
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
            | Refusal::CodeStillGood { retry_after_secs, .. }
            | Refusal::TooManyInvoices { retry_after_secs }
            | Refusal::TooManyCheckouts { retry_after_secs }
            | Refusal::TooManyWaiting { retry_after_secs }
            | Refusal::TooManyViewers { retry_after_secs }
            | Refusal::TryingAlready { retry_after_secs }
            | Refusal::SecondFactorRests { retry_after_secs }
            | Refusal::TooManyCodes { retry_after_secs } => Some(*retry_after_secs),
            _ => None,
        }
    }
}
