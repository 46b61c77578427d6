//! Sees what other processes changed: one small read, several times a second, compares change counters and reloads what
//! moved. It also keeps our clock on the database's. A caller who cannot wait asks for the next round at once.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, watch};

use crate::app::App;
use crate::error::{Error, Result};
use crate::ops::{catalog, keys, restore};
use crate::store::meta;
pub use crate::store::meta::Versions;
use crate::store::tx::Tx;

/// The rounds of `refresh`, one after the other.
#[derive(Default)]
pub struct Rounds {
    begun: AtomicU64,
    ended: watch::Sender<u64>,
    wanted: Notify,
}

impl Rounds {
    /// Waits for the end of a round that begins after this call: it sees everything that was there before.
    pub async fn next(&self) {
        let begun = self.begun.load(Ordering::SeqCst);
        let mut ended = self.ended.subscribe();
        self.wanted.notify_one();
        // The sender lives as long as `self`.
        let _ = ended.wait_for(|ended| *ended > begun).await;
    }

    /// Returns when a caller waits for the next round.
    pub async fn wanted(&self) {
        self.wanted.notified().await;
    }

    fn begin(&self) -> Round<'_> {
        Round { rounds: self, number: self.begun.fetch_add(1, Ordering::SeqCst) + 1 }
    }
}

/// A round in progress. Dropping it ends it, also after a failure: waiting callers then see what is known.
struct Round<'a> {
    rounds: &'a Rounds,
    number: u64,
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.rounds.ended.send_replace(self.number);
    }
}

/// Reloads everything that changed since this was last called.
pub async fn refresh(app: &App) -> Result<()> {
    let versions = refresh_but_catalog(app).await?;
    let seen = app.seen.lock().map_err(Error::fault)?.catalog;
    if versions.catalog != seen {
        catalog::load(app).await?;
        app.seen.lock().map_err(Error::fault)?.catalog = versions.catalog;
    }
    Ok(())
}

/// The same for a command: the catalog is most of the work, and the few commands that look at it load it.
pub async fn refresh_but_catalog(app: &App) -> Result<Versions> {
    let round = app.rounds.begin();
    let clock = app.clock.clone();
    let look = move |tx: &mut Tx| {
        clock.follow(|| meta::database_now(tx))?;
        meta::versions(tx)
    };
    let versions = app.store.read(look).await?;
    let seen = *app.seen.lock().map_err(Error::fault)?;
    // Each loaded part is noted at once, so that it is not loaded again every round while another part fails.
    if versions.accounts != seen.accounts {
        keys::load(app).await?;
        restore::load_hold(app).await?;
        app.seen.lock().map_err(Error::fault)?.accounts = versions.accounts;
    }
    // Callers who wait for a key wait for nothing else.
    drop(round);
    if versions.simulator != seen.simulator {
        app.sim.reload().await?;
        app.seen.lock().map_err(Error::fault)?.simulator = versions.simulator;
    }
    Ok(versions)
}

/// Whether requests can be served: the database takes writes and answers, and something is on sale.
pub async fn is_ready(app: &App) -> bool {
    app.catalog.borrow().size() > 0
        && app.store.can_write().await
        && app.store.read(meta::versions).await.is_ok()
}
