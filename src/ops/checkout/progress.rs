//! How a checkout stands, for whoever holds its id.

use crate::app::App;
use crate::domain::checkout::{Checkout, Sighted, Stage};
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::domain::transfer::{Transfer, TransferState};
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{checkouts, cursors, orders, transfers};

/// What a checkout has come to.
pub struct Progress {
    pub checkout: Checkout,
    pub order: Option<Order>,
    /// What was paid for it, in the order in which it was seen.
    pub payments: Vec<Payment>,
    pub required_confirmations: i64,
    pub stage: Stage,
}

pub struct Payment {
    pub transfer: Transfer,
    pub confirmations: i64,
}

impl Progress {
    /// The transfer that pays for it: the one that did, or else the first that is on the chain.
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

    /// What went to the wallet because the plan was not delivered, or was given back.
    pub fn refunded(&self) -> Option<Usd> {
        match (&self.order, self.stage) {
            (Some(order), Stage::Failed) => Some(order.price),
            (None, Stage::Failed) => self.payment().map(|payment| payment.transfer.amount),
            _ => None,
        }
    }
}

/// For whoever holds the id; `owner`, if given, must own it.
pub async fn show(app: &App, id: &InvoiceId, owner: Option<AccountNo>) -> Result<Progress> {
    let id = id.clone();
    let read = move |tx: &mut Tx| {
        let Some(checkout) = checkouts::by_id(tx, &id)? else { return Ok(None) };
        let order = match &checkout.order {
            Some(order) => orders::by_id(tx, order)?,
            None => None,
        };
        let mut payments = Vec::new();
        for transfer in transfers::of_invoice(tx, &id)? {
            let head = cursors::get(tx, transfer.id.network)?.map_or(0, |cursor| cursor.head);
            payments.push(Payment { confirmations: transfer.confirmations(head), transfer });
        }
        Ok(Some((checkout, order, payments)))
    };
    // One moment: the state of a checkout must not be older than the payments that it shows.
    let found = app.store.snapshot(read).await?;
    let (checkout, order, payments) = found
        .filter(|(checkout, ..)| owner.is_none_or(|owner| owner == checkout.account))
        .ok_or(Refusal::InvoiceNotFound)?;
    let terms = app.settings.settlement.networks.get(&checkout.network);
    let required_confirmations = terms.map_or(checkout.network.confirmations(), |terms| terms.confirmations);
    let stage = Stage::PendingPayment;
    let mut progress = Progress { checkout, order, payments, required_confirmations, stage };
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
    Ok(progress)
}
