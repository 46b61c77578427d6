//! Searches what is on sale at retail prices. An index is made once for each snapshot of the catalog: plans are
//! numbered from the cheapest gigabyte on, so that among equals a plan's number is its rank. A search rates the
//! coverages and the sizes, which are few, and sorts only what is shown.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::domain::money::Usd;
use crate::domain::plan::{Plan, PlanType};
use crate::domain::search::{self, Asked, Coverage, Fit, Place, Wanted};
use crate::ops::catalog::Snapshot;

/// The sizes shown for every popular destination: megabytes and days.
const FEATURED_SIZES: [(i64, i64); 3] = [(5 * 1024, 30), (1024, 7), (10 * 1024, 30)];

/// A plan's number in the index.
pub type Number = u32;

/// The first plans that answer a search, and how many do.
#[derive(Default)]
pub struct Found {
    pub total: usize,
    pub first: Vec<Number>,
    /// Why there are none.
    pub nothing: Option<Nothing>,
}

/// Why a search found nothing.
#[derive(Debug, PartialEq, Eq)]
pub enum Nothing {
    /// No place was read in the text; these names are near.
    NoPlace { near: Vec<&'static str> },
    /// Nothing is sold for these places.
    NotSold { places: Vec<&'static str> },
    /// Everything that fits costs more than was asked for, from this price on.
    TooDear { from: Usd },
    /// The catalog is empty.
    NothingOnSale,
}

#[derive(Default)]
pub struct Index {
    snapshot: Arc<Snapshot>,
    /// Base plans by their number.
    plans: Vec<Entry>,
    coverages: Vec<Covered>,
    /// Every size that is sold: megabytes and days.
    sizes: Vec<(i64, i64)>,
    /// All numbers again, by price.
    by_price: Vec<Number>,
    featured: Vec<Number>,
}

struct Entry {
    /// Its position on the price list.
    place: u32,
    coverage: u32,
}

struct Covered {
    coverage: Coverage,
    /// By their numbers.
    offers: Vec<RankedPlan>,
}

/// The parts of a plan that decide its rank, close together in memory: a search looks at hundreds.
struct RankedPlan {
    number: Number,
    /// Its place in `by_price`.
    price_rank: u32,
    size: u32,
    retail: Usd,
}

impl Index {
    pub fn prepare(snapshot: Arc<Snapshot>) -> Index {
        let mut index = Index { snapshot: snapshot.clone(), ..Index::default() };
        let mut base: Vec<(u32, &Arc<Plan>)> = (0u32..).zip(list(&snapshot)).collect();
        base.retain(|(_, plan)| plan.plan_type == PlanType::Base);
        base.sort_by_key(|(_, plan)| search::cheapness(plan));
        let (mut coverages, mut sizes) = (HashMap::new(), HashMap::new());
        for (number, (place, plan)) in (0u32..).zip(base) {
            let coverage = *coverages.entry(plan.countries.as_slice()).or_insert_with(|| {
                index.coverages.push(Covered { coverage: Coverage::of(&plan.countries), offers: Vec::new() });
                index.coverages.len() - 1
            });
            let size = *sizes.entry((plan.data_mb, plan.duration_days)).or_insert_with_key(|size| {
                index.sizes.push(*size);
                index.sizes.len() - 1
            });
            let offer = RankedPlan { number, price_rank: 0, size: size as u32, retail: plan.retail };
            index.coverages[coverage].offers.push(offer);
            index.plans.push(Entry { place, coverage: coverage as u32 });
        }
        index.rank_prices();
        index.featured = index.choose_featured();
        index
    }

    fn rank_prices(&mut self) {
        let mut offers: Vec<&mut RankedPlan> =
            self.coverages.iter_mut().flat_map(|covered| &mut covered.offers).collect();
        offers.sort_unstable_by_key(|offer| (offer.retail, offer.number));
        for (rank, offer) in (0u32..).zip(offers) {
            offer.price_rank = rank;
            self.by_price.push(offer.number);
        }
    }

    /// Every plan, by its number.
    pub fn plans(&self) -> impl Iterator<Item = &Plan> {
        (0..self.plans.len() as Number).map(|number| self.plan(number))
    }

    pub fn plan(&self, number: Number) -> &Plan {
        &list(&self.snapshot)[self.plans[number as usize].place as usize]
    }

    /// The countries of every coverage, by its number.
    pub fn coverages(&self) -> impl Iterator<Item = &[String]> {
        self.coverages.iter().map(|covered| self.plan(covered.offers[0].number).countries.as_slice())
    }

    pub fn coverage_of(&self, number: Number) -> usize {
        self.plans[number as usize].coverage as usize
    }

    pub fn featured(&self, limit: usize) -> Found {
        let first = self.featured.iter().copied().take(limit).collect();
        let nothing = self.featured.is_empty().then_some(Nothing::NothingOnSale);
        Found { total: self.featured.len(), first, nothing }
    }

    /// The best `limit` plans for a text, or why there are none.
    pub fn search(&self, text: &str, limit: usize) -> Found {
        let asked = search::read(text);
        let found = self.find(&asked, limit);
        if found.total > 0 { found } else { Found { nothing: Some(self.missing(text, &asked)), ..found } }
    }

    /// Why nothing answers this text. It may take its time: few texts find nothing.
    fn missing(&self, text: &str, asked: &Asked) -> Nothing {
        if asked.places.is_empty() {
            return Nothing::NoPlace { near: search::near(text) };
        }
        let at_any_price = Asked { most: None, ..asked.clone() };
        let fitting = self.by_fit(&at_any_price);
        let prices = fitting.values().flat_map(|coverages| affordable(&at_any_price, coverages));
        match prices.map(|offer| offer.retail).min() {
            Some(from) => Nothing::TooDear { from },
            None => {
                let named = asked.places.iter().filter(|place| **place != Place::Unsold);
                Nothing::NotSold { places: named.map(Place::name).collect() }
            }
        }
    }

    /// The best `limit` plans for the request.
    fn find(&self, asked: &Asked, limit: usize) -> Found {
        let mut found = Found::default();
        if asked.places.is_empty() {
            return found;
        }
        let nearness = self.nearness(asked);
        for (fit, coverages) in self.by_fit(asked) {
            if fit == Fit::Member && found.total > 0 {
                break;
            }
            let missing = limit - found.first.len();
            if missing == 0 {
                found.total += affordable(asked, &coverages).count();
                continue;
            }
            let mut ranked = rank(asked, &nearness, &coverages);
            found.total += ranked.len();
            if missing < ranked.len() {
                ranked.select_nth_unstable(missing - 1);
                ranked.truncate(missing);
            }
            ranked.sort_unstable();
            found.first.extend(ranked.into_iter().map(|rank| self.number_of(asked, rank)));
        }
        found
    }

    /// The rank of each size by how near it is to the request. Sizes that are equally near share a rank.
    fn nearness(&self, asked: &Asked) -> Vec<u32> {
        if asked.data_mb.is_none() && asked.days.is_none() {
            return vec![0; self.sizes.len()];
        }
        let near: Vec<_> =
            self.sizes.iter().map(|&(data_mb, days)| search::nearness(asked, data_mb, days)).collect();
        let mut order = near.clone();
        order.sort_unstable();
        near.iter().map(|one| order.partition_point(|other| other < one) as u32).collect()
    }

    /// The coverages that fit, best first.
    fn by_fit(&self, asked: &Asked) -> BTreeMap<Fit, Vec<&Covered>> {
        let wanted = Wanted::new(&asked.places);
        let mut fits: BTreeMap<Fit, Vec<&Covered>> = BTreeMap::new();
        for covered in &self.coverages {
            if let Some(fit) = wanted.fit(&covered.coverage) {
                fits.entry(fit).or_default().push(covered);
            }
        }
        fits
    }

    /// The plan with this rank.
    fn number_of(&self, asked: &Asked, rank: u64) -> Number {
        let place = rank as u32;
        if asked.cheapest { self.by_price[place as usize] } else { place }
    }

    /// A plan of each usual size for every popular destination: all destinations in one size, then in the next.
    fn choose_featured(&self) -> Vec<Number> {
        let mut chosen = Vec::new();
        let mut known = HashSet::new();
        for (data_mb, days) in FEATURED_SIZES {
            for destination in search::POPULAR {
                let asked = Asked { data_mb: Some(data_mb), days: Some(days), ..search::read(destination) };
                let best = self.by_fit(&asked).remove(&Fit::Exact).unwrap_or_default();
                let best = rank(&asked, &self.nearness(&asked), &best).into_iter().min();
                chosen.extend(best.map(|rank| self.number_of(&asked, rank)));
            }
        }
        chosen.retain(|number| known.insert(*number));
        chosen
    }
}

/// The plans of these coverages that are cheap enough.
fn affordable<'a>(asked: &Asked, coverages: &'a [&Covered]) -> impl Iterator<Item = &'a RankedPlan> {
    let most = asked.most;
    let offers = coverages.iter().flat_map(|covered| &covered.offers);
    offers.filter(move |offer| most.is_none_or(|most| offer.retail <= most))
}

