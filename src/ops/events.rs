//! The event log: what is told of each change, and reading it back. Every event is written together with its change, by
//! the operation that makes it.

pub mod tail;

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::app::App;
use crate::domain::esim::Usage;
use crate::domain::esim::tidings::Tidings;
use crate::domain::event::{Event, EventKind};
use crate::domain::ids::AccountNo;
use crate::domain::order::Order;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::events;
use crate::store::tx::Tx;
use crate::wire::EsimStatusWord;
use crate::wire::esims::{EsimFacts, EsimStatusChanged, EsimUsageThreshold};
use crate::wire::orders::{OrderFacts, topup_view};

/// An order or top-up as its event shows it: as it stands then, and without what opens its eSIM.
pub(super) fn told(app: &App, order: &Order, topups: &[Order], now: Time) -> Result<String> {
    if order.id.is_topup() {
        return written(&topup_view(order));
    }
    let order_no = app.numbers.of_order(order).unwrap_or_default();
    written(&OrderFacts::of(order, order_no, topups, now))
}

/// An eSIM as an event shows it, once its reading is stored.
pub(super) fn told_of_esim(order: &Order, usage: &Usage, tidings: Tidings) -> Result<String> {
    let esim = EsimFacts::of(order, usage);
    match tidings {
        Tidings::StatusChanged { before } => {
            written(&EsimStatusChanged { esim, previous_status: EsimStatusWord(before) })
        }
        Tidings::Reached { threshold } => written(&EsimUsageThreshold { esim, threshold }),
    }
}

/// The object of an event, as JSON.
pub(super) fn written(data: &impl Serialize) -> Result<String> {
    serde_json::to_string(data).map_err(Error::fault)
}

/// Which events to read.
#[derive(Clone)]
pub struct Wanted {
    /// The place in the log to go on from.
    pub after: i64,
    /// All kinds when empty.
    pub kinds: Vec<EventKind>,
    pub limit: i64,
    /// How long to wait for the first one.
    pub wait: Duration,
}

pub struct Page {
    pub events: Vec<Event>,
    /// Where the next page begins.
    pub next: i64,
    pub has_more: bool,
}

/// The next events of an account. Whatever was answered before this call is in it, and nothing is ever added before
/// `next`.
pub async fn read(app: &App, account: AccountNo, wanted: Wanted) -> Result<Page> {
    let until = Instant::now() + wanted.wait;
    let mut waiter = match wanted.wait.is_zero() {
        true => None,
        false => Some(tail::wait(app, account)?),
    };
    loop {
        let settled = tail::settled(app).await?;
        let page = page(app, account, &wanted, settled).await?;
        let Some(waiter) = waiter.as_mut().filter(|_| page.events.is_empty()) else { return Ok(page) };
        if !waiter.until_more(app, until).await {
            return Ok(page);
        }
    }
}

async fn page(app: &App, account: AccountNo, wanted: &Wanted, settled: i64) -> Result<Page> {
    let Wanted { after, kinds, limit, .. } = wanted.clone();
    let look = move |tx: &mut Tx| events::page(tx, account, after, settled, &kinds, limit + 1);
    let mut found = app.store.read(look).await?;
    let has_more = found.len() as i64 > limit;
    found.truncate(limit.unsigned_abs() as usize);
    // Everything up to here was looked at, whether it was wanted or not.
    let looked_at = found.last().filter(|_| has_more).map_or(settled, |last| last.no);
    Ok(Page { next: looked_at.max(after), events: found, has_more })
}
