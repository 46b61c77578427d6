//! The addresses of the house that checkouts are paid to, and the ring of amounts below each price on each of them. A
//! ring hands out its amounts in turn, so the next one was used longest ago: one look shows whether an address has
//! room, however many amounts are taken. On PostgreSQL a group of checkouts looks at once.

use std::collections::HashMap;

use super::engine::{Param, Stored, Tx, columns, params, queries, text};
use crate::domain::checkout;
use crate::domain::ids::InvoiceId;
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Network};
use crate::domain::time::Time;
use crate::error::{Error, Result};

queries! {
    SERVING = "SELECT address, watch_until FROM addresses WHERE kind = ?1 AND fingerprint = ?2 AND serves IS NOT NULL AND serves = ?3";
    SERVE = "UPDATE addresses SET serves = ?2 WHERE address = ?1";
    TWIN = "SELECT t.address, t.watch_until FROM addresses a JOIN addresses t ON t.address = a.twin
            WHERE a.address = ?1 AND t.fingerprint || '' = ?2";
    PAIR = "UPDATE addresses SET twin = ?2 WHERE address = ?1";
    RETIRE = "UPDATE addresses SET serves = NULL WHERE serves IS NOT NULL";
    TURN = "INSERT INTO amount_rings (address, price, next) VALUES (?1, ?2, ?3)
            ON CONFLICT (address, price) DO UPDATE SET next = amount_rings.next + excluded.next RETURNING address, price, next";
    /// Sorted, so that two instances cannot wait for each other.
    TURN_ALL (Postgres) = "INSERT INTO amount_rings (address, price, next)
        SELECT a.address, a.price, a.steps FROM unnest(CAST(?1 AS TEXT[]), CAST(?2 AS BIGINT[]), CAST(?3 AS BIGINT[])) AS a (address, price, steps)
        ORDER BY a.address, a.price
        ON CONFLICT (address, price) DO UPDATE SET next = amount_rings.next + excluded.next RETURNING address, price, next";
    MOVE = "UPDATE amount_rings SET next = ?3 WHERE address = ?1 AND price = ?2";
    HOLDER = text!("SELECT c.address, c.amount, ", Holder::COLUMNS, " FROM checkouts c
        WHERE c.address = ?1 AND c.amount = ?2 AND c.released = 0");
    /// Looked up one by one, whatever size the planner expects of the table.
    HOLDER_ALL (Postgres) = text!("SELECT c.address, c.amount, ", Holder::COLUMNS, "
        FROM unnest(CAST(?1 AS TEXT[]), CAST(?2 AS BIGINT[])) AS a (address, amount)
        CROSS JOIN LATERAL (SELECT * FROM checkouts h WHERE h.address = a.address AND h.amount = a.amount AND h.released = 0 LIMIT 1) c");
    RELEASE = "UPDATE checkouts SET released = created_at WHERE id = ?1 AND released = 0";
}

/// The house's address for checkouts with this number, and until when it is watched. Those for wide slots are numbered
/// from 1 on, those for exact amounts from -1 down.
pub fn serving(
    tx: &mut Tx,
    kind: AddressKind,
    fingerprint: &str,
    number: i64,
) -> Result<Option<(String, Time)>> {
    tx.opt(SERVING, params![kind, fingerprint, number])
}

pub fn serve(tx: &mut Tx, address: &str, number: i64) -> Result<()> {
    tx.execute(SERVE, params![address, number]).map(drop)
}

/// The address that payers sign for instead of this one, if it is of this key, and until when it is watched.
pub fn twin(tx: &mut Tx, address: &str, fingerprint: &str) -> Result<Option<(String, Time)>> {
    tx.opt(TWIN, params![address, fingerprint])
}

pub fn pair(tx: &mut Tx, address: &str, twin: &str) -> Result<()> {
    tx.execute(PAIR, params![address, twin]).map(drop)
}

/// Retires all serving addresses: new checkouts are paid to new ones.
pub fn retire(tx: &mut Tx) -> Result<u64> {
    tx.execute(RETIRE, &[])
}

/// The ring of amounts below a price, on one address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ring {
    pub address: String,
    pub price: Usd,
}

columns! { Ring { address, price } }

/// Turns each ring by its steps and answers the place where it stood. Nobody else turns it before this write ends.
pub fn turn(tx: &mut Tx, steps: &[(Ring, i64)]) -> Result<HashMap<Ring, i64>> {
    let rows: Vec<[Param; 3]> =
        steps.iter().map(|(ring, steps)| *params![&ring.address, ring.price, *steps]).collect();
    let mut turned: HashMap<Ring, i64> = HashMap::with_capacity(steps.len());
    if tx.is_postgres() {
        turned.extend(tx.for_each::<(Ring, i64)>(TURN_ALL, &rows)?);
    } else {
        for row in &rows {
            turned.extend(tx.write_opt::<(Ring, i64)>(TURN, row)?);
        }
    }
    let start = |(ring, steps): &(Ring, i64)| {
        let next = turned.get(ring).ok_or_else(|| Error::fault("a ring was not turned"))?;
        Ok((ring.clone(), next - steps))
    };
    steps.iter().map(start).collect()
}

/// Moves a ring that was turned in this write to another place.
pub fn put(tx: &mut Tx, ring: &Ring, place: i64) -> Result<()> {
    tx.execute(MOVE, params![ring.address.as_str(), ring.price, place]).map(drop)
}

/// The checkout that reserves an amount.
#[derive(Clone, Debug)]
pub struct Holder {
    pub id: InvoiceId,
    pub network: Network,
    pub rests_until: Time,
}

columns! {
    Holder in "c" { id: InvoiceId, network: Network, late_until: Time, updated_at: Time }
        => Holder { id, network, rests_until: checkout::rests_until(late_until, updated_at) }
}

/// The holders of these amounts, by address and amount; free amounts are missing.
pub fn holders(tx: &mut Tx, amounts: &[(&str, Usd)]) -> Result<HashMap<(String, Usd), Holder>> {
    let rows: Vec<[Param; 2]> = amounts.iter().map(|(address, amount)| *params![*address, *amount]).collect();
    let mut found: HashMap<(String, Usd), Holder> = HashMap::new();
    if tx.is_postgres() {
        found.extend(tx.for_each::<((String, Usd), Holder)>(HOLDER_ALL, &rows)?);
    } else {
        for row in &rows {
            found.extend(tx.opt::<((String, Usd), Holder)>(HOLDER, row)?);
        }
    }
    Ok(found)
}

/// Frees the amount, so that it may be asked for again.
pub fn release(tx: &mut Tx, id: &InvoiceId) -> Result<()> {
    tx.execute(RELEASE, params![id]).map(drop)
}
