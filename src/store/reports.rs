//! Figures for the operator, summed from postings.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    TRIAL_BALANCE = text!("SELECT ", TrialLine::COLUMNS, " FROM postings GROUP BY account ORDER BY account");
    TRIAL_BALANCE_OF = text!("SELECT ", TrialLine::COLUMNS, " FROM postings p JOIN entries e ON e.id = p.entry
              WHERE e.at >= ?1 AND e.at < ?2 GROUP BY account ORDER BY account");
    MARGIN = text!("SELECT ", OrderMargin::COLUMNS, "
              FROM orders o JOIN accounts a ON a.no = o.account JOIN postings p ON p.order_id = o.id
              WHERE o.created_at >= ?1 AND o.created_at < ?2
              GROUP BY o.id, a.id, o.package_code, o.status, o.created_at ORDER BY o.created_at DESC, o.id DESC LIMIT ?3");
    MARGIN_TOTAL = text!("SELECT COUNT(DISTINCT o.id), ", Margin::COLUMNS, "
              FROM orders o JOIN postings p ON p.order_id = o.id WHERE o.created_at >= ?1 AND o.created_at < ?2");
}

pub struct TrialLine {
    pub account: String,
    pub debit: Usd,
    pub credit: Usd,
}

columns! {
    TrialLine {
        account,
        debit = "CAST(SUM(CASE WHEN amount > 0 THEN amount ELSE 0 END) AS BIGINT)",
        credit = "CAST(SUM(CASE WHEN amount < 0 THEN -amount ELSE 0 END) AS BIGINT)",
    }
}

pub fn trial_balance(tx: &mut Tx) -> Result<Vec<TrialLine>> {
    tx.all(TRIAL_BALANCE, &[])
}

/// Over the entries of a period.
pub fn trial_balance_of(tx: &mut Tx, from: i64, to: i64) -> Result<Vec<TrialLine>> {
    tx.all(TRIAL_BALANCE_OF, params![from, to])
}

/// What an order earned: sales after discounts, less its cost, less goodwill and losses.
pub struct Margin {
    pub sales: Usd,
    pub cost: Usd,
    pub losses: Usd,
}

columns! {
    Margin {
        sales = "CAST(COALESCE(-SUM(CASE WHEN p.account = 'sales' OR p.account LIKE 'discount:%' THEN p.amount ELSE 0 END), 0) AS BIGINT)",
        cost = "CAST(COALESCE(SUM(CASE WHEN p.account LIKE 'cost:%' THEN p.amount ELSE 0 END), 0) AS BIGINT)",
        losses = "CAST(COALESCE(SUM(CASE WHEN p.account = 'goodwill' OR p.account LIKE 'loss:%' THEN p.amount ELSE 0 END), 0) AS BIGINT)",
    }
}

impl Margin {
    pub fn profit(&self) -> Usd {
        self.sales.minus(self.cost).minus(self.losses)
    }
}

pub struct OrderMargin {
    pub order: String,
    pub partner: String,
    pub package_code: String,
    pub status: String,
    pub created_at: Time,
    pub margin: Margin,
}

columns! {
    OrderMargin in "o" { order = "o.id", partner = "a.id", package_code, status, created_at, margin: Margin = Margin::COLUMNS }
}

pub fn margin(tx: &mut Tx, from: i64, to: i64, limit: i64) -> Result<Vec<OrderMargin>> {
    tx.all(MARGIN, params![from, to, limit])
}

/// The number and the sum of all orders in the period.
pub fn margin_total(tx: &mut Tx, from: i64, to: i64) -> Result<(i64, Margin)> {
    tx.one(MARGIN_TOTAL, params![from, to])
}
