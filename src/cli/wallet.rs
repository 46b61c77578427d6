//! `simgate wallet`: putting money in, taking it out, and reading the statement. Every move is in the audit log.

use clap::{Args, Subcommand};

use super::output::{Form, Record, table};
use super::{Failure, Outcome, account, args, twice};
use crate::app::App;
use crate::domain::ledger::CreditKind;
use crate::domain::money::Usd;
use crate::domain::refusal::{Conflict, Refusal};
use crate::domain::time::Time;
use crate::error::Error;
use crate::ops::accounts;
use crate::ops::operator::{self, Adjustment, Direction, gist};

#[derive(Subcommand)]
pub enum Command {
    /// Put money into a wallet
    #[command(
        after_help = "Example: simgate wallet credit ops@acme.example 250 --reason \"wire of 12 March\" --ref wire-4711"
    )]
    Credit(Movement),
    /// Take money out of a wallet, never below zero
    #[command(
        after_help = "Example: simgate wallet debit ptn_… 20 --reason \"credited twice\" --kind correction"
    )]
    Debit(Movement),
    /// The movements of a wallet, newest first
    #[command(after_help = "Example: simgate wallet statement ops@acme.example --from 2026-01-01 --csv")]
    Statement(Statement),
}

#[derive(Args)]
pub struct Movement {
    /// Partner id, user id or email
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
    /// Your own reference, like a number on a bank statement: the same one is booked once
    #[arg(long = "ref", value_name = "TEXT", value_parser = args::name)]
    reference: Option<String>,
    /// Do it without a question, also when the same was done within a day
    #[arg(long)]
    yes: bool,
}

#[derive(Args)]
pub struct Statement {
    /// Partner id, user id or email
    account: String,
    #[command(flatten)]
    period: Period,
    /// List at most this many lines [default: 50, with --csv all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    limit: Option<i64>,
    #[command(flatten)]
    form: Form,
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

impl Period {
    /// Refuses a period in which no moment lies: its ends were mixed up.
    pub fn checked(self) -> Result<Period, Failure> {
        match (self.from, self.to) {
            (Some(from), Some(to)) if from >= to => {
                Err(Failure::usage("--from must be before --to: there is nothing between them"))
            }
            _ => Ok(self),
        }
    }
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let record = match command {
        Command::Credit(movement) => {
            let kind = movement.kind.unwrap_or(CreditKind::Bank);
            adjust(app, actor, Direction::Credit, movement, kind).await?
        }
        Command::Debit(movement) => {
            let kind = movement.kind.unwrap_or(CreditKind::Correction);
            adjust(app, actor, Direction::Debit, movement, kind).await?
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

fn not_moved(error: Error, reference: Option<&str>) -> Failure {
    match reference {
        Some(reference) if matches!(error.refusal(), Some(Refusal::IdempotencyConflict(_))) => {
            let message = format!(
                "the reference {reference:?} was used for another movement: another account, amount, kind or direction"
            );
            Failure::refused(Conflict::default().into(), message)
        }
        _ => too_much(error),
    }
}

async fn adjust(
    app: &App,
    actor: &str,
    direction: Direction,
    movement: Movement,
    kind: CreditKind,
) -> Result<Record, Failure> {
    let Movement { account, amount, reason, reference, yes, .. } = movement;
    let account = account::named(app, &account).await?;
    let what = Adjustment { account: account.no, amount, kind, reason: reason.clone() };
    let deed = async {
        let done = operator::adjust_wallet(app, actor, direction, what, reference.as_deref()).await;
        done.map_err(|error| not_moved(error, reference.as_deref()))
    };
    // A reference is booked once, however often it is pasted.
    let sure = yes || reference.is_some();
    let begins = format!("{},", gist(&account.id, amount));
    let done = twice::warned(app, direction.as_str(), &begins, sure, deed).await?;
    let change = match direction {
        Direction::Credit => amount,
        Direction::Debit => amount.negated(),
    };
    let record = Record::new()
        .with(account::id_name(&account), account.id.to_string())
        .with("amountUsd", change)
        .with("kind", kind.as_str())
        .with("reason", reason)
        .with("ref", reference)
        .with("alreadyDone", done.known)
        .with("balanceUsd", done.balance);
    Ok(match done.known {
        true => record.remark("This reference was booked before: nothing was done now."),
        false => record,
    })
}

async fn lines(app: &App, query: Statement) -> Result<Record, Failure> {
    let account = account::named(app, &query.account).await?;
    let Period { from, to } = query.period.checked()?;
    let statement =
        accounts::statement(app, account.no, from, to, None, query.form.limit(query.limit, 50)).await?;
    let table = table!(statement.lines.into_iter(), |line| {
        "line" => line.line,
        "createdAt" => line.at,
        "type" => line.kind,
        "amountUsd" => line.change,
        "balanceUsd" => line.balance,
        "orderId" => line.order,
        "invoiceId" => line.invoice.as_ref().map(ToString::to_string),
        "ref" => operator::reference_of(&line.entry).map(str::to_string),
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
