//! The last step of a price: up to an amount that people like. It never goes down.

use std::fmt;

const CENT: i128 = 10_000;
const DOLLAR: i128 = 100 * CENT;

/// What prices end in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rounding {
    Cent,
    FiveCents,
    /// These cents, sorted and without doubles: `.49/.99`.
    Endings(Vec<u8>),
    /// As shops have them: 0.79 and 4.29, from 5 USD on 12.49 and 12.99, from 50 USD on 54.99.
    Shop,
}

impl Rounding {
    pub const ALLOWED: &str = "must be cent, 5-cents, shop, or endings like .99 or .49/.99";

    pub fn parse(text: &str) -> Option<Rounding> {
        match text {
            "cent" => Some(Rounding::Cent),
            "5-cents" => Some(Rounding::FiveCents),
            "shop" => Some(Rounding::Shop),
            endings => {
                let mut cents: Vec<u8> = endings.split('/').map(ending).collect::<Option<_>>()?;
                cents.sort_unstable();
                cents.dedup();
                Some(Rounding::Endings(cents))
            }
        }
    }

    /// The next amount that ends like this, in micro-dollars; the amount itself if it does.
    pub(super) fn up(&self, amount: i128) -> i128 {
        match self {
            Rounding::Cent => step_up(amount, CENT),
            Rounding::FiveCents => step_up(amount, 5 * CENT),
            Rounding::Endings(cents) => ending_up(amount, cents),
            Rounding::Shop => {
                let step = match amount.div_euclid(CENT) {
                    ..500 => 10 * CENT,
                    500..5_000 => 50 * CENT,
                    _ => DOLLAR,
                };
                step_up(amount + CENT, step) - CENT
            }
        }
    }

    pub(super) fn in_words(&self) -> String {
        match self {
            Rounding::Cent => "the cent".into(),
            Rounding::FiveCents => "5 cents".into(),
            Rounding::Endings(_) => self.to_string(),
            Rounding::Shop => "a shop price".into(),
        }
    }
}

/// `.49`, or `.9` for `.90`.
fn ending(text: &str) -> Option<u8> {
    let digits = text.strip_prefix('.')?;
    let number: u8 = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    match digits.len() {
        1 => Some(number * 10),
        2 => Some(number),
        _ => None,
    }
}

fn ending_up(amount: i128, cents: &[u8]) -> i128 {
    let dollars = amount.div_euclid(DOLLAR) * DOLLAR;
    let both = [dollars, dollars + DOLLAR];
    let prices =
        both.into_iter().flat_map(|dollars| cents.iter().map(move |cent| dollars + i128::from(*cent) * CENT));
    prices.into_iter().find(|price| *price >= amount).unwrap_or(dollars + DOLLAR)
}

pub(super) fn divided_up(amount: i128, by: i128) -> i128 {
    -(-amount).div_euclid(by)
}

fn step_up(amount: i128, step: i128) -> i128 {
    divided_up(amount, step) * step
}

impl fmt::Display for Rounding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rounding::Cent => f.write_str("cent"),
            Rounding::FiveCents => f.write_str("5-cents"),
            Rounding::Shop => f.write_str("shop"),
            Rounding::Endings(cents) => {
                let endings: Vec<String> = cents.iter().map(|cent| format!(".{cent:02}")).collect();
                f.write_str(&endings.join("/"))
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::money::Usd;

    pub fn roundings() -> impl Strategy<Value = Rounding> {
        let endings = proptest::collection::btree_set(0u8..100, 1..4);
        prop_oneof![
            Just(Rounding::Cent),
            Just(Rounding::FiveCents),
            Just(Rounding::Shop),
            endings.prop_map(|cents| Rounding::Endings(cents.into_iter().collect())),
        ]
    }

    #[test]
    fn roundings_go_up_to_what_they_say() {
        for (rounding, amount, rounded) in [
            ("cent", "1.000001", "1.01"),
            ("cent", "1.01", "1.01"),
            ("5-cents", "1.01", "1.05"),
            ("5-cents", "1.05", "1.05"),
            (".99", "1.99", "1.99"),
            (".99", "1.990001", "2.99"),
            (".49/.99", "1.2", "1.49"),
            (".99/.49", "1.5", "1.99"),
            (".9", "1.91", "2.9"),
            (".00/.5", "1.51", "2"),
            ("shop", "0.71", "0.79"),
            ("shop", "4.99", "4.99"),
            ("shop", "4.991", "5.09"),
            ("shop", "12.5", "12.99"),
            ("shop", "54.1", "54.99"),
        ] {
            let by = Rounding::parse(rounding).unwrap();
            let up = by.up(i128::from(Usd::parse(amount).unwrap().micros()));
            assert_eq!(up, i128::from(Usd::parse(rounded).unwrap().micros()), "{rounding} {amount}");
            assert_eq!(Rounding::parse(&by.to_string()), Some(by));
        }
        for wrong in ["", "cents", ".", ".999", "99", ".x", ".+5", ".49/", ".49,.99"] {
            assert_eq!(Rounding::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn roundings_never_go_down(rounding in roundings(), a in 0i64..100_000_000, b in 0i64..100_000_000) {
            let (low, high) = (i128::from(a.min(b)), i128::from(a.max(b)));
            prop_assert!(rounding.up(low) >= low && rounding.up(low) < low + 1_000_000 + 10_000);
            prop_assert!(rounding.up(low) <= rounding.up(high));
            if rounding != Rounding::Shop {
                prop_assert_eq!(rounding.up(rounding.up(low)), rounding.up(low));
            }
        }
    }
}
