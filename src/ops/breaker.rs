//! The suppliers that sell now. One that does not answer is taken out, and back: after some orders in a row without an
//! answer its plans are refused at once, instead of holding money that then waits; `round` asks it for its balance until
//! it answers. Each instance decides for itself. One that the settings do not name sells nothing. The simulator is never
//! taken out: a sandbox shows its moods.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use metrics::{counter, gauge};

use crate::app::App;
use crate::domain::ids::OrderId;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::supplier::sim;

/// How many orders in a row may go without an answer. One order alone says little: its plan may be the trouble.
const PATIENCE: usize = 5;

/// The names of suppliers.
pub type Names = Arc<Vec<&'static str>>;

pub struct Breakers {
    suppliers: Mutex<BTreeMap<&'static str, Standing>>,
    /// Those that nothing speaks against.
    selling: ArcSwap<Vec<&'static str>>,
}

#[derive(Default)]
struct Standing {
    /// Orders in a row without an answer.
    unanswered: Vec<OrderId>,
    silent: bool,
    /// Something else speaks against selling.
    barred: bool,
}

impl Breakers {
    /// All of them sell at first.
    pub fn new(names: impl Iterator<Item = &'static str>) -> Breakers {
        let suppliers: BTreeMap<_, _> = names.map(|name| (name, Standing::default())).collect();
        let selling = ArcSwap::from_pointee(suppliers.keys().copied().collect());
        Breakers { suppliers: Mutex::new(suppliers), selling }
    }

    /// Notes that a supplier answered.
    pub fn heard(&self, supplier: &str) {
        self.change(supplier, |standing| {
            standing.unanswered.clear();
            if standing.silent {
                tracing::warn!(supplier, "the supplier answers again: its plans are sold");
                standing.silent = false;
            }
        });
    }

    /// Notes that a supplier did not answer about an order.
    pub fn unheard(&self, supplier: &str, order: &OrderId) {
        if supplier == sim::NAME {
            return;
        }
        self.change(supplier, |standing| {
            if standing.silent || standing.unanswered.contains(order) {
                return;
            }
            standing.unanswered.push(order.clone());
            if standing.unanswered.len() == PATIENCE {
                tracing::error!(
                    supplier,
                    "the supplier does not answer: its plans are not sold until it does"
                );
                counter!("simgate_supplier_outages_total", "supplier" => supplier.to_string()).increment(1);
                standing.silent = true;
            }
        });
    }

    /// Stops the sale of a supplier's plans for another reason than silence, or ends that.
    pub fn bar(&self, supplier: &str, barred: bool) {
        self.change(supplier, |standing| standing.barred = barred);
    }

    fn change(&self, supplier: &str, change: impl FnOnce(&mut Standing)) {
        let mut suppliers = self.suppliers();
        let Some(standing) = suppliers.get_mut(supplier) else { return };
        let before = standing.sells();
        change(standing);
        let sells = standing.sells();
        if sells == before {
            return;
        }
        gauge!("simgate_supplier_out", "supplier" => supplier.to_string()).set(if sells { 0.0 } else { 1.0 });
        let selling = suppliers.iter().filter(|(_, standing)| standing.sells());
        self.selling.store(Arc::new(selling.map(|(name, _)| *name).collect()));
    }

    fn suppliers(&self) -> MutexGuard<'_, BTreeMap<&'static str, Standing>> {
        self.suppliers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that were taken out because they do not answer.
    fn silent(&self) -> Vec<&'static str> {
        self.suppliers().iter().filter(|(_, standing)| standing.silent).map(|(name, _)| *name).collect()
    }

    /// The suppliers that something can be bought from now.
    pub fn selling(&self) -> Names {
        self.selling.load_full()
    }
}

impl Standing {
    fn sells(&self) -> bool {
        !self.silent && !self.barred
    }
}

/// Refuses what a supplier would sell that does not sell now.
pub fn require_selling(selling: &[&'static str], supplier: &str) -> Result<(), Refusal> {
    match selling.contains(&supplier) {
        true => Ok(()),
        false => Err(Refusal::SupplierUnavailable { refunded: Usd::ZERO }),
    }
}

/// Asks the suppliers that are silent whether they answer again.
pub async fn round(app: &App) {
    for name in app.breakers.silent() {
        let Some(supplier) = app.suppliers.get(name) else { continue };
        let asked = tokio::time::timeout(super::suppliers::PATIENCE, supplier.balance()).await;
        if asked.is_ok_and(|answer| answer.is_an_answer()) {
            app.breakers.heard(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Time;

    fn sells(breakers: &Breakers, supplier: &str) -> bool {
        require_selling(&breakers.selling(), supplier).is_ok()
    }

    /// Some orders in a row without an answer.
    fn silence(breakers: &Breakers, supplier: &str, orders: usize) {
        let order = |n: usize| OrderId::esim(Time::from_micros(0), n as u128);
        (0..orders).for_each(|n| breakers.unheard(supplier, &order(n)));
    }

    #[test]
    fn silence_takes_a_supplier_out_and_an_answer_takes_it_back() {
        let breakers = Breakers::new(["acme", "other", sim::NAME].into_iter());
        silence(&breakers, "acme", PATIENCE - 1);
        assert!(sells(&breakers, "acme"));
        breakers.heard("acme");
        silence(&breakers, "acme", PATIENCE - 1);
        assert!(sells(&breakers, "acme"), "only silence in a row counts");
        silence(&breakers, "acme", PATIENCE - 1);
        assert!(sells(&breakers, "acme"), "an order counts once, however often it is asked about");
        silence(&breakers, "acme", PATIENCE);
        assert!(!sells(&breakers, "acme") && sells(&breakers, "other"));
        breakers.heard("acme");
        assert!(sells(&breakers, "acme"));
        silence(&breakers, sim::NAME, PATIENCE);
        assert!(sells(&breakers, sim::NAME), "the simulator shows its moods");
    }

    #[test]
    fn every_reason_must_be_gone_before_a_supplier_sells_again() {
        let breakers = Breakers::new(["acme"].into_iter());
        breakers.bar("acme", true);
        silence(&breakers, "acme", PATIENCE);
        breakers.heard("acme");
        assert!(!sells(&breakers, "acme"));
        breakers.bar("acme", false);
        assert!(sells(&breakers, "acme"));
    }

    #[test]
    fn a_supplier_that_the_settings_do_not_name_sells_nothing() {
        let breakers = Breakers::new(["acme"].into_iter());
        breakers.heard("gone");
        breakers.bar("gone", false);
        assert!(!sells(&breakers, "gone"));
    }
}
