//! Which plans answer a search, and in which order: plans for exactly the places asked for, then regional ones, then
//! global ones, then those for a part. Among equals the nearest in size and time comes first, then the cheapest
//! gigabyte or, if the text asks for it, the lowest price. The same text always gives the same order.

use std::collections::BTreeSet;

use super::groups::CountrySet;
use super::places::Place;
use super::{Asked, UNLIMITED_MB};
use crate::domain::country::{self, Region};
use crate::domain::money::Usd;
use crate::domain::plan::Plan;

/// Where a plan works.
pub struct Coverage {
    set: CountrySet,
    /// The number of all its countries, including those that we have no name for.
    size: usize,
    is_global: bool,
}

impl Coverage {
    pub fn of(codes: &[String]) -> Coverage {
        let regions = codes.iter().filter_map(|code| country::by_code(code)).map(|country| country.region);
        let continents: BTreeSet<&str> = regions.map(Region::continent).collect();
        let set = CountrySet::of(codes.iter().map(String::as_str));
        Coverage { set, size: codes.len(), is_global: continents.len() >= country::GLOBAL_CONTINENTS }
    }
}

/// How well a coverage answers the places asked for; best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    Exact,
    Regional,
    Global,
    /// Misses this many of the places, and works nowhere else.
    Part(usize),
    /// One country of a region. Offered when nothing better is sold.
    Member,
}

/// The places of a search, ready to be compared with coverages.
pub struct Wanted {
    /// Each place, and how many countries it has.
    sets: Vec<(CountrySet, usize)>,
    all: CountrySet,
    /// Whether a region was asked for. Plans rarely cover a region exactly as we list it; a country is covered or not.
    has_groups: bool,
    is_world: bool,
}

impl Wanted {
    pub fn new(places: &[Place]) -> Wanted {
        let counted = |place: &Place| {
            let set = place.countries();
            (set, set.count())
        };
        let sets: Vec<(CountrySet, usize)> = places.iter().map(counted).collect();
        Wanted {
            all: sets.iter().fold(CountrySet::default(), |all, (set, _)| all.union(set)),
            sets,
            has_groups: places.iter().any(|place| matches!(place, Place::Group(_))),
            is_world: places == [Place::World],
        }
    }

    pub fn fit(&self, coverage: &Coverage) -> Option<Fit> {
        if self.is_world {
            return coverage.is_global.then_some(Fit::Exact);
        }
        // Nearly all coverages end here; counting countries takes longer.
        if !coverage.set.meets(&self.all) {
            return None;
        }
        // Half of a region will do; half of a country does not exist.
        let covers =
            |(set, count): &&(CountrySet, usize)| *count > 0 && coverage.set.shared(set) * 2 >= *count;
        let covered = self.sets.iter().filter(covers).count();
        if covered == self.sets.len() {
            return Some(match (self.is_exact(coverage), coverage.is_global) {
                (true, _) => Fit::Exact,
                (false, false) => Fit::Regional,
                (false, true) => Fit::Global,
            });
        }
        let is_inside = coverage.size > 0 && self.all.shared(&coverage.set) * 10 >= coverage.size * 9;
        match (is_inside, covered) {
            (false, _) => None,
            (true, 0) if coverage.size == 1 => Some(Fit::Member),
            (true, covered) => Some(Fit::Part(self.sets.len() - covered)),
        }
    }

    fn is_exact(&self, coverage: &Coverage) -> bool {
        if !self.has_groups {
            return coverage.set == self.all && coverage.size == self.all.count();
        }
        let shared = coverage.set.shared(&self.all);
        // Most of the region, and little else.
        shared * 10 >= self.all.count() * 6 && (coverage.size - shared) * 3 <= self.all.count()
    }
}

/// A plan's place among those that fit equally well and are equally near, for any search: by the price of a gigabyte,
/// the price, and its code, so that no two are equal.
pub fn cheapness(plan: &Plan) -> (i64, Usd, &str) {
    let gigabyte_price = plan.retail.micros().saturating_mul(1024) / plan.data_mb.max(1);
    (gigabyte_price, plan.retail, &plan.code)
}

/// How far a plan is from the size and time asked for: too little comes last; then the distance in thousandths.
pub fn nearness(asked: &Asked, data_mb: i64, days: i64) -> (bool, i64) {
    let (mut is_short, mut distance) = (false, 0i64);
    for (wanted, offered) in [(asked.data_mb.map(|mb| mb.min(UNLIMITED_MB)), data_mb), (asked.days, days)] {
        let Some(wanted) = wanted else { continue };
        // People say 500 MB for half a gigabyte, which is 512; a month may be 28 days.
        is_short |= offered < wanted - wanted / 14;
        let off = offered.abs_diff(wanted).min(1 << 40) as i64 * 1000 / wanted.max(1);
        distance = distance.saturating_add(off);
    }
    (is_short, distance)
}

