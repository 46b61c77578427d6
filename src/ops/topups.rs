//! More data on an eSIM that exists: list what fits, then buy one. Profile and QR code stay as they are.

use super::orders::{self, Buyer, Purchase, Receipt};
use super::{catalog, usage};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::plan::Plan;
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::store::claims;

/// The bundles that fit an eSIM, cheapest first.
pub async fn plans(app: &App, account: AccountNo, iccid: &str, price_list: &str) -> Result<Vec<Plan>> {
    let order = orders::find_by_iccid(app, account, iccid).await?;
    require_live(app, &order).await?;
    Ok(catalog::topups_for(app, price_list, &order.family))
}

pub struct NewTopUp {
    pub iccid: String,
    pub package_code: String,
    pub reference: Option<String>,
    pub max_price: Option<Usd>,
}

pub async fn place(app: &App, buyer: Buyer, new: NewTopUp) -> Result<Receipt> {
    let order = orders::find_by_iccid(app, buyer.account, &new.iccid).await?;
    if !is_known(app, buyer.account, new.reference.as_deref()).await? {
        require_live(app, &order).await?;
    }
    let purchase = Purchase {
        package_code: new.package_code,
        reference: new.reference,
        max_price: new.max_price,
        esim_order: Some(order.id),
        customer_email: None,
        discount_code: None,
    };
    orders::buy(app, buyer, purchase, app.new_topup_id()).await
}

/// A replay is answered whatever has become of the eSIM since.
async fn is_known(app: &App, account: AccountNo, reference: Option<&str>) -> Result<bool> {
    let Some(reference) = reference.map(str::to_string) else { return Ok(false) };
    let claimed = app.store.read(move |tx| claims::holder(tx, account, &reference)).await?;
    Ok(claimed.is_some())
}

/// Refuses when the carrier says that the eSIM takes no more, or when it is being given back.
async fn require_live(app: &App, order: &Order) -> Result<()> {
    if order.status != OrderStatus::Fulfilled {
        return Err(Refusal::EsimNotActive.into());
    }
    let live = match usage::read(app, order).await {
        Ok(reading) => reading.usage.status.can_be_topped_up(),
        // Without any reading the supplier itself decides when the top-up is asked for.
        Err(crate::error::Error::Refused(Refusal::CarrierUnavailable)) => true,
        Err(error) => return Err(error),
    };
    if live { Ok(()) } else { Err(Refusal::EsimNotActive.into()) }
}
