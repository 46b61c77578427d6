//! How an invoice stands, in words: the headline, what it means for the money, and the steps to the end.

use crate::domain::checkout::{Checkout, CheckoutStatus, Stage};
use crate::domain::invoice::{Deposit, InvoiceStatus, Payment};
use crate::domain::time::Time;
use crate::http::kit::payment::Asked;
use crate::http::kit::wire::iso;
use crate::http::pages::moment::Moment;
use crate::ops::checkout::progress::Progress;

const SECOND_MICROS: i64 = 1_000_000;

/// Where the invoice stands.
pub struct Standing {
    /// Empty, `good`, `caution` or `bad`.
    pub kind: &'static str,
    pub icon: &'static str,
    /// Whether we work on it now.
    pub turning: bool,
    pub headline: String,
    pub detail: String,
    /// A time that matters, with the words before it.
    pub when: Option<(&'static str, Moment)>,
}

/// The time that is left to pay.
pub struct Clock {
    pub until: String,
    pub now: String,
    pub left: String,
}

impl Clock {
    pub fn new(until: Time, now: Time) -> Clock {
        Clock { until: iso(until), now: iso(now), left: left(until, now) }
    }
}

/// As `countdown.js` writes it, so that nothing moves when it begins to count. Without scripts the page loads itself anew.
fn left(until: Time, now: Time) -> String {
    let seconds = (until.micros() - now.micros()).max(0) / SECOND_MICROS;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let hours = if hours > 0 { format!("{hours}:") } else { String::new() };
    format!("{hours}{minutes:02}:{seconds:02}")
}

fn standing(
    kind: &'static str,
    icon: &'static str,
    headline: impl Into<String>,
    detail: impl Into<String>,
) -> Standing {
    Standing { kind, icon, turning: false, headline: headline.into(), detail: detail.into(), when: None }
}

impl Standing {
    /// The class of its headline.
    pub fn class(&self) -> String {
        format!("{}{}", self.kind, if self.turning { " turning" } else { "" })
    }

    fn at_work(mut self) -> Standing {
        self.turning = true;
        self
    }

