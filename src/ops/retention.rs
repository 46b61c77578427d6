//! What is forgotten, and when. A day after they ended: logins and what belongs to them, and who was mailed how much. After
//! `keep_unpaid_days`: unpaid checkouts and invoices, signatures that moved nothing, transactions of gas keys. Thirty days
//! after their last use: activation codes. After a week: calls of the partner API. After thirty days: tries to deliver to webhooks. After
//! ninety: events, and lists of orders that were placed at once. After thirteen months: what was used on each day. The
//! books, and all that proves them, stay for ever.

use metrics::counter;

use crate::app::App;
use crate::domain::batch;
use crate::domain::call;
use crate::domain::esim::USAGE_DAYS;
use crate::domain::event::KEPT_DAYS;
use crate::domain::ids::OrderId;
use crate::domain::login::DAY_MS;
use crate::domain::network::Network;
use crate::domain::session::Limits;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::retention::{self, Aged};
use crate::store::tx::Tx;
use crate::store::{
    batches, calls, cursors, deliveries, esims, events, guesses, logins, magic_links, mailings, mails,
    sessions, tokens,
};

use super::LANE;
use super::jobs;

/// How many rows of each kind are deleted in one write.
const AT_ONCE: i64 = 100;
/// The same of batches, each of which has up to a hundred lines.
const BATCHES_AT_ONCE: i64 = 5;
/// How many days tries to deliver to webhooks are kept.
const DELIVERY_DAYS: i64 = 30;

/// Forgets logins, attempts, guessed coupons, session tokens, stays on pages, magic links, mails, and how many mails went to a
/// mailbox, a day after they ended.
pub async fn forget_logins(app: &App) -> Result<()> {
    let now = app.now();
    let before = now.plus_millis(-DAY_MS);
    let mut more = true;
    while more {
        more = app
            .store
            .write(LANE, move |tx| {
                let logins = logins::forget(tx, before, now, AT_ONCE)?;
                let sessions = tokens::forget_sessions(tx, before, AT_ONCE)?;
                let stays = sessions::forget(tx, Limits::good(before), AT_ONCE)?;
                let links = magic_links::forget(tx, before, AT_ONCE)?;
                let guesses = guesses::forget(tx, before, AT_ONCE)?;
                let mailings = mailings::forget(tx, before.day(), AT_ONCE)?;
                let mails = mails::forget(tx, before, AT_ONCE)?;
                Ok(mails || mailings || logins || sessions || stays || links || guesses)
            })
            .await?;
        jobs::alive();
    }
    Ok(())
}

/// Forgets what money no longer needs. False when it must wait, because a payment of that time may be unseen.
pub async fn forget_unpaid(app: &App) -> Result<bool> {
    let before = app.now().plus_days(-app.settings.keep_unpaid_days);
    if !is_scanned(app, before).await? {
        return Ok(false);
    }
    // A checkout stays as long as a signature for it.
    until_none(app, "authorizations", move |tx| retention::forget_authorizations(tx, before, AT_ONCE))
        .await?;
    for network in Network::ALL {
        let forget = move |tx: &mut Tx| retention::forget_settlements(tx, network, before, AT_ONCE);
        until_none(app, "settlements", forget).await?;
    }
    through(app, "checkouts", before, retention::old_checkouts, retention::forget_checkouts).await?;
    through(app, "invoices", before, retention::old_invoices, retention::forget_invoices).await?;
    Ok(true)
}

