//! Coupons and who used them. A coupon's row is locked before its uses are counted, and always after the wallet's, so
//! that two purchases cannot both take the last use. `used` on the row is the number of uses that are reserved or
//! spent, `held_by_guests` of those that guests have reserved; the schema refuses more of them than the coupon allows.

use std::collections::HashMap;

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use crate::domain::account::GUESTS;
use crate::domain::coupon::{Applied, Coupon, Discount, UNTOLD, UseEvent, UseState};
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::{Error, Result};

macro_rules! select_coupon {
    ($($tail:expr),+) => {
        text!("SELECT ", Coupon::COLUMNS, " FROM coupons ", $($tail),+)
    };
}

/// Those that may be told to anybody.
macro_rules! official {
    () => {
        "WHERE affiliate = 0 AND disabled_at IS NULL AND (starts_at IS NULL OR starts_at <= ?1)
             AND (ends_at IS NULL OR ends_at > ?1) AND (uses IS NULL OR used < uses) AND code NOT LIKE ?2 "
    };
}

queries! {
    INSERT = insert_into!("coupons", New);
    BY_CODE and LOCK = select_coupon!("WHERE code = ?1");
    ALL_COUPONS = select_coupon!("ORDER BY created_at, code");
    OFFICIAL = select_coupon!(official!(), "ORDER BY created_at DESC, code LIMIT ?3");
    COUNT_OFFICIAL = concat!("SELECT COUNT(*) FROM coupons ", official!());
    DISABLE = "UPDATE coupons SET disabled_at = ?2 WHERE code = ?1 AND disabled_at IS NULL";
    COUNT = "UPDATE coupons SET used = used + ?2, held_by_guests = held_by_guests + ?3 WHERE code = ?1";
    TAKE = "INSERT INTO coupon_uses (holder, code, account, state, order_id, created_at, updated_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)";
    STATE = "SELECT state FROM coupon_uses WHERE holder = ?1";
    OF_ORDER = "SELECT holder FROM coupon_uses WHERE order_id IS NOT NULL AND order_id = ?1";
    MOVE = "UPDATE coupon_uses SET state = ?3, order_id = COALESCE(?4, order_id), updated_at = ?5
            WHERE holder = ?1 AND state = ?2 RETURNING code, account";
    USED_BY = "SELECT COUNT(*) FROM coupon_uses WHERE code = ?1 AND account = ?2 AND state IN ('RESERVED', 'SPENT')";
    /// Worded so that the index fits.
    HELD_BY = "SELECT COUNT(*) FROM coupon_uses WHERE code = ?1 AND account = ?2 AND state IN ('RESERVED', 'SPENT') AND state = 'RESERVED'";
    COUNTRIES = "SELECT countries FROM plans WHERE code = ?1";
    TALLY = "SELECT code, CAST(SUM(CASE WHEN state = 'RESERVED' THEN 1 ELSE 0 END) AS BIGINT),
                    CAST(SUM(CASE WHEN state = 'SPENT' THEN 1 ELSE 0 END) AS BIGINT)
             FROM coupon_uses GROUP BY code";
}

columns! { Applied { code = "coupon", discount } }

columns! {
    Coupon {
        code, percent: Option<i64>, fixed: Option<Usd>, affiliate, applicability, package_code, country, min_price,
        starts_at, ends_at, uses, uses_per_user, below_cost, description, used, created_at, disabled_at, held_by_guests,
    } => Coupon {
        discount: match (percent, fixed) {
            (Some(percent), None) => Discount::Percent(percent),
            (None, Some(amount)) => Discount::Fixed(amount),
            _ => return Err(Error::fault("a coupon is a share or an amount")),
        },
        code, affiliate, applicability, package_code, country, min_price, starts_at, ends_at, uses, uses_per_user,
        below_cost, description, used, created_at, disabled_at, held_by_guests,
    }
}

values! {
    New(new: Coupon, percent: Option<i64>, fixed: Option<Usd>) {
        code, percent = percent, fixed = fixed, affiliate, applicability, package_code, country, min_price, starts_at,
        ends_at, uses, uses_per_user, below_cost, description, used = 0, created_at,
    }
}

pub fn create(tx: &mut Tx, coupon: &Coupon) -> Result<()> {
    let (percent, fixed) = match coupon.discount {
        Discount::Percent(percent) => (Some(percent), None),
        Discount::Fixed(amount) => (None, Some(amount)),
    };
    tx.execute(INSERT, &New::params(coupon, percent, fixed)).map(drop)
}

pub fn by_code(tx: &mut Tx, code: &str) -> Result<Option<Coupon>> {
    tx.opt(BY_CODE, params![code])
}

