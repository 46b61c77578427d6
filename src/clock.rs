//! The only reader of the system clock. On PostgreSQL the database server's clock decides about leases and limits, so
//! the difference to it is measured and added; tests move the clock by hand.

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

    /// Follows the database's clock, which `ask` reads. The answer was true at some moment between question and answer,
    /// and our clock moves only if it was wrong at both: otherwise a slow answer would set it back.
    pub fn follow<E>(&self, ask: impl FnOnce() -> Result<Option<i64>, E>) -> Result<(), E> {
        let asked = system_micros();
        if let Some(database_now) = ask()? {
            let (least, most) = (database_now - system_micros(), database_now - asked);
            let behind = self.behind_database.load(Ordering::Relaxed);
            self.behind_database.store(behind.min(most).max(least), Ordering::Relaxed);
        }
        Ok(())
    }

    /// For tests: moves the time forward.
    pub fn advance(&self, millis: i64) {
        self.moved.fetch_add(millis * 1_000, Ordering::Relaxed);
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the one place")]
fn system_micros() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is set to after 1970");
    i64::try_from(since_1970.as_micros()).expect("the clock is set to before the year 294247")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_does_not_set_the_clock_back() {
        const HOUR: i64 = 3_600_000_000;
        let clock = Clock::default();
        let behind = || clock.behind_database.load(Ordering::Relaxed);
        clock.follow(|| Ok::<_, ()>(Some(system_micros() + HOUR))).unwrap();
        let first = behind();
        assert!(first > HOUR / 2 && first <= HOUR);
        let slow = || {
            let read = system_micros() + HOUR;
            std::thread::sleep(std::time::Duration::from_millis(20));
            Ok::<_, ()>(Some(read))
        };
        clock.follow(slow).unwrap();
        assert_eq!(behind(), first);
        clock.follow(|| Ok::<_, ()>(Some(system_micros()))).unwrap();
        assert!(behind().abs() < HOUR / 2);
    }
}
