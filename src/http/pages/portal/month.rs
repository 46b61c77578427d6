//! A month of the statement, to be printed or kept: who it is from and for, what it began and ended with, what moved it.
//! Months are those of UTC, so no time on it is changed into the reader's zone.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Frame, Section, Visit};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::Segment;
use crate::http::kit::html::page;
use crate::http::kit::statement::describe;
use crate::http::kit::wire::date;
use crate::http::pages::movement::{Movement, signed};
use crate::ops::accounts;
use crate::ops::accounts::portions::{Order, Portions};
use crate::ops::operator;
use crate::wire::dates;

/// A month with more lines leaves them to the file.
const MOST_LINES: i64 = 200;
const NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A month of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Calendar {
    pub year: u16,
    pub month: u8,
}

impl Calendar {
    /// The month that a moment is in.
    pub fn of(time: Time) -> Option<Calendar> {
        Calendar::parse(date(time).get(..7)?)
    }

    /// Reads `2026-01`.
    pub fn parse(text: &str) -> Option<Calendar> {
        let (year, month) = text.split_once('-')?;
        let is_number = |text: &str, digits| text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(year, 4) || !is_number(month, 2) {
            return None;
        }
        let found = Calendar { year: year.parse().ok()?, month: month.parse().ok()? };
        dates::month(found.year, found.month).map(|_| found)
    }

    pub fn code(self) -> String {
        format!("{:04}-{:02}", self.year, self.month)
    }

    pub fn path(self) -> String {
        format!("{}/{}", Section::Statement.path(), self.code())
    }

    pub fn name(self) -> String {
        let name = NAMES.get(usize::from(self.month).wrapping_sub(1)).copied().unwrap_or_default();
        format!("{name} {}", self.year)
    }

    pub fn before(self) -> Calendar {
        match self.month {
            1 => Calendar { year: self.year.saturating_sub(1), month: 12 },
            month => Calendar { month: month - 1, ..self },
        }
    }

    fn after(self) -> Calendar {
        match self.month {
            12 => Calendar { year: self.year.saturating_add(1), month: 1 },
            month => Calendar { month: month + 1, ..self },
        }
    }
}

/// What the lines of a kind come to.
struct Sum {
    what: String,
    count: i64,
    sum: String,
}

#[derive(Template)]
#[template(path = "portal/month.html")]
struct MonthPage<'a> {
    frame: Frame<'a>,
    month: Calendar,
    /// Who it is from, line by line.
    operator: Vec<String>,
    company: String,
    account: String,
    first_day: String,
    last_day: String,
    is_over: bool,
    opening: String,
    closing: String,
    sums: Vec<Sum>,
    count: i64,
    /// All lines, the oldest first, unless there are too many.
    lines: Option<Vec<Movement>>,
    earlier: Option<Calendar>,
    later: Option<Calendar>,
}

pub async fn show(visit: Visit, Segment(text): Segment) -> Answer {
    let (app, me) = (&visit.state.app, visit.me());
    let calendar = Calendar::parse(&text).ok_or(Refusal::NotFound)?;
    let now = app.now();
    let (found, company) = (
        accounts::month(app, me.account, calendar.year, calendar.month).await?,
        operator::account_by_no(app, me.account).await?,
    );
    if found.from > now {
        return Err(Refusal::NotFound.into());
    }
    let count = (found.lines.end - found.lines.start).max(0);
    let lines = match count <= MOST_LINES {
        true => {
            let lines = Portions::of_month(app, me.account, &found, Order::Oldest).next().await?;
            Some(Movement::all(app, me.account, lines.unwrap_or_default()).await?)
        }
        false => None,
    };
    let sum = |part: &accounts::month::KindSum| Sum {
        what: describe(&part.kind, None),
        count: part.count,
        sum: signed(part.sum),
    };
    let brand = &app.settings.brand;
    let is_over = found.to <= now;
    let template = MonthPage {
        frame: visit.frame(Section::Statement),
        month: calendar,
        operator: if brand.details.is_empty() { vec![brand.name.clone()] } else { brand.details.clone() },
        company: company.name,
        account: company.id.to_string(),
        first_day: date(found.from),
        last_day: date(if is_over { found.to.plus_days(-1) } else { now }),
        is_over,
        opening: found.opening.priced(),
        closing: found.closing.priced(),
        sums: found.sums.iter().map(sum).collect(),
        count,
        lines,
        earlier: Some(calendar.before()).filter(|month| Calendar::of(company.created_at) <= Some(*month)),
        later: Some(calendar.after()).filter(|_| is_over),
    };
    page(&visit.state, StatusCode::OK, &template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_follow_each_other() {
        let month = |text: &str| Calendar::parse(text).unwrap();
        for (first, second) in [("2026-11", "2026-12"), ("2026-12", "2027-01"), ("2027-01", "2027-02")] {
            assert_eq!((month(first).after(), month(second).before()), (month(second), month(first)));
            assert!(month(first) < month(second));
        }
        assert_eq!(
            (month("2026-01").name(), month("2026-12").code()),
            ("January 2026".into(), "2026-12".into())
        );
        for text in ["", "2026", "2026-1", "2026-00", "2026-13", "26-01", "2026-01-01", "+026-01", "2026-+1"]
        {
            assert_eq!(Calendar::parse(text), None, "{text}");
        }
    }
}
