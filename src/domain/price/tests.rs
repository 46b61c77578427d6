use proptest::prelude::*;

use super::*;

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
    assert_eq!(text, "35 % over the default price, plus 40 % of it but at most 0.80 USD, up to a shop price");
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

fn roundings() -> impl Strategy<Value = Rounding> {
    let endings = proptest::collection::btree_set(0u8..100, 1..4);
    prop_oneof![
        Just(Rounding::Cent),
        Just(Rounding::FiveCents),
        Just(Rounding::Shop),
        endings.prop_map(|cents| Rounding::Endings(cents.into_iter().collect())),
    ]
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
