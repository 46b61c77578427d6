//! A line of a wallet's statement, as pages list it.

use std::cmp::Ordering;

use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::error::Result;
use crate::http::kit::statement::describe;
use crate::http::pages::moment::Moment;
use crate::ops::accounts::StatementLine;
use crate::ops::accounts::subjects::{Subject, subjects};

pub struct Movement {
    pub what: String,
    /// The plan that was bought, and the number of the order.
    pub about: Option<String>,
    /// The order whose page tells more.
    pub order: Option<String>,
    /// The invoice of a payment.
    pub invoice: Option<String>,
    pub at: Moment,
    /// With its sign.
    pub change: String,
    pub is_gain: bool,
    pub balance: String,
}

impl Movement {
    /// Lines of an account, each with what it is about.
    pub async fn all(app: &App, account: AccountNo, lines: Vec<StatementLine>) -> Result<Vec<Movement>> {
        let known = subjects(app, account, &lines).await?;
        let subject = |line: &StatementLine| line.order.as_ref().and_then(|name| known.get(name));
        Ok(lines.into_iter().map(|line| Movement::of(subject(&line), line)).collect())
    }

    fn of(subject: Option<&Subject>, line: StatementLine) -> Movement {
        let about = |Subject { plan, number, .. }: &Subject| match number {
            Some(number) => format!("{plan}, order {number}"),
            None => plan.clone(),
        };
        Movement {
            what: describe(&line.kind, line.note.as_deref()),
            about: subject.map(about),
            order: subject.map(|subject| subject.order.to_string()),
            invoice: line.invoice.map(|id| id.to_string()),
            at: Moment::of(line.at),
            change: signed(line.change),
            is_gain: line.change.is_positive(),
            balance: line.balance.priced(),
        }
    }
}

/// An amount that came or went, with its sign.
pub fn signed(change: Usd) -> String {
    match change.cmp(&Usd::ZERO) {
        Ordering::Greater => format!("+{}", change.priced()),
        Ordering::Equal => change.priced(),
        Ordering::Less => format!("−{}", change.negated().priced()),
    }
}
