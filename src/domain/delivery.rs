//! When an event is sent again, when an endpoint is left alone, and when it is given up.

use super::login::DAY_MS;
use super::time::Time;

/// How long to wait after each refusal; the last pause repeats.
const PAUSES_MS: [i64; 9] =
    [5_000, 30_000, 120_000, 300_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000];
/// An endpoint that has refused this often in a row is left alone: events wait in the log, and one of them is tried from
/// time to time.
const PATIENCE: i64 = 5;

/// How long to wait after so many refusals, a fifth more or less, as chance says: endpoints that fail together are not
/// tried together.
pub fn pause_ms(refusals: i64, chance: u128) -> i64 {
    let nth = usize::try_from(refusals - 1).unwrap_or(0).min(PAUSES_MS.len() - 1);
    let pause = PAUSES_MS[nth];
    let fifth = pause / 5;
    pause - fifth + (chance % (2 * fifth as u128 + 1)) as i64
}

/// Whether an event that was first refused then is set aside.
pub fn is_overdue(refused_at: Time, now: Time) -> bool {
    refused_at.plus_millis(DAY_MS) <= now
}

/// How an endpoint has answered lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Since when it has accepted nothing, though it was tried.
    pub failing_since: Option<Time>,
    /// How often it was tried since then.
    pub failures: i64,
    /// Until when it is left alone.
    pub resting_until: Option<Time>,
}

impl Health {
    pub fn refused(self, now: Time, chance: u128) -> Health {
        let failures = self.failures + 1;
        let rests = failures >= PATIENCE;
        Health {
            failing_since: self.failing_since.or(Some(now)),
            failures,
            resting_until: rests.then(|| now.plus_millis(pause_ms(failures - PATIENCE + 1, chance))),
        }
    }

    /// Whether it refuses everything, so that only one event is tried at a time.
    pub fn is_failing(&self) -> bool {
        self.failures >= PATIENCE
    }

    pub fn rests(&self, now: Time) -> bool {
        self.resting_until.is_some_and(|until| now < until)
    }

    /// Whether it has accepted nothing for a day.
    pub fn is_dead(&self, now: Time) -> bool {
        self.failing_since.is_some_and(|since| is_overdue(since, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pauses_grow_and_a_day_has_a_dozen() {
        let (mut passed, mut tries) = (0, 0);
        while passed < DAY_MS {
            tries += 1;
            passed += pause_ms(tries, PAUSES_MS[0] as u128 / 5);
        }
        assert!((10..=16).contains(&tries), "{tries}");
    }

    proptest! {
        #[test]
        fn chance_moves_a_pause_by_a_fifth(refusals in 1i64..100, chance in any::<u128>()) {
            let usual = PAUSES_MS[(refusals as usize - 1).min(PAUSES_MS.len() - 1)];
            let pause = pause_ms(refusals, chance);
            prop_assert!((usual - usual / 5..=usual + usual / 5).contains(&pause));
        }
    }

    #[test]
    fn an_endpoint_that_refuses_is_left_alone_and_given_up_after_a_day() {
        let begin = Time::from_micros(0);
        let (mut health, mut now) = (Health::default(), begin);
        for n in 1..PATIENCE {
            health = health.refused(now, 0);
            assert_eq!((health.failures, health.is_failing(), health.rests(now)), (n, false, false));
        }
        while !health.is_dead(now) {
            health = health.refused(now, 0);
            assert!(health.is_failing() && health.rests(now));
            now = health.resting_until.unwrap();
            assert!(!health.rests(now));
        }
        assert_eq!(health.failing_since, Some(begin));
        assert!(now >= begin.plus_millis(DAY_MS) && now < begin.plus_millis(DAY_MS + 14_400_000));
    }
}
