//! Orders and top-ups: the hot writes of the service. Each beat of the spine (hold, fulfil, fail, cancel) is one
//! function here. On PostgreSQL the two that every order makes are single statements, because there each
//! statement is a round trip under the wallet's lock; the texts say the same as the SQLite steps beside them.

use super::tx::{Param, Row, Tx, params, queries};
use super::{claims, esims, ledger, wallet};
use crate::domain::esim::{Esim, EsimStatus, Usage};
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::order::{Failure, Order, OrderStatus};
use crate::domain::plan::PlanType;
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
                    s.usage_status, s.total_mb, s.used_mb, s.as_of, s.expires_at, o.spot
             FROM orders o LEFT JOIN esims s ON s.order_id = COALESCE(o.esim_order, o.id) ",
            $tail
        )
    };
}

queries! {
    LOOK = "SELECT w.balance, w.suspended, c.order_id,
                   p.plan_type, p.name, p.family, p.data_mb, p.duration_days, p.cost, p.supplier, x.price
            FROM wallets w
            LEFT JOIN claims c ON c.account = w.account AND c.reference = ?2
            LEFT JOIN plans p ON p.code = ?3 AND p.on_sale = 1
            LEFT JOIN prices x ON x.price_list = ?4 AND x.code = p.code
            WHERE w.account = ?1";
    DAILY_LIMIT = "SELECT daily_limit, spent_day, spent FROM api_keys WHERE id = ?1 AND daily_limit IS NOT NULL";
    INSERT = "INSERT INTO orders (id, account, seq, esim_order, reference, package_code, plan_name, family, data_mb,
                  duration_days, price, cost, supplier, key_id, status, ask_until, created_at, updated_at)
              VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 'PROVISIONING', ?15, ?16, ?16)";
    INSERT_PAID = "INSERT INTO orders (id, account, seq, esim_order, reference, package_code, plan_name, family, data_mb,
                  duration_days, price, cost, supplier, key_id, status, ask_until, created_at, updated_at, spot)
              VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 'PROVISIONING', ?15, ?16, ?16, ?17)";
    HOLD (Postgres) = "WITH w AS (
            UPDATE wallets SET balance = balance - CAST(?11 AS BIGINT), lines = lines + 1, placed = placed + CAST(?3 AS BIGINT), numbers = numbers + CAST(?3 AS BIGINT)
            WHERE account = CAST(?2 AS BIGINT) AND balance >= CAST(?11 AS BIGINT) RETURNING lines, balance, numbers),
        c AS (INSERT INTO claims (account, reference, order_id)
            SELECT CAST(?2 AS BIGINT), CAST(?5 AS TEXT), CAST(?1 AS TEXT) FROM w WHERE CAST(?5 AS TEXT) IS NOT NULL),
        e AS (INSERT INTO entries (id, kind, at) SELECT CAST(?17 AS TEXT), CAST(?18 AS TEXT), CAST(?16 AS BIGINT) FROM w),
        p AS (INSERT INTO postings (entry, leg, account, amount, wallet, line, balance, order_id)
            SELECT CAST(?17 AS TEXT), 1, CAST(?19 AS TEXT), CAST(?20 AS BIGINT), CAST(?2 AS BIGINT), lines, balance, CAST(?1 AS TEXT) FROM w
            UNION ALL
            SELECT CAST(?17 AS TEXT), 2, CAST(?21 AS TEXT), CAST(?22 AS BIGINT), NULL, NULL, NULL, CAST(?1 AS TEXT) FROM w),
        o AS (INSERT INTO orders (id, account, seq, esim_order, reference, package_code, plan_name, family, data_mb,
                duration_days, price, cost, supplier, key_id, status, ask_until, created_at, updated_at)
            SELECT CAST(?1 AS TEXT), CAST(?2 AS BIGINT), CASE WHEN CAST(?3 AS BIGINT) = 1 THEN numbers END, CAST(?4 AS TEXT),
                CAST(?5 AS TEXT), CAST(?6 AS TEXT), CAST(?7 AS TEXT), CAST(?8 AS TEXT), CAST(?9 AS BIGINT), CAST(?10 AS BIGINT),
                CAST(?11 AS BIGINT), CAST(?12 AS BIGINT), CAST(?13 AS TEXT), CAST(?14 AS TEXT), 'PROVISIONING',
                CAST(?15 AS BIGINT), CAST(?16 AS BIGINT), CAST(?16 AS BIGINT) FROM w)
        SELECT balance, numbers FROM w";
    FULFIL = "UPDATE orders SET status = 'FULFILLED', updated_at = ?2
              WHERE id = ?1 AND status = 'PROVISIONING' RETURNING account";
    FULFIL_ALL (Postgres) = "WITH o AS (
            UPDATE orders SET status = 'FULFILLED', updated_at = CAST(?2 AS BIGINT)
            WHERE id = CAST(?1 AS TEXT) AND status = 'PROVISIONING'
              AND NOT EXISTS (SELECT 1 FROM esims WHERE iccid = CAST(?4 AS TEXT) AND profile = CAST(?3 AS TEXT)) RETURNING account),
        s AS (INSERT INTO esims (order_id, account, profile, iccid, activation, install_by)
            SELECT CAST(?1 AS TEXT), account, CAST(?3 AS TEXT), CAST(?4 AS TEXT), CAST(?5 AS BYTEA), CAST(?6 AS BIGINT) FROM o
            WHERE CAST(?3 AS TEXT) IS NOT NULL),
        e AS (INSERT INTO entries (id, kind, at) SELECT CAST(?7 AS TEXT), CAST(?8 AS TEXT), CAST(?2 AS BIGINT) FROM o),
        p AS (INSERT INTO postings (entry, leg, account, amount, order_id)
            SELECT CAST(?7 AS TEXT), v.leg, v.account, v.amount, CAST(?1 AS TEXT) FROM o CROSS JOIN (VALUES
                (1, CAST(?9 AS TEXT), CAST(?10 AS BIGINT)), (2, CAST(?11 AS TEXT), CAST(?12 AS BIGINT)),
                (3, CAST(?13 AS TEXT), CAST(?14 AS BIGINT)), (4, CAST(?15 AS TEXT), CAST(?16 AS BIGINT)),
                (5, CAST(?17 AS TEXT), CAST(?18 AS BIGINT))) v (leg, account, amount)
            WHERE v.account IS NOT NULL)
        SELECT w.balance FROM o JOIN wallets w ON w.account = o.account";
    FAIL = "UPDATE orders SET status = 'FAILED', updated_at = ?2, failure_code = ?3, failure_detail = ?4
            WHERE id = ?1 AND status = 'PROVISIONING'";
    GIVE_BACK_LIMIT = "UPDATE api_keys SET spent = spent - ?2 WHERE id = ?1 AND spent_day = ?3 AND daily_limit IS NOT NULL";
    SPEND_LIMIT = "UPDATE api_keys SET spent = ?2, spent_day = ?3 WHERE id = ?1";
    START_CANCEL = "UPDATE orders SET status = 'CANCELLING', updated_at = ?2, ask_until = ?3
                    WHERE id = ?1 AND status = 'FULFILLED'";
    END_CANCEL = "UPDATE orders SET status = ?2, updated_at = ?3 WHERE id = ?1 AND status = 'CANCELLING'";
    LIVE_TOPUPS = "SELECT COUNT(*) FROM orders WHERE esim_order = ?1 AND status IN ('PROVISIONING', 'FULFILLED')";
    LEASE = "UPDATE orders SET ask_until = ?3 WHERE id = ?1 AND ask_until = ?2
             AND status IN ('PROVISIONING', 'CANCELLING')";
    ORPHAN_FOUND = "UPDATE orders SET orphan = 'OPEN', orphan_profile = ?2 WHERE id = ?1 AND orphan IS NULL";
    ORPHAN_LOST = "UPDATE orders SET orphan = 'LOST' WHERE id = ?1 AND orphan IS NULL";
    ORPHAN_ENDED = "UPDATE orders SET orphan = ?2 WHERE id = ?1 AND orphan = 'OPEN'";
    BY_ID = select_order!("WHERE o.id = ?1");
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
    DUE = select_order!("WHERE o.status IN ('PROVISIONING', 'CANCELLING') AND o.ask_until < ?1 LIMIT ?2");
    ORPHANS = "SELECT id, orphan_profile FROM orders WHERE orphan IS NOT NULL AND orphan = 'OPEN' LIMIT 100";
    OPEN_COUNTS = "SELECT status, COUNT(*) FROM orders WHERE status IN ('PROVISIONING', 'CANCELLING') AND updated_at < ?1 GROUP BY status";
    RECENT = select_order!("WHERE (CAST(?1 AS BIGINT) IS NULL OR o.account = ?1) AND (CAST(?2 AS TEXT) IS NULL OR o.status = ?2)
                ORDER BY o.created_at DESC, o.id DESC LIMIT ?3");
}

