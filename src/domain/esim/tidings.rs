//! What a reading of an eSIM's meter tells its owner: another status, and how much of its data is used. Each threshold is
//! told once for each fill; a fill is whatever makes the total grow.

use super::{EsimStatus, Usage};
use crate::domain::event::EventKind;

/// In percent of all data, ascending.
pub const THRESHOLDS: [i64; 4] = [50, 75, 90, 100];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tidings {
    StatusChanged { before: EsimStatus },
    Reached { threshold: i64 },
}

impl Tidings {
    pub fn kind(self) -> EventKind {
        match self {
            Tidings::StatusChanged { .. } => EventKind::EsimStatusChanged,
            Tidings::Reached { .. } => EventKind::UsageThreshold,
        }
    }

    /// What to tell when `usage` follows on what was known, in this order. `told` is the highest threshold of the fill that
    /// was told before.
    pub fn of(known: Option<&Usage>, usage: &Usage, told: i64) -> Vec<Tidings> {
        // A profile that was never read is as it was delivered.
        let before = known.map_or(EsimStatus::New, Usage::status);
        let changed = (before != usage.status()).then_some(Tidings::StatusChanged { before });
        let (from, to) = passed(known, usage, told);
        let reached = THRESHOLDS.into_iter().filter(|threshold| (from + 1..=to).contains(threshold));
        changed.into_iter().chain(reached.map(|threshold| Tidings::Reached { threshold })).collect()
    }
}

/// The highest threshold of the fill that is not to be told again after this.
pub fn told_after(known: Option<&Usage>, usage: &Usage, told: i64) -> i64 {
    passed(known, usage, told).1
}

/// The highest threshold that needs no telling, and the highest that has none left to tell after it.
fn passed(known: Option<&Usage>, usage: &Usage, told: i64) -> (i64, i64) {
    // What was given back has no data, so none of it is used up.
    if usage.status() == EsimStatus::Cancelled {
        return (told, told);
    }
    let now = highest(usage.used_mb, usage.total_mb);
    let Some(known) = known else { return (told, told.max(now)) };
    if usage.total_mb < known.total_mb {
        return (told.max(now), told.max(now));
    }
    // Nobody looked right after a fill. Only what was used before it is known not to be of the new one.
    let before = highest(known.used_mb.min(usage.used_mb), usage.total_mb);
    let from = if usage.total_mb > known.total_mb { before } else { told.max(before) };
    (from, from.max(now))
}

