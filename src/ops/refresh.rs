//! Seeing what other processes changed: one small read, several times a second, compares change counters and
//! reloads what moved. It also keeps our clock on the database's.

use crate::app::App;
use crate::error::Result;
use crate::ops::{catalog, keys};
use crate::store::meta;
pub use crate::store::meta::Versions;

/// Reloads everything that changed since `seen`, and answers what is seen now.
pub async fn refresh(app: &App, seen: Versions) -> Result<Versions> {
    let (now, versions) = app.store.read(|tx| Ok((meta::database_now(tx)?, meta::versions(tx)?))).await?;
    if let Some(now) = now {
        app.clock.follow(now);
    }
    if versions.accounts != seen.accounts {
        keys::load(app).await?;
    }
    if versions.catalog != seen.catalog {
        catalog::load(app).await?;
    }
    if versions.simulator != seen.simulator {
        app.sim.reload().await?;
    }
    Ok(versions)
}

/// Whether requests can be served: the database answers, and there is something on sale.
pub async fn is_ready(app: &App) -> bool {
    !app.catalog.borrow().lists.is_empty() && app.store.read(meta::versions).await.is_ok()
}
