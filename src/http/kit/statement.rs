//! What moved a wallet, in words for the people whose wallet it is.

use crate::domain::text;

const NOTE_CHARS: usize = 200;

/// A line of the statement: what it was, and what the operator noted.
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
