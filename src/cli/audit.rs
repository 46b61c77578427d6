//! `simgate audit list`: what operators did, and what was before and after.

use clap::{Args, Subcommand};

use super::output::{Form, Record, cut, table};
use super::wallet::Period;
use super::{Outcome, args};
use crate::app::App;
use crate::ops::audit::{self, Wanted};

#[derive(Subcommand)]
pub enum Command {
    /// What operators did, newest first: who, when, what, before and after
    #[command(
        after_help = "Example: simgate audit list --from 2026-01-01 --command wallet --csv > january.csv"
    )]
    List(List),
}

#[derive(Args)]
pub struct List {
    #[command(flatten)]
    period: Period,
    /// Only what this operator did, like cli:ann
    #[arg(long, value_name = "WHO", value_parser = args::name)]
    actor: Option<String>,
    /// Only commands that begin like this: wallet, or "wallet credit"
    #[arg(long, value_name = "COMMAND", value_parser = args::name)]
    command: Option<String>,
    /// List at most this many lines [default: 50, with --csv all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    limit: Option<i64>,
    #[command(flatten)]
    form: Form,
}

pub async fn run(app: &App, command: Command) -> Outcome {
    let Command::List(query) = command;
    let limit = query.form.limit(query.limit, 50);
    let period = query.period.checked()?;
    let wanted = Wanted {
        from: period.from,
        to: period.to,
        actor: query.actor,
        command: query.command,
        limit: limit + 1,
    };
    let mut deeds = audit::list(app, wanted).await?;
    let more = cut(&mut deeds, limit);
    let table = table!(deeds.into_iter(), |deed| {
        "at" => deed.at,
        "actor" => deed.actor,
        "command" => deed.command,
        "detail" => deed.detail,
        "before" => deed.before,
        "after" => deed.after,
    });
    Ok(Record::new().with("deeds", table).going_on(more).into())
}
