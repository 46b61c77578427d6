//! A transfer: one token movement to one of our addresses. It is known by its position in the receipt of its
//! transaction, which stays the same when the transaction is mined again elsewhere, and it is used at most once.

use std::fmt;

use super::ids::{AccountNo, InvoiceId};
use super::money::Usd;
use super::network::{AddressKind, Currency, Network};
use super::time::Time;
use super::words::words;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransferId {
    pub network: Network,
    /// As `parse_tx_hash` writes it.
    pub tx_hash: String,
    /// Among all logs of the transaction's receipt, counted from 0.
    pub position: i64,
}

impl TransferId {
    /// Reads what `Display` writes: `POLYGON:0x…:3`.
    pub fn parse(text: &str) -> Option<TransferId> {
        let (network, rest) = text.split_once(':')?;
        let (hash, position) = rest.rsplit_once(':')?;
        let network = Network::parse(network)?;
        let tx_hash = parse_tx_hash(network.kind(), hash)?;
        let position = position.parse().ok().filter(|position| *position >= 0)?;
        Some(TransferId { network, tx_hash, position })
    }
}

impl fmt::Display for TransferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.network.as_str(), self.tx_hash, self.position)
    }
}

/// A transaction hash in the one spelling we store: `0x` and lower-case hex, on TRON without the `0x`.
pub fn parse_tx_hash(kind: AddressKind, text: &str) -> Option<String> {
    let digits = match (kind, text.strip_prefix("0x")) {
        (_, Some(digits)) => digits,
        (AddressKind::Tron, None) => text,
        (AddressKind::Evm, None) => return None,
    };
    if digits.len() != 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let digits = digits.to_ascii_lowercase();
    Some(match kind {
        AddressKind::Evm => format!("0x{digits}"),
        AddressKind::Tron => digits,
    })
}

words! {
    pub enum TransferState: ALL, parse {
        /// In a block, not final yet.
        Seen = "SEEN",
        /// Its block was replaced before it counted; it may come back.
        Orphaned = "ORPHANED",
        /// In its owner's wallet.
        Credited = "CREDITED",
        /// It paid for an order.
        Held = "HELD",
        /// It was posted and vanished from the chain; what was posted is taken back. It may come back.
        Reversed = "REVERSED",
        /// Final, and nobody's: the operator decides.
        Unmatched = "UNMATCHED",
        /// The operator gave it to an account.
        Assigned = "ASSIGNED",
        /// The operator sent it back.
        Returned = "RETURNED",
        /// The operator gave up finding its owner.
        WrittenOff = "WRITTEN_OFF",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferEvent {
    /// The chain shows it in a block, as it is on record.
    Sighted,
    /// The chain shows another movement in its place.
    Altered,
    /// Final: its owner gets it.
    Credited,
    /// Final: it pays for an order.
    Held,
    /// Final, and nobody's.
    Unmatched,
    /// No block holds it any more.
    Vanished,
    /// The operator's decisions about what is nobody's.
    Assigned,
    Returned,
    WrittenOff,
}

impl TransferState {
    /// Where an event leads; `None` when this state does not allow it. What was posted must be taken back before it can
    /// be something else, and what the operator has disposed of stays so, even when it vanishes.
    pub fn after(self, event: TransferEvent) -> Option<TransferState> {
        use TransferEvent as Event;
        use TransferState::*;
        match (self, event) {
            (Orphaned, Event::Sighted) => Some(Seen),
            (
                Seen | Reversed | Credited | Held | Unmatched | Assigned | Returned | WrittenOff,
                Event::Sighted,
            ) => Some(self),
            (Seen | Orphaned, Event::Altered) => Some(Seen),
            (Reversed, Event::Altered) => Some(Reversed),
            (Seen | Reversed, Event::Credited) => Some(Credited),
            (Seen | Reversed, Event::Held) => Some(Held),
            (Seen | Reversed, Event::Unmatched) => Some(Unmatched),
            (Seen | Orphaned, Event::Vanished) => Some(Orphaned),
            (Reversed | Credited | Held | Unmatched | Assigned, Event::Vanished) => Some(Reversed),
            (Returned | WrittenOff, Event::Vanished) => Some(self),
            (Unmatched, Event::Assigned) => Some(Assigned),
            (Unmatched, Event::Returned) => Some(Returned),
            (Unmatched, Event::WrittenOff) => Some(WrittenOff),
            (Credited | Held | Unmatched | Assigned | Returned | WrittenOff, Event::Altered)
            | (
                Orphaned | Credited | Held | Unmatched | Assigned | Returned | WrittenOff,
                Event::Credited | Event::Held | Event::Unmatched,
            )
            | (
                Seen | Orphaned | Reversed | Credited | Held | Assigned | Returned | WrittenOff,
                Event::Assigned | Event::Returned | Event::WrittenOff,
            ) => None,
        }
    }

    /// What was posted for it is taken back when it vanishes.
    pub fn is_taken_back(self) -> bool {
        match self {
            TransferState::Credited
            | TransferState::Held
            | TransferState::Unmatched
            | TransferState::Assigned => true,
            TransferState::Seen
            | TransferState::Orphaned
            | TransferState::Reversed
            | TransferState::Returned
            | TransferState::WrittenOff => false,
        }
    }

    /// Waits for its block to become final.
    pub fn is_open(self) -> bool {
        matches!(self, TransferState::Seen | TransferState::Reversed)
    }

    /// Its block was found to be final, and its money is in the books.
    pub fn is_booked(self) -> bool {
        match self {
            TransferState::Seen | TransferState::Orphaned | TransferState::Reversed => false,
            TransferState::Credited
            | TransferState::Held
            | TransferState::Unmatched
            | TransferState::Assigned
            | TransferState::Returned
            | TransferState::WrittenOff => true,
        }
    }
}

/// A block, as far as we care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub number: i64,
    pub hash: String,
    pub time: Time,
}

/// A transfer as a chain shows it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub id: TransferId,
    pub currency: Currency,
    pub sender: String,
    pub recipient: String,
    pub amount: Usd,
    pub block: Block,
    /// The nonce of the payer's authorization, if it was moved by one.
    pub payment_nonce: Option<String>,
}

