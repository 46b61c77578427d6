//! What we sell at. A price list has rules, each for a scope; the most specific one makes the price of a plan from its
//! cost. `rounding.rs` has the last step, `scope.rs` says which plans a rule is for.

mod rounding;
mod scope;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::money::{LIMIT_USD, MoneyError, Usd};
use super::plan::{DEFAULT_PRICE_LIST, RETAIL_PRICE_LIST};
use super::words::words;

pub use self::rounding::Rounding;
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

/// The rules of all lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    lists: BTreeMap<String, HashMap<Scope, Rule>>,
}

impl Rules {
    pub fn put(&mut self, list: String, scope: Scope, rule: Rule) {
        self.lists.entry(list).or_default().insert(scope, rule);
    }

    pub fn get(&self, list: &str, scope: &Scope) -> Option<&Rule> {
        self.lists.get(list)?.get(scope)
    }

    /// The lists that have rules.
    pub fn lists(&self) -> impl Iterator<Item = &str> {
        self.lists.keys().map(String::as_str)
    }

    /// A list's rules, the most general first.
    pub fn of_list(&self, list: &str) -> Vec<(&Scope, &Rule)> {
        let mut found: Vec<(&Scope, &Rule)> = self.lists.get(list).into_iter().flatten().collect();
        found.sort_by(|a, b| a.0.cmp(b.0));
        found
    }

    pub fn count(&self) -> usize {
        self.lists.values().map(HashMap::len).sum()
    }

    /// The rule that makes a plan's price: the list's most specific one. A list of a partner's own holds differences
    /// only: where it has no rule, the rules of `default` count. Retail prices follow from retail rules alone.
    pub fn fitting(&self, list: &str, plan: &Subject) -> Option<&Rule> {
        let own = self.own(list, plan);
        if list == RETAIL_PRICE_LIST { own } else { own.or_else(|| self.own(DEFAULT_PRICE_LIST, plan)) }
    }

    fn own(&self, list: &str, plan: &Subject) -> Option<&Rule> {
        let rules = self.lists.get(list)?;
        plan.scopes().into_iter().find_map(|scope| rules.get(&scope))
    }

    pub fn price(&self, list: &str, plan: &Subject) -> Priced {
        let Some(rule) = self.fitting(list, plan) else { return Priced::Nothing };
        rule.price(plan.cost, self.default_price(plan))
    }

    /// What shares of the default price are shares of. It needs not be for sale there.
    fn default_price(&self, plan: &Subject) -> Option<Usd> {
        self.own(DEFAULT_PRICE_LIST, plan)?.price(plan.cost, None).amount()
    }
}

#[cfg(test)]
mod tests;
