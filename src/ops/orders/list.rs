//! Lists of an account's orders.

use super::Receipt;
use crate::app::App;
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::order::{Order, OrderStatus};
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::owned::Owned;
use crate::store::claims::{self, Claimant};
use crate::store::orders::{self, Chosen, PageFilter, PageQuery};
use crate::store::tx::Tx;

/// The most orders under one ICCID: suppliers reuse ICCIDs, but not more often.
const MOST_OF_ONE_ICCID: i64 = 100;

/// An order and the top-ups of its eSIM.
pub struct Listed {
    pub order: Order,
    pub topups: Vec<Order>,
}

pub async fn with_topups(app: &App, order: Order) -> Result<Listed> {
    let id = order.id.clone();
    let topups = app.store.read(move |tx| orders::topups_of(tx, &[&id])).await?;
    Ok(Listed { order, topups })
}

/// The order of a receipt. A new one has no top-ups yet.
pub async fn of_receipt(app: &App, receipt: &Receipt) -> Result<Listed> {
    let order = receipt.order.clone();
    if receipt.replayed { with_topups(app, order).await } else { Ok(Listed { order, topups: Vec::new() }) }
}

/// Which orders to list. References and ICCIDs lead to few orders; other queries walk along the account's numbers.
pub struct ListQuery {
    pub page: i64,
    pub limit: i64,
    /// Orders with a smaller number than this.
    pub after: Option<i64>,
    pub iccid: Option<String>,
    pub reference: Option<String>,
    /// Without one: what was delivered.
    pub status: Option<OrderStatus>,
    pub from: Option<Time>,
    pub to: Option<Time>,
}

/// A page of everything but failures: what was delivered, and what is still with the supplier.
pub async fn history(app: &App, account: AccountNo, page: i64, limit: i64) -> Result<List> {
    let offset = (page - 1).saturating_mul(limit);
    let walk = PageQuery { before_seq: i64::MAX, limit: limit + 1, offset, chosen: Chosen::Underway };
    app.store.read(move |tx| walked(tx, account, &walk)).await
}

pub struct List {
    pub orders: Vec<Listed>,
    pub total: i64,
    /// Where the next page starts, when there is one.
    pub next: Option<i64>,
}

pub async fn list(app: &App, account: AccountNo, query: ListQuery) -> Result<List> {
    if query.reference.is_some() || query.iccid.is_some() {
        return app.store.read(move |tx| list_few(tx, account, &query)).await;
    }
    let filtered = query.status.is_some() || query.from.is_some() || query.to.is_some();
    let chosen = match filtered {
        true => Chosen::Filtered(PageFilter {
            status: query.status,
            from: query.from.map_or(i64::MIN, Time::micros),
            to: query.to.map_or(i64::MAX, Time::micros),
        }),
        false => Chosen::Delivered,
    };
    let walk = PageQuery {
        before_seq: query.after.unwrap_or(i64::MAX),
        // One more than asked for tells whether there is a next page.
        limit: query.limit + 1,
        offset: if query.after.is_some() { 0 } else { (query.page - 1).saturating_mul(query.limit) },
        chosen,
    };
    let read = move |tx: &mut Tx| walked(tx, account, &walk);
    if filtered { app.store.snapshot(read).await } else { app.store.read(read).await }
}

/// One page; its query asks for one order more.
fn walked(tx: &mut Tx, account: AccountNo, walk: &PageQuery) -> Result<List> {
    let total = orders::total(tx, account, &walk.chosen)?;
    let mut found = orders::page(tx, account, walk)?;
    let more = found.len() as i64 == walk.limit;
    found.truncate((walk.limit - 1) as usize);
    let next = if more { found.last().and_then(|order| order.seq) } else { None };
    Ok(List { orders: attach_topups(tx, found)?, total, next })
}

fn list_few(tx: &mut Tx, account: AccountNo, query: &ListQuery) -> Result<List> {
    let ids = match (&query.reference, &query.iccid) {
        (Some(reference), _) => {
            let bought = |claimant| match claimant {
                Claimant::Order(id) => Some(id),
                Claimant::Checkout(_) | Claimant::Cancel(_) => None,
            };
            claims::all_of(tx, account, reference)?.into_iter().filter_map(bought).collect()
        }
        (None, Some(iccid)) => orders::with_iccid(tx, iccid, MOST_OF_ONE_ICCID)?,
        (None, None) => Vec::new(),
    };
    let mut found: Vec<Order> = Vec::new();
    for id in &ids {
        let mut order = orders::by_id(tx, id)?;
        // A top-up's reference leads to the order that lists it.
        if let Some(filled) = order.as_ref().and_then(|order| order.esim_order.clone()) {
            order = orders::by_id(tx, &filled)?;
        }
        found.extend(order.filter(|order| found.iter().all(|known| known.id != order.id)));
    }
    found.retain(|order| {
        // Without a status, a reference shows every state and an ICCID what was delivered.
        let state_fits = query.status.is_none_or(|status| order.status == status);
        let iccid_fits = match &query.iccid {
            Some(iccid) => order.esim.as_ref().is_some_and(|esim| &esim.iccid == iccid),
            None => true,
        };
        order.belongs_to(account)
            && state_fits
            && iccid_fits
            && query.from.is_none_or(|from| order.created_at >= from)
            && query.to.is_none_or(|to| order.created_at < to)
    });
    let total = found.len() as i64;
    let skipped = match query.after {
        Some(after) => {
            found.iter().take_while(|order| order.seq.is_none_or(|seq| seq >= after)).count() as i64
        }
        None => (query.page - 1).saturating_mul(query.limit),
    };
    let page: Vec<Order> = found.into_iter().skip(skipped as usize).take(query.limit as usize).collect();
    let more = skipped.saturating_add(page.len() as i64) < total;
    let next = if more { page.last().and_then(|order| order.seq) } else { None };
    Ok(List { orders: attach_topups(tx, page)?, total, next })
}

pub(super) fn attach_topups(tx: &mut Tx, found: Vec<Order>) -> Result<Vec<Listed>> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<&OrderId> = found.iter().map(|order| &order.id).collect();
    let mut topups = orders::topups_of(tx, &ids)?;
    let listed = found.into_iter().map(|order| {
        let mine;
        (mine, topups) = std::mem::take(&mut topups)
            .into_iter()
            .partition(|topup| topup.esim_order.as_ref() == Some(&order.id));
        Listed { order, topups: mine }
    });
    Ok(listed.collect())
}
