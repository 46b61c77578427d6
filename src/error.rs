//! What can go wrong, in two kinds: a `Refusal`, on which the caller can act, and a `Fault`, which is ours. The table
//! in `Refusal::problem` gives every refusal its status, code and sentence, for every door.

use std::fmt;

use crate::domain::refusal::{Conflict, Difference, FieldError, PlanMistake, Refusal};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone)]
pub enum Error {
    Refused(Refusal),
    Fault(Fault),
}

/// Our own failure. The text is for the log; callers see only a request id.
#[derive(Debug, Clone)]
pub struct Fault {
    pub what: String,
    pub kind: FaultKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Another transaction won: run the job again and it will see why.
    Conflict,
    /// The connection to the database broke or cannot write; the request may or may not have happened.
    Disconnected,
    /// The database has no room now: a full disk, or a server out of memory or connections. Nothing was written.
    NoRoom,
    /// A setting does not fit the database or this build: the operator must change it. Exit 2.
    Settings,
    Other,
}

impl Error {
    pub fn fault(what: impl fmt::Display) -> Error {
        Error::Fault(Fault { what: what.to_string(), kind: FaultKind::Other })
    }

    /// The refusal that callers can act on; also for a fault that passes by itself.
    pub fn refusal(&self) -> Option<&Refusal> {
        static NO_ROOM: Refusal = Refusal::NoRoom;
        match self {
            Error::Refused(refusal) => Some(refusal),
            Error::Fault(Fault { kind: FaultKind::NoRoom, .. }) => Some(&NO_ROOM),
            Error::Fault(_) => None,
        }
    }

    pub fn settings(what: impl fmt::Display) -> Error {
        Error::Fault(Fault { what: what.to_string(), kind: FaultKind::Settings })
    }

    /// Whether somebody else holds the same rows or the whole database: the same may work in a moment.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Fault(Fault { kind: FaultKind::Conflict, .. }))
    }

    /// Whether the connection to the database is gone or unusable.
    pub fn is_lost(&self) -> bool {
        matches!(self, Error::Fault(Fault { kind: FaultKind::Disconnected, .. }))
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::Refused(refusal)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(refusal) => f.write_str(&refusal.problem().detail),
            Error::Fault(fault) => f.write_str(&fault.what),
        }
    }
}

impl std::error::Error for Error {}

/// A refusal as the outside sees it.
pub struct Problem {
    pub status: u16,
    pub code: &'static str,
    pub title: &'static str,
    pub detail: String,
}

/// What happened to the money when a supplier did not deliver.
fn given_back(refunded: crate::domain::money::Usd) -> String {
    if refunded.is_positive() {
        format!("the {refunded} USD held for it are back in the wallet")
    } else {
        "nothing was charged".into()
    }
}

/// All that is wrong with a request, in one line.
fn mistakes(fields: &[FieldError]) -> String {
    let mut all = String::new();
    for wrong in fields {
        // A question ends by itself.
        all.push_str(if all.is_empty() {
            ""
        } else if all.ends_with('?') {
            " "
        } else {
            "; "
        });
        all.push_str(&wrong.to_string());
    }
    all
}

/// Whose a reference is, and what was different then.
pub fn earlier(conflict: &Conflict) -> String {
    let holder = conflict.holder.as_deref().unwrap_or("another request");
    let differs: Vec<&str> = conflict.differs.iter().map(|what| Difference::as_str(*what)).collect();
    match differs.is_empty() {
        true => format!("belongs to {holder}"),
        false => format!("belongs to {holder}, which differs in {}", differs.join(", ")),
    }
}

