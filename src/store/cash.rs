//! What the books say lies on our addresses, read so that it stays true until the write ends: of two concurrent sweeps,
//! on any number of machines, the second one sees what the first has left.

use super::engine::{Tx, params, queries};
use super::ledger;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::error::Result;

queries! {
    /// Cash has no balance row, so the network's cursor is locked in its place. SQLite needs no lock: a write
    /// transaction has the database to itself.
    LOCK (Postgres) = "SELECT scanned FROM cursors WHERE network = ?1 FOR UPDATE";
}

/// How much may leave our addresses. A network that was never scanned has no row to lock, and no cash.
pub fn held(tx: &mut Tx, network: Network, currency: Currency) -> Result<Usd> {
    if tx.is_postgres() {
        tx.any(LOCK, params![network])?;
    }
    ledger::cash(tx, network, currency)
}
