//! The customer's wallet: what it holds, and what moved it.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::paging::{self, PageQuery};
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json, uncached};
use crate::http::kit::auth::Bearer;
use crate::http::kit::fields::Query;
use crate::http::kit::statement::describe;
use crate::http::kit::wire::{Money, iso};
use crate::ops::accounts;

#[derive(Serialize, ToSchema)]
#[schema(as = Wallet)]
pub struct WalletView {
    #[schema(example = true)]
    success: bool,
    /// What can be spent now.
    balance: Money,
    #[schema(example = "USD")]
    currency: &'static str,
    /// Charged for orders that are not delivered yet.
    held: Money,
    /// ACTIVE or SUSPENDED: a suspended account can read, but not buy.
    #[schema(example = "ACTIVE")]
    status: &'static str,
}

/// Balance
///
/// What the wallet holds.
#[utoipa::path(get, path = "/api/wallet/balance", operation_id = "getBalance", tag = "wallet",
    responses((status = 200, description = "The wallet", body = WalletView)))]
pub async fn balance(bearer: Bearer, state: State) -> Answer {
    let balance = accounts::balance(&state.app, bearer.account).await?;
    let view = WalletView {
        success: true,
        balance: Money(balance.available),
        currency: "USD",
        held: Money(balance.held),
        status: if balance.suspended { "SUSPENDED" } else { "ACTIVE" },
    };
    uncached(json(StatusCode::OK, &view))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Transaction)]
pub struct TransactionView {
    /// Its number on the statement, counted from 1.
    #[schema(example = "1")]
    id: String,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    created_at: String,
    /// ORDER, TOPUP, FAILED, CANCELLED, REFUND, CREDIT, DEBIT, DEPOSIT, REVERSAL, ASSIGNED, CLAIMED or PAYOUT.
    #[schema(example = "ORDER")]
    r#type: String,
    /// Positive when money came in.
    amount: Money,
    /// The balance after it.
    balance_after: Money,
    /// What it was, for people.
    #[schema(example = "An eSIM was bought")]
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    order_id: Option<String>,
    /// The invoice that a payment on a chain was for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    invoice_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = TransactionList)]
pub struct TransactionsView {
    #[schema(example = true)]
    success: bool,
    #[schema(example = 1, minimum = 1)]
    page: i64,
    #[schema(example = 20, minimum = 1, maximum = 100)]
    limit: i64,
    /// How many there are, on all pages.
    #[schema(minimum = 0)]
    total: i64,
    /// Newest first.
    transactions: Vec<TransactionView>,
}

/// Transactions
///
/// What moved the wallet, newest first: purchases, top-ups, refunds, deposits.
#[utoipa::path(get, path = "/api/wallet/transactions", operation_id = "listTransactions", tag = "wallet", params(PageQuery),
    responses((status = 200, description = "One page", body = TransactionsView)))]
pub async fn transactions(bearer: Bearer, state: State, query: Query) -> Answer {
    let (page, limit) = paging::read(query)?;
    let (lines, total) = accounts::statement_page(&state.app, bearer.account, page, limit).await?;
    let transactions = lines.into_iter().map(|line| TransactionView {
        id: line.line.to_string(),
        created_at: iso(line.at),
        description: describe(&line.kind, line.note.as_deref()),
        r#type: line.kind,
        amount: Money(line.change),
        balance_after: Money(line.balance),
        order_id: line.order,
        invoice_id: line.invoice.map(|invoice| invoice.to_string()),
    });
    let transactions = transactions.collect();
    uncached(json(StatusCode::OK, &TransactionsView { success: true, page, limit, total, transactions }))
}
