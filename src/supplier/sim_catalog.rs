//! The catalog of the simulated supplier: country plans everywhere, regional and global plans, and the
//! top-ups that fit them. It is computed, not stored: the same on every machine and at every start, so that
//! a package code written down yesterday still names the same plan. Networks and price levels are in
//! `markets` and `zones`, the arithmetic of prices in `price`.

mod markets;
mod price;
mod zones;

use std::collections::HashSet;

use crate::domain::amount::Amount;
use crate::domain::country;
use crate::domain::plan::{Carrier, Details, Listing, PlanType, VolumeKind};

use markets::{MARKETS, Market, Range};
use zones::{ZONES, Zone};

/// Sizes in megabytes, and the days they are sold for.
type Ladder = &'static [(i64, &'static [i64])];

const WIDE: Ladder = &[
    (512, &[1, 3]),
    (1024, &[1, 3, 7, 30]),
    (2048, &[7, 15]),
    (3072, &[3, 15, 30]),
    (5120, &[7, 15, 30]),
    (10_240, &[15, 30, 90]),
    (20_480, &[30, 90]),
    (51_200, &[30, 90, 180]),
];
const USUAL: Ladder = &[
    (512, &[1]),
    (1024, &[3, 7, 30]),
    (2048, &[15]),
    (3072, &[15, 30]),
    (5120, &[15, 30]),
    (10_240, &[30, 90]),
    (20_480, &[30, 90]),
    (51_200, &[90]),
];
const NARROW: Ladder = &[
    (512, &[1]),
    (1024, &[7, 30]),
    (2048, &[15]),
    (3072, &[30]),
    (5120, &[30]),
    (10_240, &[30]),
    (20_480, &[90]),
];
const REGIONAL: Ladder = &[
    (1024, &[7, 30]),
    (2048, &[15]),
    (3072, &[30]),
    (5120, &[15, 30]),
    (10_240, &[30, 90]),
    (20_480, &[30, 90]),
    (51_200, &[90, 180]),
];
const TOPUPS: Ladder = &[(1024, &[7, 30]), (3072, &[30]), (5120, &[30]), (10_240, &[30]), (20_480, &[90])];

/// Plans with the same coverage; its top-ups fit its base plans.
struct Family {
    code: &'static str,
    name: &'static str,
    countries: Vec<String>,
    operators: &'static str,
    gigabyte_cents: i64,
    ladder: Ladder,
    details: Details,
}

/// The only market where users have to show who they are.
const IDENTIFIED: &str = "HK";
/// Wider plans do not name their networks.
const MOST_NAMED: usize = 5;

/// The whole catalog; with more of the same kind when a benchmark wants `at_least` this many plans.
pub fn plans(at_least: usize) -> Vec<Listing> {
    let families: Vec<Family> =
        MARKETS.iter().map(Family::of_market).chain(ZONES.iter().map(Family::of_zone)).collect();
    let mut plans = Vec::with_capacity(at_least);
    for family in &families {
        plans.extend(steps(family.ladder).map(|(mb, days)| family.base(mb, days)));
        plans.extend(steps(TOPUPS).map(|(mb, days)| family.topup(mb, days)));
    }
    widen(&mut plans, &families, at_least);
    plans
}

/// Adds every other size and duration, then the same again on one network only, until there are enough.
fn widen(plans: &mut Vec<Listing>, families: &[Family], at_least: usize) {
    let mut codes: HashSet<String> = plans.iter().map(|plan| plan.code.clone()).collect();
    for network in 0.. {
        for (mb, days) in all_steps() {
            for family in families {
                if plans.len() >= at_least {
                    return;
                }
                let plan = match network {
                    0 => family.base(mb, days),
                    _ => family.base_on(network, mb, days),
                };
                if codes.insert(plan.code.clone()) {
                    plans.push(plan);
                }
            }
        }
    }
}

fn steps(ladder: Ladder) -> impl Iterator<Item = (i64, i64)> {
    ladder.iter().flat_map(|&(mb, durations)| durations.iter().map(move |&days| (mb, days)))
}

/// Every size with every duration in which a traveller would use it up.
fn all_steps() -> impl Iterator<Item = (i64, i64)> {
    let sizes = price::SIZES.iter().map(|size| size.0);
    let pairs = sizes.flat_map(|mb| price::DURATIONS.iter().map(move |duration| (mb, duration.0)));
    pairs.filter(|&(mb, days)| (days <= 30 || mb >= 5120) && (days >= 5 || mb <= 10_240))
}

