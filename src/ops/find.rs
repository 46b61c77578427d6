//! The operator's search: one text, whatever it is.

use crate::app::App;
use crate::domain::ids::{self, OrderId};
use crate::domain::order::Order;
use crate::error::Result;
use crate::store::accounts::{self, Account};
use crate::store::{claims, orders};

#[derive(Default)]
pub struct Found {
    pub accounts: Vec<Account>,
    pub orders: Vec<Order>,
}

/// By partner id, email, order id, order number, ICCID or a partner's reference.
pub async fn find(app: &App, text: &str) -> Result<Found> {
    let text = text.trim().to_string();
    app.store
        .snapshot(move |tx| {
            let mut ids: Vec<OrderId> = vec![OrderId::from_text(text.clone())];
            if let Some((account, seq)) = ids::parse_order_no(&text.to_uppercase()) {
                ids.extend(orders::by_number(tx, account, seq)?.map(|order| order.id));
            }
            ids.extend(orders::with_iccid(tx, &text, 50)?);
            ids.extend(claims::find(tx, &text)?);
            let by_id = accounts::find(tx, &text)?;
            // Emails are kept in lower case.
            let by_email = if by_id.is_none() { accounts::find(tx, &text.to_lowercase())? } else { None };
            let mut found =
                Found { accounts: by_id.into_iter().chain(by_email).collect(), orders: Vec::new() };
            for id in &ids {
                found.orders.extend(orders::by_id(tx, id)?);
            }
            Ok(found)
        })
        .await
}
