//! `simgate price`: the rules that prices are made by, as a draft, in a preview, and published.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand};

use super::output::{Form, Record, Table, table};
use super::{Failure, Outcome, text};
use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::plan::DEFAULT_PRICE_LIST;
use crate::domain::price::{self, Base, Percent, Rounding, Rule, Scope};
use crate::domain::refusal::Refusal;
use crate::error::Error;
use crate::ops::prices::{self, Change, Drafted, Entry, PricedPlan, Totals};

#[derive(Subcommand)]
pub enum Command {
    /// The rules of price lists, published and in the draft
    #[command(after_help = "Example: simgate price list --list default")]
    List(List),
    /// Put a rule into the draft
    #[command(after_help = "Example: simgate price set --all --percent 12 --least-margin 0.30
Example: simgate price set --country JP --percent 9 --round 5-cents
Example: simgate price set --list retail --region EUROPE --of default --percent 60 --round .49/.99
Example: simgate price set --list acme --all --of default --percent -3 --publish
Example: simgate price set --plan JP-1GB-7D --price 1.99
The most specific rule makes the price: plan, country, region, supplier, all. A country's rule is for plans that work in \
that country alone, a region's for plans in several. A region is called by where most of its countries are, whoever sells \
the plan: EUROPE, SOUTHEAST-ASIA, AMERICAS, ASIA-OCEANIA, GLOBAL. A partner's own list needs only what differs from \
default. What would be sold below cost is not for sale, unless --below-cost allows it. Prices are rounded up.")]
    Set(Box<Set>),
    /// Take a rule out of the draft
    #[command(after_help = "Example: simgate price unset --country JP")]
    Unset(Unset),
    /// What publishing the draft would change: prices, margins, and what would not be for sale
    #[command(after_help = "Example: simgate price preview --list default --csv > preview.csv")]
    Preview(Preview),
    /// Put the rules or prices of a CSV file into the draft; nothing is changed when a line is wrong
    #[command(after_help = "Example: simgate price import prices.csv --list retail
A price sheet has the columns packageCode and priceUsd; other columns are not read, and a line without a price, or with \
the price that the plan has anyway, changes nothing. A file of rules has the columns that `price export` writes. Rules \
that the file does not name stay.")]
    Import(Import),
    /// Write the draft's rules as CSV, or with --prices the price of every plan
    #[command(after_help = "Example: simgate price export --list retail --prices > prices.csv")]
    Export(Export),
    /// Make the draft count, everywhere at once; open checkouts keep their price
    #[command(after_help = "Example: simgate price publish")]
    Publish,
    /// Throw the draft away: what is published stays
    #[command(after_help = "Example: simgate price discard")]
    Discard,
}

#[derive(Args)]
pub struct List {
    /// Only this list
    #[arg(long, value_name = "LIST", value_parser = price::list_name)]
    list: Option<String>,
    #[command(flatten)]
    form: Form,
}

#[derive(Args)]
struct OnList {
    /// The list: default is what partners pay, retail what people pay; any other name is a partner's own
    #[arg(long, value_name = "LIST", value_parser = price::list_name, default_value = DEFAULT_PRICE_LIST)]
    list: String,
}

#[derive(Args)]
#[command(group(ArgGroup::new("for").args(["all", "supplier", "region", "country", "plan"]).required(true)))]
struct Plans {
    /// For all plans
    #[arg(long)]
    all: bool,
    /// For the plans of this supplier
    #[arg(long, value_name = "NAME")]
    supplier: Option<String>,
    /// For plans of this coverage, which has several countries
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// For plans that work in this country alone (two letters)
    #[arg(long, value_name = "CC")]
    country: Option<String>,
    /// For this plan; its code in any case
    #[arg(long, value_name = "CODE")]
    plan: Option<String>,
}

impl Plans {
    fn scope(&self) -> Result<Scope, Failure> {
        let named = [
            ("supplier", &self.supplier),
            ("region", &self.region),
            ("country", &self.country),
            ("plan", &self.plan),
        ];
        let named = named.into_iter().find_map(|(kind, target)| Some((kind, target.as_deref()?)));
        let (kind, target) = named.unwrap_or(("all", ""));
        Scope::parse(kind, target).map_err(Failure::usage)
    }
}

