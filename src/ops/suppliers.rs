//! What an operator does with suppliers: look at them, try them, and let their plans be sold or not.

pub mod books;
pub mod rates;
pub mod trial;

use std::sync::Arc;
use std::time::Duration;

use metrics::gauge;

use self::rates::Age;
use super::audit::audit_line;
use super::sync::PLANS_PER_JOB;
use super::sync::resync;
use super::{LANE, breaker, prices, sync};
use crate::app::App;
use crate::domain::amount::{Amount, Fiat};
use crate::domain::cost::Rate;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::tx::Tx;
use crate::store::{audit, catalog, suppliers};
use crate::supplier::terms::{Kind, Terms};
use crate::supplier::{Supplier, sim};

/// How often a balance is read.
const LOOK_EVERY_MS: i64 = 10 * 60_000;
/// How long a supplier may take to answer an operator.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A supplier of the settings, and how it stands.
pub struct Overview {
    pub name: &'static str,
    pub kind: Kind,
    pub url: Option<String>,
    pub enabled: bool,
    /// How it resolves doubts and takes profiles back, in a word.
    pub doubts: &'static str,
    pub cancels: &'static str,
    /// Plans that it had at the last sync, and those of them that are on sale.
    pub plans: usize,
    pub on_sale: usize,
    pub synced_at: Option<Time>,
    pub held_back: Option<String>,
    pub balance: Option<Amount>,
    pub balance_at: Option<Time>,
    pub low_balance: bool,
    pub currency: Fiat,
    /// The dollars for one unit of its currency, and the day that this is of; dollars have none.
    pub rate: Option<(Rate, Time)>,
    pub rate_age: Age,
}

/// Enters the suppliers of the settings that the database does not know, each with its currency. The simulator sells at once; the others are
/// enabled by an operator who has looked at their plans.
pub async fn enlist(app: &App) -> Result<()> {
    let known = app.store.read(suppliers::all).await?;
    for &name in app.suppliers.keys() {
        rates::agree_on_currency(app, name, known.iter().find(|standing| standing.name == name)).await?;
        if !known.iter().any(|standing| standing.name == name) {
            let enabled = name == sim::NAME;
            let currency = currency(app, name);
            app.store.finish(LANE, move |tx| suppliers::enlist(tx, name, enabled, currency)).await?;
        }
    }
    Ok(())
}

/// The currency that a supplier bills in.
pub fn currency(app: &App, name: &str) -> Fiat {
    app.settings.supplier(name).map_or(Fiat::USD, |terms| terms.currency)
}

pub async fn list(app: &App) -> Result<Vec<Overview>> {
    let names: Vec<&'static str> = app.suppliers.keys().copied().collect();
    let read = move |tx: &mut Tx| {
        let plans: Result<Vec<_>> = names.iter().map(|name| catalog::known(tx, name)).collect();
        Ok((suppliers::all(tx)?, plans?))
    };
    let (standings, plans) = app.store.snapshot(read).await?;
    let mut all = Vec::with_capacity(plans.len());
    for ((&name, supplier), plans) in app.suppliers.iter().zip(plans) {
        let Some(standing) = standings.iter().find(|standing| standing.name == name) else { continue };
        let terms = app.settings.supplier(name);
        let abilities = supplier.abilities();
        let currency = currency(app, name);
        let balance = standing.balance.map(|micros| Amount { micros, currency });
        all.push(Overview {
            name,
            kind: terms.map_or(Kind::Simulator, |terms| terms.kind),
            url: terms.map(|terms| terms.url.clone()),
            enabled: standing.enabled,
            doubts: abilities.doubt.word(),
            cancels: abilities.cancel.word(),
            plans: plans.iter().filter(|plan| plan.listed).count(),
            on_sale: plans.iter().filter(|plan| plan.on_sale).count(),
            synced_at: standing.synced_at,
            held_back: standing.held_back.clone(),
            low_balance: terms
                .zip(balance)
                .is_some_and(|(terms, left)| left.micros < terms.low_balance.micros),
            balance,
            balance_at: standing.balance_at,
            currency,
            rate: standing.rate.zip(standing.rate_day.map(Time::of_day)),
            rate_age: Age::of(app, standing),
        });
    }
    Ok(all)
}

