//! Orders and top-ups: the hot writes of the service. An order begins in `hold` or `begin_paid`; from then on `advance`
//! makes every change of its status. On PostgreSQL the two writes that every order makes are also written for a whole
//! group of orders at once (`HOLD_ALL`, `DELIVER_ALL`), because there each statement is a round trip; these texts say the
//! same as the SQLite steps beside them.

use std::collections::HashMap;

use super::engine::{Param, Stored, Tx, columns, insert_into, lists, names, params, queries, text, values};
use super::{claims, debts, esims, events, ledger, wallet};
use crate::domain::cost::{Billed, Cost};
use crate::domain::coupon::{self, Applied};
use crate::domain::esim::Esim;
use crate::domain::event::{EventKind, News};
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::ledger::{Entry, Posting};
use crate::domain::money::Usd;
use crate::domain::number::{Number, Series};
use crate::domain::order::{Failure, Order, OrderEvent, OrderStatus};
use crate::domain::payback::Payback;
use crate::domain::time::Time;
use crate::error::{Error, Result};

columns! {
    Failure in "o" { code = "o.failure_code", detail = "COALESCE(o.failure_detail, '')" }
}

columns! {
    Order in "o" {
        id, account, seq, keyed: bool, checkout_no: Option<i64>, esim_order, reference, package_code, plan_name, family,
        data_mb, duration_days, price, uniqueness_discount = "o.spot", coupon: Option<Applied> = "o.coupon, o.discount", customer_email, cost,
        billed: Option<Billed> = "o.native_cost, o.rate", supplier, supplier_code = "COALESCE(o.supplier_code, o.package_code)", supplier_number, key_id, status, ask_until, created_at, updated_at, failure: Option<Failure> = Failure::COLUMNS,
        refunded, cancel_request, cancel_withdrawn_at, esim: Option<Esim> = Esim::COLUMNS,
    } => Order {
        number: match (checkout_no, seq, keyed) {
            (Some(n), _, _) => Some(Number { series: Series::Checkouts, account, n }),
            (None, Some(n), true) => Some(Number { series: Series::Orders, account, n }),
            (None, Some(n), false) => Some(Number { series: Series::First, account, n }),
            (None, None, _) => None,
        },
        id, account, seq, esim_order, reference, package_code, plan_name, family, data_mb, duration_days, price,
        uniqueness_discount, coupon, customer_email, cost, billed, supplier, supplier_code, supplier_number, key_id, status, ask_until, created_at, updated_at, failure, refunded,
        cancel_request, cancel_withdrawn_at, esim,
    }
}

values! {
    /// What is written of any new order.
    Facts(order: Order) {
        id: TEXT, account: BIGINT, reference: TEXT, package_code: TEXT, plan_name: TEXT, family: TEXT, data_mb: BIGINT,
        duration_days: BIGINT, price: BIGINT, cost: BIGINT, supplier: TEXT, supplier_code: TEXT, key_id: TEXT, ask_until: BIGINT,
        created_at: BIGINT, customer_email: TEXT, native_cost: BIGINT = order.billed.map(|billed| billed.micros),
        rate: BIGINT = order.billed.map(|billed| billed.rate), coupon: TEXT = order.coupon.as_ref().map(|coupon| &coupon.code),
        discount: BIGINT = coupon::discount(order.coupon.as_ref()),
    }
}

values! {
    /// What else is written where orders come one by one.
    Standing(order: Order, seq: Option<i64>) {
        status = OrderStatus::Provisioning, updated_at = order.created_at, seq = seq, esim_order,
        spot = order.uniqueness_discount,
        keyed = order.number.is_none_or(|number| number.series != Series::First),
        checkout_no = order.number.filter(|number| number.series == Series::Checkouts).map(|number| number.n),
    }
}

values! {
    /// An entry that holds an order's price.
    Hold(entry: Entry, accounts: &'a [String; 2], amounts: [Usd; 2]) {
        entry: TEXT = &entry.id, kind: TEXT = entry.kind.as_str(), debited: TEXT = &accounts[0],
        debit: BIGINT = amounts[0], credited: TEXT = &accounts[1], credit: BIGINT = amounts[1],
    }
}

