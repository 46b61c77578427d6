//! A payer's way: read the header, find its checkout, simulate the transfer, claim it, and wait for what it buys.
//! Nothing leaves us before the claim is written. From then on the answer is 202 until the order exists or the
//! signature is certainly dead, because clients sign a new payment for every 402.

use std::sync::atomic::Ordering;

use metrics::counter;

use super::reference::{name, require_free};
use super::{bill, checked, nonce_of, payer_of};
use crate::app::App;
use crate::domain::authorization::{Authorization, AuthorizationId, AuthorizationState, Reason};
use crate::domain::checkout::{Checkout, CheckoutEvent, CheckoutStatus};
use crate::domain::ids::{AccountNo, InvoiceId, OrderId};
use crate::domain::invoice;
use crate::domain::network::Network;
use crate::domain::order::OrderStatus;
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::ops::checkout::paid::Filled;
use crate::ops::checkout::progress::{self, Progress};
use crate::ops::coupons::redeem;
use crate::ops::patience::Patience;
use crate::store::tx::Tx;
use crate::store::{authorizations, checkouts, transfers, wallet};
use crate::x402::wire::{self, Flaw, Payment, SettlementResponse};

/// Who pays, and for what.
pub struct Tender<'a> {
    pub account: AccountNo,
    pub package_code: &'a str,
    /// A top-up: the order whose eSIM it fills.
    pub esim_order: Option<&'a OrderId>,
    /// The caller's own reference for this purchase.
    pub reference: Option<&'a str>,
    /// The payment, as the `PAYMENT-SIGNATURE` header brings it.
    pub header: &'a [u8],
    /// The name of the field it came in.
    pub field: &'a str,
}

/// The outcome of a payment.
pub enum Tendered {
    /// It pays for this checkout, or has paid. Its receipt is there as soon as it is in a block.
    Taken { progress: Box<Progress>, receipt: Option<SettlementResponse> },
    /// It moved nothing and never will. With the checkout, if it can still be paid.
    Refused { reason: Reason, receipt: Option<SettlementResponse>, checkout: Option<Box<Checkout>> },
}

fn refused(reason: Reason, checkout: Option<Checkout>) -> Tendered {
    Tendered::Refused { reason, receipt: None, checkout: checkout.map(Box::new) }
}

