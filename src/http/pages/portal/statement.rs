//! What moved the balance: every line with what it was, for a time, and as a file. `month.rs` has the months.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Frame, Section, Visit};
use super::month::Calendar;
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::role::Ability;
use crate::domain::time::Time;
use crate::error::Result;
use crate::http::kit::answers::Answer;
use crate::http::kit::download;
use crate::http::kit::fields::Query;
use crate::http::kit::html::page;
use crate::http::kit::orders::{cursor, parse_cursor};
use crate::http::kit::wire::parse_time;
use crate::http::pages::moment::Moment;
use crate::http::pages::movement::Movement;
use crate::ops::accounts::portions::{Order, Portions};
use crate::ops::accounts::window::{Place, window};
use crate::ops::{accounts, operator};
use crate::wire::dates::is_date;

const ROWS: i64 = 50;
/// How many months are in sight; the others are folded away.
const MONTHS: usize = 3;
const MOST_MONTHS: usize = 120;

/// A time that lines are wanted of, as the page's address says it. Days are those of UTC, and the last one is wanted too.
struct Span {
    from: Option<Time>,
    to: Option<Time>,
    /// As they were typed.
    typed_from: String,
    typed_to: String,
}

impl Span {
    fn read(query: &mut Query) -> Span {
        let (typed_from, typed_to) = (query.typed("from"), query.typed("to"));
        let whole_day = |time: Time| if is_date(&typed_to) { time.plus_days(1) } else { time };
        let must = "must be a day like 2026-01-31";
        Span {
            from: query.take("from", must, parse_time),
            to: query.take("to", must, parse_time).map(whole_day),
            typed_from,
            typed_to,
        }
    }

    fn is_everything(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// The same time as an address, with a place in its lines.
    fn link(&self, path: &str, place: Option<(&str, i64)>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in [("from", &self.typed_from), ("to", &self.typed_to)] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        if let Some((name, line)) = place {
            query.append_pair(name, &cursor(line));
        }
        match query.finish() {
            none if none.is_empty() => path.into(),
            query => format!("{path}?{query}"),
        }
    }
}

/// Why there may be no line.
enum Empty {
    /// Nothing ever moved.
    Ever,
    /// The time that is asked for is still to come.
    Ahead,
    /// It is after the last line, which is this old.
    Since(Moment),
    /// Nothing moved then.
    Then,
}

impl Empty {
    async fn of(app: &App, account: AccountNo, span: &Span) -> Result<Empty> {
        let newest = window(app, account, None, None, Place::Newest, 1).await?.lines.pop();
        Ok(match (newest, span.from) {
            (None, _) => Empty::Ever,
            (Some(_), Some(from)) if app.now() < from => Empty::Ahead,
            (Some(line), Some(from)) if line.at < from => Empty::Since(Moment::of(line.at)),
            (Some(_), _) => Empty::Then,
        })
    }
}

#[derive(Template)]
#[template(path = "portal/statement.html")]
struct StatementPage<'a> {
    frame: Frame<'a>,
    span: &'a Span,
    /// Where no line is shown.
    empty: Option<Empty>,
    balance: String,
    held: Option<String>,
    movements: Vec<Movement>,
    newer: Option<String>,
    older: Option<String>,
    /// How many lines the file has, where that is known.
    total: Option<i64>,
    file: String,
    months: Vec<Calendar>,
    earlier_months: Vec<Calendar>,
}

