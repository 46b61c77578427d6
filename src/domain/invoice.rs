//! A deposit invoice: a request to pay an amount to an address of one account. We credit what arrived; the invoice only
//! says how that compares with what was asked.

use super::event::EventKind;
use super::ids::{AccountNo, InvoiceId};
use super::money::Usd;
use super::network::{Currency, Network};
use super::time::Time;
use super::transfer::{Transfer, TransferState};
use super::words::words;

words! {
    pub enum InvoiceStatus: ALL, parse {
        Pending = "PENDING",
        Confirming = "CONFIRMING",
        Confirmed = "CONFIRMED",
        Expired = "EXPIRED",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvoiceEvent {
    /// Its money is in a block, and not in the wallet yet.
    Received,
    /// Its money is in the wallet.
    Credited,
    /// It has no money: the transfer has vanished, or what came is too little. It has not expired.
    Emptied,
    /// It has no money, and has expired.
    Lapsed,
}

impl InvoiceStatus {
    /// Where an event leads; `None` when this state does not allow it. Money decides, whenever it comes; without money,
    /// an expired invoice never opens again.
    pub fn after(self, event: InvoiceEvent) -> Option<InvoiceStatus> {
        use InvoiceEvent::*;
        use InvoiceStatus::*;
        match (self, event) {
            (Pending | Confirming | Confirmed | Expired, Received) => Some(Confirming),
            (Pending | Confirming | Confirmed | Expired, Credited) => Some(Confirmed),
            (Pending | Confirming | Confirmed, Emptied) => Some(Pending),
            (Pending | Confirming | Confirmed, Lapsed) => Some(Expired),
            (Expired, Emptied | Lapsed) => None,
        }
    }

    /// The event that tells the owner of an invoice that it has come here.
    pub fn news(self) -> Option<EventKind> {
        match self {
            InvoiceStatus::Pending => None,
            InvoiceStatus::Confirming => Some(EventKind::DepositDetected),
            InvoiceStatus::Confirmed => Some(EventKind::DepositConfirmed),
            InvoiceStatus::Expired => Some(EventKind::DepositExpired),
        }
    }
}

words! {
    /// How the payment differs from what was asked for.
    pub enum InvoiceException: ALL {
        Under = "UNDER",
        Over = "OVER",
        Late = "LATE",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoice {
    pub id: InvoiceId,
    pub account: AccountNo,
    pub network: Network,
    pub currency: Currency,
    pub amount: Usd,
    pub address: String,
    pub status: InvoiceStatus,
    pub created_at: Time,
    pub expires_at: Time,
    /// When it was found unpaid; a late payment leaves this in place.
    pub expired_at: Option<Time>,
    pub confirmed_at: Option<Time>,
}

/// The sums of an invoice's transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Paid {
    /// In a block, final or not.
    pub received: Usd,
    /// In the wallet.
    pub credited: Usd,
    /// Some of it came after the invoice had expired.
    pub late: bool,
}

impl Paid {
    pub fn sum<'a>(invoice: &Invoice, transfers: impl IntoIterator<Item = &'a Transfer>) -> Paid {
        let mut paid = Paid::default();
        for transfer in transfers {
            let Some(block) = &transfer.block else { continue };
            paid.received = paid.received.plus(transfer.amount);
            paid.late |= block.time >= invoice.expires_at;
            if transfer.state == TransferState::Credited {
                paid.credited = paid.credited.plus(transfer.amount);
            }
        }
        paid
    }
}

impl Invoice {
    /// The event that its transfers amount to. Less than `dust` changes nothing; money that vanished leaves no trace.
    pub fn event(&self, paid: &Paid, dust: Usd) -> InvoiceEvent {
        if paid.credited >= dust {
            InvoiceEvent::Credited
        } else if paid.received >= dust {
            InvoiceEvent::Received
        } else if self.expired_at.is_some() {
            InvoiceEvent::Lapsed
        } else {
            InvoiceEvent::Emptied
        }
    }

    /// A wrong amount matters more than a late one: somebody may have to act on it.
    pub fn exception(&self, paid: &Paid, dust: Usd) -> Option<InvoiceException> {
        if paid.received < dust {
            None
        } else if paid.received < self.amount {
            Some(InvoiceException::Under)
        } else if paid.received > self.amount {
            Some(InvoiceException::Over)
        } else {
            paid.late.then_some(InvoiceException::Late)
        }
    }

    /// What remains to be paid.
    pub fn due(&self, paid: &Paid) -> Usd {
        if paid.received >= self.amount { Usd::ZERO } else { self.amount.minus(paid.received) }
    }
}

/// A transfer for an invoice, how deep it is and how deep it must be.
pub struct Payment {
    pub transfer: Transfer,
    pub confirmations: i64,
    pub needed: i64,
}

/// An invoice with all its payments.
pub struct Deposit {
    pub invoice: Invoice,
    /// In the order in which they were seen.
    pub payments: Vec<Payment>,
    pub paid: Paid,
    /// What its own network usually needs.
    pub usual_confirmations: i64,
}

impl Deposit {
    /// The fewest of its transactions' confirmations; 0 without any. Once it is confirmed, later ones do not count.
    pub fn confirmations(&self) -> i64 {
        self.shallowest().map_or(0, |payment| payment.confirmations)
    }

    /// What that transaction needs; its network may not be the invoice's.
    pub fn required_confirmations(&self) -> i64 {
        self.shallowest().map_or(self.usual_confirmations, |payment| payment.needed)
    }

    fn shallowest(&self) -> Option<&Payment> {
        let confirmed = self.invoice.status == InvoiceStatus::Confirmed;
        let counts = |payment: &&Payment| {
            payment.transfer.block.is_some() && (!confirmed || payment.transfer.state.is_booked())
        };
        let depth = |payment: &&Payment| (payment.confirmations, -payment.needed);
        self.payments.iter().filter(counts).min_by_key(depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUST: Usd = Usd::dollars(1);

    fn invoice(expired: bool) -> Invoice {
        let at = |second: i64| Time::from_micros(second * 1_000_000);
        Invoice {
            id: InvoiceId::new(at(0), 1),
            account: AccountNo(1),
            network: Network::Base,
            currency: Currency::Usdc,
            amount: Usd::dollars(25),
            address: "0x".into(),
            status: InvoiceStatus::Pending,
            created_at: at(0),
            expires_at: at(3_600),
            expired_at: expired.then(|| at(3_601)),
            confirmed_at: None,
        }
    }

    fn paid(received: i64, credited: i64, late: bool) -> Paid {
        Paid { received: Usd::from_micros(received), credited: Usd::from_micros(credited), late }
    }

    #[test]
    fn an_expired_invoice_is_open_again_only_for_money() {
        use InvoiceEvent::*;
        use InvoiceStatus::*;
        for status in InvoiceStatus::ALL {
            assert_eq!(status.after(Received), Some(Confirming));
            assert_eq!(status.after(Credited), Some(Confirmed));
            let expired = status == Expired;
            assert_eq!(status.after(Emptied), (!expired).then_some(Pending));
            assert_eq!(status.after(Lapsed), (!expired).then_some(Expired));
        }
    }

    #[test]
    fn what_arrived_decides() {
        use InvoiceException::*;
        use InvoiceStatus::*;
        const M: i64 = 1_000_000;
        for (expired, paid, status, exception, due) in [
            (false, paid(0, 0, false), Pending, None, 25 * M),
            (true, paid(0, 0, false), Expired, None, 25 * M),
            (false, paid(999_999, 999_999, false), Pending, None, 24 * M + 1),
            (false, paid(25 * M, 0, false), Confirming, None, 0),
            (true, paid(25 * M, 0, true), Confirming, Some(Late), 0),
            (true, paid(25 * M, 25 * M, true), Confirmed, Some(Late), 0),
            (false, paid(24 * M, 24 * M, false), Confirmed, Some(Under), M),
            (false, paid(26 * M, M, false), Confirmed, Some(Over), 0),
            (true, paid(26 * M, 0, true), Confirming, Some(Over), 0),
        ] {
            let invoice = invoice(expired);
            assert_eq!(invoice.status.after(invoice.event(&paid, DUST)), Some(status), "{paid:?}");
            assert_eq!(invoice.exception(&paid, DUST), exception, "{paid:?}");
            assert_eq!(invoice.due(&paid), Usd::from_micros(due), "{paid:?}");
        }
    }
}
