//! Takes a supplier that does not answer out of the sale, and back. After some questions in a row without an answer its
//! plans are refused at once, instead of holding money that then waits; `round` asks it for its balance until it answers.
//! Each instance decides for itself. The simulator is never taken out: a sandbox shows its moods.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use metrics::{counter, gauge};

use crate::app::App;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;

/// How many questions in a row may go without an answer.
const PATIENCE: u32 = 5;

#[derive(Default)]
pub struct Breakers {
    /// Questions in a row without an answer, by supplier.
    silent: Mutex<BTreeMap<&'static str, u32>>,
    /// The suppliers that are out.
    out: ArcSwap<Vec<&'static str>>,
}

impl Breakers {
    /// Notes whether a supplier answered.
    pub fn heard(&self, supplier: &'static str, answered: bool) {
        let mut silent = self.silent();
        let count = silent.entry(supplier).or_default();
        *count = if answered { 0 } else { *count + 1 };
        let is_out = self.is_out(supplier);
        if *count >= PATIENCE && !is_out {
            tracing::error!(supplier, "the supplier does not answer: its plans are not sold until it does");
            counter!("simgate_supplier_outages_total", "supplier" => supplier).increment(1);
            self.change(supplier, true);
        } else if answered && is_out {
            tracing::warn!(supplier, "the supplier answers again: its plans are sold");
            self.change(supplier, false);
        }
    }

    fn change(&self, supplier: &'static str, out: bool) {
        gauge!("simgate_supplier_out", "supplier" => supplier).set(if out { 1.0 } else { 0.0 });
        let mut names: Vec<&'static str> = self.out.load().to_vec();
        names.retain(|name| *name != supplier);
        names.extend(out.then_some(supplier));
        self.out.store(Arc::new(names));
    }

    fn silent(&self) -> MutexGuard<'_, BTreeMap<&'static str, u32>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_out(&self, supplier: &str) -> bool {
        self.out.load().contains(&supplier)
    }

    /// The suppliers that nothing is bought from now.
    pub fn out(&self) -> Arc<Vec<&'static str>> {
        self.out.load_full()
    }
}

/// Notes whether a supplier of the settings answered.
pub fn heard(app: &App, supplier: &str, answered: bool) {
    if let Some(terms) = app.settings.suppliers.iter().find(|terms| terms.name == supplier) {
        app.breakers.heard(terms.name, answered);
    }
}

/// Refuses what a supplier would sell that is out.
pub fn require_answering(out: &[&'static str], supplier: &str) -> Result<(), Refusal> {
    match out.contains(&supplier) {
        true => Err(Refusal::SupplierUnavailable { refunded: Usd::ZERO }),
        false => Ok(()),
    }
}

/// Asks the suppliers that are out whether they answer again.
pub async fn round(app: &App) {
    for &name in app.breakers.out().iter() {
        let Some(supplier) = app.suppliers.get(name) else { continue };
        let asked = tokio::time::timeout(super::suppliers::PATIENCE, supplier.balance()).await;
        app.breakers.heard(name, asked.is_ok_and(|answer| answer.is_an_answer()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_takes_a_supplier_out_and_an_answer_takes_it_back() {
        let breakers = Breakers::default();
        for _ in 1..PATIENCE {
            breakers.heard("acme", false);
        }
        assert!(!breakers.is_out("acme"));
        breakers.heard("acme", true);
        (1..PATIENCE).for_each(|_| breakers.heard("acme", false));
        assert!(!breakers.is_out("acme"), "only silence in a row counts");
        breakers.heard("acme", false);
        assert!(breakers.is_out("acme") && !breakers.is_out("other"));
        assert!(require_answering(&breakers.out(), "acme").is_err());
        assert!(require_answering(&breakers.out(), "other").is_ok());
        breakers.heard("acme", true);
        assert!(!breakers.is_out("acme"));
    }
}
