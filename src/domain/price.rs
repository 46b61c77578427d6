//! What we sell at. A price list has rules, each for a scope; the most specific one makes the price of a plan from its
//! cost. `rounding.rs` has the last step, `scope.rs` says which plans a rule is for, `rules.rs` which rule is a plan's.

mod coverage;
mod rounding;
mod rules;
mod scope;

use std::fmt;

use super::money::{LIMIT_USD, MoneyError, Usd};
use super::words::words;

pub use self::rounding::Rounding;
pub use self::rules::Rules;
pub use self::scope::{Scope, Subject};

/// The longest name of a list.
const LIST_CHARS: usize = 40;

/// A share in hundredths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(i64);

impl Percent {
    const ALL: i64 = 10_000;
    const MOST: i64 = 100 * Percent::ALL;

    pub const fn from_hundredths(hundredths: i64) -> Percent {
        Percent(hundredths)
    }

    pub const fn hundredths(self) -> i64 {
        self.0
    }

    /// As an amount is written: `12.5`.
    pub fn parse(text: &str) -> Result<Percent, String> {
        let micros = Usd::parse(text).map_err(|error| match error {
            MoneyError::TooPrecise => "must have at most 2 decimals".to_string(),
            other => other.as_str().into(),
        })?;
        match micros.micros() {
            micros if micros % 10_000 != 0 => Err("must have at most 2 decimals".into()),
            micros => Ok(Percent(micros / 10_000)),
        }
    }

    /// The same number of dollars, which is printed as the number that it is.
    pub fn as_number(self) -> Usd {
        Usd::from_micros(self.0 * 10_000)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.as_number())
    }
}

words! {
    /// What a share is a share of.
    pub enum Base: ALL, parse {
        Cost = "cost",
        /// The price on the list `default`.
        Default = "default",
    }
}

/// How a price is made. Either `price` is it, or it is made of the rest: what it is based on, plus shares and an
/// amount, at least the least margin above the cost, rounded up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub price: Option<Usd>,
    pub base: Option<Base>,
    pub percent: Option<Percent>,
    /// A second share, for small amounts: it is never more than `plus_at_most`.
    pub plus_percent: Option<Percent>,
    pub plus_at_most: Option<Usd>,
    pub fixed: Option<Usd>,
    pub least_margin: Option<Usd>,
    /// To the cent when nothing is said.
    pub rounding: Option<Rounding>,
    /// Whether it may sell below cost. Otherwise a plan whose price would be below its cost is not for sale.
    pub below_cost: bool,
}

/// What rules make of a plan's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priced {
    At(Usd),
    /// It would be below the cost, and the rule does not allow that: the plan is not for sale.
    BelowCost(Usd),
    /// No rule is for it, or the rule makes no amount that could be a price.
    Nothing,
}

impl Priced {
    /// The amount, whether it is for sale at it or not.
    fn amount(self) -> Option<Usd> {
        match self {
            Priced::At(price) | Priced::BelowCost(price) => Some(price),
            Priced::Nothing => None,
        }
    }
}

impl Rule {
    /// Checks that it says one thing. `Err` is a sentence for the operator.
    pub fn checked(self) -> Result<Rule, String> {
        match self.mistake() {
            Some(mistake) => Err(mistake),
            None => Ok(self),
        }
    }

    fn mistake(&self) -> Option<String> {
        let made = self.percent.is_some() || self.plus_percent.is_some() || self.fixed.is_some();
        let shaped = self.base.is_some() || self.least_margin.is_some() || self.rounding.is_some();
        let negative = |amount: Option<Usd>| amount.is_some_and(|amount| amount < Usd::ZERO);
        let mistake = match self {
            Rule { price: Some(_), .. } if made || shaped || self.plus_at_most.is_some() => {
                "a price stands alone: no percent, amount, margin or rounding goes with it"
            }
            Rule { price: Some(price), .. } if !price.is_positive() => "a price must be more than 0",
            Rule { price: Some(_), .. } => return None,
            _ if self.plus_percent.is_some() != self.plus_at_most.is_some() => {
                "the plus percent and the most that it may be go together"
            }
            _ if !made && self.least_margin.is_none() => {
                "it needs a price, a percent, an amount or a least margin"
            }
            _ if self.percent.is_some_and(|percent| percent.0 <= -Percent::ALL) => {
                "the percent must be more than -100"
            }
            _ if [self.percent, self.plus_percent].iter().flatten().any(|p| p.0 > Percent::MOST) => {
                "a percent must be at most 10000"
            }
            _ if self.plus_percent.is_some_and(|percent| percent.0 <= 0)
                || self.plus_at_most.is_some_and(|most| !most.is_positive()) =>
            {
                "the plus percent and the most that it may be must be more than 0"
            }
            _ if negative(self.least_margin) => "the least margin must not be negative",
            _ if self.least_margin.is_some() && self.below_cost => {
                "a least margin keeps the price above cost, so below cost cannot go with it"
            }
            _ => return None,
        };
        Some(mistake.into())
    }

