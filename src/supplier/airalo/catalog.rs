//! From Airalo's packages to our listings: country, operator, packages. Top-ups belong to their operator.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::shapes::{Rows, Text};
use crate::domain::amount::{Amount, Fiat};
use crate::domain::country;
use crate::domain::plan::{Carrier, Details, Listing, PlanType, VolumeKind};

#[derive(Deserialize)]
pub struct Country {
    country_code: Option<Text>,
    title: Option<Text>,
    operators: Option<Rows<Operator>>,
}

#[derive(Deserialize)]
struct Operator {
    id: Option<Text>,
    title: Option<Text>,
    activation_policy: Option<Text>,
    is_kyc_verify: Option<Text>,
    rechargeability: Option<Text>,
    is_fair_usage_policy: Option<Text>,
    fair_usage_policy: Option<Text>,
    coverages: Option<Rows<Coverage>>,
    countries: Option<Rows<Covered>>,
    packages: Option<Rows<Package>>,
}

#[derive(Deserialize)]
struct Coverage {
    code: Option<Text>,
    name: Option<Text>,
    networks: Option<Rows<Network>>,
}

#[derive(Deserialize)]
struct Network {
    name: Option<Text>,
    types: Option<Rows<Text>>,
}

#[derive(Deserialize)]
struct Covered {
    country_code: Option<Text>,
}

#[derive(Deserialize)]
struct Package {
    id: Option<Text>,
    #[serde(rename = "type")]
    kind: Option<Text>,
    price: Option<Text>,
    net_price: Option<Text>,
    prices: Option<Prices>,
    amount: Option<Text>,
    day: Option<Text>,
    is_unlimited: Option<Text>,
    is_fair_usage_policy: Option<Text>,
    fair_usage_policy: Option<Text>,
    title: Option<Text>,
}

/// The same prices in several currencies.
#[derive(Deserialize)]
struct Prices {
    net_price: Option<BTreeMap<String, Text>>,
    recommended_retail_price: Option<BTreeMap<String, Text>>,
}

/// All plans, each once, and how many packages make no plan: no cost in our currency, no size or no time, or two
/// descriptions that contradict each other. Those are not for sale, because selling them would be guessing.
pub fn listings(countries: &[Country], currency: Fiat) -> (Vec<Listing>, usize) {
    let mut plans: BTreeMap<String, Option<Listing>> = BTreeMap::new();
    let mut unread = 0;
    for country in countries {
        for operator in rows(&country.operators) {
            for package in rows(&operator.packages) {
                match listing(country, operator, package, currency) {
                    None => unread += 1,
                    // The packages of a region are listed once for each of its places.
                    Some(plan) => match plans.get(&plan.code) {
                        Some(Some(known)) if !is_same(known, &plan) => _ = plans.insert(plan.code, None),
                        Some(_) => {}
                        None => _ = plans.insert(plan.code.clone(), Some(plan)),
                    },
                }
            }
        }
    }
    unread += plans.values().filter(|plan| plan.is_none()).count();
    (plans.into_values().flatten().collect(), unread)
}

fn is_same(one: &Listing, other: &Listing) -> bool {
    let facts =
        |plan: &Listing| (plan.cost, plan.data_mb, plan.duration_days, plan.plan_type, plan.family.clone());
    facts(one) == facts(other)
}

fn rows<T>(rows: &Option<Rows<T>>) -> &[T] {
    rows.as_ref().map_or(&[], |rows| &rows.0)
}

/// What is said; an empty text says nothing.
fn word(text: &Option<Text>) -> Option<String> {
    text.as_ref().map(|text| text.0.trim().to_string()).filter(|text| !text.is_empty())
}

fn is_true(text: &Option<Text>) -> bool {
    text.as_ref().is_some_and(Text::is_true)
}

fn listing(country: &Country, operator: &Operator, package: &Package, currency: Fiat) -> Option<Listing> {
    let plan_type = match word(&package.kind)?.as_str() {
        "sim" => PlanType::Base,
        "topup" => PlanType::Topup,
        _ => return None,
    };
    let is_unlimited = is_true(&package.is_unlimited);
    let data_mb = match is_unlimited {
        true => None,
        false => Some(package.amount.as_ref()?.whole().filter(|mb| *mb > 0)?),
    };
    let countries = covered(country, operator);
    let title = word(&package.title)?;
    Some(Listing {
        code: word(&package.id)?,
        name: word(&country.title).map_or(title.clone(), |place| format!("{place} {title}")),
        plan_type,
        family: word(&operator.id)?,
        countries: Some(countries).filter(|countries| !countries.is_empty())?,
        data_mb,
        duration_days: package.day.as_ref()?.whole().filter(|days| *days > 0)?,
        operator: word(&operator.title).unwrap_or_default(),
        cost: cost(package, currency).filter(|cost| cost.micros > 0)?,
        retail_hint: retail_hint(package, currency),
        in_stock: true,
        details: details(operator, package, is_unlimited),
    })
}

