//! The simulated supplier: everything about a profile follows from our order id, so every instance and every restart
//! sees one world, and an order costs it no row. `/sandbox/usage` moves a profile, `/sandbox/supplier` makes it
//! misbehave. Its journal is a file outside our database; the crash tests compare the gateway with it.

mod mood;
mod sales;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arc_swap::ArcSwap;

use self::mood::Call;
pub use self::mood::{Mood, RuleName, SupplierMode, USUAL_QUIET_S};
use self::sales::{ProfileId, claimed_name, name_of, nth, number_of, profile_named, profile_of, shown};
use super::{
    Abilities, Answer, Ask, Bought, Cancel, CancelWay, Cancelled, Cause, Find, No, Profile, Provision,
    Reading, Sale, Sold, Supplier, TopUp, sim_catalog,
};
use crate::clock::Clock;
use crate::domain::amount::Amount;
use crate::domain::esim::{EsimStatus, Usage};
use crate::domain::ids::OrderId;
use crate::domain::money::Usd;
use crate::domain::order::CancelReason;
use crate::domain::plan::Listing;
use crate::domain::time::Time;
use crate::error::{Error, Result};
use crate::store::sim::Kept;
use crate::store::tx::Tx;
use crate::store::{Store, sim};
use crate::vault;
use crate::vault::{hash_secret, hex};

pub const NAME: &str = "sim";
/// Nobody pays it, so it never gets less.
const BALANCE: Usd = Usd::dollars(1_000_000);
const LONG_AGO: Time = Time::from_micros(0);
/// Sim writes have no wallet; they share one lane.
const LANE: i64 = 0;

#[derive(Clone, Copy)]
struct Behaviour {
    mood: Mood,
    since: Time,
}

impl Behaviour {
    /// When something begins that takes a while in this mode.
    fn later(&self, mode: SupplierMode, now: Time) -> Time {
        if self.mood.mode == mode { now.plus_millis(self.mood.delay_ms) } else { now }
    }
}

pub struct Sim {
    store: Arc<Store>,
    clock: Arc<Clock>,
    behaviour: ArcSwap<Behaviour>,
    journal: Option<Mutex<File>>,
    journal_path: Option<PathBuf>,
    last_sold: Mutex<Option<(OrderId, Profile)>>,
    catalog_size: usize,
    /// The least time between two readings of one profile, which a sandbox may want to see kept.
    reading_every: Duration,
}

impl Sim {
    pub fn new(
        store: Arc<Store>,
        clock: Arc<Clock>,
        catalog_size: usize,
        journal: Option<&Path>,
    ) -> Result<Sim> {
        let journal_path = journal.map(Path::to_path_buf);
        let journal = match journal {
            Some(path) => {
                let file = File::options().create(true).append(true).open(path);
                Some(Mutex::new(file.map_err(|e| Error::fault(format!("{}: {e}", path.display())))?))
            }
            None => None,
        };
        let last_sold = Mutex::new(None);
        let behaviour = ArcSwap::from_pointee(Behaviour { mood: SupplierMode::Ok.into(), since: LONG_AGO });
        let reading_every = Duration::ZERO;
        Ok(Sim { store, clock, behaviour, journal, journal_path, last_sold, catalog_size, reading_every })
    }

    /// Lets one profile be read only this often.
    pub fn read_every(self, reading_every: Duration) -> Sim {
        Sim { reading_every, ..self }
    }

    /// Loads the mood that any instance was last told.
    pub async fn reload(&self) -> Result<()> {
        let stored = self.store.read(sim::mode).await?;
        let mood = Mood::read(&stored)?;
        self.behaviour.store(Arc::new(Behaviour { mood, since: stored.since }));
        Ok(())
    }

    /// How it behaves now.
    pub async fn mood(&self) -> Result<Mood> {
        Mood::read(&self.store.read(sim::mode).await?)
    }