/// What a supplier answered to questions that cost nothing.
pub struct Tried {
    pub balance: Result<Amount, String>,
    pub plans: Result<usize, String>,
}

impl Tried {
    pub fn passed(&self) -> bool {
        self.balance.is_ok() && matches!(self.plans, Ok(count) if count > 0)
    }
}

/// Asks for the balance and the plans: this proves address, credentials and rate, and buys nothing.
pub async fn test(app: &App, name: &str) -> Result<Tried> {
    let supplier = app.supplier(name)?;
    let balance = read_balance(app, &supplier).await?;
    let plans = match tokio::time::timeout(PATIENCE, supplier.plans()).await {
        Ok(answer) => answer.told().map(|plans| plans.len()),
        Err(_) => Err("no answer within 60 s".into()),
    };
    Ok(Tried { balance, plans })
}

/// Reads a supplier's balance and keeps it.
pub async fn balance(app: &App, name: &str) -> Result<Result<Amount, String>> {
    read_balance(app, &app.supplier(name)?).await
}

async fn read_balance(app: &App, supplier: &Arc<dyn Supplier>) -> Result<Result<Amount, String>> {
    let answer = match tokio::time::timeout(PATIENCE, supplier.balance()).await {
        Ok(answer) => answer.told(),
        Err(_) => Err("no answer within 60 s".into()),
    };
    // Money in another currency than its own is told, and cannot be compared with anything that we keep.
    if let Some(left) = answer.as_ref().ok().filter(|left| left.currency == currency(app, supplier.name())) {
        let (name, now, micros) = (supplier.name(), app.now(), left.micros);
        app.store.finish(LANE, move |tx| suppliers::note_balance(tx, name, micros, now)).await?;
    }
    Ok(answer)
}

/// Lets a supplier's plans be sold, or takes them off sale; orders that are under way go on. False when it was so
/// already.
pub async fn enable(app: &App, actor: &str, name: &str, enabled: bool) -> Result<bool> {
    let word = |enabled: bool| if enabled { "enabled" } else { "disabled" };
    let command = if enabled { "supplier enable" } else { "supplier disable" };
    let line = audit_line(app, actor, command, name.into()).changing(word(!enabled), word(enabled));
    let named = name.to_string();
    // From now on new plans of a sync follow this.
    let decide = move |tx: &mut Tx| {
        let changed = suppliers::enable(tx, &named, enabled)?;
        if changed {
            audit::record(tx, &line)?;
        }
        Ok(changed)
    };
    let changed = app.store.finish(LANE, decide).await?;
    // Also when it was so already: an earlier attempt may have been cut off here.
    let owner = name.to_string();
    let known = app.store.snapshot(move |tx| catalog::known(tx, &owner)).await?;
    for batch in known.chunks(PLANS_PER_JOB) {
        let (first, last) = (batch[0].code.clone(), batch[batch.len() - 1].code.clone());
        let owner = name.to_string();
        let shelve = move |tx: &mut Tx| catalog::shelve(tx, &owner, &first, &last, enabled);
        app.store.finish(LANE, shelve).await?;
    }
    prices::reprice(app).await?;
    Ok(changed)
}

/// Takes in the plans of every enabled supplier: one after the other, because one that fails must not stop the others.
pub async fn sync_all(app: &App, actor: &str) -> Result<Vec<(&'static str, Result<sync::Synced>)>> {
    let enabled = sync::enabled(app).await?;
    let mut all = Vec::new();
    for &name in app.suppliers.keys().filter(|name| enabled.contains(**name)) {
        all.push((name, sync::by_hand(app, actor, "catalog sync", name, sync::Consent::Needed).await));
    }
    Ok(all)
}

