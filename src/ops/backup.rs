//! A copy of the database while the service runs.

use std::path::PathBuf;

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