values! {
    Delivery(step: Step<'a>, profile: &'a Esim, entry: &'a Entry, terms: Terms<'a>, told: &'a str) {
        id: TEXT = step.order, at: BIGINT = step.now, profile: TEXT = &profile.profile, iccid: TEXT = &profile.iccid,
        activation: BYTEA = &profile.sealed, install_by: BIGINT = profile.install_by, entry: TEXT = &entry.id,
        kind: TEXT = entry.kind.as_str(), true_cost: BIGINT = terms.cost.usd, true_native: BIGINT = terms.cost.native(), number: TEXT = terms.number,
        told: TEXT = told,
    }
}

values! {
    /// The postings of a sale.
    Legs(legs: [Leg; LEGS]) {
        account1: TEXT = &legs[0].account, amount1: BIGINT = legs[0].amount,
        account2: TEXT = &legs[1].account, amount2: BIGINT = legs[1].amount,
        account3: TEXT = &legs[2].account, amount3: BIGINT = legs[2].amount,
        account4: TEXT = &legs[3].account, amount4: BIGINT = legs[3].amount,
        account5: TEXT = &legs[4].account, amount5: BIGINT = legs[4].amount,
        account6: TEXT = &legs[5].account, amount6: BIGINT = legs[5].amount,
    }
}

/// The most legs that the entry of a sale has.
const LEGS: usize = 6;

#[derive(Default)]
struct Leg {
    account: Option<String>,
    amount: Option<Usd>,
}

/// Orders, each with the eSIM it delivered or fills.
macro_rules! select_order {
    ($tail:literal) => {
        text!(
            "SELECT ",
            Order::COLUMNS,
            " FROM orders o LEFT JOIN esims s ON s.order_id = COALESCE(o.esim_order, o.id) ",
            $tail
        )
    };
}

