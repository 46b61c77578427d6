//! What a purchase's reference stands for: a caller who asks again with it does not pay twice.

use crate::app::App;
use crate::domain::coupon;
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::refusal::{Conflict, Difference, different};
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
    let differs = different([
        (Difference::Package, checkout.package_code == purchase.package_code),
        (Difference::Esim, checkout.esim_order == purchase.esim_order),
        (Difference::Coupon, checkout.coupon.as_ref().map(|applied| &applied.code) == code.as_ref()),
        // An unsigned checkout from another API keeps this reference for ever.
        (Difference::Operation, progress.signed),
    ]);
    if differs.is_empty() {
        Ok(Earlier::Underway(Box::new(progress)))
    } else {
        Err(Conflict::with_checkout(&id, differs).into())
    }
}

/// True when the reference stands for nothing yet, so that it may name this checkout; false when it does already.
pub fn require_free(tx: &mut Tx, account: AccountNo, reference: &str, invoice: &InvoiceId) -> Result<bool> {
    match claims::holder(tx, account, reference)? {
        None => Ok(true),
        Some(Claimant::Checkout(holder)) if holder == *invoice => Ok(false),
        Some(other) => Err(other.in_the_way().into()),
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
