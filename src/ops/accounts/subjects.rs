//! What lines of a statement are about: the plan of an order or top-up, and the order whose page tells more.

use std::collections::HashMap;

use crate::app::App;
use crate::domain::ids::{AccountNo, OrderId};
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
    let names: Vec<String> = lines.iter().filter_map(|line| line.order.clone()).collect();
    let numbers = app.numbers.clone();
    let read = move |tx: &mut Tx| {
        let mut found = HashMap::new();
        for name in &names {
            if found.contains_key(name) {
                continue;
            }
            let bought = orders::by_id(tx, &OrderId::from_text(name.as_str()))?;
            let Some(bought) = bought.and_then(|order| order.of(account)) else { continue };
            let brought_by = match &bought.esim_order {
                Some(id) => orders::by_id(tx, id)?,
                None => None,
            };
            let order = brought_by.as_ref().unwrap_or(&bought);
            let (order, number) = (order.id.clone(), numbers.of_order(order));
            found.insert(name.clone(), Subject { order, plan: bought.plan_name, number });
        }
        Ok(found)
    };
    app.store.read_consistent(read).await
}
