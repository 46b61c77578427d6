//! What a page shows, as far as it can change: a version that is another one whenever the page would look different, and
//! how it can change next. The page and those who are told of news make it of the same view, by the same functions.

use std::fmt::{self, Debug};

use crate::domain::checkout::Stage;
use crate::domain::invoice::{Deposit, InvoiceStatus, Payment};
use crate::domain::network::Network;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::time::Time;
use crate::domain::transfer::PaymentStatus;
use crate::ops::checkout::progress::Progress;
use crate::vault;

/// Tells two views of a page apart, and nothing else of them. It is the same on every instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version([u8; 8]);

impl Version {
    fn of(facts: &impl Debug) -> Version {
        let hash = vault::hash_secret(&format!("{facts:?}"));
        Version(std::array::from_fn(|at| hash[at]))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&vault::hex(&self.0))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub version: Version,
    /// Nothing more happens to it that a visitor should wait for.
    pub is_over: bool,
    /// Something is under way, so that news are likely.
    pub(super) moves: bool,
    /// The networks whose next block is shown.
    pub(super) counts_on: Vec<Network>,
    /// When the clock alone changes it.
    pub(super) turns_at: Option<Time>,
}

/// A checkout on its pay page.
pub fn of_checkout(progress: &Progress, now: Time) -> Shown {
    let Progress { checkout, stage, required_confirmations, .. } = progress;
    let unpaid = checkout.status.is_unpaid();
    let untouched = unpaid && progress.payments.is_empty() && !progress.signed;
    let order = progress.order.as_ref().map(|order| (order.status, has_code(order)));
    let facts = (
        (stage, checkout.status, order, checkout.is_nobodys(), progress.owed, progress.refunded()),
        (progress.confirmations().min(*required_confirmations), required_confirmations),
        payments(&progress.payments),
        (progress.signed, progress.nearly_paid, untouched && progress.rounds),
        (unpaid && checkout.expires_at <= now, unpaid && checkout.late_until <= now),
    );
    let next = [checkout.expires_at, checkout.late_until].into_iter().find(|time| now < *time);
    Shown {
        version: Version::of(&facts),
        is_over: match stage {
            Stage::Completed | Stage::Failed => true,
            Stage::Expired => checkout.late_until <= now,
            Stage::PendingPayment | Stage::ConfirmedAwaitingFulfillment | Stage::Processing => false,
        },
        moves: !untouched,
        counts_on: counts_on(&progress.payments),
        turns_at: next.filter(|_| unpaid),
    }
}

/// A deposit on its pay page.
pub fn of_deposit(deposit: &Deposit, now: Time) -> Shown {
    let Deposit { invoice, paid, .. } = deposit;
    let pending = invoice.status == InvoiceStatus::Pending;
    let required = deposit.required_confirmations();
    let counts_on = counts_on(&deposit.payments);
    let facts = (
        (invoice.status, pending && invoice.expires_at <= now),
        (deposit.confirmations().min(required), required),
        payments(&deposit.payments),
        (paid.received, paid.credited, paid.late),
    );
    let confirming = |payment: &Payment| PaymentStatus::of(&payment.transfer) == PaymentStatus::Confirming;
    let confirming = deposit.payments.iter().any(confirming);
    let is_paid = invoice.status == InvoiceStatus::Confirmed && !invoice.due(paid).is_positive();
    Shown {
        version: Version::of(&facts),
        is_over: is_paid && !confirming,
        moves: confirming,
        counts_on,
        turns_at: Some(invoice.expires_at).filter(|time| pending && now < *time),
    }
}

/// An eSIM on its install page.
pub fn of_esim(order: &Order) -> Shown {
    let awaited = order.status == OrderStatus::Provisioning;
    Shown {
        version: Version::of(&(order.status, has_code(order))),
        is_over: !awaited,
        moves: awaited,
        counts_on: Vec::new(),
        turns_at: None,
    }
}

fn has_code(order: &Order) -> bool {
    order.esim.as_ref().is_some_and(|esim| !esim.sealed.is_empty())
}

/// What the list of transactions says of each.
fn payments(all: &[Payment]) -> Vec<impl Debug> {
    let fact = |Payment { transfer, confirmations, needed }: &Payment| {
        let place = (transfer.id.network, transfer.id.tx_hash.clone(), transfer.id.position);
        let status = (PaymentStatus::of(transfer), transfer.block.is_some());
        (place, transfer.amount, status, *confirmations.min(needed), *needed)
    };
    all.iter().map(fact).collect()
}

/// The networks on which payments wait for more blocks.
fn counts_on(all: &[Payment]) -> Vec<Network> {
    let waits = |payment: &&Payment| {
        payment.transfer.block.is_some()
            && payment.confirmations < payment.needed
            && PaymentStatus::of(&payment.transfer) == PaymentStatus::Confirming
    };
    let mut networks: Vec<Network> =
        all.iter().filter(waits).map(|payment| payment.transfer.id.network).collect();
    networks.sort_unstable();
    networks.dedup();
    networks
}
