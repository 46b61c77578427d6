//! A moment as programs and people write it, everywhere in UTC.

use crate::domain::time::Time;

/// ISO 8601 with milliseconds.
pub fn iso(time: Time) -> String {
    formatted(time, "%Y-%m-%dT%H:%M:%S%.3fZ")
}

/// To the microsecond, for a time that must be read back unchanged.
pub fn iso_exact(time: Time) -> String {
    formatted(time, "%Y-%m-%dT%H:%M:%S%.6fZ")
}

/// For people.
pub fn readable(time: Time) -> String {
    formatted(time, "%-d %B %Y, %H:%M UTC")
}

fn formatted(time: Time, form: &str) -> String {
    // Times come from our clock or were parsed as times, so they are in range.
    jiff::Timestamp::from_microsecond(time.micros()).unwrap_or_default().strftime(form).to_string()
}

/// RFC 3339, or a date, which means its midnight.
pub fn parse(text: &str) -> Option<Time> {
    let moment = if is_date(text) { format!("{text}T00:00:00Z").parse() } else { text.parse() };
    moment.ok().map(|moment: jiff::Timestamp| Time::from_micros(moment.as_microsecond()))
}

/// Whether a parsable text names a day, not a moment.
pub fn is_date(text: &str) -> bool {
    text.len() == "2026-01-31".len()
}
