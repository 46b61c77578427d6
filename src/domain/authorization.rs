//! A payer's signed permission to move an exact amount to one of our addresses, once and within a time (EIP-3009). It
//! is claimed for one invoice before it is used. From the moment it may have left us, only the chain says what became
//! of it.

use super::ids::{AccountNo, InvoiceId};
use super::money::Usd;
use super::network::{Currency, Network};
use super::time::Time;
use super::transfer::Sighting;
use super::words::words;

/// The one token that payers sign for.
pub const CURRENCY: Currency = Currency::Usdc;

/// What makes an authorization unique: its token refuses a second use of the same payer's nonce.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthorizationId {
    pub network: Network,
    /// The token's contract.
    pub asset: String,
    pub payer: String,
    /// `0x` and 64 digits of lower-case hex.
    pub nonce: String,
}

words! {
    pub enum AuthorizationState: parse {
        /// Written down; it has certainly not left us.
        Claimed = "CLAIMED",
        /// Others may have it, and may use it until it expires.
        Sent = "SENT",
        /// Its transfer is in our books.
        Settled = "SETTLED",
        /// It moved nothing and never will.
        Dead = "DEAD",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizationEvent {
    /// We send it.
    Sent,
    /// Its token says that its nonce was used, by us or by others: its money may have moved.
    FoundUsed,
    /// We will not send it: it would fail, cost too much or come too late.
    GivenUp,
    /// The chain says that it moved nothing and never will.
    Ended,
    /// Its transfer is in our books.
    Booked,
}

impl AuthorizationState {
    /// Where an event leads; `None` when this state does not allow it. An authorization that others may have cannot be
    /// given up, and a dead one stays dead, since its invoice may have another by now.
    pub fn after(self, event: AuthorizationEvent) -> Option<AuthorizationState> {
        use AuthorizationEvent as Event;
        use AuthorizationState::*;
        match (self, event) {
            (Claimed, Event::Sent | Event::FoundUsed) | (Sent, Event::Sent) => Some(Sent),
            (Claimed, Event::GivenUp) | (Claimed | Sent, Event::Ended) => Some(Dead),
            (Claimed | Sent, Event::Booked) => Some(Settled),
            (Sent, Event::FoundUsed | Event::GivenUp)
            | (
                Settled | Dead,
                Event::Sent | Event::FoundUsed | Event::GivenUp | Event::Ended | Event::Booked,
            ) => None,
        }
    }
}

words! {
    /// Why a payment cannot be taken, in the words that x402 clients know.
    pub enum Reason: parse {
        Version = "invalid_x402_version",
        Scheme = "invalid_scheme",
        Network = "invalid_network",
        Payload = "invalid_payload",
        Requirements = "invalid_payment_requirements",
        Signature = "invalid_exact_evm_payload_signature",
        Value = "invalid_exact_evm_payload_authorization_value_mismatch",
        Recipient = "invalid_exact_evm_payload_recipient_mismatch",
        ValidAfter = "invalid_exact_evm_payload_authorization_valid_after",
        ValidBefore = "invalid_exact_evm_payload_authorization_valid_before",
        Funds = "insufficient_funds",
        /// The token would refuse it, or did.
        Transaction = "invalid_transaction_state",
        /// Its nonce was used for something else, or its payer revoked it.
        Used = "invalid_exact_evm_nonce_already_used",
        /// Our own trouble: gas is too expensive, or we have too little of it.
        Unexpected = "unexpected_settle_error",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    pub id: AuthorizationId,
    pub invoice: InvoiceId,
    pub account: AccountNo,
    /// The caller's own reference for this purchase.
    pub reference: Option<String>,
    pub pay_to: String,
    pub amount: Usd,
    /// It is valid in blocks whose time lies between these two.
    pub valid_after: Time,
    pub valid_before: Time,
    /// `0x` and the 65 bytes of r, s and v.
    pub signature: String,
    pub state: AuthorizationState,
    /// Why it is dead.
    pub reason: Option<Reason>,
    pub created_at: Time,
    pub updated_at: Time,
}

impl Authorization {
    /// Whether this transfer is what was signed for: all agreed terms count, because a payer can sign other terms with
    /// the same nonce.
    pub fn moved(&self, seen: &Sighting) -> bool {
        seen.payment_nonce.as_ref() == Some(&self.id.nonce)
            && seen.id.network == self.id.network
            && seen.sender == self.id.payer
            && seen.currency == CURRENCY
            && seen.recipient == self.pay_to
            && seen.amount == self.amount
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_chain_ends_what_may_be_with_others() {
        use AuthorizationEvent as Event;
        use AuthorizationState::*;
        for (state, event, next) in [
            (Claimed, Event::Sent, Some(Sent)),
            (Claimed, Event::FoundUsed, Some(Sent)),
            (Claimed, Event::GivenUp, Some(Dead)),
            (Claimed, Event::Ended, Some(Dead)),
            (Claimed, Event::Booked, Some(Settled)),
            (Sent, Event::Sent, Some(Sent)),
            (Sent, Event::FoundUsed, None),
            (Sent, Event::GivenUp, None),
            (Sent, Event::Ended, Some(Dead)),
            (Sent, Event::Booked, Some(Settled)),
        ] {
            assert_eq!(state.after(event), next, "{state:?} {event:?}");
        }
        for ended in [Settled, Dead] {
            for event in [Event::Sent, Event::FoundUsed, Event::GivenUp, Event::Ended, Event::Booked] {
                assert_eq!(ended.after(event), None, "{ended:?} {event:?}");
            }
        }
    }
}
