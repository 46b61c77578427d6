//! The operator's search by any name of a thing; and the accounts and the order that a command names.

use super::operator;
use crate::app::App;
use crate::chain::address;
use crate::domain::checkout::Checkout;
use crate::domain::email::Email;
use crate::domain::esim::iccid;
use crate::domain::ids::{InvoiceId, OrderId};
use crate::domain::invoice::Invoice;
use crate::domain::network::{AddressKind, Network};
use crate::domain::number::Number;
use crate::domain::order::Order;
use crate::domain::transfer::{Transfer, TransferId, parse_tx_hash};
use crate::error::Result;
use crate::store::accounts::{self, Account};
use crate::store::addresses::{self, Address};
use crate::store::claims::{self, Claimant};
use crate::store::ledger;
pub use crate::store::ledger::Booked;
use crate::store::tx::Tx;
use crate::store::{checkouts, invoices, orders, transfers, users};

/// The account with this id, or every one with this email.
pub async fn accounts_named(app: &App, id_or_email: &str) -> Result<Vec<Account>> {
    let text = id_or_email.to_string();
    app.store.snapshot(move |tx| named(tx, &text)).await
}

fn named(tx: &mut Tx, id_or_email: &str) -> Result<Vec<Account>> {
    if id_or_email.contains('@') {
        return with_email(tx, id_or_email);
    }
    Ok(accounts::find(tx, id_or_email)?.into_iter().collect())
}

/// Every partner with this email, and the user who is it.
pub(super) fn with_email(tx: &mut Tx, email: &str) -> Result<Vec<Account>> {
    // Emails are kept in lower case.
    let email = email.trim().to_lowercase();
    let mut owners = accounts::partners(tx)?;
    owners.retain(|account| account.email.as_ref() == Some(&email));
    if let Some(email) = Email::parse(&email) {
        owners.extend(users::find(tx, &email)?);
    }
    Ok(owners)
}

/// The order with this id, or with the number that people read out.
pub async fn order_named(app: &App, id_or_number: &str) -> Result<Option<Order>> {
    let number = app.numbers.parse(&id_or_number.trim().to_uppercase());
    let id = OrderId::from_text(id_or_number);
    let read = move |tx: &mut Tx| match number {
        Some(number) => numbered(tx, number),
        None => orders::by_id(tx, &id),
    };
    app.store.read(read).await
}

/// An order that was a checkout is found by the checkout; a top-up has no number.
pub(super) fn numbered(tx: &mut Tx, number: Number) -> Result<Option<Order>> {
    if let Some(order) = orders::by_number(tx, number)? {
        return Ok(Some(order));
    }
    let Some(id) = checkouts::by_number(tx, number)?.and_then(|checkout| checkout.order) else {
        return Ok(None);
    };
    Ok(orders::by_id(tx, &id)?.filter(|order| order.number == Some(number)))
}

#[derive(Default)]
pub struct Found {
    pub accounts: Vec<Account>,
    pub orders: Vec<Order>,
    pub invoices: Vec<Invoice>,
    pub checkouts: Vec<Checkout>,
    pub transfers: Vec<Transfer>,
    pub addresses: Vec<Address>,
    /// What operators booked: sweeps and payouts by their transactions, credits and debits by their references.
    pub entries: Vec<Booked>,
}

impl Found {
    pub fn is_nothing(&self) -> bool {
        let Found { accounts, orders, invoices, checkouts, transfers, addresses, entries } = self;
        accounts.is_empty()
            && orders.is_empty()
            && invoices.is_empty()
            && checkouts.is_empty()
            && transfers.is_empty()
            && addresses.is_empty()
            && entries.is_empty()
    }
}

/// By partner or user id, email (a guest's too), order id, order number, ICCID, a caller's reference, invoice id,
/// transfer id, transaction or address.
pub async fn find(app: &App, text: &str) -> Result<Found> {
    let text = text.trim().to_string();
    let number = app.numbers.parse(&text.to_uppercase());
    app.store
        .snapshot(move |tx| {
            let mut found = Found::default();
            find_buying(tx, &text, number, &mut found)?;
            find_paying(tx, &text, &mut found)?;
            Ok(found)
        })
        .await
}

