//! Lists of an account's orders that are fast for a million of them: any state, any time, from any place, in both
//! directions; and the orders that have waited for long. Nothing here counts orders or skips them.

use super::engine::{Param, Stored, Tx, columns, params, queries, text};
use crate::domain::ids::AccountNo;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::time::Time;
use crate::error::Result;

/// Orders of an account in one state or any, between two places and two times.
macro_rules! select_chosen {
    ($conditions:literal) => {
        text!(
            "SELECT ",
            Order::COLUMNS,
            " FROM orders o LEFT JOIN esims s ON s.order_id = COALESCE(o.esim_order, o.id)
              WHERE o.account = ?1 AND o.created_at >= ?4 AND o.created_at < ?5 AND ",
            $conditions,
            " LIMIT ?7"
        )
    };
}

queries! {
    /// Nearly all orders are delivered, so a walk along the numbers soon finds as many as it needs.
    OLDER = select_chosen!("o.seq IS NOT NULL AND o.seq > ?2 AND o.seq < ?3
              AND (CAST(?6 AS TEXT) IS NULL OR o.status = ?6) ORDER BY o.seq DESC");
    NEWER = select_chosen!("o.seq IS NOT NULL AND o.seq > ?2 AND o.seq < ?3
              AND (CAST(?6 AS TEXT) IS NULL OR o.status = ?6) ORDER BY o.seq");
    /// Failed and cancelled orders have an index of their own, in the order of the list.
    OLDER_UNDONE = select_chosen!("o.seq > ?2 AND o.seq < ?3
              AND o.status IN ('FAILED', 'CANCELLED') AND o.status = ?6 ORDER BY o.seq DESC");
    NEWER_UNDONE = select_chosen!("o.seq > ?2 AND o.seq < ?3
              AND o.status IN ('FAILED', 'CANCELLED') AND o.status = ?6 ORDER BY o.seq");
    /// Worded so that only the small index over open orders fits; what it finds is sorted.
    OLDER_OPEN = select_chosen!("o.esim_order IS NULL AND o.seq + 0 > ?2 AND o.seq + 0 < ?3
              AND o.status IN ('PROVISIONING', 'CANCELLING') AND o.status = ?6 ORDER BY o.seq + 0 DESC");
    NEWER_OPEN = select_chosen!("o.esim_order IS NULL AND o.seq + 0 > ?2 AND o.seq + 0 < ?3
              AND o.status IN ('PROVISIONING', 'CANCELLING') AND o.status = ?6 ORDER BY o.seq + 0");
    FIRST_FROM = text!("SELECT ", Placed::COLUMNS, " FROM orders
              WHERE account = ?1 AND seq IS NOT NULL AND seq >= ?2 ORDER BY seq LIMIT 1");
    LAST = "SELECT seq FROM orders WHERE account = ?1 AND seq IS NOT NULL ORDER BY seq DESC LIMIT 1";
    /// It reads open orders only, and no more than it takes to count so far.
    WAITING = "SELECT COUNT(*) FROM (SELECT 1 FROM orders WHERE account = ?1 AND status IN ('PROVISIONING', 'CANCELLING')
              AND updated_at < ?2 LIMIT ?3) AS waiting";
    LONGEST_WAITING = text!("SELECT ", Order::COLUMNS, " FROM orders o LEFT JOIN esims s ON s.order_id = COALESCE(o.esim_order, o.id)
              WHERE o.account = ?1 AND o.status IN ('PROVISIONING', 'CANCELLING') AND o.updated_at < ?2
              ORDER BY o.updated_at, o.id LIMIT 1");
}

/// The place of an order among those of its account, and when it was placed.
struct Placed {
    seq: i64,
    created_at: Time,
}

columns! { Placed { seq, created_at } }

/// Which orders to list. Times and places are from the first on, and before the second.
#[derive(Clone, Copy)]
pub struct Chosen {
    pub account: AccountNo,
    pub status: Option<OrderStatus>,
    pub times: (Time, Time),
    pub places: (i64, i64),
}

impl Chosen {
    fn params(&self, limit: i64) -> [Param<'_>; 7] {
        let ((from, to), (first, end)) = (self.times, self.places);
        let after = first.saturating_sub(1);
        [
            Param::from(self.account),
            Param::from(after),
            Param::from(end),
            Param::from(from),
            Param::from(to),
            Param::from(self.status),
            Param::from(limit),
        ]
    }
}

/// The newest of them, newest first.
pub fn newest(tx: &mut Tx, chosen: &Chosen, limit: i64) -> Result<Vec<Order>> {
    let sql = match chosen.status {
        None | Some(OrderStatus::Fulfilled) => OLDER,
        Some(OrderStatus::Failed | OrderStatus::Cancelled) => OLDER_UNDONE,
        Some(OrderStatus::Provisioning | OrderStatus::Cancelling) => OLDER_OPEN,
    };
    tx.all(sql, &chosen.params(limit))
}

/// The oldest of them, oldest first.
pub fn oldest(tx: &mut Tx, chosen: &Chosen, limit: i64) -> Result<Vec<Order>> {
    let sql = match chosen.status {
        None | Some(OrderStatus::Fulfilled) => NEWER,
        Some(OrderStatus::Failed | OrderStatus::Cancelled) => NEWER_UNDONE,
        Some(OrderStatus::Provisioning | OrderStatus::Cancelling) => NEWER_OPEN,
    };
    tx.all(sql, &chosen.params(limit))
}

/// A place with nothing but earlier orders before it, as far as orders were placed in the order of their places: the
/// first order that was placed at this time or later, or the end. Found by halving.
pub fn place_of(tx: &mut Tx, account: AccountNo, time: Time) -> Result<i64> {
    let last: Option<i64> = tx.opt(LAST, params![account])?;
    // What is at `before` was placed earlier; from `since` on the next order was placed later, if there is one.
    let (mut before, mut since) = (0, last.unwrap_or(0).saturating_add(1));
    while since - before > 1 {
        let middle = before + (since - before) / 2;
        match tx.opt::<Placed>(FIRST_FROM, params![account, middle])? {
            Some(next) if next.seq < since && next.created_at < time => before = next.seq,
            _ => since = middle,
        }
    }
    Ok(since)
}

/// How many orders and top-ups have been open since before `then`, counted up to `most`.
pub fn waiting(tx: &mut Tx, account: AccountNo, then: Time, most: i64) -> Result<i64> {
    tx.one(WAITING, params![account, then, most])
}

/// The one of them that has waited for longest.
pub fn longest_waiting(tx: &mut Tx, account: AccountNo, then: Time) -> Result<Option<Order>> {
    tx.opt(LONGEST_WAITING, params![account, then])
}
