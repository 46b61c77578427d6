//! What we sell at, from what we pay: whole micro-dollars.

use super::money::Usd;

const CENT: i64 = 10_000;

/// The wholesale and the retail price of what costs this.
pub fn of(cost: Usd) -> (Usd, Usd) {
    let wholesale = wholesale(cost.micros());
    (Usd::from_micros(wholesale), Usd::from_micros(retail(wholesale)))
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
        let prices = of(Usd::from_micros(3_289_400));
        assert_eq!(prices, (Usd::from_micros(3_700_000), Usd::from_micros(5_990_000)));
    }
}