    /// Behaves like this until told otherwise; in its mode for `count` calls, if it says so.
    pub async fn behave(&self, mood: Mood, now: Time) -> Result<()> {
        let mode = sim::Mode {
            word: mood.mode.as_str().into(),
            delay_ms: mood.delay_ms,
            remaining: mood.count,
            since: now,
            doubt_rule: mood.rule.as_str().into(),
            quiet_s: mood.quiet_s,
        };
        self.store.write(LANE, move |tx| sim::set_mode(tx, &mode)).await?;
        self.reload().await
    }

    /// Moves a profile's meter. `None` when the profile is cancelled.
    pub async fn move_usage(
        &self,
        profile: &str,
        used_mb: Option<i64>,
        status: Option<EsimStatus>,
        now: Time,
    ) -> Result<Option<Usage>> {
        let before = self.read_meter(profile, now).await?;
        let wanted = match (status, used_mb) {
            (Some(status), _) => status,
            (None, Some(used)) if used > 0 => EsimStatus::Active,
            (None, _) => before.status(),
        };
        let used = match wanted {
            EsimStatus::Depleted => before.total_mb,
            _ => used_mb.unwrap_or(before.used_mb).min(before.total_mb),
        };
        // Depleted follows from the meter, so that a top-up makes the profile usable again.
        let stored = if wanted == EsimStatus::Depleted { EsimStatus::Active } else { wanted };
        let name = profile.to_string();
        let moved = self.store.write(LANE, move |tx| sim::move_profile(tx, &name, used, stored)).await?;
        if !moved {
            return Ok(None);
        }
        self.read_meter(profile, now).await.map(Some)
    }

    async fn read_meter(&self, profile: &str, now: Time) -> Result<Usage> {
        let parts = ProfileId::parse(profile)?;
        let name = profile.to_string();
        let (moved, (extra_mb, extra_days)) =
            self.store.read(move |tx| Ok((sim::profile(tx, &name)?, sim::topups(tx, &name)?))).await?;
        let (used_mb, status) = moved.unwrap_or((0, EsimStatus::New));
        let total_mb = parts.data_mb + extra_mb;
        let status = match status {
            EsimStatus::Active if used_mb >= total_mb => EsimStatus::Depleted,
            other => other,
        };
        let expires_at = match status {
            EsimStatus::New => None,
            _ => Some(parts.sold_at.plus_days(parts.days + extra_days)),
        };
        let (service, profile) = status.states(used_mb > 0);
        Ok(Usage { service, profile, total_mb, used_mb, as_of: now, expires_at })
    }

    /// The behaviour in this call. Counted misbehaviour is counted in the database, exactly, over all instances.
    async fn behaviour_in(&self, call: Call) -> Result<Behaviour> {
        let behaviour = **self.behaviour.load();
        let good = Behaviour { mood: Mood { mode: SupplierMode::Ok, ..behaviour.mood }, ..behaviour };
        if !behaviour.mood.mode.concerns(call) {
            return Ok(good);
        }
        if behaviour.mood.mode == SupplierMode::Ok || behaviour.mood.count.is_none() {
            return Ok(behaviour);
        }
        let word = behaviour.mood.mode.as_str();
        if self.store.finish(LANE, move |tx| sim::use_one(tx, word)).await? {
            return Ok(behaviour);
        }
        self.reload().await?;
        Ok(good)
    }

    /// Runs a call in the current mode; `act` does the work. What was asked before the simulator began to refuse
    /// (`asked_at`) may have been done already, and repeating it is safe: it is done again.
    async fn answer<T>(
        &self,
        call: Call,
        asked_at: Option<Time>,
        act: impl AsyncFnOnce(Behaviour) -> Result<Answer<T>>,
    ) -> Answer<T> {
        let outcome = async {
            let behaviour = self.behaviour_in(call).await?;
            let mode = behaviour.mood.mode;
            let no = mode.refusal();
            if (no.is_some() || mode == SupplierMode::PriceChanged)
                && asked_at.is_some_and(|at| at < behaviour.since)
            {
                let good = Mood { mode: SupplierMode::Ok, ..behaviour.mood };
                return act(Behaviour { mood: good, ..behaviour }).await;
            }
            if let Some(no) = no {
                return Ok(Answer::Refused(no));
            }
            match mode {
                SupplierMode::Unavailable => {
                    Ok(Answer::NotSent("the simulator was told to be unreachable".into()))
                }
                SupplierMode::Slow => {
                    tokio::time::sleep(Duration::from_millis(behaviour.mood.delay_ms.unsigned_abs())).await;
                    act(behaviour).await
                }
                SupplierMode::Silent => std::future::pending().await,
                SupplierMode::Timeout | SupplierMode::Hidden => {
                    act(behaviour).await?;
                    std::future::pending().await
                }
                SupplierMode::Malformed => {
                    act(behaviour).await?;
                    Ok(Answer::Doubt("the simulator answered something unreadable".into()))
                }
                _ => act(behaviour).await,
            }
        };
        outcome.await.unwrap_or_else(|error| Answer::Doubt(error.to_string()))
    }

