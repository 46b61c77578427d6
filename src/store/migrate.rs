//! Bringing a database to this program's schema. Migrations come in pairs with the same numbers and names.
//! One process migrates and seeds at a time: an advisory lock on PostgreSQL, a lock file beside a SQLite database.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::Location;
use super::postgres::Session;
use super::sqlite::open_writer;
use super::tx::sqlite_error;
use crate::error::{Error, Result};

mod lite {
    refinery::embed_migrations!("migrations/sqlite");
}
mod pg {
    refinery::embed_migrations!("migrations/postgres");
}

/// Where refinery writes down what it applied; a database without it was never set up.
const HISTORY: &str = "refinery_schema_history";
const HAS_HISTORY: &str = "SELECT 1 FROM pg_class WHERE oid = to_regclass('refinery_schema_history')";
const LOCK_KEY: i64 = 0x51_4D_47_41_54_45;

/// Held while one process migrates and seeds; released when dropped.
pub enum Lock {
    File { _file: File },
    Session { _session: Box<Session> },
}

/// Takes the lock and migrates. Blocking: call it from a plain thread.
pub fn run(location: &Location) -> Result<Lock> {
    match location {
        Location::Sqlite(path) => {
            let file = File::create(lock_path(path))
                .map_err(|e| Error::fault(format!("{}: {e}", path.display())))?;
            file.lock().map_err(Error::fault)?;
            create_private(path)?;
            let mut connection = open_writer(path)?;
            lite::migrations::runner().run(&mut connection).map_err(Error::fault)?;
            Ok(Lock::File { _file: file })
        }
        Location::Postgres(url) => {
            let mut session = Session::connect(url)?;
            session.batch(&format!("SET lock_timeout = 0; SELECT pg_advisory_lock({LOCK_KEY})"))?;
            pg::migrations::runner().run(session.client()).map_err(Error::fault)?;
            Ok(Lock::Session { _session: Box::new(session) })
        }
    }
}

/// A sandbox keeps its secret in the database, so only its owner may read the file. SQLite's side files follow it.
fn create_private(path: &Path) -> Result<()> {
    let opened = File::options().create(true).append(true).mode(0o600).open(path);
    opened.map(drop).map_err(|error| Error::fault(format!("{}: {error}", path.display())))
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(".lock");
    name.into()
}

/// Why a database cannot be used as it is; `None` when its schema is this program's.
pub fn mismatch(location: &Location) -> Result<Option<String>> {
    let ours = lite::migrations::runner().get_migrations().iter().map(|m| m.version()).max().unwrap_or(0);
    let applied = match location {
        Location::Sqlite(path) if !path.exists() => None,
        Location::Sqlite(path) => {
            let mut connection = open_writer(path)?;
            if connection.table_exists(None, HISTORY).map_err(sqlite_error)? {
                let runner = lite::migrations::runner();
                runner.get_last_applied_migration(&mut connection).map_err(Error::fault)?.map(|m| m.version())
            } else {
                None
            }
        }
        Location::Postgres(url) => {
            let mut session = Session::connect(url)?;
            if session.query(HAS_HISTORY, &[])?.is_empty() {
                None
            } else {
                let runner = pg::migrations::runner();
                runner
                    .get_last_applied_migration(session.client())
                    .map_err(Error::fault)?
                    .map(|m| m.version())
            }
        }
    };
    Ok(match applied {
        None => Some(
            "the database is not set up yet: run `simgate migrate`, or start `simgate serve` once".into(),
        ),
        Some(version) if version < ours => Some(format!(
            "the database has schema {version}, this program needs {ours}: run `simgate migrate`"
        )),
        Some(version) if version > ours => {
            Some(format!("the database has schema {version}, made by a newer simgate; this one knows {ours}"))
        }
        Some(_) => None,
    })
}
