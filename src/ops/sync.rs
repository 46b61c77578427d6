//! Takes a supplier's catalog into ours. A pull that failed, or that looks wrong, changes nothing until an operator has
//! looked at it. What a supplier no longer has is withdrawn, never deleted.

mod codes;
pub mod compare;
pub mod resync;

use std::collections::HashSet;
use std::sync::Arc;

pub use self::compare::{Change, Changes, LeftOut};
use super::LANE;
use super::audit::{self, audit_line};
use super::prices::{self, BelowCost};
use super::suppliers::{currency, rates};
use crate::app::App;
use crate::domain::plan::Plan;
use crate::domain::price::Subject;
use crate::error::{Error, Result};
use crate::store::tx::Tx;
use crate::store::{catalog, suppliers};
use crate::supplier::{Supplier, sim};

/// No single write may hold the writer for long: a sync is many small jobs, and a last one that publishes.
pub(super) const PLANS_PER_JOB: usize = 160;

/// Whether a sync may change what looks wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// A sync that looks wrong is held back.
    Needed,
    /// The operator has looked.
    Given,
}

pub struct Synced {
    pub changes: Changes,
    /// False when it was held back.
    pub applied: bool,
}

/// What a sync would change, and what would then be priced below its cost.
pub async fn preview(app: &App, name: &str) -> Result<(Changes, Vec<BelowCost>)> {
    let changes = compared(app, name, |_| true).await?;
    let subject = |(plan, _): &(Plan, String)| Subject {
        code: plan.code.clone(),
        name: plan.name.clone(),
        family: plan.family.clone(),
        countries: plan.countries.clone(),
        supplier: name.into(),
        cost: plan.cost,
    };
    let below_cost = prices::below_cost(app, changes.offered.iter().map(subject).collect()).await?;
    Ok((changes, below_cost))
}

/// Compares the plans of some of the supplier's codes.
async fn compared(app: &App, name: &str, is_asked: impl Fn(&str) -> bool) -> Result<Changes> {
    let supplier = app.supplier(name)?;
    let mut listings =
        supplier.plans().await.told().map_err(|why| Error::fault(format!("supplier {name}: {why}")))?;
    listings.retain(|listing| is_asked(&listing.code));
    let (owner, currency) = (supplier.name(), currency(app, name));
    let read = move |tx: &mut Tx| Ok((catalog::known(tx, owner)?, rates::billing(tx, owner, currency)?));
    let (mut known, billing) = app.store.snapshot(read).await?;
    known.retain(|plan| is_asked(&plan.supplier_code));
    let catalog = catalog_name(app, supplier.as_ref());
    let prefix = catalog.as_ref().map_or(String::new(), |_| format!("{owner}:"));
    Ok(compare::changes(&known, listings, catalog.as_deref(), &prefix, billing))
}

/// Whose catalog it is, for the codes of its plans; `None` for the simulator, whose codes are ours.
fn catalog_name(app: &App, supplier: &dyn Supplier) -> Option<String> {
    let terms = app.settings.supplier(supplier.name())?;
    let host = terms.url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    Some(format!("{}\n{host}", terms.kind.as_str()))
}

/// Takes a supplier's plans into the catalog.
pub async fn sync(app: &App, name: &str, consent: Consent) -> Result<Synced> {
    let changes = compared(app, name, |_| true).await?;
    let supplier = app.supplier(name)?.name();
    let mut doubts = changes.suspicious.clone();
    if changes.offered.is_empty() {
        doubts.push("the supplier listed nothing that can be sold".into());
    }
    if !doubts.is_empty() && (consent == Consent::Needed || changes.offered.is_empty()) {
        let why = doubts.join("; ");
        tracing::error!(
            supplier,
            why,
            "a sync changed nothing: `simgate supplier sync {supplier} --dry-run` shows it"
        );
        let note = move |tx: &mut Tx| suppliers::note_sync(tx, supplier, None, Some(&why));
        app.store.finish(LANE, note).await?;
        return Ok(Synced { changes, applied: false });
    }
    write(app, supplier, &changes).await?;
    let now = app.now();
    app.store.finish(LANE, move |tx| suppliers::note_sync(tx, supplier, Some(now), None)).await?;
    Ok(Synced { changes, applied: true })
}

/// Writes changes into the catalog, and the prices that follow from them.
async fn write(app: &App, supplier: &'static str, changes: &Changes) -> Result<()> {
    for batch in changes.offered.chunks(PLANS_PER_JOB) {
        let batch = Arc::new(batch.to_vec());
        let put = move |tx: &mut Tx| {
            // Read here: an operator may disable the supplier meanwhile.
            let enabled = suppliers::is_enabled(tx, supplier)?;
            catalog::put(tx, &batch, supplier, enabled)
        };
        app.store.finish(LANE, put).await?;
    }
    for batch in changes.gone.chunks(PLANS_PER_JOB) {
        let codes: Vec<String> = batch.iter().map(|gone| gone.code.clone()).collect();
        let withdraw = move |tx: &mut Tx| codes.iter().try_for_each(|code| catalog::withdraw(tx, code));
        app.store.finish(LANE, withdraw).await?;
    }
    // The rate may have changed since these costs were made.
    rates::recost(app, supplier).await?;
    prices::reprice(app).await.map(drop)
}

/// The suppliers whose plans are sold.
pub async fn enabled(app: &App) -> Result<HashSet<String>> {
    let all = app.store.read(suppliers::all).await?;
    Ok(all.into_iter().filter(|standing| standing.enabled).map(|standing| standing.name).collect())
}

/// The plans that a sandbox begins with.
pub async fn seed(app: &App) -> Result<()> {
    sync(app, sim::NAME, Consent::Given).await.map(drop)
}

/// A sync by an operator, in the audit log.
pub async fn by_hand(
    app: &App,
    actor: &str,
    command: &'static str,
    name: &str,
    consent: Consent,
) -> Result<Synced> {
    let synced = sync(app, name, consent).await?;
    if synced.applied {
        let changes = &synced.changes;
        let before = changes.offered.len() + changes.gone.len() - changes.added.len();
        let detail = format!(
            "{name}: {} added, {} gone, {} dearer, {} cheaper",
            changes.added.len(),
            changes.gone.len(),
            changes.dearer.len(),
            changes.cheaper.len()
        );
        let plans = |count: usize| format!("{count} plans");
        let line =
            audit_line(app, actor, command, detail).changing(plans(before), plans(changes.offered.len()));
        audit::record(app, line).await?;
    }
    Ok(synced)
}