queries! {
    INSERT = insert_into!("orders", Facts, Standing);
    /// A wallet pays for all of its orders in the group, or for none. Wallets are locked in the order of their
    /// numbers, and before any claim is inserted, so that two instances cannot wait for each other.
    HOLD_ALL (Postgres) = text!("WITH asked AS MATERIALIZED (
            SELECT a.*, ROW_NUMBER() OVER mine AS nth, CAST(SUM(price) OVER mine AS BIGINT) AS paid
            FROM unnest(", lists!(Facts, Hold), ") WITH ORDINALITY AS a (", names!(Facts, Hold), ", n)
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
        e AS (INSERT INTO entries (id, kind, at) SELECT entry, kind, created_at FROM held),
        p AS (INSERT INTO postings (entry, leg, account, amount, wallet, line, balance, order_id)
            SELECT entry, 1, debited, debit, account, line, balance, id FROM held
            UNION ALL SELECT entry, 2, credited, credit, NULL, NULL, NULL, id FROM held),
        o AS (INSERT INTO orders (", Facts::NAMES, ", status, updated_at, seq, keyed)
            SELECT ", Facts::NAMES, ", 'PROVISIONING', created_at, seq, 1 FROM held)
        SELECT id, seq, balance FROM held");
    MOVE = "UPDATE orders SET status = ?3, updated_at = ?4, ask_until = COALESCE(?5, ask_until), failure_code = ?6,
                failure_detail = ?7, refunded = ?8, cost = COALESCE(?9, cost), supplier_number = COALESCE(?10, supplier_number),
                native_cost = COALESCE(?11, native_cost), events = events + ?12
            WHERE id = ?1 AND status = ?2
            RETURNING account, events, (SELECT balance FROM wallets WHERE wallets.account = orders.account)";
    /// The state is worded so that the index over open orders does not fit: it is full of those that were open.
    DELIVER_ALL (Postgres) = text!("WITH o AS (
            UPDATE orders SET status = 'FULFILLED', updated_at = a.at, cost = a.true_cost, native_cost = a.true_native,
                supplier_number = COALESCE(a.number, supplier_number), events = events + 1
            FROM unnest(", lists!(Delivery, Legs), ") AS a (", names!(Delivery, Legs), ")
            WHERE orders.id = a.id AND status || '' = 'PROVISIONING'
              AND NOT EXISTS (SELECT 1 FROM esims WHERE esims.iccid = a.iccid AND esims.profile = a.profile)
            RETURNING orders.account AS wallet, orders.events AS sequence, a.*),
        s AS (INSERT INTO esims (order_id, account, profile, iccid, activation, install_by)
            SELECT id, wallet, profile, iccid, activation, install_by FROM o),
        e AS (INSERT INTO entries (id, kind, at) SELECT entry, kind, at FROM o),
        p AS (INSERT INTO postings (entry, leg, account, amount, order_id)
            SELECT o.entry, v.leg, v.account, v.amount, o.id FROM o CROSS JOIN LATERAL (VALUES (1, account1, amount1),
                (2, account2, amount2), (3, account3, amount3), (4, account4, amount4), (5, account5, amount5),
                (6, account6, amount6)) v (leg, account, amount)
            WHERE v.account IS NOT NULL),
        n AS (INSERT INTO events (account, kind, subject, sequence, at, data)
            SELECT wallet, 'order.fulfilled', id, sequence, at, told FROM o WHERE wallet <> 0)
        SELECT o.id, w.balance FROM o JOIN wallets w ON w.account = o.wallet");
    GIVE_BACK_LIMIT = "UPDATE api_keys SET spent = spent - ?2 WHERE id = ?1 AND spent_day = ?3 AND daily_limit IS NOT NULL";
    LIVE_TOPUPS = "SELECT COUNT(*) FROM orders WHERE esim_order = ?1 AND status IN ('PROVISIONING', 'FULFILLED')";
    LEASE = "UPDATE orders SET ask_until = ?3 WHERE id = ?1 AND ask_until = ?2
             AND status IN ('PROVISIONING', 'CANCELLING')";
    NUMBER = "UPDATE orders SET supplier_number = ?2 WHERE id = ?1 AND supplier_number IS NULL";
    NUMBER_HELD = "SELECT 1 FROM orders WHERE esim_order = ?1 AND supplier_number = ?2 AND id <> ?3";
    ORPHAN_FOUND = "UPDATE orders SET orphan = 'OPEN', orphan_profile = ?2, cost = ?3, native_cost = ?4 WHERE id = ?1 AND orphan IS NULL";
    ORPHAN_LOST = "UPDATE orders SET orphan = 'LOST', cost = ?2, native_cost = ?3 WHERE id = ?1 AND orphan IS NULL";
    ORPHAN_HELD = "SELECT 1 FROM orders WHERE orphan IS NOT NULL AND orphan_profile = ?1";
    ORPHAN_ENDED = "UPDATE orders SET orphan = ?2 WHERE id = ?1 AND orphan = 'OPEN'";
    BY_ID = select_order!("WHERE o.id = ?1");
    BY_IDS (Postgres) = select_order!("WHERE o.id = ANY (CAST(?1 AS TEXT[]))");
    BY_NUMBER = select_order!("WHERE o.account = ?1 AND o.seq = ?2");
    OF_ICCID = "SELECT order_id FROM esims WHERE iccid = ?1 ORDER BY order_id DESC LIMIT ?2";
    PAGE = select_order!("WHERE o.account = ?1 AND o.seq IS NOT NULL AND o.seq < ?2
                AND o.status IN ('FULFILLED', 'CANCELLING', 'CANCELLED') ORDER BY o.seq DESC LIMIT ?3 OFFSET ?4");
    PAGE_UNDERWAY = select_order!("WHERE o.account = ?1 AND o.seq IS NOT NULL AND o.seq < ?2
                AND o.status <> 'FAILED' ORDER BY o.seq DESC LIMIT ?3 OFFSET ?4");
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
    /// The longest due first: those that wait for a turn come back soon, and must not keep others waiting.
    DUE = select_order!("WHERE o.status IN ('PROVISIONING', 'CANCELLING') AND (o.ask_until < ?1 OR (o.ask_until > ?3 AND o.cancel_request IS NULL))
                ORDER BY o.ask_until LIMIT ?2");
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
    insert(tx, order, seq)?;
    Ok(Some((placed, line.balance)))
}

/// `hold` for a group of orders, no top-ups among them, in one statement. An order that is missing from the answer was
/// not held: its wallet cannot pay for all of its orders here. PostgreSQL only.
pub fn hold_all(tx: &mut Tx, orders: &[(&Order, &Entry)]) -> Result<HashMap<OrderId, Held>> {
    let name = |leg: &Posting| leg.account.name();
    let mut legs = Vec::with_capacity(orders.len());
    for (_, entry) in orders {
        let [debit, credit] = entry.postings.as_slice() else {
            return Err(Error::fault("a hold has two legs"));
        };
        legs.push(([name(debit), name(credit)], [debit.amount, credit.amount]));
    }
    let mut rows = Vec::with_capacity(orders.len());
    for ((order, entry), (accounts, amounts)) in orders.iter().zip(&legs) {
        rows.push([&Facts::params(order)[..], &Hold::params(entry, accounts, *amounts)].concat());
    }
    let held = tx.for_each::<(OrderId, Held)>(HOLD_ALL, &rows)?;
    Ok(held.into_iter().collect())
}

fn insert(tx: &mut Tx, order: &Order, seq: Option<i64>) -> Result<()> {
    let values = [&Facts::params(order)[..], &Standing::params(order, seq)].concat();
    tx.execute(INSERT, &values).map(drop)
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
    insert(tx, order, seq)?;
    ledger::insert(tx, entry, order.created_at, ledger::Note::default(), None)
}

/// A step in the life of an order.
pub struct Step<'a> {
    pub order: &'a OrderId,
    pub change: Change<'a>,
    pub now: Time,
}

/// What happened to an order, with what is written down of it; `told` is the order as the event of the change shows it.
pub enum Change<'a> {
    /// A top-up has no profile of its own. The entry is that of the sale.
    Sold {
        profile: Option<&'a Esim>,
        entry: &'a Entry,
        terms: Terms<'a>,
        told: &'a str,
    },
    Refused {
        failure: &'a Failure,
        refunded: Option<Usd>,
        told: &'a str,
    },
    CancelAsked {
        ask_until: Time,
    },
    CancelGranted {
        refunded: Option<Usd>,
        told: &'a str,
    },
    CancelDenied,
    CancelWithdrawn,
}

/// On which terms a supplier sold.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// What it really cost.
    pub cost: Cost,
    /// The supplier's own number for the sale, if it told one.
    pub number: Option<&'a str>,
}

impl Change<'_> {
    fn event(&self) -> OrderEvent {
        match self {
            Change::Sold { .. } => OrderEvent::Sold,
            Change::Refused { .. } => OrderEvent::Refused,
            Change::CancelAsked { .. } => OrderEvent::CancelAsked,
            Change::CancelGranted { .. } => OrderEvent::CancelGranted,
            Change::CancelDenied => OrderEvent::CancelDenied,
            Change::CancelWithdrawn => OrderEvent::CancelWithdrawn,
        }
    }

    /// The event that tells it to the order's owner, and the order in it.
    fn news(&self, is_topup: bool) -> Option<(EventKind, &str)> {
        match self {
            Change::Sold { told, .. } if is_topup => Some((EventKind::TopUpCompleted, told)),
            Change::Sold { told, .. } => Some((EventKind::OrderFulfilled, told)),
            Change::Refused { told, .. } if is_topup => Some((EventKind::TopUpFailed, told)),
            Change::Refused { told, .. } => Some((EventKind::OrderFailed, told)),
            Change::CancelGranted { told, .. } => Some((EventKind::OrderCancelled, told)),
            Change::CancelAsked { .. } | Change::CancelDenied | Change::CancelWithdrawn => None,
        }
    }
}