/// What the deciding read of an order sees: one row, one moment.
pub struct Look {
    pub balance: Usd,
    pub suspended: bool,
    pub claimed_by: Option<OrderId>,
    pub plan: Option<Offer>,
}

pub struct DailyLimit {
    pub limit: Usd,
    pub day: i64,
    pub spent: Usd,
}

impl DailyLimit {
    pub fn spent_on(&self, day: i64) -> Usd {
        if self.day == day { self.spent } else { Usd::ZERO }
    }
}

/// A plan as it is sold to this account now.
pub struct Offer {
    pub plan_type: PlanType,
    pub name: String,
    pub family: String,
    pub data_mb: i64,
    pub duration_days: i64,
    pub cost: Usd,
    pub supplier: String,
    pub price: Usd,
}

pub fn look(
    tx: &mut Tx,
    account: AccountNo,
    reference: Option<&str>,
    package_code: &str,
    price_list: &str,
) -> Result<Look> {
    tx.one(LOOK, params![account, reference, package_code, price_list], |row| {
        let plan = match row.opt_int(10)? {
            Some(price) => Some(Offer {
                plan_type: row.word(3, PlanType::parse)?,
                name: row.text(4)?,
                family: row.text(5)?,
                data_mb: row.int(6)?,
                duration_days: row.int(7)?,
                cost: row.usd(8)?,
                supplier: row.text(9)?,
                price: Usd::from_micros(price),
            }),
            None => None,
        };
        Ok(Look {
            balance: row.usd(0)?,
            suspended: row.flag(1)?,
            claimed_by: row.opt_text(2)?.map(OrderId::from_text),
            plan,
        })
    })
}

