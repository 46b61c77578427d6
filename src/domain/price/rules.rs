//! The rules of all lists, and which of them makes a plan's price.

use std::collections::{BTreeMap, HashMap};

use super::scope::{Scope, Subject};
use super::{Priced, Rule};
use crate::domain::money::Usd;
use crate::domain::plan::{DEFAULT_PRICE_LIST, RETAIL_PRICE_LIST};

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
mod tests {
    use super::*;
    use crate::domain::price::{Base, Percent, Rounding};

    const CENT: i64 = 10_000;

    /// The formulas that a sandbox began with.
    mod formulas {
        use super::CENT;

        pub fn wholesale(cost: i64) -> i64 {
            let margin = cost * 8 / 100 + (cost * 7 / 100).min(14 * CENT);
            round_up(cost + margin, CENT)
        }

        pub fn retail(wholesale: i64) -> i64 {
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
    }

    fn percent(text: &str) -> Option<Percent> {
        Some(Percent::parse(text).unwrap())
    }

    fn usd(text: &str) -> Option<Usd> {
        Some(Usd::parse(text).unwrap())
    }

    /// The rules that a database begins with.
    fn first_rules() -> Rules {
        let wholesale = Rule {
            base: Some(Base::Cost),
            percent: percent("8"),
            plus_percent: percent("7"),
            plus_at_most: usd("0.14"),
            rounding: Some(Rounding::Cent),
            ..Rule::default()
        };
        let retail = Rule {
            base: Some(Base::Default),
            percent: percent("35"),
            plus_percent: percent("40"),
            plus_at_most: usd("0.80"),
            rounding: Some(Rounding::Shop),
            ..Rule::default()
        };
        let mut rules = Rules::default();
        rules.put("default".into(), Scope::All, wholesale.checked().unwrap());
        rules.put("retail".into(), Scope::All, retail.checked().unwrap());
        rules
    }

    fn plan(code: &str, family: &str, countries: &str, micros: i64) -> Subject {
        Subject {
            code: code.into(),
            name: code.into(),
            family: family.into(),
            countries: countries.split(' ').map(str::to_string).collect(),
            supplier: "sim".into(),
            cost: Usd::from_micros(micros),
        }
    }

    #[test]
    fn the_first_rules_are_the_sandboxs_formulas() {
        let rules = first_rules();
        for cost in (1..1_000_000).map(|step| step * 300) {
            let plan = plan("JP-1", "JP", "JP", cost);
            let wholesale = formulas::wholesale(cost);
            assert_eq!(rules.price("default", &plan), Priced::At(Usd::from_micros(wholesale)), "{cost}");
            let retail = formulas::retail(wholesale);
            assert_eq!(rules.price("retail", &plan), Priced::At(Usd::from_micros(retail)), "{cost}");
        }
    }

    #[test]
    fn a_price_by_hand() {
        let plan = plan("JP-5GB-30D", "JP", "JP", 3_289_400);
        let rules = first_rules();
        assert_eq!(rules.price("default", &plan), Priced::At(Usd::from_micros(3_700_000)));
        assert_eq!(rules.price("retail", &plan), Priced::At(Usd::from_micros(5_990_000)));
        let mut text = rules.get("default", &Scope::All).unwrap().to_string();
        assert_eq!(text, "8 % over cost, plus 7 % of it but at most 0.14 USD, up to the cent");
        text = rules.get("retail", &Scope::All).unwrap().to_string();
        assert_eq!(
            text,
            "35 % over the default price, plus 40 % of it but at most 0.80 USD, up to a shop price"
        );
    }

    #[test]
    fn the_most_specific_rule_wins() {
        let mut rules = Rules::default();
        let fixed = |text: &str| Rule { price: usd(text), ..Rule::default() };
        for (price, scope) in [
            ("1", Scope::All),
            ("2", Scope::Supplier("sim".into())),
            ("3", Scope::Region("ASIA".into())),
            ("4", Scope::Country("JP".into())),
            ("5", Scope::Plan("JP-1".into())),
        ] {
            rules.put("default".into(), scope, fixed(price));
        }
        rules.put("acme".into(), Scope::Country("JP".into()), fixed("9"));
        let other = Subject { supplier: "other".into(), ..plan("KR-1", "KR", "KR", 0) };
        for (list, plan, price) in [
            ("default", &plan("JP-1", "JP", "JP", 0), 5),
            ("default", &plan("JP-2", "JP", "JP", 0), 4),
            ("default", &plan("ASIA-1", "Asia", "JP KR", 0), 3),
            ("default", &plan("EUROPE-1", "EUROPE", "DE FR", 0), 2),
            ("default", &plan("KR-1", "KR", "KR", 0), 2),
            ("default", &other, 1),
            // Its own rule wins over a more specific one of default's.
            ("acme", &plan("JP-1", "JP", "JP", 0), 9),
            ("acme", &plan("ASIA-1", "ASIA", "JP KR", 0), 3),
        ] {
            assert_eq!(rules.price(list, plan), Priced::At(Usd::dollars(price)), "{list} {}", plan.code);
        }
        assert_eq!(rules.price("retail", &other), Priced::Nothing, "retail takes no wholesale rule");
    }
}
