//! A checkout: a request to pay for one plan, a new eSIM or a top-up, with an exact amount that no other open request
//! on that address shares. The amount tells which checkout a transfer pays, so it is never used twice while either
//! could still be paid.

use super::account::GUESTS;
use super::authorization;
use super::cost::{Billed, Cost};
use super::coupon::{self, Applied};
use super::email::Email;
use super::ids::{AccountNo, InvoiceId, OrderId};
use super::money::Usd;
use super::network::{AddressKind, Currency, Network};
use super::number::{Number, Series};
use super::order::OrderStatus;
use super::slot::Band;
use super::time::Time;
use super::transfer::Transfer;
use super::words::words;

/// The token of a checkout that names none.
pub const USUAL_CURRENCY: Currency = Currency::Usdt;
/// The networks that checkouts can be paid on; the first is the default.
pub const NETWORKS: [Network; 4] = [Network::Polygon, Network::Arbitrum, Network::Tron, Network::Base];
pub const OPEN_MINUTES: i64 = 30;
/// Grace for late payments, and the least time before the amount of a closed checkout is reused.
pub const LATE_HOURS: i64 = 24;
/// The discount that makes an amount unique is between 1 and this many micro-dollars.
pub const OFFSETS: i64 = 9_999;

words! {
    pub enum CheckoutStatus: parse {
        Open = "OPEN",
        /// Unpaid so far; a late payment still counts.
        Expired = "EXPIRED",
        /// Its order exists.
        Paid = "PAID",
        /// Paid when the plan was no longer sold at these terms: the money is in the wallet, or owed to a guest.
        Refunded = "REFUNDED",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckoutEvent {
    /// A payer has signed for it.
    Signed,
    /// It was paid, and its order exists.
    Paid,
    /// It was paid, and its plan can no longer be delivered for that.
    PaidInVain,
    /// Its time is over, and no payment was seen.
    Lapsed,
}

impl CheckoutStatus {
    /// Where an event leads; `None` when this state does not allow it. A late payment still counts; a signature is only
    /// taken in time.
    pub fn after(self, event: CheckoutEvent) -> Option<CheckoutStatus> {
        use CheckoutEvent as Event;
        use CheckoutStatus::*;
        match (self, event) {
            (Open, Event::Signed) => Some(Open),
            (Open | Expired, Event::Paid) => Some(Paid),
            (Open | Expired, Event::PaidInVain) => Some(Refunded),
            (Open, Event::Lapsed) => Some(Expired),
            (Expired, Event::Signed | Event::Lapsed)
            | (Paid | Refunded, Event::Signed | Event::Paid | Event::PaidInVain | Event::Lapsed) => None,
        }
    }

    pub fn is_unpaid(self) -> bool {
        match self {
            CheckoutStatus::Open | CheckoutStatus::Expired => true,
            CheckoutStatus::Paid | CheckoutStatus::Refunded => false,
        }
    }
}

words! {
    /// The progress of a purchase, for clients that poll it.
    pub enum Stage: ALL {
        PendingPayment = "PENDING_PAYMENT",
        /// Paid beyond doubt; its order is about to be made.
        ConfirmedAwaitingFulfillment = "CONFIRMED_AWAITING_FULFILLMENT",
        Processing = "PROCESSING",
        Completed = "COMPLETED",
        Failed = "FAILED",
        Expired = "EXPIRED",
    }
}

impl Stage {
    /// The stage of a purchase whose order exists. A cancelled one has nothing to use, and its money is back.
    pub fn of_order(status: OrderStatus) -> Stage {
        match status {
            OrderStatus::Provisioning | OrderStatus::Cancelling => Stage::Processing,
            OrderStatus::Fulfilled => Stage::Completed,
            OrderStatus::Failed | OrderStatus::Cancelled => Stage::Failed,
        }
    }
}

/// How far a checkout's payment has come on its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sighted {
    No,
    /// In a block that may still be replaced.
    Seen,
    /// In a block that is deep enough.
    Deep,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    pub id: InvoiceId,
    pub account: AccountNo,
    /// The token that asked for it; a guest has none.
    pub token: String,
    /// Its own number, which its order will have too; a top-up has none.
    pub seq: i64,
    /// Whether `seq` counts in the series of checkouts, not in the first series.
    pub keyed: bool,
    /// A top-up: the order whose eSIM it fills.
    pub esim_order: Option<OrderId>,
    pub package_code: String,
    pub plan_name: String,
    pub family: String,
    pub data_mb: i64,
    pub duration_days: i64,
    pub supplier: String,
    /// The supplier's own code of the plan.
    pub supplier_code: String,
    pub cost: Usd,
    /// How its supplier bills it, where that is not in dollars.
    pub billed: Option<Billed>,
    /// The retail price.
    pub list_price: Usd,
    pub coupon: Option<Applied>,
    /// The exact amount to pay.
    pub amount: Usd,
    pub network: Network,
    pub currency: Currency,
    pub address: String,
    /// Whether it has a slot on its address: amounts near its price pay it too.
    pub wide: bool,
    /// Where a signature for it pays to, when payers cannot sign for its address.
    pub sign_to: Option<String>,
    pub customer_email: Option<Email>,
    pub status: CheckoutStatus,
    pub order: Option<OrderId>,
    /// For a guest's checkout: the account that claimed what we owed. From then on its money belongs to that account.
    pub claimed_by: Option<AccountNo>,
    pub created_at: Time,
    pub expires_at: Time,
    pub late_until: Time,
    pub updated_at: Time,
}

impl Checkout {
    /// What it costs us, with the supplier's bill.
    pub fn billed_cost(&self) -> Cost {
        Cost { usd: self.cost, billed: self.billed }
    }

    /// Whether it sells this plan and, for a top-up, onto the eSIM of this order.
    pub fn is_for(&self, package_code: &str, esim_order: Option<&OrderId>) -> bool {
        self.package_code == package_code && self.esim_order.as_ref() == esim_order
    }

    /// The retail price after the coupon.
    pub fn price(&self) -> Usd {
        self.list_price.minus(coupon::discount(self.coupon.as_ref()))
    }

    /// Whether a transfer pays this checkout. It must be in the named token on the named network, with the exact amount
    /// or, if the checkout has a slot, an amount near the price; or a payer's signature for the exact amount moved it.
    /// Nothing else buys anything, however we came to this checkout.
    pub fn is_paid_by(&self, payment: &Transfer) -> bool {
        match payment.payment_nonce {
            Some(_) => {
                payment.currency == authorization::CURRENCY
                    && payment.amount == self.amount
                    && self.signed_to().is_none_or(|receiver| receiver == payment.address)
            }
            None => {
                payment.currency == self.currency
                    && payment.id.network == self.network
                    && payment.address == self.address
                    && self.band().holds(payment.amount)
            }
        }
    }

    /// The amounts that pay for it: the exact amount, or those near the price.
    pub fn band(&self) -> Band {
        if self.wide { Band::around(self.price()) } else { Band { least: self.amount, most: self.amount } }
    }

    /// Where a signature for it pays to; old checkouts on TRON have no such address.
    pub fn signed_to(&self) -> Option<&str> {
        match self.network.kind() {
            AddressKind::Evm => Some(&self.address),
            AddressKind::Tron => self.sign_to.as_deref(),
        }
    }

    /// The discount that makes the amount unique.
    pub fn uniqueness_discount(&self) -> Usd {
        self.price().minus(self.amount)
    }

    pub fn is_guests(&self) -> bool {
        self.account == GUESTS
    }

    /// A guest's checkout belongs to nobody until somebody claims what we owe for it.
    pub fn is_nobodys(&self) -> bool {
        self.is_guests() && self.claimed_by.is_none()
    }

    pub fn number(&self) -> Number {
        let series = if self.keyed { Series::Checkouts } else { Series::First };
        Number { series, account: self.account, n: self.seq }
    }

    pub fn stage(&self, payment: Sighted, order: Option<OrderStatus>) -> Stage {
        match (self.status, order, payment) {
            (CheckoutStatus::Paid, Some(order), _) => Stage::of_order(order),
            (CheckoutStatus::Paid, None, _) => Stage::Processing,
            (CheckoutStatus::Refunded, ..) => Stage::Failed,
            (CheckoutStatus::Open | CheckoutStatus::Expired, _, Sighted::Deep) => {
                Stage::ConfirmedAwaitingFulfillment
            }
            (CheckoutStatus::Open, ..) | (CheckoutStatus::Expired, _, Sighted::Seen) => Stage::PendingPayment,
            (CheckoutStatus::Expired, _, Sighted::No) => Stage::Expired,
        }
    }
}

/// When the amount of a checkout may be used again, by the clock: a day after it closed. The scanner of its network
/// must have passed that time too, or an earlier payment might still turn up.
pub fn rests_until(late_until: Time, updated_at: Time) -> Time {
    late_until.max(updated_at.plus_millis(LATE_HOURS * 3_600_000))
}

/// The range in which a wrongly paid amount may have been meant for this one: within a tenth of it.
pub fn nearly(amount: Usd) -> (Usd, Usd) {
    let margin = Usd::from_micros(amount.micros() / 10);
    (amount.minus(margin), amount.plus(margin))
}

/// Chains count whole seconds: a block may be up to one second younger than it says.
pub fn youngest(block_time: Time) -> Time {
    block_time.plus_millis(999)
}

/// The discount at a place of the ring. Every place has its own, in an order that only the seed determines, so amounts
/// show nobody how much is sold.
pub fn offset(seed: u64, place: i64) -> Usd {
    let mut value = place.rem_euclid(OFFSETS) as u64;
    // The scramble permutes 2^14 numbers; repeating it until the result is small enough permutes the small ones.
    loop {
        value = scramble(seed, value);
        if value < OFFSETS as u64 {
            return Usd::from_micros(value as i64 + 1);
        }
    }
}

/// A random discount, for when every amount is free.
pub fn any_offset(chance: u64) -> Usd {
    Usd::from_micros((chance % OFFSETS as u64) as i64 + 1)
}

/// A Feistel network over 14 bits.
fn scramble(seed: u64, value: u64) -> u64 {
    let (mut left, mut right) = (value >> 7 & 127, value & 127);
    for round in 0..4u64 {
        let keyed = (right ^ seed.rotate_left(16 * round as u32)).wrapping_add(round);
        let mixed = keyed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (left, right) = (right, left ^ ((mixed ^ mixed >> 31) >> 20 & 127));
    }
    left << 7 | right
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_checkout_is_paid_once() {
        use CheckoutEvent as Event;
        use CheckoutStatus::*;
        for (status, event, next) in [
            (Open, Event::Signed, Some(Open)),
            (Open, Event::Paid, Some(Paid)),
            (Open, Event::PaidInVain, Some(Refunded)),
            (Open, Event::Lapsed, Some(Expired)),
            (Expired, Event::Signed, None),
            (Expired, Event::Paid, Some(Paid)),
            (Expired, Event::PaidInVain, Some(Refunded)),
            (Expired, Event::Lapsed, None),
        ] {
            assert_eq!(status.after(event), next, "{status:?} {event:?}");
        }
        for ended in [Paid, Refunded] {
            for event in [Event::Signed, Event::Paid, Event::PaidInVain, Event::Lapsed] {
                assert_eq!(ended.after(event), None, "{ended:?} {event:?}");
            }
        }
    }

    #[test]
    fn every_place_has_an_offset_of_its_own() {
        for seed in [0, 1, 0x1234_5678_9abc_def0, u64::MAX] {
            let offsets: HashSet<Usd> = (0..OFFSETS).map(|place| offset(seed, place)).collect();
            assert_eq!(offsets.len() as i64, OFFSETS);
            let (least, most) = (offsets.iter().min().unwrap(), offsets.iter().max().unwrap());
            assert_eq!((least.micros(), most.micros()), (1, OFFSETS));
            assert_eq!(offset(seed, 3), offset(seed, 3 + OFFSETS));
        }
    }

    #[test]
    fn an_amount_rests_for_a_day_after_its_checkout_closed() {
        let at = |hour: i64| Time::from_micros(hour * 3_600_000_000);
        assert_eq!(rests_until(at(25), at(0)), at(25));
        assert_eq!(rests_until(at(25), at(20)), at(44));
    }

    #[test]
    fn a_payment_that_was_seen_does_not_expire() {
        let stage = |status, payment, order| {
            let at = Time::from_micros(0);
            let checkout = Checkout {
                id: InvoiceId::new(at, 1),
                account: AccountNo(1),
                token: "tok_1".into(),
                seq: 1,
                keyed: true,
                esim_order: None,
                package_code: "JP".into(),
                plan_name: "Japan".into(),
                family: "JP".into(),
                data_mb: 1024,
                duration_days: 7,
                supplier: "sim".into(),
                supplier_code: "JP-1GB-7D".into(),
                cost: Usd::dollars(1),
                billed: None,
                list_price: Usd::dollars(3),
                coupon: None,
                amount: Usd::from_micros(2_999_999),
                network: Network::Polygon,
                currency: USUAL_CURRENCY,
                address: "0x".into(),
                wide: false,
                sign_to: None,
                customer_email: None,
                status,
                order: None,
                claimed_by: None,
                created_at: at,
                expires_at: at,
                late_until: at,
                updated_at: at,
            };
            checkout.stage(payment, order)
        };
        use CheckoutStatus::*;
        for (status, payment, order, told) in [
            (Open, Sighted::No, None, Stage::PendingPayment),
            (Open, Sighted::Seen, None, Stage::PendingPayment),
            (Expired, Sighted::No, None, Stage::Expired),
            (Expired, Sighted::Seen, None, Stage::PendingPayment),
            (Open, Sighted::Deep, None, Stage::ConfirmedAwaitingFulfillment),
            (Paid, Sighted::Deep, Some(OrderStatus::Provisioning), Stage::Processing),
            (Paid, Sighted::No, Some(OrderStatus::Fulfilled), Stage::Completed),
            (Paid, Sighted::Deep, Some(OrderStatus::Failed), Stage::Failed),
            (Refunded, Sighted::Deep, None, Stage::Failed),
        ] {
            assert_eq!(stage(status, payment, order), told, "{status:?} {payment:?} {order:?}");
        }
    }
}
