//! What the simulated supplier charges, in whole micro-dollars. Every cost follows from what a gigabyte costs in a market; more data is always cheaper by the gigabyte,
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

/// The cost of a size and a duration, both from the tables above.
pub fn of(gigabyte_cents: i64, data_mb: i64, days: i64) -> Usd {
    let thousandths = weight(SIZES, data_mb) * weight(DURATIONS, days);
    // Suppliers quote four decimals.
    Usd::from_micros(gigabyte_cents * thousandths / 10_000 * (CENT / 100))
}

fn weight(table: &[(i64, i64)], key: i64) -> i64 {
    let entry = table.iter().find(|entry| entry.0 == key);
    entry.expect("plans are made of listed sizes and durations").1
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
    fn a_cost_by_hand() {
        assert_eq!(of(71, 5120, 30), Usd::from_micros(3_289_400));
    }
}
