//! Money: a whole number of micro-dollars, the base unit of a six-decimal stablecoin.
//! Text goes in and out digit by digit; a float never touches an amount. Arithmetic is checked,
//! because an overflow is a broken invariant and must stop the request, not wrap.

use std::fmt;

/// Amounts stay below this many dollars, so that every amount is exact in a client that reads JSON as doubles.
pub const LIMIT_USD: i64 = 1_000_000_000;
const MICROS: i64 = 1_000_000;
const CENT: i64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Usd(i64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoneyError {
    NotANumber,
    TooPrecise,
    TooLarge,
}

impl MoneyError {
    pub fn as_str(self) -> &'static str {
        match self {
            MoneyError::NotANumber => "must be a number",
            MoneyError::TooPrecise => "must have at most 6 decimals",
            MoneyError::TooLarge => "must be below 1000000000",
        }
    }
}

impl Usd {
    pub const ZERO: Usd = Usd(0);

    pub const fn from_micros(micros: i64) -> Usd {
        Usd(micros)
    }

    pub const fn dollars(dollars: i64) -> Usd {
        Usd(dollars * MICROS)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    pub fn is_positive(self) -> bool {
        self.0 > 0
    }

    pub fn plus(self, other: Usd) -> Usd {
        Usd(self.0.checked_add(other.0).expect("amounts stay far below i64"))
    }

    pub fn minus(self, other: Usd) -> Usd {
        Usd(self.0.checked_sub(other.0).expect("amounts stay far below i64"))
    }

    pub fn negated(self) -> Usd {
        Usd(self.0.checked_neg().expect("amounts stay far below i64"))
    }

    /// This percentage of it, rounded down to a micro-dollar.
    pub fn percent(self, percent: i64) -> Usd {
        Usd(self.0.checked_mul(percent).expect("amounts stay far below i64").div_euclid(100))
    }

    /// Rounded down to the cent.
    pub fn whole_cents(self) -> Usd {
        Usd(self.0.div_euclid(CENT) * CENT)
    }

    /// As people write prices: with two decimals, and more where there are more.
    pub fn priced(self) -> String {
        let text = self.to_string();
        match text.split_once('.').map(|(_, decimals)| decimals.len()) {
            None => format!("{text}.00"),
            Some(1) => format!("{text}0"),
            Some(_) => text,
        }
    }

    /// An amount that must be paid to its last digit: what people read of it, and the digits behind the cents.
    pub fn in_parts(self) -> (String, String) {
        let mut cents = self.priced();
        let point = cents.find('.').unwrap_or(cents.len());
        let fine = cents.split_off((point + 3).min(cents.len()));
        (cents, fine)
    }

    /// Reads a JSON number as text: `10`, `10.00` and `1e1` are all ten dollars, and nothing is rounded.
    pub fn parse(text: &str) -> Result<Usd, MoneyError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
            Some((m, e)) => {
                (m, e.strip_prefix('+').unwrap_or(e).parse::<i32>().or(Err(MoneyError::NotANumber))?)
            }
            None => (digits, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || mantissa.ends_with('.') {
            return Err(MoneyError::NotANumber);
        }
        let significant = format!("{whole}{fraction}");
        let significant = significant.trim_start_matches('0');
        let kept = significant.trim_end_matches('0');
        if kept.is_empty() {
            return Ok(Usd::ZERO);
        }
        // The value is `kept` times ten to this power, counted in micro-dollars.
        let dropped = (significant.len() - kept.len()) as i64;
        let power = i64::from(exponent) - fraction.len() as i64 + dropped + 6;
        if power < 0 {
            return Err(MoneyError::TooPrecise);
        }
        if kept.len() as i64 + power > 16 {
            return Err(MoneyError::TooLarge);
        }
        let value: i64 = kept.parse().or(Err(MoneyError::TooLarge))?;
        let micros = value * 10i64.pow(power as u32);
        if micros >= LIMIT_USD * MICROS {
            return Err(MoneyError::TooLarge);
        }
        Ok(Usd(if negative { -micros } else { micros }))
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.unsigned_abs();
        let (whole, fraction) = (micros / MICROS as u64, micros % MICROS as u64);
        if self.0 < 0 {
            f.write_str("-")?;
        }
        write!(f, "{whole}")?;
        if fraction != 0 {
            let digits = format!("{fraction:06}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prices_have_two_decimals_at_least() {
        for (micros, shown) in
            [(5_400_000, "5.40"), (12_000_000, "12.00"), (4_490_000, "4.49"), (4_481_200, "4.4812")]
        {
            assert_eq!(Usd(micros).priced(), shown);
        }
    }

    #[test]
    fn reads_every_spelling_of_a_number() {
        for (text, micros) in [
            ("10", 10_000_000),
            ("10.00", 10_000_000),
            ("1e1", 10_000_000),
            ("1.5E+1", 15_000_000),
            ("100e-2", 1_000_000),
            ("0.000001", 1),
            ("19.999123", 19_999_123),
            ("-4.49", -4_490_000),
            ("0", 0),
            ("0e999", 0),
        ] {
            assert_eq!(Usd::parse(text), Ok(Usd(micros)), "{text}");
        }
    }

    #[test]
    fn refuses_what_it_cannot_hold_exactly() {
        for (text, error) in [
            ("0.0000001", MoneyError::TooPrecise),
            ("1e-7", MoneyError::TooPrecise),
            ("1e400", MoneyError::TooLarge),
            ("1000000000", MoneyError::TooLarge),
            ("99999999999999999999999", MoneyError::TooLarge),
            ("", MoneyError::NotANumber),
            ("NaN", MoneyError::NotANumber),
            ("1.", MoneyError::NotANumber),
            (".5", MoneyError::NotANumber),
            ("1e", MoneyError::NotANumber),
            ("--1", MoneyError::NotANumber),
        ] {
            assert_eq!(Usd::parse(text), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_goes_both_ways(micros in -(LIMIT_USD * MICROS - 1)..LIMIT_USD * MICROS) {
            let amount = Usd(micros);
            prop_assert_eq!(Usd::parse(&amount.to_string()), Ok(amount));
            // A client that reads the number as a double sees the same micro-dollar.
            let double: f64 = amount.to_string().parse().unwrap();
            prop_assert_eq!((double * 1e6).round() as i64, micros);
        }

        #[test]
        fn never_panics(text in "[-+0-9.eE]{0,24}") {
            let _ = Usd::parse(&text);
        }
    }
}
