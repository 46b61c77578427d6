//! What decides about a purchase: the wallet, the claim, the plan and its price in one row, and the key's daily limit.
//! On PostgreSQL a whole group of orders looks in one statement.

use std::collections::HashMap;

use super::claims::Claimant;
use super::tx::{Param, Row, Tx, params, queries};
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::plan::PlanType;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};

/// Wallet, claim, plan and price, for the account, reference, code and price list that are given.
macro_rules! select_look {
    ($from:literal, $account:literal, $reference:literal, $code:literal, $price_list:literal, $tail:literal) => {
        concat!(
            "SELECT w.balance, w.suspended, c.order_id,
                    p.plan_type, p.name, p.family, p.data_mb, p.duration_days, p.cost, p.supplier, x.price, w.numbers, w.opened
             FROM ",
            $from,
            "
             LEFT JOIN claims c ON c.account = ",
            $account,
            " AND c.reference = ",
            $reference,
            "
             LEFT JOIN plans p ON p.code = ",
            $code,
            " AND p.on_sale = 1
             LEFT JOIN prices x ON x.price_list = ",
            $price_list,
            " AND x.code = p.code ",
            $tail
        )
    };
}

/// A key's daily limit, what was spent of it, and what its open checkouts ask for. An account has few of those.
macro_rules! select_limit {
    ($from:literal) => {
        concat!(
            "SELECT k.id, k.daily_limit, k.spent_day, k.spent,
                    (SELECT CAST(COALESCE(SUM(c.list_price - c.discount), 0) AS BIGINT) FROM checkouts c
                     WHERE c.account = k.account AND c.status IN ('OPEN', 'EXPIRED') AND c.status = 'OPEN' AND c.token = k.id)
             FROM ",
            $from
        )
    };
}

queries! {
    LOOK = select_look!("wallets w", "?1", "?2", "?3", "?4", "WHERE w.account = ?1");
    LOOK_ALL (Postgres) = select_look!(
        "unnest(CAST(?1 AS BIGINT[]), CAST(?2 AS TEXT[]), CAST(?3 AS TEXT[]), CAST(?4 AS TEXT[]))
            WITH ORDINALITY AS a (account, reference, code, price_list, n) JOIN wallets w ON w.account = a.account",
        "a.account", "a.reference", "a.code", "a.price_list", "ORDER BY a.n");
    DAILY_LIMIT = select_limit!("api_keys k WHERE k.id = ?1 AND k.daily_limit IS NOT NULL");
    DAILY_LIMITS (Postgres) = select_limit!("unnest(CAST(?1 AS TEXT[])) AS a (id)
        JOIN api_keys k ON k.id = a.id WHERE k.daily_limit IS NOT NULL");
    SPEND_LIMIT = "UPDATE api_keys SET spent = ?2, spent_day = ?3 WHERE id = ?1";
}

/// What the deciding read of an order sees: one row, one moment.
pub struct Look {
    pub balance: Usd,
    pub suspended: bool,
    pub claimed_by: Option<Claimant>,
    pub plan: Option<Offer>,
    /// How many numbers the account has drawn, for orders and for checkouts.
    pub numbers: i64,
    pub opened: i64,
}

pub struct DailyLimit {
    pub limit: Usd,
    pub day: i64,
    pub spent: Usd,
    /// What its open checkouts ask for: they may be paid at any moment, so they count against the day that it is.
    pub reserved: Usd,
}

impl DailyLimit {
    pub fn spent_on(&self, day: i64) -> Usd {
        if self.day == day { self.spent } else { Usd::ZERO }
    }

    /// What will have been spent, if a purchase at this price is within the limit.
    pub fn after(&self, price: Usd, day: i64) -> Result<Usd, Refusal> {
        let spent = self.spent_on(day).plus(price);
        let within = spent.plus(self.reserved) <= self.limit;
        if within { Ok(spent) } else { Err(Refusal::DailyLimit { limit: self.limit }) }
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

/// What an order asks for.
pub struct Asked<'a> {
    pub account: AccountNo,
    pub reference: Option<&'a str>,
    pub package_code: &'a str,
    pub price_list: &'a str,
}

impl<'a> Asked<'a> {
    fn params(&self) -> Vec<Param<'a>> {
        params![self.account, self.reference, self.package_code, self.price_list].to_vec()
    }
}

pub fn look(tx: &mut Tx, asked: &Asked) -> Result<Look> {
    tx.one(LOOK, &asked.params(), read_look)
}

/// A look for each of them, in one statement. PostgreSQL only.
pub fn look_all(tx: &mut Tx, asked: &[Asked]) -> Result<Vec<Look>> {
    let rows: Vec<_> = asked.iter().map(Asked::params).collect();
    let looks = tx.for_each(LOOK_ALL, &rows, read_look)?;
    if looks.len() == asked.len() { Ok(looks) } else { Err(Error::fault("an account without a wallet")) }
}

fn read_look(row: &Row) -> Result<Look> {
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
        claimed_by: row.opt_text(2)?.map(Claimant::from_text),
        plan,
        numbers: row.int(11)?,
        opened: row.int(12)?,
    })
}

/// A key's daily limit and what was spent and is reserved of it, if it has one. Exact under the wallet's lock.
pub fn daily_limit(tx: &mut Tx, key_id: &str) -> Result<Option<DailyLimit>> {
    tx.opt(DAILY_LIMIT, params![key_id], read_limit)
}

/// The limits of those of these keys that have one. PostgreSQL only.
pub fn daily_limits(tx: &mut Tx, keys: &[&str]) -> Result<HashMap<String, DailyLimit>> {
    let rows: Vec<Vec<Param>> = keys.iter().map(|key| params![*key].to_vec()).collect();
    let found = tx.for_each(DAILY_LIMITS, &rows, |row| Ok((row.text(0)?, read_limit(row)?)))?;
    Ok(found.into_iter().collect())
}

fn read_limit(row: &Row) -> Result<DailyLimit> {
    Ok(DailyLimit { limit: row.usd(1)?, day: row.int(2)?, spent: row.usd(3)?, reserved: row.usd(4)? })
}

/// Counts a purchase against its key's daily limit. The caller has locked the wallet and checked.
pub fn spend_limit(tx: &mut Tx, key_id: &str, spent: Usd, day: i64) -> Result<()> {
    tx.execute(SPEND_LIMIT, params![key_id, spent, day]).map(drop)
}
