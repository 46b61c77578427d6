//! The simulated supplier: everything about a profile follows from our order id, so every instance and every restart
//! sees one world, and an order costs it no row. `/sandbox/usage` moves a profile, `/sandbox/supplier` makes it
//! misbehave. Its journal is a file outside our database; the crash tests compare the gateway with it.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arc_swap::ArcSwap;
use ring::digest::{SHA256, digest};

use super::{
    Abilities, Answer, Ask, Bought, Cancel, CancelWay, Cancelled, DoubtRule, Profile, Provision, Reading,
    Sold, Supplier, TopUp, sim_catalog,
};
use crate::domain::amount::Amount;
use crate::domain::esim::{Activation, EsimStatus, Usage, luhn_digit};
use crate::domain::ids::OrderId;
use crate::domain::money::Usd;
use crate::domain::order::CancelReason;
use crate::domain::plan::Listing;
use crate::domain::time::Time;
use crate::domain::words::words;
use crate::error::{Error, Result};
use crate::store::{Store, sim};
use crate::vault::hex;

pub const NAME: &str = "sim";
const INSTALL_DAYS: i64 = 180;
/// Nobody pays it, so it never gets less.
const BALANCE: Usd = Usd::dollars(1_000_000);
const LONG_AGO: Time = Time::from_micros(0);
/// Sim writes have no wallet; they share one lane.
const LANE: i64 = 0;

words! {
    pub enum SupplierMode: ALL, parse {
        Ok = "ok",
        Reject = "reject",
        Unavailable = "unavailable",
        /// Sells, but does not answer.
        Timeout = "timeout",
        /// Answers after a while; a caller who hangs up first has bought nothing.
        Slow = "slow",
        /// Answers a new order with the profile of an earlier one that was delivered.
        Duplicate = "duplicate",
        /// Sells, and answers something unreadable.
        Malformed = "malformed",
    }
}

#[derive(Clone, Copy)]
struct Behaviour {
    mode: SupplierMode,
    delay: Duration,
    counted: bool,
    since: Time,
}

pub struct Sim {
    store: Arc<Store>,
    behaviour: ArcSwap<Behaviour>,
    journal: Option<Mutex<File>>,
    journal_path: Option<PathBuf>,
    last_sold: Mutex<Option<(OrderId, Profile)>>,
    catalog_size: usize,
    /// The least time between two readings of one profile, which a sandbox may want to see kept.
    reading_every: Duration,
}

impl Sim {
    pub fn new(store: Arc<Store>, catalog_size: usize, journal: Option<&Path>) -> Result<Sim> {
        let journal_path = journal.map(Path::to_path_buf);
        let journal = match journal {
            Some(path) => {
                let file = File::options().create(true).append(true).open(path);
                Some(Mutex::new(file.map_err(|e| Error::fault(format!("{}: {e}", path.display())))?))
            }
            None => None,
        };
        let behaviour = Behaviour {
            mode: SupplierMode::Ok,
            delay: Duration::ZERO,
            counted: false,
            since: Time::from_micros(0),
        };
        let last_sold = Mutex::new(None);
        let behaviour = ArcSwap::from_pointee(behaviour);
        let reading_every = Duration::ZERO;
        Ok(Sim { store, behaviour, journal, journal_path, last_sold, catalog_size, reading_every })
    }

    /// Lets one profile be read only this often.
    pub fn read_every(self, reading_every: Duration) -> Sim {
        Sim { reading_every, ..self }
    }

    /// Loads the mode that any instance was last told.
    pub async fn reload(&self) -> Result<()> {
        let stored = self.store.read(sim::mode).await?;
        let mode = SupplierMode::parse(&stored.word).ok_or_else(|| Error::fault("unknown simulator mode"))?;
        let delay = Duration::from_millis(stored.delay_ms.unsigned_abs());
        let counted = stored.remaining.is_some();
        self.behaviour.store(Arc::new(Behaviour { mode, delay, counted, since: stored.since }));
        Ok(())
    }

    /// How it behaves now: the mode, the delay in milliseconds, and for how many more calls.
    pub async fn mood(&self) -> Result<(SupplierMode, i64, Option<i64>)> {
        let stored = self.store.read(sim::mode).await?;
        let mode = SupplierMode::parse(&stored.word).ok_or_else(|| Error::fault("unknown simulator mode"))?;
        Ok((mode, stored.delay_ms, stored.remaining))
    }

