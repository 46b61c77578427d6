//! Calls of the partner API, as a partner's log shows them: when, which and how they were answered, and nothing of what was
//! in them. All are counted; of each account so many are kept one by one as `Share` allows.

use super::ids::{AccountNo, KeyId};
use super::time::Time;
use super::words::words;

words! {
    /// What a call does at its route.
    pub enum Method: ALL, parse {
        Get = "GET",
        Head = "HEAD",
        Post = "POST",
        Put = "PUT",
        Patch = "PATCH",
        Delete = "DELETE",
    }
}

/// How many days calls are kept, and their counts.
pub const KEPT_DAYS: i64 = 7;

/// Statuses from here on are refusals and faults.
pub const REFUSED_FROM: i64 = 400;

/// A call that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub account: AccountNo,
    /// When it was answered; no other call of the account has this time.
    pub at: Time,
    pub method: Method,
    /// The pattern of the path.
    pub route: String,
    pub status: i64,
    /// The problem's code, when it was refused.
    pub code: Option<String>,
    pub ms: i64,
    pub request_id: String,
    pub key_id: KeyId,
}

/// How many calls of one kind an account made in an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    pub account: AccountNo,
    pub hour: i64,
    pub method: Method,
    pub route: String,
    pub status: i64,
    /// Empty when they were not refused.
    pub code: &'static str,
    pub calls: i64,
    /// What they took together.
    pub ms: i64,
    pub last_at: Time,
}

/// Which calls to list; what is not set does not matter.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Goes on from here: the `next` of the page before.
    pub before: Option<i64>,
    pub method: Option<Method>,
    pub route: Option<String>,
    /// The first digit of the status.
    pub class: Option<i64>,
    pub code: Option<String>,
    pub key: Option<KeyId>,
    /// From this time on, and before that one.
    pub from: Option<Time>,
    pub to: Option<Time>,
    pub only_errors: bool,
}

impl Wanted {
    /// Whether only calls that were refused can be meant.
    pub fn is_of_refused(&self) -> bool {
        self.only_errors || self.code.is_some() || self.class.is_some_and(|class| class >= REFUSED_FROM / 100)
    }

    /// From which time on and before which calls may be meant.
    pub fn span(&self) -> (Time, Time) {
        let before = self.before.map(Time::from_micros);
        let until = self.to.into_iter().chain(before).min();
        (self.from.unwrap_or(Time::from_micros(0)), until.unwrap_or(Time::from_micros(i64::MAX)))
    }
}

/// How many calls of an account are kept: so many at once, and one more after each pause.
struct Pace {
    at_once: i64,
    pause_ms: i64,
}

/// Of those that succeeded: the first twenty in a second, and one a second of a partner that never rests.
const ANSWERED: Pace = Pace { at_once: 20, pause_ms: 1_000 };
/// Of those that were refused, which people look for: a hundred at once.
const REFUSED: Pace = Pace { at_once: 100, pause_ms: 1_000 };

impl Pace {
    /// Takes one, if there is one left. `whole_at` is when none will be missing.
    fn take(&self, whole_at: &mut Time, now: Time) -> bool {
        let most = now.plus_millis(self.at_once * self.pause_ms);
        // A clock that was set back must not stop the log.
        *whole_at = (*whole_at).clamp(now, most);
        let taken = whole_at.plus_millis(self.pause_ms);
        let is_left = taken <= most;
        if is_left {
            *whole_at = taken;
        }
        is_left
    }
}

/// What one account may still keep.
pub struct Share {
    answered: Time,
    refused: Time,
    last: Time,
}

const SECOND_MS: i64 = 1_000;

impl Share {
    pub fn new(now: Time) -> Share {
        Share { answered: now, refused: now, last: now.plus_millis(-SECOND_MS) }
    }

    /// The time under which a call is kept that is answered now; `None` when it is only counted.
    pub fn keep(&mut self, refused: bool, now: Time) -> Option<Time> {
        let kept = match refused {
            true => REFUSED.take(&mut self.refused, now),
            false => ANSWERED.take(&mut self.answered, now),
        };
        if !kept {
            return None;
        }
        // Within a second of the last one the clock may stand still, or be a little set back.
        let next = Time::from_micros(self.last.micros() + 1);
        self.last = if next > now && next < now.plus_millis(SECOND_MS) { next } else { now };
        Some(self.last)
    }

    /// Whether a new one would allow as much.
    pub fn is_whole(&self, now: Time) -> bool {
        self.answered <= now && self.refused <= now && self.last.plus_millis(SECOND_MS) <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time {
        Time::from_micros(1_700_000_000_000_000).plus_millis(millis)
    }

    fn kept(share: &mut Share, calls: usize, refused: bool, now: Time) -> usize {
        (0..calls).filter(|_| share.keep(refused, now).is_some()).count()
    }

    #[test]
    fn a_burst_is_kept_and_then_one_a_second() {
        let mut share = Share::new(at(0));
        assert_eq!(kept(&mut share, 500, false, at(0)), 20);
        assert_eq!(kept(&mut share, 500, false, at(999)), 0);
        assert_eq!(kept(&mut share, 500, false, at(1_000)), 1);
        assert_eq!(kept(&mut share, 500, false, at(3_500)), 2);
        // Ten minutes later it is a burst again, and no more than one.
        assert_eq!(kept(&mut share, 500, false, at(600_000)), 20);
    }

    #[test]
    fn successes_use_up_nothing_that_refusals_have() {
        let mut share = Share::new(at(0));
        assert_eq!(kept(&mut share, 500, false, at(0)), 20);
        assert_eq!(kept(&mut share, 500, true, at(0)), 100);
        assert_eq!(kept(&mut share, 500, true, at(2_000)), 2);
    }

    #[test]
    fn no_two_calls_have_the_same_time() {
        let mut share = Share::new(at(0));
        let mut times: Vec<Time> = (0..20).filter_map(|_| share.keep(false, at(0))).collect();
        times.extend(share.keep(true, at(-1)));
        times.extend(share.keep(true, at(1)));
        assert_eq!(times.len(), 22);
        assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
        assert_eq!((times[0], times[21]), (at(0), at(1)));
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_stop_the_log() {
        let mut share = Share::new(at(0));
        assert_eq!(kept(&mut share, 500, false, at(86_400_000)), 20);
        assert_eq!(share.keep(false, at(0)), None);
        assert_eq!(share.keep(false, at(1_000)), Some(at(1_000)));
    }

    #[test]
    fn what_is_whole_may_be_forgotten() {
        let mut share = Share::new(at(0));
        assert!(share.is_whole(at(0)));
        share.keep(true, at(0));
        assert!(!share.is_whole(at(999)));
        assert!(share.is_whole(at(1_000)));
    }

    #[test]
    fn a_page_goes_on_where_the_one_before_ended() {
        let all = Wanted::default();
        assert_eq!(all.span(), (Time::from_micros(0), Time::from_micros(i64::MAX)));
        let later =
            Wanted { from: Some(at(0)), to: Some(at(9)), before: Some(at(5).micros()), ..all.clone() };
        assert_eq!(later.span(), (at(0), at(5)));
        assert_eq!(Wanted { before: Some(at(11).micros()), ..later }.span(), (at(0), at(9)));
        let refused = |class| Wanted { class: Some(class), ..all.clone() }.is_of_refused();
        assert_eq!([2, 4, 5].map(refused), [false, true, true]);
    }
}
