//! `simgate sweep record`: money that was moved from our addresses to the treasury.

use clap::{Args, Subcommand};

use super::output::Record;
use super::{Failure, Outcome, args, transfers};
use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::refusal::Refusal;
use crate::ops::transfers::{Sweep, record_sweep};

#[derive(Subcommand)]
pub enum Command {
    /// Write down that you have moved money from our addresses to the treasury
    #[command(
        after_help = "Example: simgate sweep record --network POLYGON --currency USDT --amount 300 --tx 0x…
`simgate addresses list --funded` shows what there is to sweep. A transaction is recorded once."
    )]
    Record(Swept),
}

#[derive(Args)]
pub struct Swept {
    /// From our addresses on this network
    #[arg(long, value_parser = args::network(), ignore_case = true)]
    network: Network,
    /// In this token
    #[arg(long, value_parser = args::currency(), ignore_case = true)]
    currency: Currency,
    /// How much, at most what the books hold there
    #[arg(long, value_name = "USD", value_parser = args::some_usd, allow_negative_numbers = true)]
    amount: Usd,
    /// By this transaction
    #[arg(long, value_name = "HASH")]
    tx: String,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", value_parser = args::name)]
    reason: Option<String>,
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let Command::Record(Swept { network, currency, amount, tx, reason }) = command;
    let tx_hash = transfers::tx_hash(network, &tx)?;
    let sweep = Sweep { network, currency, amount, tx_hash: tx_hash.clone(), reason: reason.clone() };
    let left = record_sweep(app, actor, sweep).await.map_err(|error| {
        let twice = "this transaction is recorded as a sweep already";
        Failure::worded(error, Refusal::TransferAlreadyUsed, twice)
    })?;
    let record = Record::new()
        .with("network", network.as_str())
        .with("currency", currency.as_str())
        .with("amountUsd", amount)
        .with("txHash", tx_hash)
        .with("reason", reason)
        .with("leftUsd", left);
    Ok(record.into())
}
