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