/// `net_price` is in dollars; what it is in another currency stands beside it.
fn cost(package: &Package, currency: Fiat) -> Option<Amount> {
    let others = package.prices.as_ref().and_then(|prices| prices.net_price.as_ref());
    priced(&package.net_price, others, currency)
}

fn retail_hint(package: &Package, currency: Fiat) -> Option<Amount> {
    let others = package.prices.as_ref().and_then(|prices| prices.recommended_retail_price.as_ref());
    priced(&package.price, others, currency)
}

fn priced(dollars: &Option<Text>, others: Option<&BTreeMap<String, Text>>, currency: Fiat) -> Option<Amount> {
    match currency == Fiat::USD {
        true => dollars.as_ref()?.amount(currency),
        false => others?.get(currency.as_str())?.amount(currency),
    }
}

/// The countries that the operator covers: by its networks, or by its own list, or the one it is listed under. Codes
/// that are no country's, such as those of regions, are left out.
fn covered(country: &Country, operator: &Operator) -> Vec<String> {
    let by_networks = rows(&operator.coverages).iter().map(|coverage| &coverage.code);
    let by_list = rows(&operator.countries).iter().map(|covered| &covered.country_code);
    let of = |codes: &mut dyn Iterator<Item = &Option<Text>>| {
        let codes = codes.filter_map(word).map(|code| code.to_ascii_uppercase());
        let mut known: Vec<String> = codes.filter(|code| country::by_code(code).is_some()).collect();
        known.sort();
        known.dedup();
        Some(known).filter(|known| !known.is_empty())
    };
    of(&mut by_networks.into_iter())
        .or_else(|| of(&mut by_list.into_iter()))
        .or_else(|| of(&mut std::iter::once(&country.country_code)))
        .unwrap_or_default()
}

fn details(operator: &Operator, package: &Package, is_unlimited: bool) -> Details {
    let fair = is_true(&package.is_fair_usage_policy) || is_true(&operator.is_fair_usage_policy);
    Details {
        kind: Some(if is_unlimited { VolumeKind::Unlimited } else { VolumeKind::Fixed }),
        fair_use: word(&package.fair_usage_policy)
            .or_else(|| word(&operator.fair_usage_policy))
            .filter(|_| fair),
        networks: rows(&operator.coverages).iter().flat_map(carriers).collect(),
        activation_policy: word(&operator.activation_policy).map(activation_policy),
        top_up: operator.rechargeability.as_ref().map(Text::is_true),
        kyc_required: operator.is_kyc_verify.as_ref().map(Text::is_true),
        ..Details::default()
    }
}

fn carriers(coverage: &Coverage) -> Vec<Carrier> {
    // The name is the code where a code is missing.
    let code = word(&coverage.code).or_else(|| word(&coverage.name)).map(|code| code.to_ascii_uppercase());
    let Some(country) = code.filter(|code| country::by_code(code).is_some()) else { return Vec::new() };
    let carrier = |network: &Network| {
        Some(Carrier {
            country: country.clone(),
            operator: word(&network.name)?,
            technologies: rows(&network.types).iter().filter_map(|kind| word(&Some(kind.clone()))).collect(),
        })
    };
    rows(&coverage.networks).iter().filter_map(carrier).collect()
}