/// What the operator has set about what is seen.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// A deposit of less confirms no invoice.
    pub dust: Usd,
    /// What is nobody's and less than this is not kept.
    pub least_kept: Usd,
    /// What an exchange may take out of an amount.
    pub exchange_fee: Usd,
}

/// A transfer as we have it on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub id: TransferId,
    pub currency: Currency,
    pub sender: String,
    pub address: String,
    pub amount: Usd,
    /// Where it is on the chain; `None` while it is on none.
    pub block: Option<Block>,
    pub state: TransferState,
    /// Whose address it came to; the house has none.
    pub account: Option<AccountNo>,
    pub invoice: Option<InvoiceId>,
    /// How often it was taken back: its entries are named by it.
    pub round: i64,
    /// The nonce of the signature that moved it, if that pays for the invoice.
    pub payment_nonce: Option<String>,
    /// It counted after one block, and that block was replaced: it may come back.
    pub missing: bool,
    /// Nodes did not agree on what became of it.
    pub doubted: bool,
}

impl Transfer {
    pub fn is_in(&self, block_hash: &str) -> bool {
        self.block.as_ref().is_some_and(|block| block.hash == block_hash)
    }

    /// Waits for this block to become final.
    pub fn waits_in(&self, block_hash: &str) -> bool {
        self.state.is_open() && self.is_in(block_hash)
    }

    /// Its own block counts as one. Once it is booked, whoever decided that had seen as many as it needed, however old
    /// the head is that we count from.
    pub fn confirmations(&self, head: i64, needed: i64) -> i64 {
        let Some(block) = &self.block else { return 0 };
        let counted = (head - block.number + 1).max(1);
        if self.state.is_booked() { counted.max(needed) } else { counted }
    }
}

words! {
    /// What became of a transfer, as far as its sender cares.
    pub enum PaymentStatus: ALL {
        Confirming = "CONFIRMING",
        Confirmed = "CONFIRMED",
        Orphaned = "ORPHANED",
        Reversed = "REVERSED",
    }
}

