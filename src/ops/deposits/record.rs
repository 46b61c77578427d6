//! The record of a deposit: the invoice with its payments, as answers show it, and as the events of its changes tell it.

use std::collections::BTreeMap;

use super::checkout_url;
use crate::app::App;
use crate::domain::event::News;
use crate::domain::invoice::{Deposit, Invoice, Paid, Payment};
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::domain::transfer::Transfer;
use crate::error::Result;
use crate::ops::{depth, events};
use crate::store::invoices::Moved;
use crate::store::tx::Tx;
use crate::store::{cursors, events as log, transfers};
use crate::wire::deposits::DepositFacts;

/// How many transactions an event or a list shows of an invoice, the newest. Anybody can send an address thousands of tiny ones.
const MOST_LISTED: usize = 100;

/// What a transaction knows of an invoice.
pub fn read(app: &App, tx: &mut Tx, invoice: Invoice) -> Result<Deposit> {
    let found = transfers::of_invoice(tx, &invoice.id)?;
    let paid = Paid::sum(&invoice, &found);
    deposit(app, tx, invoice, found, paid, &mut Heads::default())
}

/// The same with its newest payments only, for a list.
pub(super) fn in_brief(app: &App, tx: &mut Tx, invoice: Invoice, heads: &mut Heads) -> Result<Deposit> {
    let found = transfers::newest_of_invoice(tx, &invoice.id, MOST_LISTED as i64)?;
    let paid = match found.len() < MOST_LISTED {
        true => Paid::sum(&invoice, &found),
        false => transfers::paid(tx, &invoice)?,
    };
    deposit(app, tx, invoice, found, paid, heads)
}

fn deposit(
    app: &App,
    tx: &mut Tx,
    invoice: Invoice,
    found: Vec<Transfer>,
    paid: Paid,
    heads: &mut Heads,
) -> Result<Deposit> {
    let payments = found.into_iter().map(|transfer| heads.payment(app, tx, transfer));
    let payments = payments.collect::<Result<_>>()?;
    let usual_confirmations = usual_confirmations(app, invoice.network);
    Ok(Deposit { invoice, payments, paid, usual_confirmations })
}

/// The newest blocks that we know of, each looked up once.
#[derive(Default)]
pub(super) struct Heads(BTreeMap<Network, i64>);

impl Heads {
    /// A transfer with its depth.
    pub(super) fn payment(&mut self, app: &App, tx: &mut Tx, transfer: Transfer) -> Result<Payment> {
        let network = transfer.id.network;
        let head = match self.0.get(&network) {
            Some(head) => *head,
            None => {
                let head = cursors::get(tx, network)?.map_or(0, |cursor| cursor.head);
                *self.0.entry(network).or_insert(head)
            }
        };
        Ok(depth::payment(app, transfer, head, false))
    }
}

/// An invoice that has no payment yet.
pub(super) fn unpaid(app: &App, invoice: Invoice) -> Deposit {
    let usual_confirmations = usual_confirmations(app, invoice.network);
    Deposit { invoice, payments: Vec::new(), paid: Paid::default(), usual_confirmations }
}

fn usual_confirmations(app: &App, network: Network) -> i64 {
    let terms = app.settings.settlement.networks.get(&network);
    terms.map_or(network.confirmations(), |terms| terms.confirmations)
}

/// The record as it is shown.
pub fn facts(app: &App, deposit: &Deposit) -> DepositFacts {
    DepositFacts::of(deposit, app.settings.settlement.dust, checkout_url(app, &deposit.invoice.id))
}

/// Tells the owners of invoices that moved, in the write that moved them.
pub fn tell(app: &App, tx: &mut Tx, moved: impl IntoIterator<Item = Moved>, now: Time) -> Result<()> {
    for Moved { invoice, kind, sequence } in moved {
        let deposit = read(app, tx, invoice)?;
        let mut facts = facts(app, &deposit);
        let older = facts.transactions.len().saturating_sub(MOST_LISTED);
        facts.transactions.drain(..older);
        let (account, data) = (deposit.invoice.account, events::written(&facts)?);
        let subject = deposit.invoice.id.as_str();
        log::append(tx, &News { account, kind, subject, sequence, at: now, data: &data })?;
    }
    Ok(())
}