    /// What it asks for a plan that has become dearer than its list says; `None` while its list is true.
    fn dearer(&self, behaviour: Behaviour, code: &str) -> Option<Usd> {
        if !matches!(behaviour.mood.mode, SupplierMode::Dearer | SupplierMode::PriceChanged) {
            return None;
        }
        let listed = sim_catalog::plans(self.catalog_size).into_iter().find(|plan| plan.code == code)?;
        listed.cost.in_usd().map(|cost| cost.percent(110))
    }

    /// Sells, for whoever is asked `Provision` or `TopUp`. The answer says which sale of the order it is.
    async fn sell(&self, behaviour: Behaviour, ask: Wanted<'_>) -> Result<Answer<Bought<SaleName>>> {
        let now = self.clock.now();
        if let Some(number) = ask.number.filter(|_| behaviour.mood.rule != RuleName::Claim) {
            return self.standing(ask.order, number, now).await;
        }
        let cost = self.dearer(behaviour, ask.code);
        if behaviour.mood.mode == SupplierMode::PriceChanged
            && let Some(cost) = cost.filter(|cost| ask.expected_cost.in_usd().is_none_or(|most| most < *cost))
        {
            let said = format!("the simulator was told to ask {cost} USD");
            return Ok(Answer::Refused(No::because(Cause::PriceChanged, said)));
        }
        let ready_from = behaviour.later(SupplierMode::Underway, now);
        let name = match (behaviour.mood.rule, ask.number) {
            (RuleName::Claim, None) => return Ok(Answer::Refused("claim it first".into())),
            (RuleName::Claim, Some(claim)) => claimed_name(ask.order, claim),
            (RuleName::Repeat, _) => ask.order.to_string(),
            (RuleName::Find | RuleName::List, _) => {
                let n = self.keep(behaviour, &ask, cost, now, ready_from).await?;
                let number = number_of(ask.order, n);
                if ready_from > now {
                    return Ok(Answer::Done(Bought::Underway { number }));
                }
                let what = SaleName(name_of(ask.order, n));
                let cost = cost.map(Amount::usd);
                return Ok(Answer::Done(Bought::Delivered { what, number: Some(number), cost }));
            }
        };
        if ready_from > now {
            return Ok(Answer::Done(Bought::Underway { number: ready_from.micros().to_string() }));
        }
        Ok(Answer::Done(Bought::Delivered {
            what: SaleName(name),
            number: None,
            cost: cost.map(Amount::usd),
        }))
    }

    /// How a sale stands that was under way. Where sales are not kept, its number says when it is ready.
    async fn standing(&self, order: &OrderId, number: &str, now: Time) -> Result<Answer<Bought<SaleName>>> {
        let kept = match nth(number) {
            Some(n) => {
                let id = order.clone();
                self.store.read(move |tx| sim::kept(tx, &id, n)).await?
            }
            None => None,
        };
        let ready = number.parse::<i64>().map(Time::from_micros).ok();
        let (name, ready_from, cost) = match (kept, ready) {
            (Some(kept), _) => (name_of(&kept.order, kept.n), kept.ready_from, kept.cost),
            (None, Some(ready)) => (order.to_string(), ready, None),
            (None, None) => return Ok(Answer::Doubt("the simulator does not know this number".into())),
        };
        let number = number.to_string();
        if ready_from > now {
            return Ok(Answer::Done(Bought::Underway { number }));
        }
        let (what, cost) = (SaleName(name), cost.map(Amount::usd));
        Ok(Answer::Done(Bought::Delivered { what, number: Some(number), cost }))
    }

