//! Money that goes back for an order: its payee, and what it settles first.

use super::ids::{AccountNo, InvoiceId};
use super::money::Usd;
use super::transfer::TransferId;

/// Who gets money back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payee {
    Wallet(AccountNo),
    /// A guest paid for it, and nobody has claimed what we owe for the invoice.
    Invoice(InvoiceId),
}

impl From<AccountNo> for Payee {
    fn from(owner: AccountNo) -> Payee {
        Payee::Wallet(owner)
    }
}

/// What is paid back for an order. If the order's own payment vanished from its chain, what is owed for it is settled
/// first, and its payee receives only the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payback {
    pub to: Payee,
    pub amount: Usd,
    /// The transfer that paid for the order, and how much of the amount settles what is owed for it.
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
