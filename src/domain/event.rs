//! Events: what happened to an account's orders, deposits, balance and eSIMs, in an order that can be read back. An
//! event's id is its place in that order, hidden by a key from outside (`crate::vault::Numbers`); so it is a cursor too, and
//! stays one when the event is forgotten.

use super::ids::{AccountNo, base62, from_base62};
use super::time::Time;
use super::words::words;

words! {
    pub enum EventKind: ALL, parse {
        OrderFulfilled = "order.fulfilled",
        OrderFailed = "order.failed",
        OrderCancelled = "order.cancelled",
        TopUpCompleted = "topup.completed",
        TopUpFailed = "topup.failed",
        DepositDetected = "deposit.detected",
        DepositConfirmed = "deposit.confirmed",
        DepositExpired = "deposit.expired",
        LowBalance = "wallet.low_balance",
        EsimStatusChanged = "esim.status_changed",
        UsageThreshold = "esim.usage_threshold",
    }
}

/// How many days events are kept.
pub const KEPT_DAYS: i64 = 90;

/// An event that is to be written down.
pub struct News<'a> {
    pub account: AccountNo,
    pub kind: EventKind,
    /// What it is about: the id of an order, top-up or invoice, or the account's number.
    pub subject: &'a str,
    /// Its place among the events of the same subject, from 1.
    pub sequence: i64,
    pub at: Time,
    /// The object as it is now, as JSON.
    pub data: &'a str,
}

/// An event as it was written down.
#[derive(Clone, Debug)]
pub struct Event {
    pub no: i64,
    pub kind: EventKind,
    /// What it is about.
    pub subject: String,
    pub sequence: i64,
    pub at: Time,
    pub data: String,
}

/// What the id of an event begins with.
pub const PREFIX: &str = "evt_";
const DIGITS: usize = 11;
/// Places have at most this many bits. A made-up id decodes to a larger number, nearly always.
const PLACE_BITS: u32 = 48;
const ROUNDS: u8 = 6;

/// The id of what is at this place. `round` is a keyed hash of a round's number and a half.
pub fn id_of(prefix: &str, place: i64, round: impl Fn(u8, u64) -> u64) -> String {
    let (mut left, mut right) = (place as u64 >> 32, place as u64 & HALF);
    for turn in 0..ROUNDS {
        (left, right) = (right, left ^ round(turn, right) & HALF);
    }
    let mut text = String::from(prefix);
    base62(u128::from(left << 32 | right), DIGITS, &mut text);
    text
}

/// The place that an id names; `None` for any other text.
pub fn place_of(prefix: &str, id: &str, round: impl Fn(u8, u64) -> u64) -> Option<i64> {
    let digits = id.strip_prefix(prefix).filter(|digits| digits.len() == DIGITS)?;
    let hidden = u64::try_from(from_base62(digits)?).ok()?;
    let (mut left, mut right) = (hidden >> 32, hidden & HALF);
    for turn in (0..ROUNDS).rev() {
        (left, right) = (right ^ round(turn, left) & HALF, left);
    }
    let place = left << 32 | right;
    (place >> PLACE_BITS == 0).then_some(place as i64)
}

const HALF: u64 = 0xFFFF_FFFF;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round(turn: u8, half: u64) -> u64 {
        (half + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(u32::from(turn) + 9)
    }

    proptest! {
        #[test]
        fn an_id_leads_back_to_its_place(place in 0i64..1 << PLACE_BITS) {
            let id = id_of(PREFIX, place, round);
            prop_assert_eq!(id.len(), PREFIX.len() + DIGITS);
            prop_assert_eq!(place_of(PREFIX, &id, round), Some(place));
        }

        #[test]
        fn other_texts_name_no_place(text in "\\PC{0,20}") {
            prop_assert_eq!(place_of(PREFIX, &text, round), None);
        }
    }

    #[test]
    fn made_up_ids_name_no_place() {
        let made_up = [
            "evt_",
            "evt_0000000000",
            "evt_000000000000",
            "evt_zzzzzzzzzzz",
            "evt_0000000000-",
            "EVT_00000000000",
        ];
        for id in made_up {
            assert_eq!(place_of(PREFIX, id, round), None, "{id}");
        }
        let hits = (0..2_000).filter(|n| place_of(PREFIX, &format!("evt_{n:011}"), round).is_some()).count();
        assert!(hits <= 2, "{hits}");
    }
}
