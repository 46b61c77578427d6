//! What a purchase costs us, where a supplier bills in another currency than dollars: the amount on its bill, and the
//! dollars that our books have for it. The rate is the operator's; an order keeps the one that it was placed at.
//!
//! Dollars are rounded away from zero, so a cost is never too small, and what is paid and given back at one rate are the
//! same dollars. An allowance, which a supplier may take at most, is rounded down.

use std::fmt;

use super::amount::{Amount, Fiat};
use super::money::{LIMIT_USD, Usd};

const BILLIONTHS: i64 = 1_000_000_000;
const DECIMALS: usize = 9;
/// No currency's unit is worth less than the first or more than the second.
const LEAST: i64 = 1_000;
const MOST: i64 = 1_000 * BILLIONTHS;

/// No eSIM costs more; whatever says so is not about money.
pub const MOST_COST: Usd = Usd::dollars(100_000);

/// Dollars for one unit of a currency, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(i64);

impl Rate {
    pub const fn from_billionths(billionths: i64) -> Rate {
        Rate(billionths)
    }

    pub const fn billionths(self) -> i64 {
        self.0
    }

    /// Reads a plain decimal number, digit by digit.
    pub fn parse(text: &str) -> Result<Rate, &'static str> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || text.ends_with('.') {
            return Err("must be the dollars for one unit, like 1.0845");
        }
        if fraction.len() > DECIMALS {
            return Err("must have at most 9 decimals");
        }
        let billionths: Option<i64> = format!("{whole}{fraction:0<DECIMALS$}").parse().ok();
        match billionths {
            Some(billionths) if (LEAST..=MOST).contains(&billionths) => Ok(Rate(billionths)),
            _ => Err("must be from 0.000001 to 1000 dollars for one unit"),
        }
    }

    /// The dollars for an amount, rounded away from zero. `None` beyond the amounts that we count.
    pub fn dollars(self, micros: i64) -> Option<Usd> {
        let product = i128::from(micros) * i128::from(self.0);
        let (size, step) = (product.unsigned_abs(), BILLIONTHS.unsigned_abs().into());
        let rounded = i64::try_from(size.div_ceil(step)).ok().filter(|usd| *usd < LIMIT_USD * 1_000_000)?;
        Some(Usd::from_micros(if product < 0 { -rounded } else { rounded }))
    }

    /// What these dollars buy at most, in millionths of the unit: rounded down.
    pub fn affordable(self, dollars: Usd) -> i64 {
        let units = (i128::from(dollars.micros()) * i128::from(BILLIONTHS)).div_euclid(self.0.into());
        i64::try_from(units).unwrap_or(if units < 0 { i64::MIN } else { i64::MAX })
    }

    /// Whether another rate differs by half or more, as a slip of the pen does.
    pub fn is_far_from(self, other: Rate) -> bool {
        self.0 * 2 <= other.0 || self.0 * 2 >= other.0 * 3
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:0DECIMALS$}", self.0 / BILLIONTHS, self.0 % BILLIONTHS);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// How a supplier bills: in dollars, or in another currency at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Billing {
    pub currency: Fiat,
    /// `None` for dollars.
    pub rate: Option<Rate>,
}

impl Billing {
    pub const DOLLARS: Billing = Billing { currency: Fiat::USD, rate: None };

    /// What a bill costs; `None` when it is in another currency, or beyond the amounts that we count.
    pub fn cost(self, bill: Amount) -> Option<Cost> {
        match self.rate {
            Some(rate) if bill.currency == self.currency => Cost::at(rate, bill.micros),
            Some(_) => None,
            None => bill.in_usd().map(Cost::in_usd),
        }
    }
}

/// A bill in another currency than dollars, and the rate that makes it dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Billed {
    /// In millionths of the currency's unit.
    pub micros: i64,
    pub rate: Rate,
}

/// A cost in dollars, and how it was billed where that is not in dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub usd: Usd,
    pub billed: Option<Billed>,
}

impl Cost {
    pub const fn in_usd(usd: Usd) -> Cost {
        Cost { usd, billed: None }
    }

