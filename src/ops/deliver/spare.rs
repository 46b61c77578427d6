//! Sales that are one too many: a purchase that was thought lost turned up after the order was bought again, or after it
//! was given up. They are given back to the supplier, or their cost is a loss.

use super::ask;
use super::doubt::{self, Way};
use super::finish::told_cost;
use crate::app::App;
use crate::domain::amount::Amount;
use crate::domain::cost::Cost;
use crate::domain::doubt::next_look;
use crate::domain::ledger::Entry;
use crate::domain::order::{CancelReason, Order, OrderStatus};
use crate::error::{Error, Result};
use crate::ops::orders::ask_until;
use crate::ops::{LANE, suppliers};
use crate::store::attempts::{self, Watch};
use crate::store::spares::{self, Spare};
use crate::store::tx::Tx;
use crate::store::{esims, native_moves, orders};
use crate::supplier::{Answer, Cancel, CancelWay, Cancelled, DoubtRule, Sale, Supplier};

/// Notes sales that are one too many. A profile that is not there yet cannot be given back: it is noted when it is
/// there, or with the last look.
pub(super) async fn note(app: &App, order: &Order, sales: Vec<Sale>, last: bool) -> Result<()> {
    let (order, now, currency) = (order.clone(), app.now(), suppliers::currency(app, &order.supplier));
    let write = move |tx: &mut Tx| {
        for sale in &sales {
            if sale.profile.is_none() && !order.id.is_topup() && !last {
                continue;
            }
            let holder = match &sale.profile {
                Some(profile) => esims::holder_of(tx, &profile.iccid, &profile.id)?,
                None => None,
            };
            if holder.as_ref() == Some(&order.id) {
                // Somebody else has delivered it meanwhile.
                continue;
            }
            let spare = Spare {
                order: order.id.clone(),
                n: 0,
                supplier: order.supplier.clone(),
                number: sale.number.clone(),
                profile: sale.profile.as_ref().map(|profile| profile.id.clone()),
                cost: told_cost(order.billed_cost(), sale.cost, currency).unwrap_or(order.billed_cost()),
                ask_until: now,
            };
            if spares::add(tx, &spare)? {
                tracing::error!(order = %order.id, number = sale.number, "a supplier has sold an order twice; one sale is given back");
            }
        }
        attempts::watch(tx, &order.id, now)
    };
    app.store.finish(LANE, write).await
}

/// Looks for sales of an order that turned up after it ended. False when somebody else does.
pub async fn look(app: &App, watch: Watch) -> Result<bool> {
    let next = next_look(watch.asked_at, app.now());
    let id = watch.order.clone();
    if !app.store.finish(LANE, move |tx| attempts::look_later(tx, &watch, next)).await? {
        return Ok(false);
    }
    let read = move |tx: &mut Tx| Ok((orders::by_id(tx, &id)?, attempts::of(tx, &id)?));
    let (order, attempts) = app.store.read(read).await?;
    let order = order.ok_or_else(|| Error::fault("an order vanished"))?;
    // While it is open, its own asker looks.
    if order.status == OrderStatus::Provisioning {
        return Ok(true);
    }
    let supplier = app.supplier(&order.supplier)?;
    let way = match supplier.abilities().doubt {
        DoubtRule::FindByReference { quiet } => Way::by_reference(quiet),
        DoubtRule::FindInList { quiet } => Way::in_list(quiet),
        DoubtRule::RepeatIsSafe | DoubtRule::ClaimFirst => return Ok(true),
    };
    let sales = ask::find(supplier.as_ref(), &order).await?.told().map_err(Error::fault)?;
    let sales = doubt::left_over(app, &order, way, &attempts, sales).await?;
    if !sales.is_empty() {
        note(app, &order, sales, next.is_none()).await?;
    }
    Ok(true)
}

/// Gives a sale back that is one too many, or books its cost as a loss. False when somebody else does.
pub async fn give_back(app: &App, spare: Spare) -> Result<bool> {
    let (until, taken) = (ask_until(app, app.now()), spare.clone());
    if !app.store.finish(LANE, move |tx| spares::lease(tx, &taken, until)).await? {
        return Ok(false);
    }
    let supplier = app.supplier(&spare.supplier)?;
    let lost = match &spare.profile {
        Some(profile) => lost_with(app, supplier.as_ref(), profile, spare.cost).await?,
        // A top-up stays on its eSIM.
        None => spare.cost,
    };
    let (name, now) = (supplier.name(), app.now());
    let end = move |tx: &mut Tx| {
        let outcome = if lost.usd.is_positive() { "LOST" } else { "CANCELLED" };
        if spares::end(tx, &spare, outcome)? && lost.usd.is_positive() {
            let entry = Entry::second_sale(&spare.order, spare.n, name, lost.usd);
            native_moves::post_cost(tx, &entry, now, name, lost)?;
        }
        Ok(())
    };
    app.store.finish(LANE, end).await?;
    Ok(true)
}

/// Returns a profile that nobody gets to its supplier. Answers how much of its cost is lost.
pub async fn lost_with(app: &App, supplier: &dyn Supplier, profile: &str, cost: Cost) -> Result<Cost> {
    // A request for a review could be sent twice from here, so none is sent: the operator may ask for the money.
    if supplier.abilities().cancel == CancelWay::Reviewed {
        return Ok(cost);
    }
    let currency = suppliers::currency(app, supplier.name());
    let whole = cost.amount(currency);
    match supplier.cancel(Cancel { profile, cost: whole }).await {
        Answer::Done(Cancelled::Yes { returned }) => {
            let returned = Amount { micros: returned.micros.max(0).min(whole.micros), ..returned };
            Ok(cost.without(cost.told(returned, currency).unwrap_or(cost)))
        }
        // An earlier question was heard, and its answer was lost.
        Answer::Done(Cancelled::No(CancelReason::AlreadyCancelled)) => Ok(cost.without(cost)),
        Answer::Done(Cancelled::No(_) | Cancelled::Requested { .. }) | Answer::Refused(_) => Ok(cost),
        Answer::NotSent(why) | Answer::Doubt(why) => Err(Error::fault(why)),
    }
}
