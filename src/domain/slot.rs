//! Wide slots, because people round. A checkout that has a slot on its address is also recognised by an amount near its
//! price, because no other checkout there asks for a similar amount. Here are which amounts those are, how many slots a
//! buyer may hold, and when a payment could belong to either of two checkouts.

use std::ops::RangeInclusive;

use super::client::Shares;
use super::money::Usd;
use super::network::Network;

/// Slots are kept apart by buckets of this width; each slot takes two neighbouring ones.
const BUCKET_MICROS: i64 = 50_000;
/// How much a payment may be short of the price.
const SHORT: Usd = Usd::from_micros(10_000);
/// How much a payment may be over the price.
const OVER: Usd = Usd::from_micros(20_000);
/// How many unpaid slots one buyer holds at one price of a network: an account counts like one client.
const AT_ONE_PRICE: Shares = Shares { client: 1, site: 2, area: 4 };
/// How many unpaid slots one buyer holds on a network.
const ON_ONE_NETWORK: Shares = Shares { client: 3, site: 6, area: 12 };

/// The amounts that pay a price, with people's rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    pub least: Usd,
    pub most: Usd,
}

impl Band {
    pub fn around(price: Usd) -> Band {
        Band { least: price.minus(SHORT), most: price.plus(OVER) }
    }

    pub fn holds(self, amount: Usd) -> bool {
        self.least <= amount && amount <= self.most
    }
}

/// The bucket that an amount lies in.
pub fn bucket_of(amount: Usd) -> i64 {
    amount.micros().div_euclid(BUCKET_MICROS)
}

/// The two buckets that a price holds: every amount that pays it lies in one of them.
pub fn buckets(price: Usd) -> [i64; 2] {
    let first = bucket_of(Band::around(price).least);
    [first, first + 1]
}

/// The range of buckets whose prices a fee could turn into this one, or this one into them.
pub fn within_reach(price: Usd, fee: Usd) -> (i64, i64) {
    let reach = fee.plus(OVER).plus(SHORT);
    (buckets(price.minus(reach))[0], buckets(price.plus(reach))[1])
}

/// Whether a payment near this price may have been meant for another checkout that asks for more: exchanges take their
/// fee out of the amount.
pub fn may_be_short_of(other: Usd, paid: Usd, price: Usd, fee: Usd) -> bool {
    paid < other && other <= paid.max(price).plus(fee)
}

/// The addresses that may hold a slot, by their numbers, in the order in which they are tried. Half of them are
/// reserved for buyers who have paid before.
pub fn numbers(addresses: i64, has_paid: bool) -> Vec<RangeInclusive<i64>> {
    let (common, kept) = (1..=addresses / 2, addresses / 2 + 1..=addresses);
    let tried = if has_paid { vec![kept, common] } else { vec![common] };
    tried.into_iter().filter(|range| !range.is_empty()).collect()
}

/// An unpaid slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpaid {
    pub network: Network,
    pub price: Usd,
}

