//! Wide slots: which buckets of amounts are taken on which address, by whom, and whose a rounded payment is. That no two
//! slots share a bucket rests on the primary key; the rules are in `domain/slot.rs`, how one is found in
//! `ops/checkout/wide.rs`. On PostgreSQL a group of checkouts looks and takes at once.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use super::cursors;
use super::tx::{Param, Row, Tx, params, queries};
use crate::domain::checkout::{self, LATE_HOURS};
use crate::domain::client::Origin;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Network};
use crate::domain::slot::{self, Band, Unpaid};
use crate::domain::time::Time;
use crate::domain::transfer::Sighting;
use crate::error::Result;

/// The addresses of a key, by their numbers, on which both buckets are free.
macro_rules! select_free {
    ($kind:literal, $key:literal, $from:literal, $to:literal, $bucket:literal, $above:expr, $also:expr, $order:literal) => {
        concat!(
            "SELECT a.address, a.watch_until, ",
            $above,
            " AS crowded FROM addresses a
              WHERE a.kind = ",
            $kind,
            " AND a.fingerprint = ",
            $key,
            " AND a.serves IS NOT NULL AND a.serves >= ",
            $from,
            " AND a.serves <= ",
            $to,
            " AND NOT EXISTS (SELECT 1 FROM slots s WHERE s.address = a.address AND s.bucket >= ",
            $bucket,
            " AND s.bucket <= ",
            $bucket,
            " + 1) ",
            $also,
            " ORDER BY ",
            $order,
            "a.serves LIMIT "
        )
    };
}

/// An unpaid checkout holds one of these buckets. Worded so that checkouts are found by their ids.
macro_rules! unpaid_between {
    ($low:literal, $high:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM slots s JOIN checkouts c ON c.id = s.invoice
                     WHERE s.address = a.address AND s.bucket >= ",
            $low,
            " AND s.bucket <= ",
            $high,
            " AND c.status || '' IN ('OPEN', 'EXPIRED'))"
        )
    };
}

macro_rules! select_alone {
    ($kind:literal, $key:literal, $from:literal, $to:literal, $bucket:literal, $low:literal, $high:literal) => {
        select_free!(
            $kind,
            $key,
            $from,
            $to,
            $bucket,
            "CAST(0 AS BIGINT)",
            concat!("AND NOT ", unpaid_between!($low, $high)),
            ""
        )
    };
}

macro_rules! select_any {
    ($kind:literal, $key:literal, $from:literal, $to:literal, $bucket:literal, $high:literal) => {
        select_free!(
            $kind,
            $key,
            $from,
            $to,
            $bucket,
            concat!("CAST(CASE WHEN ", unpaid_between!($bucket, $high), " THEN 1 ELSE 0 END AS BIGINT)"),
            "",
            "crowded, "
        )
    };
}

/// One search for each row of lists.
macro_rules! for_all {
    ($select:expr) => {
        concat!(
            "SELECT x.n, f.address, f.watch_until, f.crowded FROM unnest(CAST(?1 AS TEXT[]), CAST(?2 AS TEXT[]), CAST(?3 AS BIGINT[]),
                CAST(?4 AS BIGINT[]), CAST(?5 AS BIGINT[]), CAST(?6 AS BIGINT[]), CAST(?7 AS BIGINT[]), CAST(?8 AS BIGINT[]))
                WITH ORDINALITY AS x (kind, fingerprint, first, last, bucket, low, high, most, n)
             CROSS JOIN LATERAL (",
            $select,
            "x.most) f ORDER BY x.n, f.crowded"
        )
    };
}

