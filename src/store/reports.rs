//! Figures for the operator, summed from postings.

use super::tx::{Tx, params, queries};
use crate::domain::money::Usd;
use crate::error::Result;

queries! {
    TRIAL_BALANCE = "SELECT account, CAST(SUM(CASE WHEN amount > 0 THEN amount ELSE 0 END) AS BIGINT),
                            CAST(SUM(CASE WHEN amount < 0 THEN -amount ELSE 0 END) AS BIGINT)
                     FROM postings GROUP BY account ORDER BY account";
    MARGIN = "SELECT o.id, a.id, o.package_code, o.status,
                     CAST(-SUM(CASE WHEN p.account = 'sales' OR p.account LIKE 'discount:%' THEN p.amount ELSE 0 END) AS BIGINT),
                     CAST(SUM(CASE WHEN p.account LIKE 'cost:%' THEN p.amount ELSE 0 END) AS BIGINT),
                     CAST(SUM(CASE WHEN p.account = 'goodwill' OR p.account LIKE 'loss:%' THEN p.amount ELSE 0 END) AS BIGINT)
              FROM orders o JOIN accounts a ON a.no = o.account JOIN postings p ON p.order_id = o.id
              WHERE o.created_at >= ?1 AND o.created_at < ?2
              GROUP BY o.id, a.id, o.package_code, o.status, o.created_at ORDER BY o.created_at DESC, o.id DESC LIMIT ?3";
    MARGIN_TOTAL = "SELECT COUNT(DISTINCT o.id),
                     CAST(COALESCE(-SUM(CASE WHEN p.account = 'sales' OR p.account LIKE 'discount:%' THEN p.amount ELSE 0 END), 0) AS BIGINT),
                     CAST(COALESCE(SUM(CASE WHEN p.account LIKE 'cost:%' THEN p.amount ELSE 0 END), 0) AS BIGINT),
                     CAST(COALESCE(SUM(CASE WHEN p.account = 'goodwill' OR p.account LIKE 'loss:%' THEN p.amount ELSE 0 END), 0) AS BIGINT)
              FROM orders o JOIN postings p ON p.order_id = o.id WHERE o.created_at >= ?1 AND o.created_at < ?2";
}

pub struct TrialLine {
    pub account: String,
    pub debit: Usd,
    pub credit: Usd,
}

pub fn trial_balance(tx: &mut Tx) -> Result<Vec<TrialLine>> {
    tx.all(TRIAL_BALANCE, &[], |row| {
        Ok(TrialLine { account: row.text(0)?, debit: row.usd(1)?, credit: row.usd(2)? })
    })
}

/// What an order earned: sales after discounts, less its cost, less goodwill and losses.
pub struct Margin {
    pub sales: Usd,
    pub cost: Usd,
    pub losses: Usd,
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
    pub margin: Margin,
}

pub fn margin(tx: &mut Tx, from: i64, to: i64, limit: i64) -> Result<Vec<OrderMargin>> {
    tx.all(MARGIN, params![from, to, limit], |row| {
        Ok(OrderMargin {
            order: row.text(0)?,
            partner: row.text(1)?,
            package_code: row.text(2)?,
            status: row.text(3)?,
            margin: Margin { sales: row.usd(4)?, cost: row.usd(5)?, losses: row.usd(6)? },
        })
    })
}

/// The whole period: how many orders, and their sum.
pub fn margin_total(tx: &mut Tx, from: i64, to: i64) -> Result<(i64, Margin)> {
    tx.one(MARGIN_TOTAL, params![from, to], |row| {
        Ok((row.int(0)?, Margin { sales: row.usd(1)?, cost: row.usd(2)?, losses: row.usd(3)? }))
    })
}
