//! A consistent copy while the service runs (a packed still picture, or `pg_dump`), and the way back. Nothing is ever
//! overwritten: a backup goes to a new file, and a replaced database is moved aside.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::Location;
use super::postgres::{Address, Session};
use super::sqlite::{READ_WAIT, open_reader, open_writer, with_ending};
use super::still;
use super::tx::sqlite_error;
use crate::error::{Error, Result};

pub enum Backup {
    Done,
    /// `pg_dump` is not installed here; run this command elsewhere. The URL is left out: it may hold a password.
    RunYourself(String),
}

/// How far a restore has come.
pub enum Unpacked {
    /// SQLite: the copy is here; it is adopted and then put in place.
    Beside(PathBuf),
    /// PostgreSQL: the database holds it.
    InPlace,
    /// `pg_restore` is not installed here; run this command elsewhere.
    RunYourself(String),
}

pub fn copy(location: &Location, to: &Path) -> Result<Backup> {
    if to.exists() {
        return Err(Error::fault(format!("{} exists already; a backup never overwrites", to.display())));
    }
    create_private(to)?;
    let outcome = fill(location, to);
    if !matches!(outcome, Ok(Backup::Done)) {
        remove(to)?;
    }
    outcome
}

/// Makes an empty file that only its owner can read from the first byte on, because it will hold the whole database.
fn create_private(path: &Path) -> Result<()> {
    let created = File::options().create_new(true).write(true).mode(0o600).open(path);
    created.map(drop).map_err(|error| Error::fault(format!("{}: {error}", path.display())))
}

/// Both ways fill the existing empty file.
fn fill(location: &Location, to: &Path) -> Result<Backup> {
    match location {
        Location::Sqlite(path) => {
            vacuum(&still::picture(path)?, to)?;
            Ok(Backup::Done)
        }
        Location::Postgres(url) => {
            let mut command = tool("pg_dump", url)?;
            command.args(["--format=custom", "--file"]).arg(to);
            Ok(match output(command)? {
                Some(_) => Backup::Done,
                None => Backup::RunYourself(format!(
                    "(umask 077; pg_dump --format=custom --file {} --dbname \"$SIMGATE_DATABASE_URL\")",
                    to.display()
                )),
            })
        }
    }
}

/// VACUUM INTO leaves out free pages, and syncs the copy.
fn vacuum(source: &Connection, to: &Path) -> Result<()> {
    let target = to.to_str().ok_or_else(|| Error::fault("the path is not valid UTF-8"))?;
    source.execute("VACUUM INTO ?1", [target]).map_err(sqlite_error).map(drop)
}

/// Unpacks a backup for this database. With `force`, an existing SQLite database may be replaced.
pub fn unpack(location: &Location, from: &Path, force: bool) -> Result<Unpacked> {
    if !from.is_file() {
        return Err(Error::fault(format!("{} is not there", from.display())));
    }
    match location {
        Location::Sqlite(target) => {
            if target.exists() && !force {
                return Err(Error::fault(format!(
                    "{} exists already; with --force it is moved aside",
                    target.display()
                )));
            }
            require_unused(target)?;
            unpack_sqlite(from, target).map(Unpacked::Beside)
        }
        Location::Postgres(url) => {
            if !Session::connect(url)?.query(ANY_TABLE, &[])?.is_empty() {
                return Err(Error::fault(
                    "the database is not empty: make a new one, and set SIMGATE_DATABASE_URL to it",
                ));
            }
            let mut command = tool("pg_restore", url)?;
            let name = address(url)?.database().to_string();
            // All or nothing: half a database would not be empty the next time.
            command.args(["--no-owner", "--single-transaction", "--dbname", &name]).arg(from);
            Ok(match output(command)? {
                Some(_) => Unpacked::InPlace,
                None => Unpacked::RunYourself(format!(
                    "pg_restore --no-owner --single-transaction --dbname \"$SIMGATE_DATABASE_URL\" {}",
                    from.display()
                )),
            })
        }
    }
}

const ANY_TABLE: &str = "SELECT 1 FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v') LIMIT 1";

fn unpack_sqlite(from: &Path, target: &Path) -> Result<PathBuf> {
    let beside = with_ending(target, ".restoring");
    // Left over from an unfinished restore.
    remove_side_files(&beside)?;
    remove(&beside)?;
    let source = open_reader(from, READ_WAIT)?;
    let ours = source.query_row("SELECT value FROM meta WHERE name = 'mode'", [], |_| Ok(())).is_ok();
    if !ours {
        return Err(Error::fault(format!("{} is not a simgate database", from.display())));
    }
    // In sandbox mode the copy holds the server secret.
    create_private(&beside)?;
    vacuum(&source, &beside)?;
    Ok(beside)
}

/// Refuses while any program has the file open: it would go on with the database that is moved aside. Only the last
/// connection may take a database out of WAL mode, so the attempt shows whether there are others; it also leaves one
/// complete file. A database that is too broken to be asked may be moved.
fn require_unused(target: &Path) -> Result<()> {
    if !target.exists() {
        return Ok(());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let alone = Connection::open_with_flags(target, flags).and_then(|connection| {
        connection.busy_timeout(Duration::from_millis(200))?;
        connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0))
    });
    let in_use = match alone {
        Ok(mode) => mode == "wal",
        Err(error) => {
            matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
        }
    };
    if in_use {
        let message = format!("{} is in use: stop the gateway and every command first", target.display());
        return Err(Error::fault(message));
    }
    Ok(())
}

/// Moves an adopted database to its place. Answers where the previous one is now.
pub fn put_in_place(beside: &Path, target: &Path) -> Result<Option<PathBuf>> {
    let connection = open_writer(beside)?;
    let busy: i64 = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .map_err(sqlite_error)?;
    if busy != 0 {
        return Err(Error::fault(format!("{} is in use", beside.display())));
    }
    drop(connection);
    remove_side_files(beside)?;
    require_unused(target)?;
    let aside = if target.exists() { Some(move_aside(target)?) } else { None };
    std::fs::rename(beside, target).map_err(Error::fault)?;
    Ok(aside)
}

fn move_aside(target: &Path) -> Result<PathBuf> {
    let names = (1..).map(|n| with_ending(target, &format!(".before-restore-{n}")));
    let aside =
        names.into_iter().find(|name| !name.exists()).ok_or_else(|| Error::fault("no name is free"))?;
    for ending in ["", "-wal", "-shm"] {
        let old = with_ending(target, ending);
        if old.exists() {
            std::fs::rename(&old, with_ending(&aside, ending)).map_err(Error::fault)?;
        }
    }
    Ok(aside)
}

fn remove_side_files(beside: &Path) -> Result<()> {
    ["-wal", "-shm", ".lock"].into_iter().try_for_each(|ending| remove(&with_ending(beside, ending)))
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::fault(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn address(url: &str) -> Result<Address> {
    Address::parse(url).map_err(|why| Error::settings(format!("database_url: {why}")))
}

/// Runs a tool to its end; `None` when it is not installed.
fn output(mut command: Command) -> Result<Option<Output>> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(output) if output.status.success() => Ok(Some(output)),
        Ok(output) => Err(Error::fault(format!(
            "{name} failed: {}",
            String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("no message")
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::fault(error)),
    }
}

/// One of PostgreSQL's own tools, set to reach the server as we do.
fn tool(name: &str, url: &str) -> Result<Command> {
    let mut command = Command::new(name);
    command.envs(address(url)?.environment());
    Ok(command)
}