#[derive(Args)]
pub struct Set {
    #[command(flatten)]
    list: OnList,
    #[command(flatten)]
    plans: Plans,
    /// The price itself
    #[arg(long, value_name = "USD", value_parser = usd, allow_hyphen_values = true)]
    price: Option<Usd>,
    /// Percent on top; negative for less
    #[arg(long, value_name = "N", value_parser = Percent::parse, allow_hyphen_values = true)]
    percent: Option<Percent>,
    /// A second percentage, for small amounts: never more than --plus-at-most
    #[arg(long, value_name = "N", value_parser = Percent::parse, allow_hyphen_values = true)]
    plus_percent: Option<Percent>,
    /// The most that --plus-percent adds
    #[arg(long, value_name = "USD", value_parser = usd, allow_hyphen_values = true)]
    plus_at_most: Option<Usd>,
    /// An amount on top; negative for less
    #[arg(long, value_name = "USD", value_parser = usd, allow_hyphen_values = true)]
    fixed: Option<Usd>,
    /// The price is at least this much above the cost
    #[arg(long, value_name = "USD", value_parser = usd, allow_hyphen_values = true)]
    least_margin: Option<Usd>,
    /// What the percentages are of: the cost, or the price on the list default
    #[arg(long, value_name = "BASE", value_parser = base())]
    of: Option<Base>,
    /// Round up to: cent, 5-cents, endings like .99 or .49/.99, or shop (0.79, 4.29, then 12.49, then 54.99)
    #[arg(long, value_name = "HOW", value_parser = rounding)]
    round: Option<Rounding>,
    /// May sell below the supplier's cost
    #[arg(long)]
    below_cost: bool,
    /// Publish the draft right away
    #[arg(long)]
    publish: bool,
}

#[derive(Args)]
pub struct Unset {
    #[command(flatten)]
    list: OnList,
    #[command(flatten)]
    plans: Plans,
    /// Publish the draft right away
    #[arg(long)]
    publish: bool,
}

#[derive(Args)]
pub struct Preview {
    /// Only this list
    #[arg(long, value_name = "LIST", value_parser = price::list_name)]
    list: Option<String>,
    /// Show at most this many prices [default: 50, with --csv all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
    limit: Option<i64>,
    #[command(flatten)]
    form: Form,
}

#[derive(Args)]
pub struct Import {
    /// The file; - is the standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    list: OnList,
    /// Publish the draft right away
    #[arg(long)]
    publish: bool,
}

#[derive(Args)]
pub struct Export {
    #[command(flatten)]
    list: OnList,
    /// The price of every plan instead of the rules
    #[arg(long)]
    prices: bool,
}

fn usd(text: &str) -> Result<Usd, String> {
    Usd::parse(text).map_err(|error| error.as_str().into())
}

fn rounding(text: &str) -> Result<Rounding, String> {
    Rounding::parse(text).ok_or_else(|| Rounding::ALLOWED.into())
}

fn base() -> impl TypedValueParser<Value = Base> {
    PossibleValuesParser::new(Base::ALL.map(Base::as_str))
        .try_map(|word| Base::parse(&word).ok_or("unknown base"))
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let record = match command {
        Command::List(list) => {
            Record::new().with("rules", rules(&prices::rules(app, list.list.as_deref()).await?))
        }
        Command::Set(set) => self::set(app, actor, *set).await?,
        Command::Unset(unset) => self::unset(app, actor, unset).await?,
        Command::Preview(asked) => preview(app, &asked).await?,
        Command::Import(import) => self::import(app, actor, import).await?,
        Command::Export(export) => self::export(app, &export).await?,
        Command::Publish => publish(app, actor, Record::new()).await?,
        Command::Discard => {
            let discarded = prices::discard(app, actor).await?;
            Record::new().with("rulesDiscarded", discarded as i64)
        }
    };
    Ok(record.into())
}