/// Whether every network was scanned beyond this time.
async fn is_scanned(app: &App, time: Time) -> Result<bool> {
    let networks: Vec<Network> = app.chains.keys().copied().collect();
    let read = move |tx: &mut Tx| {
        for &network in &networks {
            if cursors::get(tx, network)?.is_none_or(|cursor| cursor.scanned_time <= time) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    app.store.read(read).await
}

/// Forgets until nothing is left, for kinds whose old rows nearly all go.
async fn until_none(
    app: &App,
    kind: &'static str,
    forget: impl Fn(&mut Tx) -> Result<u64> + Copy + Send + Sync + 'static,
) -> Result<()> {
    while count(kind, app.store.write(LANE, forget).await?) > 0 {
        jobs::alive();
    }
    Ok(())
}

/// Walks through the old rows once, part by part, for kinds whose old rows often stay.
async fn through(
    app: &App,
    kind: &'static str,
    before: Time,
    old: fn(&mut Tx, Time, &Aged, i64) -> Result<Vec<Aged>>,
    forget: fn(&mut Tx, &[Aged], Time) -> Result<u64>,
) -> Result<()> {
    let mut after = Aged::first();
    loop {
        let part = app.store.read(move |tx| old(tx, before, &after, AT_ONCE)).await?;
        let Some(last) = part.last() else { return Ok(()) };
        after = last.clone();
        count(kind, app.store.write(LANE, move |tx| forget(tx, &part, before)).await?);
        jobs::alive();
    }
}

/// Forgets what was used on days that are too long ago.
pub async fn forget_usage(app: &App) -> Result<()> {
    let before = app.now().day() - USAGE_DAYS;
    until_none(app, "usage days", move |tx| esims::forget_days(tx, before, AT_ONCE)).await
}

/// Forgets events that are too long ago.
pub async fn forget_events(app: &App) -> Result<()> {
    let before = app.now().plus_days(-KEPT_DAYS);
    until_none(app, "events", move |tx| events::forget(tx, before, AT_ONCE)).await
}

/// Forgets which calls were made, and how many, a week ago.
pub async fn forget_calls(app: &App) -> Result<()> {
    let before = app.now().plus_days(-call::KEPT_DAYS);
    until_none(app, "calls", move |tx| calls::forget(tx, before, AT_ONCE)).await?;
    until_none(app, "call counts", move |tx| calls::forget_counts(tx, before.hour(), AT_ONCE)).await?;
    app.store.write(LANE, move |tx| calls::forget_batches(tx, before)).await
}

/// Forgets tries to deliver to webhooks that are too long ago, and what waited for events that are forgotten.
pub async fn forget_deliveries(app: &App) -> Result<()> {
    let before = app.now().plus_days(-DELIVERY_DAYS);
    until_none(app, "deliveries", move |tx| deliveries::forget(tx, before, AT_ONCE)).await?;
    until_none(app, "waiting deliveries", move |tx| deliveries::forget_waiting(tx, AT_ONCE)).await
}

/// Forgets orders that were placed at once too long ago: who asked for what. The orders themselves stay.
pub async fn forget_batches(app: &App) -> Result<()> {
    let before = app.now().plus_days(-batch::KEPT_DAYS);
    until_none(app, "batches", move |tx| batches::forget(tx, before, BATCHES_AT_ONCE)).await
}

/// Forgets activation codes that were used, given back or not used in time. They open a profile that somebody owns.
pub async fn forget_codes(app: &App) -> Result<()> {
    let (now, mut after) = (app.now(), OrderId::from_text(""));
    loop {
        let part = app.store.read(move |tx| retention::codes(tx, &after, AT_ONCE)).await?;
        let Some((last, _)) = part.last() else { return Ok(()) };
        after = last.clone();
        let over: Vec<OrderId> = part
            .into_iter()
            .filter(|(_, life)| life.is_some_and(|life| life.is_over(now)))
            .map(|(order, _)| order)
            .collect();
        if !over.is_empty() {
            let gone = over.len() as u64;
            app.store.write(LANE, move |tx| retention::forget_codes(tx, &over)).await?;
            count("codes", gone);
        }
        jobs::alive();
    }
}

fn count(kind: &'static str, gone: u64) -> u64 {
    counter!("simgate_forgotten_total", "kind" => kind).increment(gone);
    gone
}