    /// Keeps a sale, so that it can be looked up; which one of its order it is.
    async fn keep(
        &self,
        behaviour: Behaviour,
        ask: &Wanted<'_>,
        cost: Option<Usd>,
        now: Time,
        ready_from: Time,
    ) -> Result<i64> {
        let sale = Kept {
            order: ask.order.clone(),
            n: 0,
            code: ask.code.to_string(),
            filled: ask.filled.map(str::to_string),
            data_mb: ask.data_mb,
            days: ask.days,
            ordered_at: ask.ordered_at,
            cost,
            at: now,
            seen_from: behaviour.later(SupplierMode::Hidden, now),
            ready_from,
        };
        let keep = move |tx: &mut Tx| {
            let before = sim::kept_of(tx, &sale.order)?;
            if let Some(own) = before.iter().find(|kept| tx.is_rerun() && kept.at == sale.at) {
                return Ok(own.n);
            }
            let n = before.len() as i64 + 1;
            sim::keep(tx, &sale, n)?;
            Ok(n)
        };
        self.store.finish(LANE, keep).await
    }

    /// Since when it may have sold this: a repeated question is about the same sale, and one with a number about a sale
    /// that stands. Where asking again sells again, every other question is new.
    fn repeated(&self, ordered_at: Time, number: Option<&str>) -> Option<Time> {
        let rule = self.behaviour.load().mood.rule;
        match number {
            Some(_) if rule != RuleName::Claim => Some(LONG_AGO),
            _ => (!rule.sells_again()).then_some(ordered_at),
        }
    }

    /// What a look-up shows in this mode.
    async fn looked_up(&self, behaviour: Behaviour, ask: &Find<'_>) -> Result<Vec<Sale>> {
        let (mode, rule) = (behaviour.mood.mode, behaviour.mood.rule);
        if mode == SupplierMode::Blind {
            return Ok(Vec::new());
        }
        let (order, since) = (ask.order.clone(), ask.ordered_at);
        let read = move |tx: &mut Tx| {
            let others = sim::kept_of_others(tx, &order)?;
            let mut delivered = None;
            for kept in &others {
                if delivered.is_none() && sim::was_delivered(tx, &kept.order)? {
                    delivered = profile_of(kept);
                }
            }
            let kept = match (mode, rule) {
                (SupplierMode::Stranger, _) => others,
                (_, RuleName::List) => sim::kept_since(tx, since)?,
                _ => sim::kept_of(tx, &order)?,
            };
            Ok((kept, delivered))
        };
        let (kept, delivered) = self.store.read(read).await?;
        let now = self.clock.now();
        let sale = |kept: &Kept| {
            let mut sale = shown(kept, rule != RuleName::List, now);
            match mode {
                SupplierMode::WrongPackage => sale.code = "ANOTHER-PLAN".into(),
                SupplierMode::WrongQuantity => sale.quantity = 2,
                SupplierMode::Duplicate if kept.order == *ask.order => {
                    sale.iccid = delivered.as_ref().map(|profile| profile.iccid.clone());
                    sale.profile = delivered.clone();
                }
                _ => {}
            }
            sale
        };
        Ok(kept.iter().filter(|kept| kept.seen_from <= now).map(sale).collect())
    }

    fn note(&self, line: &str) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let mut file = journal.lock().map_err(|_| Error::fault("the journal's lock is poisoned"))?;
        // One write call per line: lines of several processes do not mix in a file opened for appending.
        file.write_all(format!("{line}\n").as_bytes()).map_err(Error::fault)
    }

    fn last_sold(&self) -> Result<MutexGuard<'_, Option<(OrderId, Profile)>>> {
        self.last_sold.lock().map_err(|_| Error::fault("the last sale's lock is poisoned"))
    }

    /// The last sale, to be handed out again when told to duplicate. Only after its own order has it: otherwise the
    /// wrong order could claim the profile first, and the right one would never get it.
    async fn delivered_before(&self, order: &OrderId) -> Result<Option<Profile>> {
        let last = self.last_sold()?.clone();
        let Some((owner, profile)) = last.filter(|(owner, _)| owner != order) else { return Ok(None) };
        let delivered = self.store.read(move |tx| sim::was_delivered(tx, &owner)).await?;
        Ok(delivered.then_some(profile))
    }
}