/// Takes a payment and waits for what it buys. A repeated signature only waits, whatever is offered by then.
pub async fn pay(app: &App, tender: Tender<'_>) -> Result<Tendered> {
    let payment = match wire::decode(tender.header) {
        Ok(payment) => payment,
        Err(Flaw::Refused(reason)) => return Ok(refused(reason, None)),
        // At a door that offers no payment the header means nothing.
        Err(Flaw::Unreadable(_)) if app.settler.is_none() => return Ok(refused(Reason::Payload, None)),
        Err(Flaw::Unreadable(what)) => return Err(Refusal::field(tender.field, what).into()),
    };
    let Some(network) = payment.network() else { return Ok(refused(Reason::Network, None)) };
    let number = app.numbers.parse(&payment.accepted.extra.order_ref).ok_or(Refusal::InvoiceNotFound)?;
    if number.account != tender.account {
        return Err(Refusal::InvoiceNotFound.into());
    }
    let (payer, nonce) = (payer_of(&payment), nonce_of(&payment));
    let since = app.now().plus_days(-1);
    let read = move |tx: &mut Tx| {
        if let Some(claimed) = authorizations::by_nonce(tx, network, &payer, &nonce)?.into_iter().next() {
            let checkout = checkouts::by_id(tx, &claimed.invoice)?;
            return Ok((Known::Claimed(Box::new(claimed)), checkout));
        }
        if let Some(invoice) = on_chain_for(tx, network, &payer, &nonce)? {
            return Ok((Known::OnChain, checkouts::by_id(tx, &invoice)?));
        }
        let checkout = checkouts::by_number(tx, number)?;
        let unpaid = |checkout: &Checkout| checkout.status.is_unpaid() && since < checkout.created_at;
        Ok((Known::No, checkout.filter(unpaid)))
    };
    let (known, checkout) = app.store.read(read).await?;
    let same = match &known {
        Known::Claimed(claimed) => Some(claimed.signature == payment.seal.text()),
        // The caller must own the checkout that the transfer pays for; there is nothing else to compare.
        Known::OnChain => Some(true),
        Known::No => None,
    };
    if let Some(same) = same {
        let checkout = checkout.filter(|checkout| same && checkout.number() == number);
        let checkout = checkout.ok_or(Refusal::SignatureAlreadyUsed)?;
        require_same(&checkout, &tender)?;
        if let (Known::OnChain, Some(reference)) = (&known, tender.reference) {
            let (account, reference, invoice) = (tender.account, reference.to_string(), checkout.id.clone());
            let write = move |tx: &mut Tx| {
                wallet::lock(tx, account)?;
                name(tx, account, Some(&reference), &invoice)
            };
            app.store.write(account.0, write).await?;
        }
        return outcome(app, network, &payment, &checkout.id, tender.account).await;
    }
    let Some(terminal) = app.settler.as_ref().and_then(|settler| settler.terminals.get(&network)) else {
        return Ok(refused(Reason::Network, None));
    };
    let checkout = checkout.ok_or(Refusal::NothingToPay)?;
    require_same(&checkout, &tender)?;
    let now = app.now();
    if checkout.expires_at <= now {
        return Ok(refused(Reason::Requirements, None));
    }
    let Some(bill) = bill(app, &checkout) else { return Ok(refused(Reason::Requirements, None)) };
    let domain = terminal.domain().ok_or(Refusal::ChainUnavailable)?;
    let authorization = match checked(terminal, &domain, &bill, &payment, now) {
        Ok(authorization) => authorization,
        Err(reason) => return Ok(refused(reason, Some(checkout))),
    };
    let tried = terminal.refusal(&payment.permission, &payment.seal).await;
    let state = match tried.map_err(|_| Refusal::ChainUnavailable)? {
        None => AuthorizationState::Claimed,
        // Somebody else brought it onto the chain: it counts as sent, and the scanner will see it.
        Some(Reason::Used) => AuthorizationState::Sent,
        Some(reason) => return Ok(refused(reason, Some(checkout))),
    };
    let reference = tender.reference.map(str::to_string);
    claim(app, Authorization { state, reference, ..authorization }).await?;
    outcome(app, network, &payment, &checkout.id, tender.account).await
}

/// What we know about a signature when it arrives.
enum Known {
    No,
    Claimed(Box<Authorization>),
    /// Somebody else brought it onto the chain, and its transfer was seen.
    OnChain,
}

/// The invoice that a signature's transfer pays for.
fn on_chain_for(tx: &mut Tx, network: Network, payer: &str, nonce: &str) -> Result<Option<InvoiceId>> {
    let moved = transfers::moved_by(tx, network, payer, nonce)?;
    Ok(moved.into_iter().find_map(|transfer| transfer.invoice))
}

/// A payment buys only what it was requested for.
fn require_same(checkout: &Checkout, tender: &Tender) -> Result<()> {
    let same = checkout.is_for(tender.package_code, tender.esim_order);
    if same { Ok(()) } else { Err(Refusal::PaidForAnother.into()) }
}

/// Stores a payment for its checkout before it is used; or finds that it was stored before, or has moved its money
/// already.
async fn claim(app: &App, new: Authorization) -> Result<()> {
    if app.buying_on_hold.load(Ordering::Relaxed) {
        return Err(Refusal::BuyingOnHold.into());
    }
    let (network, lane) = (new.id.network.as_str(), new.account.0);
    app.store.write(lane, move |tx| insert(tx, &new)).await?;
    counter!("simgate_authorizations_total", "network" => network, "outcome" => "claimed").increment(1);
    app.claimed.send_modify(|count| *count += 1);
    Ok(())
}

