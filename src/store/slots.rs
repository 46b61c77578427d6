//! Wide slots: which buckets of amounts are taken on which address, by whom, and which checkout a rounded payment
//! belongs to. The primary key ensures that no two slots share a bucket; the rules are in `domain/slot.rs`, and
//! `ops/checkout/wide.rs` finds one. On PostgreSQL a group of checkouts looks and takes at once.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use super::cursors;
use super::engine::{Param, Stored, Tx, columns, lists, params, queries, text, values};
use crate::domain::checkout::{self, LATE_HOURS};
use crate::domain::client::Origin;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Currency, Network};
use crate::domain::slot::{self, Band, Unpaid};
use crate::domain::time::Time;
use crate::domain::transfer::Sighting;
use crate::error::Result;

/// Selects the addresses of a key, by their numbers, on which both buckets are free. `OFFSET 0` keeps PostgreSQL from
/// turning what follows an `EXISTS` into a join.
macro_rules! select_free {
    ($kind:literal, $key:literal, $from:literal, $to:literal, $bucket:literal, $above:expr, $also:expr, $order:literal) => {
        concat!(
            "SELECT a.address, a.watch_until, ",
            $above,
            " AS crowded, a.serves FROM addresses a
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
            " + 1 LIMIT 1 OFFSET 0) ",
            $also,
            " ORDER BY ",
            $order,
            "a.serves LIMIT "
        )
    };
}

