//! Checkouts: opened by `insert`, and paid or expired by `advance`. A unique index sees to it that no two ask for one
//! amount at one address; `amounts.rs` finds the amount. On PostgreSQL a whole group is opened in one statement.

use std::collections::HashMap;

use super::engine::{Stored, Tx, columns, insert_into, lists, names, params, queries, text, values};
use super::{claims, coupons, wallet};
use crate::domain::account::GUESTS;
use crate::domain::checkout::{self, Checkout, CheckoutEvent, CheckoutStatus};
use crate::domain::client::{Origin, Shares};
use crate::domain::cost::Billed;
use crate::domain::coupon::{self, Applied};
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, InvoiceId, OrderId};
use crate::domain::money::Usd;
use crate::domain::network::Network;
use crate::domain::number::{Number, Series};
use crate::domain::time::Time;
use crate::domain::transfer::Sighting;
use crate::error::Result;

columns! {
    Checkout {
        id, account, token, seq, keyed, esim_order, package_code, plan_name, family, data_mb, duration_days, supplier,
        supplier_code = "COALESCE(supplier_code, package_code)",
        cost, billed: Option<Billed> = Billed::COLUMNS, list_price, coupon: Option<Applied> = Applied::COLUMNS, amount, network, currency, address, wide, sign_to,
        customer_email, status, order = "order_id", claimed_by, created_at, expires_at, late_until, updated_at,
    }
}

values! {
    /// What is written of any new checkout.
    Facts(checkout: Checkout, origin: &'a str) {
        id: TEXT, account: BIGINT, token: TEXT, package_code: TEXT, plan_name: TEXT, family: TEXT, data_mb: BIGINT,
        duration_days: BIGINT, supplier: TEXT, supplier_code: TEXT, cost: BIGINT,
        native_cost: BIGINT = checkout.billed.map(|billed| billed.micros), rate: BIGINT = checkout.billed.map(|billed| billed.rate), list_price: BIGINT, amount: BIGINT, network: TEXT,
        currency: TEXT, address: TEXT, customer_email: TEXT, origin: TEXT = origin, created_at: BIGINT, expires_at: BIGINT,
        late_until: BIGINT, coupon: TEXT = checkout.coupon.as_ref().map(|coupon| &coupon.code),
        discount: BIGINT = coupon::discount(checkout.coupon.as_ref()), esim_order: TEXT, wide: BIGINT, sign_to: TEXT,
    }
}

values! {
    /// What else is written where checkouts come one by one.
    Opened(checkout: Checkout, seq: i64) {
        seq = seq, status = CheckoutStatus::Open, released = 0, updated_at = checkout.created_at, keyed = true,
    }
}

