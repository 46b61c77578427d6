//! Payment by signature: what a checkout asks for, and whether a payment is what was asked for. A payment is checked
//! against the stored checkout alone; the copy of our offer that the caller sends back proves nothing. `settler.rs`
//! leads from a claimed signature to its transfer, `booking.rs` from the transfer to the eSIM, as for every transfer;
//! `x402/pay.rs` is what a payer goes through.

mod pay;
mod reference;

use alloy_primitives::hex;

pub use self::pay::{Tender, Tendered, pay};
pub use self::reference::{Earlier, earlier};
use super::settler::MARGIN_MS;
use crate::app::App;
use crate::chain::address;
use crate::domain::authorization::{Authorization, AuthorizationId, AuthorizationState, Reason};
use crate::domain::checkout::Checkout;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::money::Usd;
use crate::domain::network::AddressKind;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::checkouts;
use crate::x402::authorization::Domain;
use crate::x402::settler::Terminal;
use crate::x402::wire::{self, Extra, Payment, PaymentRequired, Requirements, Resource};

/// How long clients let their signatures be valid.
const TIMEOUT_SECONDS: u64 = 300;
/// The longest validity of a signature: a longer one would keep us waiting too long if it never gets into a block.
const LONGEST_MS: i64 = 3_600_000;

/// What must be paid, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bill {
    pub invoice: InvoiceId,
    pub account: AccountNo,
    pub order_ref: String,
    pub pay_to: String,
    pub amount: Usd,
}

/// The bill of a checkout that can be signed for. No other checkout has the same receiver and amount.
fn bill(app: &App, checkout: &Checkout) -> Option<Bill> {
    checkout.signed_to().map(|pay_to| bill_to(app, checkout, pay_to.to_string()))
}

fn bill_to(app: &App, checkout: &Checkout, pay_to: String) -> Bill {
    Bill {
        invoice: checkout.id.clone(),
        account: checkout.account,
        order_ref: app.numbers.of_checkout(checkout),
        pay_to,
        amount: checkout.amount,
    }
}

/// The bill that an authorization was claimed for.
pub(super) async fn bill_of(app: &App, authorization: &Authorization) -> Result<Bill> {
    let id = authorization.invoice.clone();
    let found = app.store.read(move |tx| checkouts::by_id(tx, &id)).await?;
    let checkout = found.ok_or_else(|| Error::fault("an authorization without its checkout"))?;
    Ok(bill_to(app, &checkout, authorization.pay_to.clone()))
}

/// Every way to pay a checkout by signature, the cheapest network first; `None` when there is none. `url` is what the
/// payer requested.
pub fn offer(app: &App, checkout: &Checkout, url: String, error: &str) -> Option<PaymentRequired> {
    let (settler, bill) = (app.settler.as_ref()?, bill(app, checkout)?);
    let accepts: Vec<Requirements> =
        settler.open_terminals().map(|(terminal, domain)| requirements(terminal, &domain, &bill)).collect();
    if accepts.is_empty() {
        return None;
    }
    let what = if checkout.esim_order.is_some() { "Top-up" } else { "eSIM" };
    let resource = Resource {
        url,
        description: format!("{what}: {}", checkout.plan_name),
        mime_type: "application/json",
    };
    Some(PaymentRequired { version: wire::VERSION, error: error.into(), resource, accepts })
}

/// One way to pay a bill.
pub fn requirements(terminal: &Terminal, domain: &Domain, bill: &Bill) -> Requirements {
    Requirements {
        scheme: wire::SCHEME.into(),
        network: wire::network_id(terminal.network),
        asset: terminal.asset.clone(),
        amount: bill.amount.micros().to_string(),
        pay_to: bill.pay_to.clone(),
        max_timeout_seconds: TIMEOUT_SECONDS,
        extra: Extra {
            name: domain.name.clone(),
            version: domain.version.clone(),
            payment_flow: "upfront".into(),
            order_ref: bill.order_ref.clone(),
        },
    }
}

fn payer_of(payment: &Payment) -> String {
    address::text(AddressKind::Evm, &payment.permission.from)
}

fn nonce_of(payment: &Payment) -> String {
    hex::encode_prefixed(payment.permission.nonce)
}

/// The payment ready to be claimed, if it pays this bill and can still be settled.
fn checked(
    terminal: &Terminal,
    domain: &Domain,
    bill: &Bill,
    payment: &Payment,
    now: Time,
) -> Result<Authorization, Reason> {
    let signed = &payment.permission;
    if payment.seal.signer(&signed.hash(domain)) != Some(signed.from) {
        return Err(Reason::Signature);
    }
    if i64::try_from(signed.value).ok() != Some(bill.amount.micros()) {
        return Err(Reason::Value);
    }
    if Some(signed.to) != address::bytes(AddressKind::Evm, &bill.pay_to) {
        return Err(Reason::Recipient);
    }
    if payment.accepted != requirements(terminal, domain, bill) {
        return Err(Reason::Requirements);
    }
    let time = |seconds: u64| {
        let micros = i64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(1_000_000));
        micros.map(Time::from_micros)
    };
    let valid_after = time(signed.valid_after).filter(|after| *after < now).ok_or(Reason::ValidAfter)?;
    let soonest = now.plus_millis(MARGIN_MS);
    let valid_before = time(signed.valid_before)
        .filter(|before| soonest < *before && *before < now.plus_millis(LONGEST_MS))
        .ok_or(Reason::ValidBefore)?;
    Ok(Authorization {
        id: AuthorizationId {
            network: terminal.network,
            asset: terminal.asset.clone(),
            payer: payer_of(payment),
            nonce: nonce_of(payment),
        },
        invoice: bill.invoice.clone(),
        account: bill.account,
        reference: None,
        pay_to: bill.pay_to.clone(),
        amount: bill.amount,
        valid_after,
        valid_before,
        signature: payment.seal.text(),
        state: AuthorizationState::Claimed,
        reason: None,
        created_at: now,
        updated_at: now,
    })
}