    /// A bill at a rate. `None` beyond the amounts that we count.
    pub fn at(rate: Rate, micros: i64) -> Option<Cost> {
        Some(Cost { usd: rate.dollars(micros)?, billed: Some(Billed { micros, rate }) })
    }

    /// The amount on the bill of a supplier that bills in this currency.
    pub fn amount(self, currency: Fiat) -> Amount {
        match self.billed {
            Some(billed) => Amount { micros: billed.micros, currency },
            None => Amount::usd(self.usd),
        }
    }

    /// The amount that was billed in another currency.
    pub fn native(self) -> Option<i64> {
        self.billed.map(|billed| billed.micros)
    }

    /// The most that a supplier may take when somebody has paid this much already: all of that, and not less than the
    /// cost.
    pub fn most(self, paid: Usd, currency: Fiat) -> Amount {
        match self.billed {
            Some(Billed { micros, rate }) => Amount { micros: micros.max(rate.affordable(paid)), currency },
            None => Amount::usd(self.usd.max(paid)),
        }
    }

    /// Another amount that a supplier tells about the same purchase, at the same rate. `None` when it is in neither its
    /// currency nor what we count in.
    pub fn told(self, told: Amount, currency: Fiat) -> Option<Cost> {
        Billing { currency, rate: self.billed.map(|billed| billed.rate) }.cost(told)
    }

    /// What is left of it without that part, which is at the same rate. What is left is rounded like any cost.
    pub fn without(self, part: Cost) -> Cost {
        let left =
            |(whole, part): (Billed, Billed)| Cost::at(whole.rate, whole.micros.checked_sub(part.micros)?);
        let by_bill = self.billed.zip(part.billed).and_then(left);
        by_bill.unwrap_or(Cost { usd: self.usd.minus(part.usd), billed: None })
    }

