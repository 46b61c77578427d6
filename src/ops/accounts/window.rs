//! A statement as people leaf through it: a page of lines, and where newer and older ones begin.

use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::statement::{self, StatementLine, Wanted};
use crate::store::tx::Tx;
use crate::store::wallet;

/// Which lines of a statement are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Newest,
    OlderThan(i64),
    NewerThan(i64),
}

/// A page of a statement, newest first.
pub struct Window {
    pub lines: Vec<StatementLine>,
    /// The line that newer ones come after, if there are any.
    pub newer: Option<i64>,
    /// The line that older ones come before, if there are any.
    pub older: Option<i64>,
}

pub async fn window(
    app: &App,
    account: AccountNo,
    from: Option<Time>,
    to: Option<Time>,
    place: Place,
    limit: i64,
) -> Result<Window> {
    let now = app.now();
    let read = move |tx: &mut Tx| {
        let mut all = statement::around(tx, account, from, to, now)?;
        all.end = all.end.min(wallet::lines(tx, account)? + 1);
        read(tx, account, Wanted { lines: all, from, to }, place, limit)
    };
    app.store.read(read).await
}

/// A page of all these lines.
fn read(tx: &mut Tx, account: AccountNo, wanted: Wanted, place: Place, limit: i64) -> Result<Window> {
    let Wanted { lines: all, from, to } = wanted;
    let mut part = all.clone();
    match place {
        Place::Newest => {}
        Place::OlderThan(line) => part.end = part.end.min(line),
        // Line numbers have no gaps, so the lines after this one are as many numbers.
        Place::NewerThan(line) => {
            part.start = part.start.max(line.saturating_add(1));
            part.end = part.end.min(part.start.saturating_add(limit));
        }
    }
    let is_newest = part.end >= all.end;
    let mut lines = statement::lines(tx, account, &Wanted { lines: part, from, to }, limit)?;
    // The newest are shown as a whole page, also where fewer of them are newer.
    if matches!(place, Place::NewerThan(_)) && (is_newest || lines.is_empty()) {
        lines = statement::lines(tx, account, &Wanted { lines: all.clone(), from, to }, limit)?;
    }
    let mut is_any = |lines| -> Result<bool> {
        Ok(!statement::lines(tx, account, &Wanted { lines, from, to }, 1)?.is_empty())
    };
    let (newer, older) = match (lines.first(), lines.last()) {
        (Some(first), Some(last)) => (
            is_any(first.line + 1..all.end)?.then_some(first.line),
            is_any(all.start..last.line)?.then_some(last.line),
        ),
        _ => (None, None),
    };
    Ok(Window { lines, newer, older })
}
