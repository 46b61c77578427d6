//! Plans and their prices. Requests are served from a snapshot in memory; orders read their price here.

use std::collections::HashMap;
use std::sync::Arc;

use super::engine::{Stored, Tx, columns, insert_into, lists, params, queries, text, values};
use super::prices::sold_at;
use super::{details, meta};
use crate::domain::cost::{Billed, Rate};
use crate::domain::money::Usd;
use crate::domain::plan::{DEFAULT_PRICE_LIST, Plan, PlanType, RETAIL_PRICE_LIST};
use crate::error::Result;

/// A plan that is there is replaced, if it is this supplier's.
macro_rules! or_update {
    () => {
        "ON CONFLICT (code) DO UPDATE SET name = excluded.name, plan_type = excluded.plan_type, family = excluded.family,
             countries = excluded.countries, data_mb = excluded.data_mb, duration_days = excluded.duration_days,
             operator = excluded.operator, details = excluded.details, supplier_code = excluded.supplier_code,
             cost = excluded.cost, native_cost = excluded.native_cost, rate = excluded.rate, on_sale = excluded.on_sale, listed = 1
         WHERE plans.supplier = excluded.supplier"
    };
}

queries! {
    PUT = text!(insert_into!("plans", Put), " ", or_update!());
    PUT_ALL (Postgres) = text!("INSERT INTO plans (", Put::NAMES, ") SELECT * FROM unnest(", lists!(Put), ") ", or_update!(), " RETURNING on_sale");
    KNOWN = text!("SELECT ", Known::COLUMNS, " FROM plans p WHERE p.supplier = ?1 ORDER BY p.code");
    WITHDRAW = "UPDATE plans SET on_sale = 0, listed = 0 WHERE code = ?1";
    SHELVE = "UPDATE plans SET on_sale = ?4 * listed WHERE supplier = ?1 AND code >= ?2 AND code <= ?3";
    SOLD_OUT = "UPDATE plans SET on_sale = 0 WHERE code = ?1 AND supplier = ?2 AND COALESCE(supplier_code, code) = ?3 AND on_sale = 1";
    COUNT = "SELECT COUNT(*) FROM plans WHERE on_sale = 1";
    OTHER_RATE = "SELECT p.code, p.native_cost FROM plans p WHERE p.supplier = ?1 AND p.listed = 1 AND p.rate <> ?2 ORDER BY p.code LIMIT ?3";
    COSTS_NOW = "UPDATE plans SET cost = ?3, rate = ?4 WHERE code = ?1 AND native_cost = ?2
                AND EXISTS (SELECT 1 FROM suppliers s WHERE s.name = plans.supplier AND s.rate = ?4)";
    /// A part is cut before the join. Otherwise PostgreSQL may join and sort all that is left for every part.
    PRICED = text!("SELECT x.price_list, x.code, ", Plan::COLUMNS, ", p.details
               FROM (SELECT * FROM prices WHERE (price_list, code) > (?1, ?2) ORDER BY price_list, code LIMIT 500) x
               LEFT JOIN plans p ON p.code = x.code AND p.on_sale = 1 AND ", sold_at!("x"), " > 0
               LEFT JOIN prices r ON r.price_list = 'retail' AND r.code = p.code ORDER BY x.price_list, x.code");
}

columns! {
    Plan in "p" {
        code, name, plan_type, family, countries: String, data_mb, duration_days, operator, cost,
        billed: Option<Billed> = "p.native_cost, p.rate", wholesale = sold_at!("x"),
        retail = concat!("COALESCE(", sold_at!("r"), ", 0)"),
    } => Plan {
        countries: countries.split(',').map(str::to_string).collect(),
        code, name, plan_type, family, data_mb, duration_days, operator, cost, billed, wholesale, retail,
        // `on_sale` reads them, to share them.
        details: Arc::default(),
    }
}

values! {
    Put(plan: Plan, countries: &'a str, details: Option<&'a str>, supplier: &'a str, supplier_code: &'a str, on_sale: bool) {
        code: TEXT, name: TEXT, plan_type: TEXT, family: TEXT, countries: TEXT = countries, data_mb: BIGINT, duration_days: BIGINT,
        operator: TEXT, details: TEXT = details, supplier: TEXT = supplier, supplier_code: TEXT = supplier_code, cost: BIGINT,
        native_cost: BIGINT = plan.billed.map(|billed| billed.micros), rate: BIGINT = plan.billed.map(|billed| billed.rate),
        on_sale: BIGINT = on_sale,
    }
}

/// Adds or updates plans, each with the supplier's code of it. Nobody sees them before they have prices, which
/// `ops::prices::reprice` makes.
pub fn put(tx: &mut Tx, plans: &[(Plan, String)], supplier: &str, on_sale: bool) -> Result<()> {
    let countries: Vec<String> = plans.iter().map(|(plan, _)| plan.countries.join(",")).collect();
    let details = plans.iter().map(|(plan, _)| details::write(&plan.details)).collect::<Result<Vec<_>>>()?;
    let texts = countries.iter().zip(&details);
    let rows = plans.iter().zip(texts).map(|((plan, supplier_code), (countries, details))| {
        Put::params(plan, countries, details.as_deref(), supplier, supplier_code, on_sale)
    });
    if tx.is_postgres() {
        return tx.for_each::<i64>(PUT_ALL, &rows.collect::<Vec<_>>()).map(drop);
    }
    rows.into_iter().try_for_each(|row| tx.execute(PUT, &row).map(drop))
}

/// A supplier's plan as the catalog has it.
pub struct Known {
    pub code: String,
    pub supplier_code: String,
    pub name: String,
    pub plan_type: PlanType,
    pub family: String,
    pub countries: String,
    pub data_mb: i64,
    pub duration_days: i64,
    pub operator: String,
    pub cost: Usd,
    /// Whether the supplier had it at the last sync.
    pub listed: bool,
    pub on_sale: bool,
}

columns! {
    Known in "p" {
        code, supplier_code = "COALESCE(p.supplier_code, p.code)", name, plan_type, family, countries, data_mb, duration_days,
        operator, cost, listed, on_sale,
    }
}

/// Every plan that a supplier ever had.
pub fn known(tx: &mut Tx, supplier: &str) -> Result<Vec<Known>> {
    tx.all(KNOWN, params![supplier])
}

/// Puts those of a supplier's plans on sale that it has, or takes them off without forgetting that it has them: all from
/// the first code to the last.
pub fn shelve(tx: &mut Tx, supplier: &str, first: &str, last: &str, on_sale: bool) -> Result<()> {
    tx.execute(SHELVE, params![supplier, first, last, on_sale]).map(drop)
}

/// Withdraws a plan that the supplier no longer has: nobody can order it, and its orders stay as they are.
pub fn withdraw(tx: &mut Tx, code: &str) -> Result<()> {
    tx.execute(WITHDRAW, params![code]).map(drop)
}

/// Withdraws a plan that this supplier has none left of; false when it is off sale, or another supplier's by now.
pub fn withdraw_sold_out(tx: &mut Tx, code: &str, supplier: &str, supplier_code: &str) -> Result<bool> {
    Ok(tx.execute(SOLD_OUT, params![code, supplier, supplier_code])? == 1)
}

/// Plans of a supplier whose cost is at another rate than this one: their codes, and what is billed for them.
pub fn at_another_rate(tx: &mut Tx, supplier: &str, rate: Rate, limit: i64) -> Result<Vec<(String, i64)>> {
    tx.all(OTHER_RATE, params![supplier, rate, limit])
}

/// Gives a plan its cost at its supplier's rate, unless its bill or the rate has changed meanwhile.
pub fn cost_at(tx: &mut Tx, code: &str, billed: Billed, cost: Usd) -> Result<()> {
    tx.execute(COSTS_NOW, params![code, billed.micros, cost, billed.rate]).map(drop)
}

pub fn count(tx: &mut Tx) -> Result<i64> {
    tx.one(COUNT, &[])
}

/// Ends a sync: from here on every instance loads the new catalog.
pub fn publish(tx: &mut Tx) -> Result<()> {
    meta::bump(tx, meta::Version::Catalog).map(drop)
}

/// Everything on sale, by price list; `wholesale` is that list's price, and `retail` is 0 for what users cannot buy. The
/// users' list holds the plans of the default list, as far as they are there: a copy of the whole catalog would only fill
/// memory. Rows are read in parts, because all of them at once would hold the catalog in memory twice.
pub fn on_sale(tx: &mut Tx) -> Result<HashMap<String, Vec<Arc<Plan>>>> {
    let mut lists: HashMap<String, Vec<Arc<Plan>>> = HashMap::new();
    let mut known = details::Known::default();
    let mut last = (String::new(), String::new());
    loop {
        let part: Vec<(String, String, Option<Plan>, Option<String>)> =
            tx.all(PRICED, params![&last.0, &last.1])?;
        let Some((list, code, ..)) = part.last() else { break };
        last = (list.clone(), code.clone());
        for (list, _, plan, details) in part {
            let Some(plan) = plan else { continue };
            let details = known.read(details, &plan.code);
            let by_default = if list == RETAIL_PRICE_LIST { by_default(&lists, &plan) } else { None };
            let plan = by_default.unwrap_or_else(|| Arc::new(Plan { details, ..plan }));
            lists.entry(list).or_default().push(plan);
        }
    }
    lists.values_mut().for_each(Vec::shrink_to_fit);
    Ok(lists)
}

/// The same plan on the default list, whose rows come first and sorted.
fn by_default(lists: &HashMap<String, Vec<Arc<Plan>>>, plan: &Plan) -> Option<Arc<Plan>> {
    let plans = lists.get(DEFAULT_PRICE_LIST)?;
    let place = plans.binary_search_by(|other| other.code.cmp(&plan.code)).ok()?;
    Some(plans[place].clone())
}
