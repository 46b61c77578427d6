//! The catalog search that agents and tools use, at retail prices and without a login. `domain::search` decides what a
//! text means, `ops::search` which plans match it. Here the answer is put together from plans that were written once
//! for each snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use ring::digest::{Context, SHA256};
use serde::Serialize;
use utoipa::ToSchema;

use super::memory::{Kept, Memory};
use super::packed::Packed;
use crate::domain::country;
use crate::domain::plan::Plan;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::kit::details::{DetailsView, Length, Members};
use crate::http::kit::fields::Query;
use crate::http::kit::wire::{Money, PlanTypeWord, gigabytes};
use crate::ops::catalog::Snapshot;
use crate::ops::search::{Found, Index, Nothing};

pub const MOST_CHARS: usize = 200;
/// How many plans are shown unless more are asked for: models read all of an answer.
pub const SHOWN: usize = 10;
pub const MOST_SHOWN: usize = 200;
/// How many bytes are kept of matches, of compressed answers (by their uncompressed size) and of tools' results.
const FOUND_BYTES: usize = 2 * 1024 * 1024;
const PACKED_BYTES: usize = 4 * 1024 * 1024;
const LISTED_BYTES: usize = 4 * 1024 * 1024;
/// How an answer begins; its number of plans follows.
const HEAD: &str = "{\"success\":true,\"currency\":\"USD\",\"totalCount\":";
/// An odd number without a pattern: multiplying by it lets each plan's hash and place change all higher bits.
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// One snapshot of the catalog, ready to be searched, and what was asked of it before.
pub struct Products {
    index: Index,
    /// Every plan by its number.
    fragments: Vec<Fragment>,
    /// The countries of each coverage as members of a plan, written once: many plans share them.
    locations: Vec<Box<str>>,
    countries: usize,
    /// Which plans match, by the query string: reading a text and ranking plans takes longer than writing them out.
    found: Memory<Found>,
    /// Answers that were compressed, which takes far longer than both.
    packed: Memory<Packed>,
    /// Results of the tool that searches.
    pub listed: Memory<str>,
}

/// A plan as JSON, written once, without its countries, which are inserted at `cut`, and without its end. The hash is
/// that of the whole plan: the hash of an answer is made from those of its plans, without reading the answer again.
struct Fragment {
    json: Box<str>,
    cut: usize,
    /// Its last members, which many plans share.
    details: Arc<str>,
    hash: u64,
}

impl Kept for Found {
    fn bytes(&self) -> usize {
        size_of::<Found>() + size_of_val(self.first.as_slice())
    }
}

impl Kept for Packed {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Default for Products {
    fn default() -> Products {
        Products {
            index: Index::default(),
            fragments: Vec::new(),
            locations: Vec::new(),
            countries: 0,
            found: Memory::new(FOUND_BYTES),
            packed: Memory::new(PACKED_BYTES),
            listed: Memory::new(LISTED_BYTES),
        }
    }
}

impl Products {
    pub fn prepare(snapshot: Arc<Snapshot>) -> Result<Products> {
        let index = Index::prepare(snapshot);
        let locations = index.coverages().map(write_locations).collect::<Result<Vec<_>>>()?;
        let countries = index.coverages().flatten().collect::<HashSet<_>>().len();
        let coverages = (0..).map(|number| index.coverage_of(number));
        let mut details = Members::new(Length::Brief);
        let written = index
            .plans()
            .zip(coverages)
            .map(|(plan, at)| Fragment::write(plan, &locations[at], &mut details));
        let fragments = written.collect::<Result<_>>()?;
        Ok(Products { index, fragments, locations, countries, ..Products::default() })
    }

    /// What a query string asks for.
    pub fn search(&self, query: &str) -> Result<Arc<Found>, Refusal> {
        if let Some(found) = self.found.get(query) {
            return Ok(found);
        }
        let (text, limit) = read(query)?;
        let found = Arc::new(self.find(text.as_deref(), limit));
        self.found.put(query, found.clone());
        Ok(found)
    }

    /// The plans that a search found, in its order.
    pub fn plans<'a>(&'a self, found: &'a Found) -> impl Iterator<Item = &'a Plan> {
        found.first.iter().map(|number| self.index.plan(*number))
    }

