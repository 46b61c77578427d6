//! A consistent copy while the service runs: SQLite's own online copy, or `pg_dump`.

use std::path::Path;
use std::process::Command;

use postgres::config::Host;

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
        Location::Postgres(url) => match pg_dump(url, to)?.output() {
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
        },
    }
}

/// The connection goes by the environment: arguments can be read by every user of the machine.
fn pg_dump(url: &str, to: &Path) -> Result<Command> {
    let config: postgres::Config = url.parse().map_err(|_| Error::fault("the database URL is not valid"))?;
    let mut command = Command::new("pg_dump");
    command.args(["--format=custom", "--file"]).arg(to);
    match config.get_hosts().first() {
        Some(Host::Tcp(host)) => drop(command.env("PGHOST", host)),
        Some(Host::Unix(path)) => drop(command.env("PGHOST", path)),
        None => {}
    }
    if let Some(port) = config.get_ports().first() {
        command.env("PGPORT", port.to_string());
    }
    if let Some(user) = config.get_user() {
        command.env("PGUSER", user);
    }
    if let Some(password) = config.get_password() {
        command.env("PGPASSWORD", String::from_utf8_lossy(password).as_ref());
    }
    if let Some(name) = config.get_dbname() {
        command.env("PGDATABASE", name);
    }
    Ok(command)
}
