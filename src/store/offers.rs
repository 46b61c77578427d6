//! What decides about a purchase: the wallet, the claim, the plan and its price in one row, and the key's daily limit.
//! On PostgreSQL one statement looks for a whole group of orders.

use std::collections::HashMap;

use super::claims::Claimant;
use super::engine::{Param, Stored, Tx, columns, lists, params, queries, text, values};
use super::prices::sold_at;
use crate::domain::cost::{Billed, Cost};
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::plan::PlanType;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};

/// Selects wallet, claim, plan and price for a given account, reference, code and price list.
macro_rules! select_look {
    ($from:expr, $account:literal, $reference:literal, $code:literal, $price_list:literal, $tail:literal) => {
        text!(
            "SELECT ",
            Look::COLUMNS,
            " FROM ",
            $from,
            concat!(" LEFT JOIN claims c ON c.account = ", $account, " AND c.reference = ", $reference),
            concat!(" LEFT JOIN plans p ON p.code = ", $code, " AND p.on_sale = 1"),
            concat!(" LEFT JOIN prices x ON x.price_list = ", $price_list, " AND x.code = p.code ", $tail)
        )
    };
}

queries! {
    LOOK = select_look!("wallets w", "?1", "?2", "?3", "?4", "WHERE w.account = ?1");
    LOOK_ALL (Postgres) = select_look!(
        text!("unnest(", lists!(Question), ") WITH ORDINALITY AS a (", Question::NAMES, ", n) JOIN wallets w ON w.account = a.account"),
        "a.account", "a.reference", "a.code", "a.price_list", "ORDER BY a.n");
    DAILY_LIMIT = text!("SELECT ", DailyLimit::COLUMNS, " FROM api_keys k WHERE k.id = ?1 AND k.daily_limit IS NOT NULL");
    DAILY_LIMITS (Postgres) = text!("SELECT k.id, ", DailyLimit::COLUMNS, " FROM unnest(CAST(?1 AS TEXT[])) AS a (id)
        JOIN api_keys k ON k.id = a.id WHERE k.daily_limit IS NOT NULL");
    SPEND_LIMIT = "UPDATE api_keys SET spent = ?2, spent_day = ?3 WHERE id = ?1";
}

/// What the deciding read of an order sees, in one row at one moment.
pub struct Look {
    pub balance: Usd,
    pub suspended: bool,
    /// Whether the account has bought something before.
    pub has_paid: bool,
    pub claimed_by: Option<Claimant>,
    pub plan: Option<Offer>,
    /// How many numbers the account has drawn, for orders and for checkouts.
    pub numbers: i64,
    pub opened: i64,
}

columns! {
    Look in "w" {
        balance, suspended,
        has_paid = "CAST(CASE WHEN w.placed > w.failed THEN 1 ELSE 0 END AS BIGINT)",
        claimed_by = "c.order_id",
        plan: Option<Offer> = Offer::COLUMNS,
        numbers, opened,
    }
}

pub struct DailyLimit {
    pub limit: Usd,
    pub day: i64,
    pub spent: Usd,
    /// What its open checkouts ask for: they may be paid at any moment, so they count against the current day.
    pub reserved: Usd,
}

columns! {
    DailyLimit in "k" {
        limit = "k.daily_limit", day = "k.spent_day", spent,
        // An account has few open checkouts.
        reserved = "(SELECT CAST(COALESCE(SUM(c.list_price - c.discount), 0) AS BIGINT) FROM checkouts c
            WHERE c.account = k.account AND c.status IN ('OPEN', 'EXPIRED') AND c.status = 'OPEN' AND c.token = k.id)",
    }
}

impl DailyLimit {
    pub fn spent_on(&self, day: i64) -> Usd {
        if self.day == day { self.spent } else { Usd::ZERO }
    }

    /// What will have been spent; refused when a purchase at this price exceeds the limit.
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
    pub billed: Option<Billed>,
    pub supplier: String,
    pub supplier_code: String,
    pub price: Usd,
}

impl Offer {
    pub fn billed_cost(&self) -> Cost {
        Cost { usd: self.cost, billed: self.billed }
    }
}

// The price comes first: a plan without a price is not sold.
columns! {
    Offer in "p" {
        price = sold_at!("x"), plan_type, name, family, data_mb, duration_days, cost,
        billed: Option<Billed> = "p.native_cost, p.rate", supplier,
        supplier_code = "COALESCE(p.supplier_code, p.code)",
    }
}

/// What an order asks for.
pub struct Asked<'a> {
    pub account: AccountNo,
    pub reference: Option<&'a str>,
    pub package_code: &'a str,
    pub price_list: &'a str,
}

values! {
    Question(asked: Asked<'a>) {
        account: BIGINT, reference: TEXT, code: TEXT = asked.package_code, price_list: TEXT,
    }
}

pub fn look(tx: &mut Tx, asked: &Asked) -> Result<Look> {
    tx.one(LOOK, &Question::params(asked))
}

/// A look for each of them, in one statement. PostgreSQL only.
pub fn look_all(tx: &mut Tx, asked: &[Asked]) -> Result<Vec<Look>> {
    let rows: Vec<_> = asked.iter().map(Question::params).collect();
    let looks = tx.for_each(LOOK_ALL, &rows)?;
    if looks.len() == asked.len() { Ok(looks) } else { Err(Error::fault("an account without a wallet")) }
}

/// A key's daily limit, and what is spent and reserved of it; `None` without a limit. Exact under the wallet's lock.
pub fn daily_limit(tx: &mut Tx, key_id: &str) -> Result<Option<DailyLimit>> {
    tx.opt(DAILY_LIMIT, params![key_id])
}

/// The limits of the keys that have one. PostgreSQL only.
pub fn daily_limits(tx: &mut Tx, keys: &[&str]) -> Result<HashMap<String, DailyLimit>> {
    let rows: Vec<[Param; 1]> = keys.iter().map(|key| [Param::from(*key)]).collect();
    Ok(tx.for_each::<(String, DailyLimit)>(DAILY_LIMITS, &rows)?.into_iter().collect())
}

/// Counts a purchase against its key's daily limit. The caller has locked the wallet and checked.
pub fn spend_limit(tx: &mut Tx, key_id: &str, spent: Usd, day: i64) -> Result<()> {
    tx.execute(SPEND_LIMIT, params![key_id, spent, day]).map(drop)
}