/// Every code that a problem can have, and what to do about it. The docs page explains them by this list.
#[rustfmt::skip]
pub const CODES: &[(&str, &str)] = &[
    ("INVALID_REQUEST", "Something in the request is malformed, missing, misspelt or out of range. `errors` names every field that is wrong; correct them and send it again."),
    ("UNAUTHENTICATED", "Key, secret or token are missing, wrong or revoked. Send the two headers of an API key, or a token as `Authorization: Bearer`; ask for a new one if it was revoked."),
    ("OTP_INVALID", "The code is wrong, used or expired. Ask for a new one and type it in within ten minutes."),
    ("PAYMENT_REQUIRED", "The normal first answer to a checkout: pay what `payment` says, then poll `pollingUrl`."),
    ("INSUFFICIENT_BALANCE", "The wallet is short by `shortfallUsd`. Fund it, then send the same request again."),
    ("ACCOUNT_SUSPENDED", "Reading and replays work, new purchases and invoices do not. Ask the operator."),
    ("LIMIT_EXCEEDED", "The key, token, account or address may not do this, or not so much of it today. `detail` says which limit it was."),
    ("PLAN_NOT_FOUND", "No plan with this `packageCode` is on sale. Read the plans again and choose one of them."),
    ("ESIM_NOT_FOUND", "No eSIM of this account has this ICCID. List the orders to find it."),
    ("ORDER_NOT_FOUND", "No order of this account has this id. List the orders to find it."),
    ("INVOICE_NOT_FOUND", "No invoice that you may see has this id. Take the id from the answer that opened it."),
    ("NOT_FOUND", "There is nothing at this address, or no longer. Check the path."),
    ("METHOD_NOT_ALLOWED", "The address does not take this method. The header `Allow` lists those that it takes."),
    ("NOT_ACCEPTABLE", "The header `Accept` rules out JSON, which is all that is answered here. Send `application/json` or leave it out."),
    ("REQUEST_TIMEOUT", "The body did not arrive in time, and nothing was done. Send it again."),
    ("PAYLOAD_TOO_LARGE", "A request body has at most 64 KiB. Send less."),
    ("UNSUPPORTED_MEDIA_TYPE", "Send the body as JSON, with `Content-Type: application/json`."),
    ("IDEMPOTENCY_CONFLICT", "The reference belongs to an earlier request, which was another one. `orderId` names what holds it and `differs` what is different. Use a new reference for something new, or the same request for the same thing."),
    ("PRICE_CHANGED", "The plan costs more than `maxPriceUsd` now: `priceUsd`. Decide again and send a higher limit. Without `priceUsd` the supplier has raised its price since yours was made, and the money was given back: read the plans again."),
    ("NOT_CANCELLABLE", "The order cannot be cancelled any more, or not yet. `reason` says why."),
    ("ESIM_NOT_ACTIVE", "The eSIM is cancelled, being cancelled, or expired. Buy a new one."),
    ("WEBHOOK_DISABLED", "The webhook is disabled. Enable it with PATCH and `{\"status\": \"ACTIVE\"}`, then send the same request again."),
    ("TRANSFER_ALREADY_USED", "The transfer or signature was used before and counts once. `detail` says for what."),
    ("UNSUPPORTED_PAIR", "This currency is not accepted on this network. Choose one of `pairs`."),
    ("WRONG_PLAN_TYPE", "A new eSIM needs a BASE plan, a top-up one of the eSIM's topup-plans. `detail` says which of the two was wrong."),
    ("TX_NOT_FOR_INVOICE", "The transaction pays nothing to the invoice's address. Check the hash."),
    ("TX_FAILED", "The transaction was reverted and moved nothing. Pay again."),
    ("COUPON_INVALID", "The discount code is unknown, expired, used up or not for this plan. Buy without it, or with another."),
    ("RATE_LIMITED", "Too much at once. Wait for as many seconds as the header `Retry-After` says."),
    ("INTERNAL", "Our fault. Send the same request again, with the same reference; quote the `requestId` when you ask for help."),
    ("SUPPLIER_REJECTED", "The supplier refused, and the money was given back. Try later, or another plan."),
    ("SUPPLIER_UNAVAILABLE", "The supplier was not reached; nothing was charged, or it was given back. Try again shortly."),
    ("CHAIN_UNAVAILABLE", "The network's nodes do not answer; nothing is lost. Try again shortly."),
    ("OVERLOADED", "Too much is waiting; nothing was charged. Try again shortly."),
    ("ON_HOLD", "Buying is on hold while the operator checks a restored backup; nothing was charged. Try again later."),
];

/// The name of a code's section on the docs page.
pub fn anchor(code: &str) -> String {
    code.to_lowercase().replace('_', "-")
}

