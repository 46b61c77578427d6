//! SQLite: how a connection is opened. One process has one writer; other processes (the command line) may
//! write too, so every write transaction is BEGIN IMMEDIATE and waits its turn.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::tx::sqlite_error;
use super::unusable;
use super::writer::survive;
use crate::error::{Error, Result};

const BUSY_TRIES: i32 = 30_000;
/// How long a reader waits while another connection has the database to itself.
pub const READ_WAIT: Duration = Duration::from_secs(30);
pub const NO_WAIT: Duration = Duration::ZERO;

/// Tries every millisecond for 30 s. SQLite's own back-off grows so long that a busy server starves the command line.
fn wait_a_little(tries: i32) -> bool {
    std::thread::sleep(Duration::from_millis(1));
    tries < BUSY_TRIES
}

/// Why a database cannot be opened, with what to do about it where that is known.
fn unopened(path: &Path, error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => unusable::no_database(path),
        Some(ErrorCode::CannotOpen) => unusable::closed(path),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            unusable::by_system(path, &io::ErrorKind::PermissionDenied.into())
        }
        _ => sqlite_error(error),
    }
}

pub fn open_writer(path: &Path) -> Result<Connection> {
    let mut connection = Connection::open(path).map_err(|error| unopened(path, error))?;
    connection.busy_handler(Some(wait_a_little)).map_err(sqlite_error)?;
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 64000;
             PRAGMA cache_size = -131072; PRAGMA temp_store = MEMORY;",
        )
        .map_err(|error| unopened(path, error))?;
    tune(&connection)?;
    Ok(connection)
}

/// Statements are prepared once and kept. Without the stability guarantee SQLite plans a statement anew for every
/// bound value that might fit a partial index, which costs more than running it.
pub fn tune(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(sqlite_error)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(())
}

/// As a server has it unless it is told otherwise.
pub const USUAL_LOG_MB: u64 = 64;

/// A connection as the writer has it, for the benchmark's reference.
pub fn writer_connection(path: &Path) -> Result<Connection> {
    grow_wal(path, USUAL_LOG_MB)?;
    open_writer(path)
}

pub fn open_reader(path: &Path, wait: Duration) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite_error)?;
    connection.busy_timeout(wait).map_err(sqlite_error)?;
    connection
        .execute_batch("PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;")
        .map_err(sqlite_error)?;
    tune(&connection)?;
    Ok(connection)
}

/// Writes the write-ahead log to its working size once, so that commits overwrite blocks instead of adding them:
/// growing a file at every commit makes the file system's journal the bottleneck. On a connection of its own with
/// a small cache, or the filler would stay in memory.
pub fn grow_wal(path: &Path, mb: u64) -> Result<()> {
    if mb == 0 {
        return Ok(());
    }
    let connection = open_writer(path)?;
    connection
        .execute_batch(&format!(
            "PRAGMA cache_size = -1024; BEGIN IMMEDIATE; CREATE TABLE wal_growth (filler BLOB);
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {mb} * 4)
             INSERT INTO wal_growth SELECT zeroblob(262144) FROM n;
             DROP TABLE wal_growth; COMMIT;",
        ))
        .map_err(sqlite_error)?;
    checkpoint(&connection).map(drop)
}

/// How far a checkpoint came, in pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub log: i64,
    pub copied: i64,
}

/// Moves what is committed from the log into the database, as far as that goes without making anyone wait.
pub fn checkpoint(connection: &Connection) -> Result<Progress> {
    let mut statement = connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)").map_err(sqlite_error)?;
    let read = |row: &rusqlite::Row| Ok(Progress { log: row.get(1)?, copied: row.get(2)? });
    statement.query_row([], read).map_err(sqlite_error)
}

/// A log that is begun anew by this connection is cut to this length, if it is longer. Its blocks stay up to there:
/// commits go on overwriting them.
pub fn limit_log(connection: &Connection, bytes: u64) -> Result<()> {
    let set = format!("PRAGMA journal_size_limit = {bytes}");
    connection.query_row(&set, [], |_| Ok(())).map_err(sqlite_error)
}

/// A file that belongs to a database and lies beside it.
pub fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(ending);
    name.into()
}

thread_local! {
    static READERS: RefCell<HashMap<PathBuf, Rc<Connection>>> = RefCell::default();
}

/// Reads with this thread's own connection, in a few microseconds. While another connection has the database to itself
/// (it opens or closes the log), this one waits for up to `wait`; then the answer is a conflict. On async threads it
/// must be `NO_WAIT`.
pub fn with_reader<T>(path: &Path, wait: Duration, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let known = READERS.with_borrow(|readers| readers.get(path).cloned());
    let connection = match known {
        Some(connection) => connection,
        None => {
            let connection = Rc::new(open_reader(path, wait)?);
            READERS.with_borrow_mut(|readers| readers.insert(path.to_path_buf(), connection.clone()));
            connection
        }
    };
    connection.busy_timeout(wait).map_err(sqlite_error)?;
    // What a panic left of a connection is not trusted.
    survive("reader", || read(&connection)).unwrap_or_else(|| {
        READERS.with_borrow_mut(|readers| readers.remove(path));
        Err(Error::fault("a read panicked; the panic message is in the log above"))
    })
}
