//! Whose a transfer is, as far as its address, its amount or a signature tells. This is decided when it is first seen.

use super::engine::Tx;
use super::transfers::Terms;
use super::{addresses, authorizations, checkouts, invoices, slots};
use crate::domain::account::GUESTS;
use crate::domain::authorization;
use crate::domain::checkout;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::transfer::Sighting;
use crate::error::Result;

#[derive(Default)]
pub struct Owner {
    pub account: Option<AccountNo>,
    /// Which invoice it counts for.
    pub invoice: Option<InvoiceId>,
    /// The signature that moved it, if that pays for the invoice.
    pub payment_nonce: Option<String>,
}

/// `None` when the address is not ours.
pub fn find(tx: &mut Tx, seen: &Sighting, terms: &Terms) -> Result<Option<Owner>> {
    let Some(address) = addresses::find(tx, &seen.recipient)? else { return Ok(None) };
    let signed = match &seen.payment_nonce {
        Some(nonce) => authorizations::by_nonce(tx, seen.id.network, &seen.sender, nonce)?,
        None => Vec::new(),
    };
    // What was signed for, to the last digit, pays for it.
    if let Some(paying) = signed.iter().find(|claimed| claimed.moved(seen)) {
        return Ok(Some(Owner {
            account: Some(paying.account),
            invoice: Some(paying.invoice.clone()),
            payment_nonce: seen.payment_nonce.clone(),
        }));
    }
    if let Some(owner) = address.account {
        let invoice = invoices::at(tx, &seen.recipient, seen.block.time)?;
        return Ok(Some(Owner { account: Some(owner), invoice, payment_nonce: None }));
    }
    // Anything else under the nonce of a claimed signature is its claimer's money, and pays for nothing. Who has no
    // wallet has the invoice.
    if let Some(claimed) = signed.first() {
        let invoice = (claimed.account == GUESTS).then(|| claimed.invoice.clone());
        return Ok(Some(Owner { account: Some(claimed.account), invoice, payment_nonce: None }));
    }
    payer_of(tx, seen, terms).map(Some)
}

/// A payment to the house is known by its exact amount: whose checkout asked for it at that time. If nobody's did, it is
/// known by being near a price. One that a signature moved, before we were shown that, pays for the checkout that asked
/// for it to be signed; a signature is never for another amount.
fn payer_of(tx: &mut Tx, seen: &Sighting, terms: &Terms) -> Result<Owner> {
    let Sighting { recipient, amount, block, payment_nonce, .. } = seen;
    let (found, payment_nonce) = if payment_nonce.is_some() && seen.currency == authorization::CURRENCY {
        (checkouts::to_be_signed(tx, recipient, *amount, block.time)?, payment_nonce.clone())
    } else if seen.currency == checkout::CURRENCY {
        let exact = checkouts::at(tx, seen.id.network, recipient, *amount, block.time)?;
        let found = match exact {
            None if payment_nonce.is_none() => slots::meant(tx, seen, terms.exchange_fee)?,
            exact => exact,
        };
        (found, None)
    } else {
        (None, None)
    };
    Ok(found.map_or(Owner::default(), |(invoice, account)| Owner {
        account: Some(account),
        invoice: Some(invoice),
        payment_nonce,
    }))
}