    /// In how many countries something is sold.
    pub fn countries(&self) -> usize {
        self.countries
    }

    pub fn packed(&self, query: &str, found: &Found) -> Arc<Packed> {
        if let Some(answer) = self.packed.get(query) {
            return answer;
        }
        let answer = Arc::new(self.answer(found));
        self.packed.put(query, answer.clone());
        answer
    }

    pub fn answer(&self, found: &Found) -> Packed {
        if found.nothing.is_some() {
            return Packed::new(self.write(HEAD, found));
        }
        let hashes = found.first.iter().map(|number| u128::from(self.fragments[*number as usize].hash));
        let hash = hashes.fold(found.total as u128, |all, hash| (all ^ hash).wrapping_mul(SPREAD));
        Packed::with_hash(self.write(HEAD, found), &hash.to_be_bytes())
    }

    /// The same plans as a tool shows them: as many as fit into `most_bytes`, and at least one.
    pub fn list(&self, text: Option<&str>, limit: usize, most_bytes: usize) -> String {
        let mut found = self.find(text, limit);
        let lengths = found.first.iter().scan(0, |all, number| {
            *all += self.length(*number);
            Some(*all)
        });
        let fitting = lengths.take_while(|length| *length <= most_bytes).count();
        found.first.truncate(fitting.max(1));
        self.write("{\"totalCount\":", &found)
    }

    fn find(&self, text: Option<&str>, limit: usize) -> Found {
        match text {
            Some(text) => self.index.search(text, limit),
            None => self.index.featured(limit),
        }
    }

    /// A plan as it was written, and its countries.
    fn parts(&self, number: u32) -> (&Fragment, &str) {
        (&self.fragments[number as usize], &self.locations[self.index.coverage_of(number)])
    }

    /// How many bytes a plan takes in a list.
    fn length(&self, number: u32) -> usize {
        let (fragment, locations) = self.parts(number);
        fragment.json.len() + locations.len() + fragment.details.len() + 2
    }

    fn write(&self, head: &str, found: &Found) -> String {
        let length: usize = found.first.iter().map(|number| self.length(*number)).sum();
        let mut json = String::with_capacity(length + 100);
        json.push_str(head);
        json.push_str(&found.total.to_string());
        json.push_str(",\"plans\":[");
        for (place, number) in found.first.iter().enumerate() {
            if place > 0 {
                json.push(',');
            }
            let (fragment, locations) = self.parts(*number);
            let (before, behind) = fragment.json.split_at(fragment.cut);
            [before, locations, behind, &fragment.details, "}"].iter().for_each(|part| json.push_str(part));
        }
        json.push(']');
        if let Some(nothing) = &found.nothing {
            json.push_str(&in_words(nothing));
        }
        json.push('}');
        json
    }
}

/// Why a search found nothing, in a sentence or two.
pub fn reason(nothing: &Nothing) -> String {
    match nothing {
        Nothing::NoPlace { near } if near.is_empty() => {
            "No destination was recognised. Name a country, a region or a city, for example Japan or Europe."
                .to_string()
        }
        Nothing::NoPlace { near } => {
            format!("No destination was recognised. Did you mean {}?", listed(near, "or"))
        }
        Nothing::NotSold { places } if places.is_empty() => "Nothing is on sale for this destination.".into(),
        Nothing::NotSold { places } => format!("Nothing is on sale for {}.", listed(places, "and")),
        Nothing::TooDear { from } => {
            format!("Nothing is that cheap: the lowest price for this destination is {from} USD.")
        }
        Nothing::NothingOnSale => "Nothing is on sale at the moment.".into(),
    }
}

/// The members of an answer that say why it is empty.
fn in_words(nothing: &Nothing) -> String {
    let mut members = format!(",\"message\":{}", serde_json::Value::from(reason(nothing)));
    if let Nothing::NoPlace { near } = nothing {
        members.push_str(&format!(",\"didYouMean\":{}", serde_json::Value::from(near.clone())));
    }
    members
}

/// `A`, `A or B`, `A, B or C`.
fn listed(names: &[&str], last: &str) -> String {
    match names {
        [before @ .., one, other] => {
            let before: String = before.iter().map(|name| format!("{name}, ")).collect();
            format!("{before}{one} {last} {other}")
        }
        _ => names.concat(),
    }
}

/// The two members of a plan that say where it works.
fn write_locations(codes: &[String]) -> Result<Box<str>> {
    let text = |texts: &[String]| serde_json::to_string(texts).map_err(Error::fault);
    Ok(format!("\"locationCodes\":{},\"locationNames\":{}", text(codes)?, text(&names(codes))?).into())
}

fn names(codes: &[String]) -> Vec<String> {
    codes.iter().map(|code| country::name_of(code).to_string()).collect()
}

impl Fragment {
    fn write(plan: &Plan, locations: &str, details: &mut Members) -> Result<Fragment> {
        let view = ProductView {
            package_code: &plan.code,
            name: &plan.name,
            data_amount: gigabytes(plan.data_mb),
            data_unit: "GB",
            duration: plan.duration_days,
            duration_unit: "DAY",
            retail_price: Money(plan.retail),
            currency: "USD",
            location_codes: &plan.countries,
            location_names: names(&plan.countries),
            operator: &plan.operator,
            plan_type: PlanTypeWord(plan.plan_type),
            details: DetailsView::default(),
        };
        let mut json = serde_json::to_string(&view).map_err(Error::fault)?;
        json.pop();
        let details = details.of(plan)?;
        let mut whole = Context::new(&SHA256);
        [json.as_str(), &details].iter().for_each(|part| whole.update(part.as_bytes()));
        let hash = whole.finish().as_ref().iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte));
        // Quotes inside a text are escaped, so this can be nothing but the members themselves.
        let cut =
            json.find(locations).ok_or_else(|| Error::fault("a plan is written without its countries"))?;
        json.replace_range(cut..cut + locations.len(), "");
        Ok(Fragment { json: json.into_boxed_str(), cut, details, hash })
    }
}

