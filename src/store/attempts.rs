//! What is written down of purchases at suppliers that sell again when they are asked again: each purchase before it is
//! sent, what look-ups found since, and whose turn it is. Orders at other suppliers leave nothing here.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::domain::doubt::Attempt;
use crate::domain::ids::OrderId;
use crate::domain::order::Order;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    OF = text!("SELECT ", Attempt::COLUMNS, " FROM attempts WHERE order_id = ?1 ORDER BY n");
    ADD = "INSERT INTO attempts (order_id, n, supplier, asked_at)
           SELECT o.id, CAST(?2 AS BIGINT), o.supplier, CAST(?3 AS BIGINT) FROM orders o WHERE o.id = ?1 AND o.status = 'PROVISIONING'
           ON CONFLICT (order_id, n) DO NOTHING";
    REMOVE = "DELETE FROM attempts WHERE order_id = ?1 AND n = ?2 AND asked_at = ?3";
    EMPTY = "UPDATE attempts SET empty_at = ?2 WHERE order_id = ?1 AND n = 1 AND empty_at IS NULL";
    NOT_EMPTY = "UPDATE attempts SET empty_at = NULL WHERE order_id = ?1 AND n = 1 AND empty_at IS NOT NULL";
    /// The earliest sales that were certainly made after a moment, of eSIMs or of top-ups.
    KNOWN = "SELECT a.order_id FROM attempts a JOIN orders o ON o.id = a.order_id
             WHERE a.supplier = ?1 AND a.asked_at > ?2 AND a.n = 1 AND o.status = 'FULFILLED'
               AND CASE WHEN o.esim_order IS NULL THEN 0 ELSE 1 END = CAST(?3 AS BIGINT) ORDER BY a.asked_at LIMIT 3";
    TAKE_PLACE = "INSERT INTO second_purchases (supplier, place, at) VALUES (?1, ?2, ?3)
                  ON CONFLICT (supplier, place) DO UPDATE SET at = excluded.at WHERE second_purchases.at <= ?4";
    /// Only an order that is seen to have ended gives its turn away: one that is not seen yet has just taken it.
    TAKE_TURN = "INSERT INTO turns (supplier, code, order_id) VALUES (?1, ?2, ?3)
                 ON CONFLICT (supplier, code) DO UPDATE SET order_id = excluded.order_id
                 WHERE turns.order_id = excluded.order_id
                    OR EXISTS (SELECT 1 FROM orders o WHERE o.id = turns.order_id AND o.status <> 'PROVISIONING')";
    AHEAD = "SELECT 1 FROM waiting w JOIN orders o ON o.id = w.order_id
             WHERE w.supplier = ?1 AND w.code = ?2 AND w.order_id < ?3 AND o.status = 'PROVISIONING' LIMIT 1";
    WAIT = "INSERT INTO waiting (supplier, code, order_id) VALUES (?1, ?2, ?3) ON CONFLICT (supplier, code, order_id) DO NOTHING";
    LEAVE = "DELETE FROM waiting WHERE supplier = ?1 AND code = ?2 AND order_id = ?3";
    LEAVE_UP_TO = "DELETE FROM waiting WHERE supplier = ?1 AND code = ?2 AND order_id <= ?3";
    WATCH = "UPDATE attempts SET next_look = ?2 WHERE order_id = ?1 AND n = 1 AND next_look IS NULL";
    WATCHED = text!("SELECT ", Watch::COLUMNS, " FROM attempts WHERE next_look IS NOT NULL AND next_look <= ?1 ORDER BY next_look LIMIT 64");
    LOOK_LATER = "UPDATE attempts SET next_look = ?3 WHERE order_id = ?1 AND n = 1 AND next_look = ?2";
}

columns! { Attempt { n, asked_at, empty_at } }

/// An order whose late sales are looked for.
pub struct Watch {
    pub order: OrderId,
    pub asked_at: Time,
    pub next_look: Time,
}

columns! { Watch { order = "order_id", asked_at, next_look } }

/// What became of the wish to buy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is written down and may be sent.
    Now,
    /// Somebody else has written it down, or the order has ended.
    Elsewhere,
    /// Another order of the same plan is open.
    NotYet,
    /// There were too many second purchases within the hour.
    Capped,
}

/// The purchases of an order, in their order.
pub fn of(tx: &mut Tx, order: &OrderId) -> Result<Vec<Attempt>> {
    tx.all(OF, params![order])
}