queries! {
    HELD = "SELECT origin, network, list_price - discount FROM checkouts WHERE account = ?1 AND origin >= ?2 AND origin < ?3
            AND wide = 1 AND released = 0 AND status <> 'PAID' AND status <> 'REFUNDED'";
    HELD_ALL (Postgres) = "SELECT a.n, c.origin, c.network, c.price
        FROM unnest(CAST(?1 AS BIGINT[]), CAST(?2 AS TEXT[]), CAST(?3 AS TEXT[])) WITH ORDINALITY AS a (account, low, high, n)
        CROSS JOIN LATERAL (SELECT h.origin, h.network, h.list_price - h.discount AS price FROM checkouts h
            WHERE h.account = a.account AND h.origin >= a.low AND h.origin < a.high
            AND h.wide = 1 AND h.released = 0 AND h.status <> 'PAID' AND h.status <> 'REFUNDED') c";
    /// Nobody who could be taken for the new one, or the new one for him, is on the address.
    ALONE (Sqlite) = concat!(select_alone!("?1", "?2", "?3", "?4", "?5", "?6", "?7"), "?8");
    ALONE_ALL (Postgres) = for_all!(select_alone!("x.kind", "x.fingerprint", "x.first", "x.last", "x.bucket", "x.low", "x.high"));
    /// First those where nobody asks for a little more.
    ANY (Sqlite) = concat!(select_any!("?1", "?2", "?3", "?4", "?5", "?7"), "?8");
    ANY_ALL (Postgres) = for_all!(select_any!("x.kind", "x.fingerprint", "x.first", "x.last", "x.bucket", "x.high"));
    LAST_NUMBER = "SELECT serves FROM addresses WHERE kind = ?1 AND fingerprint = ?2 AND serves IS NOT NULL AND serves >= ?3 AND serves <= ?4
                   ORDER BY serves DESC LIMIT 1";
    TAKE = "INSERT INTO slots (address, bucket, invoice) VALUES (?1, ?2, ?3) ON CONFLICT (address, bucket) DO NOTHING RETURNING invoice";
    /// In one order for everybody, so that two instances cannot wait for each other.
    TAKE_ALL (Postgres) = "INSERT INTO slots (address, bucket, invoice)
        SELECT a.address, a.bucket, a.invoice FROM unnest(CAST(?1 AS TEXT[]), CAST(?2 AS BIGINT[]), CAST(?3 AS TEXT[])) AS a (address, bucket, invoice)
        ORDER BY a.address, a.bucket ON CONFLICT (address, bucket) DO NOTHING RETURNING invoice";
    DROP_ONE = "DELETE FROM slots WHERE address = ?1 AND bucket = ?2 AND invoice = ?3";
    ANY_RESTED = "SELECT 1 FROM checkouts WHERE network = ?1 AND wide = 1 AND released = 0 AND late_until < ?2 AND updated_at < ?3 LIMIT 1";
    RELEASE = "UPDATE checkouts SET released = created_at WHERE +released = 0 AND +updated_at < ?3 AND id IN (
                   SELECT id FROM checkouts WHERE network = ?1 AND wide = 1 AND released = 0 AND late_until < ?2 AND updated_at < ?3
                   ORDER BY late_until LIMIT 500) RETURNING id, address, list_price - discount";
    HOLDER = "SELECT c.id, c.account, c.network, c.list_price - c.discount, c.created_at, c.late_until
              FROM slots s JOIN checkouts c ON c.id = s.invoice WHERE s.address = ?1 AND s.bucket = ?2";
    OTHERS = "SELECT c.amount, c.created_at, c.late_until, c.updated_at FROM slots s JOIN checkouts c ON c.id = s.invoice
              WHERE s.address = ?1 AND s.bucket >= ?2 AND s.bucket <= ?3 AND s.invoice <> ?4 AND c.status || '' IN ('OPEN', 'EXPIRED')";
}

/// Whose unpaid slots are counted: an account's, or those of guests from these origins.
pub struct Owner {
    pub account: AccountNo,
    pub from: String,
    pub before: String,
}

/// An unpaid slot, and where its buyer was.
pub struct Held {
    pub origin: Origin,
    pub slot: Unpaid,
}

/// The unpaid slots that each of them holds.
pub fn held(tx: &mut Tx, owners: &[Owner]) -> Result<Vec<Vec<Held>>> {
    let rows: Vec<Vec<Param>> =
        owners.iter().map(|owner| params![owner.account, &owner.from, &owner.before].to_vec()).collect();
    if !tx.is_postgres() {
        return rows.iter().map(|row| tx.all(HELD, row, |row| read_held(row, 0))).collect();
    }
    let mut held: Vec<Vec<Held>> = owners.iter().map(|_| Vec::new()).collect();
    for (nth, one) in tx.for_each(HELD_ALL, &rows, |row| Ok((row.int(0)?, read_held(row, 1)?)))? {
        held[nth as usize - 1].push(one);
    }
    Ok(held)
}