fn activation_policy(word: String) -> String {
    match word.as_str() {
        "first-usage" => "begins with the first use of a network".into(),
        "installation" => "begins when it is installed".into(),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn catalog() -> Value {
        json!([{
            "slug": "united-states", "country_code": "US", "title": "United States",
            "operators": [{
                "id": 1181, "type": "local", "title": "Change", "activation_policy": "first-usage",
                "is_kyc_verify": false, "rechargeability": true,
                "coverages": [{"name": "US", "code": "US", "networks": [{"name": "T-Mobile", "types": ["4G", "5G"]}]}],
                "countries": [{"country_code": "US", "title": "United States"}],
                "packages": [
                    {"id": "change-7days-1gb", "type": "sim", "price": 4.5, "net_price": 3.2, "amount": 1024, "day": 7,
                     "is_unlimited": false, "title": "1 GB - 7 Days",
                     "prices": {"net_price": {"USD": 3.2, "EUR": "2.91"}, "recommended_retail_price": {"EUR": 4.1}}},
                    {"id": "change-7days-1gb-topup", "type": "topup", "price": "4.50", "net_price": "3.20",
                     "amount": "1024", "day": "7", "is_unlimited": 0, "title": "1 GB - 7 Days"},
                    {"id": "change-unlimited", "type": "sim", "price": 11.5, "net_price": 9, "amount": 0, "day": 3,
                     "is_unlimited": true, "is_fair_usage_policy": true, "fair_usage_policy": "1 Mbps after 3 GB a day",
                     "title": "Unlimited - 3 Days"},
                ]
            }]
        }])
    }

    fn read(catalog: Value, currency: &str) -> (Vec<Listing>, usize) {
        let countries: Rows<Country> = serde_json::from_str(&catalog.to_string()).unwrap();
        listings(&countries.0, Fiat::parse(currency).unwrap())
    }

    #[test]
    fn packages_become_plans_with_our_cost() {
        let (plans, unread) = read(catalog(), "USD");
        assert_eq!((plans.len(), unread), (3, 0));
        let base = &plans[0];
        assert_eq!(
            (base.code.as_str(), base.name.as_str()),
            ("change-7days-1gb", "United States 1 GB - 7 Days")
        );
        assert_eq!(
            (base.plan_type, base.family.as_str(), base.data_mb),
            (PlanType::Base, "1181", Some(1024))
        );
        assert_eq!(
            (base.cost.to_string(), base.retail_hint.unwrap().to_string()),
            ("3.20 USD".into(), "4.50 USD".into())
        );
        assert_eq!((base.countries.as_slice(), base.duration_days), (&["US".to_string()][..], 7));
        assert_eq!(
            (base.details.top_up, base.details.kyc_required, base.details.fair_use.clone()),
            (Some(true), Some(false), None)
        );
        assert_eq!(base.details.networks[0].technologies, ["4G", "5G"]);
        assert_eq!(base.details.activation_policy.as_deref(), Some("begins with the first use of a network"));
        let topup = &plans[1];
        assert_eq!(
            (topup.plan_type, topup.family.as_str(), topup.cost),
            (PlanType::Topup, "1181", base.cost)
        );
        let unlimited = &plans[2];
        assert_eq!((unlimited.data_mb, unlimited.details.kind), (None, Some(VolumeKind::Unlimited)));
        assert_eq!(unlimited.details.fair_use.as_deref(), Some("1 Mbps after 3 GB a day"));
    }

    #[test]
    fn another_currency_has_prices_of_its_own() {
        let (plans, unread) = read(catalog(), "EUR");
        assert_eq!((plans.len(), unread), (1, 2), "the others have no price in euros");
        assert_eq!(
            (plans[0].cost.to_string(), plans[0].retail_hint.unwrap().to_string()),
            ("2.91 EUR".into(), "4.10 EUR".into())
        );
    }

    #[test]
    fn a_plan_that_would_be_guessed_is_left_out() {
        let package = |change: &dyn Fn(&mut Value)| {
            let mut all = catalog();
            let packages = &mut all[0]["operators"][0]["packages"];
            *packages = json!([packages[0]]);
            change(&mut all[0]["operators"][0]);
            let (plans, unread) = read(all, "USD");
            assert_eq!(plans.len() + unread, 1);
            plans.len()
        };
        assert_eq!(package(&|_| {}), 1);
        for (field, value) in [
            ("net_price", json!(null)),
            ("net_price", json!(0)),
            ("net_price", json!(-3)),
            ("net_price", json!("free")),
            ("amount", json!(0)),
            ("amount", json!(0.5)),
            ("day", json!(0)),
            ("day", json!(null)),
            ("type", json!("voucher")),
            ("id", json!("")),
        ] {
            assert_eq!(
                package(&|operator| operator["packages"][0][field] = value.clone()),
                0,
                "{field} {value}"
            );
        }
        assert_eq!(package(&|operator| operator["id"] = json!(null)), 0, "no family");
    }

    #[test]
    fn a_package_that_contradicts_itself_is_left_out() {
        let mut all = catalog();
        let twice = all[0].clone();
        all.as_array_mut().unwrap().push(twice);
        assert_eq!(read(all.clone(), "USD").0.len(), 3, "the same twice is one");
        all[1]["operators"][0]["packages"][0]["net_price"] = json!(0.01);
        let (plans, unread) = read(all, "USD");
        assert_eq!((plans.len(), unread), (2, 1));
        assert!(plans.iter().all(|plan| plan.code != "change-7days-1gb"));
    }

    #[test]
    fn a_region_covers_what_its_networks_do() {
        let mut all = catalog();
        all[0]["country_code"] = json!("");
        let operator = &mut all[0]["operators"][0];
        operator["coverages"] =
            json!([{"code": "fr", "networks": null}, {"code": "DE"}, {"code": "DE"}, {"code": "europe"}]);
        assert_eq!(read(all.clone(), "USD").0[0].countries, ["DE", "FR"]);
        all[0]["operators"][0]["coverages"] = json!([]);
        assert_eq!(read(all.clone(), "USD").0[0].countries, ["US"], "by the operator's own list");
        all[0]["operators"][0]["countries"] = json!(null);
        assert_eq!(read(all, "USD").1, 3, "nowhere");
    }
}
