//! Usage: what the carrier reads now, at the supplier's pace; the last known reading when it does not answer; and what was
//! used on each day. All who ask for one profile at the same time share one question, and a profile that somebody
//! read a moment ago is not read again: the database remembers who asked when, for all instances. `round` reads
//! profiles that nobody asks for.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared, join_all};
use metrics::counter;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::LANE;
use super::buying::Fills;
use super::{events, jobs, owned};
use crate::app::App;
use crate::domain::esim::{Esim, USAGE_DAYS, Usage, UsageDay};
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::tx::Tx;
use crate::store::{esims, orders};
use crate::supplier::{Answer, Reading, Supplier};

/// How long a live reading is worth waiting for; the last known one is at hand.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often we look whether another instance has its answer.
const GLANCE: Duration = Duration::from_millis(25);
/// Readings that nobody asked for take this part of a supplier's rate.
const SHARE: f64 = 0.25;
/// Readings that somebody waits for take at most this part: buying must not wait for them.
const ASKED_SHARE: f64 = 0.5;
/// A turn that is further away is not waited for.
const LONGEST_WAIT_MS: i64 = 2_000;
/// The most readings of a supplier in one round, which begins every second.
const AT_ONCE: f64 = 64.0;

#[derive(Clone)]
pub struct Report {
    pub usage: Usage,
    /// Whether the carrier did not answer, so that this is the last known reading.
    pub stale: bool,
}

/// What an eSIM has used; also its ICCID.
pub async fn report(app: &App, account: AccountNo, esim: &Fills) -> Result<(String, Report)> {
    let order = owned::named(app, account, esim).await?;
    let report = read(app, &order).await?;
    Ok((esim_of(&order)?.iccid.clone(), report))
}

/// The same, and what it had used at the end of each day, in this order alone: others may have had its ICCID before.
pub async fn history(app: &App, account: AccountNo, esim: &Fills) -> Result<(String, Report, Vec<UsageDay>)> {
    let order = owned::named(app, account, esim).await?;
    let report = read(app, &order).await?;
    let iccid = esim_of(&order)?.iccid.clone();
    let (id, since) = (order.id, app.now().day() - USAGE_DAYS);
    let days = app.store.read(move |tx| esims::days(tx, &id, since)).await?;
    Ok((iccid, report, days))
}

/// Who wants a reading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asker {
    Somebody,
    /// Our own round, which has its turn already, or a decision about money.
    Ourselves,
}

/// The carrier's reading, or the last one while it may not be asked again.
pub(super) async fn read(app: &App, order: &Order) -> Result<Report> {
    read_for(app, order, Asker::Somebody).await
}

async fn read_for(app: &App, order: &Order, asker: Asker) -> Result<Report> {
    // Whom the settings do not name cannot be asked.
    let Some(supplier) = app.suppliers.get(order.supplier.as_str()) else { return stale(order) };
    let (pace, now) = (pace_of(&**supplier), app.now());
    if esim_of(order)?.asked_at.is_some_and(|at| now.is_within(pace, at)) {
        return match answered(order) {
            Some(report) => Ok(report),
            None => others_answer(app, order).await,
        };
    }
    let begin = || {
        let asking = ask(app.clone(), order.clone(), pace, asker);
        // Where a question counts, its answer is stored even if all who waited for it have gone.
        if pace > 0 { outlive(app.tasks.spawn(asking)).boxed() } else { asking.boxed() }
    };
    let answer = app.readings.join(&order.id, begin).await;
    app.readings.leave(&order.id);
    answer
}

async fn outlive(asking: JoinHandle<Result<Report>>) -> Result<Report> {
    asking.await.map_err(Error::fault)?
}

/// The last reading, when the carrier's last answer is as new as the last question.
fn answered(order: &Order) -> Option<Report> {
    let esim = order.esim.as_ref()?;
    let is_new = esim.answered_at.zip(esim.asked_at).is_some_and(|(answered, asked)| answered >= asked);
    let usage = esim.last_usage.clone().filter(|_| is_new)?;
    Some(Report { usage: shown(order, usage), stale: false })
}

