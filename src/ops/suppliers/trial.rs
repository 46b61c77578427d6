//! A guided purchase that proves a supplier: the cheapest plan is bought and booked, the way in which the supplier resolves
//! doubts is tried on it, and it is given back where that can be done. Once a day.

use std::time::Duration;

use tokio::time::Instant;

use super::{currency, rates};
use crate::app::App;
use crate::domain::amount::Amount;
use crate::domain::cost::{Billing, Cost};
use crate::domain::ids::OrderId;
use crate::domain::ledger::Entry;
use crate::domain::login::DAY_MS;
use crate::domain::money::Usd;
use crate::domain::plan::{Listing, PlanType};
use crate::domain::refusal::{Conflict, Refusal};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::LANE;
use crate::ops::audit::audit_line;
use crate::store::ledger::Note;
use crate::store::tx::Tx;
use crate::store::{audit, native_moves, suppliers};
use crate::supplier::{
    Bought, Cancel, CancelWay, Cancelled, DoubtRule, Find, Profile, Provision, Sale, Supplier,
};

/// How long a profile may take to be allocated.
const ALLOCATION: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_secs(3);

/// What a trial found out.
pub struct Trial {
    pub order: OrderId,
    pub code: String,
    pub name: String,
    pub cost: Amount,
    pub iccid: String,
    /// Whether doubts are resolved as the adapter says; why not.
    pub doubts: Result<(), String>,
    /// What came back; why nothing did.
    pub returned: Result<Amount, String>,
    /// The code to install it by, when it was not given back.
    pub activation: Option<String>,
}

/// The cheapest plan, which a trial would buy.
pub async fn cheapest(app: &App, name: &str) -> Result<Listing> {
    let plans = app.supplier(name)?.plans().await.told().map_err(|why| trouble(name, &why))?;
    let sold = plans.into_iter().filter(|plan| plan.plan_type == PlanType::Base && plan.in_stock);
    let (owner, currency) = (name.to_string(), currency(app, name));
    let billing = app.store.read(move |tx| rates::billing(tx, &owner, currency)).await?;
    let cheapest = sold
        .filter(|plan| billing.cost(plan.cost).is_some_and(|cost| cost.usd.is_positive()))
        .min_by_key(|plan| plan.cost.micros);
    cheapest.ok_or_else(|| trouble(name, "it lists nothing that can be bought"))
}

fn trouble(name: &str, why: &str) -> Error {
    Error::fault(format!("supplier {name}: {why}"))
}

/// Buys the plan. Refused within a day of the last time.
pub async fn buy(app: &App, actor: &str, name: &str, plan: &Listing) -> Result<Trial> {
    let supplier = app.supplier(name)?;
    let (name, order, now) = (supplier.name(), app.new_order_id(), app.now());
    let currency = currency(app, name);
    let detail = format!("{name}: bought {} for {} as {order}", plan.code, plan.cost);
    let line = audit_line(app, actor, "supplier test --buy", detail);
    // Written before it is bought: whatever happens then, the log knows under which id.
    let begin = move |tx: &mut Tx| {
        let billing = rates::billing(tx, name, currency)?;
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(billing);
        }
        if !suppliers::take_test(tx, name, now, now.plus_millis(-DAY_MS))? {
            return Err(Refusal::from(Conflict::default()).into());
        }
        audit::record(tx, &line)?;
        Ok(billing)
    };
    let billing = app.store.write(LANE, begin).await?;
    let (profile, told) = delivered(supplier.as_ref(), &order, plan, app).await?;
    let cost = booked_cost(billing, &order, told, plan.cost);
    book(app, Entry::trial(&order, name, cost.usd), name, cost.native().map(|native| -native)).await?;
    let billed = cost.amount(currency);
    let doubts = prove(supplier.as_ref(), &order, plan, &profile, app).await;
    let returned = give_back(supplier.as_ref(), &profile, billed).await;
    if let Ok(back) = &returned {
        let back = cost.told(*back, currency).unwrap_or(cost);
        let back = cost.returned(cost.without(back));
        book(app, Entry::trial_returned(&order, name, back.usd), name, back.native()).await?;
    }
    let activation = returned.is_err().then(|| profile.activation.lpa_string());
    let (code, title) = (plan.code.clone(), plan.name.clone());
    Ok(Trial { order, code, name: title, cost: billed, iccid: profile.iccid, doubts, returned, activation })
}

