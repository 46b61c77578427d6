//! `simgate coupon`: codes that take something off a plan's retail price.

use clap::{ArgGroup, Args, Subcommand};

use super::output::{Form, Record, table};
use super::{Failure, Outcome, args};
use crate::app::App;
use crate::domain::coupon::{self, Applicability, Coupon, Discount};
use crate::domain::money::Usd;
use crate::domain::plan::typed_code;
use crate::domain::refusal::{PlanMistake, Refusal};
use crate::domain::search;
use crate::domain::time::Time;
use crate::ops::coupons::desk::{self, Tallied};

#[derive(Subcommand)]
pub enum Command {
    /// Make a coupon
    #[command(
        after_help = "Example: simgate coupon create --code SUMMER --percent 15 --ends 2030-08-31 --uses 500 \
                            --description \"15% off every plan\"
The discount is rounded down to the cent. The price stays at 0.50 USD or more, and at the supplier's cost or more \
unless --below-cost is given."
    )]
    Create(Create),
    /// Every coupon, with how often it was used
    #[command(after_help = "Example: simgate coupon list")]
    List(Form),
    /// Stop a coupon from being used; open checkouts that use it keep their price
    #[command(after_help = "Example: simgate coupon disable SUMMER")]
    Disable {
        /// Its code, in any case
        #[arg(value_name = "CODE")]
        code: String,
    },
}

#[derive(Args)]
#[command(group(ArgGroup::new("discount").args(["percent", "fixed"]).required(true)))]
pub struct Create {
    /// What people type: letters, digits, - and _, in any case
    #[arg(long, value_name = "CODE", value_parser = code)]
    code: String,
    /// The discount in percent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=100))]
    percent: Option<i64>,
    /// The discount in USD, in whole cents
    #[arg(long, value_name = "USD", value_parser = whole_cents, allow_negative_numbers = true)]
    fixed: Option<Usd>,
    /// An affiliate hands it out: it works, but the gateway never lists it to customers
    #[arg(long)]
    affiliate: bool,
    /// Only for the mobile app: it is shown, and refused at every door of this gateway
    #[arg(long)]
    app_only: bool,
    /// Only for this plan, which must be a BASE plan; its code in any case
    #[arg(long, value_name = "CODE")]
    package: Option<String>,
    /// Only for plans that work in this country (two letters)
    #[arg(long, value_name = "CC", value_parser = search::country_code)]
    country: Option<String>,
    /// Only for plans that cost at least this much
    #[arg(long, value_name = "USD", value_parser = args::usd, allow_negative_numbers = true)]
    min: Option<Usd>,
    /// Good from this day or moment on (UTC)
    #[arg(long, value_name = "T", value_parser = args::from)]
    starts: Option<Time>,
    /// Good until the end of this day, or until this moment (UTC)
    #[arg(long, value_name = "T", value_parser = args::to)]
    ends: Option<Time>,
    /// How often all users together can use it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1_000_000_000))]
    uses: Option<i64>,
    /// How often each user can use it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1_000_000_000))]
    uses_per_user: Option<i64>,
    /// May take a price below the supplier's cost
    #[arg(long)]
    below_cost: bool,
    /// What it is for, as people are told
    #[arg(long, value_name = "TEXT", value_parser = args::name)]
    description: Option<String>,
}

fn code(text: &str) -> Result<String, String> {
    let allowed = || format!("must have 1 to {} letters, digits, - or _", coupon::CODE_CHARS);
    coupon::parse_code(text).ok_or_else(allowed)
}

/// The discount is rounded down to the cent, so an amount with parts of a cent could not be kept.
fn whole_cents(text: &str) -> Result<Usd, String> {
    let amount = args::some_usd(text)?;
    if amount == amount.whole_cents() { Ok(amount) } else { Err("must be whole cents, like 2.50".into()) }
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let record = match command {
        Command::Create(new) => create(app, actor, new).await?,
        Command::List(_) => list(app).await?,
        Command::Disable { code } => {
            let disabled = desk::disable(app, actor, &code).await.map_err(|error| {
                let unknown = format!("no coupon has the code {code:?}; `simgate coupon list` lists them");
                Failure::worded(error, Refusal::CouponNotFound, unknown)
            })?;
            details(&disabled, app.now())
        }
    };
    Ok(record.into())
}

