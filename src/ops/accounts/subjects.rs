//! What lines of a statement are about: the plan of an order or top-up, and the order whose page tells more.

use std::collections::{HashMap, HashSet};

use crate::app::App;
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::order::Order;
use crate::error::Result;
use crate::ops::owned::Owned;
use crate::store::orders;
use crate::store::statement::StatementLine;
use crate::store::tx::Tx;

pub struct Subject {
    /// A top-up is told of with the order of its eSIM.
    pub order: OrderId,
    pub plan: String,
    /// The number of that order.
    pub number: Option<String>,
}

/// The subjects of these lines, by the orders and top-ups that they name.
pub async fn subjects(
    app: &App,
    account: AccountNo,
    lines: &[StatementLine],
) -> Result<HashMap<String, Subject>> {
    let names: HashSet<OrderId> =
        lines.iter().filter_map(|line| line.order.as_deref()).map(OrderId::from_text).collect();
    let numbers = app.numbers.clone();
    let read = move |tx: &mut Tx| {
        let bought = by_id(tx, names.iter(), account)?;
        let filled = by_id(tx, bought.values().filter_map(|order| order.esim_order.as_ref()), account)?;
        let subject = |bought: &Order| {
            let order = bought.esim_order.as_ref().and_then(|id| filled.get(id)).unwrap_or(bought);
            let (id, number) = (order.id.clone(), numbers.of_order(order));
            (bought.id.to_string(), Subject { order: id, plan: bought.plan_name.clone(), number })
        };
        Ok(bought.values().map(subject).collect())
    };
    app.store.read_consistent(read).await
}

/// Those of these orders that are the account's.
fn by_id<'a>(
    tx: &mut Tx,
    ids: impl Iterator<Item = &'a OrderId>,
    account: AccountNo,
) -> Result<HashMap<OrderId, Order>> {
    let ids: Vec<&OrderId> = ids.collect();
    let found = orders::by_ids(tx, &ids)?.into_iter().filter_map(|order| order.of(account));
    Ok(found.map(|order| (order.id.clone(), order)).collect())
}