/// Changes the status of orders, with the profile and the entry of those that were sold, and with the event that tells of
/// it. Nothing else does. Answers
/// the wallet's balance for each order that moved. The others were in another state than the event wants, or their
/// profile belongs to another order.
pub fn advance(tx: &mut Tx, steps: &[Step]) -> Result<HashMap<OrderId, Usd>> {
    let delivery = |step: &Step| matches!(step.change, Change::Sold { profile: Some(_), .. });
    if tx.is_postgres() && !steps.is_empty() && steps.iter().all(delivery) {
        return deliver_all(tx, steps);
    }
    let mut moved = HashMap::new();
    for step in steps {
        if let Some(balance) = advance_one(tx, step)? {
            moved.insert(step.order.clone(), balance);
        }
    }
    Ok(moved)
}

fn advance_one(tx: &mut Tx, step: &Step) -> Result<Option<Usd>> {
    let (mut ask_until, mut failed, mut back, mut sold) = (None, None, None, None);
    match step.change {
        Change::Sold { profile: Some(profile), .. } if esims::owner_of(tx, profile)?.is_some() => {
            return Ok(None);
        }
        Change::Sold { terms, .. } => sold = Some(terms),
        Change::CancelDenied | Change::CancelWithdrawn => {}
        Change::Refused { failure, refunded, .. } => (failed, back) = (Some(failure), refunded),
        Change::CancelAsked { ask_until: until } => ask_until = Some(until),
        Change::CancelGranted { refunded, .. } => back = refunded,
    }
    let (from, to) = step.change.event().step();
    let (code, detail) = (failed.map(|failure| &failure.code), failed.map(|failure| &failure.detail));
    let (cost, number) = (sold.map(|terms| terms.cost.usd), sold.and_then(|terms| terms.number));
    let native = sold.and_then(|terms| terms.cost.native());
    let news = step.change.news(step.order.is_topup());
    let told = i64::from(news.is_some());
    let values =
        params![step.order, from, to, step.now, ask_until, code, detail, back, cost, number, native, told];
    let Some((account, sequence, balance)) = tx.write_opt(MOVE, values)? else { return Ok(None) };
    if let Some((kind, data)) = news {
        let subject = step.order.as_str();
        events::append(tx, &News { account, kind, subject, sequence, at: step.now, data })?;
    }
    if let Change::Sold { profile, entry, .. } = step.change {
        if let Some(profile) = profile {
            esims::insert(tx, account, profile)?;
        }
        ledger::insert(tx, entry, step.now, ledger::Note::default(), None)?;
    }
    Ok(Some(balance))
}

