//! Searching what is on sale at retail prices. An index is made once for each snapshot of the catalog and holds
//! positions in it, not copies; a search asks the coverages, of which there are few, and sorts only what is shown.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::domain::plan::{DEFAULT_PRICE_LIST, Plan, PlanType};
use crate::domain::search::{self, Asked, Coverage, Fit, Rank, Wanted};
use crate::ops::catalog::Snapshot;

/// The sizes that are shown of every popular destination: megabytes and days.
const FEATURED_SIZES: [(i64, i64); 3] = [(5 * 1024, 30), (1024, 7), (10 * 1024, 30)];

/// A plan that answers a search: its position on the list, and the number of its coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    plan: u32,
    pub coverage: u32,
}

/// The first plans that answer a search, and how many do.
#[derive(Default)]
pub struct Found {
    pub total: usize,
    pub first: Vec<Hit>,
}

#[derive(Default)]
pub struct Index {
    snapshot: Arc<Snapshot>,
    coverages: Vec<Covered>,
    /// Positions on the list, those of one coverage together.
    plans: Vec<u32>,
    featured: Vec<Hit>,
}

struct Covered {
    coverage: Coverage,
    plans: Range<usize>,
}

impl Index {
    pub fn prepare(snapshot: Arc<Snapshot>) -> Index {
        let mut index = Index { snapshot, ..Index::default() };
        let mut numbers: HashMap<&[String], usize> = HashMap::new();
        let mut grouped: Vec<Vec<u32>> = Vec::new();
        for (place, plan) in (0u32..).zip(index.list()) {
            if plan.plan_type == PlanType::Base {
                let number = *numbers.entry(&plan.countries).or_insert(grouped.len());
                if number == grouped.len() {
                    grouped.push(Vec::new());
                }
                grouped[number].push(place);
            }
        }
        let mut plans = Vec::with_capacity(grouped.iter().map(Vec::len).sum());
        let mut coverages = Vec::with_capacity(grouped.len());
        for group in &grouped {
            let countries = group.first().map_or(&[][..], |first| &index.list()[*first as usize].countries);
            let start = plans.len();
            plans.extend(group);
            coverages.push(Covered { coverage: Coverage::of(countries), plans: start..plans.len() });
        }
        (index.plans, index.coverages) = (plans, coverages);
        index.featured = index.choose_featured();
        index
    }