/// Writes the first purchase down. With `in_turn`, only one order of a plan may be open; the others wait.
pub fn begin(tx: &mut Tx, order: &Order, in_turn: bool, now: Time) -> Result<Begun> {
    if let Some(begun) = begun_before(tx, &order.id, 1, now)? {
        return Ok(begun);
    }
    if in_turn && !take_turn(tx, order)? {
        return Ok(Begun::NotYet);
    }
    add(tx, &order.id, 1, now)
}

/// Writes the second purchase down, if one of the supplier's places for an hour is free.
pub fn begin_second(tx: &mut Tx, order: &Order, places: i64, now: Time) -> Result<Begun> {
    if let Some(begun) = begun_before(tx, &order.id, 2, now)? {
        return Ok(begun);
    }
    let hour_ago = now.plus_millis(-3_600_000);
    let mut taken = false;
    for place in 0..places {
        if tx.execute(TAKE_PLACE, params![&order.supplier, place, now, hour_ago])? == 1 {
            taken = true;
            break;
        }
    }
    if !taken {
        return Ok(Begun::Capped);
    }
    let begun = add(tx, &order.id, 2, now)?;
    if begun == Begun::Now {
        watch(tx, &order.id, now)?;
    }
    Ok(begun)
}

/// A rerun finds its own purchase; anybody else's is not ours to send.
fn begun_before(tx: &mut Tx, order: &OrderId, n: i64, now: Time) -> Result<Option<Begun>> {
    let before = of(tx, order)?.into_iter().find(|attempt| attempt.n == n);
    let rerun = tx.is_rerun();
    Ok(before.map(|attempt| match rerun && attempt.asked_at == now {
        true => Begun::Now,
        false => Begun::Elsewhere,
    }))
}

fn add(tx: &mut Tx, order: &OrderId, n: i64, now: Time) -> Result<Begun> {
    let added = tx.execute(ADD, params![order, n, now])? == 1;
    Ok(if added { Begun::Now } else { Begun::Elsewhere })
}

/// Takes the turn of a plan, or joins those that wait for it; the oldest of them is next.
fn take_turn(tx: &mut Tx, order: &Order) -> Result<bool> {
    let plan = params![&order.supplier, &order.supplier_code, &order.id];
    if !tx.any(AHEAD, plan)? && tx.execute(TAKE_TURN, plan)? == 1 {
        // Those before it have ended.
        tx.execute(LEAVE_UP_TO, plan)?;
        return Ok(true);
    }
    tx.execute(WAIT, plan)?;
    Ok(false)
}

/// An order that cannot go on holds up nobody behind it.
pub fn stop_waiting(tx: &mut Tx, order: &Order) -> Result<()> {
    tx.execute(LEAVE, params![&order.supplier, &order.supplier_code, &order.id]).map(drop)
}

/// A purchase certainly never left us.
pub fn never_sent(tx: &mut Tx, order: &OrderId, attempt: &Attempt) -> Result<()> {
    tx.execute(REMOVE, params![order, attempt.n, attempt.asked_at]).map(drop)
}

/// A look-up that counts was empty.
pub fn found_empty(tx: &mut Tx, order: &OrderId, at: Time) -> Result<()> {
    tx.execute(EMPTY, params![order, at]).map(drop)
}

/// A look-up was not empty: earlier ones that were do not count.
pub fn found_something(tx: &mut Tx, order: &OrderId) -> Result<()> {
    tx.execute(NOT_EMPTY, params![order]).map(drop)
}

/// Some delivered orders of the same kind whose sales are younger than this moment.
pub fn known_sales(tx: &mut Tx, order: &Order, since: Time) -> Result<Vec<OrderId>> {
    tx.all(KNOWN, params![&order.supplier, since, i64::from(order.id.is_topup())])
}

/// From now on sales of this order are looked for that turn up late.
pub fn watch(tx: &mut Tx, order: &OrderId, now: Time) -> Result<()> {
    tx.execute(WATCH, params![order, now.plus_millis(60_000)]).map(drop)
}

/// The orders whose late sales are to be looked for now.
pub fn watched(tx: &mut Tx, now: Time) -> Result<Vec<Watch>> {
    tx.all(WATCHED, params![now])
}

/// Puts the next look off, or ends it; false when somebody else was faster.
pub fn look_later(tx: &mut Tx, watch: &Watch, next: Option<Time>) -> Result<bool> {
    Ok(tx.execute(LOOK_LATER, params![&watch.order, watch.next_look, next])? == 1)
}
