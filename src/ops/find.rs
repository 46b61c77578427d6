//! The operator's search by any name of a thing; and the accounts and the order that a command names.

use crate::app::App;
use crate::chain::address;
use crate::domain::checkout::Checkout;
use crate::domain::email::Email;
use crate::domain::ids::{InvoiceId, OrderId};
use crate::domain::invoice::Invoice;
use crate::domain::network::{AddressKind, Network};
use crate::domain::number::Number;
use crate::domain::order::Order;
use crate::domain::transfer::{Transfer, TransferId, parse_tx_hash};
use crate::error::Result;
use crate::store::accounts::{self, Account};
use crate::store::claims::{self, Claimant};
use crate::store::tx::Tx;
use crate::store::{addresses, checkouts, invoices, orders, transfers, users};

/// The account with this id, or every one with this email.
pub async fn accounts_named(app: &App, id_or_email: &str) -> Result<Vec<Account>> {
    let text = id_or_email.to_string();
    let read = move |tx: &mut Tx| {
        if !text.contains('@') {
            return Ok(accounts::find(tx, &text)?.into_iter().collect());
        }
        let email = text.to_lowercase();
        let mut owners = accounts::partners(tx)?;
        owners.retain(|account| account.email.as_ref() == Some(&email));
        if let Some(email) = Email::parse(&email) {
            owners.extend(users::find(tx, &email)?);
        }
        Ok(owners)
    };
    app.store.snapshot(read).await
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
fn numbered(tx: &mut Tx, number: Number) -> Result<Option<Order>> {
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
}

/// By partner or user id, email, order id, order number, ICCID, a caller's reference, invoice id, transfer id,
/// transaction or address.
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
    ids.extend(orders::with_iccid(tx, text, 50)?);
    for claimant in claims::find(tx, text)? {
        match claimant {
            Claimant::Order(id) | Claimant::Cancel(id) => ids.push(id),
            Claimant::Checkout(id) => found.checkouts.extend(checkouts::by_id(tx, &id)?),
        }
    }
    let by_id = accounts::find(tx, text)?;
    // Emails are kept in lower case.
    let by_email = if by_id.is_none() { accounts::find(tx, &text.to_lowercase())? } else { None };
    found.accounts = by_id.into_iter().chain(by_email).collect();
    if let Some(email) = Email::parse(text)
        && let Some(user) = users::find(tx, &email)?
        && found.accounts.iter().all(|known| known.no != user.no)
    {
        found.accounts.push(user);
    }
    for id in &ids {
        found.orders.extend(orders::by_id(tx, id)?);
    }
    Ok(())
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
    if let Some(id) = TransferId::parse(text) {
        found.transfers.extend(transfers::by_id(tx, &id)?);
    }
    for network in Network::ALL {
        if let Some(hash) = parse_tx_hash(network.kind(), text) {
            found.transfers.extend(transfers::of_transaction(tx, network, &hash)?);
        }
    }
    for kind in AddressKind::ALL {
        // Addresses are stored with their checksum; people paste them in any case.
        let Some(bytes) = address::bytes(kind, text) else { continue };
        let spelled = address::text(kind, &bytes);
        found.invoices.extend(invoices::at_address(tx, &spelled)?);
        found.checkouts.extend(checkouts::at_address(tx, &spelled)?);
        found.transfers.extend(transfers::of_address(tx, &spelled)?);
        if let Some(owner) = addresses::find(tx, &spelled)?.and_then(|address| address.account) {
            found.accounts.extend(accounts::by_no(tx, owner)?);
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
