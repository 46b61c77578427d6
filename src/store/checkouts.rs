//! Checkouts: opened, paid, expired. That no two ask for one amount at one address rests on a unique index; how an
//! amount is found is in `amounts.rs`. On PostgreSQL a whole group is opened in one statement.

use std::collections::HashMap;

use super::tx::{Param, Row, Tx, params, queries};
use super::{claims, coupons, wallet};
use crate::domain::account::GUESTS;
use crate::domain::checkout::{Checkout, CheckoutStatus};
use crate::domain::client::{Origin, Shares};
use crate::domain::coupon;
use crate::domain::email::Email;
use crate::domain::ids::{AccountNo, InvoiceId, OrderId};
use crate::domain::money::Usd;
use crate::domain::network::Network;
use crate::domain::number::{Number, Series};
use crate::domain::time::Time;
use crate::error::Result;

macro_rules! select_checkout {
    ($tail:literal) => {
        concat!(
            "SELECT id, account, token, seq, package_code, plan_name, family, data_mb, duration_days, supplier, cost,
                    list_price, amount, network, address, customer_email, status, order_id, created_at, expires_at,
                    late_until, updated_at, coupon, discount, claimed_by, esim_order, keyed FROM checkouts ",
            $tail
        )
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
             WHERE origin IS NOT NULL AND substr(origin, 1, 17) = substr(",
            $origin,
            ", 1, 17) AND status IN ('OPEN', 'EXPIRED') AND created_at > ",
            $since,
            $tail
        )
    };
}