fn insert(tx: &mut Tx, new: &Authorization) -> Result<()> {
    wallet::lock(tx, new.account)?;
    let AuthorizationId { network, payer, nonce, .. } = &new.id;
    let used_for = match authorizations::by_id(tx, &new.id)? {
        Some(known) => Some(known.invoice),
        // What a transfer pays for was decided when it was seen.
        None => on_chain_for(tx, *network, payer, nonce)?,
    };
    if used_for.as_ref().is_some_and(|invoice| *invoice != new.invoice) {
        return Err(Refusal::SignatureAlreadyUsed.into());
    }
    if used_for.is_some() {
        return name(tx, new.account, new.reference.as_deref(), &new.invoice);
    }
    if wallet::read(tx, new.account)?.suspended {
        return Err(Refusal::AccountSuspended.into());
    }
    if let Some(reference) = &new.reference {
        require_free(tx, new.account, reference, &new.invoice)?;
    }
    let checkout = checkouts::lock(tx, &new.invoice)?.ok_or(Refusal::InvoiceNotFound)?;
    let ended = checkout.status.after(CheckoutEvent::Signed).is_none();
    if ended || authorizations::live(tx, &new.invoice)?.is_some() {
        return Err(Refusal::NothingToPay.into());
    }
    let deliverable = if Filled::of(tx, &checkout)?.is_gone() {
        Err(Refusal::EsimNotActive)
    } else if redeem::sign(tx, &checkout, new.created_at)? {
        Ok(())
    } else {
        Err(Refusal::CouponInvalid)
    };
    // Money that is on the chain already must be accounted for, whatever it can still buy.
    if new.state == AuthorizationState::Claimed {
        deliverable?;
    }
    name(tx, new.account, new.reference.as_deref(), &new.invoice)?;
    authorizations::insert(tx, new)
}

/// Waits like every second caller: settler and supplier may run in another process.
async fn outcome(
    app: &App,
    network: Network,
    payment: &Payment,
    invoice: &InvoiceId,
    account: AccountNo,
) -> Result<Tendered> {
    let mut patience = Patience::new(app);
    loop {
        let (payer, nonce) = (payer_of(payment), nonce_of(payment));
        let found = app.store.read(move |tx| authorizations::by_nonce(tx, network, &payer, &nonce)).await?;
        let progress = progress::show(app, invoice, Some(account)).await?;
        let receipt = receipt(network, payment, &progress);
        let dead = found.first().filter(|claimed| claimed.state == AuthorizationState::Dead);
        if let (Some(dead), None) = (dead, &receipt) {
            let reason = dead.reason.unwrap_or(Reason::Unexpected);
            let open = progress.checkout.status == CheckoutStatus::Open && progress.payments.is_empty();
            let checkout = open.then(|| Box::new(progress.checkout));
            let receipt = Some(failure(network, payment, reason));
            return Ok(Tendered::Refused { reason, receipt, checkout });
        }
        let waits = progress.order.as_ref().is_none_or(|order| order.status == OrderStatus::Provisioning);
        let over = progress.checkout.status == CheckoutStatus::Refunded;
        if !waits || over || !patience.lasts(app).await {
            return Ok(Tendered::Taken { progress: Box::new(progress), receipt });
        }
    }
}

/// The transfer that the signature moved, once it is in a block.
fn receipt(network: Network, payment: &Payment, progress: &Progress) -> Option<SettlementResponse> {
    let nonce = nonce_of(payment);
    let moved = |paid: &&invoice::Payment| {
        let transfer = &paid.transfer;
        transfer.payment_nonce.as_ref() == Some(&nonce) && transfer.block.is_some()
    };
    let transfer = &progress.payments.iter().find(moved)?.transfer;
    Some(SettlementResponse {
        success: true,
        transaction: transfer.id.tx_hash.clone(),
        network: wire::network_id(network),
        payer: payer_of(payment),
        amount: Some(transfer.amount.micros().to_string()),
        error_reason: None,
    })
}

fn failure(network: Network, payment: &Payment, reason: Reason) -> SettlementResponse {
    SettlementResponse {
        success: false,
        transaction: String::new(),
        network: wire::network_id(network),
        payer: payer_of(payment),
        amount: None,
        error_reason: Some(reason.as_str()),
    }
}
