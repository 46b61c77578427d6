//! Takes single plans in again: those that turned out to cost something else than we knew. Sales note them, and one pull
//! serves all that were noted since the last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Changes, compared, write};
use crate::app::App;
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::{LANE, prices};
use crate::store::catalog;
use crate::store::tx::Tx;

/// More plans than this are a matter for a whole sync.
const MOST: usize = 100;
/// A supplier whose list says nothing new is not asked for it again before this.
const REST_MS: i64 = 600_000;

/// The plans to take in again, by supplier.
#[derive(Default)]
pub struct Noted(Mutex<BTreeMap<String, Plans>>);

#[derive(Default)]
struct Plans {
    /// The supplier's own codes of them.
    codes: BTreeSet<String>,
    rests_until: Option<Time>,
}

impl Noted {
    pub fn note(&self, supplier: &str, supplier_code: &str) {
        let mut all = self.all();
        let codes = &mut all.entry(supplier.into()).or_default().codes;
        if codes.len() < MOST {
            codes.insert(supplier_code.into());
        }
    }

    /// What was noted, of suppliers that may be asked now.
    fn take(&self, now: Time) -> Vec<(String, BTreeSet<String>)> {
        let mut all = self.all();
        let ready = all.iter_mut().filter(|(_, plans)| plans.rests_until.is_none_or(|until| until <= now));
        let taken = ready.map(|(supplier, plans)| (supplier.clone(), std::mem::take(&mut plans.codes)));
        taken.filter(|(_, codes)| !codes.is_empty()).collect()
    }

    fn rest(&self, supplier: &str, until: Time) {
        self.all().entry(supplier.into()).or_default().rests_until = Some(until);
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Plans>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes in what was noted. A supplier that does not answer is asked again when the next sale notes a plan of its.
pub async fn round(app: &App) {
    for (supplier, codes) in app.resyncs.take(app.now()) {
        if let Err(error) = resync(app, &supplier, &codes).await {
            tracing::error!(supplier, ?codes, %error, "plans that cost something else than we knew could not be taken in again");
        }
    }
}

async fn resync(app: &App, supplier: &str, codes: &BTreeSet<String>) -> Result<()> {
    let changes = compared(app, supplier, |supplier_code| codes.contains(supplier_code)).await?;
    let name = app.supplier(supplier)?.name();
    if changes.is_empty() {
        app.resyncs.rest(supplier, app.now().plus_millis(REST_MS));
        tracing::warn!(
            supplier,
            ?codes,
            "a supplier bills other costs than it lists; its list has nothing new"
        );
        return Ok(());
    }
    if changes.suspicious.is_empty() {
        write(app, name, &changes).await?;
        tracing::warn!(supplier, ?codes, "plans that cost something else than we knew were taken in again");
        return Ok(());
    }
    let why = changes.suspicious.join("; ");
    tracing::error!(
        supplier,
        ?codes,
        why,
        "plans are off sale until an operator agrees: \
        `simgate supplier sync {supplier} --dry-run` shows their costs"
    );
    take_off_sale(app, name, changes).await
}

/// Nobody buys at a price that was made from a wrong cost.
async fn take_off_sale(app: &App, supplier: &'static str, changes: Changes) -> Result<()> {
    let shelve = move |tx: &mut Tx| {
        let mut codes = changes.offered.iter().map(|(plan, _)| &plan.code);
        codes.try_for_each(|code| catalog::shelve(tx, supplier, code, code, false))
    };
    app.store.finish(LANE, shelve).await?;
    prices::reprice(app).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supplier_that_rests_is_not_asked_and_nothing_noted_is_lost() {
        let (noted, now) = (Noted::default(), Time::from_micros(0));
        let take = |now: Time| noted.take(now).into_iter().map(|(supplier, _)| supplier).collect::<Vec<_>>();
        noted.note("one", "A");
        noted.note("two", "B");
        assert_eq!(take(now), ["one", "two"]);
        noted.rest("one", now.plus_millis(REST_MS));
        noted.note("one", "A");
        noted.note("two", "B");
        assert_eq!(take(now.plus_millis(REST_MS - 1)), ["two"]);
        assert_eq!(take(now.plus_millis(REST_MS)), ["one"]);
        assert!(take(now.plus_millis(REST_MS)).is_empty());
    }
}
