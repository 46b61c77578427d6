//! The write that ends a purchase: the eSIM and the books in one, or the money back. A sale that comes too late is kept
//! apart, to be given back to the supplier.

use metrics::counter;

use super::Standing;
use crate::app::App;
use crate::domain::amount::{Amount, Fiat};
use crate::domain::cost::{Cost, MOST_COST};
use crate::domain::email::Email;
use crate::domain::esim::Esim;
use crate::domain::ledger::Entry;
use crate::domain::money::Usd;
use crate::domain::order::{Failure, Order, OrderEvent, OrderStatus};
use crate::domain::text;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::ops::coupons::redeem;
use crate::ops::mail::{self, News, Slip};
use crate::ops::{LANE, events, receipts, suppliers, usage};
use crate::store::audit::{self, Line};
use crate::store::debts::{self, Funds};
use crate::store::orders::{Change, Step, Terms};
use crate::store::tx::Tx;
use crate::store::{WriteJob, attempts, catalog, checkouts, esims, native_moves, orders, wallet};
use crate::supplier::{Cause, No, Profile};
use crate::telemetry::EveryMinute;

/// How many characters are kept of a supplier's or an operator's reason for a failure.
pub(in crate::ops) const WHY_CHARS: usize = 500;

static COSTS: EveryMinute = EveryMinute::new();
static FUNDS: EveryMinute = EveryMinute::new();
static PRICES: EveryMinute = EveryMinute::new();

/// What a supplier delivered, and on which terms.
pub(super) struct Sold {
    /// `None` for a top-up.
    pub profile: Option<Profile>,
    pub number: Option<String>,
    pub cost: Option<Amount>,
}

/// What a sale cost: what the supplier says in its currency, or `Err` when that cannot be booked. Dollars are at the rate of
/// the order.
pub(super) fn told_cost(expected: Cost, told: Option<Amount>, currency: Fiat) -> Result<Cost, Amount> {
    let Some(told) = told else { return Ok(expected) };
    let bookable = |cost: &Cost| (Usd::ZERO..=MOST_COST).contains(&cost.usd);
    expected.told(told, currency).filter(bookable).ok_or(told)
}

/// The cost to book. Another one than we expected is an alarm: the catalog is out of date.
fn true_cost(order: &Order, told: Option<Amount>, currency: Fiat) -> Cost {
    let (supplier, expected) = (order.supplier.clone(), order.billed_cost());
    let (cost, readable) = match told_cost(expected, told, currency) {
        Ok(cost) if cost == expected => return cost,
        Ok(cost) => (cost, true),
        Err(_) => (expected, false),
    };
    counter!("simgate_supplier_costs_differ_total", "supplier" => supplier.clone()).increment(1);
    let Some(left_out) = COSTS.turn() else { return cost };
    let told = told.map(|told| told.to_string()).unwrap_or_default();
    let expected = expected.amount(currency).to_string();
    if readable {
        let cost = cost.amount(currency).to_string();
        tracing::error!(order = %order.id, supplier, expected, cost, left_out, "a sale cost something else than we expected; \
            it is booked as told, and the plan is taken in again");
    } else {
        tracing::error!(order = %order.id, supplier, told, expected, left_out, "a supplier told a cost that cannot be booked; \
            the expected cost is booked instead: compare it with the supplier's bill");
    }
    cost
}

