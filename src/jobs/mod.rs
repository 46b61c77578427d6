//! Work that no request waits for. Each job is safe to run on many instances at once, and is supervised: one that
//! panics is started again. `ops/jobs.rs` knows how they are doing.

mod balance_audit;
mod batches;
mod days;
mod low_balance;
mod mail;
mod recover;
mod retention;
mod scan;
mod settler;
mod suppliers;
mod usage;
mod watch;
mod webhooks;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use metrics::counter;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::error::Result;
use crate::ops::jobs;
use crate::ops::scan::Halt;
use crate::telemetry::EveryMinute;

/// The pause before a dead job is started again; it grows up to the longest while the job dies soon.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long a job must live to count as having run well.
const WELL: Duration = Duration::from_secs(60);

/// Starts every job; they end when `stop` is cancelled.
pub fn start(app: &App, stop: &CancellationToken) {
    let patience = Duration::from_secs(app.settings.job_patience_s);
    let supplier = Duration::from_millis(app.settings.supplier_timeout_ms.unsigned_abs());
    supervise(app, stop, "watch".into(), Some(patience), watch::run);
    // A round asks suppliers, and waits as long as they may take.
    supervise(app, stop, "recover".into(), Some(patience + supplier), recover::run);
    supervise(app, stop, "mail".into(), None, mail::run);
    supervise(app, stop, "retention".into(), None, retention::run);
    supervise(app, stop, "low balances".into(), None, low_balance::run);
    supervise(app, stop, "days".into(), None, days::run);
    supervise(app, stop, "usage".into(), None, usage::run);
    supervise(app, stop, "webhooks".into(), None, webhooks::run);
    supervise(app, stop, "batches".into(), None, batches::run);
    if !app.settings.suppliers.is_empty() {
        supervise(app, stop, "suppliers".into(), None, suppliers::run);
    }
    for chain in app.chains.values() {
        let network = chain.network().as_str();
        let scanned = chain.clone();
        let scan = move |app, stop| scan::run(app, scanned.clone(), stop);
        supervise(app, stop, format!("scan {network}"), Some(patience), scan);
        let chain = chain.clone();
        let look = move |app, stop| balance_audit::run(app, chain.clone(), stop);
        supervise(app, stop, format!("resting {network}"), None, look);
    }
    for &network in app.settler.iter().flat_map(|settler| settler.terminals.keys()) {
        let settle = move |app, stop| settler::run(app, network, stop);
        supervise(app, stop, format!("settle {}", network.as_str()), Some(patience), settle);
    }
}

/// Ends a round. A failure is logged once a minute, and the round is tried again.
fn ended(round: Result<()>, lines: &EveryMinute, trouble: &str) {
    if let Err(error) = round
        && let Some(left_out) = lines.turn()
    {
        tracing::warn!(%error, left_out, "{trouble}; trying again");
    }
    jobs::finished();
}

/// Logs what stopped a round on a network, once a minute.
fn halted(halt: &Halt, lines: &EveryMinute, network: &str, sentence: &str) {
    let Some(left_out) = lines.turn() else { return };
    match halt {
        Halt::Chain(trouble) => tracing::warn!(network, %trouble, left_out, "{sentence}"),
        Halt::Ours(error) => tracing::warn!(network, %error, left_out, "{sentence}"),
    }
}

/// Runs a job until `stop`. `limit` is how long a round may take when money depends on the job.
fn supervise<F>(
    app: &App,
    stop: &CancellationToken,
    name: String,
    limit: Option<Duration>,
    make: impl Fn(App, CancellationToken) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let (job, stop, app) = (app.jobs.enlist(name, limit), stop.clone(), app.clone());
    let tasks = app.tasks.clone();
    tasks.spawn(async move {
        let mut pause = FIRST_PAUSE;
        loop {
            let started = Instant::now();
            let run = job.clone().run(&stop, make(app.clone(), stop.clone()));
            let ended = AssertUnwindSafe(run).catch_unwind().await;
            if stop.is_cancelled() {
                return;
            }
            if started.elapsed() >= WELL {
                pause = FIRST_PAUSE;
            }
            let why = ended.err().map_or("it ended by itself".into(), |panic| said(&*panic));
            counter!("simgate_job_panics_total", "job" => job.name.clone()).increment(1);
            tracing::error!(job = job.name, why, "a job died; it is started again in {} s", pause.as_secs());
            stop.run_until_cancelled(tokio::time::sleep(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    });
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
