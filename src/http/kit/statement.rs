//! What moved a wallet, in words for the people whose wallet it is.

use serde::Serialize;
use utoipa::ToSchema;

use super::wire::iso;
use crate::domain::text;
use crate::ops::accounts::StatementLine;

const NOTE_CHARS: usize = 200;

/// A line of the statement, but for its amounts: doors name these differently.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineView {
    /// Its number on the statement, counted from 1.
    #[schema(example = "1")]
    id: String,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    created_at: String,
    /// ORDER, TOPUP, FAILED, CANCELLED, REFUND, CREDIT, DEBIT, DEPOSIT, REVERSAL, ASSIGNED, CLAIMED or PAYOUT.
    #[schema(example = "ORDER")]
    r#type: String,
    /// What it was, for people.
    #[schema(example = "An eSIM was bought")]
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    order_id: Option<String>,
    /// The invoice that a payment on a chain was for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    invoice_id: Option<String>,
}

impl From<StatementLine> for LineView {
    fn from(line: StatementLine) -> LineView {
        LineView {
            id: line.line.to_string(),
            created_at: iso(line.at),
            description: describe(&line.kind, line.note.as_deref()),
            r#type: line.kind,
            order_id: line.order,
            invoice_id: line.invoice.map(|invoice| invoice.to_string()),
        }
    }
}

/// What a line was, and what the operator noted.
pub fn describe(kind: &str, note: Option<&str>) -> String {
    let what = match kind {
        "ORDER" => "An eSIM was bought",
        "TOPUP" => "A top-up was bought",
        "FAILED" => "Given back: it was not delivered",
        "CANCELLED" => "Given back: the order was cancelled",
        "REFUND" => "A refund",
        "CREDIT" => "Credited by the operator",
        "DEBIT" => "Debited by the operator",
        "DEPOSIT" => "Money was paid in",
        "REVERSAL" => "A payment vanished from its chain",
        "CLAIMED" => "Money that was owed to you",
        "ASSIGNED" => "A payment was found to be yours",
        "PAYOUT" => "Paid out",
        _ => "A movement",
    };
    match note {
        Some(note) => format!("{what}: {}", text::visible(note, NOTE_CHARS)),
        None => what.into(),
    }
}
