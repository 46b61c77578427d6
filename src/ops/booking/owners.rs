//! Whose a transfer is. Its address, its amount or a signature tells it, when the transfer is first seen.

use crate::domain::account::GUESTS;
use crate::domain::authorization;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::transfer::{Sighting, Terms, Transfer};
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{addresses, authorizations, checkouts, invoices, slots};

#[derive(Default)]
pub struct Owner {
    pub account: Option<AccountNo>,
    /// Which invoice it counts for.
    pub invoice: Option<InvoiceId>,
    /// The signature that moved it, if that pays for the invoice.
    pub payment_nonce: Option<String>,
}

impl Owner {
    pub fn of(known: &Transfer) -> Owner {
        let (invoice, payment_nonce) = (known.invoice.clone(), known.payment_nonce.clone());
        Owner { account: known.account, invoice, payment_nonce }
    }
}

/// `None` when the address is not ours.
pub fn find(tx: &mut Tx, seen: &Sighting, terms: &Terms) -> Result<Option<Owner>> {
    let Some(address) = addresses::find(tx, &seen.recipient)? else { return Ok(None) };
    let signed = match &seen.payment_nonce {
        Some(nonce) => authorizations::by_nonce(tx, seen.id.network, &seen.sender, nonce)?,
        None => Vec::new(),
    };
    // A transfer that is exactly what was signed for pays for the invoice of that signature.
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
    // Anything else under the nonce of a claimed signature is the claimer's money, and pays for nothing. A guest has no
    // wallet: the money belongs to the invoice.
    if let Some(claimed) = signed.first() {
        let invoice = (claimed.account == GUESTS).then(|| claimed.invoice.clone());
        return Ok(Some(Owner { account: Some(claimed.account), invoice, payment_nonce: None }));
    }
    payer_of(tx, seen, terms).map(Some)
}

/// A payment to the house belongs to the checkout that asked for its exact amount at that time. If there is none, it may
/// belong to a checkout whose price is near its amount. If a signature moved it that nobody has shown us, it pays for the
/// checkout that asked for that amount to be signed. A signature always moves the exact amount.
fn payer_of(tx: &mut Tx, seen: &Sighting, terms: &Terms) -> Result<Owner> {
    let Sighting { recipient, amount, block, payment_nonce, .. } = seen;
    let (found, payment_nonce) = if payment_nonce.is_some() && seen.currency == authorization::CURRENCY {
        (checkouts::to_be_signed(tx, recipient, *amount, block.time)?, payment_nonce.clone())
    } else {
        let found = match checkouts::at(tx, seen)? {
            None if payment_nonce.is_none() => slots::meant(tx, seen, terms.exchange_fee)?,
            exact => exact,
        };
        (found, None)
    };
    Ok(found.map_or(Owner::default(), |(invoice, account)| Owner {
        account: Some(account),
        invoice: Some(invoice),
        payment_nonce,
    }))
}
