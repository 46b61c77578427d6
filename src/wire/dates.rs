//! A moment as programs and people write it, everywhere in UTC.

use std::ops::Range;

use jiff::Timestamp;

use crate::domain::time::Time;

/// ISO 8601 with milliseconds.
pub fn iso(time: Time) -> String {
    formatted(time, "%Y-%m-%dT%H:%M:%S%.3fZ")
}

/// The day.
pub fn date(time: Time) -> String {
    formatted(time, "%Y-%m-%d")
}

/// To the microsecond, for a time that must be read back unchanged.
pub fn iso_exact(time: Time) -> String {
    formatted(time, "%Y-%m-%dT%H:%M:%S%.6fZ")
}

/// For people.
pub fn readable(time: Time) -> String {
    formatted(time, "%-d %B %Y, %H:%M UTC")
}

/// For people who compare it with logs of their own.
pub fn to_the_second(time: Time) -> String {
    formatted(time, "%-d %B %Y, %H:%M:%S UTC")
}

/// A time before or after all that can be written is written as the first or the last of these.
fn formatted(time: Time, form: &str) -> String {
    let nearest = if time.micros() < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_microsecond(time.micros()).unwrap_or(nearest).strftime(form).to_string()
}

/// RFC 3339, or a date, which means its midnight.
pub fn parse(text: &str) -> Option<Time> {
    let moment = if is_date(text) { format!("{text}T00:00:00Z").parse() } else { text.parse() };
    moment.ok().map(|moment: Timestamp| Time::from_micros(moment.as_microsecond()))
}

/// A calendar month: from its first midnight up to the next one's.
pub fn month(year: u16, month: u8) -> Option<Range<Time>> {
    let first = |year: u16, month: u8| parse(&format!("{year:04}-{month:02}-01"));
    let next = if month == 12 { first(year.checked_add(1)?, 1) } else { first(year, month.checked_add(1)?) };
    Some(first(year, month)?..next?)
}

/// Whether a parsable text names a day, not a moment.
pub fn is_date(text: &str) -> bool {
    text.len() == "2026-01-31".len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_ends_where_the_next_begins() {
        let days = |year, number| month(year, number).map(|month| (date(month.start), date(month.end)));
        let told = |from: &str, to: &str| Some((from.to_string(), to.to_string()));
        assert_eq!(days(2026, 2), told("2026-02-01", "2026-03-01"));
        assert_eq!(days(2026, 12), told("2026-12-01", "2027-01-01"));
        for (year, number) in [(2026, 0), (2026, 13), (2026, 255), (9999, 12), (10_000, 1), (u16::MAX, 12)] {
            assert_eq!(days(year, number), None, "{year} {number}");
        }
    }

    #[test]
    fn what_cannot_be_written_is_as_early_or_as_late_as_possible() {
        assert!(iso(Time::from_micros(i64::MAX)).starts_with("9999-12-30T"));
        assert!(iso(Time::from_micros(i64::MIN)).starts_with("-9999-01-02T"));
        assert_eq!(iso_exact(Time::from_micros(-1)), "1969-12-31T23:59:59.999999Z");
    }
}