impl Supplier for Sim {
    fn name(&self) -> &'static str {
        NAME
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            doubt: self.behaviour.load().mood.doubt_rule(),
            cancel: match self.behaviour.load().mood.mode {
                SupplierMode::Reviewed => CancelWay::Reviewed,
                _ => CancelWay::AtOnce,
            },
            top_up: true,
            usage: true,
            checks_cost: true,
            rate: f64::INFINITY,
            reading_every: self.reading_every,
            listed_within: Duration::ZERO,
        }
    }

    fn plans(&self) -> Ask<'_, Vec<Listing>> {
        Box::pin(async { Answer::Done(sim_catalog::plans(self.catalog_size)) })
    }

    fn claim<'a>(&'a self, _ask: Provision<'a>) -> Ask<'a, String> {
        Box::pin(
            self.answer(Call::Other, None, async |_| Ok(Answer::Done(format!("{:032x}", vault::random())))),
        )
    }

    fn provision<'a>(&'a self, ask: Provision<'a>) -> Ask<'a, Bought<Profile>> {
        let asked_at = self.repeated(ask.ordered_at, ask.number);
        Box::pin(self.answer(Call::Sale, asked_at, async move |behaviour| {
            if behaviour.mood.mode == SupplierMode::Duplicate
                && let Some(earlier) = self.delivered_before(ask.order).await?
            {
                return Ok(Answer::Done(Bought::Delivered { what: earlier, number: None, cost: None }));
            }
            let sold = self.sell(behaviour, Wanted::from(&ask)).await?;
            let profile =
                |name: &SaleName| profile_named(&name.0, ask.data_mb, ask.duration_days, ask.ordered_at);
            if let Answer::Done(bought) = &sold {
                let name = match bought {
                    Bought::Delivered { what, .. } => what.clone(),
                    Bought::Underway { number } => SaleName(match (behaviour.mood.rule, ask.number) {
                        (RuleName::Claim, Some(claim)) => claimed_name(ask.order, claim),
                        _ => name_of(ask.order, nth(number).unwrap_or(1)),
                    }),
                };
                let profile = profile(&name);
                self.note(&format!("sold {} {}", ask.order, profile.iccid))?;
                *self.last_sold()? = Some((ask.order.clone(), profile));
            }
            Ok(sold.map(|bought| bought.map(|name| profile(&name))))
        }))
    }

    fn top_up<'a>(&'a self, ask: TopUp<'a>) -> Ask<'a, Bought<()>> {
        let asked_at = self.repeated(ask.ordered_at, ask.number);
        Box::pin(self.answer(Call::Sale, asked_at, async move |behaviour| {
            let asked = ask.order.clone();
            // An earlier sale stands, whatever happened to the profile since: repeating is safe.
            let known = !behaviour.mood.rule.sells_again()
                && self.store.read(move |tx| sim::has_topup(tx, &asked)).await?;
            if !known && !self.read_meter(ask.profile, ask.ordered_at).await?.can_be_topped_up() {
                return Ok(Answer::Refused("the profile is cancelled or expired".into()));
            }
            let sold = self.sell(behaviour, Wanted::from(&ask)).await?;
            if let Answer::Done(bought) = &sold {
                let n = match bought {
                    Bought::Delivered { number, .. } => number.as_deref().and_then(nth),
                    Bought::Underway { number } => nth(number),
                };
                let (name, profile) = (name_of(ask.order, n.unwrap_or(1)), ask.profile.to_string());
                let (data_mb, days) = (ask.data_mb, ask.duration_days);
                self.store.finish(LANE, move |tx| sim::add_topup(tx, &name, &profile, data_mb, days)).await?;
                self.note(&format!("topped {} {}", ask.order, ask.profile))?;
            }
            Ok(sold.map(|bought| bought.map(drop)))
        }))
    }

    fn find<'a>(&'a self, ask: Find<'a>) -> Ask<'a, Vec<Sale>> {
        Box::pin(self.answer(Call::LookUp, Some(LONG_AGO), async move |behaviour| {
            self.looked_up(behaviour, &ask).await.map(Answer::Done)
        }))
    }

    fn usage<'a>(&'a self, ask: Reading<'a>) -> Ask<'a, Usage> {
        Box::pin(self.answer(Call::Other, None, async move |_| {
            self.read_meter(ask.profile, ask.now).await.map(Answer::Done)
        }))
    }

    fn cancel<'a>(&'a self, ask: Cancel<'a>) -> Ask<'a, Cancelled> {
        let decide = async move |behaviour: Behaviour| {
            if behaviour.mood.mode == SupplierMode::Reviewed {
                self.note(&format!("requested {}", ask.profile))?;
                let request = hex(&hash_secret(ask.profile)[..6]);
                return Ok(Answer::Done(Cancelled::Requested { request }));
            }
            let profile = ask.profile.to_string();
            if self.store.finish(LANE, move |tx| sim::cancel_profile(tx, &profile)).await? {
                self.note(&format!("cancelled {}", ask.profile))?;
                return Ok(Answer::Done(Cancelled::Yes { returned: ask.cost }));
            }
            let status = self.read_meter(ask.profile, LONG_AGO).await?.status();
            let reason = match status {
                EsimStatus::Active | EsimStatus::Depleted => CancelReason::Used,
                EsimStatus::Expired => CancelReason::Expired,
                EsimStatus::New | EsimStatus::Installed | EsimStatus::Cancelled => CancelReason::Downloaded,
            };
            Ok(Answer::Done(Cancelled::No(reason)))
        };
        Box::pin(async move {
            // A cancel that was done but not answered is repeated as it was, whatever the mode is now.
            match self.read_meter(ask.profile, LONG_AGO).await {
                Ok(usage) => {
                    let done_before = usage.status() == EsimStatus::Cancelled;
                    self.answer(Call::Other, done_before.then_some(LONG_AGO), decide).await
                }
                Err(error) => Answer::Doubt(error.to_string()),
            }
        })
    }

    fn balance(&self) -> Ask<'_, Amount> {
        Box::pin(async { Answer::Done(Amount::usd(BALANCE)) })
    }

    fn sold(&self, _since: Time) -> Ask<'_, Vec<Sold>> {
        Box::pin(async {
            let Some(path) = &self.journal_path else {
                return Answer::Refused("the simulator keeps no list without sandbox_journal".into());
            };
            match tokio::fs::read_to_string(path).await {
                Ok(text) => Answer::Done(sales::journalled(&text)),
                Err(error) => Answer::NotSent(format!("{}: {error}", path.display())),
            }
        })
    }
}

