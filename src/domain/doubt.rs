//! What is done about a purchase whose fate is unknown, at a supplier that would sell again if it were asked again. That
//! it is not found neither ends the order nor parks it for ever: after the supplier's quiet time, two empty look-ups that
//! count allow one more purchase.

use super::time::Time;

/// The least time between the two empty look-ups.
const APART_MS: i64 = 60_000;
/// Late sales are looked for so long after the first purchase.
const WATCH_DAYS: i64 = 7;
/// Their clocks and ours: a sale may seem this much older than our question.
const CLOCKS_MS: i64 = 60_000;

/// A purchase that may have reached the supplier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub n: i64,
    pub asked_at: Time,
    /// When a look-up that counts was first empty.
    pub empty_at: Option<Time>,
}

impl Attempt {
    /// Whether a sale of this time can be this purchase's or a later one's.
    pub fn may_be_sold_at(&self, at: Time) -> bool {
        at >= self.asked_at.plus_millis(-CLOCKS_MS)
    }
}

/// Whether a sale was made before a moment of ours, whatever the difference of the clocks.
pub fn is_surely_before(sold_at: Time, moment: Time) -> bool {
    sold_at < moment.plus_millis(-CLOCKS_MS)
}

/// What follows from an empty look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Wait,
    /// It is the first that counts, if a known sale is found the same way.
    Count,
    /// The same for the second: one more purchase is allowed.
    BuyAgain,
    /// Two purchases are in doubt. The operator decides; there is never a third.
    Operator,
}

/// What follows from a look-up that was asked at `asked` and found nothing.
pub fn after_nothing(attempts: &[Attempt], quiet_ms: i64, asked: Time) -> Next {
    let [first] = attempts else { return Next::Operator };
    if asked < first.asked_at.plus_millis(quiet_ms) {
        return Next::Wait;
    }
    match first.empty_at {
        None => Next::Count,
        Some(before) if asked < before.plus_millis(APART_MS) => Next::Wait,
        Some(_) => Next::BuyAgain,
    }
}

/// When to look again for late sales of an order that was first bought at `since`; `None` when it is long enough.
pub fn next_look(since: Time, now: Time) -> Option<Time> {
    let passed_ms = (now.micros() - since.micros()) / 1_000;
    (now < since.plus_days(WATCH_DAYS)).then(|| now.plus_millis(passed_ms.max(APART_MS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QUIET: i64 = 900_000;

    fn at(millis: i64) -> Time {
        Time::from_micros(0).plus_millis(millis)
    }

    #[test]
    fn an_order_is_bought_again_once_after_the_quiet_time() {
        let first = |empty_at| vec![Attempt { n: 1, asked_at: at(0), empty_at }];
        let after = |empty_at: Option<i64>, asked| after_nothing(&first(empty_at.map(at)), QUIET, at(asked));
        assert_eq!(after(None, QUIET - 1), Next::Wait);
        assert_eq!(after(None, QUIET), Next::Count);
        assert_eq!(after(Some(QUIET), QUIET + 59_999), Next::Wait);
        assert_eq!(after(Some(QUIET), QUIET + 60_000), Next::BuyAgain);
        let second = Attempt { n: 2, asked_at: at(QUIET), empty_at: None };
        let both = [first(Some(at(QUIET))), vec![second]].concat();
        assert_eq!(after_nothing(&both, QUIET, at(i64::MAX / 2_000)), Next::Operator);
    }

    proptest! {
        /// Whatever the pace of look-ups: one more purchase at most, never within the quiet time, and never sooner than a
        /// minute after an empty look-up.
        #[test]
        fn any_pace_of_look_ups_keeps_the_rule(pauses in prop::collection::vec(1i64..400_000, 1..60)) {
            let mut attempts = vec![Attempt { n: 1, asked_at: at(0), empty_at: None }];
            let (mut now, mut counted) = (0, None);
            for pause in pauses {
                now += pause;
                match after_nothing(&attempts, QUIET, at(now)) {
                    Next::Wait => {}
                    Next::Count => {
                        prop_assert!(now >= QUIET && counted.is_none());
                        counted = Some(now);
                        attempts[0].empty_at = Some(at(now));
                    }
                    Next::BuyAgain => {
                        prop_assert_eq!(attempts.len(), 1);
                        prop_assert!(counted.is_some_and(|before| now >= before + 60_000));
                        attempts.push(Attempt { n: 2, asked_at: at(now), empty_at: None });
                    }
                    Next::Operator => prop_assert_eq!(attempts.len(), 2),
                }
            }
            prop_assert!(attempts.len() <= 2);
        }
    }

    #[test]
    fn late_sales_are_looked_for_ever_more_rarely_and_not_for_ever() {
        let (mut now, mut looks) = (at(960_000), 0);
        while let Some(next) = next_look(at(0), now) {
            assert!(next >= now.plus_millis(60_000));
            (now, looks) = (next, looks + 1);
        }
        assert!((5..20).contains(&looks), "{looks}");
    }
}
