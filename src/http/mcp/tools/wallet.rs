//! The customer's wallet: what it holds, and what moved it.

use serde::Serialize;
use utoipa::ToSchema;

use super::{READS, Tool};
use crate::error::Result;
use crate::http::kit::statement::LineView;
use crate::http::kit::wire::Money;
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema::{self, limit, page, read_page, token};
use crate::ops::accounts::{self, StatementLine};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WalletView {
    /// What can be spent now.
    balance_usd: Money,
    #[schema(example = "USD")]
    currency: &'static str,
    /// Charged for orders that are not delivered yet.
    held_usd: Money,
    /// ACTIVE or SUSPENDED: a suspended account can read, but not buy.
    status: &'static str,
}

pub fn balance() -> Tool {
    Tool {
        name: "get_wallet_balance",
        title: "Show the wallet balance",
        description: "Shows how many US dollars the customer's prepaid wallet holds. Use it before a purchase when the \
            customer asks what they can spend, or after one to confirm what is left. Needs a login and changes nothing. \
            For what moved the balance, use get_wallet_transactions; to learn what a purchase would cost, call the \
            purchase tool with dryRun.",
        hints: READS,
        input: schema::input([token()], &[]),
        output: schema::results([schema::of::<WalletView>()]),
        run: |call| Box::pin(show(call)),
    }
}

async fn show(call: Call) -> Result<Output> {
    let holder = call.login().await?;
    let balance = accounts::balance(call.app(), holder.account).await?;
    Output::of(&WalletView {
        balance_usd: Money(balance.available),
        currency: "USD",
        held_usd: Money(balance.held),
        status: if balance.suspended { "SUSPENDED" } else { "ACTIVE" },
    })
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TransactionView {
    #[serde(flatten)]
    #[schema(inline)]
    line: LineView,
    /// Positive when money came in.
    amount_usd: Money,
    /// The balance after it.
    balance_after_usd: Money,
}

impl From<StatementLine> for TransactionView {
    fn from(line: StatementLine) -> TransactionView {
        TransactionView {
            amount_usd: Money(line.change),
            balance_after_usd: Money(line.balance),
            line: LineView::from(line),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct StatementView {
    #[schema(minimum = 1)]
    page: i64,
    #[schema(minimum = 1)]
    limit: i64,
    /// How many there are, on all pages.
    #[schema(minimum = 0)]
    total: i64,
    /// Newest first.
    transactions: Vec<TransactionView>,
}

pub fn transactions() -> Tool {
    Tool {
        name: "get_wallet_transactions",
        title: "List wallet transactions",
        description: "Lists what moved the customer's wallet, newest first and page by page: purchases, top-ups, refunds, \
            deposits, each with its amount and the balance after it. Use it when the customer asks where money went or \
            came from. Needs a login and changes nothing. For the eSIMs themselves use get_user_orders; for only the \
            current balance use get_wallet_balance.",
        hints: READS,
        input: schema::input([token(), page(), limit()], &[]),
        output: schema::results([schema::of::<StatementView>()]),
        run: |call| Box::pin(list(call)),
    }
}

async fn list(call: Call) -> Result<Output> {
    let holder = call.login().await?;
    let mut fields = call.fields()?;
    let (page, limit) = read_page(&mut fields);
    fields.finish()?;
    let (lines, total) = accounts::statement_page(call.app(), holder.account, page, limit).await?;
    let transactions = lines.into_iter().map(TransactionView::from).collect();
    Output::of(&StatementView { page, limit, total, transactions })
}
