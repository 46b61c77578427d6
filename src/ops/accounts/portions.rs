//! All of a statement, a portion at a time: what is written to a file is never in memory as a whole, and between two
//! portions others have their turn.

use std::ops::Range;

use futures_util::Stream;
use futures_util::stream::try_unfold;

use super::month::Month;
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::statement::{self, StatementLine, Wanted};
use crate::store::tx::Tx;
use crate::store::wallet;
use crate::wire::csv;
use crate::wire::dates::iso;

/// How many lines are read at once.
const AT_ONCE: i64 = 500;
const COLUMNS: [&str; 8] =
    ["line", "type", "amountUsd", "balanceUsd", "orderId", "invoiceId", "note", "createdAt"];

/// Which lines come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Newest,
    Oldest,
}

/// Lines of a statement that are still to be read. Lines that are written meanwhile are not among them.
pub struct Portions {
    app: App,
    account: AccountNo,
    order: Order,
    rest: Wanted,
}

impl Portions {
    /// The lines of this time; without times, all of them.
    pub async fn of(
        app: &App,
        account: AccountNo,
        from: Option<Time>,
        to: Option<Time>,
        order: Order,
    ) -> Result<Portions> {
        let now = app.now();
        let read = move |tx: &mut Tx| {
            let lines = statement::around(tx, account, from, to, now)?;
            Ok(lines.start..lines.end.min(wallet::lines(tx, account)? + 1))
        };
        let lines = app.store.read(read).await?;
        Ok(Portions { app: app.clone(), account, order, rest: Wanted { lines, from, to } })
    }

    pub fn of_month(app: &App, account: AccountNo, month: &Month, order: Order) -> Portions {
        let rest = Wanted { lines: month.lines.clone(), from: None, to: None };
        Portions { app: app.clone(), account, order, rest }
    }

    /// The next lines, at most 500; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<StatementLine>>> {
        while !self.rest.lines.is_empty() {
            let wanted = Wanted { lines: self.cut(), ..self.rest.clone() };
            let account = self.account;
            let read = move |tx: &mut Tx| statement::lines(tx, account, &wanted, AT_ONCE);
            let mut lines = self.app.store.read(read).await?;
            if self.order == Order::Oldest {
                lines.reverse();
            }
            // At both ends of a time there are lines of other times.
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
        }
        Ok(None)
    }

    /// Takes the next numbers from those that are left.
    fn cut(&mut self) -> Range<i64> {
        let rest = &mut self.rest.lines;
        match self.order {
            Order::Newest => {
                let part = rest.start.max(rest.end - AT_ONCE)..rest.end;
                rest.end = part.start;
                part
            }
            Order::Oldest => {
                let part = rest.start..rest.end.min(rest.start + AT_ONCE);
                rest.start = part.end;
                part
            }
        }
    }

    /// The lines as a CSV file, portion by portion, with the names of the columns first.
    pub fn csv(self) -> impl Stream<Item = Result<String>> + Send + 'static {
        let head = csv::line(COLUMNS.map(csv::figure));
        try_unfold((Some(head), self), async |(head, mut portions)| {
            if let Some(head) = head {
                return Ok(Some((head, (None, portions))));
            }
            let Some(lines) = portions.next().await? else { return Ok::<_, Error>(None) };
            let text: String = lines.iter().map(csv_line).collect();
            Ok(Some((text, (None, portions))))
        })
    }
}

fn csv_line(line: &StatementLine) -> String {
    let text = |text: Option<&str>| csv::text(text.unwrap_or_default());
    csv::line([
        csv::figure(&line.line.to_string()),
        csv::text(&line.kind),
        csv::figure(&line.change.to_string()),
        csv::figure(&line.balance.to_string()),
        text(line.order.as_deref()),
        text(line.invoice.as_ref().map(|invoice| invoice.as_str())),
        text(line.note.as_deref()),
        csv::figure(&iso(line.at)),
    ])
}