/// How many checkouts are unpaid, of the account and from the origin that are given.
macro_rules! select_room {
    ($from:literal, $account:literal, $origin:literal, $since:literal, $tail:literal) => {
        concat!(
            "SELECT (SELECT COUNT(*) FROM checkouts WHERE account = ",
            $account,
            " AND status IN ('OPEN', 'EXPIRED') AND status = 'OPEN'),
                    (SELECT COUNT(*) FROM checkouts WHERE account = ",
            $account,
            " AND status IN ('OPEN', 'EXPIRED') AND status = 'EXPIRED' AND created_at > ",
            $since,
            "), near.client, near.site, near.area FROM ",
            $from,
            " (",
            count_from!($origin, $since, ""),
            ") AS near",
            $tail
        )
    };
}

queries! {
    INSERT = "INSERT INTO checkouts (id, account, token, seq, package_code, plan_name, family, data_mb, duration_days,
                  supplier, cost, list_price, amount, network, address, customer_email, status, released, origin,
                  created_at, expires_at, late_until, updated_at, coupon, discount, esim_order, keyed)
              VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 'OPEN', 0, ?17, ?18, ?19, ?20, ?18,
                  ?21, ?22, ?23, 1)";
    /// Their wallets are locked already.
    INSERT_ALL (Postgres) = "WITH asked AS MATERIALIZED (
            SELECT a.*, ROW_NUMBER() OVER (PARTITION BY account ORDER BY n) AS nth
            FROM unnest(CAST(?1 AS TEXT[]), CAST(?2 AS BIGINT[]), CAST(?3 AS TEXT[]), CAST(?4 AS TEXT[]), CAST(?5 AS TEXT[]),
                CAST(?6 AS TEXT[]), CAST(?7 AS BIGINT[]), CAST(?8 AS BIGINT[]), CAST(?9 AS TEXT[]), CAST(?10 AS BIGINT[]),
                CAST(?11 AS BIGINT[]), CAST(?12 AS BIGINT[]), CAST(?13 AS TEXT[]), CAST(?14 AS TEXT[]), CAST(?15 AS TEXT[]),
                CAST(?16 AS TEXT[]), CAST(?17 AS BIGINT[]), CAST(?18 AS BIGINT[]), CAST(?19 AS BIGINT[]), CAST(?20 AS TEXT[]),
                CAST(?21 AS BIGINT[]), CAST(?22 AS TEXT[]), CAST(?23 AS TEXT[]))
            WITH ORDINALITY AS a (id, account, token, package_code, plan_name, family, data_mb, duration_days, supplier, cost,
                list_price, amount, network, address, customer_email, origin, created_at, expires_at, late_until,
                coupon, discount, esim_order, reference, n)),
        w AS (UPDATE wallets SET opened = opened + due.checkouts
            FROM (SELECT account, COUNT(*) AS checkouts FROM asked GROUP BY account) due WHERE wallets.account = due.account
            RETURNING wallets.account, opened - due.checkouts AS opened),
        r AS (INSERT INTO claims (account, reference, order_id)
            SELECT account, reference, id FROM asked WHERE reference IS NOT NULL)
        INSERT INTO checkouts (id, account, token, seq, package_code, plan_name, family, data_mb, duration_days,
                supplier, cost, list_price, amount, network, address, customer_email, status, released, origin,
                created_at, expires_at, late_until, updated_at, coupon, discount, esim_order, keyed)
            SELECT id, a.account, token, w.opened + a.nth, package_code, plan_name, family, data_mb, duration_days,
                supplier, cost, list_price, amount, network, address, customer_email, 'OPEN', 0, origin,
                created_at, expires_at, late_until, created_at, coupon, discount, esim_order, 1
            FROM asked a JOIN w ON w.account = a.account RETURNING id, seq";
    ROOM = select_room!("", "?1", "CAST(?2 AS TEXT)", "?3", "");
    ROOM_ALL (Postgres) = select_room!(
        "unnest(CAST(?1 AS BIGINT[]), CAST(?2 AS TEXT[]), CAST(?3 AS BIGINT[])) WITH ORDINALITY AS a (who, place, since, n)
             CROSS JOIN LATERAL",
        "a.who", "a.place", "a.since", " ORDER BY a.n");
    /// Worded so that only the index over areas fits.
    HELD_FROM = count_from!("CAST(?1 AS TEXT)", "?2", " AND status || '' = 'OPEN' AND account + 0 = ?3 AND coupon = ?4");
    BY_ID = select_checkout!("WHERE id = ?1");
    /// SQLite needs no lock: a write transaction has the database to itself.
    LOCK (Postgres) = select_checkout!("WHERE id = ?1 FOR UPDATE");
    BY_ORDER = select_checkout!("WHERE order_id IS NOT NULL AND order_id = ?1");
    BY_NUMBER = select_checkout!("WHERE account = ?1 AND seq = ?2 AND keyed = ?3");
    AT_ADDRESS = select_checkout!("WHERE address = ?1 ORDER BY created_at DESC LIMIT 50");
    AT = "SELECT id, account FROM checkouts WHERE address = ?1 AND amount = ?2 AND network = ?3
          AND created_at <= ?4 AND late_until > ?5 ORDER BY created_at DESC LIMIT 1";
    TO_BE_SIGNED = "SELECT id, account FROM checkouts WHERE address = ?1 AND amount = ?2
          AND created_at <= ?3 AND late_until > ?4 ORDER BY created_at DESC LIMIT 1";
    /// Worded so that only the index over amounts fits.
    NEAR = select_checkout!("WHERE address = ?1 AND amount >= ?2 AND amount <= ?3 AND created_at <= ?4 AND late_until > ?4
                             AND status || '' IN ('OPEN', 'EXPIRED') ORDER BY ABS(amount - ?5), created_at LIMIT 3");
    END = "UPDATE checkouts SET status = ?2, order_id = ?3, updated_at = ?4 WHERE id = ?1 AND status IN ('OPEN', 'EXPIRED')";
    TOUCH = "UPDATE checkouts SET updated_at = ?2 WHERE id = ?1";
    /// Not while a payment was seen or a signature is on its way. Worded so that rows are found by their ids.
    EXPIRE = "UPDATE checkouts SET status = 'EXPIRED', updated_at = ?3 WHERE status || '' = 'OPEN' AND id IN (
                  SELECT c.id FROM checkouts c WHERE c.network = ?1 AND c.status = 'OPEN' AND c.expires_at < ?2
                  AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.invoice IS NOT NULL AND t.invoice = c.id AND t.block IS NOT NULL)
                  AND 0 = (SELECT COUNT(*) FROM authorizations a WHERE a.invoice = c.id AND a.state IN ('CLAIMED', 'SENT', 'SETTLED'))
                  ORDER BY c.expires_at LIMIT 500) RETURNING id, coupon";
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
    let mut values = vec![Param::from(seq)];
    values.extend(facts(new));
    // The number stands after the token.
    values[..4].rotate_left(1);
    tx.execute(INSERT, &values)?;
    Ok(seq)
}

