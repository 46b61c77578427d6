//! `simgate supplier`: who sells to us. Enter one in the settings, test it, sync it with a preview, enable it.

use clap::Subcommand;

use super::output::{Form, Record, Report, Table, cell, table};
use super::{Failure, Outcome, args, twice};
use crate::app::App;
use crate::domain::amount::Amount;
use crate::domain::cost::Rate;
use crate::domain::money::Usd;
use crate::domain::refusal::{Conflict, Refusal};
use crate::domain::time::Time;
use crate::error::{Error, FaultKind};
use crate::ops::hooks;
use crate::ops::prices::BelowCost;
use crate::ops::suppliers::{self, Tried, books, rates, trial};
use crate::ops::sync::{self, Change, Changes, Consent};
use crate::wire::dates;

/// How many plans of each kind are shown; the counts are of all.
const SHOWN: usize = 20;

#[derive(Subcommand)]
pub enum Command {
    /// Every supplier of the settings, and how it stands
    #[command(after_help = "Example: simgate supplier list
A supplier is a table [supplier.NAME] in simgate.toml: see docs/suppliers.md.")]
    List(Form),
    /// Ask for balance and plans, which proves address and credentials and buys nothing
    #[command(after_help = "Example: simgate supplier test acme
With --buy it makes one real purchase of the cheapest plan, books it, tries on it how the supplier resolves doubts, and \
gives it back where that can be done. Once a day.")]
    Test {
        /// Its name in the settings
        #[arg(value_name = "NAME")]
        name: String,
        /// Buy the cheapest plan, after a question
        #[arg(long)]
        buy: bool,
        /// Buy without a question
        #[arg(long, requires = "buy")]
        yes: bool,
    },
    /// Take its plans into the catalog; plans it no longer has are withdrawn
    #[command(after_help = "Example: simgate supplier sync acme --dry-run
A sync that would withdraw a fifth of the plans, or move a cost by half, changes nothing until you have looked at it \
(--dry-run) and agreed (--accept).")]
    Sync {
        /// Its name in the settings
        #[arg(value_name = "NAME")]
        name: String,
        /// Show what would change, and change nothing
        #[arg(long)]
        dry_run: bool,
        /// You have looked at it: take it although it looks wrong
        #[arg(long, conflicts_with = "dry_run")]
        accept: bool,
    },
    /// Sell its plans
    #[command(after_help = "Example: simgate supplier enable acme")]
    Enable {
        /// Its name in the settings
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Sell no more of its plans; orders that are under way go on
    #[command(after_help = "Example: simgate supplier disable acme")]
    Disable {
        /// Its name in the settings
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Set the dollars for one unit of the currency that it bills in
    #[command(after_help = "Example: simgate supplier rate acme 1.0845
Costs and prices of its plans follow at once. Orders keep the rate that they were placed at. After supplier_rate_warn_days \
the log warns, and after supplier_rate_stop_days nothing is bought from it until there is a new rate.")]
    Rate {
        /// Its name in the settings
        #[arg(value_name = "NAME")]
        name: String,
        /// Dollars for one unit, with at most 9 decimals
        #[arg(value_name = "RATE", value_parser = args::rate, allow_negative_numbers = true)]
        rate: Rate,
        /// The day that the rate is of (default: today)
        #[arg(long, value_name = "YYYY-MM-DD", value_parser = args::date)]
        date: Option<Time>,
        /// It is right although it differs by half or more from the last one
        #[arg(long)]
        accept: bool,
    },
    /// Write down that you have paid in at a supplier
    #[command(after_help = "Example: simgate supplier fund acme 500 --ref wire-4711
The amount is in the currency that it bills in. The same reference is booked once. The books then know what should be left \
there.")]
    Fund {
        /// Its name in the settings
        #[arg(value_name = "NAME")]
        name: String,
        /// How much
        #[arg(value_name = "AMOUNT", value_parser = args::some_micros, allow_negative_numbers = true)]
        amount: i64,
        /// Your own reference, like a number on a bank statement
        #[arg(long = "ref", value_name = "TEXT", value_parser = args::name)]
        reference: String,
    },
    /// Compare its balance and its sales with the books, and name every difference
    #[command(after_help = "Example: simgate supplier reconcile acme
Exit code 1 when something differs.")]
    Reconcile {
        /// Its name in the settings
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// What is left of the money that you paid in there
    #[command(after_help = "Example: simgate supplier balance acme")]
    Balance {
        /// Its name in the settings
        #[arg(value_name = "NAME")]
        name: String,
    },
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    match &command {
        Command::List(_) => {}
        Command::Test { name, .. }
        | Command::Sync { name, .. }
        | Command::Enable { name }
        | Command::Rate { name, .. }
        | Command::Fund { name, .. }
        | Command::Reconcile { name }
        | Command::Balance { name } => suppliers::require(app, name)?,
        Command::Disable { name } => suppliers::require_known(app, name).await?,
    }
    match command {
        Command::List(_) => Ok(list(app).await?.into()),
        Command::Test { name, buy: false, .. } => test(app, &name).await,
        Command::Test { name, yes, .. } => buy(app, actor, &name, yes).await,
        Command::Sync { name, dry_run: true, .. } => {
            let (changes, below_cost) = sync::preview(app, &name).await.map_err(silent)?;
            let record = with_below_cost(shown(&name, &changes), &below_cost).with("applied", false);
            Ok(record.remark("Nothing was changed.").into())
        }
        Command::Sync { name, accept, .. } => {
            let consent = if accept { Consent::Given } else { Consent::Needed };
            take(app, actor, &name, consent).await
        }
        Command::Enable { name } => switch(app, actor, &name, true).await,
        Command::Disable { name } => switch(app, actor, &name, false).await,
        Command::Balance { name } => balance(app, &name).await,
        Command::Rate { name, rate, date, accept } => {
            let consent = if accept { Consent::Given } else { Consent::Needed };
            set_rate(app, actor, &name, rate, date, consent).await
        }
        Command::Fund { name, amount, reference } => fund(app, actor, &name, amount, &reference).await,
        Command::Reconcile { name } => reconcile(app, &name).await,
    }
}

/// A supplier that does not answer is no fault of ours. What is missing here is no fault of its.
fn silent(error: Error) -> Failure {
    if matches!(&error, Error::Fault(fault) if fault.kind == FaultKind::Settings) {
        return error.into();
    }
    Failure::refused(Refusal::SupplierUnavailable { refunded: Usd::ZERO }, error.to_string())
}

async fn list(app: &App) -> Result<Record, Failure> {
    let all = suppliers::list(app).await?;
    let table = table!(all.iter(), |supplier| {
        "name" => supplier.name,
        "kind" => supplier.kind.as_str(),
        "enabled" => supplier.enabled,
        "plans" => supplier.plans as i64,
        "onSale" => supplier.on_sale as i64,
        "syncedAt" => supplier.synced_at,
        "heldBack" => supplier.held_back.clone(),
        "balance" => supplier.balance.map(|left| left.to_string()),
        "balanceAt" => supplier.balance_at,
        "lowBalance" => supplier.low_balance,
        "currency" => supplier.currency.to_string(),
        "rate" => supplier.rate.map(|(rate, _)| rate.to_string()),
        "rateDate" => supplier.rate.map(|(_, date)| dates::date(date)),
        "rateMark" => supplier.rate_age.mark(),
        "doubts" => supplier.doubts,
        "cancels" => supplier.cancels,
        "url" => supplier.url.clone(),
        "messagesTo" => supplier.url.as_ref().map(|_| hooks::address(app, supplier.name)),
    });
    Ok(Record::new().with("suppliers", table))
}

async fn test(app: &App, name: &str) -> Outcome {
    let tried = suppliers::test(app, name).await?;
    let passed = tried.passed();
    let Tried { balance, plans } = tried;
    let record = Record::new()
        .with("supplier", name)
        .with("passed", passed)
        .with("balance", balance.as_ref().ok().map(ToString::to_string))
        .with("plans", plans.as_ref().ok().map(|count| *count as i64))
        .with("trouble", balance.err().or(plans.err()));
    let remark = match passed {
        true => format!("It answers. Look at its plans: simgate supplier sync {name} --dry-run"),
        false => "Check url and credentials in the settings (`simgate config`), then try again.".into(),
    };
    Ok(Report { record: record.remark(remark), passed })
}

async fn buy(app: &App, actor: &str, name: &str, yes: bool) -> Outcome {
    let plan = trial::cheapest(app, name).await.map_err(silent)?;
    let question = format!("This buys {} ({}) from {name} for {}.", plan.name, plan.code, plan.cost);
    if !yes && !twice::agreed(&format!("{question} Buy it?")) {
        return Err(Failure::refused(
            Conflict::default().into(),
            "nothing was bought; --yes buys without a question",
        ));
    }
    let trial = trial::buy(app, actor, name, &plan).await.map_err(|error| {
        let lately = format!("{name} was tried by a purchase within the last day; once a day is enough");
        Failure::worded(error, Conflict::default().into(), lately)
    })?;
    let passed = trial.doubts.is_ok();
    let record = Record::new()
        .with("supplier", name)
        .with("passed", passed)
        .with("order", trial.order.to_string())
        .with("supplierCode", trial.code)
        .with("name", trial.name)
        .with("cost", trial.cost.to_string())
        .with("iccid", trial.iccid)
        .with("doubts", trial.doubts.map_or_else(|why| why, |()| "resolved as declared".into()))
        .with("returned", trial.returned.as_ref().ok().map(ToString::to_string))
        .with("notReturned", trial.returned.err())
        .with("activationCode", trial.activation);
    Ok(Report { record, passed })
}

async fn take(app: &App, actor: &str, name: &str, consent: Consent) -> Outcome {
    let synced = sync::by_hand(app, actor, "supplier sync", name, consent).await.map_err(silent)?;
    let record = shown(name, &synced.changes).with("applied", synced.applied);
    let remark = match synced.applied {
        true => format!(
            "Its plans are in the catalog. They are sold when it is enabled: simgate supplier enable {name}"
        ),
        false => format!(
            "Nothing was changed, because this looks wrong. If it is right: simgate supplier sync {name} --accept"
        ),
    };
    Ok(Report { record: record.remark(remark), passed: synced.applied })
}

fn shown(name: &str, changes: &Changes) -> Record {
    let plans = |some: &[Change]| {
        let row = |change: &Change| {
            [
                cell(change.code.as_str()),
                cell(change.supplier_code.as_str()),
                cell(change.name.as_str()),
                cell(change.cost_before),
                cell(change.cost_after),
            ]
        };
        let columns = ["packageCode", "supplierCode", "name", "costBeforeUsd", "costAfterUsd"];
        Table::new(columns, some.iter().take(SHOWN).map(row))
    };
    let left_out = changes
        .left_out
        .iter()
        .take(SHOWN)
        .map(|plan| [cell(plan.supplier_code.as_str()), cell(plan.name.as_str()), cell(plan.why)]);
    Record::new()
        .with("supplier", name)
        .with("plans", changes.offered.len() as i64)
        .with("addedCount", changes.added.len() as i64)
        .with("goneCount", changes.gone.len() as i64)
        .with("dearerCount", changes.dearer.len() as i64)
        .with("cheaperCount", changes.cheaper.len() as i64)
        .with("changedCount", changes.changed.len() as i64)
        .with("leftOutCount", changes.left_out.len() as i64)
        .with("looksWrong", changes.suspicious.clone())
        .with("added", plans(&changes.added))
        .with("gone", plans(&changes.gone))
        .with("dearer", plans(&changes.dearer))
        .with("cheaper", plans(&changes.cheaper))
        .with("leftOut", Table::new(["supplierCode", "name", "why"], left_out))
}

/// Plans whose price would be below their cost: not for sale, unless their rules allow it.
fn with_below_cost(record: Record, below_cost: &[BelowCost]) -> Record {
    let row = |below: &BelowCost| {
        [
            cell(below.code.as_str()),
            cell(below.name.as_str()),
            cell(below.list.as_str()),
            cell(below.price),
            cell(below.cost),
            cell(below.sold),
        ]
    };
    let columns = ["packageCode", "name", "list", "priceUsd", "costUsd", "forSale"];
    record
        .with("belowCostCount", below_cost.len() as i64)
        .with("belowCost", Table::new(columns, below_cost.iter().take(SHOWN).map(row)))
}

async fn switch(app: &App, actor: &str, name: &str, enabled: bool) -> Outcome {
    let changed = suppliers::enable(app, actor, name, enabled).await?;
    let all = suppliers::list(app).await?;
    let on_sale = all.iter().find(|supplier| supplier.name == name).map_or(0, |supplier| supplier.on_sale);
    let record = Record::new()
        .with("supplier", name)
        .with("enabled", enabled)
        .with("changed", changed)
        .with("onSale", on_sale as i64);
    let remark = match (enabled, on_sale) {
        (true, 0) => format!("Nothing of it is on sale yet: simgate supplier sync {name}"),
        (true, plans) => format!("{plans} of its plans are on sale."),
        (false, _) => "None of its plans is on sale. Orders that are under way go on.".into(),
    };
    Ok(record.remark(remark).into())
}

async fn set_rate(
    app: &App,
    actor: &str,
    name: &str,
    rate: Rate,
    date: Option<Time>,
    consent: Consent,
) -> Outcome {
    let set = rates::set(app, actor, name, rate, date, consent).await?;
    let record = Record::new()
        .with("supplier", name)
        .with("currency", set.currency.to_string())
        .with("rate", rate.to_string())
        .with("rateBefore", set.before.map(|rate| rate.to_string()))
        .with("date", dates::date(set.date))
        .with("plansChanged", set.plans as i64);
    Ok(record.remark("Costs and prices follow it. Gateways that run see it within 10 seconds.").into())
}

async fn fund(app: &App, actor: &str, name: &str, amount: i64, reference: &str) -> Outcome {
    let amount = Amount { micros: amount, currency: suppliers::currency(app, name) };
    let funded = books::fund(app, actor, name, amount, reference).await.map_err(|error| {
        let other = format!("another amount was booked for {name} under the reference {reference:?}");
        Failure::worded(error, Conflict::default().into(), other)
    })?;
    let record = Record::new()
        .with("supplier", name)
        .with("amount", amount.to_string())
        .with("amountUsd", funded.usd)
        .with("bookedUsd", funded.booked)
        .with("known", funded.known);
    Ok(if funded.known { record.remark("It was booked before; nothing was done now.") } else { record }
        .into())
}

async fn reconcile(app: &App, name: &str) -> Outcome {
    let found = books::reconcile(app, name).await?;
    let passed = found.agrees();
    let rows = found
        .differences
        .iter()
        .map(|difference| [cell(difference.order.to_string()), cell(difference.what), cell(difference.cost)]);
    let record = Record::new()
        .with("supplier", name)
        .with("agrees", passed)
        .with("bookedUsd", found.booked_usd)
        .with("booked", found.booked.to_string())
        .with("balance", found.reported.as_ref().ok().map(ToString::to_string))
        .with("offBy", found.off().map(|off| off.to_string()))
        .with("offByUsd", found.off_by())
        .with("openOrders", found.open as i64)
        .with("openCost", found.open_cost.to_string())
        .with("openCostUsd", found.open_cost.in_usd())
        .with("salesListed", found.listed.as_ref().ok().map(|count| *count as i64))
        .with("trouble", found.reported.err().or(found.listed.err()))
        .with("differences", Table::new(["order", "what", "costUsd"], rows));
    Ok(Report { record, passed })
}

async fn balance(app: &App, name: &str) -> Outcome {
    match suppliers::balance(app, name).await? {
        Ok(left) => Ok(Record::new().with("supplier", name).with("balance", left.to_string()).into()),
        Err(why) => Err(silent(Error::fault(format!("supplier {name}: {why}")))),
    }
}
