//! Past the program, straight to the database: what a schema refuses, and damage done on purpose.

use simgate::store::Location;

/// Runs statements that answer nothing; the error in the database's own words.
pub fn execute(location: &Location, sql: &str) -> Result<(), String> {
    match location {
        Location::Sqlite(path) => {
            let connection = rusqlite::Connection::open(path).unwrap();
            connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
            connection.execute_batch(sql).map_err(|error| error.to_string())
        }
        Location::Postgres(url) => on_plain_thread(|| {
            let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
            client.batch_execute(sql).map_err(|error| match error.as_db_error() {
                Some(told) => told.message().to_string(),
                None => error.to_string(),
            })
        }),
    }
}

/// The rows of a query whose columns are all text.
pub fn rows(location: &Location, sql: &str) -> Vec<Vec<String>> {
    match location {
        Location::Sqlite(path) => {
            let connection = rusqlite::Connection::open(path).unwrap();
            let mut statement = connection.prepare(sql).unwrap();
            let width = statement.column_count();
            let read = |row: &rusqlite::Row| (0..width).map(|n| row.get(n)).collect();
            statement.query_map([], read).unwrap().map(Result::unwrap).collect()
        }
        Location::Postgres(url) => on_plain_thread(|| {
            let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
            let found = client.query(sql, &[]).unwrap();
            found.iter().map(|row| (0..row.len()).map(|n| row.get(n)).collect()).collect()
        }),
    }
}

/// The blocking PostgreSQL client must not run inside a runtime.
pub fn on_plain_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}