    /// Behaves like this for `count` calls, or until told otherwise.
    pub async fn behave(
        &self,
        mode: SupplierMode,
        delay_ms: i64,
        count: Option<i64>,
        now: Time,
    ) -> Result<()> {
        let mode = sim::Mode { word: mode.as_str().into(), delay_ms, remaining: count, since: now };
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

    /// The mode for this call. Counted misbehaviour is counted in the database, exactly, over all instances.
    async fn mode_of_this_call(&self) -> Result<Behaviour> {
        let behaviour = **self.behaviour.load();
        if behaviour.mode == SupplierMode::Ok || !behaviour.counted {
            return Ok(behaviour);
        }
        let word = behaviour.mode.as_str();
        if self.store.finish(LANE, move |tx| sim::use_one(tx, word)).await? {
            return Ok(behaviour);
        }
        self.reload().await?;
        Ok(Behaviour { mode: SupplierMode::Ok, ..behaviour })
    }

    /// Runs a call in the current mode; `act` does the work. An order from before the simulator began to refuse may
    /// have been sold already, so the same sale is repeated: repeating is safe here.
    async fn answer<T>(
        &self,
        ordered_at: Option<Time>,
        act: impl AsyncFnOnce(SupplierMode) -> Result<Answer<T>>,
    ) -> Answer<T> {
        let outcome = async {
            let Behaviour { mode, delay, since, .. } = self.mode_of_this_call().await?;
            match mode {
                SupplierMode::Ok | SupplierMode::Duplicate => act(mode).await,
                SupplierMode::Reject if ordered_at.is_some_and(|at| at < since) => {
                    act(SupplierMode::Ok).await
                }
                SupplierMode::Reject => Ok(Answer::Refused("the simulator was told to refuse".into())),
                SupplierMode::Unavailable => {
                    Ok(Answer::NotSent("the simulator was told to be unreachable".into()))
                }
                SupplierMode::Slow => {
                    tokio::time::sleep(delay).await;
                    act(mode).await
                }
                SupplierMode::Timeout => {
                    act(mode).await?;
                    std::future::pending().await
                }
                SupplierMode::Malformed => {
                    act(mode).await?;
                    Ok(Answer::Doubt("the simulator answered something unreadable".into()))
                }
            }
        };
        outcome.await.unwrap_or_else(|error| Answer::Doubt(error.to_string()))
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
            doubt: DoubtRule::RepeatIsSafe,
            cancel: CancelWay::AtOnce,
            top_up: true,
            usage: true,
            checks_cost: true,
            rate: f64::INFINITY,
            reading_every: self.reading_every,
        }
    }

    fn plans(&self) -> Ask<'_, Vec<Listing>> {
        Box::pin(async { Answer::Done(sim_catalog::plans(self.catalog_size)) })
    }

    fn provision<'a>(&'a self, ask: Provision<'a>) -> Ask<'a, Bought<Profile>> {
        Box::pin(self.answer(Some(ask.ordered_at), async move |mode| {
            let profile = profile_for(&ask);
            if mode == SupplierMode::Duplicate
                && let Some(earlier) = self.delivered_before(ask.order).await?
            {
                return Ok(Answer::Done(delivered(earlier)));
            }
            self.note(&format!("sold {} {}", ask.order, profile.iccid))?;
            *self.last_sold()? = Some((ask.order.clone(), profile.clone()));
            Ok(Answer::Done(delivered(profile)))
        }))
    }

    fn top_up<'a>(&'a self, ask: TopUp<'a>) -> Ask<'a, Bought<()>> {
        Box::pin(self.answer(Some(ask.ordered_at), async move |_| {
            let (order, profile) = (ask.order.clone(), ask.profile.to_string());
            let (data_mb, days) = (ask.data_mb, ask.duration_days);
            let asked = order.clone();
            // An earlier sale stands, whatever happened to the profile since: repeating is safe.
            if !self.store.read(move |tx| sim::has_topup(tx, &asked)).await? {
                if !self.read_meter(ask.profile, ask.ordered_at).await?.can_be_topped_up() {
                    return Ok(Answer::Refused("the profile is cancelled or expired".into()));
                }
                self.store
                    .finish(LANE, move |tx| sim::add_topup(tx, &order, &profile, data_mb, days))
                    .await?;
            }
            self.note(&format!("topped {} {}", ask.order, ask.profile))?;
            Ok(Answer::Done(delivered(())))
        }))
    }

    fn usage<'a>(&'a self, ask: Reading<'a>) -> Ask<'a, Usage> {
        Box::pin(
            self.answer(None, async move |_| self.read_meter(ask.profile, ask.now).await.map(Answer::Done)),
        )
    }

    fn cancel<'a>(&'a self, ask: Cancel<'a>) -> Ask<'a, Cancelled> {
        let decide = async move |_| {
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
                    self.answer(done_before.then_some(LONG_AGO), decide).await
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
                Ok(text) => Answer::Done(sales(&text)),
                Err(error) => Answer::NotSent(format!("{}: {error}", path.display())),
            }
        })
    }
}