/// Whether an unpaid checkout holds one of these buckets.
macro_rules! unpaid_between {
    ($low:literal, $high:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM slots s WHERE s.address = a.address AND s.bucket >= ",
            $low,
            " AND s.bucket <= ",
            $high,
            " AND (SELECT c.status FROM checkouts c WHERE c.id = s.invoice) IN ('OPEN', 'EXPIRED') LIMIT 1 OFFSET 0)"
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

macro_rules! for_one {
    ($select:expr) => {
        text!("SELECT ", Found::COLUMNS, " FROM (", $select, "?8) f ORDER BY f.crowded, f.serves")
    };
}

/// Runs one search for each row of the lists.
macro_rules! for_all {
    ($select:expr) => {
        text!(
            "SELECT x.n, ",
            Found::COLUMNS,
            " FROM unnest(",
            lists!(Wanted),
            ") WITH ORDINALITY AS x (",
            Wanted::NAMES,
            ", n) CROSS JOIN LATERAL (",
            $select,
            "x.most) f ORDER BY x.n, f.crowded, f.serves"
        )
    };
}

queries! {
    HELD = text!("SELECT ", Held::COLUMNS, " FROM checkouts h WHERE h.account = ?1 AND h.origin >= ?2 AND h.origin < ?3
            AND h.wide = 1 AND h.released = 0 AND h.status <> 'PAID' AND h.status <> 'REFUNDED'");
    HELD_ALL (Postgres) = text!("SELECT a.n, ", Held::COLUMNS, "
        FROM unnest(CAST(?1 AS BIGINT[]), CAST(?2 AS TEXT[]), CAST(?3 AS TEXT[])) WITH ORDINALITY AS a (account, low, high, n)
        CROSS JOIN LATERAL (SELECT * FROM checkouts c WHERE c.account = a.account AND c.origin >= a.low AND c.origin < a.high
            AND c.wide = 1 AND c.released = 0 AND c.status <> 'PAID' AND c.status <> 'REFUNDED') h");
    /// Addresses without any checkout that could be confused with the new one.
    ALONE (Sqlite) = for_one!(select_alone!("?1", "?2", "?3", "?4", "?5", "?6", "?7"));
    ALONE_ALL (Postgres) = for_all!(select_alone!("x.kind", "x.fingerprint", "x.first", "x.last", "x.bucket", "x.low", "x.high"));
    /// Addresses where nobody asks for a little more come first.
    ANY (Sqlite) = for_one!(select_any!("?1", "?2", "?3", "?4", "?5", "?7"));
    ANY_ALL (Postgres) = for_all!(select_any!("x.kind", "x.fingerprint", "x.first", "x.last", "x.bucket", "x.high"));
    LAST_NUMBER = "SELECT serves FROM addresses WHERE kind = ?1 AND fingerprint = ?2 AND serves IS NOT NULL AND serves >= ?3 AND serves <= ?4
                   ORDER BY serves DESC LIMIT 1";
    TAKE = "INSERT INTO slots (address, bucket, invoice) VALUES (?1, ?2, ?3) ON CONFLICT (address, bucket) DO NOTHING RETURNING invoice";
    /// Sorted, so that two instances cannot wait for each other.
    TAKE_ALL (Postgres) = "INSERT INTO slots (address, bucket, invoice)
        SELECT a.address, a.bucket, a.invoice FROM unnest(CAST(?1 AS TEXT[]), CAST(?2 AS BIGINT[]), CAST(?3 AS TEXT[])) AS a (address, bucket, invoice)
        ORDER BY a.address, a.bucket ON CONFLICT (address, bucket) DO NOTHING RETURNING invoice";
    DROP_ONE = "DELETE FROM slots WHERE address = ?1 AND bucket = ?2 AND invoice = ?3";
    ANY_RESTED = "SELECT 1 FROM checkouts WHERE network = ?1 AND wide = 1 AND released = 0 AND late_until < ?2 AND updated_at < ?3 LIMIT 1";
    RELEASE = "UPDATE checkouts SET released = created_at WHERE +released = 0 AND +updated_at < ?3 AND id IN (
                   SELECT id FROM checkouts WHERE network = ?1 AND wide = 1 AND released = 0 AND late_until < ?2 AND updated_at < ?3
                   ORDER BY late_until LIMIT 500) RETURNING id, address, list_price - discount";
    HOLDER = text!("SELECT ", Holder::COLUMNS, "
              FROM slots s JOIN checkouts c ON c.id = s.invoice WHERE s.address = ?1 AND s.bucket = ?2");
    OTHERS = "SELECT c.amount, c.created_at, c.late_until, c.updated_at FROM slots s JOIN checkouts c ON c.id = s.invoice
              WHERE s.address = ?1 AND s.bucket >= ?2 AND s.bucket <= ?3 AND s.invoice <> ?4 AND c.status || '' IN ('OPEN', 'EXPIRED')";
}

/// The owner of unpaid slots: an account, or guests from these origins.
pub struct Owner {
    pub account: AccountNo,
    pub from: String,
    pub before: String,
}

/// An unpaid slot, and the origin of its buyer.
pub struct Held {
    pub origin: Origin,
    pub slot: Unpaid,
}

columns! { Unpaid in "h" { network, price = "h.list_price - h.discount" } }

columns! { Held in "h" { origin, slot: Unpaid = Unpaid::COLUMNS } }

/// The unpaid slots of each owner.
pub fn held(tx: &mut Tx, owners: &[Owner]) -> Result<Vec<Vec<Held>>> {
    let rows: Vec<[Param; 3]> =
        owners.iter().map(|owner| *params![owner.account, &owner.from, &owner.before]).collect();
    if !tx.is_postgres() {
        return rows.iter().map(|row| tx.all(HELD, row)).collect();
    }
    let mut held: Vec<Vec<Held>> = owners.iter().map(|_| Vec::new()).collect();
    for (nth, one) in tx.for_each::<(i64, Held)>(HELD_ALL, &rows)? {
        held[nth as usize - 1].push(one);
    }
    Ok(held)
}

/// A search for a slot.
#[derive(PartialEq, Eq)]
pub struct Search<'a> {
    pub kind: AddressKind,
    pub fingerprint: &'a str,
    pub numbers: RangeInclusive<i64>,
    pub price: Usd,
    pub fee: Usd,
    pub most: i64,
}

/// The room that an address must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// No payment there can be confused with the new one's, whatever fee is taken off.
    Alone,
    /// No slot there shares a bucket with the new one.
    Any,
}

/// An address with room.
#[derive(Clone, Debug)]
pub struct Found {
    pub address: String,
    pub watch_until: Time,
    /// Whether somebody there asks for a little more.
    pub crowded: bool,
}

columns! { Found in "f" { address, watch_until, crowded } }

values! {
    Wanted(search: Search<'a>, low: i64, high: i64) {
        kind: TEXT, fingerprint: TEXT, first: BIGINT = *search.numbers.start(), last: BIGINT = *search.numbers.end(),
        bucket: BIGINT = slot::buckets(search.price)[0], low: BIGINT = low, high: BIGINT = high, most: BIGINT,
    }
}

/// Addresses with room for each search, the best first. A popular price is looked for once, however many of the group
/// want it.
pub fn free(tx: &mut Tx, room: Room, searches: &[Search]) -> Result<Vec<Vec<Found>>> {
    let mut different: Vec<&Search> = Vec::new();
    let mut places = Vec::with_capacity(searches.len());
    for search in searches {
        let known = different.iter().position(|other| *other == search);
        places.push(known.unwrap_or_else(|| {
            different.push(search);
            different.len() - 1
        }));
    }
    let found = look(tx, room, &different)?;
    Ok(places.into_iter().map(|place| found[place].clone()).collect())
}

fn look(tx: &mut Tx, room: Room, searches: &[&Search]) -> Result<Vec<Vec<Found>>> {
    let rows: Vec<_> = searches
        .iter()
        .map(|search| {
            let (low, high) = slot::within_reach(search.price, search.fee);
            Wanted::params(search, low, high)
        })
        .collect();
    if !tx.is_postgres() {
        let sql = match room {
            Room::Alone => ALONE,
            Room::Any => ANY,
        };
        return rows.iter().map(|row| tx.all(sql, row)).collect();
    }
    let sql = match room {
        Room::Alone => ALONE_ALL,
        Room::Any => ANY_ALL,
    };
    let mut found: Vec<Vec<Found>> = searches.iter().map(|_| Vec::new()).collect();
    for (nth, one) in tx.for_each::<(i64, Found)>(sql, &rows)? {
        found[nth as usize - 1].push(one);
    }
    Ok(found)
}

/// The number of the next address in this range; `None` when the range is used up.
pub fn next_number(
    tx: &mut Tx,
    kind: AddressKind,
    fingerprint: &str,
    numbers: &RangeInclusive<i64>,
) -> Result<Option<i64>> {
    let values = params![kind, fingerprint, *numbers.start(), *numbers.end()];
    let last: Option<i64> = tx.opt(LAST_NUMBER, values)?;
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

/// Takes the slots whose two buckets are both free, and answers their invoices. Of two instances that want one bucket,
/// the second waits for the first and gets nothing.
pub fn take(tx: &mut Tx, wishes: &[Wish]) -> Result<HashSet<InvoiceId>> {
    let rows: Vec<[Param; 3]> = wishes
        .iter()
        .flat_map(|wish| slot::buckets(wish.price).map(|bucket| *params![wish.address, bucket, wish.invoice]))
        .collect();
    let mut taken: HashMap<InvoiceId, usize> = HashMap::new();
    let got: Vec<InvoiceId> = if tx.is_postgres() {
        tx.for_each(TAKE_ALL, &rows)?
    } else {
        let mut got = Vec::new();
        for row in &rows {
            got.extend(tx.write_opt(TAKE, row)?);
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
        tx.execute(DROP_ONE, params![held.address, bucket, held.invoice])?;
    }
    Ok(())
}

/// The time before which slots on this network have rested; `None` when none has. A slot rests until a day after its
/// checkout closed, and until the scanners of every network of its address have passed that time.
pub fn any_rested(tx: &mut Tx, network: Network, scanners: &[Network], now: Time) -> Result<Option<Time>> {
    let mut before = now;
    for scanner in scanners {
        let Some(cursor) = cursors::get(tx, *scanner)? else { return Ok(None) };
        before = before.min(cursor.scanned_time);
    }
    Ok(tx.any(ANY_RESTED, &rested(network, before))?.then_some(before))
}

/// The parameters for checkouts whose rest ended before then; see `checkout::rests_until`.
fn rested(network: Network, before: Time) -> [Param<'static>; 3] {
    *params![network, before, before.plus_millis(-LATE_HOURS * 3_600_000)]
}

/// Frees slots that have rested, at most 500 at once.
pub fn release(tx: &mut Tx, network: Network, before: Time) -> Result<()> {
    for (invoice, address, price) in
        tx.write_all::<(InvoiceId, String, Usd)>(RELEASE, &rested(network, before))?
    {
        drop_slot(tx, &Wish { invoice: &invoice, address: &address, price })?;
    }
    Ok(())
}

/// A checkout that holds a bucket.
struct Holder {
    invoice: InvoiceId,
    account: AccountNo,
    network: Network,
    currency: Currency,
    price: Usd,
    created_at: Time,
    late_until: Time,
}

columns! {
    Holder in "c" {
        invoice = "c.id", account, network, currency, price = "c.list_price - c.discount", created_at, late_until,
    }
}

/// The checkout that a payment near its price belongs to; `None` while it could belong to two.
pub fn meant(tx: &mut Tx, seen: &Sighting, fee: Usd) -> Result<Option<(InvoiceId, AccountNo)>> {
    let (paid, at) = (seen.amount, seen.block.time);
    let found: Option<Holder> = tx.opt(HOLDER, params![&seen.recipient, slot::bucket_of(paid)])?;
    let Some(Holder { invoice, account, price, .. }) = found.filter(|holder| {
        holder.network == seen.id.network
            && holder.currency == seen.currency
            && Band::around(holder.price).holds(paid)
            && holder.created_at <= checkout::youngest(at)
            && at < holder.late_until
    }) else {
        return Ok(None);
    };
    let near = Near { address: &seen.recipient, invoice: &invoice, price, at };
    Ok(is_clear(tx, &near, paid, fee)?.then_some((invoice, account)))
}

/// A slot, and the time of a payment.
pub struct Near<'a> {
    pub address: &'a str,
    pub invoice: &'a InvoiceId,
    pub price: Usd,
    pub at: Time,
}

/// Whether this payment cannot have been meant for another unpaid checkout on that address, less a fee.
pub fn is_clear(tx: &mut Tx, near: &Near, paid: Usd, fee: Usd) -> Result<bool> {
    let last = slot::bucket_of(paid.max(near.price).plus(fee));
    let values = params![near.address, slot::bucket_of(paid), last, near.invoice];
    let others: Vec<(Usd, Time, Time, Time)> = tx.all(OTHERS, values)?;
    Ok(!others.into_iter().any(|(amount, created_at, late_until, updated_at)| {
        created_at <= checkout::youngest(near.at)
            && near.at < checkout::rests_until(late_until, updated_at)
            && slot::may_be_short_of(amount, paid, near.price, fee)
    }))
}
