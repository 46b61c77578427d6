//! The end of the log: up to which place it is settled, and who waits for more.
//!
//! A place is settled when nothing can appear at or before it any more. On PostgreSQL that takes two looks: the first reads
//! the last place that was taken and who writes then; these must have ended (`store::events`). Told is only the place of an
//! event that is there: a crash of PostgreSQL may give places again that nobody filled. Callers share looks. Those who wait
//! for more are woken by one follower for the whole process, which looks only while somebody waits.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as Turn, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::ops::LANE;
use crate::store::events::{self, Mark};
use crate::telemetry::EveryMinute;

/// How long a look waits for transactions to end.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many looks somebody takes who must know the end of the log.
const LOOKS: usize = 5;
/// So many places are skipped beyond those that were told of and are lost: more than are filled meanwhile.
const SKIPPED: i64 = 1_000_000;
/// The pause between two looks at transactions that are about to end.
const SOON: Duration = Duration::from_millis(3);
/// How often the follower looks for more.
const EVERY: Duration = Duration::from_millis(50);
/// How many calls of one account may wait at once.
const MOST_WAITING: usize = 10;

static TROUBLE: EveryMinute = EveryMinute::new();

#[derive(Default)]
pub struct Tail {
    looks: Mutex<Looks>,
    /// Held by the one who looks.
    turn: Turn<()>,
    waiters: Mutex<Waiters>,
}

#[derive(Default)]
struct Waiters {
    of: HashMap<AccountNo, Waiting>,
    /// Whether there is a follower to wake them.
    followed: bool,
}

#[derive(Clone, Copy, Default)]
struct Looks {
    /// How many looks have begun, and which of them has ended last.
    begun: u64,
    ended: u64,
    end: End,
}

/// How far the log is settled.
#[derive(Clone, Copy, Default)]
pub struct End {
    pub place: i64,
    /// Whether all is settled that was committed before the look; otherwise a transaction takes too long.
    pub is_whole: bool,
}

/// Those of an account who wait, and what wakes them.
struct Waiting {
    callers: usize,
    woken: watch::Sender<()>,
}

impl Tail {
    fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many calls wait now.
    pub fn callers(&self) -> usize {
        self.waiters().of.values().map(|entry| entry.callers).sum()
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Up to which place the log is settled. All that was committed before this call is, unless a transaction takes too long.
pub async fn settled(app: &App) -> Result<i64> {
    Ok(end(app).await?.place)
}

/// The place of the last event that was committed before this call.
pub async fn now(app: &App) -> Result<i64> {
    for _ in 0..LOOKS {
        let end = end(app).await?;
        if end.is_whole {
            return Ok(end.place);
        }
    }
    Err(Refusal::Overloaded.into())
}

pub async fn end(app: &App) -> Result<End> {
    let tail = &app.tail;
    let mine = tail.looks().begun + 1;
    let _turn = tail.turn.lock().await;
    let told = {
        let mut looks = tail.looks();
        // Somebody has looked since this call began.
        if looks.ended >= mine {
            return Ok(looks.end);
        }
        looks.begun += 1;
        looks.end.place
    };
    let end = look(app, told).await?;
    let mut looks = tail.looks();
    looks.ended = looks.begun;
    looks.end = end;
    Ok(end)
}

/// Looks until every place that was taken before is settled. `told` is settled already.
async fn look(app: &App, told: i64) -> Result<End> {
    let Mark { last, mut writers } = app.store.read(events::mark).await?;
    if last < told {
        tracing::error!("the database has lost events that were told of; their places stay empty");
        app.store.write(LANE, move |tx| events::skip(tx, told - last + SKIPPED)).await?;
    }
    if last <= told {
        return Ok(End { place: told, is_whole: true });
    }
    let give_up = Instant::now() + PATIENCE;
    while !writers.is_empty() {
        if Instant::now() >= give_up {
            if let Some(left_out) = TROUBLE.turn() {
                tracing::warn!(left_out, "events wait for a transaction in PostgreSQL that does not end");
            }
            return Ok(End { place: told, is_whole: false });
        }
        sleep(SOON).await;
        let still = app.store.read(events::writers).await?;
        writers.retain(|writer| still.contains(writer));
    }
    let filled = app.store.read(move |tx| events::last_until(tx, last)).await?;
    Ok(End { place: filled.max(told), is_whole: true })
}

/// A caller who waits for more events of an account. The account has one caller less when it is dropped.
pub struct Waiter {
    app: App,
    account: AccountNo,
    woken: watch::Receiver<()>,
}

pub fn wait(app: &App, account: AccountNo) -> Result<Waiter> {
    let mut all = app.tail.waiters();
    let none = || Waiting { callers: 0, woken: watch::Sender::new(()) };
    let entry = all.of.entry(account).or_insert_with(none);
    if entry.callers >= MOST_WAITING {
        return Err(Refusal::TooManyWaiting { retry_after_secs: 1 }.into());
    }
    entry.callers += 1;
    let woken = entry.woken.subscribe();
    if !std::mem::replace(&mut all.followed, true) {
        app.tasks.spawn(follow(app.clone()));
    }
    Ok(Waiter { app: app.clone(), account, woken })
}

impl Waiter {
    /// True when there may be more events; false when it is time to answer without.
    pub async fn until_more(&mut self, app: &App, until: Instant) -> bool {
        tokio::select! {
            woken = self.woken.changed() => woken.is_ok(),
            () = sleep_until(until) => false,
            () = app.stopping.cancelled() => false,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut all = self.app.tail.waiters();
        if let Some(entry) = all.of.get_mut(&self.account) {
            entry.callers -= 1;
            if entry.callers == 0 {
                all.of.remove(&self.account);
            }
        }
    }
}

/// Wakes those who wait, as long as there are some.
async fn follow(app: App) {
    let mut seen = None;
    loop {
        match step(&app, seen).await {
            Ok(settled) => seen = Some(settled),
            Err(error) => {
                if let Some(left_out) = TROUBLE.turn() {
                    tracing::warn!(%error, left_out, "the end of the event log cannot be read; trying again");
                }
            }
        }
        let stops = app.stopping.run_until_cancelled(sleep(EVERY)).await.is_none();
        let mut all = app.tail.waiters();
        if stops || all.of.is_empty() {
            all.followed = false;
            return;
        }
    }
}

/// Wakes those who have new events after `seen`. Answers how far the log is settled now.
async fn step(app: &App, seen: Option<i64>) -> Result<i64> {
    let settled = settled(app).await?;
    let Some(seen) = seen else {
        // Whoever began to wait before this look may have read before it.
        app.tail.waiters().of.values().for_each(|entry| entry.woken.send_replace(()));
        return Ok(settled);
    };
    if settled > seen {
        let owners = app.store.read(move |tx| events::owners(tx, seen, settled)).await?;
        let all = app.tail.waiters();
        for entry in owners.iter().filter_map(|owner| all.of.get(owner)) {
            entry.woken.send_replace(());
        }
    }
    Ok(settled)
}
