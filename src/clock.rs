//! The only reader of the system clock. On PostgreSQL the database server's clock is the one that counts for
//! leases and limits, so the difference to it is measured and added; tests move the clock by hand.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::domain::time::Time;

#[derive(Default)]
pub struct Clock {
    behind_database: AtomicI64,
    moved: AtomicI64,
}

impl Clock {
    pub fn now(&self) -> Time {
        let correction = self.behind_database.load(Ordering::Relaxed) + self.moved.load(Ordering::Relaxed);
        Time::from_micros(system_micros() + correction)
    }

    /// Takes the database's time, read just now, as the truth.
    pub fn follow(&self, database_now: i64) {
        self.behind_database.store(database_now - system_micros(), Ordering::Relaxed);
    }

    /// For tests: time passes at once.
    pub fn advance(&self, millis: i64) {
        self.moved.fetch_add(millis * 1_000, Ordering::Relaxed);
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the one place")]
fn system_micros() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is set to after 1970");
    i64::try_from(since_1970.as_micros()).expect("the clock is set to before the year 294247")
}
