//! A month of a statement, summed up. Its lines follow each other without a gap, so opening, sums and closing fit together
//! to the micro-dollar, and a month opens as the one before it has closed. A job makes sums of long statements beforehand.

use std::ops::Range;

use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Result;
use crate::ops::LANE;
use crate::store::statement;
pub use crate::store::statement::KindSum;
use crate::store::tx::Tx;
use crate::wire::dates;

pub struct Month {
    /// Its first moment, and the next month's.
    pub from: Time,
    pub to: Time,
    pub opening: Usd,
    pub closing: Usd,
    /// By type, in the order of the alphabet.
    pub sums: Vec<KindSum>,
    /// The numbers of its lines; empty when nothing moved. A line that took its number when the month had begun is the
    /// month's, also when it says a time that is a moment earlier.
    pub lines: Range<i64>,
}

/// A calendar month, UTC. The present one is summed up so far.
pub async fn month(app: &App, account: AccountNo, year: u16, month: u8) -> Result<Month> {
    let Range { start: from, end: to } =
        dates::month(year, month).ok_or_else(|| Refusal::field("month", "must be a month like 2026-01"))?;
    let now = app.now();
    let read = move |tx: &mut Tx| {
        let first = statement::first_since(tx, account, from, now)?;
        let lines = first..statement::first_since(tx, account, to, now)?;
        Ok(Month {
            from,
            to,
            opening: statement::balance_after(tx, account, lines.start - 1)?,
            closing: statement::balance_after(tx, account, lines.end - 1)?,
            sums: statement::sums(tx, account, &lines)?,
            lines,
        })
    };
    app.store.snapshot(read).await
}

/// Makes some of the sums that are missing in statements. Answers whether more are: an old database has many. It moves no
/// wallet, so it need not wait in a wallet's lane.
pub async fn round(app: &App) -> Result<bool> {
    let mut more = false;
    for account in app.store.read(statement::behind).await? {
        more |= app.store.write(LANE, move |tx| statement::sum_up(tx, account)).await?;
    }
    Ok(more)
}
