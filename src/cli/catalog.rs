//! `simgate catalog`: what is on sale, and taking the supplier's plans into it.

use clap::{Args, Subcommand};

use super::output::{Form, Record, Report, table};
use super::{Outcome, args};
use crate::app::App;
use crate::domain::plan::PlanType;
use crate::domain::search;
use crate::ops::catalog::{self, Wanted};
use crate::ops::suppliers;
use crate::ops::sync::Synced;

#[derive(Subcommand)]
pub enum Command {
    /// Take in the plans of every enabled supplier (one: `simgate supplier sync`)
    #[command(after_help = "Example: simgate catalog sync")]
    Sync,
    /// Plans on sale, with cost and prices
    #[command(after_help = "Example: simgate catalog list --country JP --type BASE")]
    List(List),
}

#[derive(Args)]
pub struct List {
    /// Only plans that work in this country (two letters)
    #[arg(long, value_name = "CC", value_parser = search::country_code)]
    country: Option<String>,
    /// Only plans of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = args::plan_type(), ignore_case = true)]
    plan_type: Option<PlanType>,
    /// Only plans with all these words in name, code, operator or country names
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
    /// List at most this many [default: 50, with --csv all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    limit: Option<i64>,
    #[command(flatten)]
    form: Form,
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let record = match command {
        Command::Sync => return sync(app, actor).await,
        Command::List(query) => {
            catalog::load(app).await?;
            list(app, &query)
        }
    };
    Ok(record.into())
}

/// One supplier that fails does not stop the others.
async fn sync(app: &App, actor: &str) -> Outcome {
    let (mut plans, mut withdrawn, mut trouble) = (0, 0, Vec::new());
    for (name, synced) in suppliers::sync_all(app, actor).await? {
        match synced {
            Ok(Synced { changes, applied: true }) => {
                plans += changes.offered.len();
                withdrawn += changes.gone.len();
            }
            Ok(Synced { .. }) => {
                trouble.push(format!("{name} looks wrong: see `simgate supplier sync {name} --dry-run`"));
            }
            Err(error) => trouble.push(error.to_string()),
        }
    }
    let passed = trouble.is_empty();
    let record = Record::new()
        .with("plans", plans as i64)
        .with("withdrawn", withdrawn as i64)
        .with("trouble", trouble);
    Ok(Report { record, passed })
}

/// As the partner API lists them, with the cost that partners do not see.
fn list(app: &App, query: &List) -> Record {
    let wanted = Wanted {
        country: query.country.as_deref(),
        plan_type: query.plan_type,
        words: query.query.as_deref().unwrap_or_default(),
    };
    let mut found = catalog::wanted(app, &wanted);
    let total = found.len();
    found.truncate(query.form.limit(query.limit, 50) as usize);
    let table = table!(found.iter(), |plan| {
        "packageCode" => plan.code.clone(),
        "type" => plan.plan_type.as_str(),
        "name" => plan.name.clone(),
        "locationCodes" => plan.countries.clone(),
        "operator" => plan.operator.clone(),
        "dataMb" => plan.data_mb,
        "durationDays" => plan.duration_days,
        "costUsd" => plan.cost,
        "wholesalePriceUsd" => plan.wholesale,
        "retailPriceUsd" => Some(plan.retail).filter(|price| price.is_positive()),
    });
    Record::new().with("total", total as i64).with("plans", table)
}
