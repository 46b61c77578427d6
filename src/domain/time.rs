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

    /// Saturates at the ends of time.
    pub fn plus_millis(self, millis: i64) -> Time {
        Time(self.0.saturating_add(millis.saturating_mul(1_000)))
    }

    pub fn plus_days(self, days: i64) -> Time {
        Time(self.0.saturating_add(days.saturating_mul(DAY)))
    }

    /// Whether less than this has passed since then. A `since` in the future, from a wrong clock, does not count.
    pub fn is_within(self, millis: i64, since: Time) -> bool {
        since <= self && self < since.plus_millis(millis)
    }

    /// This moment with a margin for clocks: those of instances and database are less than this apart. A promise for
    /// later than that came from a wrong clock.
    pub fn and_a_little(self) -> Time {
        self.plus_millis(2_000)
    }

    /// The midnight that a UTC day begins with.
    pub fn of_day(day: i64) -> Time {
        Time(day.saturating_mul(DAY))
    }

    /// The hour, counted from 1970.
    pub fn hour(self) -> i64 {
        self.0.div_euclid(3_600 * SECOND)
    }

    /// The UTC day, counted from 1970: what a daily limit counts by.
    pub fn day(self) -> i64 {
        self.0.div_euclid(DAY)
    }
}