/// Writes an entry, with what it moves at a supplier of another currency.
async fn book(app: &App, entry: Entry, supplier: &'static str, native: Option<i64>) -> Result<()> {
    let now = app.now();
    let write =
        move |tx: &mut Tx| native_moves::post(tx, &entry, now, Note::default(), supplier, native).map(drop);
    app.store.finish(LANE, write).await
}

/// What the purchase cost: as the supplier told it, or as it was listed when that cannot be booked.
fn booked_cost(billing: Billing, order: &OrderId, told: Amount, listed: Amount) -> Cost {
    billing.cost(told).unwrap_or_else(|| {
        tracing::error!(%order, %told, %listed, "a trial's cost cannot be booked; what was listed is booked instead");
        billing.cost(listed).unwrap_or(Cost::in_usd(Usd::ZERO))
    })
}

/// Buys, and waits for the profile.
async fn delivered(
    supplier: &dyn Supplier,
    order: &OrderId,
    plan: &Listing,
    app: &App,
) -> Result<(Profile, Amount)> {
    let (until, ordered_at) = (Instant::now() + ALLOCATION, app.now());
    let mut number: Option<String> = None;
    if supplier.abilities().doubt == DoubtRule::ClaimFirst {
        let claimed = supplier.claim(ask(order, plan, None, ordered_at)).await.told();
        number = Some(claimed.map_err(|why| trouble(supplier.name(), &why))?);
    }
    loop {
        let bought = supplier.provision(ask(order, plan, number.as_deref(), ordered_at)).await.told();
        match bought.map_err(|why| trouble(supplier.name(), &format!("{why}; look for {order} there")))? {
            Bought::Delivered { what, cost, .. } => return Ok((what, cost.unwrap_or(plan.cost))),
            Bought::Underway { number: told } => number = Some(told),
        }
        if Instant::now() + PAUSE > until {
            return Err(trouble(supplier.name(), &format!("{order} is sold, and its profile does not come")));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn ask<'a>(
    order: &'a OrderId,
    plan: &'a Listing,
    number: Option<&'a str>,
    ordered_at: Time,
) -> Provision<'a> {
    Provision {
        order,
        code: &plan.code,
        expected_cost: plan.cost,
        data_mb: plan.data_mb.unwrap_or_default(),
        duration_days: plan.duration_days,
        ordered_at,
        number,
    }
}

/// Tries on the sale what recovery would do after a doubt.
async fn prove(
    supplier: &dyn Supplier,
    order: &OrderId,
    plan: &Listing,
    profile: &Profile,
    app: &App,
) -> Result<(), String> {
    match supplier.abilities().doubt {
        DoubtRule::RepeatIsSafe => {
            match supplier.provision(ask(order, plan, None, app.now())).await.told()? {
                Bought::Delivered { what, .. } if what.iccid == profile.iccid => Ok(()),
                Bought::Delivered { .. } => {
                    Err("asked again with the same id, it sold a second profile".into())
                }
                Bought::Underway { .. } => {
                    Err("asked again with the same id, it did not tell the profile".into())
                }
            }
        }
        DoubtRule::FindByReference { .. } | DoubtRule::FindInList { .. } => {
            let find = Find { order, code: &plan.code, ordered_at: app.now(), profile: None };
            let found = supplier.find(find).await.told()?;
            let is_ours = |sale: &&Sale| sale.iccid.as_deref() == Some(&profile.iccid);
            found.iter().find(is_ours).map(drop).ok_or_else(|| "a look-up does not find the sale".into())
        }
        // What was claimed is what was bought.
        DoubtRule::ClaimFirst => Ok(()),
    }
}

async fn give_back(supplier: &dyn Supplier, profile: &Profile, cost: Amount) -> Result<Amount, String> {
    if supplier.abilities().cancel != CancelWay::AtOnce {
        return Err("this supplier takes nothing back at once".into());
    }
    match supplier.cancel(Cancel { profile: &profile.id, cost }).await.told()? {
        Cancelled::Yes { returned } => Ok(returned),
        Cancelled::No(reason) => Err(reason.in_words().into()),
        Cancelled::Requested { request } => Err(format!("people there decide about request {request}")),
    }
}