/// A plan at its retail price.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Product)]
pub struct ProductView<'a> {
    #[schema(example = "JP-5GB-30D")]
    package_code: &'a str,
    #[schema(example = "Japan 5 GB 30 days")]
    name: &'a str,
    #[schema(example = 5.0, minimum = 0)]
    data_amount: f64,
    #[schema(example = "GB")]
    data_unit: &'static str,
    #[schema(example = 30, minimum = 1)]
    duration: i64,
    #[schema(example = "DAY")]
    duration_unit: &'static str,
    retail_price: Money,
    #[schema(example = "USD")]
    currency: &'static str,
    /// Countries covered, as ISO 3166 codes.
    #[schema(example = json!(["JP"]))]
    location_codes: &'a [String],
    /// The same countries by name, in the same order.
    #[schema(example = json!(["Japan"]))]
    location_names: Vec<String>,
    /// Carrier names.
    #[schema(example = "NTT Docomo / SoftBank")]
    operator: &'a str,
    plan_type: PlanTypeWord,
    #[serde(flatten)]
    #[schema(inline)]
    details: DetailsView,
}

/// Plans that answer a search.
// Written from prepared pieces; this type describes the result.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ProductList)]
pub struct ProductsView {
    #[schema(example = true)]
    success: bool,
    #[schema(example = "USD")]
    currency: &'static str,
    /// How many plans match, shown or not.
    #[schema(minimum = 0)]
    total_count: usize,
    /// Best first: plans for exactly that destination, then wider ones; among these the size and time that were asked for,
    /// then the cheaper gigabyte, or the lower price when the text asks for something cheap.
    plans: Vec<ProductView<'static>>,
    /// When nothing was found: why, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "No destination was recognised. Did you mean Japan?")]
    message: Option<String>,
    /// When no place was recognised: up to three places with a name that is near, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_items = 3, example = json!(["Japan"]))]
    did_you_mean: Option<Vec<String>>,
}

/// The text and how many plans to show.
fn read(query: &str) -> Result<(Option<String>, usize), Refusal> {
    let mut query = Query::parse(Some(query));
    let allowed = format_args!("must have at most {MOST_CHARS} characters");
    let text = query.take("country", allowed, |text| {
        (text.chars().count() <= MOST_CHARS).then(|| text.trim().to_string())
    });
    let limit = query.whole("limit", 1, MOST_SHOWN as i64).map_or(SHOWN, |limit| limit as usize);
    query.finish()?;
    // An empty field of a form is no question.
    Ok((text.filter(|text| !text.is_empty()), limit))
}