pub(super) async fn fulfil(app: &App, order: &Order, supplier: &'static str, sold: Sold) -> Result<Standing> {
    let cost = true_cost(order, sold.cost, suppliers::currency(app, supplier));
    if cost != order.billed_cost() {
        app.resyncs.note(&order.supplier, &order.supplier_code);
    }
    let esim = match sold.profile {
        Some(profile) => Some(Esim {
            order: order.id.clone(),
            sealed: app.vault.seal(&order.id, &profile.activation)?,
            profile: profile.id,
            iccid: profile.iccid,
            install_by: profile.install_by,
            last_usage: None,
            asked_at: None,
            answered_at: None,
            due_at: usage::first_due(app, supplier)?,
        }),
        None => None,
    };
    let now = app.now();
    let mut done = order.clone();
    done.status = OrderStatus::Fulfilled;
    done.updated_at = now;
    done.esim = esim.clone().or(done.esim);
    (done.cost, done.billed) = (cost.usd, cost.billed);
    let sale = Sale {
        order: order.clone(),
        esim,
        supplier,
        cost,
        number: sold.number.clone(),
        entry: Entry::fulfilled(&order.id, order.charge(), supplier, cost.usd),
        receipt: order.customer_email.clone().map(|email| (mail::slip(app), email)),
        told: events::told(app, &done, &[], now)?,
        now,
    };
    let has_receipt = sale.receipt.is_some();
    let written = app.store.finish_batched(order.account.0, sale).await?;
    if has_receipt {
        mail::wake(app);
    }
    match written {
        Finished::Now(balance) => {
            done.supplier_number = sold.number.or(done.supplier_number);
            counter!("simgate_orders_total", "outcome" => "fulfilled").increment(1);
            Ok(Standing::Ended { order: Box::new(done), balance })
        }
        Finished::Before { order, balance } => Ok(Standing::Ended { order, balance }),
        Finished::NotOurs(owner) => {
            tracing::error!(order = %order.id, %owner, "the supplier answered with the profile of another order");
            Ok(Standing::Open)
        }
    }
}

/// Write 3 of an order or top-up that the supplier sold.
struct Sale {
    order: Order,
    esim: Option<Esim>,
    supplier: &'static str,
    /// What it really cost.
    cost: Cost,
    number: Option<String>,
    entry: Entry,
    /// The receipt to mail, and its recipient.
    receipt: Option<(Slip, Email)>,
    /// The order once it is delivered, for the event.
    told: String,
    now: Time,
}

impl Sale {
    /// Queues the receipt, in the write that delivers.
    fn write_receipt(&self, tx: &mut Tx) -> Result<()> {
        let Some((slip, email)) = &self.receipt else { return Ok(()) };
        receipts::queue(tx, slip, &self.order, email)
    }

    fn step(&self) -> Step<'_> {
        let terms = Terms { cost: self.cost, number: self.number.as_deref() };
        let (profile, entry, told) = (self.esim.as_ref(), &self.entry, self.told.as_str());
        let change = Change::Sold { profile, entry, terms, told };
        Step { order: &self.order.id, change, now: self.now }
    }
}

impl WriteJob for Sale {
    type Answer = Finished;
    const SHARES: bool = true;

    fn run(&self, tx: &mut Tx) -> Result<Finished> {
        match orders::advance(tx, &[self.step()])?.remove(&self.order.id) {
            Some(balance) => {
                self.write_receipt(tx)?;
                Ok(Finished::Now(balance))
            }
            None => {
                note_late_topup(tx, self)?;
                too_late(tx, &self.order, self.esim.as_ref().map(|esim| (esim, self.cost)))
            }
        }
    }

    fn run_batched(tx: &mut Tx, group: &[&Sale]) -> Result<Vec<Option<Finished>>> {
        let sold: Vec<Step> =
            group.iter().filter(|sale| sale.esim.is_some()).map(|sale| sale.step()).collect();
        let mut balances = orders::advance(tx, &sold)?;
        let mut finished = Vec::with_capacity(group.len());
        for sale in group {
            let balance = balances.remove(&sale.order.id);
            if balance.is_some() {
                sale.write_receipt(tx)?;
            }
            finished.push(balance.map(Finished::Now));
        }
        Ok(finished)
    }
}

enum Finished {
    Now(Usd),
    /// Somebody else ended the order first.
    Before {
        order: Box<Order>,
        balance: Usd,
    },
    /// The profile belongs to this other order.
    NotOurs(String),
}