/// The last reading, when the carrier does not answer.
fn stale(order: &Order) -> Result<Report> {
    let usage = esim_of(order)?.last_usage.clone().ok_or(Refusal::CarrierUnavailable)?;
    Ok(Report { usage: shown(order, usage), stale: true })
}

/// The last reading, without asking anybody: for lists.
pub fn last_known(order: &Order) -> Option<Report> {
    stale(order).ok()
}

/// An order that was cancelled has nothing left, whatever the carrier says.
fn shown(order: &Order, usage: Usage) -> Usage {
    if order.status == OrderStatus::Cancelled { usage.given_back() } else { usage }
}

fn esim_of(order: &Order) -> Result<&Esim> {
    order.esim.as_ref().ok_or_else(|| Error::fault("a delivered order without its eSIM"))
}

/// The least milliseconds between two readings of one profile.
fn pace_of(supplier: &dyn Supplier) -> i64 {
    i64::try_from(supplier.abilities().reading_every.as_millis()).unwrap_or(i64::MAX)
}

/// What the carrier says now, however lately and much it was asked: for decisions about money.
pub(super) async fn read_anew(app: &App, order: &Order) -> Result<Report> {
    outlive(app.tasks.spawn(ask(app.clone(), order.clone(), 0, Asker::Ourselves))).await
}

/// Asks the carrier, unless another instance asked within the pace, or its supplier is asked too much.
async fn ask(app: App, order: Order, pace: i64, asker: Asker) -> Result<Report> {
    let (supplier, esim, now) = (app.supplier(&order.supplier)?, esim_of(&order)?, app.now());
    let is_paced = pace_of(&*supplier) > 0;
    if is_paced && asker == Asker::Somebody && !has_turn(&app, supplier.as_ref(), now).await? {
        return stale(&order);
    }
    if is_paced && !claim(&app, &order, pace, now).await? {
        return others_answer(&app, &order).await;
    }
    let patience = PATIENCE.min(Duration::from_millis(app.settings.supplier_timeout_ms.unsigned_abs()));
    let question = supplier.usage(Reading { profile: &esim.profile, now });
    let reading = match timeout(patience, question).await {
        Ok(Answer::Done(usage)) => Some(usage),
        Ok(Answer::Refused(_) | Answer::NotSent(_) | Answer::Doubt(_)) | Err(_) => None,
    };
    let outcome = if reading.is_some() { "done" } else { "failed" };
    counter!("simgate_supplier_calls_total", "call" => "usage", "outcome" => outcome).increment(1);
    match reading {
        Some(reading) => {
            let usage = keep(&app, &order, reading, now, is_paced).await?;
            Ok(Report { usage: shown(&order, usage), stale: false })
        }
        None => stale(&order),
    }
}

/// Whether a reading that somebody waits for may be asked now.
async fn has_turn(app: &App, supplier: &dyn Supplier, now: Time) -> Result<bool> {
    let (name, rate) = (supplier.name(), supplier.abilities().rate * ASKED_SHARE);
    if !rate.is_finite() {
        return Ok(true);
    }
    let (step, latest) = ((1e6 / rate) as i64, now.plus_millis(LONGEST_WAIT_MS));
    app.store.write(LANE, move |tx| esims::next_turn(tx, name, now, step, latest)).await
}

/// Claims the question for this instance. A carrier that does not answer is asked again when the pace allows it.
async fn claim(app: &App, order: &Order, pace: i64, now: Time) -> Result<bool> {
    let (id, esim, before) = (order.id.clone(), esim_of(order)?, now.plus_millis(-pace));
    let next = app.settings.reading_rhythm.next(esim.last_usage.as_ref(), esim.install_by, now);
    app.store.write(order.account.0, move |tx| esims::claim_reading(tx, &id, now, before, next)).await
}

