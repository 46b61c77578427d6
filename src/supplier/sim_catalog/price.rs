//! What the simulated supplier charges, and the prices we sell at: all in whole micro-dollars.
//! Every price follows from what a gigabyte costs in a market; more data is always cheaper by the gigabyte,
//! and more data or more time never costs less.

use crate::domain::money::Usd;

const CENT: i64 = 10_000;

/// Megabytes of every size that can be sold, and its weight: thousandths of the price of 1 GB.
#[rustfmt::skip]
pub const SIZES: &[(i64, i64)] = &[
    (256, 300), (512, 560), (768, 790), (1024, 1_000), (2048, 1_860), (3072, 2_640), (4096, 3_400),
    (5120, 4_100), (6144, 4_800), (7168, 5_460), (8192, 6_080), (10_240, 7_300), (12_288, 8_520),
    (15_360, 10_350), (20_480, 13_200), (25_600, 16_000), (30_720, 18_600), (40_960, 24_000),
    (51_200, 29_000), (76_800, 42_000), (102_400, 54_000),
];

/// Days of every duration that can be sold, and its weight: thousandths of the price of 7 days.
#[rustfmt::skip]
pub const DURATIONS: &[(i64, i64)] = &[
    (1, 820), (2, 850), (3, 880), (5, 940), (7, 1_000), (10, 1_030), (15, 1_060), (20, 1_090), (30, 1_130),
    (45, 1_190), (60, 1_250), (90, 1_360), (120, 1_450), (180, 1_600), (365, 2_000),
];

pub struct Prices {
    pub cost: Usd,
    pub wholesale: Usd,
    pub retail: Usd,
}

/// The prices of a size and a duration, both from the tables above.
pub fn of(gigabyte_cents: i64, data_mb: i64, days: i64) -> Prices {
    let thousandths = weight(SIZES, data_mb) * weight(DURATIONS, days);
    // Suppliers quote four decimals.
    let cost = gigabyte_cents * thousandths / 10_000 * (CENT / 100);
    let wholesale = wholesale(cost);
    Prices {
        cost: Usd::from_micros(cost),
        wholesale: Usd::from_micros(wholesale),
        retail: Usd::from_micros(retail(wholesale)),
    }
}

fn weight(table: &[(i64, i64)], key: i64) -> i64 {
    let entry = table.iter().find(|entry| entry.0 == key);
    entry.expect("plans are made of listed sizes and durations").1
}

/// 15 % on top of small costs, falling towards 8 % for large ones; rounded up to the cent.
fn wholesale(cost: i64) -> i64 {
    let margin = cost * 8 / 100 + (cost * 7 / 100).min(14 * CENT);
    round_up(cost + margin, CENT)
}

/// 75 % on top of small prices, falling towards 35 % for large ones; rounded up to a usual shop price: 0.79, 4.29, then
/// 12.49, 12.99, then 54.99.
fn retail(wholesale: i64) -> i64 {
    let target = wholesale * 135 / 100 + (wholesale * 40 / 100).min(80 * CENT);
    let step = match target / CENT {
        ..500 => 10 * CENT,
        500..5_000 => 50 * CENT,
        _ => 100 * CENT,
    };
    round_up(target + CENT, step) - CENT
}

fn round_up(amount: i64, step: i64) -> i64 {
    (amount + step - 1) / step * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_data_is_cheaper_by_the_gigabyte_and_never_cheaper_in_all() {
        assert!(SIZES.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1 && a.1 * b.0 > b.1 * a.0));
        assert!(DURATIONS.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
    }

    #[test]
    fn prices_grow_with_the_cost() {
        let mut last = (0, 0);
        for cost in (1..2_000_000).map(|step| step * 100) {
            let sold = (wholesale(cost), retail(wholesale(cost)));
            assert!(sold.0 > cost && sold.0 * 13 <= sold.1 * 10, "{cost} {sold:?}");
            assert!(sold.0 >= last.0 && sold.1 >= last.1, "{cost} {sold:?}");
            last = sold;
        }
    }

    #[test]
    fn a_price_by_hand() {
        let prices = of(71, 5120, 30);
        assert_eq!(prices.cost, Usd::from_micros(3_289_400));
        assert_eq!(prices.wholesale, Usd::from_micros(3_700_000));
        assert_eq!(prices.retail, Usd::from_micros(5_990_000));
    }
}
