//! The partner's wallet: balance and statement.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json};
use crate::http::kit::auth::Partner;
use crate::http::kit::fields::{NoQuery, Query};
use crate::http::kit::orders::{cursor, parse_cursor};
use crate::http::kit::wire::{Money, iso};
use crate::ops::accounts;

/// Balance
///
/// The prepaid wallet: what can be spent, what is held for orders in progress.
#[utoipa::path(get, path = "/api/b2b/v1/balance", operation_id = "getBalance", tag = "wallet",
    responses((status = 200, description = "The wallet", body = BalanceView)))]
pub async fn balance(partner: Partner, state: State, _: NoQuery) -> Answer {
    let balance = accounts::balance(&state.app, partner.account).await?;
    let view = BalanceView {
        success: true,
        company_name: partner.company.clone(),
        currency: "USD",
        balance_usd: Money(balance.available),
        held_usd: Money(balance.held),
        low_balance_threshold: Money(partner.low_balance),
        is_low_balance: balance.available < partner.low_balance,
        status: if balance.suspended { "SUSPENDED" } else { "ACTIVE" },
    };
    json(StatusCode::OK, &view)
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct TransactionsQuery {
    /// Only lines at or after this time.
    #[param(format = DateTime, example = "2026-01-01T00:00:00.000Z")]
    from: Option<String>,
    /// Only lines before this time.
    #[param(format = DateTime, example = "2026-02-01T00:00:00.000Z")]
    to: Option<String>,
    /// Where the last page ended: its `nextAfter`.
    #[param(pattern = "^c[1-9][0-9]{0,17}$", example = "c6")]
    after: Option<String>,
    #[param(minimum = 1, maximum = 1000, default = 100, example = 100)]
    limit: Option<i64>,
}

/// Statement
///
/// Every movement of the wallet with its running balance, newest first.
#[utoipa::path(get, path = "/api/b2b/v1/balance/transactions", operation_id = "listTransactions", tag = "wallet",
    params(TransactionsQuery),
    responses((status = 200, description = "Lines of the statement", body = TransactionsView)))]
pub async fn transactions(partner: Partner, state: State, query: Query) -> Answer {
    let mut query = query.strictly();
    let (from, to) = (query.time("from"), query.time("to"));
    let after = query.take("after", "must be a nextAfter of an earlier page", parse_cursor);
    let limit = query.whole("limit", 1, 1000).unwrap_or(100);
    query.finish()?;
    let statement = accounts::statement(&state.app, partner.account, from, to, after, limit).await?;
    let transactions = statement.lines.into_iter().map(|line| TransactionView {
        line: line.line,
        r#type: line.kind,
        amount_usd: Money(line.change),
        balance_usd: Money(line.balance),
        order_id: line.order,
        invoice_id: line.invoice.map(|id| id.to_string()),
        note: line.note,
        created_at: iso(line.at),
    });
    let view = TransactionsView {
        success: true,
        currency: "USD",
        transactions: transactions.collect(),
        next_after: statement.next.map(cursor),
    };
    json(StatusCode::OK, &view)
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Balance)]
pub struct BalanceView {
    #[schema(example = true)]
    pub success: bool,
    #[schema(example = "Demo Travel")]
    pub company_name: String,
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// What can be spent now.
    pub balance_usd: Money,
    /// Charged for orders that the supplier has not delivered yet.
    pub held_usd: Money,
    pub low_balance_threshold: Money,
    pub is_low_balance: bool,
    /// ACTIVE or SUSPENDED: a suspended account can read, but not buy.
    #[schema(example = "ACTIVE")]
    pub status: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Transaction)]
pub struct TransactionView {
    /// Position on the statement, counted from 1.
    #[schema(example = 2, minimum = 1)]
    pub line: i64,
    /// ORDER, TOPUP, FAILED, CANCELLED, REFUND, CREDIT, DEBIT, DEPOSIT, REVERSAL (of a deposit that vanished from its
    /// chain), ASSIGNED (a payment that had no owner) or PAYOUT.
    #[schema(example = "ORDER")]
    pub r#type: String,
    /// Positive when money came in.
    pub amount_usd: Money,
    /// The balance after this line.
    pub balance_usd: Money,
    #[schema(required = true)]
    pub order_id: Option<String>,
    /// The invoice that a deposit counts for.
    #[schema(required = true)]
    pub invoice_id: Option<String>,
    /// A note by the operator.
    #[schema(required = true)]
    pub note: Option<String>,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub created_at: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TransactionList)]
pub struct TransactionsView {
    #[schema(example = true)]
    pub success: bool,
    #[schema(example = "USD")]
    pub currency: &'static str,
    /// Newest first.
    pub transactions: Vec<TransactionView>,
    /// Send this as `after` for the next page; null on the last one.
    #[schema(required = true)]
    pub next_after: Option<String>,
}
