//! Money that goes back for an order: to whom, and what it settles first.

use super::ids::{AccountNo, InvoiceId};
use super::money::Usd;
use super::transfer::TransferId;

/// Whom money goes back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payee {
    Wallet(AccountNo),
    /// A guest paid it, and nobody has claimed what is owed to the invoice.
    Invoice(InvoiceId),
}

impl From<AccountNo> for Payee {
    fn from(owner: AccountNo) -> Payee {
        Payee::Wallet(owner)
    }
}

/// What is paid back for an order. What its own payment still owes us, because that vanished from its chain, is settled
/// first; only the rest reaches anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payback {
    pub to: Payee,
    pub amount: Usd,
    /// The transfer that paid for the order, and how much of the amount goes towards what it owes.
    pub settles: Option<(TransferId, Usd)>,
}

impl Payback {
    /// All of it to its payee.
    pub fn whole(to: impl Into<Payee>, amount: Usd) -> Payback {
        Payback { to: to.into(), amount, settles: None }
    }

    /// What its payee gets.
    pub fn received(&self) -> Usd {
        self.amount.minus(self.settled())
    }

    fn settled(&self) -> Usd {
        self.settles.as_ref().map_or(Usd::ZERO, |(_, amount)| *amount)
    }
}