async fn create(app: &App, actor: &str, new: Create) -> Result<Record, Failure> {
    if let (Some(starts), Some(ends)) = (new.starts, new.ends)
        && ends <= starts
    {
        return Err(Failure::usage("--ends must be after --starts"));
    }
    if new.ends.is_some_and(|ends| ends <= app.now()) {
        return Err(Failure::usage(
            "--ends is over already, and a code is never used again: name a later time",
        ));
    }
    let discount = match (new.percent, new.fixed) {
        (Some(percent), _) => Discount::Percent(percent),
        (None, Some(amount)) => Discount::Fixed(amount),
        (None, None) => return Err(Failure::usage("one of --percent and --fixed is required")),
    };
    let plain = Coupon::new(new.code, discount, app.now());
    let coupon = Coupon {
        affiliate: new.affiliate,
        applicability: if new.app_only { Applicability::MobileApp } else { Applicability::General },
        package_code: new.package.as_deref().map(typed_code),
        country: new.country,
        min_price: new.min,
        starts_at: new.starts,
        ends_at: new.ends,
        uses: new.uses,
        uses_per_user: new.uses_per_user,
        below_cost: new.below_cost,
        description: new.description.unwrap_or_else(|| plain.description.clone()),
        ..plain
    };
    let package = coupon.package_code.clone().unwrap_or_default();
    let made = desk::create(app, actor, coupon).await.map_err(|error| {
        let unfit = format!("{package} is a TOPUP plan; coupons are good for BASE plans only");
        Failure::worded(error, Refusal::WrongPlanType(PlanMistake::TopupAlone), unfit)
    })?;
    Ok(details(&made, app.now()))
}

fn details(coupon: &Coupon, now: Time) -> Record {
    let (percent, fixed) = amounts(coupon.discount);
    Record::new()
        .with("code", coupon.code.clone())
        .with("status", coupon.status(now).as_str())
        .with("percent", percent)
        .with("fixedUsd", fixed)
        .with("affiliate", coupon.affiliate)
        .with("applicability", coupon.applicability.as_str())
        .with("packageCode", coupon.package_code.clone())
        .with("country", coupon.country.clone())
        .with("minUsd", coupon.min_price)
        .with("startsAt", coupon.starts_at)
        .with("endsAt", coupon.ends_at)
        .with("uses", coupon.uses)
        .with("usesPerUser", coupon.uses_per_user)
        .with("belowCost", coupon.below_cost)
        .with("description", coupon.in_words())
        .with("createdAt", coupon.created_at)
        .with("disabledAt", coupon.disabled_at)
}

fn amounts(discount: Discount) -> (Option<i64>, Option<Usd>) {
    match discount {
        Discount::Percent(percent) => (Some(percent), None),
        Discount::Fixed(amount) => (None, Some(amount)),
    }
}

async fn list(app: &App) -> Result<Record, Failure> {
    let now = app.now();
    let found = desk::list(app).await?;
    let table = table!(found.iter(), |Tallied { coupon, reserved, spent }| {
        let (percent, fixed) = amounts(coupon.discount);
        "code" => coupon.code.clone(),
        "status" => coupon.status(now).as_str(),
        "percent" => percent,
        "fixedUsd" => fixed,
        "uses" => coupon.uses,
        "used" => coupon.used,
        "reserved" => *reserved,
        "spent" => *spent,
        "usesPerUser" => coupon.uses_per_user,
        "affiliate" => coupon.affiliate,
        "applicability" => coupon.applicability.as_str(),
        "packageCode" => coupon.package_code.clone(),
        "country" => coupon.country.clone(),
        "minUsd" => coupon.min_price,
        "startsAt" => coupon.starts_at,
        "endsAt" => coupon.ends_at,
        "belowCost" => coupon.below_cost,
        "description" => coupon.in_words(),
    });
    Ok(Record::new().with("coupons", table))
}