/// `insert` for a group, in one statement. PostgreSQL only.
pub fn insert_all(tx: &mut Tx, group: &[New]) -> Result<HashMap<InvoiceId, i64>> {
    let rows: Vec<Vec<Param>> = group
        .iter()
        .map(|new| facts(new).into_iter().chain([Param::from(new.reference)]).collect())
        .collect();
    let numbers =
        tx.for_each(INSERT_ALL, &rows, |row| Ok((InvoiceId::from_text(row.text(0)?), row.int(1)?)))?;
    Ok(numbers.into_iter().collect())
}

fn facts<'a>(new: &New<'a>) -> Vec<Param<'a>> {
    let checkout = new.checkout;
    vec![
        Param::from(checkout.id.as_str()),
        Param::from(checkout.account),
        Param::from(&checkout.token),
        Param::from(&checkout.package_code),
        Param::from(&checkout.plan_name),
        Param::from(&checkout.family),
        Param::from(checkout.data_mb),
        Param::from(checkout.duration_days),
        Param::from(&checkout.supplier),
        Param::from(checkout.cost),
        Param::from(checkout.list_price),
        Param::from(checkout.amount),
        Param::from(checkout.network.as_str()),
        Param::from(&checkout.address),
        Param::from(checkout.customer_email.as_ref().map(Email::as_str)),
        Param::from(new.origin),
        Param::from(checkout.created_at),
        Param::from(checkout.expires_at),
        Param::from(checkout.late_until),
        Param::from(checkout.coupon.as_ref().map(|coupon| coupon.code.as_str())),
        Param::from(coupon::discount(checkout.coupon.as_ref())),
        Param::from(checkout.esim_order.as_ref()),
    ]
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

pub fn unpaid(tx: &mut Tx, counted: &Counted) -> Result<Unpaid> {
    tx.one(ROOM, params![counted.account, counted.origin, counted.since], read_unpaid)
}

/// `unpaid` for each of them, in one statement. PostgreSQL only.
pub fn unpaid_all(tx: &mut Tx, group: &[Counted]) -> Result<Vec<Unpaid>> {
    let rows: Vec<Vec<Param>> =
        group.iter().map(|one| params![one.account, one.origin, one.since].to_vec()).collect();
    tx.for_each(ROOM_ALL, &rows, read_unpaid)
}

fn read_unpaid(row: &Row) -> Result<Unpaid> {
    let open = row.int(0)?;
    Ok(Unpaid { open, of_account: open + row.int(1)?, from: read_shares(row, 2)? })
}

/// How many uses of a coupon guests have reserved, by the networks around this origin.
pub fn held_from(tx: &mut Tx, origin: &Origin, code: &str, since: Time) -> Result<Shares> {
    tx.one(HELD_FROM, params![origin.as_str(), since, GUESTS, code], |row| read_shares(row, 0))
}

fn read_shares(row: &Row, column: usize) -> Result<Shares> {
    Ok(Shares { client: row.int(column)?, site: row.int(column + 1)?, area: row.int(column + 2)? })
}

pub fn by_id(tx: &mut Tx, id: &InvoiceId) -> Result<Option<Checkout>> {
    tx.opt(BY_ID, params![id.as_str()], read)
}

/// The one with this number, if there is one.
pub fn by_number(tx: &mut Tx, number: Number) -> Result<Option<Checkout>> {
    let keyed = match number.series {
        Series::First => false,
        Series::Checkouts => true,
        Series::Orders => return Ok(None),
    };
    tx.opt(BY_NUMBER, params![number.account, number.n, keyed], read)
}

/// The same, and nobody else changes it before this write ends.
pub fn lock(tx: &mut Tx, id: &InvoiceId) -> Result<Option<Checkout>> {
    let sql = if tx.is_postgres() { LOCK } else { BY_ID };
    tx.opt(sql, params![id.as_str()], read)
}

pub fn by_order(tx: &mut Tx, order: &OrderId) -> Result<Option<Checkout>> {
    tx.opt(BY_ORDER, params![order], read)
}

/// For the operator's search.
pub fn at_address(tx: &mut Tx, address: &str) -> Result<Vec<Checkout>> {
    tx.all(AT_ADDRESS, params![address], read)
}

