//! A supplier's account in our books: what was paid in there, and whether our books and its records agree.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::rates;
use crate::app::App;
use crate::domain::amount::{Amount, Fiat};
use crate::domain::ids::{EntryId, OrderId};
use crate::domain::ledger::{Account, Entry};
use crate::domain::money::Usd;
use crate::domain::order::OrderStatus;
use crate::domain::refusal::{Conflict, Refusal};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::LANE;
use crate::ops::audit::audit_line;
use crate::store::bought::{self, Bought};
use crate::store::ledger::{self, Note};
use crate::store::tx::Tx;
use crate::store::{audit, native_moves};

/// A whole list of sales may take many requests.
const PATIENCE: Duration = Duration::from_secs(600);

/// What was booked as paid in.
pub struct Funded {
    pub usd: Usd,
    /// What the books hold there now, in dollars.
    pub booked: Usd,
    /// Whether it was booked before.
    pub known: bool,
}

/// Books money that the operator paid in at a supplier, in its currency and at its rate now, once for each reference.
pub async fn fund(
    app: &App,
    actor: &str,
    name: &str,
    amount: impl Into<Amount>,
    reference: &str,
) -> Result<Funded> {
    let (name, amount): (&'static str, Amount) = (app.supplier(name)?.name(), amount.into());
    let id = EntryId::from_text(format!("fund.{name}.{reference}"));
    let line = audit_line(app, actor, "supplier fund", format!("{name}: {amount} (ref {reference})"));
    let (actor, now, reference) = (actor.to_string(), app.now(), reference.to_string());
    let currency = super::currency(app, name);
    let book = move |tx: &mut Tx| {
        let before = ledger::sum_of(tx, &Account::Supplier(name))?;
        let billing = rates::billing(tx, name, currency)?;
        let cost = billing.cost(amount).ok_or_else(|| not_counted(amount, currency))?;
        let entry = Entry::funded(&id, name, cost.usd);
        let done = |booked: Usd, known: bool| Ok(Funded { usd: cost.usd, booked, known });
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return done(before, false);
        }
        // The rate may have changed since it was booked: what was paid in is what counts.
        let same = match native_moves::of_entry(tx, &entry.id)? {
            Some(native) => Some(Some(native) == cost.native()),
            None => ledger::is_same(tx, &entry)?,
        };
        match same {
            Some(true) => return done(before, true),
            Some(false) => return Err(Refusal::from(Conflict::default()).into()),
            None => {}
        }
        let note = Note { actor: Some(&actor), text: Some(&reference) };
        native_moves::post(tx, &entry, now, note, name, cost.native())?;
        let after = before.plus(cost.usd);
        audit::record(tx, &line.changing(format!("{before} USD"), format!("{after} USD")))?;
        done(after, false)
    };
    app.store.write(LANE, book).await
}

fn not_counted(amount: Amount, currency: Fiat) -> Error {
    let why = match amount.currency == currency {
        true => "is more than can be booked".to_string(),
        false => format!("must be in {currency}, the supplier's currency"),
    };
    Refusal::field("amount", why).into()
}

/// A sale on which the two sides do not agree.
pub struct Difference {
    pub order: OrderId,
    pub what: &'static str,
    pub cost: Option<Usd>,
}

/// Our books beside a supplier's records.
pub struct Reconciled {
    /// In dollars, as the ledger has it.
    pub booked_usd: Usd,
    /// In its own currency: what was paid in and came back, less what was bought.
    pub booked: Amount,
    pub reported: Result<Amount, String>,
    /// How many sales the supplier lists; why it lists none.
    pub listed: Result<usize, String>,
    pub differences: Vec<Difference>,
    /// Orders that the supplier may have charged already, and their cost.
    pub open: usize,
    pub open_cost: Amount,
}

impl Reconciled {
    /// What the supplier has more than our books say, in its currency.
    pub fn off(&self) -> Option<Amount> {
        let reported = self.reported.as_ref().ok().filter(|told| told.currency == self.booked.currency)?;
        Some(Amount { micros: reported.micros.checked_sub(self.booked.micros)?, ..*reported })
    }

    /// The same for a supplier that bills in dollars.
    pub fn off_by(&self) -> Option<Usd> {
        self.off()?.in_usd()
    }

    /// Whether both sides were compared and agree. Orders in flight may be charged or not.
    pub fn agrees(&self) -> bool {
        let within = |off: Amount| (-self.open_cost.micros..=0).contains(&off.micros);
        self.off().is_some_and(within) && self.listed.is_ok() && self.differences.is_empty()
    }
}

/// Compares a supplier's balance and its list of sales with our books.
pub async fn reconcile(app: &App, name: &str) -> Result<Reconciled> {
    let supplier = app.supplier(name)?;
    let (name, currency) = (supplier.name(), super::currency(app, name));
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
            native_moves::sum(tx, name)?,
        ))
    };
    let (booked_usd, ours, trials, moved) = app.store.study(read).await?;
    let open: Vec<&Bought> = ours.iter().filter(|order| order.status == OrderStatus::Provisioning).collect();
    let open_cost = sum_of(&open, currency);
    let booked = match currency == Fiat::USD {
        true => Amount::usd(booked_usd),
        false => {
            let sold: Vec<&Bought> = ours.iter().filter(|order| was_sold(order.status)).collect();
            Amount { micros: moved - sum_of(&sold, currency).micros, currency }
        }
    };
    let listed = sold.as_ref().map(Vec::len).map_err(String::clone);
    let theirs: HashSet<OrderId> =
        sold.into_iter().flatten().map(|sale| sale.order).filter(|order| !trials.contains(order)).collect();
    let differences = if listed.is_ok() { differences(&ours, &theirs) } else { Vec::new() };
    Ok(Reconciled { booked_usd, booked, reported, listed, differences, open: open.len(), open_cost })
}

/// What these orders cost, as their supplier bills.
fn sum_of(orders: &[&Bought], currency: Fiat) -> Amount {
    let micros = orders.iter().map(|order| order.billed_cost().amount(currency).micros).sum();
    Amount { micros, currency }
}

/// Whether its sale is in the books; what came back of it is booked by itself.
fn was_sold(status: OrderStatus) -> bool {
    match status {
        OrderStatus::Fulfilled | OrderStatus::Cancelling | OrderStatus::Cancelled => true,
        OrderStatus::Provisioning | OrderStatus::Failed => false,
    }
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
        Bought { id, status, orphaned, cost: Usd::dollars(1), billed: None }
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