/// A key's daily limit and what was spent of it, if it has one.
pub fn daily_limit(tx: &mut Tx, key_id: &str) -> Result<Option<DailyLimit>> {
    tx.opt(DAILY_LIMIT, params![key_id], |row| {
        Ok(DailyLimit { limit: row.usd(0)?, day: row.int(1)?, spent: row.usd(2)? })
    })
}

/// Takes the price from the wallet, and stores the order with its claim and its entry.
/// Answers the order's number and the balance left; `None` when the wallet cannot pay, with nothing written.
pub fn hold(tx: &mut Tx, order: &Order, entry: &Entry) -> Result<Option<(i64, Usd)>> {
    let numbered = !order.id.is_topup();
    if tx.is_postgres() {
        let [from, to] = entry.postings.as_slice() else {
            return Err(Error::fault("a hold has two legs"));
        };
        let (from_account, to_account) = (from.account.name(), to.account.name());
        let mut values = insert_params(order, Param::from(numbered));
        values.extend_from_slice(params![
            &entry.id,
            entry.kind.as_str(),
            &from_account,
            from.amount,
            &to_account,
            to.amount
        ]);
        return tx.write_opt(HOLD, &values, |row| Ok((row.int(1)?, row.usd(0)?)));
    }
    let Some((line, placed)) = wallet::debit_for_order(tx, order.account, order.price, numbered)? else {
        return Ok(None);
    };
    if let Some(reference) = &order.reference {
        claims::insert(tx, order.account, reference, &order.id)?;
    }
    ledger::insert(tx, entry, order.created_at, ledger::Note::default(), Some(line))?;
    let seq = numbered.then_some(placed);
    tx.execute(INSERT, &insert_params(order, Param::from(seq)))?;
    Ok(Some((placed, line.balance)))
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
    ]
}

/// Stores an order that a transfer pays for, with its entry. Its number was taken before.
pub fn begin_paid(tx: &mut Tx, order: &Order, entry: &Entry) -> Result<()> {
    wallet::count_order(tx, order.account)?;
    let mut values = insert_params(order, Param::from(order.seq));
    values.push(Param::from(order.spot));
    tx.execute(INSERT_PAID, &values)?;
    ledger::insert(tx, entry, order.created_at, ledger::Note::default(), None)
}