fn rules(entries: &[Entry]) -> Table {
    table!(entries.iter(), |entry| {
        "priceList" => entry.list.clone(),
        "scope" => entry.scope.kind(),
        "target" => Some(entry.scope.target()).filter(|target| !target.is_empty()),
        "published" => entry.published.as_ref().map(ToString::to_string),
        "draft" => entry.drafted.as_ref().map(ToString::to_string),
        "state" => state(entry),
    })
}

fn state(entry: &Entry) -> &'static str {
    match (&entry.published, &entry.drafted) {
        (Some(published), Some(drafted)) if published == drafted => "published",
        (Some(_), Some(_)) => "changed",
        (None, _) => "new",
        (_, None) => "removed",
    }
}

async fn set(app: &App, actor: &str, set: Set) -> Result<Record, Failure> {
    let scope = set.plans.scope()?;
    let rule = Rule {
        price: set.price,
        base: set.of,
        percent: set.percent,
        plus_percent: set.plus_percent,
        plus_at_most: set.plus_at_most,
        fixed: set.fixed,
        least_margin: set.least_margin,
        rounding: set.round,
        below_cost: set.below_cost,
    };
    let list = set.list.list;
    let drafted =
        prices::set(app, actor, &list, scope.clone(), rule).await.map_err(|error| told(error, &scope))?;
    drafted_record(app, actor, (&list, &scope), &drafted, set.publish).await
}

async fn unset(app: &App, actor: &str, unset: Unset) -> Result<Record, Failure> {
    let (scope, list) = (unset.plans.scope()?, unset.list.list);
    let drafted =
        prices::unset(app, actor, &list, scope.clone()).await.map_err(|error| told(error, &scope))?;
    drafted_record(app, actor, (&list, &scope), &drafted, unset.publish).await
}

/// A refusal in the operator's words: what is wrong, without the name of a field.
fn told(error: Error, scope: &Scope) -> Failure {
    match error {
        Error::Refused(refusal @ Refusal::PlanNotFound) => {
            let message =
                format!("no plan has the code {}; `simgate catalog list` lists them", scope.target());
            Failure::refused(refusal, message)
        }
        Error::Refused(Refusal::Invalid(fields)) => {
            let message = fields.iter().map(|field| field.message.clone()).collect::<Vec<_>>().join("; ");
            Failure::refused(Refusal::Invalid(fields), message)
        }
        other => other.into(),
    }
}

async fn drafted_record(
    app: &App,
    actor: &str,
    (list, scope): (&str, &Scope),
    drafted: &Drafted,
    publishes: bool,
) -> Result<Record, Failure> {
    let record = Record::new()
        .with("priceList", list)
        .with("scope", scope.kind())
        .with("target", Some(scope.target()).filter(|target| !target.is_empty()))
        .with("before", drafted.before.as_ref().map(ToString::to_string))
        .with("draft", drafted.after.as_ref().map(ToString::to_string))
        .with("plans", drafted.plans as i64);
    published_or_not(app, actor, record, publishes).await
}

async fn published_or_not(
    app: &App,
    actor: &str,
    record: Record,
    publishes: bool,
) -> Result<Record, Failure> {
    match publishes {
        true => publish(app, actor, record).await,
        false => Ok(record.with("published", false).remark(
            "This is in the draft. `simgate price preview` shows what it would change, `simgate price publish` makes it count.",
        )),
    }
}

async fn publish(app: &App, actor: &str, record: Record) -> Result<Record, Failure> {
    let done = prices::publish(app, actor).await?;
    Ok(record
        .with("published", true)
        .with("rulesChanged", done.rules as i64)
        .with("pricesChanged", done.changed as i64))
}

async fn preview(app: &App, asked: &Preview) -> Result<Record, Failure> {
    let effect = prices::preview(app, asked.list.as_deref()).await?;
    let shown = usize::try_from(asked.form.limit(asked.limit, 50)).unwrap_or(usize::MAX);
    let changes = changes(effect.changes.iter().take(shown));
    if asked.form.is_csv() {
        return Ok(Record::new().with("prices", changes));
    }
    let more = effect.changes.len() > shown;
    let record = Record::new()
        .with("rulesChanged", effect.rules as i64)
        .with("pricesChanged", effect.changes.len() as i64)
        .with("lists", lists(&effect.lists))
        .with("prices", changes);
    Ok(record.going_on(more))
}

