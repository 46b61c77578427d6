//! `simgate backup`: a consistent copy, while the gateway runs.

use std::path::PathBuf;

use clap::Args;

use super::output::Record;
use super::{Failure, Outcome};
use crate::app::App;
use crate::ops::backup;

/// Write a consistent copy of the database, while the gateway runs
///
/// SQLite: a database file that can be served as it is. PostgreSQL: an archive for pg_restore, made by pg_dump,
/// which must be installed here.
#[derive(Args)]
#[command(after_help = "Example: simgate backup /var/backups/simgate-2026-03-12.db")]
pub struct Backup {
    /// The file to write; it must not exist yet
    path: PathBuf,
}

impl Backup {
    pub async fn run(self, app: &App, actor: &str) -> Outcome {
        match backup::copy_by_hand(app, actor, self.path.clone()).await? {
            backup::Backup::Done => {
                let bytes = std::fs::metadata(&self.path).map(|file| file.len() as i64).ok();
                Ok(Record::new().with("path", self.path.display().to_string()).with("bytes", bytes).into())
            }
            backup::Backup::RunYourself(command) => Err(Failure {
                exit: 1,
                code: "INTERNAL",
                message: format!("pg_dump is not installed here; where it is, run: {command}"),
            }),
        }
    }
}
