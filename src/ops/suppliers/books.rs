//! A supplier's account in our books: what was paid in there, and whether our books and its records agree.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::app::App;
use crate::domain::amount::Amount;
use crate::domain::ids::{EntryId, OrderId};
use crate::domain::ledger::{Account, Entry};
use crate::domain::money::Usd;
use crate::domain::order::OrderStatus;
use crate::domain::refusal::{Conflict, Refusal};
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::LANE;
use crate::ops::audit::audit_line;
use crate::store::audit;
use crate::store::bought::{self, Bought};
use crate::store::ledger::{self, Note};
use crate::store::tx::Tx;

/// A whole list of sales may take many requests.
const PATIENCE: Duration = Duration::from_secs(600);

/// Books money that the operator paid in at a supplier, once for each reference. Answers what the books hold there, and
/// whether it was booked before.
pub async fn fund(app: &App, actor: &str, name: &str, amount: Usd, reference: &str) -> Result<(Usd, bool)> {
    let name = app.supplier(name)?.name();
    let id = EntryId::from_text(format!("fund.{name}.{reference}"));
    let entry = Entry::funded(&id, name, amount);
    let line = audit_line(app, actor, "supplier fund", format!("{name}: {amount} USD (ref {reference})"));
    let (actor, now, reference) = (actor.to_string(), app.now(), reference.to_string());
    let book = move |tx: &mut Tx| {
        let before = ledger::sum_of(tx, &Account::Supplier(name))?;
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok((before, false));
        }
        match ledger::is_same(tx, &entry)? {
            Some(true) => return Ok((before, true)),
            Some(false) => return Err(Refusal::from(Conflict::default()).into()),
            None => {}
        }
        ledger::post(tx, &entry, now, Note { actor: Some(&actor), text: Some(&reference) })?;
        let after = before.plus(amount);
        audit::record(tx, &line.changing(format!("{before} USD"), format!("{after} USD")))?;
        Ok((after, false))
    };
    app.store.write(LANE, book).await
}

/// A sale on which the two sides do not agree.
pub struct Difference {
    pub order: OrderId,
    pub what: &'static str,
    pub cost: Option<Usd>,
}

/// Our books beside a supplier's records.
pub struct Reconciled {
    pub booked: Usd,
    pub reported: Result<Amount, String>,
    /// How many sales the supplier lists; why it lists none.
    pub listed: Result<usize, String>,
    pub differences: Vec<Difference>,
    /// Orders that the supplier may have charged already, and their cost.
    pub open: usize,
    pub open_cost: Usd,
}

impl Reconciled {
    /// What the supplier has more than our books say.
    pub fn off_by(&self) -> Option<Usd> {
        Some(self.reported.as_ref().ok()?.in_usd()?.minus(self.booked))
    }

    /// Whether both sides were compared and agree. Orders in flight may be charged or not.
    pub fn agrees(&self) -> bool {
        let within = |off: Usd| off <= Usd::ZERO && off >= self.open_cost.negated();
        self.off_by().is_some_and(within) && self.listed.is_ok() && self.differences.is_empty()
    }
}

/// Compares a supplier's balance and its list of sales with our books.
pub async fn reconcile(app: &App, name: &str) -> Result<Reconciled> {
    let supplier = app.supplier(name)?;
    let name = supplier.name();
    let reported = super::balance(app, name).await?;
    let sold = match tokio::time::timeout(PATIENCE, supplier.sold(Time::from_micros(0))).await {
        Ok(answer) => answer.told(),
        Err(_) => Err("no answer within 600 s".into()),
    };
    // Read after the supplier was asked: a sale that it lists is in our books, or still open there.
    let read = move |tx: &mut Tx| {
        Ok((
            ledger::sum_of(tx, &Account::Supplier(name))?,
            bought::of_supplier(tx, name)?,
            ledger::trials(tx, name)?,
        ))
    };
    let (booked, ours, trials) = app.store.study(read).await?;
    let open: Vec<&Bought> = ours.iter().filter(|order| order.status == OrderStatus::Provisioning).collect();
    let open_cost = open.iter().fold(Usd::ZERO, |sum, order| sum.plus(order.cost));
    let listed = sold.as_ref().map(Vec::len).map_err(String::clone);
    let theirs: HashSet<OrderId> =
        sold.into_iter().flatten().map(|sale| sale.order).filter(|order| !trials.contains(order)).collect();
    let differences = if listed.is_ok() { differences(&ours, &theirs) } else { Vec::new() };
    Ok(Reconciled { booked, reported, listed, differences, open: open.len(), open_cost })
}

fn differences(ours: &[Bought], theirs: &HashSet<OrderId>) -> Vec<Difference> {
    let by_id: HashMap<&OrderId, &Bought> = ours.iter().map(|order| (&order.id, order)).collect();
    let unknown = theirs.iter().filter_map(|id| {
        let what = match by_id.get(id) {
            None => "the supplier sold it, and we have no such order",
            Some(order) if order.status == OrderStatus::Failed && !order.orphaned => {
                "the supplier sold it, and our order failed"
            }
            Some(_) => return None,
        };
        Some(Difference { order: id.clone(), what, cost: by_id.get(id).map(|order| order.cost) })
    });
    let missing = ours.iter().filter(|order| {
        matches!(order.status, OrderStatus::Fulfilled | OrderStatus::Cancelling)
            && !theirs.contains(&order.id)
    });
    let missing = missing.map(|order| Difference {
        order: order.id.clone(),
        what: "we delivered it, and the supplier does not list it",
        cost: Some(order.cost),
    });
    let mut all: Vec<Difference> = unknown.chain(missing).collect();
    all.sort_by(|a, b| a.order.cmp(&b.order));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(n: u128, status: OrderStatus, orphaned: bool) -> Bought {
        let id = OrderId::esim(Time::from_micros(0), n);
        Bought { id, status, orphaned, cost: Usd::dollars(1) }
    }

    #[test]
    fn each_difference_is_named() {
        let ours = [
            order(1, OrderStatus::Fulfilled, false),
            order(2, OrderStatus::Fulfilled, false),
            order(3, OrderStatus::Failed, false),
            order(4, OrderStatus::Failed, true),
            order(5, OrderStatus::Cancelled, false),
            order(6, OrderStatus::Provisioning, false),
        ];
        let listed = [1, 3, 4, 6, 7].map(|n| OrderId::esim(Time::from_micros(0), n));
        let found = differences(&ours, &HashSet::from(listed));
        let named: Vec<&str> = found.iter().map(|difference| difference.what).collect();
        assert_eq!(
            named,
            [
                "we delivered it, and the supplier does not list it",
                "the supplier sold it, and our order failed",
                "the supplier sold it, and we have no such order",
            ]
        );
    }
}
