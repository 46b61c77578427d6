//! The calls that wait to be written down. Whoever answers a call notes it here: under a lock that nobody holds for long,
//! without the database, and in bounded memory. When there is no place left, calls are counted all the same.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::counter;
use tokio::sync::Mutex as Gate;

use crate::domain::call::{Call, Count, Method, REFUSED_FROM, Share};
use crate::domain::ids::{AccountNo, KeyId};
use crate::domain::time::Time;
use crate::ops::jobs;
use crate::store::calls::Batch;

/// How many calls may wait, of all accounts; those that succeeded leave half of the places to those that were refused.
pub const PLACES: usize = 1_000;
const PLACES_OF_ANSWERED: usize = PLACES / 2;
/// How many counts may wait. An account has one for each route and outcome of an hour; more mean that the database has been
/// away for long.
const COUNTS: usize = 40_000;
/// How many rows are written at once, so that a write stays short.
pub const AT_ONCE: usize = 100;
/// Accounts are spread over so many locks.
const SHARDS: usize = 16;

/// A call as it was answered.
pub struct Answered<'a> {
    pub account: AccountNo,
    pub key_id: &'a str,
    pub method: Method,
    /// The pattern of the path.
    pub route: &'a str,
    pub status: u16,
    /// The problem's code.
    pub code: Option<&'static str>,
    pub ms: i64,
    pub request_id: &'a str,
}

impl Answered<'_> {
    fn is_refused(&self) -> bool {
        i64::from(self.status) >= REFUSED_FROM
    }
}

pub struct Calls {
    shards: [Mutex<Shard>; SHARDS],
    /// How many places are taken.
    kept: AtomicUsize,
    counted: AtomicUsize,
    /// How many calls found no place since that was last told, and how many could not even be counted.
    unkept: AtomicU64,
    uncounted: AtomicU64,
    /// By this name the database knows what was written here.
    writer: Arc<str>,
    /// What was taken from the shards and is not written yet; whoever writes has it.
    pub(super) unwritten: Gate<Unwritten>,
}

#[derive(Default)]
struct Shard {
    shares: HashMap<AccountNo, Share>,
    calls: Vec<Call>,
    counts: HashMap<AccountNo, Vec<Count>>,
}

/// Batches in their order, and the number of the last one.
#[derive(Default)]
pub(super) struct Unwritten {
    pub batches: VecDeque<Arc<Batch>>,
    last_no: i64,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls {
            shards: Default::default(),
            kept: AtomicUsize::new(0),
            counted: AtomicUsize::new(0),
            unkept: AtomicU64::new(0),
            uncounted: AtomicU64::new(0),
            writer: jobs::holder().into(),
            unwritten: Gate::default(),
        }
    }
}

impl Calls {
    /// Notes a call that was answered now.
    pub fn note(&self, call: &Answered, now: Time) {
        let number = call.account.0.unsigned_abs() as usize % SHARDS;
        let mut shard = open(&self.shards[number]);
        self.count(&mut shard, call, now);
        self.keep(&mut shard, call, now);
    }