/// `PROVISIONING → FULFILLED` with the profile (orders) and the sale. Answers the balance now, or `None` when
/// the order was not waiting for this: it has ended already, or the profile belongs to another order.
pub fn fulfil(
    tx: &mut Tx,
    id: &OrderId,
    profile: Option<&Esim>,
    entry: &Entry,
    now: Time,
) -> Result<Option<Usd>> {
    if tx.is_postgres() {
        let names: Vec<String> = entry.postings.iter().map(|posting| posting.account.name()).collect();
        let mut values = vec![
            Param::from(id),
            Param::from(now),
            Param::from(profile.map(|p| p.profile.as_str())),
            Param::from(profile.map(|p| p.iccid.as_str())),
            Param::from(profile.map(|p| p.sealed.as_slice())),
            Param::from(profile.and_then(|p| p.install_by)),
            Param::from(&entry.id),
            Param::from(entry.kind.as_str()),
        ];
        for leg in 0..5 {
            values.push(Param::from(names.get(leg)));
            values.push(Param::from(entry.postings.get(leg).map(|posting| posting.amount)));
        }
        return tx.write_opt(FULFIL_ALL, &values, |row| row.usd(0));
    }
    if let Some(profile) = profile
        && esims::owner_of(tx, profile)?.is_some()
    {
        return Ok(None);
    }
    let Some(account) = tx.write_opt(FULFIL, params![id, now], |row| Ok(AccountNo(row.int(0)?)))? else {
        return Ok(None);
    };
    if let Some(profile) = profile {
        esims::insert(tx, account, profile)?;
    }
    ledger::insert(tx, entry, now, ledger::Note::default(), None)?;
    wallet::read(tx, account).map(|wallet| Some(wallet.balance))
}

/// `PROVISIONING → FAILED`: the money goes back, the reference is free again. Answers the balance now.
pub fn fail(tx: &mut Tx, order: &Order, failure: &Failure, entry: &Entry, now: Time) -> Result<Option<Usd>> {
    if tx.execute(FAIL, params![&order.id, now, &failure.code, &failure.detail])? == 0 {
        return Ok(None);
    }
    let balance = ledger::post(tx, entry, now, ledger::Note::default(), !order.id.is_topup())?;
    if let Some(reference) = &order.reference {
        claims::release(tx, order.account, reference, &order.id)?;
    }
    tx.execute(GIVE_BACK_LIMIT, params![&order.key_id, order.price, order.created_at.day()])?;
    Ok(balance)
}

/// Counts a purchase against its key's daily limit. The caller has locked the wallet and checked.
pub fn spend_limit(tx: &mut Tx, key_id: &str, spent: Usd, day: i64) -> Result<()> {
    tx.execute(SPEND_LIMIT, params![key_id, spent, day]).map(drop)
}

/// `FULFILLED → CANCELLING`.
pub fn start_cancel(tx: &mut Tx, id: &OrderId, now: Time, ask_until: Time) -> Result<bool> {
    Ok(tx.execute(START_CANCEL, params![id, now, ask_until])? == 1)
}

/// `CANCELLING → CANCELLED` or back to `FULFILLED`.
pub fn end_cancel(tx: &mut Tx, id: &OrderId, status: OrderStatus, now: Time) -> Result<bool> {
    Ok(tx.execute(END_CANCEL, params![id, status.as_str(), now])? == 1)
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

/// The order that delivered the newest profile sold under this ICCID, whoever owns it.
pub fn by_iccid(tx: &mut Tx, iccid: &str) -> Result<Option<Order>> {
    match with_iccid(tx, iccid, 1)?.first() {
        Some(id) => by_id(tx, id),
        None => Ok(None),
    }
}

pub fn by_number(tx: &mut Tx, account: AccountNo, seq: i64) -> Result<Option<Order>> {
    tx.opt(BY_NUMBER, params![account, seq], read_order)
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

/// Open orders that nobody is asking about any more.
pub fn due(tx: &mut Tx, now: Time, limit: i64) -> Result<Vec<Order>> {
    tx.all(DUE, params![now, limit], read_order)
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
    Ok(Order {
        id: OrderId::from_text(row.text(0)?),
        account: AccountNo(row.int(1)?),
        seq: row.opt_int(2)?,
        esim_order: row.opt_text(3)?.map(OrderId::from_text),
        reference: row.opt_text(4)?,
        package_code: row.text(5)?,
        plan_name: row.text(6)?,
        family: row.text(7)?,
        data_mb: row.int(8)?,
        duration_days: row.int(9)?,
        price: row.usd(10)?,
        spot: row.usd(30)?,
        cost: row.usd(11)?,
        supplier: row.text(12)?,
        key_id: row.text(13)?,
        status: row.word(14, OrderStatus::parse)?,
        ask_until: row.time(15)?,
        created_at: row.time(16)?,
        updated_at: row.time(17)?,
        failure,
        esim,
    })
}
