//! How a purchase is resolved whose fate is unknown, at suppliers that would sell again if they were asked again. A
//! purchase is written down before it is sent. From then on it is looked for; only after the quiet time, and two empty
//! look-ups that count, may it be sent once more (`domain/doubt.rs`).

use std::time::Duration;

use metrics::counter;

use super::finish::{Sold, fail, fulfil, refuse};
use super::{Standing, Turn, ask, heard, spare};
use crate::app::App;
use crate::domain::doubt::{self, Attempt, Next};
use crate::domain::order::{Order, OrderStatus};
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::LANE;
use crate::store::attempts::{self, Begun};
use crate::store::tx::Tx;
use crate::store::{esims, orders, spares};
use crate::supplier::{Answer, Sale, Supplier};
use crate::telemetry::EveryMinute;

static STRANGE: EveryMinute = EveryMinute::new();
static BLIND: EveryMinute = EveryMinute::new();
static CAPPED: EveryMinute = EveryMinute::new();
static TWICE: EveryMinute = EveryMinute::new();

/// By what a supplier's sales are found.
#[derive(Clone, Copy)]
pub(super) struct Way {
    quiet_ms: i64,
    /// It keeps no reference of ours: sales are told apart by plan and time.
    in_list: bool,
}

impl Way {
    pub(super) fn by_reference(quiet: Duration) -> Way {
        Way { quiet_ms: millis(quiet), in_list: false }
    }

    pub(super) fn in_list(quiet: Duration) -> Way {
        Way { quiet_ms: millis(quiet), in_list: true }
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// An order at a supplier whose sales can be looked up.
pub(super) async fn by_looking(
    app: &App,
    order: &Order,
    supplier: &dyn Supplier,
    way: Way,
) -> Result<Standing> {
    if order.supplier_number.is_some() {
        // Asked with its number, the supplier tells how the sale stands and sells nothing new.
        let answer = ask::purchase(app, supplier, order).await?;
        return heard(app, order, supplier, answer, Turn::Again).await;
    }
    let id = order.id.clone();
    let attempts = app.store.read(move |tx| attempts::of(tx, &id)).await?;
    if attempts.is_empty() {
        return buy_first(app, order, supplier, way).await;
    }
    let asked = app.now();
    let sales = match ask::find(supplier, order).await? {
        Answer::Done(sales) => sales,
        Answer::Refused(no) => return Ok(not_found_out(order, &no.said)),
        Answer::NotSent(why) | Answer::Doubt(why) => return Ok(not_found_out(order, &why)),
    };
    match compared(app, order, way, &attempts, sales).await? {
        Found::Ours(sales) => deliver(app, order, supplier, sales).await,
        Found::Strange => {
            if let Some(left_out) = STRANGE.turn() {
                tracing::error!(order = %order.id, left_out, "a supplier shows a sale under an order's reference that is not what was \
                    ordered, or whose profile belongs to another order; the order waits for you");
            }
            let id = order.id.clone();
            app.store.finish(LANE, move |tx| attempts::found_something(tx, &id)).await?;
            Ok(Standing::Open)
        }
        Found::Nothing => nothing_found(app, order, supplier, way, &attempts, asked).await,
    }
}

fn not_found_out(order: &Order, why: &str) -> Standing {
    tracing::warn!(order = %order.id, %why, "a sale in doubt could not be looked up; it will be looked up again");
    Standing::Open
}

async fn buy_first(app: &App, order: &Order, supplier: &dyn Supplier, way: Way) -> Result<Standing> {
    let (draft, now) = (order.clone(), app.now());
    match app.store.finish(LANE, move |tx| attempts::begin(tx, &draft, way.in_list, now)).await? {
        Begun::Now => {}
        Begun::NotYet => return Ok(Standing::Queued),
        Begun::Elsewhere | Begun::Capped => return Ok(Standing::Open),
    }
    let answer = ask::purchase(app, supplier, order).await?;
    heard(app, order, supplier, answer, Turn::First).await
}

/// The last purchase of an order: its own doubt is the operator's.
async fn buy_again(app: &App, order: &Order, supplier: &dyn Supplier) -> Result<Standing> {
    let (draft, now, places) = (order.clone(), app.now(), app.settings.second_purchases_per_hour);
    match app.store.finish(LANE, move |tx| attempts::begin_second(tx, &draft, places, now)).await? {
        Begun::Now => {}
        Begun::Capped => {
            counter!("simgate_second_purchases_total", "outcome" => "capped").increment(1);
            if let Some(left_out) = CAPPED.turn() {
                tracing::error!(order = %order.id, supplier = order.supplier, places, left_out, "too many orders of a supplier were \
                    bought a second time within an hour; the others wait: see `simgate order list --stuck`");
            }
            return Ok(Standing::Open);
        }
        Begun::Elsewhere | Begun::NotYet => return Ok(Standing::Open),
    }
    counter!("simgate_second_purchases_total", "outcome" => "sent").increment(1);
    tracing::warn!(order = %order.id, "a sale was looked for in vain; it is bought once more");
    match ask::purchase(app, supplier, order).await? {
        Answer::NotSent(why) => {
            let (id, unsent) = (order.id.clone(), Attempt { n: 2, asked_at: now, empty_at: None });
            app.store.finish(LANE, move |tx| attempts::never_sent(tx, &id, &unsent)).await?;
            Ok(not_found_out(order, &why))
        }
        answer => heard(app, order, supplier, answer, Turn::Again).await,
    }
}

/// What look-ups found of an order.
enum Found {
    /// The oldest first.
    Ours(Vec<Sale>),
    /// It has our reference, and is not what was ordered.
    Strange,
    Nothing,
}

async fn compared(
    app: &App,
    order: &Order,
    way: Way,
    attempts: &[Attempt],
    sales: Vec<Sale>,
) -> Result<Found> {
    let (waiting, purchases) = (order.clone(), attempts.to_vec());
    let read = move |tx: &mut Tx| {
        let (mut ours, mut named) = (Vec::new(), false);
        for sale in &sales {
            if !way.in_list && sale.reference != waiting.id.as_str() {
                continue;
            }
            named |= !way.in_list;
            if is_ours(tx, &waiting, way, &purchases, sale)? {
                ours.push(sale.clone());
            }
        }
        Ok((ours, named))
    };
    let (mut ours, named): (Vec<Sale>, bool) = app.store.read(read).await?;
    ours.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.number.cmp(&b.number)));
    if way.in_list {
        // Others may have been bought by hand.
        ours.truncate(attempts.len());
    }
    Ok(match ours.is_empty() {
        false => Found::Ours(ours),
        true if named => Found::Strange,
        true => Found::Nothing,
    })
}

