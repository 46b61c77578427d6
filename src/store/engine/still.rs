//! A still picture of a SQLite database, for reads that go through all of it. While a transaction reads one state, the
//! log cannot be emptied. Copying the pages is the quickest such read; reading the copy afterwards delays nobody.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::sqlite::{READ_WAIT, open_reader, tune};
use super::tx::sqlite_error;
use crate::error::{Error, Result};

/// The whole database at one moment, in a file without a name: it vanishes with the connection, however that ends, and
/// nobody else can open it.
pub fn picture(database: &Path) -> Result<Connection> {
    let source = open_reader(database, READ_WAIT)?;
    let copy = copied(&source).map_err(|error| {
        Error::fault(format!(
            "the database could not be copied to be read: is there room for it in the folder for temporary files, \
             which TMPDIR names? ({error})"
        ))
    })?;
    tune(&copy)?;
    Ok(copy)
}

fn copied(source: &Connection) -> Result<Connection> {
    let mut copy = Connection::open("").map_err(sqlite_error)?;
    copy.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8192;")
        .map_err(sqlite_error)?;
    // In one step: with several, each write by others would make it begin again.
    let end = Backup::new(source, &mut copy).and_then(|backup| backup.step(-1)).map_err(sqlite_error)?;
    if end == StepResult::Done { Ok(copy) } else { Err(Error::fault("the database is busy")) }
}