    fn count(&self, shard: &mut Shard, call: &Answered, now: Time) {
        let (hour, status, code) = (now.hour(), i64::from(call.status), call.code.unwrap_or_default());
        let counts = shard.counts.entry(call.account).or_default();
        let same = |count: &&mut Count| {
            count.hour == hour
                && count.status == status
                && count.method == call.method
                && count.code == code
                && count.route == call.route
        };
        if let Some(count) = counts.iter_mut().find(same) {
            count.calls += 1;
            count.ms += call.ms;
            count.last_at = count.last_at.max(now);
            return;
        }
        if self.counted.load(Ordering::Relaxed) >= COUNTS {
            self.uncounted.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.counted.fetch_add(1, Ordering::Relaxed);
        counts.push(Count {
            account: call.account,
            hour,
            method: call.method,
            route: call.route.into(),
            status,
            code,
            calls: 1,
            ms: call.ms,
            last_at: now,
        });
    }

    fn keep(&self, shard: &mut Shard, call: &Answered, now: Time) {
        let share = shard.shares.entry(call.account).or_insert_with(|| Share::new(now));
        let Some(at) = share.keep(call.is_refused(), now) else { return };
        let places = if call.is_refused() { PLACES } else { PLACES_OF_ANSWERED };
        if self.kept.load(Ordering::Relaxed) >= places {
            self.unkept.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.kept.fetch_add(1, Ordering::Relaxed);
        shard.calls.push(Call {
            account: call.account,
            at,
            method: call.method,
            route: call.route.into(),
            status: call.status.into(),
            code: call.code.map(str::to_string),
            ms: call.ms,
            request_id: call.request_id.into(),
            key_id: KeyId::from_text(call.key_id),
        });
    }

    /// Puts all that waits into batches, and makes their places free.
    pub(super) fn hand_over(&self, unwritten: &mut Unwritten, now: Time) {
        let (mut calls, mut counts) = (Vec::new(), Vec::new());
        for shard in &self.shards {
            let (its_calls, its_counts) = {
                let mut shard = open(shard);
                shard.shares.retain(|_, share| !share.is_whole(now));
                (mem::take(&mut shard.calls), mem::take(&mut shard.counts))
            };
            calls.extend(its_calls);
            counts.extend(its_counts.into_values().flatten());
        }
        self.kept.fetch_sub(calls.len(), Ordering::Relaxed);
        self.counted.fetch_sub(counts.len(), Ordering::Relaxed);
        self.tell_of_dropped();
        calls.sort_unstable_by_key(|call| (call.account, call.at));
        counts.sort_unstable_by(|one, other| key(one).cmp(&key(other)));
        let mut add = |calls: Vec<Call>, counts: Vec<Count>| {
            unwritten.last_no += 1;
            let (writer, no) = (self.writer.clone(), unwritten.last_no);
            unwritten.batches.push_back(Arc::new(Batch { writer, no, at: now, calls, counts }));
        };
        // Counts first: they are what must not be lost.
        cut(counts).for_each(|counts| add(Vec::new(), counts));
        cut(calls).for_each(|calls| add(calls, Vec::new()));
    }

    fn tell_of_dropped(&self) {
        for (from, dropped) in [("list", &self.unkept), ("counts", &self.uncounted)] {
            let calls = dropped.swap(0, Ordering::Relaxed);
            if calls > 0 {
                counter!("simgate_api_calls_dropped_total", "from" => from).increment(calls);
            }
        }
    }
}

fn open(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the rows of counts are locked by, in one order everywhere.
fn key(count: &Count) -> (AccountNo, i64, &str, &str, i64, &str) {
    (count.account, count.hour, &count.route, count.method.as_str(), count.status, count.code)
}

/// Parts of rows that are written at once.
fn cut<T>(rows: Vec<T>) -> impl Iterator<Item = Vec<T>> {
    let mut rest = rows.into_iter();
    std::iter::from_fn(move || {
        let part: Vec<T> = rest.by_ref().take(AT_ONCE).collect();
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_micros(1_700_000_000_000_000);

    fn answered(account: i64, status: u16, code: Option<&'static str>) -> Answered<'static> {
        let (key_id, route, request_id) = ("key_1", "/api/b2b/v1/orders", "r-1");
        let account = AccountNo(account);
        Answered { account, key_id, method: Method::Post, route, status, code, ms: 3, request_id }
    }

    fn taken(calls: &Calls) -> (Vec<Call>, Vec<Count>) {
        let mut unwritten = Unwritten::default();
        calls.hand_over(&mut unwritten, NOW);
        let batches: Vec<Arc<Batch>> = unwritten.batches.into();
        assert!(batches.iter().all(|batch| batch.calls.len() + batch.counts.len() <= AT_ONCE));
        assert!(batches.iter().zip(1..).all(|(batch, no)| batch.no == no));
        let kept = batches.iter().flat_map(|batch| batch.calls.clone()).collect();
        (kept, batches.iter().flat_map(|batch| batch.counts.clone()).collect())
    }

    #[test]
    fn all_are_counted_and_some_are_kept() {
        let calls = Calls::default();
        for _ in 0..150 {
            calls.note(&answered(7, 200, None), NOW);
            calls.note(&answered(7, 404, Some("ORDER_NOT_FOUND")), NOW);
        }
        let (kept, counts) = taken(&calls);
        let refused = kept.iter().filter(|call| call.code.as_deref() == Some("ORDER_NOT_FOUND")).count();
        assert_eq!((kept.len(), refused), (120, 100));
        let sums: Vec<_> =
            counts.iter().map(|count| (count.status, count.code, count.calls, count.ms)).collect();
        assert_eq!(sums, [(200, "", 150, 450), (404, "ORDER_NOT_FOUND", 150, 450)]);
        let (kept, counts) = taken(&calls);
        assert!(kept.is_empty() && counts.is_empty());
    }

    #[test]
    fn without_places_calls_are_counted_only() {
        let calls = Calls::default();
        for account in 0..50 {
            for _ in 0..20 {
                calls.note(&answered(account, 200, None), NOW);
            }
        }
        assert_eq!(calls.unkept.load(Ordering::Relaxed), 500);
        for account in 0..10 {
            for _ in 0..100 {
                calls.note(&answered(account, 500, Some("INTERNAL")), NOW);
            }
        }
        assert_eq!(calls.unkept.load(Ordering::Relaxed), 1_000);
        let (kept, counts) = taken(&calls);
        assert_eq!(kept.len(), PLACES);
        assert_eq!(counts.iter().map(|count| count.calls).sum::<i64>(), 2_000);
        // The places are free again.
        assert_eq!(calls.kept.load(Ordering::Relaxed), 0);
        calls.note(&answered(99, 200, None), NOW);
        assert_eq!(taken(&calls).0.len(), 1);
    }

    #[test]
    fn counts_have_their_bound_too() {
        let calls = Calls::default();
        for account in 0..COUNTS as i64 + 5 {
            calls.note(&answered(account, 200, None), NOW);
        }
        // What is known already is counted on.
        calls.note(&answered(0, 200, None), NOW);
        let (_, counts) = taken(&calls);
        assert_eq!((counts.len(), counts[0].calls), (COUNTS, 2));
        assert_eq!(calls.counted.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn counts_are_in_the_order_of_their_key() {
        let calls = Calls::default();
        for account in (0..300).rev() {
            calls.note(&answered(account, 404, Some("B")), NOW);
            calls.note(&answered(account, 404, Some("A")), NOW.plus_millis(3_600_000));
            calls.note(&answered(account, 200, None), NOW);
        }
        let (_, counts) = taken(&calls);
        assert_eq!(counts.len(), 900);
        assert!(counts.is_sorted_by(|one, next| key(one) < key(next)));
    }
}