/// Whose payment of this amount at this time is: the checkout that was open then, or in its late hours.
pub fn at(
    tx: &mut Tx,
    network: Network,
    address: &str,
    amount: Usd,
    block_time: Time,
) -> Result<Option<(InvoiceId, AccountNo)>> {
    // Chains tell whole seconds: a block may be up to one younger than it says.
    let youngest = block_time.plus_millis(999);
    tx.opt(AT, params![address, amount, network.as_str(), youngest, block_time], |row| {
        Ok((InvoiceId::from_text(row.text(0)?), AccountNo(row.int(1)?)))
    })
}

/// The checkout that asked for this to be signed, on whichever network it is settled.
pub fn to_be_signed(
    tx: &mut Tx,
    pay_to: &str,
    amount: Usd,
    block_time: Time,
) -> Result<Option<(InvoiceId, AccountNo)>> {
    let youngest = block_time.plus_millis(999);
    tx.opt(TO_BE_SIGNED, params![pay_to, amount, youngest, block_time], |row| {
        Ok((InvoiceId::from_text(row.text(0)?), AccountNo(row.int(1)?)))
    })
}

/// Unpaid checkouts that a payment of another amount may have been meant for, the nearest first.
pub fn near(
    tx: &mut Tx,
    address: &str,
    amount: Usd,
    (from, to): (Usd, Usd),
    block_time: Time,
) -> Result<Vec<Checkout>> {
    tx.all(NEAR, params![address, from, to, block_time, amount], read)
}

/// The checkout was paid. False when it was before.
pub fn end(
    tx: &mut Tx,
    id: &InvoiceId,
    status: CheckoutStatus,
    order: Option<&OrderId>,
    now: Time,
) -> Result<bool> {
    Ok(tx.execute(END, params![id.as_str(), status.as_str(), order, now])? == 1)
}

/// Something about its payment changed. False when it is no checkout.
pub fn touch(tx: &mut Tx, id: &InvoiceId, now: Time) -> Result<bool> {
    Ok(tx.execute(TOUCH, params![id.as_str(), now])? == 1)
}

/// Whether anything waits to be expired: a look that costs no write.
pub fn any_due(tx: &mut Tx, network: Network, before: Time) -> Result<bool> {
    Ok(tx.opt(DUE, params![network.as_str(), before], |_| Ok(()))?.is_some())
}

/// Closes checkouts that were open until before this time and of which no payment was seen, and gives back the coupons
/// that they had reserved. At most 500 at once.
pub fn expire(tx: &mut Tx, network: Network, before: Time, now: Time) -> Result<()> {
    let closed = tx.write_all(EXPIRE, params![network.as_str(), before, now], |row| {
        Ok((row.opt_text(1)?, row.text(0)?))
    })?;
    let mut reserved: Vec<(String, String)> =
        closed.into_iter().filter_map(|(coupon, id)| Some((coupon?, id))).collect();
    // Coupons in one order for everybody, so that two instances cannot wait for each other.
    reserved.sort_unstable();
    reserved.iter().try_for_each(|(_, id)| coupons::release(tx, id, now))
}

fn read(row: &Row) -> Result<Checkout> {
    Ok(Checkout {
        id: InvoiceId::from_text(row.text(0)?),
        account: AccountNo(row.int(1)?),
        token: row.text(2)?,
        seq: row.int(3)?,
        keyed: row.flag(26)?,
        package_code: row.text(4)?,
        plan_name: row.text(5)?,
        family: row.text(6)?,
        data_mb: row.int(7)?,
        duration_days: row.int(8)?,
        supplier: row.text(9)?,
        cost: row.usd(10)?,
        list_price: row.usd(11)?,
        amount: row.usd(12)?,
        network: row.word(13, Network::parse)?,
        address: row.text(14)?,
        customer_email: row.opt_text(15)?.map(Email::from_text),
        status: row.word(16, CheckoutStatus::parse)?,
        order: row.opt_text(17)?.map(OrderId::from_text),
        created_at: row.time(18)?,
        expires_at: row.time(19)?,
        late_until: row.time(20)?,
        updated_at: row.time(21)?,
        coupon: coupons::applied(row, 22)?,
        claimed_by: row.opt_int(24)?.map(AccountNo),
        esim_order: row.opt_text(25)?.map(OrderId::from_text),
    })
}
