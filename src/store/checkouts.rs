//! Checkouts and the amounts they reserve. That no two share an amount rests on a unique index; the ring only
//! makes finding a free one a matter of one step, however many are taken.

use super::tx::{Row, Tx, params, queries};
use crate::domain::checkout::{Checkout, CheckoutStatus};
use crate::domain::ids::{AccountNo, InvoiceId, OrderId};
use crate::domain::money::Usd;
use crate::domain::network::{AddressKind, Network};
use crate::domain::time::Time;
use crate::error::Result;

macro_rules! select_checkout {
    ($tail:literal) => {
        concat!(
            "SELECT id, account, token, seq, package_code, plan_name, family, data_mb, duration_days, supplier, cost,
                    list_price, amount, network, address, customer_email, status, order_id, created_at, expires_at,
                    late_until, updated_at FROM checkouts ",
            $tail
        )
    };
}

queries! {
    INSERT = "INSERT INTO checkouts (id, account, token, seq, package_code, plan_name, family, data_mb, duration_days,
                  supplier, cost, list_price, amount, network, address, customer_email, status, reserved, origin,
                  created_at, expires_at, late_until, updated_at)
              VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 'OPEN', 1, ?17, ?18, ?19, ?20, ?18)";
    BY_ID = select_checkout!("WHERE id = ?1");
    /// SQLite needs no lock: a write transaction has the database to itself.
    LOCK (Postgres) = select_checkout!("WHERE id = ?1 FOR UPDATE");
    BY_ORDER = select_checkout!("WHERE order_id IS NOT NULL AND order_id = ?1");
    AT = "SELECT id, account FROM checkouts WHERE address = ?1 AND amount = ?2 AND network = ?3
          AND created_at <= ?4 AND late_until > ?4 ORDER BY created_at DESC LIMIT 1";
    TURN = "INSERT INTO amount_rings (network, address, price, ring, next) VALUES (?1, ?2, ?3, ?4, 1)
            ON CONFLICT (network, address, price, ring) DO UPDATE SET next = amount_rings.next + 1 RETURNING next";
    HOLDER = "SELECT id, late_until, updated_at FROM checkouts WHERE network = ?1 AND address = ?2 AND amount = ?3 AND reserved = 1";
    RELEASE = "UPDATE checkouts SET reserved = 0 WHERE id = ?1";
    NUMBER = "UPDATE wallets SET numbers = numbers + 1 WHERE account = ?1 RETURNING numbers";
    OPEN_COUNT = "SELECT COUNT(*) FROM checkouts WHERE account = ?1 AND status IN ('OPEN', 'EXPIRED') AND status = 'OPEN' AND created_at > ?2";
    UNPAID = "SELECT COUNT(*) FROM checkouts WHERE account = ?1 AND status IN ('OPEN', 'EXPIRED') AND created_at > ?2";
    UNPAID_FROM = "SELECT COUNT(*) FROM checkouts WHERE origin = ?1 AND status IN ('OPEN', 'EXPIRED') AND created_at > ?2";
    KEY = "SELECT body, checkout FROM checkout_keys WHERE account = ?1 AND name = ?2";
    ADD_KEY = "INSERT INTO checkout_keys (account, name, body, checkout) VALUES (?1, ?2, ?3, ?4)";
    END = "UPDATE checkouts SET status = ?2, order_id = ?3, updated_at = ?4 WHERE id = ?1 AND status IN ('OPEN', 'EXPIRED')";
    TOUCH = "UPDATE checkouts SET updated_at = ?2 WHERE id = ?1";
    EXPIRE = "UPDATE checkouts SET status = 'EXPIRED', updated_at = ?3 WHERE status = 'OPEN' AND id IN (
                  SELECT c.id FROM checkouts c WHERE c.network = ?1 AND c.status = 'OPEN' AND c.expires_at < ?2
                  AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.invoice IS NOT NULL AND t.invoice = c.id AND t.block IS NOT NULL)
                  ORDER BY c.expires_at LIMIT 500)";
    DUE = "SELECT 1 FROM checkouts c WHERE c.network = ?1 AND c.status = 'OPEN' AND c.expires_at < ?2
           AND NOT EXISTS (SELECT 1 FROM transfers t WHERE t.invoice IS NOT NULL AND t.invoice = c.id AND t.block IS NOT NULL) LIMIT 1";
    SERVING = "SELECT address, watch_until FROM addresses WHERE kind = ?1 AND fingerprint = ?2 AND serves IS NOT NULL AND serves = ?3";
    SERVE = "UPDATE addresses SET serves = ?2 WHERE address = ?1";
    NEAR = select_checkout!("WHERE address = ?1 AND amount >= ?2 AND amount <= ?3 AND created_at <= ?4 AND late_until > ?4
                             ORDER BY created_at DESC LIMIT 10");
}

pub fn insert(tx: &mut Tx, checkout: &Checkout, origin: &str) -> Result<()> {
    let values = params![
        checkout.id.as_str(),
        checkout.account,
        &checkout.token,
        checkout.seq,
        &checkout.package_code,
        &checkout.plan_name,
        &checkout.family,
        checkout.data_mb,
        checkout.duration_days,
        &checkout.supplier,
        checkout.cost,
        checkout.list_price,
        checkout.amount,
        checkout.network.as_str(),
        &checkout.address,
        checkout.customer_email.as_deref(),
        origin,
        checkout.created_at,
        checkout.expires_at,
        checkout.late_until
    ];
    tx.execute(INSERT, values).map(drop)
}

pub fn by_id(tx: &mut Tx, id: &InvoiceId) -> Result<Option<Checkout>> {
    tx.opt(BY_ID, params![id.as_str()], read)
}

