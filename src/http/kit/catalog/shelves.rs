//! The catalog as partners see it. Each plan is written to JSON once per snapshot; the answer for a country is
//! put together and compressed when it is first asked for, and then served as it is. A search ANDs bit sets.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock};

use super::packed::Packed;
use crate::domain::plan::{Plan, PlanType};
use crate::error::{Error, Result};
use crate::http::kit::details::{Length, Members};
use crate::http::kit::orders::PlanView;
use crate::ops::catalog::Snapshot;

/// Words searched for lately; beyond this many the memory starts anew.
const WORDS_REMEMBERED: usize = 4096;

/// Everything prepared from one snapshot, by price list and plan type.
#[derive(Default)]
pub struct Shelves(HashMap<String, [Shelf; 2]>);

impl Shelves {
    pub fn prepare(snapshot: &Snapshot) -> Result<Shelves> {
        let (mut shelves, mut details) = (HashMap::new(), Members::new(Length::Whole));
        for (list, plans) in snapshot.lists() {
            let mut of = |plan_type| {
                let is_of_type = |plan: &&Arc<Plan>| plan.plan_type == plan_type;
                Shelf::prepare(plans.iter().filter(is_of_type), &mut details)
            };
            shelves.insert(list.to_string(), [of(PlanType::Base)?, of(PlanType::Topup)?]);
        }
        Ok(Shelves(shelves))
    }

    pub fn get(&self, list: &str, plan_type: PlanType) -> Option<&Shelf> {
        let [base, topup] = self.0.get(list)?;
        Some(match plan_type {
            PlanType::Base => base,
            PlanType::Topup => topup,
        })
    }
}

type Bits = Arc<[u64]>;

/// The plans of one price list and type, cheapest size first within each coverage.
#[derive(Default)]
pub struct Shelf {
    /// By their numbers, as `fragments` are.
    plans: Vec<Arc<Plan>>,
    /// Every amount of data in MB, and every number of days.
    pub sizes: BTreeSet<i64>,
    pub spans: BTreeSet<i64>,
    fragments: Vec<Fragment>,
    everything: OnceLock<Arc<Packed>>,
    countries: HashMap<String, CountryShelf>,
    /// Every word that occurs in a plan's name, code, operator or countries, and the plans it occurs in.
    words: Vec<(Box<str>, Box<[u32]>)>,
    remembered: Mutex<HashMap<String, Bits>>,
}

/// A plan as JSON, but for its end, which many plans share.
struct Fragment {
    json: Box<str>,
    /// Its last members.
    details: Arc<str>,
}

impl Fragment {
    fn write(plan: &Plan, details: &mut Members) -> Result<Fragment> {
        let mut json = serde_json::to_string(&PlanView::without_details(plan)).map_err(Error::fault)?;
        json.pop();
        Ok(Fragment { json: json.into_boxed_str(), details: details.of(plan)? })
    }

    fn length(&self) -> usize {
        self.json.len() + self.details.len() + 1
    }

    fn add_to(&self, json: &mut String) {
        let parts: [&str; 3] = [&self.json, &self.details, "}"];
        parts.iter().for_each(|part| json.push_str(part));
    }
}

#[derive(Default)]
struct CountryShelf {
    plans: Vec<u32>,
    answer: OnceLock<Arc<Packed>>,
}

/// What a caller asked for.
#[derive(Default)]
pub struct Wanted {
    pub country: Option<String>,
    pub query: Option<String>,
    /// Page and limit.
    pub page: Option<(i64, i64)>,
}

