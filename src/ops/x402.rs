//! Payment by signature: what a checkout asks for, and whether a payment is what was asked for. It is checked against
//! the stored checkout alone; what the caller brought back of our offer proves nothing. From a claimed signature to
//! its transfer leads `settler.rs`, from the transfer to the eSIM `settle.rs`, as for everybody else.

use crate::chain::address;
use crate::domain::authorization::{Authorization, AuthorizationId, AuthorizationState, Reason};
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::money::Usd;
use crate::domain::network::AddressKind;
use crate::domain::time::Time;
use crate::ops::settler::MARGIN_MS;
use crate::x402::authorization::Domain;
use crate::x402::settler::Post;
use crate::x402::wire::{self, Extra, Payment, Requirements};

/// How long clients let their signatures count.
const TIMEOUT_SECONDS: u64 = 300;
/// A signature that counts for longer than this keeps us waiting for too long if it never gets into a block.
const LONGEST_MS: i64 = 3_600_000;

/// What is to be paid, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bill {
    pub invoice: InvoiceId,
    pub account: AccountNo,
    pub order_ref: String,
    pub pay_to: String,
    pub amount: Usd,
}

/// The bill that an authorization was claimed for.
pub(super) async fn bill_of(_app: &crate::app::App, authorization: &Authorization) -> crate::error::Result<Bill> {
    Ok(Bill {
        invoice: authorization.invoice.clone(),
        account: authorization.account,
        order_ref: String::new(),
        pay_to: authorization.pay_to.clone(),
        amount: authorization.amount,
    })
}

/// One way to pay a bill.
pub fn requirements(post: &Post, domain: &Domain, bill: &Bill) -> Requirements {
    Requirements {
        scheme: wire::SCHEME.into(),
        network: wire::network_id(post.network),
        asset: post.asset.clone(),
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

/// The name under which a payment is claimed.
fn id_of(post: &Post, payment: &Payment) -> AuthorizationId {
    AuthorizationId {
        network: post.network,
        asset: post.asset.clone(),
        payer: address::text(AddressKind::Evm, &payment.permission.from),
        nonce: alloy_primitives::hex::encode_prefixed(payment.permission.nonce),
    }
}

/// The payment as it is to be claimed, if it pays this bill and can still be settled.
fn checked(
    post: &Post,
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
    if payment.accepted != requirements(post, domain, bill) {
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
        id: id_of(post, payment),
        invoice: bill.invoice.clone(),
        account: bill.account,
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