/// The same, and nobody else changes it before this write ends.
pub fn lock(tx: &mut Tx, id: &InvoiceId) -> Result<Option<Checkout>> {
    let sql = if tx.is_postgres() { LOCK } else { BY_ID };
    tx.opt(sql, params![id.as_str()], read)
}

pub fn by_order(tx: &mut Tx, order: &OrderId) -> Result<Option<Checkout>> {
    tx.opt(BY_ORDER, params![order], read)
}

/// Whose payment of this amount at this time is: the checkout that was open then, or in its late hours.
pub fn at(
    tx: &mut Tx,
    network: Network,
    address: &str,
    amount: Usd,
    block_time: Time,
) -> Result<Option<(InvoiceId, AccountNo)>> {
    tx.opt(AT, params![address, amount, network.as_str(), block_time], |row| {
        Ok((InvoiceId::from_text(row.text(0)?), AccountNo(row.int(1)?)))
    })
}

/// One ring of amounts below a price, on one address.
pub struct Ring<'a> {
    pub network: Network,
    pub address: &'a str,
    pub price: Usd,
    pub number: i64,
}

/// The next place of a ring. It is taken for good, whether its amount proves to be free or not.
pub fn next_place(tx: &mut Tx, ring: &Ring) -> Result<i64> {
    let values = params![ring.network.as_str(), ring.address, ring.price, ring.number];
    let turned = tx.write_opt(TURN, values, |row| row.int(0))?;
    turned.ok_or_else(|| crate::error::Error::fault("a ring that does not turn"))
}

/// Who reserves an amount.
pub struct Holder {
    pub id: InvoiceId,
    pub late_until: Time,
    pub updated_at: Time,
}

pub fn holder(tx: &mut Tx, network: Network, address: &str, amount: Usd) -> Result<Option<Holder>> {
    tx.opt(HOLDER, params![network.as_str(), address, amount], |row| {
        Ok(Holder {
            id: InvoiceId::from_text(row.text(0)?),
            late_until: row.time(1)?,
            updated_at: row.time(2)?,
        })
    })
}

/// The amount may be used again.
pub fn release(tx: &mut Tx, id: &InvoiceId) -> Result<()> {
    tx.execute(RELEASE, params![id.as_str()]).map(drop)
}

/// Takes the account's next order number.
pub fn take_number(tx: &mut Tx, account: AccountNo) -> Result<i64> {
    let number = tx.write_opt(NUMBER, params![account], |row| row.int(0))?;
    number.ok_or_else(|| crate::error::Error::fault("an account without a wallet"))
}

/// How many checkouts of an account are open, and how many are unpaid, of those made after `since`.
pub fn counts(tx: &mut Tx, account: AccountNo, since: Time) -> Result<(i64, i64)> {
    let open = tx.one(OPEN_COUNT, params![account, since], |row| row.int(0))?;
    let unpaid = tx.one(UNPAID, params![account, since], |row| row.int(0))?;
    Ok((open, unpaid))
}

pub fn unpaid_from(tx: &mut Tx, origin: &str, since: Time) -> Result<i64> {
    tx.one(UNPAID_FROM, params![origin, since], |row| row.int(0))
}

/// What was asked for under this key, and the checkout that came of it.
pub fn by_key(tx: &mut Tx, account: AccountNo, name: &str) -> Result<Option<(String, InvoiceId)>> {
    tx.opt(KEY, params![account, name], |row| Ok((row.text(0)?, InvoiceId::from_text(row.text(1)?))))
}

pub fn add_key(tx: &mut Tx, account: AccountNo, name: &str, body: &str, id: &InvoiceId) -> Result<()> {
    tx.execute(ADD_KEY, params![account, name, body, id.as_str()]).map(drop)
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

/// Something about its payment changed.
pub fn touch(tx: &mut Tx, id: &InvoiceId, now: Time) -> Result<bool> {
    Ok(tx.execute(TOUCH, params![id.as_str(), now])? == 1)
}

pub fn any_due(tx: &mut Tx, network: Network, before: Time) -> Result<bool> {
    Ok(tx.opt(DUE, params![network.as_str(), before], |_| Ok(()))?.is_some())
}

/// Closes checkouts of which nothing was seen. At most 500 at once.
pub fn expire(tx: &mut Tx, network: Network, before: Time, now: Time) -> Result<u64> {
    tx.execute(EXPIRE, params![network.as_str(), before, now])
}

/// The house's n-th address for checkouts, counted from 1, and until when it is watched.
pub fn serving(
    tx: &mut Tx,
    kind: AddressKind,
    fingerprint: &str,
    number: i64,
) -> Result<Option<(String, Time)>> {
    tx.opt(SERVING, params![kind.as_str(), fingerprint, number], |row| Ok((row.text(0)?, row.time(1)?)))
}

pub fn serve(tx: &mut Tx, address: &str, number: i64) -> Result<()> {
    tx.execute(SERVE, params![address, number]).map(drop)
}

/// Checkouts that a wrong amount may have been meant for.
pub fn near(tx: &mut Tx, address: &str, from: Usd, to: Usd, block_time: Time) -> Result<Vec<Checkout>> {
    tx.all(NEAR, params![address, from, to, block_time], read)
}

fn read(row: &Row) -> Result<Checkout> {
    Ok(Checkout {
        id: InvoiceId::from_text(row.text(0)?),
        account: AccountNo(row.int(1)?),
        token: row.text(2)?,
        seq: row.int(3)?,
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
        customer_email: row.opt_text(15)?,
        status: row.word(16, CheckoutStatus::parse)?,
        order: row.opt_text(17)?.map(OrderId::from_text),
        created_at: row.time(18)?,
        expires_at: row.time(19)?,
        late_until: row.time(20)?,
        updated_at: row.time(21)?,
    })
}
