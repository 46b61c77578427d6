//! The life of an order or top-up. One enum, one table of moves, used by SQL, JSON and pages alike.

use super::cost::{Billed, Cost};
use super::coupon::{self, Applied};
use super::email::Email;
use super::esim::{Esim, EsimStatus};
use super::ids::{AccountNo, OrderId};
use super::ledger::Charge;
use super::money::Usd;
use super::number::Number;
use super::reference;
use super::time::Time;
use super::words::words;

words! {
    pub enum OrderStatus: ALL, parse {
        Provisioning = "PROVISIONING",
        Fulfilled = "FULFILLED",
        Failed = "FAILED",
        Cancelling = "CANCELLING",
        Cancelled = "CANCELLED",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderEvent {
    /// The supplier sold the profile or the bundle.
    Sold,
    /// The supplier certainly did not sell and will not sell.
    Refused,
    CancelAsked,
    CancelGranted,
    CancelDenied,
    /// The buyer keeps it after all, while people at the supplier still decide.
    CancelWithdrawn,
}

impl OrderEvent {
    /// The one state in which this can happen, and the state that it leads to.
    pub fn step(self) -> (OrderStatus, OrderStatus) {
        match self {
            OrderEvent::Sold => (OrderStatus::Provisioning, OrderStatus::Fulfilled),
            OrderEvent::Refused => (OrderStatus::Provisioning, OrderStatus::Failed),
            OrderEvent::CancelAsked => (OrderStatus::Fulfilled, OrderStatus::Cancelling),
            OrderEvent::CancelGranted => (OrderStatus::Cancelling, OrderStatus::Cancelled),
            OrderEvent::CancelDenied | OrderEvent::CancelWithdrawn => {
                (OrderStatus::Cancelling, OrderStatus::Fulfilled)
            }
        }
    }
}

impl OrderStatus {
    /// Where an event leads; `None` when this state does not allow it.
    pub fn after(self, event: OrderEvent) -> Option<OrderStatus> {
        let (from, to) = event.step();
        (self == from).then_some(to)
    }
}

/// A plan bought by an account: a new eSIM, or a top-up of the eSIM of `esim_order`.
#[derive(Clone, Debug)]
pub struct Order {
    pub id: OrderId,
    pub account: AccountNo,
    /// The n-th order of its account; top-ups have no number.
    pub seq: Option<i64>,
    /// The number that people use for it; a top-up has none.
    pub number: Option<Number>,
    pub esim_order: Option<OrderId>,
    /// What makes it one purchase: the buyer's own or, if none was given, ours. Others see `given_reference`.
    pub reference: Option<String>,
    pub package_code: String,
    pub plan_name: String,
    pub family: String,
    pub data_mb: i64,
    pub duration_days: i64,
    /// What was charged.
    pub price: Usd,
    /// What was taken off the list price to make the amount of a checkout unique.
    pub uniqueness_discount: Usd,
    pub coupon: Option<Applied>,
    /// Who gets a receipt when it is delivered.
    pub customer_email: Option<Email>,
    pub cost: Usd,
    /// How its supplier bills it, where that is not in dollars, at the rate that it was placed at.
    pub billed: Option<Billed>,
    pub supplier: String,
    /// The supplier's own code of the plan.
    pub supplier_code: String,
    /// The supplier's own number for the sale, when it has told one.
    pub supplier_number: Option<String>,
    pub key_id: String,
    pub status: OrderStatus,
    /// Until then somebody may still be asking the supplier; after it recovery may.
    pub ask_until: Time,
    pub created_at: Time,
    pub updated_at: Time,
    pub failure: Option<Failure>,
    /// What its buyer got back when it failed or was cancelled, if not the whole price.
    pub refunded: Option<Usd>,
    /// The supplier's name for our request to take it back, where people there decide; empty while it is not known.
    pub cancel_request: Option<String>,
    /// When its buyer took that request back; `None` again once the supplier's word about it is entered.
    pub cancel_withdrawn_at: Option<Time>,
    /// The delivered profile; for a top-up, the one it fills.
    pub esim: Option<Esim>,
}

impl Order {
    /// The reference that its buyer gave.
    pub fn given_reference(&self) -> Option<&str> {
        self.reference.as_deref().and_then(reference::given)
    }

    /// What its buyer got back when it failed or was cancelled.
    pub fn given_back(&self) -> Usd {
        self.refunded.unwrap_or(self.price)
    }

    /// What it costs us, with the supplier's bill.
    pub fn billed_cost(&self) -> Cost {
        Cost { usd: self.cost, billed: self.billed }
    }

    pub fn charge(&self) -> Charge {
        Charge {
            price: self.price,
            uniqueness_discount: self.uniqueness_discount,
            coupon: coupon::discount(self.coupon.as_ref()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: String,
    pub detail: String,
}

words! {
    /// Why an order cannot be cancelled. Clients read these words.
    pub enum CancelReason: ALL {
        Provisioning = "PROVISIONING",
        Downloaded = "DOWNLOADED",
        Used = "USED",
        ToppedUp = "TOPPED_UP",
        Expired = "EXPIRED",
        AlreadyCancelled = "ALREADY_CANCELLED",
        SupplierCannotCancel = "SUPPLIER_CANNOT_CANCEL",
    }
}

impl CancelReason {
    /// The reason, as the rest of a sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            CancelReason::Provisioning => "it is still being delivered; try again when it is FULFILLED",
            CancelReason::Downloaded => "its eSIM was downloaded to a device",
            CancelReason::Used => "its eSIM has been used",
            CancelReason::ToppedUp => "a top-up was bought for its eSIM",
            CancelReason::Expired => "its eSIM has expired, or its time for cancelling has passed",
            CancelReason::AlreadyCancelled => {
                "it failed, was cancelled or is being cancelled, which gives its price back by itself"
            }
            CancelReason::SupplierCannotCancel => "the supplier does not take it back",
        }
    }
}

/// Whether an order can be given back, by what we know ourselves; the supplier's answer decides.
pub fn refundable(
    order: &Order,
    topped_up: bool,
    usage: Option<EsimStatus>,
    now: Time,
) -> Result<(), CancelReason> {
    match order.status {
        OrderStatus::Provisioning => return Err(CancelReason::Provisioning),
        // A failed order has given its money back already, like a cancelled one.
        OrderStatus::Failed | OrderStatus::Cancelling | OrderStatus::Cancelled => {
            return Err(CancelReason::AlreadyCancelled);
        }
        OrderStatus::Fulfilled => {}
    }
    // People at the supplier were asked before, and a request is sent once.
    if order.cancel_request.is_some() {
        return Err(CancelReason::SupplierCannotCancel);
    }
    if topped_up {
        return Err(CancelReason::ToppedUp);
    }
    match usage {
        None | Some(EsimStatus::New) => {}
        Some(EsimStatus::Installed) => return Err(CancelReason::Downloaded),
        Some(EsimStatus::Active | EsimStatus::Depleted) => return Err(CancelReason::Used),
        Some(EsimStatus::Expired) => return Err(CancelReason::Expired),
        Some(EsimStatus::Cancelled) => return Err(CancelReason::AlreadyCancelled),
    }
    match order.esim.as_ref().and_then(|esim| esim.install_by) {
        Some(until) if until < now => Err(CancelReason::Expired),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = OrderEvent> {
        prop::sample::select(vec![
            OrderEvent::Sold,
            OrderEvent::Refused,
            OrderEvent::CancelAsked,
            OrderEvent::CancelGranted,
            OrderEvent::CancelDenied,
            OrderEvent::CancelWithdrawn,
        ])
    }

    proptest! {
        /// The model knows only two facts: who holds the money, and whether the profile is out.
        #[test]
        fn any_sequence_keeps_money_and_profile_apart(events in prop::collection::vec(any_event(), 0..40)) {
            let (mut status, mut paid, mut delivered, mut refunds) = (OrderStatus::Provisioning, true, false, 0);
            for event in events {
                let Some(next) = status.after(event) else { continue };
                match next {
                    OrderStatus::Fulfilled => delivered = true,
                    OrderStatus::Failed | OrderStatus::Cancelled => {
                        paid = false;
                        delivered = false;
                        refunds += 1;
                    }
                    OrderStatus::Cancelling | OrderStatus::Provisioning => {}
                }
                status = next;
                prop_assert!(!delivered || paid, "never both the money and the eSIM");
            }
            prop_assert!(refunds <= 1);
            prop_assert_eq!(refunds == 1, matches!(status, OrderStatus::Failed | OrderStatus::Cancelled));
        }
    }

    #[test]
    fn words_go_both_ways() {
        for status in OrderStatus::ALL {
            assert_eq!(OrderStatus::parse(status.as_str()), Some(status));
        }
    }
}