/// `advance` for orders that were sold, no top-ups among them, in one statement. PostgreSQL only.
fn deliver_all(tx: &mut Tx, steps: &[Step]) -> Result<HashMap<OrderId, Usd>> {
    let mut sold = Vec::with_capacity(steps.len());
    for step in steps {
        if let Change::Sold { profile: Some(profile), entry, terms, told } = step.change {
            sold.push((step, profile, entry, terms, told, legs_of(entry)));
        }
    }
    let mut rows = Vec::with_capacity(sold.len());
    for (step, profile, entry, terms, told, legs) in &sold {
        rows.push([&Delivery::params(step, profile, entry, *terms, told)[..], &Legs::params(legs)].concat());
    }
    let moved: HashMap<OrderId, Usd> = tx.for_each(DELIVER_ALL, &rows)?.into_iter().collect();
    for (_, profile, ..) in sold.iter().filter(|(step, ..)| moved.contains_key(step.order)) {
        esims::begin_due(tx, profile)?;
    }
    Ok(moved)
}

fn legs_of(entry: &Entry) -> [Leg; LEGS] {
    std::array::from_fn(|nth| match entry.postings.get(nth) {
        Some(posting) => Leg { account: Some(posting.account.name()), amount: Some(posting.amount) },
        None => Leg::default(),
    })
}

