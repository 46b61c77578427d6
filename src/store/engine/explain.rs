//! For tests: how a database plans our statements. Each is prepared and planned on a connection like the service's own,
//! for any values, so the result does not depend on how full the tables are.

use super::Location;
use super::postgres::{Session, numbered};
use super::sqlite::open_writer;
use super::tx::{Backend, Sql, sqlite_error};
use crate::error::{Error, Result};

/// The noun, the name and the text of a statement, as `all_sql` lists them.
type Named = (&'static str, &'static str, Sql);

/// The statements that the database refuses to prepare, and why.
pub fn unpreparable(location: &Location, all: &[Named]) -> Result<Vec<String>> {
    let told = |(noun, name, _): &Named, error: Error| format!("{noun}::{name}: {error}");
    Ok(match location {
        Location::Sqlite(path) => {
            let connection = open_writer(path)?;
            let refused = |named: &Named| connection.prepare(named.2.text).map_err(sqlite_error).err();
            meant_for(Backend::Sqlite, all).filter_map(|named| Some(told(named, refused(named)?))).collect()
        }
        Location::Postgres(url) => {
            let mut session = Session::connect(url)?;
            let mut refused = |named: &Named| session.prepare(named.2.text).err();
            meant_for(Backend::Postgres, all).filter_map(|named| Some(told(named, refused(named)?))).collect()
        }
    })
}

/// How the database would run each statement, in its own words: SQLite's steps, one on a line, or PostgreSQL's plan
/// in JSON.
pub fn plans(location: &Location, all: &[Named]) -> Result<Vec<(String, String)>> {
    match location {
        Location::Sqlite(path) => {
            let connection = open_writer(path)?;
            meant_for(Backend::Sqlite, all)
                .map(|(noun, name, sql)| {
                    let plan = sqlite_plan(&connection, sql.text).map_err(sqlite_error)?;
                    Ok((format!("{noun}::{name}"), plan))
                })
                .collect()
        }
        Location::Postgres(url) => {
            let mut session = Session::connect(url)?;
            meant_for(Backend::Postgres, all)
                .map(|(noun, name, sql)| {
                    Ok((format!("{noun}::{name}"), postgres_plan(&mut session, sql.text)?))
                })
                .collect()
        }
    }
}

fn sqlite_plan(connection: &rusqlite::Connection, text: &str) -> rusqlite::Result<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {text}"))?;
    let mut rows = statement.raw_query();
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        lines.push(row.get::<_, String>(3)?);
    }
    Ok(lines.join("\n"))
}

fn postgres_plan(session: &mut Session, text: &'static str) -> Result<String> {
    let values = vec!["NULL"; session.prepare(text)?.params().len()].join(", ");
    session.batch(&format!("PREPARE asked AS {}", numbered(text)))?;
    let asked = if values.is_empty() { "asked".into() } else { format!("asked({values})") };
    let plan = session.field(&format!("EXPLAIN (FORMAT JSON, COSTS OFF) EXECUTE {asked}"))?;
    session.batch("DEALLOCATE asked")?;
    plan.ok_or_else(|| Error::fault("no plan"))
}

fn meant_for(database: Backend, all: &[Named]) -> impl Iterator<Item = &Named> {
    all.iter().filter(move |(_, _, sql)| sql.only.is_none_or(|only| only == database))
}