/// Waits for the answer to another's question, until that one must have given up.
async fn others_answer(app: &App, order: &Order) -> Result<Report> {
    let patience = i64::try_from(PATIENCE.as_millis()).unwrap_or(i64::MAX);
    let look = async {
        loop {
            let id = order.id.clone();
            let found = app.store.read(move |tx| orders::by_id(tx, &id)).await?;
            let found = found.ok_or(Refusal::OrderNotFound)?;
            if let Some(report) = answered(&found) {
                return Ok(report);
            }
            if esim_of(&found)?.asked_at.is_none_or(|at| at.plus_millis(patience) <= app.now()) {
                return stale(&found);
            }
            tokio::time::sleep(GLANCE).await;
        }
    };
    timeout(PATIENCE, look).await.unwrap_or_else(|_| stale(order))
}

/// Stores a reading with the events that tell of it, and answers what is known then. Where each call asks the carrier, one
/// that says nothing new costs no write.
async fn keep(app: &App, order: &Order, reading: Usage, asked: Time, is_paced: bool) -> Result<Usage> {
    let now = app.now().max(asked);
    let Esim { install_by, last_usage, .. } = esim_of(order)?;
    let (known, install_by, rhythm) = (last_usage.as_ref(), *install_by, app.settings.reading_rhythm);
    let reading = shown(order, reading.plausible(now));
    let usage = Usage::after(known, &reading);
    let is_same = known.is_some_and(|known| Usage { as_of: usage.as_of, ..known.clone() } == usage);
    if is_same && !is_paced {
        return Ok(usage);
    }
    let read = order.clone();
    let save = move |tx: &mut Tx| {
        let next = |usage: &Usage| rhythm.next(Some(usage), install_by, now);
        let told = |usage: &Usage, tidings| events::told_of_esim(&read, usage, tidings);
        esims::save_reading(tx, &read.id, &reading, now, next, told)
    };
    match app.store.write(order.account.0, save).await {
        // The caller has the reading; storing it can wait for a quieter moment.
        Err(Error::Refused(Refusal::Overloaded)) => Ok(usage),
        kept => kept,
    }
}

/// When a new profile is to be read for the first time. Where each call asks the carrier nothing is read in advance.
pub(super) fn first_due(app: &App, supplier: &str) -> Result<Option<Time>> {
    let supplier = app.supplier(supplier)?;
    let now = app.now();
    Ok(is_read(&*supplier).then(|| app.settings.reading_rhythm.next(None, None, now)).flatten())
}

/// Makes a profile due now, or as soon as its supplier's pace allows. One that is not read without anybody asking stays so,
/// and many wishes for one profile make one reading.
pub(super) async fn read_earlier(app: &App, supplier: &dyn Supplier, iccid: String) -> Result<()> {
    let (name, pace, now) = (supplier.name(), pace_of(supplier), app.now());
    let wanted = iccid.clone();
    if !app.store.read(move |tx| esims::is_due_after(tx, name, &wanted, now)).await? {
        return Ok(());
    }
    app.store.write(LANE, move |tx| esims::due_earlier(tx, name, &iccid, now, pace)).await
}

/// Whether a supplier's profiles are read without anybody asking.
fn is_read(supplier: &dyn Supplier) -> bool {
    let abilities = supplier.abilities();
    abilities.usage && abilities.rate > 0.0 && !abilities.reading_every.is_zero()
}

/// Reads profiles that are due, for each supplier as many as its rate leaves room for.
pub async fn round(app: &App) -> Result<()> {
    for supplier in app.suppliers.values().filter(|supplier| is_read(&***supplier)) {
        read_due(app, supplier).await?;
        jobs::alive();
    }
    Ok(())
}