fn read_held(row: &Row, first: usize) -> Result<Held> {
    let slot = Unpaid { network: row.word(first + 1, Network::parse)?, price: row.usd(first + 2)? };
    Ok(Held { origin: Origin::from_text(row.text(first)?), slot })
}

/// Where a slot is looked for.
pub struct Search<'a> {
    pub kind: AddressKind,
    pub fingerprint: &'a str,
    pub numbers: RangeInclusive<i64>,
    pub price: Usd,
    pub fee: Usd,
    pub most: i64,
}

/// What an address must be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Nobody there can be taken for the new one, whatever fee is taken off.
    Alone,
    /// No slot there shares a bucket with the new one.
    Any,
}

/// An address with room.
#[derive(Clone, Debug)]
pub struct Found {
    pub address: String,
    pub watch_until: Time,
    /// Somebody there asks for a little more.
    pub crowded: bool,
}

/// Addresses with room for each of them, the best first.
pub fn free(tx: &mut Tx, room: Room, searches: &[Search]) -> Result<Vec<Vec<Found>>> {
    let rows: Vec<Vec<Param>> = searches
        .iter()
        .map(|search| {
            let (low, high) = slot::within_reach(search.price, search.fee);
            params![
                search.kind.as_str(),
                search.fingerprint,
                *search.numbers.start(),
                *search.numbers.end(),
                slot::buckets(search.price)[0],
                low,
                high,
                search.most
            ]
            .to_vec()
        })
        .collect();
    if !tx.is_postgres() {
        let sql = match room {
            Room::Alone => ALONE,
            Room::Any => ANY,
        };
        return rows.iter().map(|row| tx.all(sql, row, |row| read_found(row, 0))).collect();
    }
    let sql = match room {
        Room::Alone => ALONE_ALL,
        Room::Any => ANY_ALL,
    };
    let mut found: Vec<Vec<Found>> = searches.iter().map(|_| Vec::new()).collect();
    for (nth, one) in tx.for_each(sql, &rows, |row| Ok((row.int(0)?, read_found(row, 1)?)))? {
        found[nth as usize - 1].push(one);
    }
    Ok(found)
}

fn read_found(row: &Row, first: usize) -> Result<Found> {
    Ok(Found { address: row.text(first)?, watch_until: row.time(first + 1)?, crowded: row.flag(first + 2)? })
}

/// The number that the next address of this range would have, while there is one.
pub fn next_number(
    tx: &mut Tx,
    kind: AddressKind,
    fingerprint: &str,
    numbers: &RangeInclusive<i64>,
) -> Result<Option<i64>> {
    let values = params![kind.as_str(), fingerprint, *numbers.start(), *numbers.end()];
    let last = tx.opt(LAST_NUMBER, values, |row| row.int(0))?;
    let next = last.map_or(*numbers.start(), |last| last + 1);
    Ok(Some(next).filter(|next| numbers.contains(next)))
}

/// A slot that somebody wants.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    pub invoice: &'a InvoiceId,
    pub address: &'a str,
    pub price: Usd,
}

/// Takes slots as far as both of their buckets are free, and answers whose they are now. Of two instances that want one
/// bucket the second waits for the first, and goes without.
pub fn take(tx: &mut Tx, wishes: &[Wish]) -> Result<HashSet<InvoiceId>> {
    let rows: Vec<Vec<Param>> = wishes
        .iter()
        .flat_map(|wish| {
            slot::buckets(wish.price)
                .map(|bucket| params![wish.address, bucket, wish.invoice.as_str()].to_vec())
        })
        .collect();
    let read = |row: &Row| Ok(InvoiceId::from_text(row.text(0)?));
    let mut taken: HashMap<InvoiceId, usize> = HashMap::new();
    let got: Vec<InvoiceId> = if tx.is_postgres() {
        tx.for_each(TAKE_ALL, &rows, read)?
    } else {
        let mut got = Vec::new();
        for row in &rows {
            got.extend(tx.write_opt(TAKE, row, read)?);
        }
        got
    };
    for invoice in got {
        *taken.entry(invoice).or_default() += 1;
    }
    for wish in wishes.iter().filter(|wish| taken.get(wish.invoice) == Some(&1)) {
        drop_slot(tx, wish)?;
    }
    Ok(taken.into_iter().filter(|(_, buckets)| *buckets == 2).map(|(invoice, _)| invoice).collect())
}

