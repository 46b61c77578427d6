//! The record of a deposit: the invoice with its payments, as answers show it, and as the events of its changes tell it.

use std::collections::{BTreeMap, BTreeSet};

use super::checkout_url;
use crate::app::App;
use crate::domain::event::News;
use crate::domain::invoice::{Deposit, Invoice, Paid};
use crate::domain::network::Network;
use crate::domain::time::Time;
use crate::domain::transfer::Transfer;
use crate::error::Result;
use crate::ops::{depth, events};
use crate::store::invoices::Moved;
use crate::store::tx::Tx;
use crate::store::{cursors, events as log, transfers};
use crate::wire::deposits::DepositFacts;

/// How many transactions an event lists, the newest. Anybody can send an address thousands of tiny ones.
const MOST_LISTED: usize = 100;

/// What a transaction knows of an invoice.
pub fn read(app: &App, tx: &mut Tx, invoice: Invoice) -> Result<Deposit> {
    let found = transfers::of_invoice(tx, &invoice.id)?;
    let networks: BTreeSet<Network> = found.iter().map(|transfer| transfer.id.network).collect();
    let mut heads = BTreeMap::new();
    for network in networks {
        heads.insert(network, cursors::get(tx, network)?.map_or(0, |cursor| cursor.head));
    }
    let paid = Paid::sum(&invoice, &found);
    let payment = |transfer: Transfer| {
        let head = heads.get(&transfer.id.network).copied().unwrap_or_default();
        depth::payment(app, transfer, head, false)
    };
    let payments = found.into_iter().map(payment).collect();
    let usual_confirmations = usual_confirmations(app, invoice.network);
    Ok(Deposit { invoice, payments, paid, usual_confirmations })
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