/// The same, and nobody else takes a use of it or gives one back before this write ends.
pub fn lock(tx: &mut Tx, code: &str) -> Result<Option<Coupon>> {
    tx.lock(LOCK, params![code])
}

pub fn list(tx: &mut Tx) -> Result<Vec<Coupon>> {
    tx.all(ALL_COUPONS, &[])
}

/// Ours, active, and not of those that are told to nobody: the newest, at most `most`, and how many there are.
pub fn official(tx: &mut Tx, most: i64, now: Time) -> Result<(Vec<Coupon>, i64)> {
    let untold = format!("{UNTOLD}%");
    let shown = tx.all(OFFICIAL, params![now, &untold, most])?;
    let count = tx.one(COUNT_OFFICIAL, params![now, &untold])?;
    Ok((shown, count))
}

/// False when it was disabled before.
pub fn disable(tx: &mut Tx, code: &str, now: Time) -> Result<bool> {
    Ok(tx.execute(DISABLE, params![code, now])? == 1)
}

/// A use of a coupon: who holds it, and for which account.
pub struct Use<'a> {
    /// An invoice id, or the id of an order that a wallet paid for.
    pub holder: &'a str,
    pub code: &'a str,
    pub account: AccountNo,
    pub state: UseState,
    pub order: Option<&'a OrderId>,
    pub now: Time,
}

/// Takes a use, or writes down for whom one is to be taken. The caller has locked the coupon and found that it has one.
pub fn take(tx: &mut Tx, taken: &Use) -> Result<()> {
    let Use { holder, code, account, state, order, now } = *taken;
    tx.execute(TAKE, params![holder, code, account, state, order, now])?;
    count(tx, &(code.to_string(), account), UseState::Returned, state)
}

pub fn state_of(tx: &mut Tx, holder: &str) -> Result<Option<UseState>> {
    tx.opt(STATE, params![holder])
}

/// The holder of the use that an order spent.
pub fn holder_for(tx: &mut Tx, order: &OrderId) -> Result<Option<String>> {
    tx.opt(OF_ORDER, params![order])
}

/// Changes the state of a use, and counts it. Nothing else does. A payment names its order. Where a returned use is
/// taken again, the caller has locked the coupon and found that it has one. False when the use was in another state, or
/// its state does not allow this.
pub fn advance(
    tx: &mut Tx,
    holder: &str,
    stood: UseState,
    event: UseEvent,
    order: Option<&OrderId>,
    now: Time,
) -> Result<bool> {
    let Some(next) = stood.after(event) else { return Ok(false) };
    let Some(moved) = tx.write_opt(MOVE, params![holder, stood, next, order, now])? else { return Ok(false) };
    count(tx, &moved, stood, next)?;
    Ok(true)
}

/// A checkout does not need its use any more. Nothing happens unless it is reserved.
pub fn release(tx: &mut Tx, holder: &str, now: Time) -> Result<()> {
    advance(tx, holder, UseState::Reserved, UseEvent::GivenBack, None, now).map(drop)
}

/// A use of this coupon by this account went from one state to the other.
fn count(tx: &mut Tx, (code, account): &(String, AccountNo), from: UseState, to: UseState) -> Result<()> {
    let is_held = |state| i64::from(state == UseState::Reserved && *account == GUESTS);
    let used = i64::from(to.is_live()) - i64::from(from.is_live());
    let held_by_guests = is_held(to) - is_held(from);
    if used == 0 && held_by_guests == 0 {
        return Ok(());
    }
    match tx.execute(COUNT, params![code, used, held_by_guests])? {
        1 => Ok(()),
        _ => Err(Error::fault("a use without its coupon")),
    }
}

/// How many uses this account has reserved or spent.
pub fn used_by(tx: &mut Tx, code: &str, account: AccountNo) -> Result<i64> {
    tx.one(USED_BY, params![code, account])
}

/// How many uses this account's open checkouts have reserved.
pub fn held_by(tx: &mut Tx, code: &str, account: AccountNo) -> Result<i64> {
    tx.one(HELD_BY, params![code, account])
}

/// What a plan covers.
pub fn countries(tx: &mut Tx, package_code: &str) -> Result<Vec<String>> {
    let found: Option<String> = tx.opt(COUNTRIES, params![package_code])?;
    Ok(found.unwrap_or_default().split(',').map(str::to_string).collect())
}

/// How many uses of each coupon are reserved, and how many spent; those that nobody used are missing.
pub fn tally(tx: &mut Tx) -> Result<HashMap<String, (i64, i64)>> {
    Ok(tx.all::<(String, (i64, i64))>(TALLY, &[])?.into_iter().collect())
}
