//! Brings a database to this program's schema. Migrations come in pairs with the same numbers and names. One process
//! migrates and seeds at a time: an advisory lock on PostgreSQL, a lock file beside a SQLite database.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::Connection;

use super::Location;
use super::postgres::Session;
use super::sqlite::{open_writer, with_ending};
use super::tx::sqlite_error;
use super::unusable;
use crate::error::{Error, Result};

mod lite {
    refinery::embed_migrations!("migrations/sqlite");
}
mod pg {
    refinery::embed_migrations!("migrations/postgres");
}

/// Where refinery records what it applied; a database without it was never set up.
const HISTORY: &str = "refinery_schema_history";
const HAS_HISTORY: &str = "SELECT 1 FROM pg_class WHERE oid = to_regclass('refinery_schema_history')";
const HAS_TABLES: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table')";
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
            let file = File::create(with_ending(path, ".lock"))
                .map_err(|error| unusable::by_system(path, &error))?;
            file.lock().map_err(Error::fault)?;
            create_private(path)?;
            let mut connection = open_writer(path)?;
            refuse_newer(applied_lite(path, &mut connection)?)?;
            lite::migrations::runner().run(&mut connection).map_err(Error::fault)?;
            Ok(Lock::File { _file: file })
        }
        Location::Postgres(url) => {
            let mut session = Session::connect(url)?;
            refuse_shared_sessions(&mut session, url)?;
            session.batch(&format!("SET lock_timeout = 0; SELECT pg_advisory_lock({LOCK_KEY})"))?;
            refuse_newer(applied_pg(&mut session)?)?;
            let done = session.patiently(|session| {
                session.run(async |client| pg::migrations::runner().run_async(client).await)
            })?;
            done.map_err(|error| told(&session, error))?;
            Ok(Lock::Session { _session: Box::new(session) })
        }
    }
}

/// The server's answer to a migration, with what to do about it.
fn told(session: &Session, error: refinery::Error) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(server) = inner.downcast_ref::<tokio_postgres::Error>() {
            return session.told(server);
        }
        cause = inner.source();
    }
    Error::fault(error)
}

/// Refuses a pooler that gives a session to others between two transactions: that breaks the lock, the settings and the
/// prepared statements. It shows when the same process serves a second session, as it does while the pooler is idle.
fn refuse_shared_sessions(session: &mut Session, url: &str) -> Result<()> {
    const SERVED_BY: &str = "SELECT pg_backend_pid()";
    if Session::connect(url)?.field(SERVED_BY)? == session.field(SERVED_BY)? {
        return Err(Error::settings(
            "a pooler before PostgreSQL shares sessions between transactions: set pool_mode = session",
        ));
    }
    Ok(())
}

/// A sandbox keeps its secret in the database, so only its owner may read the file. SQLite's side files follow it.
fn create_private(path: &Path) -> Result<()> {
    let opened = File::options().create(true).append(true).mode(0o600).open(path);
    opened.map(drop).map_err(|error| unusable::by_system(path, &error))
}

/// The newest migration that this program knows.
pub fn ours() -> i32 {
    lite::migrations::runner().get_migrations().iter().map(|m| m.version()).max().unwrap_or(0)
}

/// The newest migration that a database has; `None` before the first.
fn applied_lite(path: &Path, connection: &mut Connection) -> Result<Option<i32>> {
    if connection.table_exists(None, HISTORY).map_err(sqlite_error)? {
        let last = lite::migrations::runner().get_last_applied_migration(connection);
        return Ok(last.map_err(Error::fault)?.map(|m| m.version()));
    }
    match connection.query_row(HAS_TABLES, [], |row| row.get(0)).map_err(sqlite_error)? {
        true => Err(unusable::foreign(path)),
        false => Ok(None),
    }
}

fn applied_pg(session: &mut Session) -> Result<Option<i32>> {
    if session.query(HAS_HISTORY, &[])?.is_empty() {
        return Ok(None);
    }
    let runner = pg::migrations::runner();
    let last = session.run(async |client| runner.get_last_applied_migration_async(client).await)?;
    Ok(last.map_err(|error| told(session, error))?.map(|m| m.version()))
}

/// A newer program may have changed what this one would misread.
fn refuse_newer(applied: Option<i32>) -> Result<()> {
    match applied {
        Some(version) if version > ours() => Err(Error::settings(newer(version))),
        Some(_) | None => Ok(()),
    }
}

fn newer(version: i32) -> String {
    format!(
        "the database has schema {version}, made by a newer simgate; this one knows {}. Start the newer program, or name \
         another database with --database-url",
        ours()
    )
}

/// The schema that a database has; `None` before the first migration. Blocking: call it from a plain thread.
pub fn applied(location: &Location) -> Result<Option<i32>> {
    match location {
        Location::Sqlite(path) if !path.exists() => Ok(None),
        Location::Sqlite(path) => applied_lite(path, &mut open_writer(path)?),
        Location::Postgres(url) => applied_pg(&mut Session::connect(url)?),
    }
}

/// Why a database cannot be used as it is; `None` when it has this program's schema.
pub fn mismatch(location: &Location) -> Result<Option<String>> {
    let ours = ours();
    Ok(match applied(location)? {
        None => Some(
            "the database is not set up yet: run `simgate migrate`, or start `simgate serve` once".into(),
        ),
        Some(version) if version < ours => Some(format!(
            "the database has schema {version}, this program needs {ours}: run `simgate migrate`"
        )),
        Some(version) if version > ours => Some(newer(version)),
        Some(_) => None,
    })
}