/// The name that a sold profile follows from.
#[derive(Clone)]
struct SaleName(String);

/// What is to be sold, a profile or a bundle.
struct Wanted<'a> {
    order: &'a OrderId,
    code: &'a str,
    expected_cost: Amount,
    /// The profile that a bundle fills.
    filled: Option<&'a str>,
    data_mb: i64,
    days: i64,
    ordered_at: Time,
    number: Option<&'a str>,
}

impl<'a> From<&Provision<'a>> for Wanted<'a> {
    fn from(ask: &Provision<'a>) -> Wanted<'a> {
        Wanted {
            order: ask.order,
            code: ask.code,
            expected_cost: ask.expected_cost,
            filled: None,
            data_mb: ask.data_mb,
            days: ask.duration_days,
            ordered_at: ask.ordered_at,
            number: ask.number,
        }
    }
}

impl<'a> From<&TopUp<'a>> for Wanted<'a> {
    fn from(ask: &TopUp<'a>) -> Wanted<'a> {
        Wanted {
            order: ask.order,
            code: ask.code,
            expected_cost: ask.expected_cost,
            filled: Some(ask.profile),
            data_mb: ask.data_mb,
            days: ask.duration_days,
            ordered_at: ask.ordered_at,
            number: ask.number,
        }
    }
}
