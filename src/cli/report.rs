//! `simgate report`: figures, as a table, CSV or JSON.

use clap::{Args, Subcommand};

use super::output::{Form, Record, table};
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
    /// Debits and credits of every account of the ledger, in all or in a period
    #[command(after_help = "Example: simgate report trial-balance --to 2026-01-31 --csv > january.csv")]
    TrialBalance(TrialBalance),
    /// What every wallet holds, of partners and users
    #[command(after_help = "Example: simgate report wallets --csv > wallets.csv")]
    Wallets(Form),
}

#[derive(Args)]
pub struct TrialBalance {
    #[command(flatten)]
    period: Period,
    #[command(flatten)]
    form: Form,
}

#[derive(Args)]
pub struct Margin {
    #[command(flatten)]
    period: Period,
    /// List at most this many orders, newest first; the totals cover the whole period [default: 50, with --csv all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    limit: Option<i64>,
    #[command(flatten)]
    form: Form,
}

pub async fn run(app: &App, command: Command) -> Outcome {
    let record = match command {
        Command::Margin(query) => margin(app, query).await?,
        Command::TrialBalance(query) => trial_balance(app, query.period).await?,
        Command::Wallets(_) => wallets(app).await?,
    };
    Ok(record.into())
}

async fn margin(app: &App, query: Margin) -> Result<Record, Failure> {
    let Period { from, to } = query.period.checked()?;
    let report = reports::margin(app, from, to, query.form.limit(query.limit, 50)).await?;
    let table = table!(report.orders.into_iter(), |line| {
        let margin = line.margin;
        let profit = margin.profit();
        "createdAt" => line.created_at,
        "orderId" => line.order,
        "partnerId" as "account" => line.partner,
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

async fn trial_balance(app: &App, period: Period) -> Result<Record, Failure> {
    let (Period { from, to }, now) = (period.checked()?, app.now());
    let lines = reports::trial_balance_of(app, from, to).await?;
    let debit = lines.iter().fold(Usd::ZERO, |sum, line| sum.plus(line.debit));
    let credit = lines.iter().fold(Usd::ZERO, |sum, line| sum.plus(line.credit));
    let table = table!(lines.into_iter(), |line| {
        "from" => from,
        "before" => to.unwrap_or(now),
        "account" => line.account,
        "debitUsd" => line.debit,
        "creditUsd" => line.credit,
        "balanceUsd" => line.debit.minus(line.credit),
    });
    Ok(Record::new()
        .with("from", from)
        .with("before", to.unwrap_or(now))
        .with("debitUsd", debit)
        .with("creditUsd", credit)
        .with("balanced", debit == credit)
        .with("accounts", table))
}

async fn wallets(app: &App) -> Result<Record, Failure> {
    let (now, owners) = (app.now(), reports::wallets(app).await?);
    let total = owners.iter().fold(Usd::ZERO, |sum, owner| sum.plus(owner.balance));
    let table = table!(owners.into_iter(), |owner| {
        "asOf" => now,
        "partnerId" as "account" => owner.id.to_string(),
        "name" => owner.name,
        "email" => owner.email,
        "balanceUsd" => owner.balance,
        "lowBalanceUsd" => owner.low_balance,
        "isLowBalance" => owner.balance < owner.low_balance,
        "suspended" => owner.suspended,
    });
    Ok(Record::new().with("asOf", now).with("balanceUsd", total).with("wallets", table))
}