/// Whether a sale is what an order asked for, and nobody else's. Its reference was compared before.
fn is_ours(tx: &mut Tx, order: &Order, way: Way, attempts: &[Attempt], sale: &Sale) -> Result<bool> {
    let in_time = attempts.first().is_some_and(|first| first.may_be_sold_at(sale.at));
    if sale.code != order.supplier_code || sale.quantity != 1 || (way.in_list && !in_time) {
        return Ok(false);
    }
    if spares::holds(tx, &order.supplier, &sale.number)? {
        return Ok(false);
    }
    if order.id.is_topup() {
        let fits = match &sale.iccid {
            Some(iccid) => *iccid == ask::filled(order)?.iccid,
            None => !way.in_list,
        };
        return Ok(fits && !orders::topup_has_number(tx, order, &sale.number)?);
    }
    let Some(profile) = &sale.profile else {
        let Some(iccid) = &sale.iccid else { return Ok(true) };
        return Ok(orders::with_iccid(tx, iccid, 2)?.iter().all(|holder| *holder == order.id));
    };
    if sale.iccid.as_ref().is_some_and(|iccid| *iccid != profile.iccid) {
        return Ok(false);
    }
    let holder = esims::holder_of(tx, &profile.iccid, &profile.id)?;
    Ok(holder.is_none_or(|holder| holder == order.id) && !orders::is_orphan(tx, &profile.id)?)
}

/// Of several sales the oldest is delivered; the others are given back.
async fn deliver(
    app: &App,
    order: &Order,
    supplier: &dyn Supplier,
    mut sales: Vec<Sale>,
) -> Result<Standing> {
    let rest = sales.split_off(1);
    if !rest.is_empty() {
        spare::note(app, order, rest, false).await?;
    }
    let Some(sale) = sales.pop() else { return Ok(Standing::Open) };
    if sale.profile.is_none() && !order.id.is_topup() {
        let id = order.id.clone();
        app.store.finish(order.account.0, move |tx| orders::keep_number(tx, &id, &sale.number)).await?;
        return Ok(Standing::Open);
    }
    let sold = Sold { profile: sale.profile, number: Some(sale.number), cost: sale.cost };
    fulfil(app, order, supplier.name(), sold).await
}

async fn nothing_found(
    app: &App,
    order: &Order,
    supplier: &dyn Supplier,
    way: Way,
    attempts: &[Attempt],
    asked: Time,
) -> Result<Standing> {
    let Some(first) = attempts.first() else { return Ok(Standing::Open) };
    // Until then somebody may be waiting for the answer to the first purchase.
    let quiet_ms = way.quiet_ms.max(app.settings.supplier_timeout_ms);
    let next = doubt::after_nothing(attempts, quiet_ms, asked);
    match next {
        Next::Wait => {}
        Next::Operator => {
            if let Some(left_out) = TWICE.turn() {
                tracing::error!(order = %order.id, left_out, "an order was bought twice and both purchases are in doubt; it is not \
                    bought again: ask the supplier, then `simgate order retry` or `simgate order fail`");
            }
        }
        Next::Count | Next::BuyAgain => {
            if !look_ups_work(app, order, supplier, way, first.asked_at).await? {
                return Ok(Standing::Open);
            }
            if next == Next::BuyAgain {
                return buy_again(app, order, supplier).await;
            }
            let id = order.id.clone();
            app.store.finish(LANE, move |tx| attempts::found_empty(tx, &id, asked)).await?;
        }
    }
    Ok(Standing::Open)
}