    /// The price of what costs this; `default` is its price on the list `default`.
    pub fn price(&self, cost: Usd, default: Option<Usd>) -> Priced {
        let Some(amount) = self.amount(cost, default) else { return Priced::Nothing };
        match i64::try_from(amount).map(Usd::from_micros) {
            Ok(price) if !price.is_positive() || price >= Usd::dollars(LIMIT_USD) => Priced::Nothing,
            Ok(price) if price < cost && !self.below_cost => Priced::BelowCost(price),
            Ok(price) => Priced::At(price),
            Err(_) => Priced::Nothing,
        }
    }

    /// In micro-dollars. Every step rounds up.
    fn amount(&self, cost: Usd, default: Option<Usd>) -> Option<i128> {
        if cost < Usd::ZERO {
            return None;
        }
        if let Some(price) = self.price {
            return Some(micros(price));
        }
        let based = match self.base.unwrap_or(Base::Cost) {
            Base::Cost => micros(cost),
            Base::Default => micros(default?),
        };
        let share = |percent: Option<Percent>| based * percent.map_or(0, |percent| i128::from(percent.0));
        let all = i128::from(Percent::ALL);
        let plus = share(self.plus_percent).min(self.plus_at_most.map_or(0, micros) * all);
        let shares = share(self.percent) + plus;
        let made = based + rounding::divided_up(shares, all) + self.fixed.map_or(0, micros);
        let least = self.least_margin.map(|least| micros(cost) + micros(least));
        Some(self.rounding().up(made.max(least.unwrap_or(made))))
    }

    pub fn rounding(&self) -> &Rounding {
        self.rounding.as_ref().unwrap_or(&Rounding::Cent)
    }
}

fn micros(amount: Usd) -> i128 {
    i128::from(amount.micros())
}

/// In words: `8 % over cost, plus 7 % of it but at most 0.14 USD, to the cent`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(price) = self.price {
            parts.push(format!("{} USD", price.priced()));
        } else {
            parts.push(self.over_its_base());
            if let (Some(percent), Some(most)) = (self.plus_percent, self.plus_at_most) {
                parts.push(format!("plus {percent} of it but at most {} USD", most.priced()));
            }
            if let Some(fixed) = self.fixed {
                parts.push(format!("plus {} USD", fixed.priced()));
            }
            if let Some(least) = self.least_margin {
                parts.push(format!("at least {} USD above cost", least.priced()));
            }
            parts.push(format!("up to {}", self.rounding().in_words()));
        }
        if self.below_cost {
            parts.push("even below cost".into());
        }
        f.write_str(&parts.join(", "))
    }
}

impl Rule {
    fn over_its_base(&self) -> String {
        let base = match self.base.unwrap_or(Base::Cost) {
            Base::Cost => "cost",
            Base::Default => "the default price",
        };
        match self.percent {
            Some(percent) if percent.0 < 0 => format!("{} under {base}", Percent(-percent.0)),
            Some(percent) => format!("{percent} over {base}"),
            None => format!("from {base}"),
        }
    }
}

