//! A line of a wallet's statement, as pages list it.

use std::cmp::Ordering;

use crate::domain::money::Usd;
use crate::http::kit::statement::describe;
use crate::http::pages::moment::Moment;
use crate::ops::accounts::StatementLine;

pub struct Movement {
    pub what: String,
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
    pub fn of(line: StatementLine) -> Movement {
        Movement {
            what: describe(&line.kind, line.note.as_deref()),
            order: line.order.filter(|id| id.starts_with("ord_")),
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
