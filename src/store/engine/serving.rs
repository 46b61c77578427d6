//! One gateway serves a SQLite database. It holds a lock on a file beside it for as long as it lives; the system
//! releases the lock however the process ends. Commands do not take it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Location;
use super::sqlite::with_ending;
use super::unusable;
use crate::error::{Error, Result};

/// How long a new gateway waits: one that was told to stop has stopped by then, so its successor may start meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// The right to serve a database, until it is dropped.
pub struct Serving {
    _file: Option<File>,
}

impl Serving {
    /// Waits for a gateway that is stopping. Blocking: call it from a plain thread.
    pub fn begin(location: &Location) -> Result<Serving> {
        let Location::Sqlite(path) = location else { return Ok(Serving { _file: None }) };
        let wrong = |error: io::Error| unusable::by_system(path, &error);
        let database = resolve(path).map_err(wrong)?;
        // The file is never removed: somebody may wait for its lock.
        let file = File::create(with_ending(&database, ".serving")).map_err(wrong)?;
        for turn in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            match file.try_lock() {
                Ok(()) => return Ok(Serving { _file: Some(file) }),
                Err(TryLockError::Error(error)) => return Err(wrong(error)),
                Err(TryLockError::WouldBlock) if turn == 0 => {
                    tracing::warn!(
                        "another gateway serves this database; waiting up to {} s for it to end",
                        PATIENCE.as_secs()
                    );
                }
                Err(TryLockError::WouldBlock) => {}
            }
            std::thread::sleep(PAUSE);
        }
        Err(Error::settings(format!(
            "another gateway already serves {}: stop it first, or use PostgreSQL, which several gateways can share \
             (database_url)",
            database.display()
        )))
    }
}

/// The real path of a database, through links and any spelling; the file need not exist yet.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        resolved => return resolved,
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if let Ok(target) = path.read_link() {
        return resolve(&folder.join(target));
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(folder.canonicalize()?.join(name))
}