/// The name of a list, in small letters.
pub fn list_name(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if begins && name.len() <= LIST_CHARS && name.bytes().all(fits) {
        return Ok(name);
    }
    Err(format!("must have 1 to {LIST_CHARS} letters, digits, - or _, and begin with a letter"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::rounding::tests::roundings;
    use super::*;

    const CENT: i64 = 10_000;

    fn percent(text: &str) -> Option<Percent> {
        Some(Percent::parse(text).unwrap())
    }

    fn usd(text: &str) -> Option<Usd> {
        Some(Usd::parse(text).unwrap())
    }

    #[test]
    fn below_cost_needs_a_word() {
        let cheap = Rule { percent: percent("-10"), ..Rule::default() };
        let (cost, price) = (Usd::dollars(10), Usd::dollars(9));
        assert_eq!(cheap.price(cost, None), Priced::BelowCost(price));
        assert_eq!(Rule { below_cost: true, ..cheap.clone() }.price(cost, None), Priced::At(price));
        let least = Rule { least_margin: usd("0.5"), ..cheap };
        assert_eq!(least.price(cost, None), Priced::At(Usd::from_micros(10_500_000)));
        let absolute = Rule { price: usd("9.99"), ..Rule::default() };
        assert_eq!(absolute.price(cost, None), Priced::BelowCost(Usd::from_micros(9_990_000)));
    }

    #[test]
    fn what_is_no_amount_is_no_price() {
        let off = Rule { fixed: usd("-5"), below_cost: true, ..Rule::default() };
        assert_eq!(off.price(Usd::dollars(5), None), Priced::Nothing);
        let tenfold = Rule { percent: percent("10000"), ..Rule::default() };
        assert_eq!(tenfold.price(Usd::dollars(999_999_999), None), Priced::Nothing);
        assert_eq!(tenfold.price(Usd::dollars(-1), None), Priced::Nothing);
        let of_default = Rule { base: Some(Base::Default), percent: percent("5"), ..Rule::default() };
        assert_eq!(of_default.price(Usd::dollars(5), None), Priced::Nothing);
    }

    #[test]
    fn rules_that_say_two_things_or_nothing_are_refused() {
        let empty = Rule::default();
        for wrong in [
            empty.clone(),
            Rule { rounding: Some(Rounding::Shop), ..empty.clone() },
            Rule { price: usd("0"), ..empty.clone() },
            Rule { price: usd("-1"), ..empty.clone() },
            Rule { price: usd("1"), percent: percent("5"), ..empty.clone() },
            Rule { price: usd("1"), least_margin: usd("1"), ..empty.clone() },
            Rule { price: usd("1"), rounding: Some(Rounding::Cent), ..empty.clone() },
            Rule { plus_percent: percent("5"), ..empty.clone() },
            Rule { percent: percent("5"), plus_at_most: usd("1"), ..empty.clone() },
            Rule { plus_percent: percent("-5"), plus_at_most: usd("1"), ..empty.clone() },
            Rule { plus_percent: percent("5"), plus_at_most: usd("0"), ..empty.clone() },
            Rule { percent: percent("-100"), ..empty.clone() },
            Rule { percent: percent("10000.01"), ..empty.clone() },
            Rule { least_margin: usd("-1"), ..empty.clone() },
            Rule { least_margin: usd("1"), below_cost: true, ..empty.clone() },
        ] {
            assert!(wrong.clone().checked().is_err(), "{wrong:?}");
        }
        assert!(Rule { least_margin: usd("0.2"), ..empty.clone() }.checked().is_ok());
        assert!(Rule { percent: percent("-99.99"), ..empty }.checked().is_ok());
    }

    #[test]
    fn names_and_shares_are_checked() {
        assert_eq!(list_name("Acme-2"), Ok("acme-2".into()));
        for wrong in ["", "2acme", "a b", "a/b", "ä", &"x".repeat(41)] {
            assert!(list_name(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Percent::parse("12.5").unwrap().to_string(), "12.5 %");
        for wrong in ["", "x", "1.005", "0.0000001", "5%"] {
            assert!(Percent::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Scope::parse("Plan", "jp-1gb"), Ok(Scope::Plan("JP-1GB".into())));
        assert_eq!(Scope::parse("country", "jp"), Ok(Scope::Country("JP".into())));
        for wrong in [("all", "x"), ("plan", ""), ("country", "XX"), ("city", "Rome"), ("", "")] {
            assert!(Scope::parse(wrong.0, wrong.1).is_err(), "{wrong:?}");
        }
    }

    prop_compose! {
        fn any_rule()(
            percent in proptest::option::of(-9_999i64..100_000),
            plus in proptest::option::of((1i64..20_000, 1i64..5_000_000)),
            fixed in proptest::option::of(-3_000_000i64..5_000_000),
            least in proptest::option::of(0i64..4_000_000),
            rounding in proptest::option::of(roundings()),
            of_default in any::<bool>(),
            below_cost in any::<bool>(),
        ) -> Rule {
            Rule {
                price: None,
                base: of_default.then_some(Base::Default),
                percent: percent.map(Percent),
                plus_percent: plus.map(|(percent, _)| Percent(percent)),
                plus_at_most: plus.map(|(_, most)| Usd::from_micros(most)),
                fixed: fixed.map(Usd::from_micros),
                least_margin: least.map(Usd::from_micros),
                rounding,
                below_cost: below_cost && least.is_none(),
            }
        }
    }

    proptest! {
        #[test]
        fn a_price_keeps_what_its_rule_says(rule in any_rule(), cost in 0i64..200_000_000, over in 0i64..50_000_000) {
            let cost = Usd::from_micros(cost);
            let default = Usd::from_micros(cost.micros() + over);
            let exact = Rule { rounding: None, ..rule.clone() };
            match rule.price(cost, Some(default)) {
                Priced::At(price) => {
                    let least = rule.least_margin.unwrap_or(Usd::ZERO);
                    prop_assert!(rule.below_cost || price >= cost.plus(least));
                    // A coarser rounding never gives less than the cent would, and a dollar more at most.
                    if let Some(cents) = exact.price(cost, Some(default)).amount()
                        && let Some(Rounding::Endings(_) | Rounding::Shop | Rounding::FiveCents) = rule.rounding
                    {
                        prop_assert!(price.plus(Usd::from_micros(CENT)) > cents);
                        prop_assert!(price <= cents.plus(Usd::dollars(1)));
                    }
                }
                Priced::BelowCost(price) => prop_assert!(price < cost && rule.least_margin.is_none() && !rule.below_cost),
                Priced::Nothing => {
                    let unrounded = exact.amount(cost, Some(default)).unwrap();
                    prop_assert!(unrounded <= 0 || unrounded >= i128::from(LIMIT_USD) * 1_000_000);
                }
            }
        }

        #[test]
        fn prices_grow_with_the_cost(rule in any_rule(), a in 0i64..200_000_000, b in 0i64..200_000_000) {
            let (low, high) = (Usd::from_micros(a.min(b)), Usd::from_micros(a.max(b)));
            let price = |cost: Usd| rule.amount(cost, Some(cost.plus(Usd::dollars(1))));
            prop_assert!(price(low) <= price(high));
        }
    }
}
