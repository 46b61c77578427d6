//! Where a checkout stands, for anybody who holds its id.

use crate::app::App;
use crate::domain::checkout::{Checkout, Sighted, Stage};
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::invoice::Payment;
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::transfer::TransferState;
use crate::error::Result;
use crate::ops::deliver;
use crate::ops::depth;
use crate::ops::owned::Owned;
use crate::store::slots::Near;
use crate::store::tx::Tx;
use crate::store::{authorizations, checkouts, cursors, guests, orders, slots, transfers};

/// The state of a checkout.
pub struct Progress {
    pub checkout: Checkout,
    pub order: Option<Order>,
    /// The payments for it, in the order in which they were seen.
    pub payments: Vec<Payment>,
    pub required_confirmations: i64,
    pub stage: Stage,
    /// For a guest's checkout: what the holder of the invoice can claim.
    pub owed: Usd,
    /// Whether a rounded amount pays it too, at the moment.
    pub rounds: bool,
    /// Whether a transfer came to its address that may have been meant for it, without certainty.
    pub nearly_paid: bool,
    /// Whether a payer's signature for it is being settled, or was: nobody should pay again.
    pub signed: bool,
}

impl Progress {
    /// The transfer that paid for it, or else the first that is on the chain.
    pub fn payment(&self) -> Option<&Payment> {
        let used = |payment: &&Payment| {
            matches!(payment.transfer.state, TransferState::Held | TransferState::Assigned)
        };
        let on_chain = |payment: &&Payment| payment.transfer.block.is_some();
        self.payments.iter().find(used).or_else(|| self.payments.iter().find(on_chain))
    }

    pub fn confirmations(&self) -> i64 {
        self.payment().map_or(0, |payment| payment.confirmations)
    }

    /// What went to the wallet because the plan was not delivered, or was given back. For a guest, after the claim.
    pub fn refunded(&self) -> Option<Usd> {
        if self.checkout.is_nobodys() {
            return None;
        }
        match (&self.order, self.stage) {
            (Some(order), Stage::Failed) => Some(order.given_back()),
            (None, Stage::Failed) => self.payment().map(|payment| payment.transfer.amount),
            _ => None,
        }
    }

    /// Why nothing is delivered for the payment.
    pub fn refusal(&self) -> Option<Refusal> {
        match (&self.order, self.stage) {
            (Some(order), _) if order.status == OrderStatus::Failed => Some(deliver::refusal_of(order)),
            (None, Stage::Failed) => {
                Some(Refusal::NotDelivered { refunded: self.refunded().unwrap_or(Usd::ZERO) })
            }
            _ => None,
        }
    }
}

/// Whether an amount near the price pays this checkout: it has a slot, and no checkout on its address asks for so
/// little more that an exchange's fee could make the two payments look alike.
pub(super) fn rounds(tx: &mut Tx, checkout: &Checkout, fee: Usd, now: Time) -> Result<bool> {
    if !checkout.wide {
        return Ok(false);
    }
    let Checkout { address, id, .. } = checkout;
    let near = Near { address, invoice: id, price: checkout.price(), at: now };
    slots::is_clear(tx, &near, checkout.band().most, fee)
}

/// `rounds` for a checkout that was read before.
pub async fn rounds_now(app: &App, checkout: &Checkout) -> Result<bool> {
    let (checkout, fee, now) = (checkout.clone(), app.settings.settlement.exchange_fee, app.now());
    app.store.read(move |tx| rounds(tx, &checkout, fee, now)).await
}

/// The progress, for anybody who holds the id; `owner`, if given, must own it.
pub async fn show(app: &App, id: &InvoiceId, owner: Option<AccountNo>) -> Result<Progress> {
    let (id, reader, now) = (id.clone(), app.clone(), app.now());
    // One consistent read: the state of a checkout must not be older than the payments that it shows.
    let found = app.store.read_consistent(move |tx| read(&reader, tx, &id, now)).await?;
    let owned = |progress: &Progress| owner.is_none_or(|owner| progress.checkout.belongs_to(owner));
    Ok(found.filter(owned).ok_or(Refusal::InvoiceNotFound)?)
}

/// What a transaction knows of a checkout.
pub fn read(app: &App, tx: &mut Tx, id: &InvoiceId, now: Time) -> Result<Option<Progress>> {
    let Some(checkout) = checkouts::by_id(tx, id)? else { return Ok(None) };
    let order = match &checkout.order {
        Some(order) => orders::by_id(tx, order)?,
        None => None,
    };
    let unpaid = checkout.status.is_unpaid();
    let mut payments = Vec::new();
    for transfer in transfers::of_invoice(tx, id)? {
        let head = cursors::get(tx, transfer.id.network)?.map_or(0, |cursor| cursor.head);
        payments.push(depth::payment(app, transfer, head, unpaid));
    }
    let moved = payments.iter().any(|payment| payment.transfer.payment_nonce.is_some());
    let progress = Progress {
        signed: moved || authorizations::live(tx, id)?.is_some(),
        owed: if checkout.is_guests() { guests::claimable(tx, id)? } else { Usd::ZERO },
        rounds: rounds(tx, &checkout, app.settings.settlement.exchange_fee, now)?,
        nearly_paid: unpaid && payments.is_empty() && transfers::any_nearly(tx, &checkout)?,
        checkout,
        order,
        payments,
        required_confirmations: 0,
        stage: Stage::PendingPayment,
    };
    Ok(Some(staged(app, progress)))
}

/// How many confirmations it needs, and the stage that follows from all else.
fn staged(app: &App, mut progress: Progress) -> Progress {
    // A signature may have paid on another network than the checkout's.
    let paying = progress.payment();
    let network = paying.map_or(progress.checkout.network, |payment| payment.transfer.id.network);
    let terms = app.settings.settlement.networks.get(&network);
    let usual = terms.map_or(network.confirmations(), |terms| terms.confirmations);
    let required_confirmations = paying.map_or(usual, |payment| payment.needed);
    progress.required_confirmations = required_confirmations;
    let sighted = match progress.confirmations() {
        0 => Sighted::No,
        // Large amounts also wait until the chain calls their block final.
        deep if deep >= required_confirmations
            && terms.is_some_and(|terms| progress.checkout.amount < terms.final_from) =>
        {
            Sighted::Deep
        }
        _ => Sighted::Seen,
    };
    let order_status: Option<OrderStatus> = progress.order.as_ref().map(|order| order.status);
    progress.stage = progress.checkout.stage(sighted, order_status);
    progress
}
