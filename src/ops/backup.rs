//! A copy of the database while the service runs.

use std::path::PathBuf;

use super::audit::{self, audit_line};
use crate::app::App;
use crate::error::{Error, Result};
use crate::store::backup;
pub use crate::store::backup::Backup;

/// Copies everything to a new file that only its owner can read, because it holds all that the database holds.
pub async fn copy(app: &App, to: PathBuf) -> Result<Backup> {
    let location = app.store.location().clone();
    // Blocking work, so it leaves the async threads alone.
    tokio::task::spawn_blocking(move || backup::copy(&location, &to)).await.map_err(Error::fault)?
}

/// The same by an operator, in the audit log.
pub async fn copy_by_hand(app: &App, actor: &str, to: PathBuf) -> Result<Backup> {
    let path = to.display().to_string();
    let copied = copy(app, to).await?;
    if matches!(copied, Backup::Done) {
        audit::record(app, audit_line(app, actor, "backup", path)).await?;
    }
    Ok(copied)
}
