//! PostgreSQL: a blocking session with its prepared statements. Used only from plain threads, because the
//! blocking client panics inside an async runtime.

use std::collections::HashMap;

use postgres::{Client, NoTls, Statement};

use super::tx::{Param, postgres_error};
use crate::error::{Error, Result};

pub struct Session {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Session {
    pub fn connect(url: &str) -> Result<Session> {
        let mut config: postgres::Config =
            url.parse().map_err(|_| Error::fault("the database URL is not valid"))?;
        config
            .application_name("simgate")
            .connect_timeout(std::time::Duration::from_secs(5))
            .keepalives_idle(std::time::Duration::from_secs(10));
        let mut client = config.connect(NoTls).map_err(postgres_error)?;
        // Every statement of a request finds its rows by an index, one after another, and is the same for all values:
        // it is planned once, and not by how empty a table was at that moment. Workers beside it would take longer to
        // start than it runs.
        client
            .batch_execute(
                "SET lock_timeout = '10s'; SET statement_timeout = '60s'; \
                 SET idle_in_transaction_session_timeout = '60s'; SET synchronous_commit = on; \
                 SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
                 SET plan_cache_mode = force_generic_plan; SET jit = off; SET max_parallel_workers_per_gather = 0",
            )
            .map_err(postgres_error)?;
        Ok(Session { client, statements: HashMap::new() })
    }

    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    pub fn batch(&mut self, text: &str) -> Result<()> {
        self.client.batch_execute(text).map_err(postgres_error)
    }

    pub fn prepare(&mut self, text: &'static str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(text) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(&numbered(text)).map_err(postgres_error)?;
        self.statements.insert(text, statement.clone());
        Ok(statement)
    }

    pub fn execute(&mut self, text: &'static str, params: &[Param]) -> Result<u64> {
        let statement = self.prepare(text)?;
        let params: Vec<&(dyn postgres::types::ToSql + Sync)> = params.iter().map(|p| p as _).collect();
        self.client.execute(&statement, &params).map_err(postgres_error)
    }

    pub fn query(&mut self, text: &'static str, params: &[Param]) -> Result<Vec<postgres::Row>> {
        let statement = self.prepare(text)?;
        let params: Vec<&(dyn postgres::types::ToSql + Sync)> = params.iter().map(|p| p as _).collect();
        self.client.query(&statement, &params).map_err(postgres_error)
    }
}

/// `?1` as PostgreSQL writes it. Our texts hold no question mark inside a literal.
pub(super) fn numbered(text: &str) -> String {
    text.replace('?', "$")
}
