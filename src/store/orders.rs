//! Orders and top-ups: the hot writes of the service. Each beat of the spine (hold, fulfil, fail, cancel) is one
//! function here. On PostgreSQL the two that every order makes are also written for a whole group of orders at once
//! (`hold_all`, `fulfil_all`), because there each statement is a round trip and has a price of its own; the texts
//! say the same as the SQLite steps beside them.

use std::collections::HashMap;

use super::tx::{Param, Row, Tx, params, queries};
use super::{claims, coupons, debts, esims, ledger, wallet};
use crate::domain::coupon;
use crate::domain::email::Email;
use crate::domain::esim::{Esim, EsimStatus, Usage};
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::number::{Number, Series};
use crate::domain::order::{Failure, Order, OrderStatus};
use crate::domain::payback::Payback;
use crate::domain::time::Time;
use crate::error::{Error, Result};

/// An order with the eSIM it delivered or fills.
macro_rules! select_order {
    ($tail:literal) => {
        concat!(
            "SELECT o.id, o.account, o.seq, o.esim_order, o.reference, o.package_code, o.plan_name, o.family, o.data_mb,
                    o.duration_days, o.price, o.cost, o.supplier, o.key_id, o.status, o.ask_until, o.created_at,
                    o.updated_at, o.failure_code, o.failure_detail,
                    s.order_id, s.profile, s.iccid, s.activation, s.install_by,
                    s.usage_status, s.total_mb, s.used_mb, s.as_of, s.expires_at, o.spot, o.customer_email,
                    o.coupon, o.discount, o.refunded, o.keyed, o.checkout_no
             FROM orders o LEFT JOIN esims s ON s.order_id = COALESCE(o.esim_order, o.id) ",
            $tail
        )
    };
}