impl Refusal {
    #[rustfmt::skip]
    pub fn problem(&self) -> Problem {
        use Refusal::*;
        let (status, code, title, detail): (u16, &'static str, &'static str, String) = match self {
            Malformed(how) => (400, "INVALID_REQUEST", "Invalid request", how.clone()),
            Invalid(fields) => (400, "INVALID_REQUEST", "Invalid request", mistakes(fields)),
            Unauthenticated => (401, "UNAUTHENTICATED", "Not authenticated", "A valid X-B2B-Key and X-B2B-Secret are required.".into()),
            TokenRequired => (401, "UNAUTHENTICATED", "Not authenticated", "A valid token is required, as Authorization: Bearer sgp_… or sgs_…; log in with a mailed code to get one.".into()),
            OtpInvalid => (401, "OTP_INVALID", "Code not valid", "This code is wrong, used or expired; ask for a new one.".into()),
            SecondFactorWrong => (401, "OTP_INVALID", "Code not valid", "This code is wrong or too old; take the six digits that your authenticator app shows now, or a recovery code that you have not used.".into()),
            SecondFactorUsed => (401, "OTP_INVALID", "Code already used", "This code was used already, and each counts once; wait until your authenticator app shows the next one.".into()),
            SecondFactorRests { retry_after_secs } => (429, "RATE_LIMITED", "Too many wrong codes",
                format!("Too many codes of the authenticator app were wrong; try again in {retry_after_secs} s, or use a recovery code.")),
            SecondFactorOn => (409, "LIMIT_EXCEEDED", "Already on", "A second factor is on already; turn it off first to use another app.".into()),
            SignInAnew => (403, "LIMIT_EXCEEDED", "Sign in anew", "Whoever sets this up must have signed in within the last 15 minutes: sign out, and sign in anew. Nothing was changed.".into()),
            NoSecondFactor => (404, "NOT_FOUND", "No second factor", "No second factor is on, or its setting up took more than an hour; begin again.".into()),
            PersonalTokenOnly => (403, "LIMIT_EXCEEDED", "Limit exceeded", "A session token cannot manage tokens; use a personal access token.".into()),
            InsufficientBalance { balance, required } => (402, "INSUFFICIENT_BALANCE", "Insufficient balance",
                format!("The wallet holds {balance} USD and this costs {required} USD.")),
            WalletShort { balance, required, link, .. } => (402, "INSUFFICIENT_BALANCE", "Insufficient balance",
                format!("Insufficient wallet balance: the wallet holds {balance} USD and this costs {required} USD. Nothing was charged. Pay in at {link} within 30 minutes, then buy again.")),
            AccountSuspended => (403, "ACCOUNT_SUSPENDED", "Account suspended", "This account is suspended: reading still works, buying does not.".into()),
            DailyLimit { limit } => (403, "LIMIT_EXCEEDED", "Limit exceeded", format!("This key may spend {limit} USD a day (UTC), and with its open checkouts this purchase would exceed it.")),
            ReadOnlyKey => (403, "LIMIT_EXCEEDED", "Limit exceeded", "This key is read-only.".into()),
            AddressNotAllowed => (403, "LIMIT_EXCEEDED", "Limit exceeded", "This key may not be used from your address.".into()),
            HostNotAllowed => (403, "LIMIT_EXCEEDED", "Host not allowed", "This address is for callers on this machine, by a loopback name or a name of the gateway's own URLs.".into()),
            FormNotOurs => (403, "LIMIT_EXCEEDED", "Please send this again", "Nothing was changed. This form is from before you signed in or out, or it is too old, or it did not come from our page; it also needs cookies. Open the page anew, and send it from there.".into()),
            RoleNotAllowed(ability) => (403, "LIMIT_EXCEEDED", "Not for your role", format!("Your role in this team does not let you {}. An owner of the team can change that. Nothing was changed.", ability.in_words())),
            NoNumbersLeft => (403, "LIMIT_EXCEEDED", "No order numbers left", "This account has used up its order numbers and can begin no more orders; ask the operator for another account. Nothing was charged.".into()),
            NoMoreAccounts => (403, "LIMIT_EXCEEDED", "No more accounts", "This gateway is full and takes no new accounts; those that exist are served.".into()),
            PlanNotFound => (404, "PLAN_NOT_FOUND", "Plan not found", "No plan with this packageCode is on sale.".into()),
            EsimNotFound => (404, "ESIM_NOT_FOUND", "eSIM not found", "No eSIM has this ICCID or came with this order.".into()),
            OrderNotFound => (404, "ORDER_NOT_FOUND", "Order not found", "No order of this account has this id.".into()),
            AccountNotFound => (404, "NOT_FOUND", "Account not found", "No account has this id or email.".into()),
            MemberNotFound => (404, "NOT_FOUND", "Member not found", "Nobody in this team has this id.".into()),
            KeyNotFound => (404, "NOT_FOUND", "Key not found", "No API key has this id.".into()),
            TokenNotFound => (404, "NOT_FOUND", "Token not found", "No token of this account has this id.".into()),
            WebhookNotFound => (404, "NOT_FOUND", "Webhook not found", "No webhook of this account has this id.".into()),
            DeliveryNotFound => (404, "NOT_FOUND", "Delivery not found", "No delivery to this webhook in the last 30 days has this id.".into()),
            EventForgotten => (410, "NOT_FOUND", "Gone", "The event of this delivery is not kept any more: it is more than 90 days old.".into()),
            TooManyWebhooks { most } => (403, "LIMIT_EXCEEDED", "Too many webhooks", format!("An account may have {most} webhooks, and this one has them; delete one, or change one of them.")),
            WebhookDisabled => (409, "WEBHOOK_DISABLED", "Webhook disabled", "This webhook is disabled, so nothing can be replayed to it. Enable it first, then send the same request again.".into()),
            TryingAlready { retry_after_secs } => (429, "RATE_LIMITED", "Too many tries", format!("A webhook is tried by hand once at a time and once a second; try again in {retry_after_secs} s.")),
            NotFound => (404, "NOT_FOUND", "Not found", "There is nothing at this address.".into()),
            Gone => (410, "NOT_FOUND", "Gone", "This eSIM is no longer available: its order was cancelled or failed.".into()),
            CodeForgotten => (410, "NOT_FOUND", "Gone", "The code of this eSIM is not kept any more: it was installed, or the time to install it was over, more than 30 days ago.".into()),
            MethodNotAllowed { allowed } => (405, "METHOD_NOT_ALLOWED", "Method not allowed", match allowed {
                Some(allowed) => format!("This address does not take this method. It takes {allowed}."),
                None => "This address does not take this method; see the Allow header.".into(),
            }),
            NotAcceptable => (406, "NOT_ACCEPTABLE", "Not acceptable", "This address answers application/json.".into()),
            RequestTimeout => (408, "REQUEST_TIMEOUT", "Request timed out", "The request did not arrive in time.".into()),
            PayloadTooLarge => (413, "PAYLOAD_TOO_LARGE", "Payload too large", "A request body may have at most 64 KiB.".into()),
            UnsupportedMediaType => (415, "UNSUPPORTED_MEDIA_TYPE", "Unsupported media type", "Send the body as Content-Type: application/json.".into()),
            IdempotencyConflict(conflict) => (409, "IDEMPOTENCY_CONFLICT", "Reference already used",
                format!("This reference {}. Use a new reference for something new.", earlier(conflict))),
            PriceChanged { price } => (409, "PRICE_CHANGED", "Price changed", format!("The plan costs {price} USD now, more than maxPriceUsd.")),
            CostChanged { refunded } => (409, "PRICE_CHANGED", "Price changed", format!("The supplier asks more for this plan than before, so it was not bought; {}. Its new price is among the plans soon.", given_back(*refunded))),
            NotCancellable(reason) => (409, "NOT_CANCELLABLE", "Not cancellable", format!("This order cannot be cancelled: {}.", reason.in_words())),
            NotFailable => (409, "NOT_CANCELLABLE", "Not possible", "Only an order that is PROVISIONING can be failed.".into()),
            NotRetryable => (409, "NOT_CANCELLABLE", "Not possible", "Only an order that is PROVISIONING or CANCELLING can be retried.".into()),
            NotUnderReview => (409, "NOT_CANCELLABLE", "Not possible", "Only an order that is CANCELLING or was kept after all, and whose supplier has a request for a review, can be decided; without such a request only one whose supplier has not answered for 30 minutes.".into()),
            NotWithdrawable => (409, "NOT_CANCELLABLE", "Not withdrawable", "Only a cancel that people at the supplier are deciding about can be withdrawn.".into()),
            UsedUnderReview => (409, "NOT_CANCELLABLE", "Not possible",
                "Its eSIM was used while its cancel was under review, or its meter cannot be read now. With --despite-usage the money is given back all the same.".into()),
            RefundTooLarge { left } => (409, "LIMIT_EXCEEDED", "Refund too large", format!("At most {left} USD can still be given back for this order.")),
            EsimNotActive => (409, "ESIM_NOT_ACTIVE", "eSIM not active", "This eSIM is cancelled, expired or suspended and takes no top-ups.".into()),
            EsimCancelled => (409, "ESIM_NOT_ACTIVE", "eSIM not active", "This eSIM was cancelled and cannot be moved.".into()),
            EsimWithheld => (409, "ESIM_NOT_ACTIVE", "eSIM withheld", "This eSIM is being cancelled; its code is withheld until that is decided.".into()),
            WrongPlanType(PlanMistake::TopupAlone) => (422, "WRONG_PLAN_TYPE", "Wrong plan type",
                "This is a TOPUP plan, and a new eSIM needs a BASE plan.".into()),
            WrongPlanType(PlanMistake::BaseAsTopup) => (422, "WRONG_PLAN_TYPE", "Wrong plan type",
                "This is a BASE plan, and a top-up needs a TOPUP plan that fits the eSIM.".into()),
            WrongPlanType(PlanMistake::Unfit) => (422, "WRONG_PLAN_TYPE", "Wrong plan type",
                "This TOPUP plan does not fit this eSIM.".into()),
            RateLimited { retry_after_secs } => (429, "RATE_LIMITED", "Too many requests", format!("Too many requests; try again in {retry_after_secs} s.")),
            CodeStillGood { retry_after_secs, good_for_secs } => (429, "RATE_LIMITED", "Too many requests",
                format!("A code was mailed a short while ago and is still good for {good_for_secs} s. Another can be asked for in {retry_after_secs} s.")),
            SupplierRejected { refunded } => (502, "SUPPLIER_REJECTED", "Supplier refused", format!("The supplier refused this order; {}.", given_back(*refunded))),
            NotDelivered { refunded } => (502, "SUPPLIER_REJECTED", "Not delivered", format!("This plan can no longer be delivered; {}.", given_back(*refunded))),
            SupplierUnavailable { refunded } => (503, "SUPPLIER_UNAVAILABLE", "Supplier unavailable", format!("The supplier could not be reached, or cannot sell now, and nothing was bought; {}.", given_back(*refunded))),
            CarrierUnavailable => (503, "SUPPLIER_UNAVAILABLE", "Supplier unavailable", "The carrier did not answer and no earlier reading is known; nothing was charged.".into()),
            InvoiceNotFound => (404, "INVOICE_NOT_FOUND", "Invoice not found", "No invoice has this id.".into()),
            UnsupportedPair(pairs) => {
                let all: Vec<String> = pairs.iter().map(|(currency, network)| format!("{} on {}", currency.as_str(), network.as_str())).collect();
                (422, "UNSUPPORTED_PAIR", "Unsupported pair", format!("This currency is not accepted on this network. Accepted are: {}.", all.join(", ")))
            }
            TooManyInvoices { retry_after_secs } => (429, "RATE_LIMITED", "Too many open invoices",
                format!("Five invoices are open on this network already; pay one, or try again in {retry_after_secs} s, when the next expires.")),
            TooManyWaiting { .. } => (429, "RATE_LIMITED", "Too many calls are waiting",
                "As many calls of this account wait for events as may; one is enough to hear of everything.".into()),
            TooManyViewers { .. } => (503, "OVERLOADED", "Too many pages are open",
                "As many pages are told of news as may be. Load the page again now and then instead.".into()),
            TooManyCheckouts { .. } => (429, "RATE_LIMITED", "Too many checkouts", "Too many checkouts are unpaid; pay some, or come back when they have expired.".into()),
            CheckoutEnded => (409, "TRANSFER_ALREADY_USED", "Checkout already paid", "This checkout has been paid already; assign the transfer to the account instead.".into()),
            BelowCost { cost } => (409, "PRICE_CHANGED", "Below cost", format!("The plan costs us {cost} USD, which is more than was paid; assign the transfer to the account instead.")),
            CouponInvalid => (422, "COUPON_INVALID", "Coupon not valid", "This discount code is unknown, expired, used up or not valid for this plan.".into()),
            CouponExists => (409, "COUPON_INVALID", "Coupon exists", "A coupon with this code exists already; a code is never used again.".into()),
            CouponNotFound => (404, "NOT_FOUND", "Coupon not found", "No coupon has this code.".into()),
            CouponGone => (409, "COUPON_INVALID", "Coupon gone", "The coupon of this checkout was given back when it expired, and is no longer available; assign the transfer to the account instead.".into()),
            TooManyCodes { retry_after_secs } => (429, "RATE_LIMITED", "Too many discount codes",
                format!("Too many discount codes were invalid; try again in {retry_after_secs} s, or buy without one.")),
            TxNotForInvoice => (422, "TX_NOT_FOR_INVOICE", "Transaction is not for this invoice", "This transaction pays none of the accepted tokens to this invoice's address.".into()),
            TxFailed => (422, "TX_FAILED", "Transaction failed", "This transaction was reverted: it moved nothing.".into()),
            TransferAlreadyUsed => (409, "TRANSFER_ALREADY_USED", "Transfer already used", "This transaction has been credited to another account.".into()),
            TransferNotFound => (404, "NOT_FOUND", "Transfer not found", "No transfer has this id; `simgate transfers unmatched` lists them.".into()),
            TransferNotUnmatched => (409, "TRANSFER_ALREADY_USED", "Transfer already used", "Only an UNMATCHED transfer can be assigned, returned or written off.".into()),
            SignatureAlreadyUsed => (409, "TRANSFER_ALREADY_USED", "Signature already used", "This signature was used for another order; nothing more was charged for it, and nothing is delivered for it here.".into()),
            PaidForAnother => (409, "IDEMPOTENCY_CONFLICT", "Payment for another purchase", "This payment was requested for another package or eSIM; it was not used, and nothing was charged for this one.".into()),
            NothingToPay => (409, "IDEMPOTENCY_CONFLICT", "Nothing to pay", "This order was paid, is being paid by another signature, or is no longer available; this signature was not used. Look at the order, or check out again.".into()),
            NothingOwed => (409, "TRANSFER_ALREADY_USED", "Nothing to claim", "Nothing can be claimed from this invoice: nothing is owed, or it was claimed before. If that was you, the money is in your wallet.".into()),
            MagicLinkEnded => (404, "NOT_FOUND", "Link has ended", "This link is unknown, or its 30 minutes are over; ask for a new one.".into()),
            ChainUnavailable => (503, "CHAIN_UNAVAILABLE", "Chain unavailable", "The network's nodes did not answer, so the chain could not be looked at; nothing is lost. Try again shortly.".into()),
            BuyingOnHold => (503, "ON_HOLD", "Buying is on hold", "Buying is on hold while the operator checks a restored backup; nothing was charged.".into()),
            NoRoom => (503, "OVERLOADED", "Nothing can be written", "The gateway cannot write to its database just now; nothing was charged. Try again shortly.".into()),
            Overloaded => (503, "OVERLOADED", "Overloaded", "Too much is waiting; nothing was charged. Try again shortly.".into()),
        };
        Problem { status, code, title, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code stands in the table of refusals as `(STATUS, "CODE", …)`.
    #[test]
    fn every_code_of_the_table_is_explained() {
        let table = include_str!("error.rs");
        let mut found = 0;
        for (at, _) in table.match_indices("\", \"") {
            let code = table[..at].rsplit('"').next().unwrap_or_default();
            let before = table[..at - code.len() - 1].trim_end().trim_end_matches(',');
            let is_code = code.len() > 3 && code.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
            if is_code && before.ends_with(|c: char| c.is_ascii_digit()) {
                found += 1;
                assert!(CODES.iter().any(|(known, _)| *known == code), "{code} is not in CODES");
            }
        }
        assert!(found > 50, "{found}");
    }

    #[test]
    fn mistakes_stand_in_one_line() {
        let wrong = |field: &str, message: &str| FieldError { field: field.into(), message: message.into() };
        let misspelt = FieldError::unknown("pakageCode", "; did you mean packageCode?");
        let fields = [misspelt, wrong("packageCode", "is required"), wrong("limit", "must be 1")];
        assert_eq!(
            Refusal::Invalid(fields.into()).problem().detail,
            "\"pakageCode\": unknown; did you mean packageCode? packageCode is required; limit must be 1"
        );
    }

    #[test]
    fn what_to_do_is_said_once_for_each_code() {
        for (nth, (code, what)) in CODES.iter().enumerate() {
            assert!(CODES.iter().skip(nth + 1).all(|(other, _)| other != code), "{code} stands twice");
            assert!(what.ends_with('.') && what.len() > 30, "{code}");
        }
    }
}
