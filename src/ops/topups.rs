//! More data on an existing eSIM: list what fits, then buy one. Profile and QR code stay as they are.

use super::buying::Fills;
use super::{catalog, owned, usage};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::plan::Plan;
use crate::domain::refusal::Refusal;
use crate::error::Result;
use crate::store::claims;

/// The bundles that fit an eSIM, cheapest first; also its ICCID.
pub async fn plans(
    app: &App,
    account: AccountNo,
    fills: &Fills,
    price_list: &str,
) -> Result<(String, Vec<Plan>)> {
    let order = owned::named(app, account, fills).await?;
    require_live(app, &order).await?;
    let iccid = order.esim.map(|esim| esim.iccid).ok_or(Refusal::EsimNotFound)?;
    Ok((iccid, catalog::topups_for(app, price_list, &order.family)))
}

/// The order whose eSIM a top-up fills, if the eSIM can take one.
pub(super) async fn filled(
    app: &App,
    account: AccountNo,
    fills: &Fills,
    reference: Option<&str>,
) -> Result<Order> {
    let order = owned::named(app, account, fills).await?;
    if !is_known(app, account, reference).await? {
        require_live(app, &order).await?;
    }
    Ok(order)
}

/// Whether this is a replay, which is answered whatever happened to the eSIM since.
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
        Ok(reading) => reading.usage.can_be_topped_up(),
        // Without any reading, the supplier decides when it is asked for the top-up.
        Err(crate::error::Error::Refused(Refusal::CarrierUnavailable)) => true,
        Err(error) => return Err(error),
    };
    if live { Ok(()) } else { Err(Refusal::EsimNotActive.into()) }
}
