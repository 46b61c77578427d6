//! A consistent copy while the service runs: SQLite's own online copy, or `pg_dump`.

use std::path::Path;
use std::process::Command;

use super::Location;
use super::sqlite::open_reader;
use super::tx::sqlite_error;
use crate::error::{Error, Result};

pub enum Backup {
    Done,
    /// `pg_dump` is not installed here; this is what to run where it is. The URL is left out: it may hold a password.
    RunYourself(String),
}

pub fn copy(location: &Location, to: &Path) -> Result<Backup> {
    if to.exists() {
        return Err(Error::fault(format!("{} exists already; a backup never overwrites", to.display())));
    }
    match location {
        Location::Sqlite(path) => {
            let source = open_reader(path)?;
            let target = to.to_str().ok_or_else(|| Error::fault("the path is not valid UTF-8"))?;
            // VACUUM INTO reads one snapshot and syncs the copy; writers go on meanwhile.
            source.execute("VACUUM INTO ?1", [target]).map_err(sqlite_error)?;
            Ok(Backup::Done)
        }
        Location::Postgres(url) => {
            let outcome =
                Command::new("pg_dump").args(["--format=custom", "--file"]).arg(to).arg("--dbname").arg(url).output();
            match outcome {
                Ok(output) if output.status.success() => Ok(Backup::Done),
                Ok(output) => Err(Error::fault(format!(
                    "pg_dump failed: {}",
                    String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("no message")
                ))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Backup::RunYourself(format!(
                    "pg_dump --format=custom --file {} --dbname \"$SIMGATE_DATABASE_URL\"",
                    to.display()
                ))),
                Err(error) => Err(Error::fault(error)),
            }
        }
    }
}