queries! {
    INSERT = "INSERT INTO orders (id, account, seq, esim_order, reference, package_code, plan_name, family, data_mb,
                  duration_days, price, cost, supplier, key_id, status, ask_until, created_at, updated_at, spot, customer_email,
                  coupon, discount, keyed, checkout_no)
              VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 'PROVISIONING', ?15, ?16, ?16, ?17, ?18, ?19, ?20,
                  ?21, ?22)";
    /// A wallet pays for all of its orders in the group, or for none. Wallets are locked in the order of their
    /// numbers, and before any claim is inserted, so that two instances cannot wait for each other.
    HOLD_ALL (Postgres) = "WITH asked AS MATERIALIZED (
            SELECT a.*, ROW_NUMBER() OVER mine AS nth, CAST(SUM(price) OVER mine AS BIGINT) AS paid
            FROM unnest(CAST(?1 AS TEXT[]), CAST(?2 AS BIGINT[]), CAST(?3 AS TEXT[]), CAST(?4 AS TEXT[]), CAST(?5 AS TEXT[]),
                CAST(?6 AS TEXT[]), CAST(?7 AS BIGINT[]), CAST(?8 AS BIGINT[]), CAST(?9 AS BIGINT[]), CAST(?10 AS BIGINT[]),
                CAST(?11 AS TEXT[]), CAST(?12 AS TEXT[]), CAST(?13 AS BIGINT[]), CAST(?14 AS BIGINT[]), CAST(?15 AS TEXT[]),
                CAST(?16 AS TEXT[]), CAST(?17 AS TEXT[]), CAST(?18 AS BIGINT[]), CAST(?19 AS TEXT[]), CAST(?20 AS BIGINT[]),
                CAST(?21 AS TEXT[]), CAST(?22 AS TEXT[]), CAST(?23 AS BIGINT[]))
            WITH ORDINALITY AS a (id, account, reference, package_code, plan_name, family, data_mb, duration_days, price, cost,
                supplier, key_id, ask_until, at, entry, kind, debited, debit, credited, credit, customer_email, coupon, discount, n)
            WINDOW mine AS (PARTITION BY account ORDER BY n)),
        w AS (UPDATE wallets SET balance = balance - due.price, lines = lines + due.orders, placed = placed + due.orders,
                numbers = numbers + due.orders
            FROM (SELECT account, MAX(paid) AS price, MAX(nth) AS orders FROM asked GROUP BY account ORDER BY account) due
            WHERE wallets.account = due.account AND balance >= due.price
            RETURNING wallets.account, balance + due.price AS balance, lines - due.orders AS lines, numbers - due.orders AS numbers),
        held AS MATERIALIZED (
            SELECT a.*, w.balance - a.paid AS balance, w.lines + a.nth AS line, w.numbers + a.nth AS seq
            FROM asked a JOIN w ON w.account = a.account),
        c AS (INSERT INTO claims (account, reference, order_id)
            SELECT account, reference, id FROM held WHERE reference IS NOT NULL),
        e AS (INSERT INTO entries (id, kind, at) SELECT entry, kind, at FROM held),
        p AS (INSERT INTO postings (entry, leg, account, amount, wallet, line, balance, order_id)
            SELECT entry, 1, debited, debit, account, line, balance, id FROM held
            UNION ALL SELECT entry, 2, credited, credit, NULL, NULL, NULL, id FROM held),
        o AS (INSERT INTO orders (id, account, seq, reference, package_code, plan_name, family, data_mb, duration_days,
                price, cost, supplier, key_id, status, ask_until, created_at, updated_at, customer_email, coupon, discount, keyed)
            SELECT id, account, seq, reference, package_code, plan_name, family, data_mb, duration_days,
                price, cost, supplier, key_id, 'PROVISIONING', ask_until, at, at, customer_email, coupon, discount, 1 FROM held)
        SELECT id, seq, balance FROM held";
    FULFIL = "UPDATE orders SET status = 'FULFILLED', updated_at = ?2
              WHERE id = ?1 AND status = 'PROVISIONING' RETURNING account";
    /// The state is worded so that the index over open orders does not fit: it is full of those that were open.
    FULFIL_ALL (Postgres) = "WITH o AS (
            UPDATE orders SET status = 'FULFILLED', updated_at = a.at
            FROM unnest(CAST(?1 AS TEXT[]), CAST(?2 AS BIGINT[]), CAST(?3 AS TEXT[]), CAST(?4 AS TEXT[]), CAST(?5 AS BYTEA[]),
                CAST(?6 AS BIGINT[]), CAST(?7 AS TEXT[]), CAST(?8 AS TEXT[]),
                CAST(?9 AS TEXT[]), CAST(?10 AS BIGINT[]), CAST(?11 AS TEXT[]), CAST(?12 AS BIGINT[]),
                CAST(?13 AS TEXT[]), CAST(?14 AS BIGINT[]), CAST(?15 AS TEXT[]), CAST(?16 AS BIGINT[]),
                CAST(?17 AS TEXT[]), CAST(?18 AS BIGINT[]), CAST(?19 AS TEXT[]), CAST(?20 AS BIGINT[]))
                AS a (id, at, profile, iccid, activation, install_by, entry, kind, account1, amount1, account2, amount2,
                      account3, amount3, account4, amount4, account5, amount5, account6, amount6)
            WHERE orders.id = a.id AND status || '' = 'PROVISIONING'
              AND NOT EXISTS (SELECT 1 FROM esims WHERE esims.iccid = a.iccid AND esims.profile = a.profile)
            RETURNING orders.account AS wallet, a.*),
        s AS (INSERT INTO esims (order_id, account, profile, iccid, activation, install_by)
            SELECT id, wallet, profile, iccid, activation, install_by FROM o),
        e AS (INSERT INTO entries (id, kind, at) SELECT entry, kind, at FROM o),
        p AS (INSERT INTO postings (entry, leg, account, amount, order_id)
            SELECT o.entry, v.leg, v.account, v.amount, o.id FROM o CROSS JOIN LATERAL (VALUES (1, account1, amount1),
                (2, account2, amount2), (3, account3, amount3), (4, account4, amount4), (5, account5, amount5),
                (6, account6, amount6)) v (leg, account, amount)
            WHERE v.account IS NOT NULL)
        SELECT o.id, w.balance FROM o JOIN wallets w ON w.account = o.wallet";
    FAIL = "UPDATE orders SET status = 'FAILED', updated_at = ?2, failure_code = ?3, failure_detail = ?4, refunded = ?5
            WHERE id = ?1 AND status = 'PROVISIONING'";
    GIVE_BACK_LIMIT = "UPDATE api_keys SET spent = spent - ?2 WHERE id = ?1 AND spent_day = ?3 AND daily_limit IS NOT NULL";
    START_CANCEL = "UPDATE orders SET status = 'CANCELLING', updated_at = ?2, ask_until = ?3
                    WHERE id = ?1 AND status = 'FULFILLED'";
    END_CANCEL = "UPDATE orders SET status = ?2, updated_at = ?3, refunded = ?4 WHERE id = ?1 AND status = 'CANCELLING'";
    LIVE_TOPUPS = "SELECT COUNT(*) FROM orders WHERE esim_order = ?1 AND status IN ('PROVISIONING', 'FULFILLED')";
    LEASE = "UPDATE orders SET ask_until = ?3 WHERE id = ?1 AND ask_until = ?2
             AND status IN ('PROVISIONING', 'CANCELLING')";
    ORPHAN_FOUND = "UPDATE orders SET orphan = 'OPEN', orphan_profile = ?2 WHERE id = ?1 AND orphan IS NULL";
    ORPHAN_LOST = "UPDATE orders SET orphan = 'LOST' WHERE id = ?1 AND orphan IS NULL";
    ORPHAN_ENDED = "UPDATE orders SET orphan = ?2 WHERE id = ?1 AND orphan = 'OPEN'";
    BY_ID = select_order!("WHERE o.id = ?1");
    BY_IDS (Postgres) = select_order!("WHERE o.id = ANY (CAST(?1 AS TEXT[]))");
    BY_NUMBER = select_order!("WHERE o.account = ?1 AND o.seq = ?2");
    OF_ICCID = "SELECT order_id FROM esims WHERE iccid = ?1 ORDER BY order_id DESC LIMIT ?2";
    PAGE = select_order!("WHERE o.account = ?1 AND o.seq IS NOT NULL AND o.seq < ?2
                AND o.status IN ('FULFILLED', 'CANCELLING', 'CANCELLED') ORDER BY o.seq DESC LIMIT ?3 OFFSET ?4");
    FILTERED = select_order!("WHERE o.account = ?1 AND o.seq IS NOT NULL AND o.seq < ?2
                AND ((CAST(?5 AS TEXT) IS NULL AND o.status IN ('FULFILLED', 'CANCELLING', 'CANCELLED')) OR o.status = ?5)
                AND o.created_at >= ?6 AND o.created_at < ?7 ORDER BY o.seq DESC LIMIT ?3 OFFSET ?4");
    COUNT_FILTERED = "SELECT COUNT(*) FROM orders WHERE account = ?1 AND seq IS NOT NULL
                AND ((CAST(?2 AS TEXT) IS NULL AND status IN ('FULFILLED', 'CANCELLING', 'CANCELLED')) OR status = ?2)
                AND created_at >= ?3 AND created_at < ?4";
    /// Worded so that only the small index over open orders fits it.
    COUNT_PROVISIONING = "SELECT COUNT(*) FROM orders WHERE account = ?1 AND esim_order IS NULL
                AND status IN ('PROVISIONING', 'CANCELLING') AND status = 'PROVISIONING'";
    TOPUPS_LITE (Sqlite) = select_order!("WHERE o.esim_order IN (SELECT value FROM json_each(?1)) ORDER BY o.id");
    TOPUPS_PG (Postgres) = select_order!("WHERE o.esim_order = ANY (string_to_array(CAST(?1 AS TEXT), ',')) ORDER BY o.id");
    DUE = select_order!("WHERE o.status IN ('PROVISIONING', 'CANCELLING') AND (o.ask_until < ?1 OR o.ask_until > ?3) LIMIT ?2");
    ORPHANS = "SELECT id, orphan_profile FROM orders WHERE orphan IS NOT NULL AND orphan = 'OPEN' LIMIT 100";
    OPEN_COUNTS = "SELECT status, COUNT(*) FROM orders WHERE status IN ('PROVISIONING', 'CANCELLING') AND updated_at < ?1 GROUP BY status";
    RECENT = select_order!("WHERE (CAST(?1 AS BIGINT) IS NULL OR o.account = ?1) AND (CAST(?2 AS TEXT) IS NULL OR o.status = ?2)
                ORDER BY o.created_at DESC, o.id DESC LIMIT ?3");
}

/// What became of an order that was held: its number, and the balance left.
pub type Held = (i64, Usd);

/// Takes the price from the wallet, and stores the order with its claim and its entry.
/// `None` when the wallet cannot pay, with nothing written.
pub fn hold(tx: &mut Tx, order: &Order, entry: &Entry) -> Result<Option<Held>> {
    let numbered = !order.id.is_topup();
    if tx.is_postgres() && numbered {
        return Ok(hold_all(tx, &[(order, entry)])?.remove(&order.id));
    }
    let Some((line, placed)) = wallet::debit_for_order(tx, order.account, order.price, numbered)? else {
        return Ok(None);
    };
    if let Some(reference) = &order.reference {
        claims::insert(tx, order.account, reference, order.id.as_str())?;
    }
    ledger::insert(tx, entry, order.created_at, ledger::Note::default(), Some(line))?;
    let seq = numbered.then_some(placed);
    tx.execute(INSERT, &insert_params(order, Param::from(seq)))?;
    Ok(Some((placed, line.balance)))
}

/// `hold` for a group of orders, no top-ups among them, in one statement. Whoever is missing from the answer was not
/// held: its wallet cannot pay for all of its orders here. PostgreSQL only.
pub fn hold_all(tx: &mut Tx, orders: &[(&Order, &Entry)]) -> Result<HashMap<OrderId, Held>> {
    let accounts: Vec<_> = orders.iter().map(|(_, entry)| account_names(entry)).collect();
    let mut rows = Vec::with_capacity(orders.len());
    for ((order, entry), accounts) in orders.iter().zip(&accounts) {
        let ([debit, credit], [debited, credited]) = (entry.postings.as_slice(), accounts.as_slice()) else {
            return Err(Error::fault("a hold has two legs"));
        };
        let row = params![
            &order.id,
            order.account,
            order.reference.as_deref(),
            &order.package_code,
            &order.plan_name,
            &order.family,
            order.data_mb,
            order.duration_days,
            order.price,
            order.cost,
            &order.supplier,
            &order.key_id,
            order.ask_until,
            order.created_at,
            &entry.id,
            entry.kind.as_str(),
            debited,
            debit.amount,
            credited,
            credit.amount,
            order.customer_email.as_ref().map(Email::as_str),
            order.coupon.as_ref().map(|coupon| coupon.code.as_str()),
            coupon::discount(order.coupon.as_ref()),
        ];
        rows.push(row.to_vec());
    }
    let held = tx.for_each(HOLD_ALL, &rows, |row| {
        Ok((OrderId::from_text(row.text(0)?), (row.int(1)?, row.usd(2)?)))
    })?;
    Ok(held.into_iter().collect())
}

fn insert_params<'a>(order: &'a Order, seq: Param<'a>) -> Vec<Param<'a>> {
    vec![
        Param::from(&order.id),
        Param::from(order.account),
        seq,
        Param::from(order.esim_order.as_ref()),
        Param::from(order.reference.as_deref()),
        Param::from(&order.package_code),
        Param::from(&order.plan_name),
        Param::from(&order.family),
        Param::from(order.data_mb),
        Param::from(order.duration_days),
        Param::from(order.price),
        Param::from(order.cost),
        Param::from(&order.supplier),
        Param::from(&order.key_id),
        Param::from(order.ask_until),
        Param::from(order.created_at),
        Param::from(order.uniqueness_discount),
        Param::from(order.customer_email.as_ref().map(Email::as_str)),
        Param::from(order.coupon.as_ref().map(|coupon| coupon.code.as_str())),
        Param::from(coupon::discount(order.coupon.as_ref())),
        Param::from(order.number.is_none_or(|number| number.series != Series::First)),
        Param::from(order.number.filter(|number| number.series == Series::Checkouts).map(|number| number.n)),
    ]
}

/// Stores an order or top-up that a transfer pays for, with its entry. Its number is its checkout's; one from before
/// checkouts had their own is its place too.
pub fn begin_paid(tx: &mut Tx, order: &Order, entry: &Entry) -> Result<()> {
    let numbered = !order.id.is_topup();
    if numbered {
        wallet::count_order(tx, order.account)?;
    }
    let seq = match order.seq {
        None if numbered => Some(wallet::take_number(tx, order.account)?),
        seq => seq,
    };
    tx.execute(INSERT, &insert_params(order, Param::from(seq)))?;
    ledger::insert(tx, entry, order.created_at, ledger::Note::default(), None)
}

/// What the supplier sold for an order; a top-up has no profile of its own.
pub struct Sold<'a> {
    pub order: &'a OrderId,
    pub profile: Option<&'a Esim>,
    pub entry: &'a Entry,
    pub now: Time,
}

/// `PROVISIONING → FULFILLED` with the profile (orders) and the sale. Answers the balance now, or `None` when
/// the order was not waiting for this: it has ended already, or the profile belongs to another order.
pub fn fulfil(tx: &mut Tx, sold: &Sold) -> Result<Option<Usd>> {
    let &Sold { order, profile, entry, now } = sold;
    if tx.is_postgres() && profile.is_some() {
        return Ok(fulfil_all(tx, std::slice::from_ref(sold))?.remove(order));
    }
    if let Some(profile) = profile
        && esims::owner_of(tx, profile)?.is_some()
    {
        return Ok(None);
    }
    let Some(account) = tx.write_opt(FULFIL, params![order, now], |row| Ok(AccountNo(row.int(0)?)))? else {
        return Ok(None);
    };
    if let Some(profile) = profile {
        esims::insert(tx, account, profile)?;
    }
    ledger::insert(tx, entry, now, ledger::Note::default(), None)?;
    wallet::read(tx, account).map(|wallet| Some(wallet.balance))
}

/// `fulfil` for a group of orders, no top-ups among them, in one statement. Answers the balances of those that were
/// waiting for it. PostgreSQL only.
pub fn fulfil_all(tx: &mut Tx, group: &[Sold]) -> Result<HashMap<OrderId, Usd>> {
    let accounts: Vec<_> = group.iter().map(|sold| account_names(sold.entry)).collect();
    let mut rows = Vec::with_capacity(group.len());
    for (sold, accounts) in group.iter().zip(&accounts) {
        let profile = sold.profile.ok_or_else(|| Error::fault("an order is fulfilled with a profile"))?;
        let mut row = params![
            sold.order,
            sold.now,
            &profile.profile,
            &profile.iccid,
            profile.sealed.as_slice(),
            profile.install_by,
            &sold.entry.id,
            sold.entry.kind.as_str(),
        ]
        .to_vec();
        for leg in 0..LEGS {
            row.push(Param::from(accounts.get(leg)));
            row.push(Param::from(sold.entry.postings.get(leg).map(|posting| posting.amount)));
        }
        rows.push(row);
    }
    let balances =
        tx.for_each(FULFIL_ALL, &rows, |row| Ok((OrderId::from_text(row.text(0)?), row.usd(1)?)))?;
    Ok(balances.into_iter().collect())
}

/// A sale has at most so many legs.
const LEGS: usize = 6;

fn account_names(entry: &Entry) -> Vec<String> {
    entry.postings.iter().map(|posting| posting.account.name()).collect()
}

/// `PROVISIONING → FAILED`: the money goes back, the reference is free again. Answers the balance now.
pub fn fail(tx: &mut Tx, order: &Order, failure: &Failure, back: &Payback, now: Time) -> Result<Option<Usd>> {
    let values = params![&order.id, now, &failure.code, &failure.detail, part_of(order, back)];
    if tx.execute(FAIL, values)? == 0 {
        return Ok(None);
    }
    let entry = Entry::failed(&order.id, back);
    let numbered = !order.id.is_topup();
    let to_buyer = entry.wallet_change().is_some_and(|(account, _)| account == order.account);
    let moved = debts::pay_back(tx, &entry, order, now, ledger::Note::default(), numbered && to_buyer)?;
    let balance = match moved.filter(|_| to_buyer) {
        Some(balance) => balance,
        // A guest's money goes elsewhere than to the account of the order.
        None => {
            if numbered {
                wallet::count_failed(tx, order.account)?;
            }
            wallet::read(tx, order.account)?.balance
        }
    };
    if let Some(reference) = &order.reference {
        claims::release(tx, order.account, reference, &order.id)?;
    }
    tx.execute(GIVE_BACK_LIMIT, params![&order.key_id, order.price, order.created_at.day()])?;
    Ok(Some(balance))
}

/// `FULFILLED → CANCELLING`.
pub fn start_cancel(tx: &mut Tx, id: &OrderId, now: Time, ask_until: Time) -> Result<bool> {
    Ok(tx.execute(START_CANCEL, params![id, now, ask_until])? == 1)
}

/// What is written down of a payback: nothing when it is the whole price.
fn part_of(order: &Order, back: &Payback) -> Option<Usd> {
    Some(back.received()).filter(|received| *received != order.price)
}

/// `CANCELLING → CANCELLED`; the caller pays back.
pub fn cancelled(tx: &mut Tx, order: &Order, back: &Payback, now: Time) -> Result<bool> {
    let status = OrderStatus::Cancelled.as_str();
    Ok(tx.execute(END_CANCEL, params![&order.id, status, now, part_of(order, back)])? == 1)
}

/// `CANCELLING → FULFILLED`.
pub fn not_cancelled(tx: &mut Tx, id: &OrderId, now: Time) -> Result<bool> {
    let (status, nothing) = (OrderStatus::Fulfilled.as_str(), None::<Usd>);
    Ok(tx.execute(END_CANCEL, params![id, status, now, nothing])? == 1)
}

pub fn has_live_topup(tx: &mut Tx, id: &OrderId) -> Result<bool> {
    tx.one(LIVE_TOPUPS, params![id], |row| Ok(row.int(0)? > 0))
}

/// Takes an open order over from whoever asked before; false when somebody else was faster.
pub fn lease(tx: &mut Tx, id: &OrderId, seen: Time, ask_until: Time) -> Result<bool> {
    Ok(tx.execute(LEASE, params![id, seen, ask_until])? == 1)
}

/// A profile turned up for an order that had failed; `profile` is kept so that it can be cancelled.
pub fn orphan_found(tx: &mut Tx, id: &OrderId, profile: &str) -> Result<()> {
    tx.execute(ORPHAN_FOUND, params![id, profile]).map(drop)
}

/// Something was sold for an order that had failed, and cannot be taken back; false when that is known already.
pub fn orphan_lost(tx: &mut Tx, id: &OrderId) -> Result<bool> {
    Ok(tx.execute(ORPHAN_LOST, params![id])? == 1)
}

pub fn orphan_ended(tx: &mut Tx, id: &OrderId, outcome: &str) -> Result<bool> {
    Ok(tx.execute(ORPHAN_ENDED, params![id, outcome])? == 1)
}

pub fn by_id(tx: &mut Tx, id: &OrderId) -> Result<Option<Order>> {
    tx.opt(BY_ID, params![id], read_order)
}

/// Those of these orders that exist, in no order. Only where work is done for whole groups.
pub fn by_ids(tx: &mut Tx, ids: &[&OrderId]) -> Result<Vec<Order>> {
    let ids: Vec<Param> = ids.iter().map(|id| Param::from(*id)).collect();
    tx.all(BY_IDS, &[Param::List(&ids)], read_order)
}

/// The order that delivered the newest profile sold under this ICCID, whoever owns it.
pub fn by_iccid(tx: &mut Tx, iccid: &str) -> Result<Option<Order>> {
    match with_iccid(tx, iccid, 1)?.first() {
        Some(id) => by_id(tx, id),
        None => Ok(None),
    }
}

/// The one with this number. Those that were checkouts are found by these.
pub fn by_number(tx: &mut Tx, number: Number) -> Result<Option<Order>> {
    let found = tx.opt(BY_NUMBER, params![number.account, number.n], read_order)?;
    Ok(found.filter(|order| order.number == Some(number)))
}

/// The orders that delivered this ICCID, newest first.
pub fn with_iccid(tx: &mut Tx, iccid: &str, limit: i64) -> Result<Vec<OrderId>> {
    tx.all(OF_ICCID, params![iccid, limit], |row| Ok(OrderId::from_text(row.text(0)?)))
}

pub struct PageQuery {
    pub before_seq: i64,
    pub limit: i64,
    pub offset: i64,
    pub filter: Option<PageFilter>,
}

#[derive(Clone)]
pub struct PageFilter {
    pub status: Option<OrderStatus>,
    pub from: i64,
    pub to: i64,
}

pub fn page(tx: &mut Tx, account: AccountNo, query: &PageQuery) -> Result<Vec<Order>> {
    let (before, limit, offset) = (query.before_seq, query.limit, query.offset);
    match &query.filter {
        None => tx.all(PAGE, params![account, before, limit, offset], read_order),
        Some(filter) => {
            let status = filter.status.map(OrderStatus::as_str);
            tx.all(
                FILTERED,
                params![account, before, limit, offset, status, filter.from, filter.to],
                read_order,
            )
        }
    }
}

/// How many orders the same query holds in all. Without a filter nothing is counted: the wallet row knows.
pub fn total(tx: &mut Tx, account: AccountNo, filter: Option<&PageFilter>) -> Result<i64> {
    match filter {
        None => {
            let wallet = wallet::read(tx, account)?;
            let waiting = tx.one(COUNT_PROVISIONING, params![account], |row| row.int(0))?;
            Ok(wallet.placed - wallet.failed - waiting)
        }
        Some(filter) => {
            let status = filter.status.map(OrderStatus::as_str);
            tx.one(COUNT_FILTERED, params![account, status, filter.from, filter.to], |row| row.int(0))
        }
    }
}

/// The top-ups of these orders, oldest first.
pub fn topups_of(tx: &mut Tx, orders: &[&OrderId]) -> Result<Vec<Order>> {
    // Written so that both databases look each one up in the index instead of reading the table.
    let (sql, list) = if tx.is_postgres() {
        (TOPUPS_PG, orders.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(","))
    } else {
        let quoted: Vec<String> = orders.iter().map(|id| format!("\"{id}\"")).collect();
        (TOPUPS_LITE, format!("[{}]", quoted.join(",")))
    };
    tx.all(sql, params![&list], read_order)
}

/// Open orders that nobody is asking about any more. Who begins to ask now may until `longest`: whoever may for longer has
/// that from a clock that was wrong.
pub fn due(tx: &mut Tx, now: Time, longest: Time, limit: i64) -> Result<Vec<Order>> {
    tx.all(DUE, params![now, limit, longest.and_a_little()], read_order)
}

/// Failed orders whose profile is still to be cancelled at the supplier, with that profile.
pub fn orphans(tx: &mut Tx) -> Result<Vec<(OrderId, String)>> {
    tx.all(ORPHANS, &[], |row| Ok((OrderId::from_text(row.text(0)?), row.text(1)?)))
}

/// How many orders have been open since before `then`, by status.
pub fn open_since(tx: &mut Tx, then: Time) -> Result<Vec<(String, i64)>> {
    tx.all(OPEN_COUNTS, params![then], |row| Ok((row.text(0)?, row.int(1)?)))
}

/// For the operator: the newest orders, of one account or all, in one state or any.
pub fn recent(
    tx: &mut Tx,
    account: Option<AccountNo>,
    status: Option<OrderStatus>,
    limit: i64,
) -> Result<Vec<Order>> {
    tx.all(RECENT, params![account, status.map(OrderStatus::as_str), limit], read_order)
}

fn read_order(row: &Row) -> Result<Order> {
    let failure = match row.opt_text(18)? {
        Some(code) => Some(Failure { code, detail: row.opt_text(19)?.unwrap_or_default() }),
        None => None,
    };
    let esim = match row.opt_text(20)? {
        Some(order) => Some(Esim {
            order: OrderId::from_text(order),
            profile: row.text(21)?,
            iccid: row.text(22)?,
            sealed: row.blob(23)?,
            install_by: row.opt_time(24)?,
            last_usage: match row.opt_text(25)? {
                Some(_) => Some(Usage {
                    status: row.word(25, EsimStatus::parse)?,
                    total_mb: row.int(26)?,
                    used_mb: row.int(27)?,
                    as_of: row.time(28)?,
                    expires_at: row.opt_time(29)?,
                }),
                None => None,
            },
        }),
        None => None,
    };
    let (account, seq) = (AccountNo(row.int(1)?), row.opt_int(2)?);
    let number = match (row.opt_int(36)?, seq, row.flag(35)?) {
        (Some(n), _, _) => Some(Number { series: Series::Checkouts, account, n }),
        (None, Some(n), true) => Some(Number { series: Series::Orders, account, n }),
        (None, Some(n), false) => Some(Number { series: Series::First, account, n }),
        (None, None, _) => None,
    };
    Ok(Order {
        id: OrderId::from_text(row.text(0)?),
        account,
        seq,
        number,
        esim_order: row.opt_text(3)?.map(OrderId::from_text),
        reference: row.opt_text(4)?,
        package_code: row.text(5)?,
        plan_name: row.text(6)?,
        family: row.text(7)?,
        data_mb: row.int(8)?,
        duration_days: row.int(9)?,
        price: row.usd(10)?,
        uniqueness_discount: row.usd(30)?,
        coupon: coupons::applied(row, 32)?,
        customer_email: row.opt_text(31)?.map(Email::from_text),
        cost: row.usd(11)?,
        supplier: row.text(12)?,
        key_id: row.text(13)?,
        status: row.word(14, OrderStatus::parse)?,
        ask_until: row.time(15)?,
        created_at: row.time(16)?,
        updated_at: row.time(17)?,
        failure,
        refunded: row.opt_usd(34)?,
        esim,
    })
}
