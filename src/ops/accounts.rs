//! An owner's view of their own account: the balance and the statement. `accounts/portions.rs` reads all of a statement,
//! `accounts/window.rs` a page of it, `accounts/month.rs` sums up a month, and `accounts/subjects.rs` says what lines are about.

pub mod month;
pub mod portions;
pub mod subjects;
pub mod window;

pub use self::month::{Month, month};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::Result;
pub use crate::store::statement::StatementLine;
use crate::store::statement::{self, Wanted};
use crate::store::tx::Tx;
use crate::store::{users, wallet};

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
    let now = app.now();
    let read = move |tx: &mut Tx| {
        let mut lines = statement::around(tx, account, from, to, now)?;
        lines.end = lines.end.min(after.unwrap_or(i64::MAX));
        statement::lines(tx, account, &Wanted { lines, from, to }, limit + 1)
    };
    let mut lines = app.store.read(read).await?;
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
            let wanted = Wanted { lines: 1..before_line, from: None, to: None };
            Ok((statement::lines(tx, account, &wanted, limit)?, total))
        })
        .await
}
