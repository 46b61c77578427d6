//! Searches among all orders of an account, of any size: by state and time, page by page in both directions, or as a
//! stream from the newest to the oldest.

use super::list::{Listed, attach_topups};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::order_lists::{self, Chosen};
use crate::store::tx::Tx;
use crate::store::wallet;

/// How far orders may be out of the order of their places: a place is given when an order is stored, and its time is
/// taken just before. Writes wait for ten seconds at most, and clocks of instances are two apart; more than that is
/// filtered all the same, so a wide margin costs little. (Orders of users whose checkouts are from before these had
/// numbers of their own are further out: they took their places when they were opened.)
const MARGIN_MS: i64 = 5 * 60_000;
/// How many orders of a stream are in memory at once.
const PORTION: i64 = 500;

/// What to search for. A page begins next to the cursor that a page before it gave; `after` counts where both are given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Search {
    pub status: Option<OrderStatus>,
    /// Placed at this time or later, and before that.
    pub from: Option<Time>,
    pub to: Option<Time>,
    /// Older orders than this one.
    pub before: Option<i64>,
    /// Newer orders than this one.
    pub after: Option<i64>,
    pub limit: i64,
}

impl Search {
    fn is_filtered(&self) -> bool {
        self.status.is_some() || self.from.is_some() || self.to.is_some()
    }
}

/// A page, newest first.
pub struct Found {
    pub orders: Vec<Listed>,
    /// `before` of the page of older orders, when there are any.
    pub older: Option<i64>,
    /// `after` of the page of newer orders, when there are any.
    pub newer: Option<i64>,
    /// How many orders there are on all pages; unknown with a filter.
    pub total: Option<i64>,
}

/// A page of the account's orders in any state. The way to the newest ends with a full page.
pub async fn search(app: &App, account: AccountNo, search: Search) -> Result<Found> {
    let now = app.now();
    let read = move |tx: &mut Tx| {
        let chosen = narrowed(tx, account, &search, now)?;
        let (orders, older, newer) = page(tx, &chosen, &search)?;
        let total = if search.is_filtered() { None } else { Some(wallet::read(tx, account)?.placed) };
        Ok(Found { orders: attach_topups(tx, orders)?, older, newer, total })
    };
    if search.is_filtered() { app.store.snapshot(read).await } else { app.store.read_consistent(read).await }
}

/// Between which places the orders of the wanted times are.
fn narrowed(tx: &mut Tx, account: AccountNo, search: &Search, now: Time) -> Result<Chosen> {
    let (from, to) = (
        search.from.unwrap_or(Time::from_micros(i64::MIN)),
        search.to.unwrap_or(Time::from_micros(i64::MAX)),
    );
    let first = match search.from {
        Some(from) => order_lists::place_of(tx, account, from.plus_millis(-MARGIN_MS))?,
        None => 0,
    };
    let end = match search.to {
        Some(to) if to < now => order_lists::place_of(tx, account, to.plus_millis(MARGIN_MS))?,
        // No order comes after what is still to come.
        Some(_) | None => i64::MAX,
    };
    Ok(Chosen { account, status: search.status, times: (from, to), places: (first, end) })
}

/// The orders of a page, and the cursors to both sides.
fn page(tx: &mut Tx, chosen: &Chosen, search: &Search) -> Result<(Vec<Order>, Option<i64>, Option<i64>)> {
    let limit = search.limit.max(1);
    if let Some(after) = search.after {
        let newer =
            Chosen { places: (chosen.places.0.max(after.saturating_add(1)), chosen.places.1), ..*chosen };
        // One more than asked for tells whether there are others.
        let mut orders = order_lists::oldest(tx, &newer, limit + 1)?;
        if orders.len() as i64 > limit {
            orders.truncate(limit as usize);
            orders.reverse();
            let (first, last) = ends(&orders);
            let older = if any_older(tx, chosen, last)? { last } else { None };
            return Ok((orders, older, first));
        }
    }
    let before = search.before.filter(|_| search.after.is_none());
    let end = before.map_or(chosen.places.1, |before| before.min(chosen.places.1));
    let older = Chosen { places: (chosen.places.0, end), ..*chosen };
    let mut orders = order_lists::newest(tx, &older, limit + 1)?;
    let more = orders.len() as i64 > limit;
    orders.truncate(limit as usize);
    let (first, last) = ends(&orders);
    // A page beyond the end leads back, too.
    let edge = before.map(|before| first.unwrap_or(before.saturating_sub(1)));
    let newer = match edge {
        Some(edge) if any_newer(tx, chosen, edge)? => Some(edge),
        _ => None,
    };
    Ok((orders, last.filter(|_| more), newer))
}

/// The places of the first and the last order of a page.
fn ends(orders: &[Order]) -> (Option<i64>, Option<i64>) {
    let place = |order: Option<&Order>| order.and_then(|order| order.seq);
    (place(orders.first()), place(orders.last()))
}

fn any_older(tx: &mut Tx, chosen: &Chosen, place: Option<i64>) -> Result<bool> {
    let Some(place) = place else { return Ok(false) };
    let older = Chosen { places: (chosen.places.0, place.min(chosen.places.1)), ..*chosen };
    Ok(!order_lists::newest(tx, &older, 1)?.is_empty())
}

fn any_newer(tx: &mut Tx, chosen: &Chosen, place: i64) -> Result<bool> {
    let newer = Chosen { places: (chosen.places.0.max(place.saturating_add(1)), chosen.places.1), ..*chosen };
    Ok(!order_lists::oldest(tx, &newer, 1)?.is_empty())
}

/// All orders that a search finds, whatever its page, newest first. What is placed after it began is not among them.
pub fn stream(account: AccountNo, search: Search) -> Stream {
    Stream { account, search, chosen: None, is_over: false }
}

pub struct Stream {
    account: AccountNo,
    search: Search,
    /// What is still to come; the places of its times are looked up once.
    chosen: Option<Chosen>,
    is_over: bool,
}

impl Stream {
    /// The next portion, none of it at the end.
    pub async fn next(&mut self, app: &App) -> Result<Vec<Listed>> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let (account, search, known, now) = (self.account, self.search, self.chosen, app.now());
        let read = move |tx: &mut Tx| {
            let chosen = match known {
                Some(chosen) => chosen,
                None => narrowed(tx, account, &search, now)?,
            };
            let orders = order_lists::newest(tx, &chosen, PORTION)?;
            Ok((chosen, attach_topups(tx, orders)?))
        };
        let (chosen, portion) = app.store.snapshot(read).await?;
        self.is_over = (portion.len() as i64) < PORTION;
        let last = portion.last().and_then(|listed| listed.order.seq);
        let end = last.unwrap_or(chosen.places.1);
        self.chosen = Some(Chosen { places: (chosen.places.0, end), ..chosen });
        Ok(portion)
    }
}
