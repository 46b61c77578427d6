//! PostgreSQL: a blocking session with its prepared statements. Used only from plain threads, because blocking panics
//! inside an async runtime: each session has a small runtime of its own. `postgres/` connects to the server.

mod address;
mod entry;
mod tls;
mod url;

use std::collections::HashMap;
use std::time::Duration;

use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage, Statement};

pub use self::address::Address;
pub use self::url::hide_password;
use super::param::Param;
use super::tx::postgres_error;
use crate::error::{Error, Fault, FaultKind, Result};

/// How long the server may be silent. It ends a statement after 60 s and says so; a longer silence means that it hangs.
const SILENCE: Duration = Duration::from_secs(65);
const GOODBYE: Duration = Duration::from_millis(200);

pub struct Session {
    line: Option<Line>,
    statements: HashMap<&'static str, Statement>,
    /// How long an answer may take.
    patience: Option<Duration>,
    role: String,
    database: String,
}

struct Line {
    runtime: Runtime,
    client: Client,
    driver: JoinHandle<()>,
}

impl Session {
    /// A session that can write, on the first host that allows it.
    pub fn connect(url: &str) -> Result<Session> {
        let address = Address::parse(url).map_err(|why| Error::settings(format!("database_url: {why}")))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::fault)?;
        let (client, driver) = match runtime.block_on(entry::connect(url, &address)) {
            Ok(entered) => entered,
            Err(error) => {
                // A name look-up may still be running.
                runtime.shutdown_background();
                return Err(error);
            }
        };
        let mut session = Session {
            line: Some(Line { runtime, client, driver }),
            statements: HashMap::new(),
            patience: Some(SILENCE),
            role: address.role().to_string(),
            database: address.database().to_string(),
        };
        // Every statement of a request finds its rows by an index, one after another, and runs the same way for all
        // values: it is planned once, and not by how empty a table was at that moment. Parallel workers would take
        // longer to start than the statement runs.
        session.batch(
            "SET lock_timeout = '10s'; SET statement_timeout = '60s'; \
             SET idle_in_transaction_session_timeout = '60s'; SET synchronous_commit = on; \
             SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
             SET plan_cache_mode = force_generic_plan; SET jit = off; SET max_parallel_workers_per_gather = 0",
        )?;
        Ok(session)
    }

    /// Lets the statements of `work` take as long as they need.
    pub fn patiently<T>(&mut self, work: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        self.patience = None;
        let outcome = work(self);
        self.patience = Some(SILENCE);
        outcome
    }

    /// Runs a function of the async client.
    pub fn run<T>(&mut self, work: impl AsyncFnOnce(&mut Client) -> T) -> Result<T> {
        let line = self.line.as_mut().expect("a session has its line until it is dropped");
        let work = work(&mut line.client);
        let silent = |_| {
            let what = format!("postgres: no answer for {} s", SILENCE.as_secs());
            Error::Fault(Fault { what, kind: FaultKind::Disconnected })
        };
        match self.patience {
            Some(most) => {
                line.runtime.block_on(async { tokio::time::timeout(most, work).await.map_err(silent) })
            }
            None => Ok(line.runtime.block_on(work)),
        }
    }

    pub fn batch(&mut self, text: &str) -> Result<()> {
        self.run(async |client| client.batch_execute(text).await)?.map_err(|error| self.told(&error))
    }

    pub fn prepare(&mut self, text: &'static str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(text) {
            return Ok(statement.clone());
        }
        let prepared = self.run(async |client| client.prepare(&numbered(text)).await)?;
        let statement = prepared.map_err(|error| self.told(&error))?;
        self.statements.insert(text, statement.clone());
        Ok(statement)
    }

    pub fn execute(&mut self, text: &'static str, params: &[Param]) -> Result<u64> {
        let statement = self.prepare(text)?;
        let params: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = params.iter().map(|p| p as _).collect();
        let done = self.run(async |client| client.execute(&statement, &params).await)?;
        done.map_err(|error| self.told(&error))
    }

    pub fn query(&mut self, text: &'static str, params: &[Param]) -> Result<Vec<tokio_postgres::Row>> {
        let statement = self.prepare(text)?;
        let params: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = params.iter().map(|p| p as _).collect();
        let found = self.run(async |client| client.query(&statement, &params).await)?;
        found.map_err(|error| self.told(&error))
    }

    /// The first field of the first row, as text.
    pub fn field(&mut self, text: &str) -> Result<Option<String>> {
        let told = self.run(async |client| client.simple_query(text).await)?;
        let told = told.map_err(|error| self.told(&error))?;
        Ok(told.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
            _ => None,
        }))
    }

    /// An error of the server, with advice when the role lacks rights.
    pub fn told(&self, error: &tokio_postgres::Error) -> Error {
        let what = postgres_error(error);
        if error.code() != Some(&tokio_postgres::error::SqlState::INSUFFICIENT_PRIVILEGE) {
            return what;
        }
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let (role, database) = (quoted(&self.role), quoted(&self.database));
        Error::settings(format!(
            "{what}; the role lacks rights: as an administrator run ALTER DATABASE {database} OWNER TO {role}; or in that \
             database GRANT USAGE, CREATE ON SCHEMA public TO {role}; and, where another role made the tables, GRANT \
             SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};"
        ))
    }
}

impl Drop for Session {
    /// Says goodbye, so that the server does not log a vanished client.
    fn drop(&mut self) {
        let Some(Line { runtime, client, driver }) = self.line.take() else { return };
        drop(client);
        if Handle::try_current().is_err() {
            let _ = runtime.block_on(async { tokio::time::timeout(GOODBYE, driver).await });
        }
        runtime.shutdown_background();
    }
}

/// Turns `?1` into PostgreSQL's `$1`. Our texts hold no question mark inside a literal.
pub(super) fn numbered(text: &str) -> String {
    text.replace('?', "$")
}
