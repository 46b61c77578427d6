//! What the partner can buy, at its own prices: searched and filtered, page by page, or as a file. The search is the API's;
//! here plans are sorted by the names that people read.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use futures_util::{StreamExt, stream};

use super::frame::{Frame, Section, Visit};
use crate::domain::country;
use crate::domain::plan::{Plan, PlanType, VolumeKind};
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::domain::search;
use crate::domain::text::visible;
use crate::http::kit::answers::Answer;
use crate::http::kit::catalog::shelves::{Shelf, Wanted};
use crate::http::kit::download;
use crate::http::kit::fields::Query;
use crate::http::kit::html::page;
use crate::http::kit::wire::gigabytes;
use crate::http::pages::moment::days;
use crate::http::pages::plan_details::{self, PlanCard, headline};
use crate::wire::csv;

const ROWS: usize = 50;
const WORDS_CHARS: usize = 128;
/// Far beyond what is sold, and small enough to count with.
const MOST: i64 = 1_000_000_000;
/// How many countries of a plan are named.
const NAMED: usize = 3;
/// How many lines of the file are written at once.
const AT_ONCE: usize = 500;
/// As the API calls them.
const COLUMNS: [&str; 8] = [
    "packageCode",
    "planType",
    "name",
    "locationCodes",
    "dataAmountGb",
    "durationDays",
    "priceUsd",
    "operator",
];

/// What is looked for, as the page's address says it.
struct Search {
    words: String,
    country: Option<String>,
    data_mb: Option<i64>,
    days: Option<i64>,
    plan_type: PlanType,
}

impl Search {
    /// With the number of the page.
    fn read(query: Query) -> Result<(Search, usize), Refusal> {
        let mut query = query.filled();
        let country = query.take("country", "must be the two-letter code of a country", |code| {
            search::country_code(code).ok()
        });
        let search = Search {
            words: visible(&query.typed("q"), WORDS_CHARS),
            country,
            data_mb: query.whole("data", 0, MOST),
            days: query.whole("days", 0, MOST),
            plan_type: query.take("type", "must be BASE or TOPUP", PlanType::parse).unwrap_or(PlanType::Base),
        };
        let number = query.whole("page", 1, MOST).unwrap_or(1);
        query.finish()?;
        Ok((search, usize::try_from(number).unwrap_or(1)))
    }

    /// By name, size and time.
    fn find<'a>(&self, shelf: &'a Shelf) -> Vec<&'a Arc<Plan>> {
        let words = Some(self.words.clone()).filter(|words| !words.is_empty());
        let mut found = shelf.find(&Wanted { country: self.country.clone(), query: words, page: None });
        found.retain(|plan| {
            self.data_mb.is_none_or(|size| plan.data_mb == size)
                && self.days.is_none_or(|span| plan.duration_days == span)
        });
        found.sort_by_key(|plan| (headline(plan), plan.data_mb, plan.duration_days, &plan.code));
        found
    }

    /// Whether it is for everything of a kind.
    fn is_plain(&self) -> bool {
        self.words.is_empty() && self.country.is_none() && self.data_mb.is_none() && self.days.is_none()
    }

    /// The same search as an address.
    fn link(&self, path: &str, number: Option<usize>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let sides = [
            ("q", Some(self.words.clone()).filter(|words| !words.is_empty())),
            ("country", self.country.clone()),
            ("data", self.data_mb.map(|size| size.to_string())),
            ("days", self.days.map(|span| span.to_string())),
            ("type", Some(self.plan_type.as_str().to_string()).filter(|_| self.plan_type != PlanType::Base)),
            ("page", number.map(|number| number.to_string())),
        ];
        for (name, value) in sides {
            if let Some(value) = value {
                query.append_pair(name, &value);
            }
        }
        match query.finish() {
            none if none.is_empty() => path.into(),
            query => format!("{path}?{query}"),
        }
    }
}

/// Something to choose from.
struct Choice {
    value: String,
    name: String,
    chosen: bool,
}

impl Choice {
    /// Those of a shelf. One that was chosen and is not there is offered all the same, so that the page says what was asked.
    fn among(
        there: impl IntoIterator<Item = i64>,
        chosen: Option<i64>,
        name: fn(i64) -> String,
    ) -> Vec<Choice> {
        let mut all: Vec<i64> = there.into_iter().chain(chosen).collect();
        all.sort_unstable();
        all.dedup();
        let choice = |value: i64| Choice {
            value: value.to_string(),
            name: name(value),
            chosen: chosen == Some(value),
        };
        all.into_iter().map(choice).collect()
    }