/// Why write 3 found nothing to do. A profile that turns up for a failed order is marked for cancelling.
fn too_late(tx: &mut Tx, waiting: &Order, delivered: Option<(&Esim, Cost)>) -> Result<Finished> {
    let order = orders::by_id(tx, &waiting.id)?.ok_or_else(|| Error::fault("an order vanished"))?;
    let owner = match delivered {
        Some((esim, _)) => esims::owner_of(tx, esim)?,
        None => None,
    };
    // A profile that another order delivered must not be cancelled: its owner uses it.
    if order.status == OrderStatus::Failed
        && owner.is_none()
        && let Some((esim, cost)) = delivered
    {
        orders::orphan_found(tx, &order.id, &esim.profile, cost)?;
    }
    if order.status.after(OrderEvent::Sold).is_none() {
        let balance = wallet::read(tx, order.account)?.balance;
        return Ok(Finished::Before { order: Box::new(order), balance });
    }
    match owner {
        Some(owner) => Ok(Finished::NotOurs(owner.to_string())),
        None => Err(Error::fault("an order that waits could not be fulfilled")),
    }
}

/// A top-up that was sold after its money went back stays on the eSIM: its cost is our loss.
fn note_late_topup(tx: &mut Tx, sale: &Sale) -> Result<()> {
    let id = &sale.order.id;
    let failed = orders::by_id(tx, id)?.is_some_and(|order| order.status == OrderStatus::Failed);
    if id.is_topup() && failed && orders::orphan_lost(tx, id, sale.cost)? && sale.cost.usd.is_positive() {
        let entry = Entry::orphan(id, sale.supplier, sale.cost.usd);
        native_moves::post_cost(tx, &entry, sale.now, sale.supplier, sale.cost)?;
    }
    Ok(())
}

/// The supplier said no. Its reason decides what the buyer hears, and what the operator has to do.
pub(super) async fn refuse(app: &App, order: &Order, no: &No) -> Result<Standing> {
    let supplier = order.supplier.clone();
    let cause = no.cause.as_str();
    counter!("simgate_supplier_refusals_total", "supplier" => supplier.clone(), "cause" => cause)
        .increment(1);
    let (code, why) = match no.cause {
        Cause::Rejected => ("SUPPLIER_REJECTED", no.said.as_str()),
        Cause::SoldOut => ("SUPPLIER_REJECTED", "the supplier has none of this plan left"),
        Cause::PriceChanged => ("PRICE_CHANGED", "the supplier asks more for this plan than before"),
        // What we owe to the supplier is not the buyer's concern.
        Cause::NoFunds => ("SUPPLIER_UNAVAILABLE", "the supplier cannot sell at the moment"),
    };
    match no.cause {
        Cause::Rejected => {}
        Cause::SoldOut => {
            let code = &order.package_code;
            tracing::warn!(order = %order.id, supplier, code, said = no.said, "a plan is sold out; it is off sale until the next sync");
        }
        Cause::PriceChanged => {
            app.resyncs.note(&order.supplier, &order.supplier_code);
            if let Some(left_out) = PRICES.turn() {
                let code = &order.package_code;
                tracing::error!(order = %order.id, supplier, code, said = no.said, left_out, "a plan costs more than we expected and was \
                    not bought; it is taken in again");
            }
        }
        Cause::NoFunds => {
            if let Some(left_out) = FUNDS.turn() {
                tracing::error!(order = %order.id, supplier, said = no.said, left_out, "our balance at a supplier is used up and \
                    orders fail: pay in there");
            }
        }
    }
    let standing = fail(app, order, code, why).await?;
    if no.cause == Cause::SoldOut {
        take_off_sale(app, order).await?;
    }
    Ok(standing)
}

/// Nobody else buys what the supplier does not have. A sync puts the plan back.
async fn take_off_sale(app: &App, order: &Order) -> Result<()> {
    let (code, supplier, supplier_code) =
        (order.package_code.clone(), order.supplier.clone(), order.supplier_code.clone());
    let write = move |tx: &mut Tx| match catalog::withdraw_sold_out(tx, &code, &supplier, &supplier_code)? {
        true => catalog::publish(tx),
        false => Ok(()),
    };
    app.store.finish(LANE, write).await
}

/// `PROVISIONING → FAILED`, with the money back in the wallet, or owed to a guest. The order stays open while it is
/// unknown whether there is money to give back.
pub(super) async fn fail(app: &App, order: &Order, code: &str, why: &str) -> Result<Standing> {
    fail_noting(app, order, code, why, None).await
}