/// Whether somebody who holds these may have one more; `share` picks the share that counts for them.
pub fn has_room(held: &[Unpaid], new: Unpaid, share: impl Fn(&Shares) -> i64) -> bool {
    let here = held.iter().filter(|slot| slot.network == new.network);
    let alike = here.clone().filter(|slot| slot.price == new.price).count() as i64;
    alike < share(&AT_ONE_PRICE) && (here.count() as i64) < share(&ON_ONE_NETWORK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::checkout::OFFSETS;
    use proptest::prelude::*;

    fn micros(micros: i64) -> Usd {
        Usd::from_micros(micros)
    }

    #[test]
    fn a_band_is_a_cent_below_and_two_above() {
        let band = Band::around(micros(4_490_000));
        for (amount, holds) in
            [(4_479_999, false), (4_480_000, true), (4_490_000, true), (4_510_000, true), (4_510_001, false)]
        {
            assert_eq!(band.holds(micros(amount)), holds, "{amount}");
        }
    }

    proptest! {
        #[test]
        fn what_pays_a_price_lies_in_its_buckets(price in 500_000i64..1_000_000_000, offset in 1..=OFFSETS) {
            let price = micros(price);
            let Band { least, most } = Band::around(price);
            for amount in [least, price.minus(micros(offset)), price, most] {
                prop_assert!(Band::around(price).holds(amount));
                prop_assert!(buckets(price).contains(&bucket_of(amount)));
            }
        }

        #[test]
        fn slots_that_share_no_bucket_share_no_payment(one in 500_000i64..3_000_000, apart in 0i64..200_000) {
            let (one, other) = (micros(one), micros(one + apart));
            let apart = buckets(one).iter().all(|bucket| !buckets(other).contains(bucket));
            if apart {
                prop_assert!(Band::around(one).most < Band::around(other).least);
            }
        }

        #[test]
        fn whoever_a_fee_could_bring_near_is_within_reach(
            price in 500_000i64..20_000_000, paid in -10_000i64..=20_000, above in 1i64..5_000_000, offset in 1..=OFFSETS,
        ) {
            let (price, fee) = (micros(price), Usd::dollars(3));
            let (paid, theirs) = (price.plus(micros(paid)), price.plus(micros(above)));
            let asked = theirs.minus(micros(offset));
            if may_be_short_of(asked, paid, price, fee) {
                let (_, last) = within_reach(price, fee);
                prop_assert!(buckets(theirs)[0] <= last);
                prop_assert!(within_reach(theirs, fee).0 <= buckets(price)[1]);
            }
        }
    }

    #[test]
    fn a_fee_is_up_to_three_dollars() {
        let (price, fee) = (micros(5_000_000), Usd::dollars(3));
        for (other, paid, blocks) in [
            (4_995_000, 5_000_000, false),
            (5_995_000, 5_000_000, true),
            (8_000_000, 5_000_000, true),
            (8_000_001, 5_000_000, false),
            (8_000_000, 4_990_000, true),
            (8_020_000, 5_020_000, true),
            (8_020_001, 5_020_000, false),
            (2_000_000, 5_000_000, false),
        ] {
            assert_eq!(may_be_short_of(micros(other), micros(paid), price, fee), blocks, "{other} {paid}");
        }
    }

    #[test]
    fn half_of_the_addresses_are_for_those_who_have_paid() {
        assert_eq!(numbers(200, false), [1..=100]);
        assert_eq!(numbers(200, true), [101..=200, 1..=100]);
        assert_eq!(numbers(5, false), [1..=2]);
        assert_eq!(numbers(5, true), [3..=5, 1..=2]);
        assert_eq!(numbers(1, false), []);
        assert_eq!(numbers(1, true), [1..=1]);
        assert_eq!(numbers(0, true), []);
    }

    #[test]
    fn a_buyer_holds_one_slot_at_a_price_and_three_on_a_network() {
        let slot = |network, price| Unpaid { network, price: Usd::dollars(price) };
        let (polygon, tron) = (Network::Polygon, Network::Tron);
        let client = |shares: &Shares| shares.client;
        assert!(has_room(&[], slot(polygon, 5), client));
        assert!(!has_room(&[slot(polygon, 5)], slot(polygon, 5), client));
        assert!(has_room(&[slot(polygon, 5)], slot(polygon, 5), |shares| shares.site));
        assert!(has_room(&[slot(polygon, 5)], slot(polygon, 6), client));
        assert!(has_room(&[slot(polygon, 5)], slot(tron, 5), client));
        let three = [slot(polygon, 5), slot(polygon, 6), slot(polygon, 7)];
        assert!(!has_room(&three, slot(polygon, 8), client));
        assert!(has_room(&three, slot(polygon, 8), |shares| shares.area));
        assert!(has_room(&three, slot(tron, 5), client));
    }
}
