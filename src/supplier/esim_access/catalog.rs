//! Packages as plans. A package that cannot be sold as it is described (another currency, no price, no size, an unknown
//! kind) is left out and logged; the rest is listed. A plan by the day is listed for several numbers of days, which are part of
//! its code: `PKG:7`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::read;
use super::wire::Text;
use crate::domain::amount::{Amount, Fiat};
use crate::domain::country;
use crate::domain::plan::{Carrier, Details, Listing, PlanType, VolumeKind};
use crate::domain::text::visible;

/// The lengths in which a plan by the day is sold.
const DAYS: [i64; 9] = [1, 3, 5, 7, 10, 14, 15, 20, 30];
const LONGEST: i64 = 365;
const NAME: usize = 120;
/// Between the package and the days in our code.
const DAYS_MARK: char = ':';
/// A top-up is called after the plan that it repeats.
const TOP_UP: &str = "TOPUP_";
const FEW_NETWORKS: usize = 3;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Packages {
    pub package_list: Option<Vec<Package>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Package {
    pub package_code: Text,
    slug: Text,
    name: Text,
    price: Text,
    retail_price: Text,
    currency_code: Text,
    volume: Text,
    data_type: Text,
    duration: Text,
    duration_unit: Text,
    location: Text,
    active_type: Text,
    speed: Text,
    location_network_list: Option<Vec<Location>>,
    ip_export: Text,
    support_top_up_type: Text,
    fup_policy: Text,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Location {
    location_name: Text,
    location_logo: Text,
    operator_list: Option<Vec<Operator>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Operator {
    operator_name: Text,
    network_type: Text,
}

/// Our code of a package and the days that it is ordered for.
pub fn split(code: &str) -> (&str, Option<i64>) {
    let parts = code.rsplit_once(DAYS_MARK);
    let days = parts.and_then(|(package, days)| Some((package, days.parse().ok()?)));
    days.map_or((code, None), |(package, days)| (package, Some(days)))
}

impl Package {
    /// What it costs now, for so many days where it is sold by the day.
    pub fn price(&self, days: Option<i64>, currency: Fiat) -> Result<Amount, String> {
        let price = read::money(&self.price.0, currency)?;
        let micros = price.micros.checked_mul(days.unwrap_or(1));
        let micros = micros.filter(|micros| *micros > 0).ok_or("it has no price")?;
        Ok(Amount { micros, ..price })
    }

    fn is_by_the_day(&self) -> bool {
        matches!(self.data_type.0.as_str(), "2" | "3" | "4") && self.duration.0 == "1"
    }

    /// The part of the slug that names the coverage; a seller without slugs has only the countries.
    fn stem(&self, countries: &[String]) -> String {
        match self.slug.0.split_once('_') {
            Some((stem, _)) if !stem.is_empty() => visible(stem, NAME),
            _ => countries.join(","),
        }
    }

    /// The countries that we know, in order.
    fn countries(&self) -> Vec<String> {
        let known = |code: &str| country::exists(code).then(|| code.to_string());
        let listed = self.location.0.split(',').map(|code| code.trim().to_ascii_uppercase());
        listed.filter_map(|code| known(&code)).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// What a plan shares with the top-ups that fit it: the coverage, and whether it is sold by the day.
    fn family(&self, countries: &[String]) -> String {
        let by_the_day = if self.is_by_the_day() { "/day" } else { "" };
        format!("{}{by_the_day}", self.stem(countries))
    }

    fn networks(&self, countries: &[String]) -> Vec<Carrier> {
        let locations = self.location_network_list.iter().flatten();
        let carriers = locations.filter_map(|location| Some((location.country(countries)?, location)));
        let of_each = carriers.flat_map(|(country, location)| {
            location.operator_list.iter().flatten().map(move |operator| operator.carrier(&country))
        });
        of_each.filter(|carrier| !carrier.operator.is_empty()).collect()
    }

    fn details(&self, networks: Vec<Carrier>, megabytes: i64) -> Details {
        let rule = visible(&self.fup_policy.0, NAME);
        let a_day = size(megabytes);
        let (kind, fair_use) = match self.data_type.0.as_str() {
            "2" if rule.is_empty() => (VolumeKind::DayPass, Some(format!("{a_day} a day, then slow"))),
            "2" => (VolumeKind::DayPass, Some(format!("{a_day} a day, then {rule}"))),
            "3" => (VolumeKind::DayPass, Some(format!("{a_day} a day, then nothing until the next day"))),
            "4" => (VolumeKind::Unlimited, Some(rule).filter(|rule| !rule.is_empty())),
            _ => (VolumeKind::Fixed, None),
        };
        let activation = match self.active_type.0.as_str() {
            "1" => Some("when it is installed"),
            "2" => Some("when it first connects to a network"),
            _ => None,
        };
        Details {
            kind: Some(kind),
            fair_use,
            networks,
            speed: Some(visible(&self.speed.0, NAME)).filter(|speed| !speed.is_empty()),
            activation_policy: activation.map(str::to_string),
            hotspot: None,
            exit_country: exits(&self.ip_export.0),
            top_up: match self.support_top_up_type.0.as_str() {
                "1" => Some(false),
                "2" | "3" => Some(true),
                _ => None,
            },
            kyc_required: None,
        }
    }

    /// The plans that it is sold as, or why it is not sold.
    fn listings(&self, plan_type: PlanType, family: &str, currency: Fiat) -> Result<Vec<Listing>, String> {
        let code = &self.package_code.0;
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if code.is_empty() || code.len() > NAME || !code.bytes().all(sound) {
            return Err("its code cannot be used".into());
        }
        if self.currency_code.0 != currency.as_str() {
            return Err(format!("it is sold in {:?}", self.currency_code.0));
        }
        if !matches!(self.data_type.0.as_str(), "" | "1" | "2" | "3" | "4") {
            return Err(format!("{:?} is no known type of data", self.data_type.0));
        }
        let unit = self.duration_unit.0.as_str();
        let duration = read::whole(&self.duration.0)?;
        if !unit.eq_ignore_ascii_case("DAY") || !(1..=LONGEST).contains(&duration) {
            return Err(format!("{duration} {unit:?} is no duration"));
        }
        let countries = self.countries();
        if countries.is_empty() {
            return Err(format!("{:?} names no country", self.location.0));
        }
        let megabytes = read::megabytes(read::whole(&self.volume.0)?);
        let is_endless = self.data_type.0 == "4";
        if megabytes == 0 && !is_endless {
            return Err("it has no size".into());
        }
        let networks = self.networks(&countries);
        let operator = operators(&networks);
        let details = self.details(networks, megabytes);
        let lengths = if self.is_by_the_day() { DAYS.map(Some).to_vec() } else { vec![None] };
        let daily = details.kind == Some(VolumeKind::DayPass);
        let listing = |days: Option<i64>| {
            let length = days.unwrap_or(duration);
            let hint = read::money(&self.retail_price.0, currency).ok();
            let hint = hint.and_then(|hint| hint.micros.checked_mul(days.unwrap_or(1)));
            let name = visible(&self.name.0, NAME);
            let name = if name.is_empty() { code.clone() } else { name };
            let total = megabytes.checked_mul(if daily { length } else { 1 }).ok_or("it is too large")?;
            Ok(Listing {
                code: days.map_or(code.clone(), |days| format!("{code}{DAYS_MARK}{days}")),
                name: days.map_or(name.clone(), |days| {
                    format!("{name}, {days} {}", if days == 1 { "day" } else { "days" })
                }),
                plan_type,
                family: family.to_string(),
                countries: countries.clone(),
                data_mb: Some(total).filter(|_| !is_endless),
                duration_days: length,
                operator: operator.clone(),
                cost: self.price(days, currency)?,
                retail_hint: hint.filter(|hint| *hint > 0).map(|micros| Amount { micros, currency }),
                in_stock: true,
                details: details.clone(),
            })
        };
        lengths.into_iter().map(listing).collect()
    }
}

impl Location {
    /// They name a country by its flag (`/img/flags/jp.png`) and in words.
    fn country(&self, countries: &[String]) -> Option<String> {
        let file = self.location_logo.0.rsplit('/').next().unwrap_or_default();
        let flag = file.split('.').next().unwrap_or_default().to_ascii_uppercase();
        if country::exists(&flag) {
            return Some(flag);
        }
        let name = self.location_name.0.trim();
        let is_called = |country: &&country::Country| {
            country.name.eq_ignore_ascii_case(name)
                || country.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
        };
        match (country::ALL.iter().find(is_called), countries) {
            (Some(found), _) => Some(found.code.to_string()),
            (None, [only]) => Some(only.clone()),
            (None, _) => None,
        }
    }
}

impl Operator {
    fn carrier(&self, country: &str) -> Carrier {
        let technologies = self.network_type.0.split(['/', ',']).map(|word| visible(word, 20));
        Carrier {
            country: country.to_string(),
            operator: visible(&self.operator_name.0, NAME),
            technologies: technologies.filter(|word| !word.is_empty()).collect(),
        }
    }
}

/// The networks by name while they are few.
fn operators(networks: &[Carrier]) -> String {
    let names: BTreeSet<&str> = networks.iter().map(|carrier| carrier.operator.as_str()).collect();
    match names.len() {
        0 => String::new(),
        few if few <= FEW_NETWORKS => names.into_iter().collect::<Vec<_>>().join(", "),
        many => format!("{many} networks"),
    }
}

/// `UK/NO` or `HK`, as ISO codes.
fn exits(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_uppercase);
    let iso = words.map(|word| if word == "UK" { "GB".to_string() } else { word });
    let mut known: Vec<String> = Vec::new();
    for code in iso.filter(|code| country::exists(code)) {
        if !known.contains(&code) {
            known.push(code);
        }
    }
    Some(known.join(",")).filter(|codes| !codes.is_empty())
}

fn size(megabytes: i64) -> String {
    match megabytes % 1024 {
        0 => format!("{} GB", megabytes / 1024),
        _ => format!("{megabytes} MB"),
    }
}

/// The families of base packages that can be topped up, each with a package that stands for it.
pub fn families(bases: &[Package]) -> BTreeMap<String, String> {
    let can = bases.iter().filter(|package| package.support_top_up_type.0 != "1");
    can.map(|package| (package.family(&package.countries()), package.package_code.0.clone())).collect()
}

/// Everything that is sold. A base package that takes no top-up has a family of its own, so that none is offered for it.
pub fn listings(
    supplier: &'static str,
    bases: &[Package],
    top_ups: &[Package],
    currency: Fiat,
) -> Vec<Listing> {
    let by_code: BTreeMap<&str, &Package> =
        bases.iter().map(|package| (package.package_code.0.as_str(), package)).collect();
    let mut found: BTreeMap<String, Listing> = BTreeMap::new();
    let mut unclear: BTreeSet<String> = BTreeSet::new();
    let mut add = |package: &Package, plan_type: PlanType, family: String| match package
        .listings(plan_type, &family, currency)
    {
        Ok(plans) => plans.into_iter().for_each(|plan| {
            if let Some(first) = found.insert(plan.code.clone(), plan.clone())
                && first != plan
            {
                tracing::warn!(
                    supplier,
                    code = plan.code,
                    "a package is listed twice, and differently: it is left out"
                );
                unclear.insert(plan.code);
            }
        }),
        Err(why) => {
            let code = visible(&package.package_code.0, NAME);
            tracing::warn!(supplier, code, why, "a package cannot be sold");
        }
    };
    for package in bases {
        let family = package.family(&package.countries());
        let fixed = package.support_top_up_type.0 == "1";
        add(package, PlanType::Base, if fixed { format!("{family}/fixed") } else { family });
    }
    for package in top_ups {
        // A top-up often has no slug, but the package that it repeats has one.
        let repeated = package.package_code.0.strip_prefix(TOP_UP).and_then(|code| by_code.get(code));
        let countries = package.countries();
        let own = package.family(&countries);
        let same = repeated
            .filter(|base| base.countries() == countries && base.is_by_the_day() == package.is_by_the_day());
        add(package, PlanType::Topup, same.map_or(own, |base| base.family(&countries)));
    }
    found.into_values().filter(|plan| !unclear.contains(&plan.code)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn package(changes: Value) -> Package {
        let mut fields = json!({
            "packageCode": "JC172", "slug": "JP_1_7", "name": "Japan 1GB 7Days", "price": 15_000, "retailPrice": 30_000,
            "currencyCode": "USD", "volume": 1_073_741_824, "dataType": 1, "unusedValidTime": 180, "duration": 7,
            "durationUnit": "DAY", "location": "JP", "activeType": 2, "speed": "3G/4G", "ipExport": "HK",
            "supportTopUpType": 2, "fupPolicy": "", "locationNetworkList": [{
                "locationName": "Japan", "locationLogo": "/img/flags/jp.png",
                "operatorList": [{"operatorName": "IIJ", "networkType": "4G"}, {"operatorName": "KDDI", "networkType": "4G/5G"}],
            }],
        });
        let object = fields.as_object_mut().unwrap();
        object.extend(changes.as_object().unwrap().clone());
        serde_json::from_str(&fields.to_string()).unwrap()
    }

    fn sold(bases: &[Package], top_ups: &[Package]) -> Vec<Listing> {
        listings("test", bases, top_ups, Fiat::USD)
    }

    #[test]
    fn a_package_becomes_a_plan() {
        let plan = sold(&[package(json!({}))], &[]).remove(0);
        assert_eq!(
            (plan.code.as_str(), plan.family.as_str(), plan.countries[0].as_str()),
            ("JC172", "JP", "JP")
        );
        assert_eq!((plan.data_mb, plan.duration_days, plan.cost.micros), (Some(1024), 7, 1_500_000));
        assert_eq!(plan.retail_hint.unwrap().micros, 3_000_000);
        assert_eq!(plan.operator, "IIJ, KDDI");
        assert_eq!(plan.details.kind, Some(VolumeKind::Fixed));
        assert_eq!(plan.details.networks[1].technologies, ["4G", "5G"]);
        assert_eq!(plan.details.exit_country.as_deref(), Some("HK"));
        assert_eq!((plan.details.top_up, plan.details.hotspot), (Some(true), None));
        assert_eq!(plan.details.activation_policy.as_deref(), Some("when it first connects to a network"));
    }

    #[test]
    fn a_plan_by_the_day_is_sold_for_several() {
        let daily =
            package(json!({"dataType": 2, "duration": 1, "fupPolicy": "384 kbps", "supportTopUpType": 3}));
        let plans = sold(&[daily], &[]);
        assert_eq!(plans.len(), DAYS.len());
        let week = plans.iter().find(|plan| plan.code == "JC172:7").unwrap();
        assert_eq!((week.data_mb, week.duration_days, week.cost.micros), (Some(7 * 1024), 7, 10_500_000));
        assert_eq!(week.retail_hint.unwrap().micros, 21_000_000);
        assert_eq!(week.name, "Japan 1GB 7Days, 7 days");
        assert_eq!(week.details.fair_use.as_deref(), Some("1 GB a day, then 384 kbps"));
        assert_eq!((split(&week.code), split("JC172")), (("JC172", Some(7)), ("JC172", None)));
        let cut = sold(&[package(json!({"dataType": 3, "duration": 1, "volume": 524_288_000}))], &[]);
        assert_eq!(cut[0].details.fair_use.as_deref(), Some("500 MB a day, then nothing until the next day"));
        let endless = sold(&[package(json!({"dataType": 4, "duration": 1, "volume": 0}))], &[]);
        assert_eq!((endless[0].data_mb, endless[0].details.kind), (None, Some(VolumeKind::Unlimited)));
        assert_eq!(endless[0].details.fair_use, None);
    }

    #[test]
    fn top_ups_join_the_plans_that_they_fit() {
        let other = json!({"packageCode": "JC200", "slug": "JP-2_1_7"});
        let none = json!({"packageCode": "JC300", "supportTopUpType": 1});
        let daily = json!({"packageCode": "JC400", "dataType": 2, "duration": 1});
        let bases = [package(json!({})), package(other), package(none), package(daily)];
        let top_up = package(json!({"packageCode": "TOPUP_JC172", "slug": ""}));
        let of_other = package(json!({"packageCode": "TOPUP_JC200", "slug": null}));
        let of_nobody = package(json!({"packageCode": "TOPUP_JC999", "slug": ""}));
        let plans = sold(&bases, &[top_up, of_other, of_nobody]);
        let family = |code: &str| plans.iter().find(|plan| plan.code == code).unwrap().family.clone();
        assert_eq!((family("TOPUP_JC172"), family("JC172")), ("JP".into(), "JP".into()));
        assert_eq!((family("TOPUP_JC200"), family("JC200")), ("JP-2".into(), "JP-2".into()));
        let unlike = [family("JC300"), family("JC400:1"), family("JC200")];
        assert!(!unlike.contains(&family("TOPUP_JC172")), "{unlike:?}");
        assert_eq!(families(&bases).len(), 3, "who takes no top-up is not asked for any");
        // Without slugs the countries are all there is to go by.
        let bare = package(json!({"packageCode": "B1", "slug": "", "location": "US,CA,us"}));
        let fits = package(json!({"packageCode": "TOPUP_B2", "slug": "", "location": "CA, US"}));
        let plans = sold(&[bare], &[fits]);
        assert_eq!((plans[0].family.as_str(), plans[1].family.as_str()), ("CA,US", "CA,US"));
    }

    #[test]
    fn what_cannot_be_sold_is_left_out() {
        for wrong in [
            json!({"price": 0}),
            json!({"price": -5}),
            json!({"price": "1.5"}),
            json!({"price": null}),
            json!({"currencyCode": "EUR"}),
            json!({"volume": 1000}),
            json!({"volume": "lots"}),
            json!({"duration": 0}),
            json!({"duration": 4000}),
            json!({"durationUnit": "MONTH"}),
            json!({"location": "ZZ,Q"}),
            json!({"location": ""}),
            json!({"dataType": 9}),
            json!({"packageCode": ""}),
            json!({"packageCode": "JC:7"}),
            json!({"packageCode": "JC 7"}),
        ] {
            assert_eq!(sold(&[package(wrong.clone())], &[]), [], "{wrong}");
        }
        let good = sold(&[package(json!({"price": 0})), package(json!({"packageCode": "OK"}))], &[]);
        assert_eq!(good.len(), 1, "one bad package does not hide the others");
    }

    #[test]
    fn networks_are_found_by_flag_or_name() {
        let located = |logo: &str, name: &str, location: &str| {
            let networks = json!([{"locationName": name, "locationLogo": logo, "operatorList": [{"operatorName": "A", "networkType": "5G"}]}]);
            let plan = sold(&[package(json!({"location": location, "locationNetworkList": networks}))], &[])
                .remove(0);
            plan.details.networks.first().map(|carrier| carrier.country.clone())
        };
        assert_eq!(located("/img/flags/us.png", "", "US,CA").as_deref(), Some("US"));
        assert_eq!(located("", "canada", "US,CA").as_deref(), Some("CA"));
        assert_eq!(located("", "Nowhere", "JP").as_deref(), Some("JP"), "a plan of one country has no other");
        assert_eq!(located("", "Nowhere", "US,CA"), None);
        assert_eq!(exits("UK/NO"), Some("GB,NO".into()));
        assert_eq!((exits(""), exits("local breakout")), (None, None));
    }
}