/// What is due at the suppliers of the settings: a look whether those that are silent answer again, plans that cost
/// something else than we knew, their balances, and their plans. One instance does each.
pub async fn round(app: &App) -> Result<()> {
    breaker::round(app).await;
    rates::round(app).await?;
    resync::round(app).await;
    for standing in app.store.read(suppliers::all).await? {
        let Some(terms) = app.settings.supplier(&standing.name) else { continue };
        let (name, now) = (terms.name, app.now());
        let is_due = |at: Time, next: Time| at <= now || at > next;
        let next = now.plus_millis(LOOK_EVERY_MS);
        if is_due(standing.look_at, next)
            && app.store.write(LANE, move |tx| suppliers::take_look(tx, name, now, next)).await?
        {
            rates::remind(app, &standing);
            look(app, terms).await?;
        }
        let next = now.plus_millis(terms.sync_every.as_millis() as i64);
        if standing.enabled
            && is_due(standing.sync_at, next)
            && app.store.write(LANE, move |tx| suppliers::take_sync(tx, name, now, next)).await?
            && let Err(error) = sync::sync(app, name, sync::Consent::Needed).await
        {
            tracing::error!(supplier = name, %error, "the supplier's plans could not be taken in");
        }
    }
    Ok(())
}

/// Reads a balance, and raises the alarm when little is left.
async fn look(app: &App, terms: &Terms) -> Result<()> {
    let name = terms.name;
    match read_balance(app, &app.supplier(name)?).await? {
        Err(why) => tracing::warn!(supplier = name, why, "the supplier's balance could not be read"),
        Ok(left) => {
            gauge!("simgate_supplier_balance", "supplier" => name).set(left.micros as f64 / 1e6);
            if left.currency != terms.currency {
                let (left, billed) = (left.to_string(), terms.currency.to_string());
                tracing::error!(
                    supplier = name,
                    left,
                    billed,
                    "the supplier's balance is not in the currency of its settings"
                );
            } else if left.micros < terms.low_balance.micros {
                let (left, least) = (left.to_string(), terms.low_balance.to_string());
                tracing::error!(
                    supplier = name,
                    left,
                    least,
                    "pay in at the supplier: its balance is low, and it sells nothing without"
                );
            }
        }
    }
    Ok(())
}

/// A live gateway without an enabled supplier sells nothing.
pub async fn require_enabled(app: &App) -> Result<()> {
    let enabled = sync::enabled(app).await?;
    if app.suppliers.keys().any(|name| enabled.contains(*name)) {
        return Ok(());
    }
    Err(Error::settings(format!(
        "mode is live, and no supplier is enabled, so nothing can be sold. For one of {}, run these, then start again:\n  \
         simgate supplier test NAME\n  simgate supplier sync NAME --dry-run\n  simgate supplier sync NAME\n  \
         simgate supplier enable NAME",
        names(app).join(", ")
    )))
}

/// Those that are enabled and that the settings no longer name, so that nothing can be bought from them.
pub async fn missing(app: &App) -> Result<Vec<String>> {
    let enabled = sync::enabled(app).await?;
    let mut missing: Vec<String> =
        enabled.into_iter().filter(|name| !app.suppliers.contains_key(name.as_str())).collect();
    missing.sort_unstable();
    Ok(missing)
}

/// The names of all suppliers, for a message about an unknown one.
pub fn names(app: &App) -> Vec<&'static str> {
    app.suppliers.keys().copied().collect()
}

/// A supplier by the name that an operator typed.
pub fn require(app: &App, name: &str) -> Result<()> {
    match app.suppliers.contains_key(name) {
        true => Ok(()),
        false => Err(Error::settings(format!(
            "no supplier is called {name:?}; the settings have {}",
            if app.suppliers.is_empty() { "none".into() } else { names(app).join(", ") }
        ))),
    }
}

/// The same for ending one: the settings may no longer name it.
pub async fn require_known(app: &App, name: &str) -> Result<()> {
    if missing(app).await?.iter().any(|missing| missing == name) {
        return Ok(());
    }
    require(app, name)
}
