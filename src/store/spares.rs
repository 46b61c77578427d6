//! Sales that turned up beside the one that was delivered, or for an order that had failed. They are given back to the
//! supplier, or their cost is lost.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::domain::cost::{Billed, Cost};
use crate::domain::ids::OrderId;
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    HELD = "SELECT 1 FROM spares WHERE supplier = ?1 AND number = ?2";
    COUNT = "SELECT COUNT(*) FROM spares WHERE order_id = ?1";
    ADD = "INSERT INTO spares (order_id, n, supplier, number, profile, cost, state, ask_until, native_cost) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'OPEN', ?7, ?8)
           ON CONFLICT (supplier, number) DO NOTHING";
    OPEN = text!("SELECT ", Spare::COLUMNS, " FROM spares WHERE state = 'OPEN' AND ask_until < ?1 ORDER BY ask_until LIMIT 64");
    LEASE = "UPDATE spares SET ask_until = ?4 WHERE order_id = ?1 AND n = ?2 AND ask_until = ?3 AND state = 'OPEN'";
    END = "UPDATE spares SET state = ?3 WHERE order_id = ?1 AND n = ?2 AND state = 'OPEN'";
}

#[derive(Clone, Debug)]
pub struct Spare {
    pub order: OrderId,
    /// The n-th of its order.
    pub n: i64,
    pub supplier: String,
    /// The supplier's own number for the sale.
    pub number: String,
    /// The profile to give back; a top-up stays where it is.
    pub profile: Option<String>,
    pub cost: Cost,
    /// Until then somebody may be asking the supplier about it.
    pub ask_until: Time,
}

columns! {
    Spare {
        order = "order_id", n, supplier, number, profile, usd: Usd = "cost",
        // At the rate of the order.
        billed: Option<Billed> = "native_cost, (SELECT o.rate FROM orders o WHERE o.id = spares.order_id)", ask_until,
    } => Spare { order, n, supplier, number, profile, cost: Cost { usd, billed }, ask_until }
}

/// Whether a sale is known to be one too many.
pub fn holds(tx: &mut Tx, supplier: &str, number: &str) -> Result<bool> {
    tx.any(HELD, params![supplier, number])
}

/// Notes a sale that is one too many; false when it is known already.
pub fn add(tx: &mut Tx, spare: &Spare) -> Result<bool> {
    let n = tx.one::<i64>(COUNT, params![&spare.order])? + 1;
    let values = params![
        &spare.order,
        n,
        &spare.supplier,
        &spare.number,
        spare.profile.as_deref(),
        spare.cost.usd,
        spare.ask_until,
        spare.cost.native()
    ];
    Ok(tx.execute(ADD, values)? == 1)
}

/// Those that nobody asks the supplier about now.
pub fn open(tx: &mut Tx, now: Time) -> Result<Vec<Spare>> {
    tx.all(OPEN, params![now])
}

/// Takes one over; false when somebody else was faster.
pub fn lease(tx: &mut Tx, spare: &Spare, ask_until: Time) -> Result<bool> {
    Ok(tx.execute(LEASE, params![&spare.order, spare.n, spare.ask_until, ask_until])? == 1)
}

/// It was given back or is lost; false when somebody else ended it.
pub fn end(tx: &mut Tx, spare: &Spare, outcome: &str) -> Result<bool> {
    Ok(tx.execute(END, params![&spare.order, spare.n, outcome])? == 1)
}