/// Their ranks, each as one number that sorts fast: the nearness of the size, then the plan's number or price rank.
fn rank(asked: &Asked, nearness: &[u32], coverages: &[&Covered]) -> Vec<u64> {
    let place = |offer: &RankedPlan| if asked.cheapest { offer.price_rank } else { offer.number };
    let rank = |offer: &RankedPlan| u64::from(nearness[offer.size as usize]) << 32 | u64::from(place(offer));
    affordable(asked, coverages).map(rank).collect()
}

/// Everything on sale to users.
fn list(snapshot: &Snapshot) -> &[Arc<Plan>] {
    snapshot.retail()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::plan::RETAIL_PRICE_LIST;

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
            details: Default::default(),
            cost: Usd::ZERO,
            billed: None,
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
        let plans = plans.into_iter().map(Arc::new).collect();
        Index::prepare(Arc::new(Snapshot::new(HashMap::from([(RETAIL_PRICE_LIST.to_string(), plans)]))))
    }

    fn codes(index: &Index, found: &Found) -> String {
        let plans: Vec<&Plan> = index.plans().collect();
        let codes: Vec<&str> =
            found.first.iter().map(|number| plans[*number as usize].code.as_str()).collect();
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
            ("cheapest japan", 50, "6: JP-1 JP-5 JPKR-5 ASIA-5 ASIA-50 WORLD-5"),
            ("cheap japan 5gb", 3, "6: JP-5 JP-1 JPKR-5"),
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
    fn what_is_not_found_has_a_reason() {
        let index = index();
        for (text, nothing) in [
            ("Jappaan", Nothing::NoPlace { near: vec!["Japan"] }),
            ("nowhere at all", Nothing::NoPlace { near: vec![] }),
            ("peru", Nothing::NotSold { places: vec!["Peru"] }),
            ("north korea", Nothing::NotSold { places: vec![] }),
            ("peru under $5", Nothing::NotSold { places: vec!["Peru"] }),
            ("japan under $1", Nothing::TooDear { from: Usd::dollars(2) }),
            ("japan and korea under $1", Nothing::TooDear { from: Usd::dollars(2) }),
        ] {
            let found = index.search(text, 10);
            assert_eq!((found.total, found.first.len(), found.nothing), (0, 0, Some(nothing)), "{text}");
        }
        assert_eq!(index.search("japan", 10).nothing, None);
        assert_eq!(index.featured(10).nothing, None);
    }

    #[test]
    fn an_empty_catalog_has_nothing() {
        let index = Index::prepare(Arc::new(Snapshot::default()));
        assert_eq!(index.find(&search::read("japan"), 50).total, 0);
        assert_eq!(index.featured(50).nothing, Some(Nothing::NothingOnSale));
        assert_eq!((index.featured(50).total, index.plans().count(), index.coverages().count()), (0, 0, 0));
    }

    #[test]
    fn popular_destinations_are_known() {
        for destination in search::POPULAR {
            let asked = search::read(destination);
            assert_eq!(asked.places.len(), 1, "{destination}");
        }
    }

    proptest! {
        /// A shorter answer is the beginning of a longer one, and never has more plans than match.
        #[test]
        fn a_shorter_answer_is_the_start_of_a_longer_one(
            text in "(japan|korea|asia|world|france|5gb|7 days|under \\$5|cheap|and| ){0,8}",
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