impl PaymentStatus {
    pub fn of(transfer: &Transfer) -> PaymentStatus {
        match transfer.state {
            TransferState::Seen => PaymentStatus::Confirming,
            // One that was taken back and is in a block again waits like a new one.
            TransferState::Reversed if transfer.block.is_some() => PaymentStatus::Confirming,
            TransferState::Reversed => PaymentStatus::Reversed,
            TransferState::Orphaned => PaymentStatus::Orphaned,
            TransferState::Credited
            | TransferState::Held
            | TransferState::Unmatched
            | TransferState::Assigned
            | TransferState::Returned
            | TransferState::WrittenOff => PaymentStatus::Confirmed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = TransferEvent> {
        use TransferEvent::*;
        prop::sample::select(vec![
            Sighted, Altered, Credited, Held, Unmatched, Vanished, Assigned, Returned, WrittenOff,
        ])
    }

    proptest! {
        /// The model knows only how much of the transfer is in the books, and whether the operator has disposed of it.
        #[test]
        fn any_sequence_books_it_at_most_once(events in prop::collection::vec(any_event(), 0..40)) {
            use TransferEvent::*;
            let (mut state, mut booked, mut disposed) = (TransferState::Seen, 0, false);
            for event in events {
                let Some(next) = state.after(event) else { continue };
                match event {
                    Credited | Held | Unmatched => booked += 1,
                    Vanished if state.is_taken_back() => booked -= 1,
                    Returned | WrittenOff => disposed = true,
                    Altered => prop_assert_eq!(booked, 0, "nothing that was posted changes its amount"),
                    Sighted | Vanished | Assigned => {}
                }
                state = next;
                prop_assert_eq!(booked, i64::from(state.is_booked()), "{:?}", state);
            }
            let is_disposed = matches!(state, TransferState::Returned | TransferState::WrittenOff);
            prop_assert_eq!(disposed, is_disposed, "the operator's word stays");
        }
    }

    #[test]
    fn a_transfer_that_vanished_may_come_back() {
        use TransferEvent as Event;
        use TransferState::*;
        for (state, vanished, back) in [
            (Seen, Orphaned, Seen),
            (Credited, Reversed, Reversed),
            (Held, Reversed, Reversed),
            (Unmatched, Reversed, Reversed),
            (Assigned, Reversed, Reversed),
            (Reversed, Reversed, Reversed),
            (Returned, Returned, Returned),
            (WrittenOff, WrittenOff, WrittenOff),
        ] {
            assert_eq!(state.after(Event::Vanished), Some(vanished), "{state:?}");
            assert_eq!(vanished.after(Event::Sighted), Some(back), "{state:?}");
        }
    }

    #[test]
    fn hashes_have_one_spelling() {
        let digits = "AB".repeat(32);
        let lower = "ab".repeat(32);
        let evm = Some(format!("0x{lower}"));
        assert_eq!(parse_tx_hash(AddressKind::Evm, &format!("0x{digits}")), evm);
        assert_eq!(parse_tx_hash(AddressKind::Evm, &digits), None);
        assert_eq!(parse_tx_hash(AddressKind::Tron, &digits), Some(lower.clone()));
        assert_eq!(parse_tx_hash(AddressKind::Tron, &format!("0x{digits}")), Some(lower));
        for wrong in ["", "0x", "0xab", &"g".repeat(64), &"a".repeat(65)] {
            assert_eq!(parse_tx_hash(AddressKind::Tron, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_booked_has_as_many_confirmations_as_it_needed() {
        let block = Block { number: 100, hash: "0x".into(), time: Time::from_micros(0) };
        let in_state = |state| Transfer {
            id: TransferId { network: Network::Arbitrum, tx_hash: "0x".into(), position: 0 },
            currency: Currency::Usdc,
            sender: "0x".into(),
            address: "0x".into(),
            amount: Usd::dollars(1),
            block: Some(block.clone()),
            state,
            account: None,
            invoice: None,
            round: 0,
            payment_nonce: None,
            missing: false,
            doubted: false,
        };
        for state in TransferState::ALL {
            let transfer = in_state(state);
            let counted = if state.is_booked() { 20 } else { 19 };
            assert_eq!(transfer.confirmations(118, 20), counted, "{state:?}");
            assert_eq!(transfer.confirmations(120, 20), 21, "{state:?}");
            assert_eq!(transfer.confirmations(0, 1), 1, "{state:?}");
            assert_eq!(Transfer { block: None, ..transfer }.confirmations(120, 20), 0, "{state:?}");
        }
    }

    #[test]
    fn ids_lead_back() {
        let text = format!("POLYGON:0x{}:3", "0a".repeat(32));
        let id = TransferId::parse(&text).unwrap();
        assert_eq!((id.network, id.position), (Network::Polygon, 3));
        assert_eq!(id.to_string(), text);
        assert_eq!(TransferId::parse("POLYGON:0x12:3"), None);
    }
}