impl Family {
    fn of_market(market: &Market) -> Family {
        let country = country::by_code(market.code).expect("every market is a country");
        Family {
            code: country.code,
            name: country.name,
            countries: vec![country.code.to_owned()],
            operators: market.operators,
            gigabyte_cents: market.gigabyte_cents,
            details: Details {
                networks: carriers(market).collect(),
                speed: speed(market).map(str::to_owned),
                kyc_required: (market.code == IDENTIFIED).then_some(true),
                ..common()
            },
            ladder: match market.range {
                Range::Wide => WIDE,
                Range::Usual => USUAL,
                Range::Narrow => NARROW,
            },
        }
    }

    fn of_zone(zone: &Zone) -> Family {
        let countries = zone.countries();
        let named = MARKETS.iter().filter(|market| {
            countries.len() <= MOST_NAMED && countries.iter().any(|code| code == market.code)
        });
        Family {
            code: zone.code,
            name: zone.name,
            details: Details {
                networks: named.flat_map(carriers).collect(),
                exit_country: Some("NL".into()),
                ..common()
            },
            countries,
            operators: "Multiple networks",
            gigabyte_cents: zone.gigabyte_cents,
            ladder: REGIONAL,
        }
    }

    fn base(&self, data_mb: i64, days: i64) -> Listing {
        let (amount, unit) = amount(data_mb);
        Listing {
            code: format!("{}-{amount}{unit}-{days}D", self.code),
            name: format!("{} {amount} {unit} {days} {}", self.name, if days == 1 { "day" } else { "days" }),
            plan_type: PlanType::Base,
            family: self.code.to_owned(),
            countries: self.countries.clone(),
            data_mb: Some(data_mb),
            duration_days: days,
            operator: self.operators.to_owned(),
            cost: Amount::usd(price::of(self.gigabyte_cents, data_mb, days)),
            retail_hint: None,
            in_stock: true,
            details: self.details.clone(),
        }
    }

    fn topup(&self, data_mb: i64, days: i64) -> Listing {
        let base = self.base(data_mb, days);
        Listing {
            code: format!("{}-TOPUP", base.code),
            name: format!("{} top-up", base.name),
            plan_type: PlanType::Topup,
            details: Details { kind: base.details.kind, ..Details::default() },
            ..base
        }
    }

    /// A base plan tied to one of the family's networks, in turn.
    fn base_on(&self, network: usize, data_mb: i64, days: i64) -> Listing {
        let base = self.base(data_mb, days);
        let operators: Vec<&str> = self.operators.split(" / ").collect();
        let operator = operators[(network - 1) % operators.len()];
        let mut details = base.details;
        details.networks.retain(|carrier| carrier.operator == operator);
        Listing {
            code: format!("{}-N{network}", base.code),
            name: format!("{} {operator}", base.name),
            operator: operator.to_owned(),
            details,
            ..base
        }
    }
}

/// What is said of every base plan.
fn common() -> Details {
    Details {
        kind: Some(VolumeKind::Fixed),
        activation_policy: Some("Its days begin with its first use.".into()),
        hotspot: Some(true),
        top_up: Some(true),
        ..Details::default()
    }
}

/// Large markets have the fastest networks; of small ones nothing is said.
fn speed(market: &Market) -> Option<&'static str> {
    match market.range {
        Range::Wide => Some("4G/5G"),
        Range::Usual => Some("4G"),
        Range::Narrow => None,
    }
}

fn carriers(market: &Market) -> impl Iterator<Item = Carrier> {
    let technologies: Vec<String> = speed(market).unwrap_or("4G").split('/').map(str::to_owned).collect();
    market.operators.split(" / ").map(move |operator| Carrier {
        country: market.code.to_owned(),
        operator: operator.to_owned(),
        technologies: technologies.clone(),
    })
}

