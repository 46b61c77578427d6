//! Takes single plans in again: those that turned out to cost something else than we knew. Sales note them, and one pull
//! serves all that were noted since the last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::{Changes, compared, write};
use crate::app::App;
use crate::error::Result;
use crate::ops::{LANE, prices};
use crate::store::catalog;
use crate::store::tx::Tx;

/// More plans than this are a matter for a whole sync.
const MOST: usize = 100;

/// The plans to take in again, by supplier and its own code.
#[derive(Default)]
pub struct Noted(Mutex<BTreeMap<String, BTreeSet<String>>>);

impl Noted {
    pub fn note(&self, supplier: &str, supplier_code: &str) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let codes = noted.entry(supplier.into()).or_default();
        if codes.len() < MOST {
            codes.insert(supplier_code.into());
        }
    }

    fn take(&self) -> BTreeMap<String, BTreeSet<String>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Takes in what was noted. A supplier that does not answer is asked again when the next sale notes a plan of its.
pub async fn round(app: &App) {
    for (supplier, codes) in app.resyncs.take() {
        if let Err(error) = resync(app, &supplier, &codes).await {
            tracing::error!(supplier, ?codes, %error, "plans that cost something else than we knew could not be taken in again");
        }
    }
}

async fn resync(app: &App, supplier: &str, codes: &BTreeSet<String>) -> Result<()> {
    let changes = compared(app, supplier, |supplier_code| codes.contains(supplier_code)).await?;
    let name = app.supplier(supplier)?.name();
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
    take_off_sale(app, changes).await
}

/// Nobody buys at a price that was made from a wrong cost.
async fn take_off_sale(app: &App, changes: Changes) -> Result<()> {
    let shelve = move |tx: &mut Tx| {
        changes.offered.iter().try_for_each(|(plan, _)| catalog::shelve(tx, &plan.code, false))
    };
    app.store.finish(LANE, shelve).await?;
    prices::reprice(app).await.map(drop)
}
