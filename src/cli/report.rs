//! `simgate report`: figures, as a table, CSV or JSON.

use clap::{Args, Subcommand};

use super::output::{Record, table};
use super::wallet::Period;
use super::{Failure, Outcome};
use crate::app::App;
use crate::domain::money::Usd;
use crate::ops::reports;

#[derive(Subcommand)]
pub enum Command {
    /// What orders earned: sales, less their cost, less goodwill and losses
    #[command(
        after_help = "Example: simgate report margin --from 2026-01-01 --to 2026-01-31 --csv > january.csv"
    )]
    Margin(Margin),
    /// Debits and credits of every account of the ledger
    TrialBalance(Form),
    /// What every partner's wallet holds
    Wallets(Form),
}

#[derive(Args)]
pub struct Margin {
    #[command(flatten)]
    period: Period,
    /// List at most this many orders, newest first; the totals cover the whole period
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    limit: i64,
    #[command(flatten)]
    form: Form,
}

/// Read before the command runs: it decides how the answer is written.
#[derive(Args)]
pub struct Form {
    /// Print the table as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

pub async fn run(app: &App, command: Command) -> Outcome {
    let record = match command {
        Command::Margin(query) => margin(app, query).await?,
        Command::TrialBalance(_) => trial_balance(app).await?,
        Command::Wallets(_) => wallets(app).await?,
    };
    Ok(record.into())
}

async fn margin(app: &App, query: Margin) -> Result<Record, Failure> {
    let Period { from, to } = query.period;
    let report = reports::margin(app, from, to, query.limit).await?;
    let table = table!(report.orders.into_iter(), |line| {
        let margin = line.margin;
        let profit = margin.profit();
        "orderId" => line.order,
        "partnerId" => line.partner,
        "packageCode" => line.package_code,
        "status" => line.status,
        "salesUsd" => margin.sales,
        "costUsd" => margin.cost,
        "lossesUsd" => margin.losses,
        "profitUsd" => profit,
    });
    let total = report.total;
    Ok(Record::new()
        .with("from", from)
        .with("before", to)
        .with("orderCount", report.order_count)
        .with("salesUsd", total.sales)
        .with("costUsd", total.cost)
        .with("lossesUsd", total.losses)
        .with("profitUsd", total.profit())
        .with("orders", table))
}

async fn trial_balance(app: &App) -> Result<Record, Failure> {
    let lines = reports::trial_balance(app).await?;
    let debit = lines.iter().fold(Usd::ZERO, |sum, line| sum.plus(line.debit));
    let credit = lines.iter().fold(Usd::ZERO, |sum, line| sum.plus(line.credit));
    let table = table!(lines.into_iter(), |line| {
        "account" => line.account,
        "debitUsd" => line.debit,
        "creditUsd" => line.credit,
        "balanceUsd" => line.debit.minus(line.credit),
    });
    Ok(Record::new()
        .with("debitUsd", debit)
        .with("creditUsd", credit)
        .with("balanced", debit == credit)
        .with("accounts", table))
}

async fn wallets(app: &App) -> Result<Record, Failure> {
    let owners = reports::wallets(app).await?;
    let total = owners.iter().fold(Usd::ZERO, |sum, owner| sum.plus(owner.balance));
    let table = table!(owners.into_iter(), |owner| {
        "partnerId" => owner.id.to_string(),
        "name" => owner.name,
        "email" => owner.email,
        "balanceUsd" => owner.balance,
        "lowBalanceUsd" => owner.low_balance,
        "isLowBalance" => owner.balance < owner.low_balance,
        "suspended" => owner.suspended,
    });
    Ok(Record::new().with("balanceUsd", total).with("wallets", table))
}