async fn read_due(app: &App, supplier: &Arc<dyn Supplier>) -> Result<()> {
    let (name, rate, now) = (supplier.name(), supplier.abilities().rate * SHARE, app.now());
    let most = rate.clamp(1.0, AT_ONCE) as i64;
    let due = app.store.read(move |tx| esims::due(tx, name, now, most)).await?;
    if due.is_empty() {
        return Ok(());
    }
    // So many readings take up the rate until then.
    let until = |readings: i64| now.plus_millis((readings as f64 * 1_000.0 / rate) as i64);
    let (turn, longest) = (until(due.len() as i64), until(most).and_a_little());
    if !app.store.write(LANE, move |tx| esims::take_turn(tx, name, now, turn, longest)).await? {
        return Ok(());
    }
    let readings = due.iter().map(|id| read_in_turn(app, id));
    join_all(readings).await.into_iter().collect()
}

async fn read_in_turn(app: &App, id: &OrderId) -> Result<()> {
    let wanted = id.clone();
    let found = app.store.read(move |tx| orders::by_id(tx, &wanted)).await?;
    let Some(order) = found.filter(|order| order.status != OrderStatus::Cancelled) else {
        let id = id.clone();
        return app.store.write(LANE, move |tx| esims::end_due(tx, &id)).await;
    };
    match read_for(app, &order, Asker::Ourselves).await {
        // Its claim has made it due later.
        Ok(_) | Err(Error::Refused(Refusal::CarrierUnavailable)) => Ok(()),
        Err(error) => Err(error),
    }
}

type Asking = Pin<Box<dyn Future<Output = Result<Report>> + Send>>;

/// The questions to carriers that are under way in this process, by order.
#[derive(Default)]
pub struct Readings(Mutex<HashMap<OrderId, WeakShared<Asking>>>);

impl Readings {
    /// The question about this order that is under way, or a new one.
    fn join(&self, order: &OrderId, begin: impl FnOnce() -> Asking) -> Shared<Asking> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(question) = all.get(order).and_then(under_way) {
            return question;
        }
        // Those whose callers have all gone are swept before the map grows.
        if all.len() == all.capacity() {
            all.retain(|_, question| under_way(question).is_some());
        }
        let question = begin().shared();
        if let Some(weak) = question.downgrade() {
            all.insert(order.clone(), weak);
        }
        question
    }

    fn leave(&self, order: &OrderId) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(order).is_some_and(|question| under_way(question).is_none()) {
            all.remove(order);
        }
    }
}

/// A question that has its answer is none to wait for: what happened since would be missing.
fn under_way(question: &WeakShared<Asking>) -> Option<Shared<Asking>> {
    question.upgrade().filter(|question| question.peek().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::esim::ServiceState;

    fn report() -> Report {
        let (service, as_of) = (ServiceState::New, Time::from_micros(0));
        let usage = Usage { service, profile: None, total_mb: 1, used_mb: 0, as_of, expires_at: None };
        Report { usage, stale: false }
    }

    #[tokio::test]
    async fn a_question_is_shared_while_it_is_under_way() {
        let (readings, order) = (Readings::default(), OrderId::from_text("ord_1"));
        let asked = Arc::new(Mutex::new(0));
        let begin = || {
            let asked = asked.clone();
            async move {
                *asked.lock().unwrap() += 1;
                tokio::task::yield_now().await;
                Ok(report())
            }
            .boxed()
        };
        let crowd: Vec<_> = (0..10).map(|_| readings.join(&order, begin)).collect();
        assert!(join_all(crowd).await.iter().all(Result::is_ok));
        assert_eq!(*asked.lock().unwrap(), 1);
        // Nobody who comes later gets an old answer, and a question that its callers left is asked anew.
        drop(readings.join(&order, begin));
        readings.join(&order, begin).await.unwrap();
        assert_eq!(*asked.lock().unwrap(), 2);
        readings.leave(&order);
        assert!(readings.0.lock().unwrap().is_empty());
    }
}
