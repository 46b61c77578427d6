//! What is on sale: a snapshot in memory, replaced as a whole when any process changes the catalog, and the
//! sync that fills the database from the supplier. Prices in the snapshot are for showing; an order reads its own.

use std::collections::HashMap;
use std::sync::Arc;

use crate::app::App;
use crate::domain::plan::{DEFAULT_PRICE_LIST, Plan, PlanType, RETAIL_PRICE_LIST};
use crate::domain::text;
use crate::error::{Error, Result};
use crate::store::catalog;
use crate::store::tx::Tx;
use crate::supplier::Answer;

/// No single write holds the writer for long: a sync is many small jobs and a last one that publishes.
const PLANS_PER_JOB: usize = 160;
/// Longer names of plans and carriers are cut.
const NAME_CHARS: usize = 200;
/// Catalog jobs have no wallet; they share one lane.
const LANE: i64 = 0;

/// Everything on sale, by price list. `wholesale` is that list's price. Users pay `retail`, on any list.
#[derive(Default)]
pub struct Snapshot {
    pub lists: HashMap<String, Vec<Plan>>,
}

pub async fn load(app: &App) -> Result<()> {
    let lists = app.store.snapshot(catalog::on_sale).await?;
    app.catalog.send_replace(Arc::new(Snapshot { lists }));
    Ok(())
}

/// A plan for a new eSIM, as it is shown; `retail` is what users and guests pay.
pub fn base_plan(app: &App, code: &str) -> Option<Plan> {
    find(app, code).filter(|plan| plan.plan_type == PlanType::Base)
}

/// A plan on sale, by its code. Its price is for showing, as everything in the snapshot is.
pub fn find(app: &App, code: &str) -> Option<Plan> {
    let snapshot = app.catalog.borrow().clone();
    snapshot.lists.get(DEFAULT_PRICE_LIST)?.iter().find(|plan| plan.code == code).cloned()
}

/// The top-ups that fit a coverage, cheapest first; `wholesale` is what this list's buyer pays.
pub fn topups_for(app: &App, price_list: &str, family: &str) -> Vec<Plan> {
    let snapshot = app.catalog.borrow().clone();
    // Users have no list in memory: every plan knows its retail price.
    let retail = price_list == RETAIL_PRICE_LIST;
    let kept = if retail { DEFAULT_PRICE_LIST } else { price_list };
    let plans = snapshot.lists.get(kept).map(Vec::as_slice).unwrap_or_default();
    let mut found: Vec<Plan> = plans
        .iter()
        .filter(|plan| plan.plan_type == PlanType::Topup && plan.family == family)
        .cloned()
        .map(|plan| if retail { Plan { wholesale: plan.retail, ..plan } } else { plan })
        .collect();
    found.sort_by(|a, b| a.wholesale.cmp(&b.wholesale).then_with(|| a.code.cmp(&b.code)));
    found
}

pub struct Synced {
    pub plans: usize,
    pub withdrawn: usize,
}

/// Takes the supplier's plans into the catalog. What the supplier no longer has is withdrawn, not deleted.
pub async fn sync(app: &App) -> Result<Synced> {
    let supplier = app.supplier(crate::supplier::sim::NAME)?;
    let name = supplier.name();
    let plans = match supplier.plans().await {
        Answer::Done(plans) => plans,
        Answer::Refused(why) | Answer::NotSent(why) | Answer::Doubt(why) => return Err(Error::fault(why)),
    };
    let plans: Vec<Plan> = plans.into_iter().map(readable).collect();
    let current: std::collections::HashSet<String> = plans.iter().map(|plan| plan.code.clone()).collect();
    let count = plans.len();
    for batch in plans.chunks(PLANS_PER_JOB) {
        let batch = batch.to_vec();
        let put = move |tx: &mut Tx| {
            batch.iter().try_for_each(|plan| catalog::put(tx, plan, name, DEFAULT_PRICE_LIST))
        };
        app.store.finish(LANE, put).await?;
    }
    let known = app.store.snapshot(move |tx| catalog::codes_on_sale(tx, name)).await?;
    let gone: Vec<String> = known.into_iter().filter(|code| !current.contains(code)).collect();
    let withdrawn = gone.len();
    for batch in gone.chunks(PLANS_PER_JOB) {
        let batch = batch.to_vec();
        let withdraw = move |tx: &mut Tx| batch.iter().try_for_each(|code| catalog::withdraw(tx, code));
        app.store.finish(LANE, withdraw).await?;
    }
    app.store.finish(LANE, catalog::publish).await?;
    Ok(Synced { plans: count, withdrawn })
}

/// A supplier's words are shown to people and language models.
fn readable(plan: Plan) -> Plan {
    let (name, operator) = (text::visible(&plan.name, NAME_CHARS), text::visible(&plan.operator, NAME_CHARS));
    Plan { name, operator, ..plan }
}

pub async fn is_empty(app: &App) -> Result<bool> {
    Ok(app.store.read(catalog::count).await? == 0)
}
