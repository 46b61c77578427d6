//! Seeing what other processes changed: one small read, several times a second, compares change counters and
//! reloads what moved. It also keeps our clock on the database's.

use crate::app::App;
use crate::error::{Error, Result};
use crate::ops::{catalog, keys, restore};
use crate::store::meta;
pub use crate::store::meta::Versions;

/// Reloads everything that changed since this was last called.
pub async fn refresh(app: &App) -> Result<()> {
    let (now, versions) = app.store.read(|tx| Ok((meta::database_now(tx)?, meta::versions(tx)?))).await?;
    if let Some(now) = now {
        app.clock.follow(now);
    }
    let seen = *app.seen.lock().map_err(Error::fault)?;
    if versions.accounts != seen.accounts {
        keys::load(app).await?;
        restore::load_hold(app).await?;
    }
    if versions.catalog != seen.catalog {
        catalog::load(app).await?;
    }
    if versions.simulator != seen.simulator {
        app.sim.reload().await?;
    }
    *app.seen.lock().map_err(Error::fault)? = versions;
    Ok(())
}

/// Whether requests can be served: the database answers, and there is something on sale.
pub async fn is_ready(app: &App) -> bool {
    app.catalog.borrow().size() > 0 && app.store.read(meta::versions).await.is_ok()
}