fn delivered<T>(what: T) -> Bought<T> {
    Bought::Delivered { what, number: None, cost: None }
}

/// The sales in a journal, each once: repeating a question writes a second line.
fn sales(journal: &str) -> Vec<Sold> {
    let mut known = HashSet::new();
    let sale = |line: &str| {
        let (deed, rest) = line.split_once(' ')?;
        let (order, what) = rest.split_once(' ').filter(|_| matches!(deed, "sold" | "topped"))?;
        Some(Sold { order: OrderId::from_text(order), what: what.into() })
    };
    journal.lines().filter_map(sale).filter(|sale| known.insert(sale.order.clone())).collect()
}

/// The simulator's name for a profile holds everything about an untouched one.
struct ProfileId {
    data_mb: i64,
    days: i64,
    sold_at: Time,
}

impl ProfileId {
    fn text(ask: &Provision) -> String {
        format!("{}.{}.{}.{}", ask.order, ask.data_mb, ask.duration_days, ask.ordered_at.micros())
    }

    fn parse(text: &str) -> Result<ProfileId> {
        let mut parts = text.split('.').skip(1).map(str::parse::<i64>);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Ok(data_mb)), Some(Ok(days)), Some(Ok(sold))) => {
                Ok(ProfileId { data_mb, days, sold_at: Time::from_micros(sold) })
            }
            _ => Err(Error::fault("not a profile of the simulator")),
        }
    }
}

fn profile_for(ask: &Provision) -> Profile {
    let hash = digest(&SHA256, ask.order.as_str().as_bytes());
    let number =
        u64::from_be_bytes(*hash.as_ref().first_chunk().expect("8 of 32 bytes")) % 10_000_000_000_000_000;
    let digits = format!("89{number:016}");
    let check = luhn_digit(&digits) as char;
    Profile {
        id: ProfileId::text(ask),
        iccid: format!("{digits}{check}"),
        activation: Activation {
            smdp_address: "smdp.sim.example".into(),
            matching_id: format!("SIM-{}", hex(&hash.as_ref()[8..20]).to_uppercase()),
        },
        install_by: Some(ask.ordered_at.plus_days(INSTALL_DAYS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_order_gets_the_same_profile() {
        let order = OrderId::esim(Time::from_micros(5_000), 42);
        let ask = || Provision {
            order: &order,
            code: "JP-1GB-7D",
            expected_cost: Amount::usd(Usd::dollars(1)),
            data_mb: 1024,
            duration_days: 7,
            ordered_at: Time::from_micros(5_000),
            number: None,
        };
        let profile = profile_for(&ask());
        assert_eq!(profile, profile_for(&ask()));
        assert_eq!(profile.iccid.len(), 19);
        assert_eq!(profile.iccid.as_bytes()[18], luhn_digit(&profile.iccid[..18]));
        let parts = ProfileId::parse(&profile.id).unwrap();
        assert_eq!((parts.data_mb, parts.days), (1024, 7));
    }

    #[test]
    fn a_journal_lists_each_sale_once() {
        let found =
            sales("sold ord_1 89\ntopped top_1 p.1.2.3\nsold ord_1 89\ncancelled p.1.2.3\nsold ord_2 90\n");
        let ids: Vec<&str> = found.iter().map(|sale| sale.order.as_str()).collect();
        assert_eq!(ids, ["ord_1", "top_1", "ord_2"]);
        assert_eq!(found[1].what, "p.1.2.3");
    }
}
