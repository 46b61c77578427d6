//! A moment: microseconds since 1970, UTC. Rules take it as a parameter; nothing in the domain reads a clock.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

impl Time {
    pub const fn from_micros(micros: i64) -> Time {
        Time(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    pub fn plus_millis(self, millis: i64) -> Time {
        Time(self.0 + millis * 1_000)
    }

    pub fn plus_days(self, days: i64) -> Time {
        Time(self.0 + days * DAY)
    }

    /// The UTC day, counted from 1970: what a daily limit counts by.
    pub fn day(self) -> i64 {
        self.0.div_euclid(DAY)
    }
}
