//! Guests: people who buy on the checkout page without an account. Their checkout belongs to nobody: whoever holds its
//! id sees it, and what is owed to it can be claimed, once, by somebody who has signed in.

use std::net::IpAddr;

use metrics::counter;

use super::checkout::{self, NewCheckout, Opened};
use super::login::{self, CheckedBefore, CodeAnswer, Proof};
use super::orders::Buyer;
use crate::app::App;
use crate::domain::account::GUESTS;
use crate::domain::checkout::Checkout;
use crate::domain::email::Email;
use crate::domain::ids::InvoiceId;
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::network::Network;
use crate::domain::plan::RETAIL_PRICE_LIST;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::store::ledger::{self, Note};
use crate::store::tx::Tx;
use crate::store::{checkouts, guests, wallet};

pub struct Wish {
    pub package_code: String,
    pub network: Network,
    /// Gets the receipt, or hears that it failed.
    pub email: Email,
    pub discount_code: Option<String>,
    /// The same one again is the same checkout: a button may be pressed twice.
    pub reference: Option<String>,
    pub client: IpAddr,
}

pub async fn check_out(app: &App, wish: Wish) -> Result<Opened> {
    let buyer = Buyer {
        account: GUESTS,
        key_id: String::new(),
        price_list: RETAIL_PRICE_LIST.into(),
        limited: false,
    };
    let new = NewCheckout {
        buyer,
        package_code: wish.package_code,
        esim_order: None,
        network: wish.network,
        customer_email: Some(wish.email),
        discount_code: wish.discount_code,
        reference: wish.reference,
        client: wish.client,
        is_offer: false,
    };
    checkout::open(app, new).await
}

/// Puts what is owed to a guest's invoice into the wallet of whoever proves an email by a mailed code, and answers how
/// much that is. The code is used up by the claim itself, in one write: neither happens without the other.
pub async fn claim(app: &App, invoice: &InvoiceId, answer: CodeAnswer) -> Result<Usd> {
    let (proof, _) = Proof::new(app, &answer);
    let (invoice, now, numbers) = (invoice.clone(), app.now(), app.numbers.clone());
    let write = move |tx: &mut Tx| {
        match proof.checked_before(tx)? {
            CheckedBefore::Right(_) => return guests::claimed(tx, &invoice),
            CheckedBefore::Wrong => return Ok(None),
            CheckedBefore::No => {}
        }
        // Whoever gives a guest's money back takes this lock too: none of it slips in between the sum and the claim.
        wallet::lock(tx, GUESTS)?;
        let found = checkouts::by_id(tx, &invoice)?.filter(Checkout::is_guests);
        let checkout = found.ok_or(Refusal::InvoiceNotFound)?;
        let amount = guests::claimable(tx, &invoice)?;
        if checkout.claimed_by.is_some() || !amount.is_positive() {
            return Err(Refusal::NothingOwed.into());
        }
        let Some(by) = proof.check(tx)? else { return Ok(None) };
        if !guests::claim(tx, &invoice, by, now)? {
            return Err(Error::fault("an invoice was claimed although guests were locked"));
        }
        let entry = Entry::claimed(&invoice, checkout.order.as_ref(), by, amount);
        let text = format!("claimed from {}", numbers.of_checkout(&checkout));
        ledger::post(tx, &entry, now, Note { actor: None, text: Some(&text) }, false)?;
        Ok(Some(amount))
    };
    let claimed = app.store.finish(GUESTS.0, write).await;
    let amount = login::concluded(app, &answer, claimed)?;
    counter!("simgate_guest_claims_total").increment(1);
    Ok(amount)
}