impl Shelf {
    fn prepare<'a>(plans: impl Iterator<Item = &'a Arc<Plan>>, details: &mut Members) -> Result<Shelf> {
        let mut sorted: Vec<&Arc<Plan>> = plans.collect();
        sorted.sort_by_key(|plan| plan.list_order());
        let mut shelf = Shelf::default();
        let mut words: HashMap<String, Vec<u32>> = HashMap::new();
        for (number, plan) in (0u32..).zip(sorted) {
            shelf.plans.push(plan.clone());
            shelf.sizes.insert(plan.data_mb);
            shelf.spans.insert(plan.duration_days);
            shelf.fragments.push(Fragment::write(plan, details)?);
            for code in &plan.countries {
                shelf.countries.entry(code.clone()).or_default().plans.push(number);
            }
            for word in words_of(plan) {
                let places = words.entry(word).or_default();
                if places.last() != Some(&number) {
                    places.push(number);
                }
            }
        }
        let packed = |(word, places): (String, Vec<u32>)| (word.into_boxed_str(), places.into_boxed_slice());
        shelf.words = words.into_iter().map(packed).collect();
        Ok(shelf)
    }

    /// Where something is sold, by the codes of countries.
    pub fn countries(&self) -> impl Iterator<Item = &str> {
        self.countries.keys().map(String::as_str)
    }

    /// All plans that fit, in the order in which plans are listed.
    pub fn find(&self, wanted: &Wanted) -> Vec<&Arc<Plan>> {
        self.search(wanted).into_iter().map(|number| &self.plans[number as usize]).collect()
    }

    pub fn answer(&self, wanted: &Wanted) -> Arc<Packed> {
        match (&wanted.country, &wanted.query, wanted.page) {
            (None, None, None) => self
                .everything
                .get_or_init(|| self.write(&(0..self.fragments.len() as u32).collect::<Vec<_>>(), None))
                .clone(),
            (Some(code), None, None) => match self.countries.get(code) {
                Some(shelf) => shelf.answer.get_or_init(|| self.write(&shelf.plans, None)).clone(),
                None => self.write(&[], None),
            },
            (_, _, page) => self.write(&self.search(wanted), page),
        }
    }

    fn search(&self, wanted: &Wanted) -> Vec<u32> {
        let matching = wanted.query.as_deref().map(|query| {
            let mut left = vec![u64::MAX; self.fragments.len().div_ceil(64)];
            for word in query.to_lowercase().split_whitespace() {
                let places = self.places_of(word);
                left.iter_mut().zip(places.iter()).for_each(|(left, places)| *left &= places);
            }
            left
        });
        let fits = |number: &u32| match &matching {
            Some(bits) => bits[*number as usize / 64] >> (number % 64) & 1 == 1,
            None => true,
        };
        match &wanted.country {
            Some(code) => {
                let plans = self.countries.get(code).map(|shelf| shelf.plans.as_slice()).unwrap_or_default();
                plans.iter().copied().filter(fits).collect()
            }
            None => (0..self.fragments.len() as u32).filter(fits).collect(),
        }
    }

    /// The plans in which this word, or a longer one that holds it, occurs.
    fn places_of(&self, word: &str) -> Bits {
        if let Some(bits) = self.remembered.lock().ok().and_then(|known| known.get(word).cloned()) {
            return bits;
        }
        let mut bits = vec![0u64; self.fragments.len().div_ceil(64)];
        for (_, places) in self.words.iter().filter(|(known, _)| known.contains(word)) {
            places.iter().for_each(|number| bits[*number as usize / 64] |= 1 << (number % 64));
        }
        let bits: Bits = bits.into();
        if let Ok(mut known) = self.remembered.lock() {
            if known.len() >= WORDS_REMEMBERED {
                known.clear();
            }
            known.insert(word.to_string(), bits.clone());
        }
        bits
    }

    fn write(&self, plans: &[u32], page: Option<(i64, i64)>) -> Arc<Packed> {
        let shown = match page {
            Some((page, limit)) => {
                let skipped = usize::try_from((page - 1).saturating_mul(limit)).unwrap_or(usize::MAX);
                let end = plans.len().min(skipped.saturating_add(limit as usize));
                plans.get(skipped..end).unwrap_or_default()
            }
            None => plans,
        };
        let length: usize = shown.iter().map(|number| self.fragments[*number as usize].length() + 1).sum();
        let mut json = String::with_capacity(length + 80);
        json.push_str("{\"success\":true,\"currency\":\"USD\",\"total\":");
        json.push_str(&plans.len().to_string());
        json.push_str(",\"plans\":[");
        for (place, number) in shown.iter().enumerate() {
            if place > 0 {
                json.push(',');
            }
            self.fragments[*number as usize].add_to(&mut json);
        }
        json.push_str("]}");
        Arc::new(Packed::new(json))
    }
}

/// Lower-case words, whole and split at punctuation, so that `jp-5gb-30d`, `5gb` and `d'ivoire` are all found.
fn words_of(plan: &Plan) -> Vec<String> {
    let mut words = Vec::new();
    for text in plan.searched_texts() {
        for word in text.to_lowercase().split_whitespace() {
            words.push(word.to_string());
            words.extend(
                word.split(|c: char| !c.is_alphanumeric())
                    .filter(|part| !part.is_empty())
                    .map(str::to_string),
            );
        }
    }
    words
}