/// The highest threshold that so much of a total has reached; 0 when none.
fn highest(used_mb: i64, total_mb: i64) -> i64 {
    let (used, total) = (i128::from(used_mb), i128::from(total_mb));
    let is_reached = |threshold: &i64| total > 0 && used * 100 >= total * i128::from(*threshold);
    THRESHOLDS.into_iter().rev().find(is_reached).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::esim::ServiceState;
    use crate::domain::time::Time;
    use proptest::prelude::*;

    fn meter(used_mb: i64, total_mb: i64) -> Usage {
        let (service, as_of) = (ServiceState::Active, Time::from_micros(0));
        Usage { service, profile: None, total_mb, used_mb, as_of, expires_at: None }
    }

    /// The thresholds that a reading tells, and what is remembered then.
    fn told(known: Option<&Usage>, usage: &Usage, before: i64) -> (Vec<i64>, i64) {
        let reached = |tidings| match tidings {
            Tidings::Reached { threshold } => Some(threshold),
            Tidings::StatusChanged { .. } => None,
        };
        let thresholds = Tidings::of(known, usage, before).into_iter().filter_map(reached).collect();
        (thresholds, told_after(known, usage, before))
    }

    #[test]
    fn thresholds_are_told_when_they_are_reached() {
        for (known, usage, before, thresholds, after) in [
            (None, (0, 1000), 0, vec![], 0),
            (None, (499, 1000), 0, vec![], 0),
            (None, (500, 1000), 0, vec![50], 50),
            (None, (950, 1000), 0, vec![50, 75, 90], 90),
            (None, (9, 0), 0, vec![], 0),
            (None, (i64::MAX, i64::MAX), 0, vec![50, 75, 90, 100], 100),
            (Some((500, 1000)), (749, 1000), 50, vec![], 50),
            (Some((500, 1000)), (1000, 1000), 50, vec![75, 90, 100], 100),
            (Some((1000, 1000)), (1200, 1000), 100, vec![], 100),
            // The meter went back, and came again.
            (Some((800, 1000)), (100, 1000), 75, vec![], 75),
            (Some((100, 1000)), (900, 1000), 75, vec![90], 90),
            // A row from before thresholds were remembered.
            (Some((800, 1000)), (800, 1000), 0, vec![], 75),
        ] {
            let (known, usage) = (known.map(|(used, total)| meter(used, total)), meter(usage.0, usage.1));
            assert_eq!(told(known.as_ref(), &usage, before), (thresholds, after), "{known:?} {usage:?}");
        }
    }

    #[test]
    fn a_fill_begins_anew() {
        for (known, usage, before, thresholds, after) in [
            ((1000, 1000), (1000, 2000), 100, vec![], 50),
            ((1000, 1000), (1000, 3000), 100, vec![], 0),
            ((1000, 1000), (0, 1000), 100, vec![], 100),
            ((1000, 1000), (0, 1200), 100, vec![], 0),
            // It was filled and used up before anybody looked.
            ((1000, 1000), (1200, 1200), 100, vec![90, 100], 100),
            ((1000, 1000), (1600, 2000), 100, vec![75], 75),
            ((0, 0), (600, 1000), 0, vec![50], 50),
        ] {
            let (known, usage) = (meter(known.0, known.1), meter(usage.0, usage.1));
            assert_eq!(told(Some(&known), &usage, before), (thresholds, after), "{known:?} {usage:?}");
        }
    }

    #[test]
    fn a_total_that_shrinks_tells_nothing_then_or_later() {
        let (all, less, more) = (meter(300, 1000), meter(300, 400), meter(360, 400));
        assert_eq!(told(Some(&all), &less, 0), (vec![], 75));
        assert_eq!(told(Some(&less), &less, 75), (vec![], 75));
        assert_eq!(told(Some(&less), &more, 75), (vec![90], 90));
        assert_eq!(told(Some(&all), &meter(300, 0), 50), (vec![], 50));
        let given_back = meter(300, 1000).given_back();
        for known in [None, Some(&all)] {
            assert_eq!(told(known, &given_back, 0), (vec![], 0));
        }
    }

    #[test]
    fn another_status_is_told_first() {
        let depleted = Usage { service: ServiceState::Depleted, ..meter(1000, 1000) };
        let known = meter(950, 1000);
        let status = Tidings::StatusChanged { before: EsimStatus::Active };
        assert_eq!(
            Tidings::of(Some(&known), &depleted, 90),
            vec![status, Tidings::Reached { threshold: 100 }]
        );
        assert_eq!(Tidings::of(Some(&depleted), &depleted, 100), vec![]);
        let status = Tidings::StatusChanged { before: EsimStatus::New };
        assert_eq!(Tidings::of(None, &meter(0, 1000), 0), vec![status]);
        let new = Usage { service: ServiceState::New, ..meter(0, 1000) };
        assert_eq!(Tidings::of(None, &new, 0), vec![], "it is as it was delivered");
    }

    fn any_reading(totals: impl Strategy<Value = i64>) -> impl Strategy<Value = Usage> {
        let service = prop::sample::select(ServiceState::ALL.to_vec());
        (service, 0..110_i64, totals, 0..6_i64).prop_map(|(service, used_mb, total_mb, at)| Usage {
            service,
            as_of: Time::from_micros(at),
            ..meter(used_mb, total_mb)
        })
    }

    proptest! {
        /// Readings arrive in any order, and are merged as they are stored.
        #[test]
        fn each_threshold_is_told_once_per_fill(
            readings in prop::collection::vec(any_reading(prop::sample::select(vec![0, 50, 80, 100])), 1..30),
        ) {
            let (mut known, mut remembered): (Option<Usage>, i64) = (None, 0);
            let (mut status, mut last_of_fill) = (EsimStatus::New, 0);
            for reading in &readings {
                let usage = Usage::after(known.as_ref(), reading);
                let grew = known.as_ref().is_some_and(|known| usage.total_mb > known.total_mb);
                if grew {
                    last_of_fill = 0;
                }
                for tidings in Tidings::of(known.as_ref(), &usage, remembered) {
                    match tidings {
                        Tidings::StatusChanged { before } => {
                            prop_assert_eq!(before, status);
                            status = usage.status();
                        }
                        Tidings::Reached { threshold } => {
                            prop_assert!(threshold > last_of_fill, "{} after {}", threshold, last_of_fill);
                            prop_assert!(usage.total_mb > 0 && usage.used_mb * 100 >= threshold * usage.total_mb);
                            last_of_fill = threshold;
                        }
                    }
                }
                prop_assert_eq!(status, usage.status());
                remembered = told_after(known.as_ref(), &usage, remembered);
                prop_assert!(remembered >= last_of_fill);
                // The same reading again is no news.
                prop_assert_eq!(Tidings::of(Some(&usage), &usage, remembered), vec![]);
                known = Some(usage);
            }
        }

        /// Nothing that was reached stays untold while the total is the same.
        #[test]
        fn every_threshold_that_is_reached_is_told(readings in prop::collection::vec(any_reading(Just(100)), 1..30)) {
            let (mut known, mut remembered, mut heard, mut most): (Option<Usage>, i64, Vec<i64>, i64) = (None, 0, vec![], 0);
            for reading in readings.iter().filter(|reading| reading.status() != EsimStatus::Cancelled) {
                let usage = Usage::after(known.as_ref(), reading);
                most = most.max(usage.used_mb);
                let (thresholds, after) = told(known.as_ref(), &usage, remembered);
                heard.extend(thresholds);
                (known, remembered) = (Some(usage), after);
            }
            let reached: Vec<i64> = THRESHOLDS.into_iter().filter(|threshold| most >= *threshold).collect();
            prop_assert_eq!(heard, reached);
        }
    }
}