/// Whether the same look-up finds a sale that is known, and younger than the doubtful one: a list that lags, or is of
/// another account, is empty for everything.
async fn look_ups_work(
    app: &App,
    order: &Order,
    supplier: &dyn Supplier,
    way: Way,
    since: Time,
) -> Result<bool> {
    let doubtful = order.clone();
    let read = move |tx: &mut Tx| {
        let known = attempts::known_sales(tx, &doubtful, since)?;
        let known: Result<Vec<_>> = known.iter().map(|id| orders::by_id(tx, id)).collect();
        Ok(known?.into_iter().flatten().collect::<Vec<_>>())
    };
    let known = app.store.read(read).await?;
    // One that was made void at the supplier is not shown: the next ones count as well.
    for known in &known {
        if let Answer::Done(sales) = ask::find(supplier, known).await?
            && sales.iter().any(|sale| is_known(known, way, sale))
        {
            return Ok(true);
        }
    }
    match known.first() {
        None => tracing::debug!(order = %order.id, "nothing was sold since; an empty look-up proves nothing"),
        Some(known) => {
            if let Some(left_out) = BLIND.turn() {
                tracing::warn!(order = %order.id, known = %known.id, left_out, "look-ups of a supplier do not show a sale that is known; \
                    an empty one proves nothing");
            }
        }
    }
    Ok(false)
}

/// Whether a sale is the one that an order has delivered.
pub(super) fn is_known(order: &Order, way: Way, sale: &Sale) -> bool {
    let named = way.in_list || sale.reference == order.id.as_str();
    let agreed = sale.code == order.supplier_code && sale.quantity == 1;
    let Some(esim) = &order.esim else { return false };
    let iccid = sale.profile.as_ref().map(|profile| &profile.iccid).or(sale.iccid.as_ref());
    let number = order.supplier_number.as_ref().map(|number| *number == sale.number);
    let same = match (order.id.is_topup(), iccid) {
        // An eSIM has many top-ups: only a number tells which this is, or our reference.
        (true, iccid) => iccid.is_none_or(|iccid| *iccid == esim.iccid) && number.unwrap_or(!way.in_list),
        (false, Some(iccid)) => *iccid == esim.iccid,
        (false, None) => number.unwrap_or(false),
    };
    named && agreed && same
}

/// Sales of an order that has ended, beside the one that it delivered.
pub(super) async fn left_over(
    app: &App,
    order: &Order,
    way: Way,
    attempts: &[Attempt],
    sales: Vec<Sale>,
) -> Result<Vec<Sale>> {
    let Found::Ours(mut sales) = compared(app, order, way, attempts, sales).await? else {
        return Ok(Vec::new());
    };
    if order.status != OrderStatus::Failed
        && let Some(delivered) = sales.iter().position(|sale| is_known(order, way, sale))
    {
        sales.remove(delivered);
    }
    // In a list, what was sold later may be the next order's. Until then this one had the plan's turn.
    let turn_ended = match order.status {
        OrderStatus::Failed => Some(order.updated_at),
        _ => attempts.last().map(|last| last.asked_at),
    };
    sales.retain(|sale| !way.in_list || turn_ended.is_some_and(|end| doubt::is_surely_before(sale.at, end)));
    Ok(sales)
}

/// An order at a supplier of which a profile is claimed before it is bought: asking again is about the same profile.
pub(super) async fn by_claim(app: &App, mut order: Order, supplier: &dyn Supplier) -> Result<Standing> {
    let mut turn = Turn::Again;
    if order.supplier_number.is_none() {
        let claimed = match ask::claim(app, supplier, &order).await? {
            Answer::Done(claimed) => claimed,
            Answer::Refused(no) => return refuse(app, &order, &no).await,
            // Nothing can have been bought without a claim.
            Answer::NotSent(why) => return fail(app, &order, "SUPPLIER_UNAVAILABLE", &why).await,
            Answer::Doubt(why) => {
                tracing::warn!(order = %order.id, %why, "a claim is in doubt; another one will be made");
                return Ok(Standing::Open);
            }
        };
        let (id, ours) = (order.id.clone(), claimed.clone());
        let keep = move |tx: &mut Tx| {
            orders::keep_number(tx, &id, &ours)?;
            orders::by_id(tx, &id)
        };
        let kept = app.store.finish(order.account.0, keep).await?;
        order = kept.ok_or_else(|| Error::fault("an order vanished"))?;
        // Somebody else's claim may have been bought already.
        if order.supplier_number.as_ref() == Some(&claimed) {
            turn = Turn::First;
        }
    }
    let answer = ask::purchase(app, supplier, &order).await?;
    heard(app, &order, supplier, answer, turn).await
}