/// `PROVISIONING → FAILED`: the money goes back, the reference is free again. Answers the balance now.
pub fn fail(
    tx: &mut Tx,
    order: &Order,
    failure: &Failure,
    back: &Payback,
    told: &str,
    now: Time,
) -> Result<Option<Usd>> {
    let change = Change::Refused { failure, refunded: part_of(order, back), told };
    if advance(tx, &[Step { order: &order.id, change, now }])?.is_empty() {
        return Ok(None);
    }
    let entry = Entry::failed(&order.id, back);
    let moved = debts::pay_back(tx, &entry, order, now, ledger::Note::default())?;
    if !order.id.is_topup() {
        wallet::count_failed(tx, order.account)?;
    }
    // A guest's money goes elsewhere than to the account of the order.
    let to_buyer = entry.wallet_change().is_some_and(|(account, _)| account == order.account);
    let balance = match moved.filter(|_| to_buyer) {
        Some(balance) => balance,
        None => wallet::read(tx, order.account)?.balance,
    };
    if let Some(reference) = &order.reference {
        claims::release(tx, order.account, reference, &order.id)?;
    }
    tx.execute(GIVE_BACK_LIMIT, params![&order.key_id, order.price, order.created_at.day()])?;
    Ok(Some(balance))
}

/// What is written down of a payback: nothing when it is the whole price.
pub fn part_of(order: &Order, back: &Payback) -> Option<Usd> {
    Some(back.received()).filter(|received| *received != order.price)
}

pub fn has_live_topup(tx: &mut Tx, id: &OrderId) -> Result<bool> {
    Ok(tx.one::<i64>(LIVE_TOPUPS, params![id])? > 0)
}

/// Takes an open order over from the one who asked before; false when somebody else was faster.
pub fn lease(tx: &mut Tx, id: &OrderId, seen: Time, ask_until: Time) -> Result<bool> {
    Ok(tx.execute(LEASE, params![id, seen, ask_until])? == 1)
}

/// Keeps the supplier's own number for a sale; the first that it told stays.
pub fn keep_number(tx: &mut Tx, id: &OrderId, number: &str) -> Result<()> {
    tx.execute(NUMBER, params![id, number]).map(drop)
}

/// Whether another top-up of the same eSIM has this number of the supplier's.
pub fn topup_has_number(tx: &mut Tx, order: &Order, number: &str) -> Result<bool> {
    tx.any(NUMBER_HELD, params![&order.esim_order, number, &order.id])
}

/// A profile turned up for an order that had failed; `profile` is kept so that it can be cancelled.
pub fn orphan_found(tx: &mut Tx, id: &OrderId, profile: &str, cost: Cost) -> Result<()> {
    tx.execute(ORPHAN_FOUND, params![id, profile, cost.usd, cost.native()]).map(drop)
}

/// Something was sold for an order that had failed, and cannot be taken back; false when that is known already.
pub fn orphan_lost(tx: &mut Tx, id: &OrderId, cost: Cost) -> Result<bool> {
    Ok(tx.execute(ORPHAN_LOST, params![id, cost.usd, cost.native()])? == 1)
}

/// Whether a profile turned up for an order that had failed.
pub fn is_orphan(tx: &mut Tx, profile: &str) -> Result<bool> {
    tx.any(ORPHAN_HELD, params![profile])
}

pub fn orphan_ended(tx: &mut Tx, id: &OrderId, outcome: &str) -> Result<bool> {
    Ok(tx.execute(ORPHAN_ENDED, params![id, outcome])? == 1)
}

pub fn by_id(tx: &mut Tx, id: &OrderId) -> Result<Option<Order>> {
    tx.opt(BY_ID, params![id])
}

/// Those of these orders that exist, in no order.
pub fn by_ids(tx: &mut Tx, ids: &[&OrderId]) -> Result<Vec<Order>> {
    let list: Vec<Param> = ids.iter().map(|id| Param::from(*id)).collect();
    match tx.is_postgres() {
        true => tx.all(BY_IDS, &[Param::List(&list)]),
        false => ids.iter().filter_map(|id| by_id(tx, id).transpose()).collect(),
    }
}

