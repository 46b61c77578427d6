//! `simgate ledger verify`: proves the books, or names the rows that are wrong.

use clap::{Args, Subcommand};

use super::Outcome;
use super::addresses::note;
use super::output::{Record, Report, Table, cell, table};
use crate::app::App;
use crate::ops::ledger::{self, Comparison};

#[derive(Subcommand)]
pub enum Command {
    /// Recompute every balance from its postings and check every law; if one is broken, name the rows and exit 1
    #[command(after_help = "Example: simgate ledger verify --chain")]
    Verify(Verify),
}

#[derive(Args)]
pub struct Verify {
    /// Also compare what the books say our addresses hold with what the chains say
    #[arg(long)]
    chain: bool,
}

pub async fn run(app: &App, command: Command) -> Outcome {
    let Command::Verify(verify) = command;
    let verdict = ledger::verify(app).await?;
    let lawful = verdict.breaches.is_empty();
    let compared = if verify.chain { Some(ledger::against_chains(app).await?) } else { None };
    let passed = lawful && compared.as_ref().is_none_or(Comparison::holds);
    let rows =
        verdict.breaches.into_iter().map(|breach| [cell(breach.law), cell(breach.row), cell(breach.off_by)]);
    let mut record = Record::new()
        .with("ok", passed)
        .with("entries", verdict.counts.entries)
        .with("postings", verdict.counts.postings)
        .with("wallets", verdict.counts.wallets)
        .with("orders", verdict.counts.orders)
        .with("transfers", verdict.counts.transfers)
        .with("breaches", Table::new(["law", "row", "offBy"], rows));
    let mut sentences = vec![if lawful {
        "Every law of the ledger holds.".to_string()
    } else {
        "The books are wrong: see the rows above.".to_string()
    }];
    if let Some(compared) = &compared {
        record = record.with("chain", table(compared));
        sentences.push(sentence(compared));
    }
    Ok(Report { record: record.remark(sentences.join(" ")), passed })
}

fn table(compared: &Comparison) -> Table {
    table!(compared.holdings.iter(), |holding| {
        "network" => holding.network.as_str(),
        "currency" => holding.currency.as_str(),
        "bookedUsd" => holding.booked,
        "pendingUsd" => holding.pending,
        "onChainUsd" => holding.on_chain,
        "differenceUsd" => holding.difference(),
    })
}

fn sentence(compared: &Comparison) -> String {
    if compared.holds() {
        return "Our addresses hold what the books say.".into();
    }
    if compared.silent.is_empty() {
        return "The chains do not hold what the books say: see the differences above, and docs/settlement.md.".into();
    }
    format!("Not everything could be compared. {}", note(&compared.silent))
}