#[cfg(test)]
mod tests {
    use super::super::groups;
    use super::*;
    use crate::domain::plan::PlanType;

    fn coverage(codes: &str) -> Coverage {
        Coverage::of(&codes.split(' ').map(str::to_string).collect::<Vec<_>>())
    }

    fn wanted(text: &str) -> Wanted {
        Wanted::new(&super::super::read(text).places)
    }

    const WORLD: &str = "AU BR CA CN DE FR JP KE KR US ZA";

    #[test]
    fn coverages_fit_in_this_order() {
        for (text, codes, fit) in [
            ("japan", "JP", Some(Fit::Exact)),
            ("japan", "JP KR", Some(Fit::Regional)),
            ("japan", WORLD, Some(Fit::Global)),
            ("japan", "KR", None),
            ("japan and korea", "JP KR", Some(Fit::Exact)),
            ("japan and korea", "CN JP KR", Some(Fit::Regional)),
            ("japan and korea", WORLD, Some(Fit::Global)),
            ("japan and korea", "KR", Some(Fit::Part(1))),
            ("japan and korea", "CN JP", None),
            ("japan, korea and china", "JP KR", Some(Fit::Part(1))),
            ("japan, korea and china", "JP", Some(Fit::Part(2))),
            ("japan and north korea", "JP", Some(Fit::Part(1))),
            ("north korea", "KR", None),
            ("benelux", "BE LU NL", Some(Fit::Exact)),
            ("benelux", "BE DE FR LU NL", Some(Fit::Regional)),
            ("benelux", "BE", Some(Fit::Member)),
            ("eu", "BE LU NL", Some(Fit::Part(1))),
            ("eu", "JP", None),
            ("worldwide", WORLD, Some(Fit::Exact)),
            ("worldwide", "DE FR", None),
            ("japan", "ZZ", None),
            ("japan", "JP ZZ", Some(Fit::Regional)),
        ] {
            assert_eq!(wanted(text).fit(&coverage(codes)), fit, "{text} by {codes}");
        }
    }

    #[test]
    fn a_group_is_exactly_itself() {
        for group in groups::ALL {
            let codes: Vec<String> = country::ALL.iter().map(|country| country.code.to_string()).collect();
            let inside = |code: &String| group.countries().shared(&CountrySet::of([code.as_str()])) == 1;
            let codes: Vec<String> = codes.into_iter().filter(inside).collect();
            let wanted = Wanted::new(&[Place::Group(group)]);
            assert_eq!(wanted.fit(&Coverage::of(&codes)), Some(Fit::Exact), "{}", group.name);
        }
    }

    fn plan(gb: i64, days: i64, cents: i64) -> Plan {
        Plan {
            code: format!("{gb}-{days}-{cents}"),
            name: String::new(),
            plan_type: PlanType::Base,
            family: String::new(),
            countries: Vec::new(),
            data_mb: gb * 1024,
            duration_days: days,
            operator: String::new(),
            details: Default::default(),
            cost: Usd::ZERO,
            billed: None,
            wholesale: Usd::ZERO,
            retail: Usd::from_micros(cents * 10_000),
        }
    }

    #[test]
    fn the_nearest_that_is_enough_comes_first() {
        for (text, best) in [
            ("spain", "50-30-2500"),
            ("spain 10gb", "10-30-900"),
            ("spain 6 gb", "10-30-900"),
            ("spain 5gb 30 days", "5-30-700"),
            ("spain 5gb 2 weeks", "5-30-700"),
            ("spain 5gb 7 days", "5-7-600"),
            ("spain 1 week", "5-7-600"),
            ("spain unlimited", "50-30-2500"),
            ("spain 90 days", "10-30-900"),
            ("spain 100 gb", "50-30-2500"),
        ] {
            let asked = super::super::read(text);
            let mut plans = vec![plan(5, 7, 600), plan(50, 30, 2500), plan(5, 30, 700), plan(10, 30, 900)];
            if text.contains("90") {
                plans.remove(1);
            }
            let rank = |plan: &Plan| (nearness(&asked, plan.data_mb, plan.duration_days), cheapness(plan).0);
            plans.sort_by_key(rank);
            assert_eq!(plans[0].code, best, "{text}");
        }
    }
}