/// The order that delivered the newest profile sold under this ICCID, of any owner.
pub fn by_iccid(tx: &mut Tx, iccid: &str) -> Result<Option<Order>> {
    with_iccid(tx, iccid, 1)?.first().map_or(Ok(None), |id| by_id(tx, id))
}

/// The one with this number. Those that were checkouts are found by these.
pub fn by_number(tx: &mut Tx, number: Number) -> Result<Option<Order>> {
    let found: Option<Order> = tx.opt(BY_NUMBER, params![number.account, number.n])?;
    Ok(found.filter(|order| order.number == Some(number)))
}

/// The orders that delivered this ICCID, newest first.
pub fn with_iccid(tx: &mut Tx, iccid: &str, limit: i64) -> Result<Vec<OrderId>> {
    tx.all(OF_ICCID, params![iccid, limit])
}

pub struct PageQuery {
    pub before_seq: i64,
    pub limit: i64,
    pub offset: i64,
    pub chosen: Chosen,
}

/// Which orders a list holds.
pub enum Chosen {
    /// What was delivered, whether it was given back or not.
    Delivered,
    /// These, and what is still with the supplier.
    Underway,
    Filtered(PageFilter),
}

#[derive(Clone)]
pub struct PageFilter {
    pub status: Option<OrderStatus>,
    pub from: i64,
    pub to: i64,
}

pub fn page(tx: &mut Tx, account: AccountNo, query: &PageQuery) -> Result<Vec<Order>> {
    let (before, limit, offset) = (query.before_seq, query.limit, query.offset);
    match &query.chosen {
        Chosen::Delivered => tx.all(PAGE, params![account, before, limit, offset]),
        Chosen::Underway => tx.all(PAGE_UNDERWAY, params![account, before, limit, offset]),
        Chosen::Filtered(filter) => {
            tx.all(FILTERED, params![account, before, limit, offset, filter.status, filter.from, filter.to])
        }
    }
}

/// How many orders the same query holds in all. Without a filter nothing is counted: the wallet row knows.
pub fn total(tx: &mut Tx, account: AccountNo, chosen: &Chosen) -> Result<i64> {
    match chosen {
        Chosen::Underway => {
            let wallet = wallet::read(tx, account)?;
            Ok(wallet.placed - wallet.failed)
        }
        Chosen::Delivered => {
            let wallet = wallet::read(tx, account)?;
            let waiting: i64 = tx.one(COUNT_PROVISIONING, params![account])?;
            Ok(wallet.placed - wallet.failed - waiting)
        }
        Chosen::Filtered(filter) => {
            tx.one(COUNT_FILTERED, params![account, filter.status, filter.from, filter.to])
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
    tx.all(sql, params![&list])
}

/// Open orders that nobody asks the supplier about now. Asking that begins now ends by `longest`; an order that is
/// reserved for longer was reserved by a clock that was wrong, unless its cancel is under review.
pub fn due(tx: &mut Tx, now: Time, longest: Time, limit: i64) -> Result<Vec<Order>> {
    tx.all(DUE, params![now, limit, longest.and_a_little()])
}

/// Failed orders whose profile is still to be cancelled at the supplier, with that profile.
pub fn orphans(tx: &mut Tx) -> Result<Vec<(OrderId, String)>> {
    tx.all(ORPHANS, &[])
}

/// How many orders have been open since before `then`, by status.
pub fn open_since(tx: &mut Tx, then: Time) -> Result<Vec<(String, i64)>> {
    tx.all(OPEN_COUNTS, params![then])
}

/// For the operator: the newest orders, of one account or all, in one state or any.
pub fn recent(
    tx: &mut Tx,
    account: Option<AccountNo>,
    status: Option<OrderStatus>,
    limit: i64,
) -> Result<Vec<Order>> {
    tx.all(RECENT, params![account, status, limit])
}