    fn countries(shelf: &Shelf, chosen: Option<&str>) -> Vec<Choice> {
        let mut all: Vec<&str> = shelf.countries().chain(chosen).collect();
        all.sort_unstable_by_key(|code| (country::name_of(code), *code));
        all.dedup();
        let choice = |code: &str| Choice {
            value: code.into(),
            name: country::name_of(code).into(),
            chosen: chosen == Some(code),
        };
        all.into_iter().map(choice).collect()
    }
}

struct Row<'a> {
    card: PlanCard<'a>,
    /// Where a plan for several countries works.
    places: Option<String>,
    data: String,
    days: String,
    price: String,
}

impl<'a> Row<'a> {
    fn of(plan: &'a Plan) -> Row<'a> {
        Row {
            card: PlanCard::of(plan),
            places: (plan.countries.len() > 1).then(|| plan_details::countries(plan, NAMED)),
            data: match plan.details.kind {
                Some(VolumeKind::Unlimited) => "Unlimited".into(),
                Some(VolumeKind::DayPass) => format!("{} a day", size(plan.data_mb)),
                Some(VolumeKind::Fixed) | None => size(plan.data_mb),
            },
            days: days(plan.duration_days),
            price: plan.wholesale.priced(),
        }
    }
}

fn size(mb: i64) -> String {
    format!("{} GB", gigabytes(mb))
}

#[derive(Template)]
#[template(path = "portal/plans.html")]
struct PlansPage<'a> {
    frame: Frame<'a>,
    search: &'a Search,
    countries: Vec<Choice>,
    sizes: Vec<Choice>,
    spans: Vec<Choice>,
    rows: Vec<Row<'a>>,
    total: usize,
    number: usize,
    last: usize,
    back: String,
    next: String,
    file: String,
}

impl PlansPage<'_> {
    /// Whether a plan can be ordered here. More data is ordered on the page of its eSIM.
    fn may_order(&self) -> bool {
        let may = self.frame.may(Ability::Order) && !self.frame.me.suspended;
        may && self.search.plan_type == PlanType::Base
    }
}

pub async fn list(visit: Visit, query: Query) -> Answer {
    let (search, number) = Search::read(query)?;
    let shelves = visit.state.catalog.shelves().await?;
    let shelf = shelves.get(&visit.me().price_list, search.plan_type);
    let shelf = shelf.unwrap_or(&visit.state.catalog.empty_shelf);
    let found = search.find(shelf);
    let last = found.len().div_ceil(ROWS).max(1);
    let number = number.min(last);
    let shown = found.iter().skip((number - 1) * ROWS).take(ROWS);
    let path = Section::Plans.path();
    let template = PlansPage {
        frame: visit.frame(Section::Plans),
        countries: Choice::countries(shelf, search.country.as_deref()),
        sizes: Choice::among(shelf.sizes.iter().copied(), search.data_mb, size),
        spans: Choice::among(shelf.spans.iter().copied(), search.days, days),
        rows: shown.map(|plan| Row::of(plan)).collect(),
        total: found.len(),
        number,
        last,
        back: search.link(&path, Some(number - 1).filter(|number| *number > 1)),
        next: search.link(&path, Some(number + 1)),
        file: search.link("/portal/plans.csv", None),
        search: &search,
    };
    page(&visit.state, StatusCode::OK, &template)
}

/// All plans that the search finds, as a file.
pub async fn file(visit: Visit, query: Query) -> Answer {
    let (search, _) = Search::read(query)?;
    let shelves = visit.state.catalog.shelves().await?;
    let shelf = shelves.get(&visit.me().price_list, search.plan_type);
    let found = search.find(shelf.unwrap_or(&visit.state.catalog.empty_shelf));
    let found: Vec<Arc<Plan>> = found.into_iter().cloned().collect();
    let head = csv::line(COLUMNS.map(csv::figure));
    let parts = (0..found.len()).step_by(AT_ONCE).map(move |start| {
        let end = found.len().min(start + AT_ONCE);
        Ok(found[start..end].iter().map(|plan| csv_line(plan)).collect())
    });
    download::csv("plans.csv", stream::iter([Ok(head)]).chain(stream::iter(parts)))
}

fn csv_line(plan: &Plan) -> String {
    csv::line([
        csv::text(&plan.code),
        csv::figure(plan.plan_type.as_str()),
        csv::text(&plan.name),
        csv::text(&plan.countries.join(" ")),
        csv::figure(&gigabytes(plan.data_mb).to_string()),
        csv::figure(&plan.duration_days.to_string()),
        csv::figure(&plan.wholesale.to_string()),
        csv::text(&plan.operator),
    ])
}
