//! Rates of suppliers that bill in another currency than dollars. The operator sets them, with a date. Costs of plans
//! follow at once, and prices follow costs; orders keep the rate that they were placed at. An old rate warns, and an older
//! one stops the supplier's sales.

use super::currency;
use crate::app::App;
use crate::domain::amount::Fiat;
use crate::domain::cost::{Billed, Billing, Rate};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::words::words;
use crate::error::{Error, Result};
use crate::ops::audit::audit_line;
use crate::ops::sync::{Consent, PLANS_PER_JOB};
use crate::ops::{LANE, prices};
use crate::store::suppliers::{self, Standing};
use crate::store::tx::Tx;
use crate::store::{audit, catalog};
use crate::supplier::terms::Terms;
use crate::wire::dates;

words! {
    /// How a supplier stands with its rate, by the settings.
    pub enum Age {
        /// It bills in dollars.
        Unneeded = "unneeded",
        Fresh = "fresh",
        Old = "old",
        /// Too old to buy at.
        Stale = "stale",
        Missing = "missing",
    }
}

impl Age {
    pub(super) fn of(app: &App, standing: &Standing) -> Age {
        if currency(app, &standing.name) == Fiat::USD {
            return Age::Unneeded;
        }
        let settings = &app.settings;
        match standing.rate.and(standing.rate_day).map(|day| app.now().day() - day) {
            None => Age::Missing,
            Some(days) if days > settings.supplier_rate_stop_days => Age::Stale,
            Some(days) if days > settings.supplier_rate_warn_days => Age::Old,
            Some(_) => Age::Fresh,
        }
    }

    /// Whether nothing is bought at it.
    pub fn stops(self) -> bool {
        matches!(self, Age::Stale | Age::Missing)
    }

    /// The word for a list; none where all is well.
    pub fn mark(self) -> Option<&'static str> {
        match self {
            Age::Unneeded | Age::Fresh => None,
            Age::Old | Age::Stale | Age::Missing => Some(self.as_str()),
        }
    }

    /// What is wrong with it, and what to do.
    pub fn trouble(self, name: &str) -> Option<(&'static str, String)> {
        let what = match self {
            Age::Unneeded | Age::Fresh => return None,
            Age::Old => "its rate is old",
            Age::Stale => "its rate is too old, so nothing is bought from it",
            Age::Missing => "it bills in another currency and has no rate, so nothing is bought from it",
        };
        Some((what, format!("set today's: `simgate supplier rate {name} RATE`")))
    }
}

/// Sees to it that a supplier bills in one currency for ever: amounts of two would be mixed up in its books. It may
/// change until something of it is in the catalog or in the books.
pub(super) async fn agree_on_currency(app: &App, name: &'static str, known: Option<&Standing>) -> Result<()> {
    let wanted = currency(app, name);
    let Some(known) = known.filter(|known| known.currency != wanted) else { return Ok(()) };
    let change = move |tx: &mut Tx| {
        let used = suppliers::is_used(tx, name)?;
        if !used {
            suppliers::bill_in(tx, name, wanted)?;
        }
        Ok(used)
    };
    match app.store.finish(LANE, change).await? {
        false => Ok(()),
        true => Err(Error::settings(format!(
            "supplier {name:?} has plans or books in {}, and its settings say currency = \"{wanted}\": an account in \
             another currency is another supplier, so give it another name",
            known.currency
        ))),
    }
}

/// How a supplier bills, with its rate. An error says what to do when it has none.
pub(in crate::ops) fn billing(tx: &mut Tx, name: &str, currency: Fiat) -> Result<Billing> {
    if currency == Fiat::USD {
        return Ok(Billing::DOLLARS);
    }
    match suppliers::rate(tx, name)? {
        Some(rate) => Ok(Billing { currency, rate: Some(rate) }),
        None => Err(Error::settings(format!(
            "supplier {name} bills in {currency}, and its rate is not set: say how many dollars one {currency} costs \
             with `simgate supplier rate {name} RATE`"
        ))),
    }
}

/// A rate that was set.
pub struct Set {
    pub currency: Fiat,
    pub before: Option<Rate>,
    pub date: Time,
    /// How many plans have another cost now.
    pub plans: usize,
}

