//! Times as pages show them: in UTC, and by a script in the reader's zone.

use crate::domain::time::Time;
use crate::http::kit::wire::{iso, readable, to_the_second};

/// A time, for programs and for people.
pub struct Moment {
    pub iso: String,
    pub readable: String,
}

impl Moment {
    pub fn of(time: Time) -> Moment {
        Moment { iso: iso(time), readable: readable(time) }
    }

    /// For lines of a log; `times.js` knows these by `data-seconds`.
    pub fn to_the_second(time: Time) -> Moment {
        Moment { iso: iso(time), readable: to_the_second(time) }
    }
}

pub fn days(count: i64) -> String {
    if count == 1 { "1 day".into() } else { format!("{count} days") }
}