/// The same for an operator, whose line goes into the audit log with the write.
pub(in crate::ops) async fn fail_by_hand(
    app: &App,
    order: &Order,
    code: &str,
    why: &str,
    line: Line,
) -> Result<Standing> {
    fail_noting(app, order, code, why, Some(line)).await
}

async fn fail_noting(
    app: &App,
    order: &Order,
    code: &str,
    why: &str,
    line: Option<Line>,
) -> Result<Standing> {
    let failure = Failure { code: code.into(), detail: text::visible(why, WHY_CHARS) };
    let now = app.now();
    let mut done = order.clone();
    done.status = OrderStatus::Failed;
    done.updated_at = now;
    done.failure = Some(failure.clone());
    let (waiting, failed, slip, teller) = (order.clone(), done.clone(), mail::slip(app), app.clone());
    let give_back = move |tx: &mut Tx| {
        wallet::lock(tx, waiting.account)?;
        if debts::funds_of(tx, &waiting)? == Funds::Missing {
            return Ok(None);
        }
        let back = debts::payback(tx, &waiting, waiting.price)?;
        let failed = Order { refunded: orders::part_of(&waiting, &back), ..failed.clone() };
        let told = events::told(&teller, &failed, &[], now)?;
        match orders::fail(tx, &waiting, &failure, &back, &told, now)? {
            Some(balance) => {
                if let Some(line) = &line {
                    audit::record(tx, line)?;
                    // It may have been sold all the same.
                    attempts::watch(tx, &waiting.id, now)?;
                }
                redeem::give_back(tx, &waiting, now)?;
                // Nobody waits for the answer of a checkout, so its owner gets a mail.
                if let Some(checkout) = checkouts::by_order(tx, &waiting.id)? {
                    let news = if waiting.id.is_topup() { News::TopUpFailed } else { News::Failed };
                    mail::tell_owner(tx, &slip, &checkout, news, back.received())?;
                }
                Ok(Some((Finished::Now(balance), back.received())))
            }
            None => Ok(Some((too_late(tx, &waiting, None)?, Usd::ZERO))),
        }
    };
    let Some((written, received)) = app.store.finish(order.account.0, give_back).await? else {
        return Ok(Standing::Open);
    };
    mail::wake(app);
    match written {
        Finished::Now(balance) => {
            done.refunded = Some(received).filter(|received| *received != done.price);
            counter!("simgate_orders_total", "outcome" => "failed").increment(1);
            Ok(Standing::Ended { order: Box::new(done), balance })
        }
        Finished::Before { order, balance } => Ok(Standing::Ended { order, balance }),
        Finished::NotOurs(_) => Err(Error::fault("a failing order has no profile")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::cost::Rate;

    fn told(expected: Cost, micros: i64, currency: Fiat, supplier: Fiat) -> Result<Usd, Amount> {
        told_cost(expected, Some(Amount { micros, currency }), supplier).map(|cost| cost.usd)
    }

    #[test]
    fn only_a_suppliers_own_currency_is_booked_as_told() {
        let (euro, dollar) = (Fiat::parse("EUR").unwrap(), Fiat::USD);
        let expected = Cost::in_usd(Usd::dollars(2));
        assert_eq!(told_cost(expected, None, dollar), Ok(expected));
        assert_eq!(told(expected, 3_000_000, dollar, dollar), Ok(Usd::dollars(3)));
        assert_eq!(told(expected, 0, dollar, dollar), Ok(Usd::ZERO));
        for (micros, currency) in [(3_000_000, euro), (-1, dollar), (i64::MAX, dollar)] {
            assert_eq!(told(expected, micros, currency, dollar), Err(Amount { micros, currency }));
        }
        let expected = Cost::at(Rate::parse("1.1").unwrap(), 2_000_000).unwrap();
        assert_eq!(told_cost(expected, None, euro), Ok(expected));
        assert_eq!(told(expected, 3_000_001, euro, euro), Ok(Usd::from_micros(3_300_002)));
        for (micros, currency) in [(3_000_000, dollar), (-1, euro), (i64::MAX, euro), (91_000_000_000, euro)]
        {
            assert_eq!(told(expected, micros, currency, euro), Err(Amount { micros, currency }));
        }
    }
}
