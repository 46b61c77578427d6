//! `simgate wallet`: putting money in, taking it out, and reading the statement. Every move is in the audit log.

use clap::{Args, Subcommand};

use super::output::{Record, table};
use super::{Failure, Outcome, account, args};
use crate::app::App;
use crate::domain::ledger::CreditKind;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Error;
use crate::ops::accounts;
use crate::ops::operator::{self, Account, Adjustment};

#[derive(Subcommand)]
pub enum Command {
    /// Put money into a wallet
    #[command(
        after_help = "Example: simgate wallet credit ops@acme.example 250 --reason \"wire of 12 March\""
    )]
    Credit(Movement),
    /// Take money out of a wallet, never below zero
    #[command(
        after_help = "Example: simgate wallet debit ptn_… 20 --reason \"credited twice\" --kind correction"
    )]
    Debit(Movement),
    /// The movements of a wallet, newest first
    Statement(Statement),
}

#[derive(Args)]
pub struct Movement {
    /// Partner id or email
    account: String,
    /// How much
    #[arg(value_name = "USD", value_parser = args::some_usd, allow_negative_numbers = true)]
    amount: Usd,
    /// Why, for the statement and the audit log
    #[arg(long, value_name = "TEXT", value_parser = args::name)]
    reason: String,
    /// Where the other half of the entry is booked [default: bank for a credit, correction for a debit]
    #[arg(long, value_parser = args::credit_kind(), ignore_case = true)]
    kind: Option<CreditKind>,
}

#[derive(Args)]
pub struct Statement {
    /// Partner id or email
    account: String,
    #[command(flatten)]
    period: Period,
    /// List at most this many lines
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    limit: i64,
}

#[derive(Args)]
pub struct Period {
    /// From this day or moment on (YYYY-MM-DD or 2026-01-31T12:00:00Z; days are UTC)
    #[arg(long, value_name = "TIME", value_parser = args::from)]
    pub from: Option<Time>,
    /// Up to and including this day, or before this moment
    #[arg(long, value_name = "TIME", value_parser = args::to)]
    pub to: Option<Time>,
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let record = match command {
        Command::Credit(movement) => {
            let kind = movement.kind.unwrap_or(CreditKind::Bank);
            let (account, credit) = adjustment(app, movement, kind).await?;
            let balance = operator::credit_wallet(app, actor, credit.clone()).await?;
            moved(&account, &credit, credit.amount, balance)
        }
        Command::Debit(movement) => {
            let kind = movement.kind.unwrap_or(CreditKind::Correction);
            let (account, debit) = adjustment(app, movement, kind).await?;
            let balance = operator::debit_wallet(app, actor, debit.clone()).await.map_err(too_much)?;
            moved(&account, &debit, debit.amount.negated(), balance)
        }
        Command::Statement(statement) => lines(app, statement).await?,
    };
    Ok(record.into())
}

/// Rewords the refusal: its own sentence speaks of a purchase.
pub fn too_much(error: Error) -> Failure {
    match error {
        Error::Refused(refusal @ Refusal::InsufficientBalance { balance, .. }) => Failure::refused(
            refusal,
            format!("the wallet holds only {balance} USD, and never goes below zero"),
        ),
        other => other.into(),
    }
}

async fn adjustment(
    app: &App,
    movement: Movement,
    kind: CreditKind,
) -> Result<(Account, Adjustment), Failure> {
    let account = account::named(app, &movement.account).await?;
    let what = Adjustment { account: account.no, amount: movement.amount, kind, reason: movement.reason };
    Ok((account, what))
}

fn moved(account: &Account, what: &Adjustment, change: Usd, balance: Usd) -> Record {
    Record::new()
        .with(account::id_name(account), account.id.to_string())
        .with("amountUsd", change)
        .with("kind", what.kind.as_str())
        .with("reason", what.reason.clone())
        .with("balanceUsd", balance)
}

async fn lines(app: &App, query: Statement) -> Result<Record, Failure> {
    let account = account::named(app, &query.account).await?;
    let Period { from, to } = query.period;
    let statement = accounts::statement(app, account.no, from, to, None, query.limit).await?;
    let table = table!(statement.lines.into_iter(), |line| {
        "line" => line.line,
        "createdAt" => line.at,
        "type" => line.kind,
        "amountUsd" => line.change,
        "balanceUsd" => line.balance,
        "orderId" => line.order,
        "note" => line.note,
    });
    let record = Record::new()
        .with(account::id_name(&account), account.id.to_string())
        .with("name", account.name)
        .with("balanceUsd", account.balance)
        .with("transactions", table)
        .with("more", statement.next.is_some());
    Ok(match statement.next {
        Some(_) => record.remark("There are older lines: raise --limit, or move --to back."),
        None => record,
    })
}
