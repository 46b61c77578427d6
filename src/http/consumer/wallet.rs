//! The customer's wallet: what it holds, and what moved it.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::paging::{Page, PageQuery, PageView};
use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json, uncached};
use crate::http::kit::auth::Bearer;
use crate::http::kit::fields::Query;
use crate::http::kit::statement::LineView;
use crate::http::kit::wire::Money;
use crate::ops::accounts::{self, StatementLine};

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
    #[serde(flatten)]
    #[schema(inline)]
    line: LineView,
    /// Positive when money came in.
    amount: Money,
    /// The balance after it.
    balance_after: Money,
}

impl From<StatementLine> for TransactionView {
    fn from(line: StatementLine) -> TransactionView {
        TransactionView {
            amount: Money(line.change),
            balance_after: Money(line.balance),
            line: LineView::from(line),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = TransactionList)]
pub struct TransactionsView {
    #[serde(flatten)]
    #[schema(inline)]
    page: PageView,
    /// Newest first.
    transactions: Vec<TransactionView>,
}

/// Transactions
///
/// What moved the wallet, newest first: purchases, top-ups, refunds, deposits.
#[utoipa::path(get, path = "/api/wallet/transactions", operation_id = "listTransactions", tag = "wallet", params(PageQuery),
    responses((status = 200, description = "One page", body = TransactionsView)))]
pub async fn transactions(bearer: Bearer, state: State, query: Query) -> Answer {
    let page = Page::read(query)?;
    let (lines, total) =
        accounts::statement_page(&state.app, bearer.account, page.number, page.limit).await?;
    let transactions = lines.into_iter().map(TransactionView::from).collect();
    uncached(json(StatusCode::OK, &TransactionsView { page: page.view(total), transactions }))
}
