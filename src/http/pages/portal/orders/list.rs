//! The list of orders. What it shows is in its address: filters and where it begins, or a name that is searched for.

use askama::Template;
use axum::http::StatusCode;
use form_urlencoded::Serializer;

use super::row::OrderRow;
use crate::domain::order::OrderStatus;
use crate::domain::role::Ability;
use crate::domain::time::Time;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::Query;
use crate::http::kit::html::{page, said};
use crate::http::pages::order_shown::Badge;
use crate::http::pages::portal::frame::{Frame, Section, Visit};
use crate::ops::look_up;
use crate::ops::orders::{self, Search};
use crate::wire::dates;

const ROWS: i64 = 25;
const DAY_MS: i64 = 86_400_000;

/// Which orders are wanted, as the address says it.
#[derive(Default)]
pub struct Filter {
    pub status: Option<OrderStatus>,
    /// Days, as they were typed; the last one is among them.
    pub from: String,
    pub to: String,
    /// A name that is searched for; then the rest does not count.
    pub name: String,
    first: Option<Time>,
    end: Option<Time>,
    pub problem: Option<String>,
}

impl Filter {
    pub fn read(query: &Query) -> Filter {
        let mut filter = Filter {
            status: OrderStatus::parse(&query.typed("state")),
            from: query.typed("from").trim().into(),
            to: query.typed("to").trim().into(),
            name: query.typed("q").trim().into(),
            ..Filter::default()
        };
        let mut wrong = Vec::new();
        let mut day = |name: &'static str, text: &str| {
            let read = dates::parse(text).filter(|_| dates::is_date(text));
            if read.is_none() && !text.is_empty() {
                wrong.push((name, "must be a day like 2026-01-31"));
            }
            read
        };
        filter.first = day("first day", &filter.from);
        filter.end = day("last day", &filter.to).map(|day| day.plus_millis(DAY_MS));
        if !wrong.is_empty() {
            filter.problem = Some(said(wrong.into_iter()));
        }
        filter
    }

    pub fn search(&self) -> Search {
        Search { status: self.status, from: self.first, to: self.end, limit: ROWS, ..Search::default() }
    }

    fn is_empty(&self) -> bool {
        self.status.is_none() && self.from.is_empty() && self.to.is_empty()
    }

    /// The address of another page, or of the file, of the same orders.
    fn address(&self, path: &str, cursor: Option<(&str, i64)>) -> String {
        let mut query = Serializer::new(String::new());
        let state = self.status.map_or("", OrderStatus::as_str);
        let pairs = [("state", state), ("from", &self.from), ("to", &self.to), ("q", &self.name)];
        query.extend_pairs(pairs.into_iter().filter(|(_, value)| !value.is_empty()));
        if let Some((name, place)) = cursor {
            query.append_pair(name, &place.to_string());
        }
        match query.finish() {
            query if query.is_empty() => path.into(),
            query => format!("{path}?{query}"),
        }
    }
}

#[derive(Template)]
#[template(path = "portal/orders.html")]
struct OrdersPage<'a> {
    frame: Frame<'a>,
    orders: Vec<OrderRow>,
    filter: Filter,
    /// How many there are in all; unknown with a filter.
    total: Option<i64>,
    older: Option<String>,
    newer: Option<String>,
    file: String,
    /// Where deposits with the name that was searched for are listed.
    elsewhere: Option<String>,
}

impl OrdersPage<'_> {
    fn states(&self) -> [(OrderStatus, &'static str); 5] {
        OrderStatus::ALL.map(|status| (status, Badge::of(status).word))
    }
}

const PATH: &str = "/portal/orders";

pub async fn show(visit: Visit, query: Query) -> Answer {
    let (app, account) = (&visit.state.app, visit.me().account);
    let filter = Filter::read(&query);
    let mut template = OrdersPage {
        frame: visit.frame(Section::Orders),
        orders: Vec::new(),
        total: None,
        older: None,
        newer: None,
        file: filter.address("/portal/orders.csv", None),
        elsewhere: None,
        filter,
    };
    let filter = &template.filter;
    if filter.problem.is_some() {
        return page(&visit.state, StatusCode::BAD_REQUEST, &template);
    }
    if !filter.name.is_empty() {
        let hits = look_up::look_up(app, account, &filter.name).await?;
        let has_others = !hits.deposits.is_empty() || !hits.transfers.is_empty();
        template.elsewhere = has_others.then(|| {
            Filter { name: filter.name.clone(), ..Filter::default() }.address("/portal/search", None)
        });
        template.orders = hits.orders.iter().map(|order| OrderRow::of(app, order)).collect();
        return page(&visit.state, StatusCode::OK, &template);
    }
    let cursor = |name: &str| query.typed(name).parse::<i64>().ok();
    let search = Search { before: cursor("before"), after: cursor("after"), ..filter.search() };
    let found = orders::search(app, account, search).await?;
    template.older = found.older.map(|place| filter.address(PATH, Some(("before", place))));
    template.newer = found.newer.map(|place| filter.address(PATH, Some(("after", place))));
    template.total = found.total;
    template.orders = found.orders.iter().map(|listed| OrderRow::of(app, &listed.order)).collect();
    page(&visit.state, StatusCode::OK, &template)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Filter {
        Filter::read(&Query::parse(Some(query)))
    }

    #[test]
    fn the_address_says_what_is_shown() {
        let filter = read("state=FAILED&from=2026-01-02&to=2026-01-31&q=&before=7");
        assert!(filter.problem.is_none() && !filter.is_empty());
        assert_eq!(
            filter.address(PATH, Some(("after", 3))),
            "/portal/orders?state=FAILED&from=2026-01-02&to=2026-01-31&after=3"
        );
        let search = filter.search();
        let days = |from: Option<Time>, to: Option<Time>| {
            (to.map_or(0, Time::micros) - from.map_or(0, Time::micros)) / 1_000 / DAY_MS
        };
        assert_eq!(days(search.from, search.to), 30, "the last day is among them");
        assert_eq!(read("state=nonsense&from=&to=").address(PATH, None), PATH);
        assert_eq!(read("q=a+%26b").address(PATH, None), "/portal/orders?q=a+%26b");
    }

    #[test]
    fn a_day_that_is_none_is_told() {
        for wrong in ["from=yesterday", "to=2026-13-01", "from=2026-01-02T00:00:00Z"] {
            assert!(read(wrong).problem.is_some(), "{wrong}");
        }
    }
}
