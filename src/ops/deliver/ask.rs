//! Questions to a supplier about an order, counted and timed.

use metrics::{counter, histogram};
use tokio::time::Instant;

use crate::app::App;
use crate::domain::amount::Amount;
use crate::domain::esim::Esim;
use crate::domain::number::Series;
use crate::domain::order::{Order, OrderStatus};
use crate::error::{Error, Result};
use crate::ops::suppliers;
use crate::store::checkouts;
use crate::supplier::{Answer, Ask, Bought, Find, Profile, Provision, Sale, Supplier, TopUp};

pub(super) fn call_name(order: &Order) -> &'static str {
    match order.status {
        OrderStatus::Cancelling => "cancel",
        _ if order.id.is_topup() => "top_up",
        _ => "provision",
    }
}

/// Buys, or asks how a sale stands that the supplier has told a number of.
pub(super) async fn purchase(
    app: &App,
    supplier: &dyn Supplier,
    order: &Order,
) -> Result<Answer<Bought<Option<Profile>>>> {
    let expected_cost = expected_cost(app, order).await?;
    let number = order.supplier_number.as_deref();
    let started = Instant::now();
    let answer = if order.id.is_topup() {
        let ask = TopUp {
            order: &order.id,
            profile: &filled(order)?.profile,
            code: &order.supplier_code,
            expected_cost,
            data_mb: order.data_mb,
            duration_days: order.duration_days,
            ordered_at: order.created_at,
            number,
        };
        supplier.top_up(ask).await.map(|bought| bought.map(|()| None))
    } else {
        supplier.provision(provision(order, expected_cost)).await.map(|bought| bought.map(Some))
    };
    let outcome = match &answer {
        Answer::Done(Bought::Underway { .. }) => "underway",
        other => other.outcome(),
    };
    note(call_name(order), outcome, started);
    match answer.is_an_answer() {
        true => app.breakers.heard(supplier.name()),
        false => app.breakers.unheard(supplier.name(), &order.id),
    }
    Ok(answer)
}

/// Chooses what to buy, under `ClaimFirst`.
pub(super) async fn claim(app: &App, supplier: &dyn Supplier, order: &Order) -> Result<Answer<String>> {
    let ask = provision(order, expected_cost(app, order).await?);
    Ok(timed("claim", supplier.claim(ask)).await)
}

/// The sales that may be this order's.
pub(super) async fn find(supplier: &dyn Supplier, order: &Order) -> Result<Answer<Vec<Sale>>> {
    let profile = if order.id.is_topup() { Some(filled(order)?.profile.as_str()) } else { None };
    let ask = Find { order: &order.id, code: &order.supplier_code, ordered_at: order.created_at, profile };
    Ok(timed("find", supplier.find(ask)).await)
}

fn provision(order: &Order, expected_cost: Amount) -> Provision<'_> {
    Provision {
        order: &order.id,
        code: &order.supplier_code,
        expected_cost,
        data_mb: order.data_mb,
        duration_days: order.duration_days,
        ordered_at: order.created_at,
        number: order.supplier_number.as_deref(),
    }
}

/// The eSIM that a top-up fills.
pub(super) fn filled(order: &Order) -> Result<&Esim> {
    order.esim.as_ref().ok_or_else(|| Error::fault(format!("top-up {} has no eSIM", order.id)))
}

/// The most that it may cost, as its supplier bills it. A checkout has been paid already: it is delivered for anything up
/// to what was paid.
async fn expected_cost(app: &App, order: &Order) -> Result<Amount> {
    let paid_first = match order.number {
        Some(number) => number.series == Series::Checkouts,
        None => {
            let id = order.id.clone();
            app.store.read(move |tx| checkouts::by_order(tx, &id)).await?.is_some()
        }
    };
    let (cost, currency) = (order.billed_cost(), suppliers::currency(app, &order.supplier));
    Ok(if paid_first { cost.most(order.price, currency) } else { cost.amount(currency) })
}

async fn timed<T>(call: &'static str, asked: Ask<'_, T>) -> Answer<T> {
    let started = Instant::now();
    let answer = asked.await;
    note(call, answer.outcome(), started);
    answer
}

fn note(call: &'static str, outcome: &'static str, started: Instant) {
    counter!("simgate_supplier_calls_total", "call" => call, "outcome" => outcome).increment(1);
    histogram!("simgate_supplier_seconds", "call" => call).record(started.elapsed().as_secs_f64());
}
