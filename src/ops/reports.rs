//! Figures for the operator.

use crate::app::App;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::accounts::{self, Account};
use crate::store::reports::{self, Margin, OrderMargin, TrialLine};

pub struct MarginReport {
    /// The newest orders of the period.
    pub orders: Vec<OrderMargin>,
    /// Over the whole period.
    pub order_count: i64,
    pub total: Margin,
}

pub async fn margin(app: &App, from: Option<Time>, to: Option<Time>, limit: i64) -> Result<MarginReport> {
    let (from, to) = (from.map_or(i64::MIN, Time::micros), to.map_or(i64::MAX, Time::micros));
    app.store
        .study(move |tx| {
            let orders = reports::margin(tx, from, to, limit)?;
            let (order_count, total) = reports::margin_total(tx, from, to)?;
            Ok(MarginReport { orders, order_count, total })
        })
        .await
}

pub async fn trial_balance(app: &App) -> Result<Vec<TrialLine>> {
    app.store.study(reports::trial_balance).await
}

/// Over the entries of a period, or all.
pub async fn trial_balance_of(app: &App, from: Option<Time>, to: Option<Time>) -> Result<Vec<TrialLine>> {
    if from.is_none() && to.is_none() {
        return trial_balance(app).await;
    }
    let (from, to) = (from.map_or(i64::MIN, Time::micros), to.map_or(i64::MAX, Time::micros));
    app.store.study(move |tx| reports::trial_balance_of(tx, from, to)).await
}

pub async fn wallets(app: &App) -> Result<Vec<Account>> {
    app.store.snapshot(accounts::list).await
}
