//! Plans and their prices. Requests are served from a snapshot in memory; orders read their price here.

use std::collections::HashMap;
use std::sync::Arc;

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use super::meta;
use crate::domain::plan::{Plan, RETAIL_PRICE_LIST};
use crate::error::Result;

queries! {
    PUT = text!(insert_into!("plans", Put), "
           ON CONFLICT (code) DO UPDATE SET name = excluded.name, plan_type = excluded.plan_type, family = excluded.family,
               countries = excluded.countries, data_mb = excluded.data_mb, duration_days = excluded.duration_days,
               operator = excluded.operator, supplier = excluded.supplier, supplier_code = excluded.supplier_code, cost = excluded.cost, retail = excluded.retail, on_sale = 1");
    PUT_PRICE = "INSERT INTO prices (price_list, code, price) VALUES (?1, ?2, ?3)
                 ON CONFLICT (price_list, code) DO UPDATE SET price = excluded.price";
    CODES = "SELECT code FROM plans WHERE supplier = ?1 AND on_sale = 1";
    WITHDRAW = "UPDATE plans SET on_sale = 0 WHERE code = ?1";
    SOLD_OUT = "UPDATE plans SET on_sale = 0 WHERE code = ?1 AND supplier = ?2 AND COALESCE(supplier_code, code) = ?3 AND on_sale = 1";
    COUNT = "SELECT COUNT(*) FROM plans WHERE on_sale = 1";
    ON_SALE = text!("SELECT x.price_list, ", Plan::COLUMNS, "
               FROM plans p JOIN prices x ON x.code = p.code WHERE p.on_sale = 1 AND x.price_list <> 'retail'
               AND (x.price_list, x.code) > (?1, ?2) ORDER BY x.price_list, x.code LIMIT 500");
}

columns! {
    Plan in "p" {
        code, name, plan_type, family, countries: String, data_mb, duration_days, operator, cost, wholesale = "x.price",
        retail,
    } => Plan {
        countries: countries.split(',').map(str::to_string).collect(),
        code, name, plan_type, family, data_mb, duration_days, operator, cost, wholesale, retail,
    }
}

values! {
    Put(plan: Plan, countries: &'a str, supplier: &'a str, supplier_code: &'a str) {
        code, name, plan_type, family, countries = countries, data_mb, duration_days, operator, supplier = supplier, supplier_code = supplier_code, cost,
        retail, on_sale = true,
    }
}

/// Adds or updates a plan, on sale, with its price on one list and its retail price on the users' list.
pub fn put(tx: &mut Tx, plan: &Plan, supplier: &str, supplier_code: &str, price_list: &str) -> Result<()> {
    let countries = plan.countries.join(",");
    tx.execute(PUT, &Put::params(plan, &countries, supplier, supplier_code))?;
    tx.execute(PUT_PRICE, params![price_list, &plan.code, plan.wholesale])?;
    tx.execute(PUT_PRICE, params![RETAIL_PRICE_LIST, &plan.code, plan.retail]).map(drop)
}

pub fn codes_on_sale(tx: &mut Tx, supplier: &str) -> Result<Vec<String>> {
    tx.all(CODES, params![supplier])
}

/// Withdraws a plan that the supplier no longer has: nobody can order it, and its orders stay as they are.
pub fn withdraw(tx: &mut Tx, code: &str) -> Result<()> {
    tx.execute(WITHDRAW, params![code]).map(drop)
}

/// Withdraws a plan that this supplier has none left of; false when it is off sale, or another supplier's by now.
pub fn withdraw_sold_out(tx: &mut Tx, code: &str, supplier: &str, supplier_code: &str) -> Result<bool> {
    Ok(tx.execute(SOLD_OUT, params![code, supplier, supplier_code])? == 1)
}

pub fn count(tx: &mut Tx) -> Result<i64> {
    tx.one(COUNT, &[])
}

/// Ends a sync: from here on every instance loads the new catalog.
pub fn publish(tx: &mut Tx) -> Result<()> {
    meta::bump(tx, meta::Version::Catalog).map(drop)
}

/// Everything on sale, by price list; `wholesale` is that list's price. The users' list is left out: its prices are
/// each plan's `retail`, and a copy of the whole catalog would only fill memory. Rows are read in parts, because all of
/// them at once would hold the catalog in memory twice.
pub fn on_sale(tx: &mut Tx) -> Result<HashMap<String, Vec<Arc<Plan>>>> {
    let mut lists: HashMap<String, Vec<Arc<Plan>>> = HashMap::new();
    let mut last = (String::new(), String::new());
    loop {
        let part: Vec<(String, Plan)> = tx.all(ON_SALE, params![&last.0, &last.1])?;
        let Some((list, plan)) = part.last() else { break };
        last = (list.clone(), plan.code.clone());
        for (list, plan) in part {
            lists.entry(list).or_default().push(Arc::new(plan));
        }
    }
    lists.values_mut().for_each(Vec::shrink_to_fit);
    Ok(lists)
}