/// Half a gigabyte is 512 MB, but people read "500 MB".
fn amount(data_mb: i64) -> (i64, &'static str) {
    if data_mb % 1024 == 0 { (data_mb / 1024, "GB") } else { (data_mb * 1000 / 1024, "MB") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn base(plans: &[Listing]) -> impl Iterator<Item = &Listing> {
        plans.iter().filter(|plan| plan.plan_type == PlanType::Base)
    }

    fn codes(plans: &[Listing]) -> HashSet<&str> {
        plans.iter().map(|plan| plan.code.as_str()).collect()
    }

    #[test]
    fn markets_are_exactly_the_countries() {
        let markets: Vec<&str> = MARKETS.iter().map(|market| market.code).collect();
        let countries: Vec<&str> = country::ALL.iter().map(|country| country.code).collect();
        assert_eq!(markets, countries);
    }

    #[test]
    fn every_zone_covers_several_known_countries() {
        for zone in ZONES {
            let covered = zone.countries();
            assert!(covered.len() >= 2 && zone.code.len() > 2, "{}", zone.code);
            assert!(covered.iter().all(|code| country::by_code(code).is_some()), "{}", zone.code);
        }
        assert!(ZONES.iter().any(|zone| zone.countries().len() >= 180));
    }

    #[test]
    fn the_world_is_covered() {
        let plans = plans(0);
        let countries: BTreeSet<&str> = base(&plans)
            .filter(|plan| plan.countries.len() == 1)
            .map(|plan| plan.countries[0].as_str())
            .collect();
        assert!(countries.len() >= 190, "{}", countries.len());
        assert!((2_500..3_500).contains(&base(&plans).count()), "{}", base(&plans).count());
    }

    #[test]
    fn every_base_plan_can_be_topped_up() {
        let plans = plans(0);
        let fits: HashSet<(&str, &[String])> = plans
            .iter()
            .filter(|plan| plan.plan_type == PlanType::Topup)
            .map(|plan| (plan.family.as_str(), plan.countries.as_slice()))
            .collect();
        for plan in base(&plans) {
            assert!(fits.contains(&(plan.family.as_str(), plan.countries.as_slice())), "{}", plan.code);
            assert!(plan.countries.is_sorted());
        }
    }

    #[test]
    fn codes_are_unique_and_well_formed() {
        let plans = plans(20_000);
        assert_eq!(codes(&plans).len(), plans.len());
        for code in codes(&plans) {
            assert!(code.len() <= 40, "{code}");
            assert!(
                code.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-'),
                "{code}"
            );
        }
    }

    #[test]
    fn a_larger_catalog_keeps_the_natural_one() {
        let natural = plans(0);
        let large = plans(20_000);
        assert!(large.len() >= 20_000);
        assert_eq!(large[..natural.len()], natural[..]);
        // More than sizes and durations alone can make.
        let huge = plans(100_000);
        assert!(huge.len() >= 100_000);
        assert_eq!(codes(&huge).len(), huge.len());
        assert!(huge.iter().any(|plan| plan.code == "JP-5GB-30D-N1" && plan.operator == "NTT Docomo"));
    }

    #[test]
    fn the_catalog_is_the_same_every_time() {
        assert_eq!(plans(0), plans(0));
        assert_eq!(plans(20_000), plans(20_000));
    }

    #[test]
    fn the_sandbox_shows_details_of_every_kind() {
        let plans = plans(0);
        let details = |code: &str| &plans.iter().find(|plan| plan.code == code).unwrap().details;
        let (japan, both) = (details("JP-1GB-7D"), details("JAPAN-KOREA-1GB-7D"));
        assert_eq!((japan.speed.as_deref(), japan.networks[0].technologies.len()), (Some("4G/5G"), 2));
        assert!(both.networks.len() > japan.networks.len() && both.exit_country.is_some());
        assert!(details("GLOBAL-1GB-7D").networks.is_empty() && details("AD-1GB-7D").speed.is_none());
        assert_eq!((details("HK-1GB-7D").kyc_required, japan.kyc_required), (Some(true), None));
        for plan in plans {
            assert_eq!(plan.details.clone().cleaned(), plan.details, "{}", plan.code);
        }
    }

    #[test]
    fn a_plan_reads_well() {
        let plans = plans(0);
        for (code, name) in [
            ("JP-5GB-30D", "Japan 5 GB 30 days"),
            ("JP-500MB-1D", "Japan 500 MB 1 day"),
            ("JP-5GB-30D-TOPUP", "Japan 5 GB 30 days top-up"),
            ("EUROPE-10GB-30D", "Europe 10 GB 30 days"),
        ] {
            assert!(plans.iter().any(|plan| plan.code == code && plan.name == name), "{code}");
        }
    }
}
