//! Keeps SQLite's log short without making callers wait long. Only the writer can empty the log, because nobody may
//! add to it then, and meanwhile nobody is served. So a separate thread first copies nearly all of the log into the
//! database, and then tells the writer to copy the little that has come since.
//!
//! While a program reads one state of the database, the log can only grow. Our own long reads take a copy (`still.rs`);
//! a warning, a metric and `simgate doctor` report those of others. When they have ended, the log is cut again.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use metrics::gauge;
use rusqlite::Connection;

use super::sqlite::{self, Progress, with_ending};
use super::tx::sqlite_error;
use super::writer::survive;
use crate::error::{Error, Result};
use crate::telemetry::EveryMinute;

const EVERY: Duration = Duration::from_millis(250);
/// The size in the log of one page of the database, with its header.
const FRAME: u64 = 4_096 + 24;

/// How long the log should be.
#[derive(Clone, Copy)]
pub struct LogSize {
    /// Written once at the start; 0 lets the log grow to the usual size as it is used.
    grown_mb: u64,
    working: u64,
}

impl LogSize {
    pub fn of_mb(mb: u64) -> LogSize {
        let working = if mb == 0 { sqlite::USUAL_LOG_MB } else { mb } << 20;
        LogSize { grown_mb: mb, working }
    }

    /// From how many pages on the log should be begun anew.
    fn pages(self) -> i64 {
        (self.working / FRAME) as i64
    }

    /// The most bytes before the log is cut: a busy writer exceeds the working size before it begins the log anew.
    pub fn most(self) -> u64 {
        self.working / 2 * 3
    }

    /// Whether the log is so long that some program must have kept it from being emptied.
    pub fn is_exceeded_by(self, bytes: u64) -> bool {
        bytes > self.working * 4
    }
}

/// The size of a database's log on disk.
pub fn log_bytes(database: &Path) -> Result<u64> {
    // SQLite puts the log beside the file itself, even when a link leads there.
    let looked = database.canonicalize().and_then(|file| with_ending(&file, "-wal").metadata());
    match looked {
        Ok(file) => Ok(file.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(Error::fault(error)),
    }
}

pub struct Checkpoints {
    nearly_done: AtomicBool,
    size: LogSize,
    warnings: EveryMinute,
}

impl Checkpoints {
    pub fn start(path: PathBuf, size: LogSize) -> Result<Arc<Checkpoints>> {
        let checkpoints =
            Arc::new(Checkpoints { nearly_done: AtomicBool::new(false), size, warnings: EveryMinute::new() });
        let writer = Arc::downgrade(&checkpoints);
        let work = move || {
            if let Err(error) = sqlite::grow_wal(&path, size.grown_mb) {
                tracing::warn!(%error, "the log could not be grown to its initial size");
            }
            while survive("checkpoint", || Checkpoints::keep(&path, &writer)).is_none() {
                std::thread::sleep(Duration::from_secs(1));
            }
        };
        std::thread::Builder::new().name("checkpoint".into()).spawn(work).map_err(Error::fault)?;
        Ok(checkpoints)
    }

    /// Whether the writer should copy the rest now, between two groups.
    pub fn is_my_turn(&self) -> bool {
        self.nearly_done.swap(false, Ordering::Relaxed)
    }

    fn keep(path: &Path, writer: &Weak<Checkpoints>) {
        let (mut log, lines) = (None, EveryMinute::default());
        while let Some(checkpoints) = writer.upgrade() {
            if let Err(error) = checkpoints.look(&mut log, path)
                && let Some(left_out) = lines.turn()
            {
                tracing::warn!(%error, left_out, "the log could not be checkpointed; it grows until it can");
            }
            drop(checkpoints);
            std::thread::sleep(EVERY);
        }
    }

    fn look(&self, log: &mut Option<Log>, path: &Path) -> Result<()> {
        let log = match log {
            Some(log) => log,
            None => log.insert(Log::open(path, self.size)?),
        };
        let mut progress = log.checkpoint()?;
        if progress.log >= self.size.pages() {
            // A second pass copies what came during the first, so that the writer's callers wait less.
            progress = log.checkpoint()?;
            self.nearly_done.store(true, Ordering::Relaxed);
        }
        if log_bytes(path)? > self.size.most() && progress.copied == progress.log {
            // Nobody writes now, so the writer may not do it for a long time.
            log.begin_anew()?;
        }
        self.tell(log_bytes(path)?);
        Ok(())
    }

    fn tell(&self, bytes: u64) {
        gauge!("simgate_sqlite_log_bytes").set(bytes as f64);
        if self.size.is_exceeded_by(bytes)
            && let Some(left_out) = self.warnings.turn()
        {
            tracing::warn!(
                mb = bytes >> 20,
                left_out,
                "SQLite's log is far too long, and grows while a program that reads the database keeps its transaction \
                 open: see `simgate doctor`"
            );
        }
    }
}

/// The log, for the thread that checkpoints it beside the writer.
struct Log {
    connection: Connection,
    database: &'static File,
}

impl Log {
    fn open(path: &Path, size: LogSize) -> Result<Log> {
        // Never closed: closing any descriptor of a file takes away the locks that SQLite holds on it.
        let database = Box::leak(Box::new(File::open(path).map_err(Error::fault)?));
        let connection = sqlite::open_writer(path)?;
        sqlite::limit_log(&connection, size.most())?;
        Ok(Log { connection, database })
    }

    /// Copies the log into the database, and syncs the database to disk. SQLite syncs only when it has copied the whole
    /// log, which never happens beside a busy writer; the checkpoint that finally reaches the end would have to wait
    /// for all of it.
    fn checkpoint(&self) -> Result<Progress> {
        let progress = sqlite::checkpoint(&self.connection)?;
        self.database.sync_data().map_err(Error::fault)?;
        Ok(progress)
    }

    /// Makes a write, so that a log that was copied to its end begins anew and is cut. This one writes the first page
    /// unchanged: nobody uses the number.
    fn begin_anew(&self) -> Result<()> {
        self.connection.execute_batch("PRAGMA user_version = 0").map_err(sqlite_error)
    }
}