fn find_buying(tx: &mut Tx, text: &str, number: Option<Number>, found: &mut Found) -> Result<()> {
    let mut ids: Vec<OrderId> = vec![OrderId::from_text(text)];
    if let Some(number) = number {
        ids.extend(orders::by_number(tx, number)?.map(|order| order.id));
        found.checkouts.extend(checkouts::by_number(tx, number)?);
    }
    if let Some(iccid) = iccid(text) {
        ids.extend(orders::with_iccid(tx, &iccid, 50)?);
    }
    for claimant in claims::find(tx, text)? {
        match claimant {
            Claimant::Order(id) | Claimant::Cancel(id) => ids.push(id),
            Claimant::Checkout(id) => found.checkouts.extend(checkouts::by_id(tx, &id)?),
        }
    }
    found.accounts = named(tx, text)?;
    if let Some(email) = Email::parse(text) {
        found.checkouts.extend(checkouts::by_email(tx, &email)?);
    }
    for id in &ids {
        found.orders.extend(orders::by_id(tx, id)?);
    }
    Ok(())
}

/// The transfer with this id, or all of a transaction, of any owner.
pub(super) fn transfers_named(tx: &mut Tx, text: &str) -> Result<Vec<Transfer>> {
    let mut found = Vec::new();
    if let Some(id) = TransferId::parse(text) {
        found.extend(transfers::by_id(tx, &id)?);
    }
    for network in Network::ALL {
        if let Some(hash) = parse_tx_hash(network.kind(), text) {
            found.extend(transfers::of_transaction(tx, network, &hash)?);
        }
    }
    Ok(found)
}

/// Finds payments by any of their names, with what belongs to them.
fn find_paying(tx: &mut Tx, text: &str, found: &mut Found) -> Result<()> {
    if let Some(invoice) = invoices::by_id(tx, &InvoiceId::from_text(text))? {
        found.transfers = transfers::of_invoice(tx, &invoice.id)?;
        found.invoices.push(invoice);
    }
    if let Some(checkout) = checkouts::by_id(tx, &InvoiceId::from_text(text))? {
        found.transfers.extend(transfers::of_invoice(tx, &checkout.id)?);
        found.checkouts.push(checkout);
    }
    found.transfers.extend(transfers_named(tx, text)?);
    let booked = operator::named_by(text);
    found.entries.extend(ledger::named(tx, &booked)?.into_iter().filter(|entry| entry.id == booked));
    for network in Network::ALL {
        if let Some(hash) = parse_tx_hash(network.kind(), text) {
            for deed in ["sweep", "payout"] {
                found.entries.extend(ledger::named(tx, &format!("{deed}.{}.{hash}", network.as_str()))?);
            }
        }
    }
    for kind in AddressKind::ALL {
        // Addresses are stored with their checksum; people paste them in any case.
        let Some(bytes) = address::bytes(kind, text) else { continue };
        let spelled = address::text(kind, &bytes);
        found.invoices.extend(invoices::at_address(tx, &spelled)?);
        found.checkouts.extend(checkouts::at_address(tx, &spelled)?);
        found.transfers.extend(transfers::of_address(tx, &spelled)?);
        if let Some(address) = addresses::find(tx, &spelled)? {
            if let Some(owner) = address.account {
                found.accounts.extend(accounts::by_no(tx, owner)?);
            }
            found.addresses.push(address);
        }
    }
    for id in found.transfers.iter().filter_map(|transfer| transfer.invoice.as_ref()) {
        if found.invoices.iter().all(|known| known.id != *id) {
            found.invoices.extend(invoices::by_id(tx, id)?);
        }
        if found.checkouts.iter().all(|known| known.id != *id) {
            found.checkouts.extend(checkouts::by_id(tx, id)?);
        }
    }
    // The order of a checkout belongs to it, and the checkout to its order.
    for id in found.checkouts.iter().filter_map(|checkout| checkout.order.as_ref()) {
        if found.orders.iter().all(|known| known.id != *id) {
            found.orders.extend(orders::by_id(tx, id)?);
        }
    }
    for order in &found.orders {
        if let Some(checkout) = checkouts::by_order(tx, &order.id)?
            && found.checkouts.iter().all(|known| known.id != checkout.id)
        {
            found.checkouts.push(checkout);
        }
    }
    Ok(())
}
