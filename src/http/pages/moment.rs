//! Times as pages show them: in UTC, and by a script in the reader's zone.

use crate::domain::time::Time;
use crate::http::kit::wire::{iso, readable};

/// A time, for programs and for people.
pub struct Moment {
    pub iso: String,
    pub readable: String,
}

impl Moment {
    pub fn of(time: Time) -> Moment {
        Moment { iso: iso(time), readable: readable(time) }
    }
}

pub fn days(count: i64) -> String {
    if count == 1 { "1 day".into() } else { format!("{count} days") }
}
