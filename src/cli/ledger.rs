//! `simgate ledger verify`: proves the books, or names the rows that are wrong.

use clap::Subcommand;

use super::Outcome;
use super::output::{Record, Report, Table, cell};
use crate::app::App;
use crate::ops::ledger;

#[derive(Subcommand)]
pub enum Command {
    /// Recompute every balance from its postings and check every law; exit 1 and the exact rows if any is broken
    Verify,
}

pub async fn run(app: &App, command: Command) -> Outcome {
    let Command::Verify = command;
    let verdict = ledger::verify(app).await?;
    let passed = verdict.breaches.is_empty();
    let rows =
        verdict.breaches.into_iter().map(|breach| [cell(breach.law), cell(breach.row), cell(breach.off_by)]);
    let record = Record::new()
        .with("ok", passed)
        .with("entries", verdict.counts.entries)
        .with("postings", verdict.counts.postings)
        .with("wallets", verdict.counts.wallets)
        .with("orders", verdict.counts.orders)
        .with("breaches", Table::new(["law", "row", "offBy"], rows));
    let sentence =
        if passed { "Every law of the ledger holds." } else { "The books are wrong: see the rows above." };
    Ok(Report { record: record.remark(sentence), passed })
}