values! { Claim(new: New<'a>) { reference: TEXT } }

values! { Place(counted: Counted<'a>) { who: BIGINT = counted.account, place: TEXT = counted.origin, since: BIGINT } }

macro_rules! select_checkout {
    ($tail:literal) => {
        text!("SELECT ", Checkout::COLUMNS, " FROM checkouts ", $tail)
    };
}

/// How many checkouts are from an origin, and from the site and the area around it. Those of an area are found by the
/// first word of their origins, and since that time only: what is older costs nothing.
macro_rules! count_from {
    ($origin:literal, $since:literal, $tail:literal) => {
        concat!(
            "SELECT CAST(COALESCE(SUM(CASE WHEN origin = ",
            $origin,
            " THEN 1 ELSE 0 END), 0) AS BIGINT) AS client,
                    CAST(COALESCE(SUM(CASE WHEN substr(origin, 1, 34) = substr(",
            $origin,
            ", 1, 34) THEN 1 ELSE 0 END), 0) AS BIGINT) AS site, COUNT(*) AS area FROM checkouts
             WHERE substr(origin, 1, 17) IS NOT NULL AND substr(origin, 1, 17) = substr(",
            $origin,
            ", 1, 17) AND status <> 'PAID' AND status <> 'REFUNDED' AND created_at > ",
            $since,
            $tail
        )
    };
}

/// How many checkouts are unpaid, of the account and from the origin that are given.
macro_rules! select_room {
    ($from:expr, $account:literal, $origin:literal, $since:literal, $tail:literal) => {
        text!(
            "SELECT (SELECT COUNT(*) FROM checkouts WHERE account = ",
            $account,
            " AND status IN ('OPEN', 'EXPIRED') AND status = 'OPEN'),
                    (SELECT COUNT(*) FROM checkouts WHERE account = ",
            $account,
            " AND status IN ('OPEN', 'EXPIRED') AND status = 'EXPIRED' AND created_at > ",
            $since,
            "), ",
            Shares::COLUMNS,
            " FROM ",
            $from,
            " (",
            count_from!($origin, $since, ""),
            ") AS near",
            $tail
        )
    };
}

queries! {
    INSERT = insert_into!("checkouts", Facts, Opened);
    /// Their wallets are locked already.
    INSERT_ALL (Postgres) = text!("WITH asked AS MATERIALIZED (
            SELECT a.*, ROW_NUMBER() OVER (PARTITION BY account ORDER BY n) AS nth
            FROM unnest(", lists!(Facts, Claim), ") WITH ORDINALITY AS a (", names!(Facts, Claim), ", n)),
        w AS (UPDATE wallets SET opened = opened + due.checkouts
            FROM (SELECT account, COUNT(*) AS checkouts FROM asked GROUP BY account) due WHERE wallets.account = due.account
            RETURNING wallets.account AS owner, opened - due.checkouts AS opened),
        r AS (INSERT INTO claims (account, reference, order_id)
            SELECT account, reference, id FROM asked WHERE reference IS NOT NULL)
        INSERT INTO checkouts (", Facts::NAMES, ", seq, status, released, updated_at, keyed)
            SELECT ", Facts::NAMES, ", w.opened + a.nth, 'OPEN', 0, created_at, 1
            FROM asked a JOIN w ON w.owner = a.account RETURNING id, seq");
    ROOM = select_room!("", "?1", "CAST(?2 AS TEXT)", "?3", "");
    ROOM_ALL (Postgres) = select_room!(
        text!("unnest(", lists!(Place), ") WITH ORDINALITY AS a (", Place::NAMES, ", n) CROSS JOIN LATERAL"),
        "a.who", "a.place", "a.since", " ORDER BY a.n");
    /// Worded so that no other index fits.
    HELD_FROM = count_from!("CAST(?1 AS TEXT)", "?2", " AND status || '' = 'OPEN' AND account + 0 = ?3 AND coupon = ?4");
    BY_ID and LOCK = select_checkout!("WHERE id = ?1");
    BY_ORDER = select_checkout!("WHERE order_id IS NOT NULL AND order_id = ?1");
    BY_NUMBER = select_checkout!("WHERE account = ?1 AND seq = ?2 AND keyed = ?3");
    BY_EMAIL = select_checkout!("WHERE customer_email IS NOT NULL AND customer_email = ?1 ORDER BY created_at DESC LIMIT 200");
    AT_ADDRESS = select_checkout!("WHERE address = ?1 ORDER BY created_at DESC LIMIT 50");
    AT = "SELECT id, account FROM checkouts WHERE address = ?1 AND amount = ?2 AND network = ?3 AND currency = ?4
          AND created_at <= ?5 AND late_until > ?6 ORDER BY created_at DESC LIMIT 1";
    TO_BE_SIGNED = "SELECT id, account FROM checkouts WHERE address = ?1 AND amount = ?2
          AND created_at <= ?3 AND late_until > ?4 ORDER BY created_at DESC LIMIT 1";
    SIGNED_AT = "SELECT id, account FROM checkouts WHERE sign_to IS NOT NULL AND sign_to = ?1 AND amount = ?2
          AND created_at <= ?3 AND late_until > ?4 ORDER BY created_at DESC LIMIT 1";
    /// Worded so that only the index over amounts fits.
    NEAR = select_checkout!("WHERE address = ?1 AND amount >= ?2 AND amount <= ?3 AND created_at <= ?4 AND late_until > ?4
                             AND status || '' IN ('OPEN', 'EXPIRED') ORDER BY ABS(amount - ?5), created_at LIMIT 100");
    MOVE = "UPDATE checkouts SET status = ?3, order_id = ?4, updated_at = ?5 WHERE id = ?1 AND status = ?2 RETURNING coupon, id";
    TOUCH = "UPDATE checkouts SET updated_at = ?2 WHERE id = ?1";
    /// Not while a payment was seen or a signature is on its way. Worded so that rows are found by their ids.
    MOVE_DUE = "UPDATE checkouts SET status = ?4, updated_at = ?3 WHERE status || '' = 'OPEN' AND id IN (
                  SELECT c.id FROM checkouts c WHERE c.network = ?1 AND c.status = 'OPEN' AND c.expires_at < ?2
                  AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.invoice IS NOT NULL AND t.invoice = c.id AND t.block IS NOT NULL)
                  AND 0 = (SELECT COUNT(*) FROM authorizations a WHERE a.invoice = c.id AND a.state IN ('CLAIMED', 'SENT', 'SETTLED'))
                  ORDER BY c.expires_at LIMIT 500) RETURNING coupon, id";
    DUE = "SELECT 1 FROM checkouts c WHERE c.network = ?1 AND c.status = 'OPEN' AND c.expires_at < ?2
           AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.invoice IS NOT NULL AND t.invoice = c.id AND t.block IS NOT NULL)
           AND 0 = (SELECT COUNT(*) FROM authorizations a WHERE a.invoice = c.id AND a.state IN ('CLAIMED', 'SENT', 'SETTLED')) LIMIT 1";
}

/// A checkout to be opened; its number is taken then.
pub struct New<'a> {
    pub checkout: &'a Checkout,
    /// The caller's own reference, which is single-use.
    pub reference: Option<&'a str>,
    /// Where the caller is, as far as limits tell callers apart.
    pub origin: &'a str,
}

/// Stores a checkout and answers its number. The caller has locked the wallet and reserved the amount.
pub fn insert(tx: &mut Tx, new: &New) -> Result<i64> {
    let checkout = new.checkout;
    let seq = wallet::take_checkout_number(tx, checkout.account)?;
    if let Some(reference) = new.reference {
        claims::insert(tx, checkout.account, reference, checkout.id.as_str())?;
    }
    let values = [&Facts::params(checkout, new.origin)[..], &Opened::params(checkout, seq)].concat();
    tx.execute(INSERT, &values)?;
    Ok(seq)
}

/// `insert` for a group, in one statement. PostgreSQL only.
pub fn insert_all(tx: &mut Tx, group: &[New]) -> Result<HashMap<InvoiceId, i64>> {
    let rows: Vec<_> = group
        .iter()
        .map(|new| [&Facts::params(new.checkout, new.origin)[..], &Claim::params(new)].concat())
        .collect();
    Ok(tx.for_each::<(InvoiceId, i64)>(INSERT_ALL, &rows)?.into_iter().collect())
}

/// Whose checkouts are counted.
pub struct Counted<'a> {
    /// Guests have nothing in common that could be counted.
    pub account: Option<AccountNo>,
    pub origin: &'a str,
    /// Expired ones count if they were made after this.
    pub since: Time,
}

/// How many checkouts wait for a payment, or have waited in vain.
#[derive(Clone, Copy, Debug)]
pub struct Unpaid {
    pub open: i64,
    pub of_account: i64,
    pub from: Shares,
}

columns! { Shares in "near" { client, site, area } }

pub fn unpaid(tx: &mut Tx, counted: &Counted) -> Result<Unpaid> {
    tx.one(ROOM, &Place::params(counted)).map(read_unpaid)
}

/// `unpaid` for each of them, in one statement. PostgreSQL only.
pub fn unpaid_all(tx: &mut Tx, group: &[Counted]) -> Result<Vec<Unpaid>> {
    let rows: Vec<_> = group.iter().map(Place::params).collect();
    Ok(tx.for_each(ROOM_ALL, &rows)?.into_iter().map(read_unpaid).collect())
}

fn read_unpaid((open, expired, from): (i64, i64, Shares)) -> Unpaid {
    Unpaid { open, of_account: open + expired, from }
}

/// How many uses of a coupon guests have reserved, by the networks around this origin.
pub fn held_from(tx: &mut Tx, origin: &Origin, code: &str, since: Time) -> Result<Shares> {
    tx.one(HELD_FROM, params![origin, since, GUESTS, code])
}

pub fn by_id(tx: &mut Tx, id: &InvoiceId) -> Result<Option<Checkout>> {
    tx.opt(BY_ID, params![id])
}

/// The one with this number, if there is one.
pub fn by_number(tx: &mut Tx, number: Number) -> Result<Option<Checkout>> {
    let keyed = match number.series {
        Series::First => false,
        Series::Checkouts => true,
        Series::Orders => return Ok(None),
    };
    tx.opt(BY_NUMBER, params![number.account, number.n, keyed])
}

/// The same, and nobody else changes it before this write ends.
pub fn lock(tx: &mut Tx, id: &InvoiceId) -> Result<Option<Checkout>> {
    tx.lock(LOCK, params![id])
}

pub fn by_order(tx: &mut Tx, order: &OrderId) -> Result<Option<Checkout>> {
    tx.opt(BY_ORDER, params![order])
}

/// Those with this typed-in address, newest first.
pub fn by_email(tx: &mut Tx, email: &Email) -> Result<Vec<Checkout>> {
    tx.all(BY_EMAIL, params![email])
}

/// For the operator's search.
pub fn at_address(tx: &mut Tx, address: &str) -> Result<Vec<Checkout>> {
    tx.all(AT_ADDRESS, params![address])
}

/// Whose payment this is, by its exact amount: the checkout that was open at its time, or in its late hours.
pub fn at(tx: &mut Tx, seen: &Sighting) -> Result<Option<(InvoiceId, AccountNo)>> {
    let Sighting { id, currency, recipient, amount, block, .. } = seen;
    let youngest = checkout::youngest(block.time);
    tx.opt(AT, params![recipient, *amount, id.network, *currency, youngest, block.time])
}

/// The checkout that asked for this to be signed, on whichever network it is settled.
pub fn to_be_signed(
    tx: &mut Tx,
    pay_to: &str,
    amount: Usd,
    block_time: Time,
) -> Result<Option<(InvoiceId, AccountNo)>> {
    let values = params![pay_to, amount, checkout::youngest(block_time), block_time];
    match tx.opt(TO_BE_SIGNED, values)? {
        Some(found) => Ok(Some(found)),
        // Where it is paid and where it is signed for differ on TRON.
        None => tx.opt(SIGNED_AT, values),
    }
}

/// Unpaid checkouts that a payment of another amount may have been meant for, the nearest first.
pub fn near(
    tx: &mut Tx,
    address: &str,
    amount: Usd,
    (from, to): (Usd, Usd),
    block_time: Time,
) -> Result<Vec<Checkout>> {
    tx.all(NEAR, params![address, from, to, block_time, amount])
}

/// What happened to a checkout, or to several.
pub enum Step<'a> {
    Paid(&'a Checkout, &'a OrderId),
    PaidInVain(&'a Checkout),
    /// The time of these was over before `before`, and no payment of them was seen. At most 500 at once.
    Lapsed {
        network: Network,
        before: Time,
    },
}

/// Changes the status of checkouts. Nothing else does. Answers the coupons and the ids of those that moved; the others
/// were in another state than their caller saw, or their state does not allow it.
pub fn advance(tx: &mut Tx, step: &Step, now: Time) -> Result<Vec<(Option<String>, InvoiceId)>> {
    let (checkout, event, order) = match step {
        Step::Paid(checkout, order) => (checkout, CheckoutEvent::Paid, Some(*order)),
        Step::PaidInVain(checkout) => (checkout, CheckoutEvent::PaidInVain, None),
        Step::Lapsed { network, before } => {
            let next = CheckoutStatus::Open.after(CheckoutEvent::Lapsed);
            return next
                .map_or(Ok(Vec::new()), |next| tx.write_all(MOVE_DUE, params![network, *before, now, next]));
        }
    };
    let Some(next) = checkout.status.after(event) else { return Ok(Vec::new()) };
    tx.write_all(MOVE, params![&checkout.id, checkout.status, next, order, now])
}

/// Something about its payment changed. False when it is no checkout.
pub fn touch(tx: &mut Tx, id: &InvoiceId, now: Time) -> Result<bool> {
    Ok(tx.execute(TOUCH, params![id, now])? == 1)
}

/// Whether anything waits to be expired: a look that costs no write.
pub fn any_due(tx: &mut Tx, network: Network, before: Time) -> Result<bool> {
    tx.any(DUE, params![network, before])
}

/// Closes checkouts that were open until before this time and of which no payment was seen, and gives back the coupons
/// that they had reserved. At most 500 at once.
pub fn expire(tx: &mut Tx, network: Network, before: Time, now: Time) -> Result<()> {
    let closed = advance(tx, &Step::Lapsed { network, before }, now)?;
    let mut reserved: Vec<(String, InvoiceId)> =
        closed.into_iter().filter_map(|(coupon, id)| Some((coupon?, id))).collect();
    // Coupons in one order for everybody, so that two instances cannot wait for each other.
    reserved.sort_unstable();
    reserved.iter().try_for_each(|(_, id)| coupons::release(tx, id.as_str(), now))
}