fn drop_slot(tx: &mut Tx, held: &Wish) -> Result<()> {
    for bucket in slot::buckets(held.price) {
        tx.execute(DROP_ONE, params![held.address, bucket, held.invoice.as_str()])?;
    }
    Ok(())
}

/// Before which time slots on this network have rested, if one has: a day after its checkout closed, and when the scanners of
/// every network that its address is on have passed that time.
pub fn any_rested(tx: &mut Tx, network: Network, scanners: &[Network], now: Time) -> Result<Option<Time>> {
    let mut before = now;
    for scanner in scanners {
        let Some(cursor) = cursors::get(tx, *scanner)? else { return Ok(None) };
        before = before.min(cursor.scanned_time);
    }
    let any = tx.opt(ANY_RESTED, &rested(network, before), |_| Ok(()))?;
    Ok(any.map(|()| before))
}

/// The checkouts whose rest has ended before then; see `checkout::rests_until`.
fn rested(network: Network, before: Time) -> Vec<Param<'static>> {
    params![network.as_str(), before, before.plus_millis(-LATE_HOURS * 3_600_000)].to_vec()
}

/// Gives back slots that have rested, at most 500 at once.
pub fn release(tx: &mut Tx, network: Network, before: Time) -> Result<()> {
    let read = |row: &Row| Ok((InvoiceId::from_text(row.text(0)?), row.text(1)?, row.usd(2)?));
    for (invoice, address, price) in tx.write_all(RELEASE, &rested(network, before), read)? {
        drop_slot(tx, &Wish { invoice: &invoice, address: &address, price })?;
    }
    Ok(())
}

/// Whose a payment is that is near the price of a checkout: nobody's, while it could be two people's.
pub fn meant(tx: &mut Tx, seen: &Sighting, fee: Usd) -> Result<Option<(InvoiceId, AccountNo)>> {
    let (paid, at) = (seen.amount, seen.block.time);
    let found = tx.opt(HOLDER, params![&seen.recipient, slot::bucket_of(paid)], |row| {
        let fits = row.word(2, Network::parse)? == seen.id.network
            && Band::around(row.usd(3)?).holds(paid)
            && row.time(4)? <= checkout::youngest(at)
            && at < row.time(5)?;
        Ok(fits.then_some((InvoiceId::from_text(row.text(0)?), AccountNo(row.int(1)?), row.usd(3)?)))
    })?;
    let Some((invoice, account, price)) = found.flatten() else { return Ok(None) };
    let near = Near { address: &seen.recipient, invoice: &invoice, price, at };
    Ok(is_clear(tx, &near, paid, fee)?.then_some((invoice, account)))
}

/// A slot, and the time at which somebody pays.
pub struct Near<'a> {
    pub address: &'a str,
    pub invoice: &'a InvoiceId,
    pub price: Usd,
    pub at: Time,
}

/// Whether such a payment cannot have been meant for another unpaid checkout of that address, with a fee taken out of it.
pub fn is_clear(tx: &mut Tx, near: &Near, paid: Usd, fee: Usd) -> Result<bool> {
    let last = slot::bucket_of(paid.max(near.price).plus(fee));
    let values = params![near.address, slot::bucket_of(paid), last, near.invoice.as_str()];
    let mixed_up = tx.all(OTHERS, values, |row| {
        let rests_until = checkout::rests_until(row.time(2)?, row.time(3)?);
        Ok(row.time(1)? <= checkout::youngest(near.at)
            && near.at < rests_until
            && slot::may_be_short_of(row.usd(0)?, paid, near.price, fee))
    })?;
    Ok(!mixed_up.contains(&true))
}