fn lists(totals: &[Totals]) -> Table {
    table!(totals.iter(), |total| {
        "priceList" => total.list.clone(),
        "forSale" => total.for_sale,
        "dearer" => total.dearer,
        "cheaper" => total.cheaper,
        "added" => total.added,
        "takenOff" => total.taken_off,
        "notForSaleBelowCost" => total.withheld,
        "soldBelowCost" => total.below_cost,
        "marginBeforeUsd" => total.margin_before,
        "marginUsd" => total.margin_after,
    })
}

fn changes<'a>(changes: impl Iterator<Item = &'a Change>) -> Table {
    table!(changes, |change| {
        "priceList" => change.list.clone(),
        "packageCode" => change.code.clone(),
        "costUsd" => change.cost,
        "beforeUsd" => change.before,
        "priceUsd" => change.after,
        "marginUsd" => change.margin(),
        "marginChangeUsd" => change.margin_change(),
        "belowCostUsd" => change.withheld,
    })
}

async fn import(app: &App, actor: &str, import: Import) -> Result<Record, Failure> {
    let text = contents(&import.file)?;
    let list = import.list.list;
    let imported = prices::import(app, actor, &list, &text).await.map_err(each_line)?;
    let record = Record::new()
        .with("priceList", list)
        .with("lines", imported.lines as i64)
        .with("rulesChanged", imported.changed as i64);
    published_or_not(app, actor, record, import.publish).await
}

fn contents(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match file.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text),
        _ => std::fs::File::open(file).and_then(|mut file| file.read_to_string(&mut text)),
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::usage(format!("{}: {error}", file.display()))),
    }
}

/// Every wrong line on a line of its own.
fn each_line(error: Error) -> Failure {
    match error {
        Error::Refused(Refusal::Invalid(mistakes)) => {
            let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            let message = format!("nothing was changed:\n{}", lines.join("\n"));
            Failure::refused(Refusal::Invalid(mistakes), message)
        }
        other => other.into(),
    }
}

async fn export(app: &App, export: &Export) -> Result<Record, Failure> {
    let list = &export.list.list;
    let record = if export.prices {
        Record::new().with("prices", sheet(&prices::price_sheet(app, list).await?))
    } else {
        let entries = prices::rules(app, Some(list)).await?;
        let drafted = entries.iter().filter_map(|entry| Some((&entry.scope, entry.drafted.as_ref()?)));
        Record::new().with("rules", rule_lines(drafted))
    };
    let written = text::csv(&record);
    Ok(record.prose(written))
}

fn sheet(plans: &[PricedPlan]) -> Table {
    table!(plans.iter(), |PricedPlan { plan, price, below_cost }| {
        "packageCode" => plan.code.clone(),
        "name" => plan.name.clone(),
        "supplier" => plan.supplier.clone(),
        "costUsd" => plan.cost,
        "priceUsd" => *price,
        "belowCost" => *below_cost,
    })
}

/// The columns that `price import` reads.
fn rule_lines<'a>(rules: impl Iterator<Item = (&'a Scope, &'a Rule)>) -> Table {
    table!(rules, |(scope, rule)| {
        "scope" => scope.kind(),
        "target" => Some(scope.target()).filter(|target| !target.is_empty()),
        "percent" => rule.percent.map(Percent::as_number),
        "plusPercent" => rule.plus_percent.map(Percent::as_number),
        "plusAtMostUsd" => rule.plus_at_most,
        "fixedUsd" => rule.fixed,
        "leastMarginUsd" => rule.least_margin,
        "rounding" => rule.rounding.as_ref().map(ToString::to_string),
        "priceUsd" => rule.price,
        "belowCost" => rule.below_cost,
        "base" => rule.base.map(Base::as_str),
    })
}
