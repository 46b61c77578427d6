//! The log of the partner API's calls: `waiting.rs` takes down what was answered, a job writes it every few seconds, and
//! partners read it for a week. Bodies, queries and paths are never kept. Every call is counted, by route and outcome; which
//! are also kept one by one is decided by `domain/call.rs`. A process that dies takes with it the calls since its last batch.

mod waiting;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::sleep;

pub use self::waiting::{Answered, Calls, PLACES};
use super::LANE;
use super::jobs;
use crate::app::App;
use crate::domain::call::{Call, Method, Wanted};
use crate::domain::ids::AccountNo;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::calls;
use crate::store::tx::Tx;

/// How often calls are written. After many rows the pause is longer, by as much for each: so orders notice nothing of it.
pub const EVERY: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(10);
const FOR_EACH: Duration = Duration::from_millis(10);
/// Between two batches, others write.
const BETWEEN: Duration = Duration::from_millis(10);
/// How many calls of an account are looked at for a page, whatever is looked for.
const LOOK_AT: i64 = 5_000;

/// Writes what waits. Answers how long to wait before the next time. What could not be written is written then.
pub async fn round(app: &App) -> Result<Duration> {
    let rows = write(app, BETWEEN).await?;
    Ok((FOR_EACH * rows).clamp(EVERY, LONGEST))
}

/// Writes all that waits, without pauses.
pub async fn write_out(app: &App) -> Result<()> {
    while write(app, Duration::ZERO).await? > 0 {}
    Ok(())
}

/// Writes what is left over, or else what waits. Answers how many rows that were.
async fn write(app: &App, between: Duration) -> Result<u32> {
    let mut unwritten = app.calls.unwritten.lock().await;
    if unwritten.batches.is_empty() {
        app.calls.hand_over(&mut unwritten, app.now());
    }
    let mut rows = 0;
    while let Some(batch) = unwritten.batches.front().cloned() {
        rows += (batch.calls.len() + batch.counts.len()) as u32;
        app.store.write(LANE, move |tx| calls::write(tx, &batch)).await?;
        unwritten.batches.pop_front();
        jobs::alive();
        if !unwritten.batches.is_empty() {
            sleep(between).await;
        }
    }
    Ok(rows)
}

/// Calls of an account, the newest first.
pub struct Page {
    pub calls: Vec<Call>,
    /// Where to go on (`Wanted::before`); `None` when there is nothing more. A page may have no calls and yet a next one,
    /// when many were looked at and none was wanted.
    pub next: Option<i64>,
}

/// Calls that an account made in the last week, as far as they were kept; at most `limit` of them.
pub async fn list(app: &App, account: AccountNo, wanted: Wanted, limit: i64) -> Result<Page> {
    let look = move |tx: &mut Tx| {
        let found = calls::page(tx, account, &wanted, LOOK_AT, limit + 1)?;
        Ok((found, calls::looked_at(tx, account, &wanted, LOOK_AT)?))
    };
    let (mut calls, (looked_at, oldest)) = app.store.read_consistent(look).await?;
    let has_more = calls.len() as i64 > limit;
    calls.truncate(limit.unsigned_abs() as usize);
    let last = match has_more {
        true => calls.last().map(|call| call.at),
        false => oldest.filter(|_| looked_at == LOOK_AT),
    };
    Ok(Page { calls, next: last.map(Time::micros) })
}

/// Calls that were refused alike.
pub struct ErrorGroup {
    pub code: String,
    pub status: i64,
    pub calls: i64,
    pub last_at: Time,
    /// Where, the most frequent first.
    pub routes: Vec<RouteErrors>,
}

pub struct RouteErrors {
    pub method: Method,
    pub route: String,
    pub calls: i64,
}

/// The errors of an account from the hour of this time on, the most frequent first. Each call counts, whether it was kept or
/// not.
pub async fn errors(app: &App, account: AccountNo, since: Time) -> Result<Vec<ErrorGroup>> {
    let found = app.store.read(move |tx| calls::errors(tx, account, since.hour())).await?;
    let mut groups: BTreeMap<(i64, String), ErrorGroup> = BTreeMap::new();
    for refused in found {
        let calls::Refused { status, code, method, route, calls, last_at } = refused;
        let group = groups.entry((status, code.clone())).or_insert_with(|| ErrorGroup {
            code,
            status,
            calls: 0,
            last_at,
            routes: Vec::new(),
        });
        group.calls += calls;
        group.last_at = group.last_at.max(last_at);
        group.routes.push(RouteErrors { method, route, calls });
    }
    let mut groups: Vec<ErrorGroup> = groups.into_values().collect();
    groups.sort_by_key(|group| -group.calls);
    for group in &mut groups {
        group
            .routes
            .sort_by(|one, other| other.calls.cmp(&one.calls).then_with(|| one.route.cmp(&other.route)));
    }
    Ok(groups)
}