    fn list(&self) -> &[Plan] {
        self.snapshot.lists.get(DEFAULT_PRICE_LIST).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn plan(&self, hit: Hit) -> &Plan {
        &self.list()[hit.plan as usize]
    }

    /// The countries of every coverage, by its number.
    pub fn coverages(&self) -> impl Iterator<Item = &[String]> {
        let first = |covered: &Covered| self.plans[covered.plans.start] as usize;
        self.coverages.iter().map(move |covered| self.list()[first(covered)].countries.as_slice())
    }

    pub fn featured(&self, limit: usize) -> Found {
        Found { total: self.featured.len(), first: self.featured.iter().copied().take(limit).collect() }
    }

    /// The best `limit` plans for what was asked.
    pub fn find(&self, asked: &Asked, limit: usize) -> Found {
        let mut found = Found::default();
        if asked.places.is_empty() {
            return found;
        }
        for (fit, coverages) in self.by_fit(asked) {
            if fit == Fit::Member && found.total > 0 {
                break;
            }
            let mut ranked = self.rank(asked, &coverages);
            found.total += ranked.len();
            let missing = limit - found.first.len();
            if missing < ranked.len() && missing > 0 {
                ranked.select_nth_unstable(missing - 1);
            }
            ranked.truncate(missing);
            ranked.sort_unstable();
            found.first.extend(ranked.into_iter().map(|(_, plan, coverage)| Hit { plan, coverage }));
        }
        found
    }

    /// The coverages that answer at all, best first.
    fn by_fit(&self, asked: &Asked) -> BTreeMap<Fit, Vec<u32>> {
        let wanted = Wanted::new(&asked.places);
        let mut fits: BTreeMap<Fit, Vec<u32>> = BTreeMap::new();
        for (number, covered) in (0u32..).zip(&self.coverages) {
            if let Some(fit) = wanted.fit(&covered.coverage) {
                fits.entry(fit).or_default().push(number);
            }
        }
        fits
    }

    /// The plans of these coverages that are cheap enough, with their ranks.
    fn rank(&self, asked: &Asked, coverages: &[u32]) -> Vec<(Rank<'_>, u32, u32)> {
        let mut ranked = Vec::new();
        for &coverage in coverages {
            for &place in &self.plans[self.coverages[coverage as usize].plans.clone()] {
                let plan = &self.list()[place as usize];
                if asked.most.is_none_or(|most| plan.retail <= most) {
                    ranked.push((search::rank(asked, plan), place, coverage));
                }
            }
        }
        ranked
    }

    /// A plan of each usual size for every popular destination: first one size of all, then the next.
    fn choose_featured(&self) -> Vec<Hit> {
        let mut chosen = Vec::new();
        let mut known = HashSet::new();
        for (data_mb, days) in FEATURED_SIZES {
            for destination in search::POPULAR {
                let asked = Asked { data_mb: Some(data_mb), days: Some(days), ..search::read(destination) };
                let best = self.by_fit(&asked).remove(&Fit::Exact).unwrap_or_default();
                let best = self.rank(&asked, &best).into_iter().min();
                chosen.extend(best.map(|(_, plan, coverage)| Hit { plan, coverage }));
            }
        }
        chosen.retain(|hit| known.insert(hit.plan));
        chosen
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::money::Usd;

    fn plan(code: &str, countries: &str, gb: i64, days: i64, cents: i64) -> Plan {
        Plan {
            code: code.into(),
            name: code.into(),
            plan_type: if code.ends_with("TOPUP") { PlanType::Topup } else { PlanType::Base },
            family: code.into(),
            countries: countries.split(' ').map(str::to_string).collect(),
            data_mb: gb * 1024,
            duration_days: days,
            operator: "Any".into(),
            cost: Usd::ZERO,
            wholesale: Usd::ZERO,
            retail: Usd::from_micros(cents * 10_000),
        }
    }

    fn index() -> Index {
        let world = "AU BR CA CN DE FR JP KE KR US ZA";
        let plans = vec![
            plan("JP-5", "JP", 5, 30, 500),
            plan("JP-1", "JP", 1, 7, 200),
            plan("JP-TOPUP", "JP", 5, 30, 100),
            plan("KR-5", "KR", 5, 30, 600),
            plan("JPKR-5", "JP KR", 5, 30, 900),
            plan("ASIA-5", "CN JP KR", 5, 30, 1200),
            plan("ASIA-50", "CN JP KR", 50, 30, 2200),
            plan("WORLD-5", world, 5, 30, 400),
            plan("FR-5", "FR", 5, 30, 300),
        ];
        let lists = HashMap::from([(DEFAULT_PRICE_LIST.to_string(), plans)]);
        Index::prepare(Arc::new(Snapshot { lists }))
    }

    fn codes(index: &Index, found: &Found) -> String {
        let codes: Vec<&str> = found.first.iter().map(|hit| index.plan(*hit).code.as_str()).collect();
        format!("{}: {}", found.total, codes.join(" "))
    }

    #[test]
    fn the_best_plans_come_first() {
        let index = index();
        for (text, limit, expected) in [
            ("japan", 50, "6: JP-5 JP-1 ASIA-50 JPKR-5 ASIA-5 WORLD-5"),
            ("japan", 2, "6: JP-5 JP-1"),
            ("japan", 3, "6: JP-5 JP-1 ASIA-50"),
            ("japan 1gb 7 days", 2, "6: JP-1 JP-5"),
            ("japan under $5", 50, "2: JP-1 WORLD-5"),
            ("japan and korea", 50, "7: JPKR-5 ASIA-50 ASIA-5 WORLD-5 JP-5 KR-5 JP-1"),
            ("world", 50, "1: WORLD-5"),
            ("east asia", 50, "4: ASIA-50 ASIA-5 WORLD-5 JPKR-5"),
            ("benelux", 50, "0: "),
            ("western europe", 50, "1: FR-5"),
            ("peru", 50, "0: "),
            ("nowhere at all", 50, "0: "),
        ] {
            assert_eq!(codes(&index, &index.find(&search::read(text), limit)), expected, "{text}");
        }
        assert_eq!(codes(&index, &index.featured(50)), "5: JP-5 WORLD-5 FR-5 KR-5 JP-1");
        assert_eq!(index.featured(1).first.len(), 1);
    }

    #[test]
    fn an_empty_catalog_has_nothing() {
        let index = Index::prepare(Arc::new(Snapshot::default()));
        assert_eq!(index.find(&search::read("japan"), 50).total, 0);
        assert_eq!((index.featured(50).total, index.coverages().count()), (0, 0));
    }

    #[test]
    fn popular_destinations_are_known() {
        for destination in search::POPULAR {
            let asked = search::read(destination);
            assert_eq!(asked.places.len(), 1, "{destination}");
        }
    }

    proptest! {
        /// Fewer plans are the beginning of more plans, and never more than match.
        #[test]
        fn a_shorter_answer_is_the_start_of_a_longer_one(
            text in "(japan|korea|asia|world|france|5gb|7 days|under \\$5|and| ){0,8}",
            limit in 1usize..10,
        ) {
            let (index, asked) = (index(), search::read(&text));
            let (few, all) = (index.find(&asked, limit), index.find(&asked, 200));
            prop_assert_eq!(few.total, all.total);
            prop_assert_eq!(all.first.len(), all.total);
            prop_assert_eq!(&few.first[..], &all.first[..limit.min(all.total)]);
        }
    }
}
