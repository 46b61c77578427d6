//! How deep in its chain a transfer has to be before it counts.

use crate::app::App;
use crate::chain::Tip;
use crate::config::{FinalBy, NetworkSettings};
use crate::domain::invoice::Payment;
use crate::domain::network::AddressKind;
use crate::domain::transfer::{Transfer, TransferState};

/// How long a transfer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// One block: its payer signed for a small sum and gets one eSIM for it, so undoing the payment gains too little.
    /// Money in a wallet always waits longer.
    Quick,
    Usual,
}

/// `unpaid`: the transfer may pay for a checkout that still waits.
pub fn wait(app: &App, transfer: &Transfer, unpaid: bool) -> Wait {
    let small = transfer.payment_nonce.is_some() && transfer.amount <= app.settings.x402.quick_up_to;
    let buys = transfer.state == TransferState::Held || (transfer.state == TransferState::Seen && unpaid);
    if small && buys { Wait::Quick } else { Wait::Usual }
}

fn blocks(terms: &NetworkSettings, wait: Wait) -> i64 {
    match wait {
        Wait::Quick => 1,
        Wait::Usual => terms.confirmations,
    }
}

/// How many blocks a transfer waits for, its own included. Its network may have been turned off since.
fn confirmations_needed(app: &App, transfer: &Transfer, unpaid: bool) -> i64 {
    let network = transfer.id.network;
    let terms = app.settings.settlement.networks.get(&network);
    terms.map_or(network.confirmations(), |terms| blocks(terms, wait(app, transfer, unpaid)))
}

/// A transfer with its depth below `head`, the newest block that we know of.
pub fn payment(app: &App, transfer: Transfer, head: i64, unpaid: bool) -> Payment {
    let needed = confirmations_needed(app, &transfer, unpaid);
    Payment { confirmations: transfer.confirmations(head, needed), transfer, needed }
}

/// The newest block in which a transfer of this size counts.
pub fn final_up_to(terms: &NetworkSettings, transfer: &Transfer, wait: Wait, tip: &Tip) -> i64 {
    let deep_enough = tip.head.number - blocks(terms, wait) + 1;
    let called_final = match terms.final_by {
        FinalBy::Safe => tip.safe,
        FinalBy::Finalized => tip.finalized,
    };
    match transfer.id.network.kind() {
        // On TRON a block is final when most producers have built on it; they take turns, so that takes some blocks.
        AddressKind::Tron => deep_enough.min(tip.finalized),
        AddressKind::Evm if transfer.amount >= terms.final_from => deep_enough.min(called_final),
        AddressKind::Evm => deep_enough,
    }
}
