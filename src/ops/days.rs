//! What a partner bought and spent on each day, for its chart. Its days are sums over the lines of its statement, which a
//! job adds up beside the orders, so that a chart of any partner is as many rows as it has days.

use super::LANE;
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::error::Result;
pub use crate::store::days::Day;
use crate::store::tx::Tx;
use crate::store::{accounts, days};
use crate::telemetry::EveryMinute;

/// How many lines one write adds: others wait for it a few milliseconds.
const PORTION: i64 = 1_000;

/// Enters partners that an older instance has made since this account, in a rolling upgrade. Answers the newest account:
/// numbers only grow, so the next look begins there.
pub async fn enlist(app: &App, after: AccountNo) -> Result<AccountNo> {
    let look = move |tx: &mut Tx| Ok((accounts::last(tx)?, days::left_out(tx, after)?));
    let (last, left_out) = app.store.read(look).await?;
    for account in left_out {
        app.store.write(LANE, move |tx| days::enlist(tx, account)).await?;
    }
    Ok(last)
}

/// Adds a portion of each statement that has new lines. Answers whether more waits: an old database has many.
pub async fn round(app: &App) -> Result<bool> {
    let mut more = false;
    for account in app.store.read(days::behind).await? {
        more |= sum_up(app, account).await?;
    }
    Ok(more)
}

/// It moves no wallet, so it need not wait in a wallet's lane.
async fn sum_up(app: &App, account: AccountNo) -> Result<bool> {
    app.store.write(LANE, move |tx| days::sum_up(tx, account, PORTION)).await
}

/// A partner's last `span` days, the oldest first and today last; those on which nothing happened are among them. Few new
/// lines are added first; while many wait, as after an upgrade, the days show what is added so far.
pub async fn of(app: &App, account: AccountNo, span: i64) -> Result<Vec<Day>> {
    let standing = app.store.read(move |tx| days::standing(tx, account)).await?;
    let new = standing.map_or(0, |standing| standing.lines - standing.summed);
    if (1..=PORTION).contains(&new) {
        // A look at the days does not fail because nothing can be written now.
        static LINES: EveryMinute = EveryMinute::new();
        if let Err(error) = sum_up(app, account).await
            && let Some(left_out) = LINES.turn()
        {
            tracing::warn!(%error, left_out, "the newest lines are missing in a partner's days");
        }
    }
    let last = app.now().day();
    let first = last - span.max(1) + 1;
    let found = app.store.read(move |tx| days::of(tx, account, first, last)).await?;
    let mut found = found.into_iter().peekable();
    let of_day = |day| found.next_if(|known| known.day == day).unwrap_or(empty(day));
    Ok((first..=last).map(of_day).collect())
}

fn empty(day: i64) -> Day {
    Day {
        day,
        orders: 0,
        topups: 0,
        failed: 0,
        cancelled: 0,
        spent: Usd::ZERO,
        given_back: Usd::ZERO,
        other: Usd::ZERO,
    }
}
