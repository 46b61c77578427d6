//! What a purchase's reference stands for: a caller who asks again with it does not pay twice.

use crate::app::App;
use crate::domain::coupon;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::ops::checkout::progress::{self, Progress};
use crate::ops::orders::{self, Buyer, Purchase, Receipt};
use crate::store::claims::{self, Claimant};
use crate::store::tx::Tx;

/// What a purchase's reference stands for already.
pub enum Earlier {
    Bought(Box<Receipt>),
    /// A signature that came with it is being settled, or its order is being delivered.
    Underway(Box<Progress>),
}

/// A caller who lost an answer asks again with the same reference, signed or not, and does not pay twice.
pub async fn earlier(app: &App, buyer: Buyer, purchase: Purchase) -> Result<Earlier> {
    let (account, reference) = (buyer.account, purchase.reference.clone().unwrap_or_default());
    let holder = app.store.read(move |tx| claims::holder(tx, account, &reference)).await?;
    let Some(Claimant::Checkout(id)) = holder else {
        let receipt = orders::replay(app, buyer, purchase).await?;
        return Ok(Earlier::Bought(Box::new(receipt)));
    };
    let progress = progress::show(app, &id, Some(account)).await?;
    let checkout = &progress.checkout;
    let code = purchase.discount_code.as_deref().map(coupon::normal);
    let same = checkout.is_for(&purchase.package_code, purchase.esim_order.as_ref())
        && checkout.coupon.as_ref().map(|applied| &applied.code) == code.as_ref();
    // An unsigned checkout from another API keeps this reference for ever.
    if same && progress.signed {
        Ok(Earlier::Underway(Box::new(progress)))
    } else {
        Err(Refusal::IdempotencyConflict.into())
    }
}

/// True when the reference stands for nothing yet, so that it may name this checkout; false when it does already.
pub fn require_free(tx: &mut Tx, account: AccountNo, reference: &str, invoice: &InvoiceId) -> Result<bool> {
    match claims::holder(tx, account, reference)? {
        None => Ok(true),
        Some(Claimant::Checkout(holder)) if holder == *invoice => Ok(false),
        Some(_) => Err(Refusal::IdempotencyConflict.into()),
    }
}

/// From now on the reference stands for this checkout: a caller who asks again with it does not pay twice.
pub fn name(tx: &mut Tx, account: AccountNo, reference: Option<&str>, invoice: &InvoiceId) -> Result<()> {
    match reference {
        Some(reference) if require_free(tx, account, reference, invoice)? => {
            claims::insert(tx, account, reference, invoice.as_str())
        }
        Some(_) | None => Ok(()),
    }
}
