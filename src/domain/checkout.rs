//! A checkout: a request to pay for one plan with an exact amount, which no other open request on that address
//! shares. The amount is what tells whose payment a transfer is, so it is never used twice while either could
//! still be paid.

use super::ids::{self, AccountNo, InvoiceId, OrderId};
use super::money::Usd;
use super::network::Network;
use super::time::Time;

/// The discount that makes an amount unique is between 1 and this many micro-dollars.
pub const OFFSETS: i64 = 9_999;
/// An expired checkout can still be paid for so long.
pub const LATE_HOURS: i64 = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckoutStatus {
    Open,
    /// Unpaid so far; a late payment still counts.
    Expired,
    /// Its order exists.
    Paid,
    /// Paid, but too late for a plan that is not sold like this any more: the money is in the wallet.
    Refunded,
}

impl CheckoutStatus {
    pub const ALL: [CheckoutStatus; 4] =
        [CheckoutStatus::Open, CheckoutStatus::Expired, CheckoutStatus::Paid, CheckoutStatus::Refunded];

    pub fn as_str(self) -> &'static str {
        match self {
            CheckoutStatus::Open => "OPEN",
            CheckoutStatus::Expired => "EXPIRED",
            CheckoutStatus::Paid => "PAID",
            CheckoutStatus::Refunded => "REFUNDED",
        }
    }

    pub fn parse(text: &str) -> Option<CheckoutStatus> {
        CheckoutStatus::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    pub id: InvoiceId,
    pub account: AccountNo,
    /// The token that asked for it.
    pub token: String,
    /// The number of the order that it becomes.
    pub seq: i64,
    pub package_code: String,
    pub plan_name: String,
    pub family: String,
    pub data_mb: i64,
    pub duration_days: i64,
    pub supplier: String,
    pub cost: Usd,
    /// The retail price.
    pub list_price: Usd,
    /// What is to be paid, exactly.
    pub amount: Usd,
    pub network: Network,
    pub address: String,
    pub customer_email: Option<String>,
    pub status: CheckoutStatus,
    pub order: Option<OrderId>,
    pub created_at: Time,
    pub expires_at: Time,
    pub late_until: Time,
    pub updated_at: Time,
}

impl Checkout {
    /// The discount that makes the amount unique.
    pub fn spot(&self) -> Usd {
        self.list_price.minus(self.amount)
    }

    pub fn order_ref(&self) -> String {
        ids::order_no(self.account, self.seq)
    }
}

/// Accounts are spread over so many rings, so that they seldom wait for each other.
pub const RINGS: i64 = 8;
/// How many offsets each ring has.
pub const RING: i64 = OFFSETS / RINGS;

/// The offset at a place of a ring, from 1 to `OFFSETS`. Every place of every ring has its own, in an order that
/// only the seed tells, so amounts show nobody how much is sold.
pub fn offset(seed: u64, ring: i64, place: i64) -> i64 {
    let mut value = (place.rem_euclid(RING) * RINGS + ring.rem_euclid(RINGS)) as u64;
    // The scramble permutes 2^14 numbers; walking on until one is small enough permutes the small ones.
    loop {
        value = scramble(seed, value);
        if value < OFFSETS as u64 {
            return value as i64 + 1;
        }
    }
}

/// A Feistel network over 14 bits.
fn scramble(seed: u64, value: u64) -> u64 {
    let (mut left, mut right) = (value >> 7 & 127, value & 127);
    for round in 0..4u64 {
        let mixed = (right ^ seed.rotate_left(16 * round as u32)).wrapping_add(round).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (left, right) = (right, left ^ ((mixed ^ mixed >> 31) >> 20 & 127));
    }
    left << 7 | right
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_place_has_an_offset_of_its_own() {
        for seed in [0, 1, 0x1234_5678_9abc_def0, u64::MAX] {
            let places = (0..RINGS).flat_map(|ring| (0..RING).map(move |place| (ring, place)));
            let offsets: HashSet<i64> = places.map(|(ring, place)| offset(seed, ring, place)).collect();
            assert_eq!(offsets.len() as i64, RINGS * RING);
            assert!(offsets.iter().all(|offset| (1..=OFFSETS).contains(offset)));
            assert_eq!(offset(seed, 3, 0), offset(seed, 3, RING));
        }
    }
}
