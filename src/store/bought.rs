//! Orders as their suppliers know them: by supplier, and by the supplier's own number.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::domain::cost::{Billed, Cost};
use crate::domain::ids::OrderId;
use crate::domain::money::Usd;
use crate::domain::order::OrderStatus;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    /// Worded so that the small index over open orders fits.
    UNDER_WAY = "SELECT 1 FROM orders WHERE status IN ('PROVISIONING', 'CANCELLING') AND status = 'PROVISIONING'
                AND supplier = ?1 AND supplier_number = ?2 AND ask_until > ?3";
    ASK_EARLIER = "UPDATE orders SET ask_until = ?3 WHERE status IN ('PROVISIONING', 'CANCELLING') AND status = 'PROVISIONING'
                AND supplier = ?1 AND supplier_number = ?2 AND ask_until > ?3";
    OF_SUPPLIER = text!("SELECT ", Bought::COLUMNS, " FROM orders o WHERE o.supplier = ?1");
}

/// An order as a supplier's records should have it.
pub struct Bought {
    pub id: OrderId,
    pub status: OrderStatus,
    /// Whether its profile turned up after its money had gone back.
    pub orphaned: bool,
    pub cost: Usd,
    pub billed: Option<Billed>,
}

columns! {
    Bought in "o" { id, status, orphaned = "CAST(CASE WHEN o.orphan IS NULL AND NOT EXISTS (SELECT 1 FROM spares s WHERE s.order_id = o.id) THEN 0 ELSE 1 END AS BIGINT)", cost, billed: Option<Billed> = "o.native_cost, o.rate" }
}

impl Bought {
    pub fn billed_cost(&self) -> Cost {
        Cost { usd: self.cost, billed: self.billed }
    }
}

/// Whether a sale with this number of the supplier's is under way, and not asked about before `now`.
pub fn is_under_way(tx: &mut Tx, supplier: &str, number: &str, now: Time) -> Result<bool> {
    tx.any(UNDER_WAY, params![supplier, number, now])
}

/// Lets the supplier be asked at `turn` about a sale that is under way. That is safe at any time: its number is known, so
/// asking buys nothing.
pub fn ask_earlier(tx: &mut Tx, supplier: &str, number: &str, turn: Time) -> Result<()> {
    tx.execute(ASK_EARLIER, params![supplier, number, turn]).map(drop)
}

/// Everything that was ever ordered from a supplier.
pub fn of_supplier(tx: &mut Tx, supplier: &str) -> Result<Vec<Bought>> {
    tx.all(OF_SUPPLIER, params![supplier])
}