/// Sets the dollars for one unit of a supplier's currency on a day, today by default. A rate that differs by half from
/// the one before is a slip of the pen, unless the operator has looked.
pub async fn set(
    app: &App,
    actor: &str,
    name: &str,
    rate: Rate,
    date: Option<Time>,
    consent: Consent,
) -> Result<Set> {
    let name = app.supplier(name)?.name();
    let currency = currency(app, name);
    if currency == Fiat::USD {
        return Err(Refusal::field("rate", format!("is not needed: {name} bills in USD")).into());
    }
    let today = app.now().day();
    let day = date.map_or(today, Time::day);
    if day > today {
        return Err(Refusal::field("date", "must not be in the future").into());
    }
    let of = move |rate: Rate, day: i64| format!("{rate} of {}", dates::date(Time::of_day(day)));
    let line = audit_line(app, actor, "supplier rate", format!("{name}: 1 {currency} is {rate} USD"));
    let write = move |tx: &mut Tx| {
        let known = suppliers::all(tx)?.into_iter().find(|standing| standing.name == name);
        let before = known.and_then(|standing| standing.rate.zip(standing.rate_day));
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(before.map(|(rate, _)| rate));
        }
        if let Some((last, _)) = before
            && rate.is_far_from(last)
            && consent == Consent::Needed
        {
            let message =
                format!("differs by half or more from {last}, the last one; if it is right, add --accept");
            return Err(Refusal::field("rate", message).into());
        }
        suppliers::set_rate(tx, name, rate, day)?;
        let was = before.map_or("none".into(), |(rate, day)| of(rate, day));
        audit::record(tx, &line.changing(was, of(rate, day)))?;
        Ok(before.map(|(rate, _)| rate))
    };
    let before = app.store.finish(LANE, write).await?;
    let plans = recost(app, name).await?;
    prices::reprice(app).await?;
    Ok(Set { currency, before, date: Time::of_day(day), plans })
}

/// Brings the costs of a supplier's plans to its rate. Answers how many changed. An order reads cost, bill and rate of a
/// plan in one row, and no price below a cost is sold at; so orders may go on meanwhile.
pub(in crate::ops) async fn recost(app: &App, name: &'static str) -> Result<usize> {
    let mut changed = 0;
    loop {
        let write = move |tx: &mut Tx| {
            let Some(rate) = suppliers::rate(tx, name)? else { return Ok(0) };
            let plans = catalog::at_another_rate(tx, name, rate, PLANS_PER_JOB as i64)?;
            for (code, micros) in &plans {
                match rate.dollars(*micros) {
                    Some(cost) => catalog::cost_at(tx, code, Billed { micros: *micros, rate }, cost)?,
                    None => catalog::withdraw(tx, code)?,
                }
            }
            Ok(plans.len())
        };
        match app.store.finish(LANE, write).await? {
            0 => return Ok(changed),
            some => changed += some,
        }
    }
}

/// Stops and lets go the sales of suppliers, by the age of their rates. Costs that a process left half-way when it set a
/// rate are finished.
pub async fn round(app: &App) -> Result<()> {
    if app.settings.suppliers.iter().all(|terms| terms.currency == Fiat::USD) {
        return Ok(());
    }
    for standing in app.store.read(suppliers::all).await? {
        let other = |terms: &&Terms| terms.currency != Fiat::USD;
        let Some(terms) = app.settings.supplier(&standing.name).filter(other) else { continue };
        app.breakers.bar(terms.name, Age::of(app, &standing).stops());
        if recost(app, terms.name).await? > 0 {
            prices::reprice(app).await?;
        }
    }
    Ok(())
}

/// Says in the log that a rate is old.
pub(super) fn remind(app: &App, standing: &Standing) {
    let (supplier, age) = (standing.name.as_str(), Age::of(app, standing));
    let Some((what, advice)) = age.trouble(supplier) else { return };
    match age.stops() {
        true => tracing::error!(supplier, what, advice, "a supplier's rate stops its sales"),
        false => tracing::warn!(supplier, what, advice, "a supplier's rate is going to stop its sales"),
    }
}
