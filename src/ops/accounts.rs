//! An owner's view of their own account: the balance and the statement.

use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::users;
pub use crate::store::wallet::StatementLine;
use crate::store::wallet::{self, StatementQuery};

pub struct Balance {
    pub available: Usd,
    pub held: Usd,
    pub suspended: bool,
}

pub async fn balance(app: &App, account: AccountNo) -> Result<Balance> {
    app.store
        .read(move |tx| {
            let wallet = wallet::read(tx, account)?;
            Ok(Balance {
                available: wallet.balance,
                held: wallet::held(tx, account)?,
                suspended: wallet.suspended,
            })
        })
        .await
}

pub struct Statement {
    pub lines: Vec<StatementLine>,
    /// Where the next page starts, when there is one.
    pub next: Option<i64>,
}

/// Whether it is a person's account, not a partner's.
pub async fn is_users(app: &App, account: AccountNo) -> Result<bool> {
    Ok(app.store.read(move |tx| users::email(tx, account)).await?.is_some())
}

/// Lines of the statement, newest first, older than line `after`.
pub async fn statement(
    app: &App,
    account: AccountNo,
    from: Option<Time>,
    to: Option<Time>,
    after: Option<i64>,
    limit: i64,
) -> Result<Statement> {
    let query = StatementQuery {
        before_line: after.unwrap_or(i64::MAX),
        from: from.map_or(i64::MIN, Time::micros),
        to: to.map_or(i64::MAX, Time::micros),
        limit: limit + 1,
    };
    let mut lines = app.store.read(move |tx| wallet::statement(tx, account, &query)).await?;
    let more = lines.len() as i64 > limit;
    lines.truncate(limit as usize);
    let next = if more { lines.last().map(|line| line.line) } else { None };
    Ok(Statement { lines, next })
}

/// One page of the statement, newest first, and how many lines there are. Line numbers have no gaps, so a page is found
/// by counting back from the last one.
pub async fn statement_page(
    app: &App,
    account: AccountNo,
    page: i64,
    limit: i64,
) -> Result<(Vec<StatementLine>, i64)> {
    app.store
        .read(move |tx| {
            let total = wallet::lines(tx, account)?;
            let before_line = total.saturating_sub((page - 1).saturating_mul(limit)).saturating_add(1);
            let query = StatementQuery { before_line, from: i64::MIN, to: i64::MAX, limit };
            Ok((wallet::statement(tx, account, &query)?, total))
        })
        .await
}