    /// The part of it that came back, when this much of it is lost: together they are the whole, to the last digit.
    pub fn returned(self, lost: Cost) -> Cost {
        let left = |(whole, lost): (Billed, Billed)| Billed { micros: whole.micros - lost.micros, ..whole };
        Cost { usd: self.usd.minus(lost.usd), billed: self.billed.zip(lost.billed).map(left) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(text: &str) -> Rate {
        Rate::parse(text).unwrap()
    }

    fn euros() -> Fiat {
        Fiat::parse("EUR").unwrap()
    }

    #[test]
    fn a_rate_is_an_exact_number_that_makes_sense() {
        for (text, billionths) in [
            ("1", 1_000_000_000),
            ("1.0845", 1_084_500_000),
            ("0.000061", 61_000),
            ("0.000001", 1_000),
            ("1000", 1_000_000_000_000),
            ("1.123456789", 1_123_456_789),
        ] {
            assert_eq!(Rate::parse(text), Ok(Rate(billionths)), "{text}");
            assert_eq!(rate(text).to_string(), text);
        }
        assert_eq!(rate("1.50").to_string(), "1.5");
        for wrong in [
            "",
            "0",
            "-1",
            "1e1",
            "1.",
            ".5",
            "1,1",
            "NaN",
            "0.0000009",
            "1000.000000001",
            "1.1234567890",
            "1 ",
        ] {
            assert!(Rate::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Rate::parse(&"9".repeat(400)).is_err());
        assert!(rate("1.08").is_far_from(rate("10.8")) && rate("10.8").is_far_from(rate("1.08")));
        assert!(rate("1.62").is_far_from(rate("1.08")) && rate("0.54").is_far_from(rate("1.08")));
        assert!(!rate("1.08").is_far_from(rate("0.93")));
    }

    #[test]
    fn costs_go_up_and_allowances_down() {
        // Three euros at 1.0845678 dollars are 3.2537034 dollars.
        let three = Cost::at(rate("1.0845678"), 3_000_000).unwrap();
        assert_eq!(three.usd, Usd::from_micros(3_253_704));
        assert_eq!(three.amount(euros()).to_string(), "3.00 EUR");
        assert_eq!(rate("1.0845678").affordable(Usd::from_micros(3_253_704)), 3_000_000);
        assert_eq!(rate("1.0845678").affordable(Usd::from_micros(3_253_703)), 2_999_999);
        assert_eq!(three.most(Usd::dollars(1), euros()).micros, 3_000_000, "never less than the cost");
        assert_eq!(
            Cost::in_usd(Usd::dollars(1)).most(Usd::dollars(2), Fiat::USD),
            Amount::usd(Usd::dollars(2))
        );
    }

    #[test]
    fn only_the_currency_of_the_bill_is_understood() {
        let three = Cost::at(rate("1.1"), 3_000_000).unwrap();
        let told = |micros, currency| three.told(Amount { micros, currency }, euros());
        assert_eq!(told(2_000_000, euros()).map(|cost| cost.usd), Some(Usd::from_micros(2_200_000)));
        assert_eq!(told(2_000_000, Fiat::USD), None);
        assert_eq!(told(i64::MAX, euros()), None);
        let dollars = Cost::in_usd(Usd::dollars(3));
        assert_eq!(
            dollars.told(Amount::usd(Usd::dollars(2)), Fiat::USD),
            Some(Cost::in_usd(Usd::dollars(2)))
        );
        assert_eq!(dollars.told(Amount { micros: 1, currency: euros() }, euros()), None);
    }

    fn any_rate() -> impl Strategy<Value = Rate> {
        (LEAST..=MOST).prop_map(Rate)
    }

    proptest! {
        /// The dollars of a bill cover it, and a micro-dollar less would not.
        #[test]
        fn a_cost_covers_its_bill_and_no_more(rate in any_rate(), micros in 1..1_000_000_000_000i64) {
            let Some(usd) = rate.dollars(micros) else {
                prop_assert!(i128::from(micros) * i128::from(rate.0) > i128::from(LIMIT_USD - 1) * 1_000_000 * i128::from(BILLIONTHS));
                return Ok(());
            };
            let (worth, step) = (i128::from(micros) * i128::from(rate.0), i128::from(BILLIONTHS));
            prop_assert!(i128::from(usd.micros()) * step >= worth);
            prop_assert!(i128::from(usd.micros() - 1) * step < worth);
            prop_assert!(rate.affordable(usd) >= micros, "what a bill costs pays for it");
        }

        /// An allowance never costs more than was paid.
        #[test]
        fn an_allowance_is_within_what_was_paid(rate in any_rate(), paid in 0..LIMIT_USD * 1_000_000) {
            let units = rate.affordable(Usd::from_micros(paid));
            prop_assert!(rate.dollars(units).is_none_or(|usd| usd <= Usd::from_micros(paid)));
        }

        /// Paid and given back at one rate is nothing, and parts that come back and parts that are lost are the whole.
        #[test]
        fn a_round_trip_gains_and_loses_nothing(rate in any_rate(), micros in 0..1_000_000_000i64, part in 0.0..=1.0f64) {
            let Some(whole) = Cost::at(rate, micros) else { return Ok(()) };
            prop_assert_eq!(rate.dollars(-micros), Some(whole.usd.negated()));
            let back = Cost::at(rate, (micros as f64 * part) as i64).unwrap();
            let lost = whole.without(back);
            let returned = whole.returned(lost);
            prop_assert_eq!(returned.usd.plus(lost.usd), whole.usd);
            prop_assert_eq!(returned.native(), back.native());
            prop_assert!(returned.usd >= Usd::ZERO && lost.usd >= Usd::ZERO);
            prop_assert!(returned.usd <= back.usd, "what comes back is not made larger");
            prop_assert_eq!(whole.without(whole).usd, Usd::ZERO);
        }

        #[test]
        fn nothing_overflows(rate in any_rate(), micros in any::<i64>(), paid in any::<i64>()) {
            let _ = rate.dollars(micros);
            let _ = rate.affordable(Usd::from_micros(paid));
        }

        #[test]
        fn rates_go_both_ways(rate in any_rate(), text in "[-0-9.e]{0,16}") {
            prop_assert_eq!(Rate::parse(&rate.to_string()), Ok(rate));
            let _ = Rate::parse(&text);
        }
    }
}