/// `?from=` and `?to=` are days; `?older=` and `?newer=` a line that others come before or after.
pub async fn list(visit: Visit, query: Query) -> Answer {
    let (app, account) = (&visit.state.app, visit.me().account);
    let mut query = query.filled();
    let span = Span::read(&mut query);
    let must = "must be a place that a page of the statement links to";
    let (older, newer) = (query.take("older", must, parse_cursor), query.take("newer", must, parse_cursor));
    query.finish()?;
    let place = match (older, newer) {
        (Some(line), _) => Place::OlderThan(line),
        (None, Some(line)) => Place::NewerThan(line),
        (None, None) => Place::Newest,
    };
    let found = window(app, account, span.from, span.to, place, ROWS).await?;
    let balance = accounts::balance(app, account).await?;
    let path = Section::Statement.path();
    // Lines are numbered from 1, without gaps.
    let is_whole = span.is_everything() && found.newer.is_none();
    let total = found.lines.first().map(|newest| newest.line).filter(|_| is_whole);
    let link = |name, line: Option<i64>| line.map(|line| span.link(&path, Some((name, line))));
    let mut months = months(Calendar::of(operator::account_by_no(app, account).await?.created_at), app.now());
    let template = StatementPage {
        frame: visit.frame(Section::Statement),
        empty: if found.lines.is_empty() { Some(Empty::of(app, account, &span).await?) } else { None },
        balance: balance.available.priced(),
        held: Some(balance.held).filter(|held| held.is_positive()).map(|held| held.priced()),
        movements: Movement::all(app, account, found.lines).await?,
        newer: link("newer", found.newer),
        older: link("older", found.older),
        total,
        file: span.link("/portal/statement.csv", None),
        span: &span,
        earlier_months: months.split_off(months.len().min(MONTHS)),
        months,
    };
    page(&visit.state, StatusCode::OK, &template)
}

/// This month and those before it, since the first.
fn months(first: Option<Calendar>, now: Time) -> Vec<Calendar> {
    let this = Calendar::of(now);
    let all = std::iter::successors(this, |month| Some(month.before()));
    all.take_while(|month| Some(*month) >= first).take(MOST_MONTHS).collect()
}

/// All lines of a time as a file, newest first; or of a `?month=`, oldest first as on its page.
pub async fn file(visit: Visit, query: Query) -> Answer {
    let (app, account) = (&visit.state.app, visit.me().account);
    let mut query = query.filled();
    let span = Span::read(&mut query);
    let month = query.take("month", "must be a month like 2026-01", Calendar::parse);
    query.finish()?;
    match month {
        Some(month) => {
            let found = accounts::month(app, account, month.year, month.month).await?;
            let lines = Portions::of_month(app, account, &found, Order::Oldest);
            download::csv(&format!("statement-{}.csv", month.code()), lines.csv())
        }
        None => {
            let lines = Portions::of(app, account, span.from, span.to, Order::Newest).await?;
            download::csv("statement.csv", lines.csv())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::refusal::Refusal;
    use crate::wire::dates::parse;

    fn span(query: &str) -> (Span, Result<(), Refusal>) {
        let mut query = Query::parse(Some(query)).filled();
        let span = Span::read(&mut query);
        (span, query.finish())
    }

    #[test]
    fn the_last_day_is_wanted_too() {
        let (days, read) = span("from=2026-11-01&to=2026-11-30");
        assert!(read.is_ok() && !days.is_everything());
        assert_eq!((days.from, days.to), (parse("2026-11-01"), parse("2026-12-01")));
        assert_eq!(days.link("/x", Some(("older", 7))), "/x?from=2026-11-01&to=2026-11-30&older=c7");
        let (moments, _) = span("to=2026-11-30T12:00:00Z");
        assert_eq!((moments.from, moments.to), (None, parse("2026-11-30T12:00:00Z")));
        let (all, read) = span("from=&to=");
        assert!(all.is_everything() && read.is_ok());
        assert_eq!(all.link("/x", None), "/x");
        assert!(span("from=yesterday").1.is_err());
    }

    #[test]
    fn months_go_back_to_the_first() {
        let now = parse("2027-02-03").unwrap();
        let named = |first: &str| {
            let all = months(Calendar::parse(first), now);
            all.into_iter().map(Calendar::code).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(named("2026-12"), "2027-02 2027-01 2026-12");
        assert_eq!(named("2027-02"), "2027-02");
        assert_eq!(months(Calendar::parse("1000-01"), now).len(), MOST_MONTHS);
    }
}
