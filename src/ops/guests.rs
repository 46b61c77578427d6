//! Guests: people who buy on the checkout page without an account. Their checkout belongs to nobody: anybody who holds
//! its id sees it, and somebody who has signed in can claim what we owe for it, once, and spend it there.

use std::net::IpAddr;

use form_urlencoded::Serializer;
use metrics::counter;

use super::buying::{self, Means, Outcome, Signing, Wish};
use super::install::{self, Install};
use super::login::{self, CheckedBefore, CodeAnswer, Proof};
use super::orders::Buyer;
use super::{LANE, tokens};
use crate::app::App;
use crate::domain::account::GUESTS;
use crate::domain::checkout::Checkout;
use crate::domain::ids::{InvoiceId, TokenId};
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::network::{Currency, Network};
use crate::domain::order::Order;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::store::ledger::{self, Note};
use crate::store::tx::Tx;
use crate::store::{self, checkouts, guests, wallet};

/// The page that sells a plan to anybody.
pub fn page_path(package_code: &str, discount: Option<&str>) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("plan", package_code);
    query.extend_pairs(discount.map(|code| ("discount", code)));
    format!("/checkout?{}", query.finish())
}

/// Opens a checkout that belongs to nobody, to be paid by a transfer.
pub async fn check_out(
    app: &App,
    wish: Wish,
    pair: (Currency, Network),
    client: IpAddr,
) -> Result<InvoiceId> {
    let means = Means::Transfer { pair, client, signing: None };
    let outcome = buying::buy(app, Buyer::guest(), wish, means).await?;
    outcome.invoice().cloned().ok_or_else(|| Error::fault("a guest pays an invoice"))
}

/// The order behind the page of a guest's eSIM. Whoever has that page can pay for more data.
pub async fn esim(app: &App, token: &str) -> Result<Order> {
    match install::open(app, token).await? {
        Install::Ready { order, .. } if order.account == GUESTS => Ok(order),
        _ => Err(Refusal::NotFound.into()),
    }
}

/// Buys from the wallet of a person who proves an email by a mailed code; a wallet that is short gets a link to pay in.
pub async fn buy_from_wallet(app: &App, answer: CodeAnswer, wish: Wish) -> Result<Outcome> {
    let client = answer.client;
    let signed_in = login::verify(app, answer).await?;
    let holder = tokens::authenticate(app, &signed_in.token).await?;
    let means = Means::WalletOrLink { can_sign: false, client, signing: Signing::default() };
    let outcome = buying::buy(app, holder.buyer(), wish, means).await;
    end_token(app, &holder.token).await;
    outcome
}

/// Ends a token that was made for one deed and that nobody was given. What was done stays done if that fails.
async fn end_token(app: &App, token: &TokenId) {
    let (token, now) = (token.clone(), app.now());
    let ended = app.store.write(LANE, move |tx| store::tokens::revoke(tx, &token, now)).await;
    if let Err(error) = ended {
        tracing::debug!(%error, "a login for one deed stays until it ends by itself");
    }
}

/// Puts what we owe for a guest's invoice into the wallet of a person who proves an email by a mailed code, and answers
/// the amount. The claim itself uses up the code, in one write: neither happens without the other.
pub async fn claim(app: &App, invoice: &InvoiceId, answer: CodeAnswer) -> Result<Usd> {
    let (proof, _) = Proof::new(app, &answer);
    let token = proof.token_id().clone();
    let (invoice, now, numbers) = (invoice.clone(), app.now(), app.numbers.clone());
    let write = move |tx: &mut Tx| {
        match proof.checked_before(tx)? {
            CheckedBefore::Right(_) => return guests::claimed(tx, &invoice),
            CheckedBefore::Wrong => return Ok(None),
            CheckedBefore::No => {}
        }
        // Paying back a guest's money takes this lock too, so nothing slips in between the sum and the claim.
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
        ledger::post(tx, &entry, now, Note { actor: None, text: Some(&text) })?;
        Ok(Some(amount))
    };
    let claimed = app.store.finish(GUESTS.0, write).await;
    let amount = login::concluded(app, &answer, claimed)?;
    end_token(app, &token).await;
    counter!("simgate_guest_claims_total").increment(1);
    Ok(amount)
}
