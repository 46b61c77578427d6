//! How the gateway itself is doing: whether requests can be served, and figures that are computed when somebody reads
//! them. A dead job, or a network whose nodes are silent, shows by figures that grow old.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::gauge;

use super::refresh::is_ready;
use super::{jobs, mail, operator, transfers};
use crate::app::App;
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::domain::webhook::WebhookStatus;
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{cursors, deliveries, meta};

/// How long a reader of the figures waits for a slow database; after that the figures stay as they were.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time of the newest block of each network that a node showed us.
#[derive(Default)]
pub struct Heads(Mutex<BTreeMap<Network, Time>>);

impl Heads {
    pub fn saw(&self, network: Network, made: Time) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(network, made);
    }

    fn all(&self) -> BTreeMap<Network, Time> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why requests should go elsewhere; empty when they can be served.
pub async fn unready(app: &App) -> Vec<String> {
    let mut why = Vec::new();
    if !is_ready(app).await {
        why.push("the database does not answer, or nothing is on sale".into());
    }
    if !has_room(app).await {
        why.push("the database has no room".into());
    }
    let late = |(name, age): (String, Duration)| {
        format!("the job {name} has not finished a round for {} s", age.as_secs())
    };
    why.extend(app.jobs.late().into_iter().map(late));
    why
}

/// After a write found no room, this tries again, because callers may have gone elsewhere.
async fn has_room(app: &App) -> bool {
    if !app.store.has_room() {
        let now = app.now().micros().to_string();
        if let Err(error) = app.store.finish(0, move |tx| meta::set(tx, "tried_room", &now)).await {
            tracing::debug!(%error, "the database has no room yet");
        }
    }
    app.store.has_room()
}

/// Brings every figure up to date.
pub async fn tell(app: &App) {
    let now = app.now();
    app.jobs.tell_ages();
    let (streams, watches) = app.live.counts();
    gauge!("simgate_live_streams").set(streams as f64);
    gauge!("simgate_live_watches").set(watches as f64);
    for (network, made) in app.heads.all() {
        gauge!("simgate_chain_head_age_seconds", "network" => network.as_str()).set(age(now, made));
    }
    match tokio::time::timeout(PATIENCE, tell_stored(app, now)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "some metrics are out of date"),
        Err(_) => tracing::debug!("the database is slow: some metrics are out of date"),
    }
}

/// Updates the figures that only the database knows.
async fn tell_stored(app: &App, now: Time) -> Result<()> {
    for &network in app.chains.keys() {
        let read = move |tx: &mut Tx| Ok((cursors::get(tx, network)?, cursors::turn(tx, network)?));
        let (Some(cursor), Some(turn)) = app.store.read(read).await? else { continue };
        let name = network.as_str();
        gauge!("simgate_scan_lag_seconds", "network" => name).set(age(now, cursor.scanned_time));
        let ours = turn.until >= now && turn.holder.split(' ').next() == Some(jobs::instance());
        gauge!("simgate_scan_turn", "network" => name).set(if ours { 1.0 } else { 0.0 });
    }
    let stuck: i64 = operator::stuck_orders(app).await?.iter().map(|(_, count)| count).sum();
    gauge!("simgate_orders_stuck").set(stuck as f64);
    gauge!("simgate_transfers_unmatched").set(transfers::count_unmatched(app).await? as f64);
    let (counts, oldest) =
        app.store.read(|tx| Ok((deliveries::counts(tx)?, deliveries::oldest(tx)?))).await?;
    for status in WebhookStatus::ALL {
        let count = counts.iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| *count);
        gauge!("simgate_webhooks", "status" => status.as_str().to_ascii_lowercase()).set(count as f64);
    }
    gauge!("simgate_webhook_queue_age_seconds").set(oldest.map_or(0.0, |oldest| age(now, oldest)));
    gauge!("simgate_mails_late").set(mail::count_late(app).await? as f64);
    Ok(())
}

fn age(now: Time, then: Time) -> f64 {
    (now.micros() - then.micros()) as f64 / 1e6
}
