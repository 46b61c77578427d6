//! A copy of the database while the service runs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::app::App;
use crate::error::{Error, Result};
use crate::store::backup;
pub use crate::store::backup::Backup;

/// Copies everything to a new file that only its owner can read: it holds what the database holds.
pub async fn copy(app: &App, to: PathBuf) -> Result<Backup> {
    let location = app.store.location().clone();
    let work = move || {
        let outcome = backup::copy(&location, &to)?;
        if let Backup::Done = outcome {
            std::fs::set_permissions(&to, Permissions::from_mode(0o600)).map_err(Error::fault)?;
        }
        Ok(outcome)
    };
    // Blocking work, so it leaves the async threads alone.
    tokio::task::spawn_blocking(work).await.map_err(Error::fault)?
}