    fn until(mut self, said: &'static str, time: Time) -> Standing {
        self.when = Some((said, Moment::of(time)));
        self
    }
}

pub fn of_deposit(deposit: &Deposit) -> Standing {
    let Deposit { invoice, paid, .. } = deposit;
    let required = deposit.required_confirmations();
    let (due, token) = (invoice.due(paid), invoice.currency.as_str());
    let still_due = if due.is_positive() { format!(" Still due: {due} {token}.") } else { String::new() };
    match invoice.status {
        InvoiceStatus::Pending if is_missing(&deposit.payments) => missing(),
        InvoiceStatus::Pending => {
            standing("", "clock", "Waiting for your payment", "What arrives is credited to the wallet.")
                .until("This invoice is open until", invoice.expires_at)
        }
        InvoiceStatus::Confirming => {
            let seen = deposit.confirmations().min(required);
            let detail = format!(
                "{} USD is on the network. Large amounts also wait until the network calls their block final. Do not \
                 pay again.{still_due}",
                paid.received.priced()
            );
            let headline = format!("Payment seen: {seen} of {required} confirmations");
            standing("", "eye", headline, detail).at_work()
        }
        InvoiceStatus::Confirmed if due.is_positive() => {
            let (received, credited) = (paid.received.priced(), paid.credited.priced());
            let detail = format!(
                "{received} USD arrived, and {credited} USD was credited to the wallet. {} {token} is still open: send it to \
                 the same address, or leave it at that.",
                due.priced()
            );
            standing("caution", "money", "Paid in part", detail)
        }
        InvoiceStatus::Confirmed => {
            let detail = format!("{} USD was credited to the wallet.", paid.credited.priced());
            standing("good", "check", "Payment confirmed", detail)
        }
        InvoiceStatus::Expired => {
            let detail = "If you have paid already, wait: what arrives is still credited. If you have not, ask for a new \
                          invoice.";
            standing("caution", "clock", "This invoice has expired", detail)
                .until("It was open until", invoice.expires_at)
        }
    }
}

/// `reference` is what support knows the checkout by.
pub fn of_checkout(progress: &Progress, reference: &str) -> Standing {
    let Progress { checkout, stage, required_confirmations, .. } = progress;
    let asked = Asked::from(progress).amount();
    let is_topup = checkout.esim_order.is_some();
    let is_late = checkout.status == CheckoutStatus::Expired;
    match (stage, progress.confirmations()) {
        (Stage::PendingPayment | Stage::Expired, 0) if progress.nearly_paid => {
            nearly_fits(checkout, reference)
        }
        (Stage::PendingPayment, 0) if progress.signed => {
            standing("", "eye", "Your payment is on its way to the network", "Do not pay again.").at_work()
        }
        (Stage::PendingPayment, 0) if is_missing(&progress.payments) => missing(),
        (Stage::PendingPayment, 0) => standing("", "clock", "Waiting for your payment", "")
            .until("The price holds until", checkout.expires_at),
        (Stage::PendingPayment, seen) if is_late => {
            let detail = format!(
                "It has {seen} of {required_confirmations} confirmations, and it still counts: you get what you paid for, \
                 or, if that is no longer sold at this price, your money back. Do not pay again."
            );
            standing("caution", "clock", "Payment seen, after the time was over", detail).at_work()
        }
        (Stage::PendingPayment, seen) => {
            let detail = format!(
                "It has {seen} of {required_confirmations} confirmations. There is nothing more to do: do not pay again."
            );
            standing("", "eye", "Payment seen", detail).at_work()
        }
        (Stage::ConfirmedAwaitingFulfillment, _) => {
            let detail = "It has all its confirmations. Next we order what you paid for.";
            standing("", "check", "Payment confirmed, one moment", detail).at_work()
        }
        (Stage::Processing, _) => {
            let headline = if is_topup {
                "Payment received: the data is being added to your eSIM"
            } else {
                "Payment received: your eSIM is being prepared"
            };
            let detail = "This usually takes a few seconds. You may close this page and come back. If it cannot be \
                          delivered, you get your money back.";
            standing("", "gear", headline, detail).at_work()
        }
        (Stage::Completed, _) if is_topup => {
            let detail = "The data was added, and nothing has to be installed. The eSIM's own page shows what is left: its \
                          address came with the eSIM.";
            standing("good", "check", "Your eSIM is topped up", detail)
        }
        (Stage::Completed, _) => {
            let detail = if is_missing(&progress.payments) {
                "The network has dropped what was paid for it, and may bring it back. Do not pay again: the eSIM is yours."
            } else {
                "Install it once, with an internet connection, before you leave or when you arrive."
            };
            standing("good", "sim", "Your eSIM is ready", detail)
        }
        (Stage::Failed, _) if progress.owed.is_positive() && checkout.status == CheckoutStatus::Refunded => {
            let why = if is_topup {
                "When your payment came, this was no longer sold at that price, or the eSIM had been given back."
            } else {
                "When your payment came, this was no longer sold at that price."
            };
            let detail = format!("{why} Your payment is safe: you can claim it here.");
            standing("bad", "money", "Paid too late: the money is owed to you", detail)
        }
        (Stage::Failed, _) if progress.owed.is_positive() => {
            let what = if is_topup { "add the data to your eSIM" } else { "get this eSIM for you" };
            let detail = format!("We could not {what}. Your payment is safe: you can claim it here.");
            standing("bad", "money", "Not delivered: the money is owed to you", detail)
        }
        (Stage::Failed, _) if checkout.is_nobodys() => {
            let detail = "Nothing can be claimed now: the payment is missing on its network.";
            standing("bad", "stop", "Not delivered", detail)
        }
        (Stage::Failed, _) => {
            let detail =
                "It pays for another plan: sign in with the email address of the wallet, and choose one.";
            standing("caution", "wallet", "Not delivered: the money is in the wallet", detail)
        }
        (Stage::Expired, _) => {
            let anew = if is_topup { "begin again on the eSIM's own page" } else { "check out again" };
            let detail = format!("If you have not paid, {anew}. If you have sent {asked} already, wait.");
            standing("caution", "clock", "The time to pay is over", detail)
                .until("It still counts until", checkout.late_until)
        }
    }
}

/// Something came that may have been meant for it.
fn nearly_fits(checkout: &Checkout, reference: &str) -> Standing {
    let detail = format!(
        "Its amount, network or token is not quite what was asked for. Did you send it? Then it is safe: tell support the \
         reference {reference} and show what proves it, such as a receipt of your exchange, and it pays for this or comes \
         back to you. If you did not, it changes nothing here."
    );
    let told = standing("caution", "warning", "A payment that nearly fits was seen", detail);
    match checkout.status {
        CheckoutStatus::Open => told.until("The price holds until", checkout.expires_at),
        _ => told.until("A payment still counts until", checkout.late_until),
    }
}

/// Something was paid, and none of it is on the chain now.
pub fn is_missing(payments: &[Payment]) -> bool {
    !payments.is_empty() && payments.iter().all(|payment| payment.transfer.block.is_none())
}

fn missing() -> Standing {
    let detail = "The network dropped it, and may bring it back: then it counts. Do not pay again before your wallet says \
                  that it has failed.";
    standing("caution", "warning", "Your payment was seen, and is missing now", detail)
}

/// Steps with the class of each: those before `now` are done.
fn steps(names: &[&'static str], now: usize, class: &'static str) -> Vec<(&'static str, &'static str)> {
    let class_of = |at: usize| match at {
        at if at < now => "done",
        at if at == now => class,
        _ => "",
    };
    names.iter().enumerate().map(|(at, name)| (class_of(at), *name)).collect()
}

pub fn steps_of_deposit(deposit: &Deposit) -> Vec<(&'static str, &'static str)> {
    let names = ["Pay", "Seen", "Credited"];
    match deposit.invoice.status {
        InvoiceStatus::Pending if is_missing(&deposit.payments) => steps(&names, 1, "stopped"),
        InvoiceStatus::Pending => steps(&names, 0, "now"),
        InvoiceStatus::Confirming => steps(&names, 2, "now"),
        InvoiceStatus::Confirmed if deposit.invoice.due(&deposit.paid).is_positive() => {
            steps(&names, 0, "now")
        }
        InvoiceStatus::Confirmed => steps(&names, names.len(), "done"),
        InvoiceStatus::Expired => steps(&names, 0, "stopped"),
    }
}

pub fn steps_of_checkout(progress: &Progress) -> Vec<(&'static str, &'static str)> {
    let last = if progress.checkout.esim_order.is_some() { "Data added" } else { "eSIM" };
    let names = ["Pay", "Seen", "Confirmed", last];
    match (progress.stage, progress.confirmations()) {
        (Stage::PendingPayment, 0) if progress.signed => steps(&names, 1, "now"),
        (Stage::PendingPayment, 0) if is_missing(&progress.payments) => steps(&names, 1, "stopped"),
        (Stage::PendingPayment, 0) => steps(&names, 0, "now"),
        (Stage::PendingPayment, _) => steps(&names, 2, "now"),
        (Stage::ConfirmedAwaitingFulfillment | Stage::Processing, _) => steps(&names, 3, "now"),
        (Stage::Completed, _) => steps(&names, names.len(), "done"),
        (Stage::Failed, _) => steps(&names, 3, "stopped"),
        (Stage::Expired, _) => steps(&names, 0, "stopped"),
    }
}
