//! Delivers events to webhooks. One instance does it at a time. It follows the end of the log; each webhook that has
//! something to get has a worker of its own, so nobody waits for another's endpoint.
//!
//! A worker (`work.rs`) takes the next events, sends those of different subjects side by side and those of one subject one
//! after the other, and writes down what became of them in one write: a crash before it sends them again. What is refused waits in
//! `webhook_waiting`, and with it whatever comes later of the same subject. An endpoint that refuses everything is left
//! alone for growing times, and its events stay in the log behind its cursor.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::limits::{Courtesy, Places, Turn};
use super::work::Work;
use crate::app::App;
use crate::domain::ids::{AccountNo, WebhookId};
use crate::domain::time::Time;
use crate::domain::webhook::Webhook;
use crate::error::Result;
use crate::ops::events::tail;
use crate::ops::{LANE, jobs};
use crate::store::tx::Tx;
use crate::store::{deliveries, events, meta, webhooks};

/// A turn lasts this long unless it is renewed; so long another instance waits when one dies.
const TURN_MS: i64 = 15_000;
const TURN: Duration = Duration::from_secs(15);
const RENEW: Duration = Duration::from_secs(1);
/// How many are under way to all endpoints together, and to those of one account.
const EVERYWHERE: usize = 512;
const OF_ACCOUNT: usize = 32;
/// When a webhook is looked at again whose worker panicked.
const AFTER_PANIC_MS: i64 = 10_000;

/// What to do after a round.
pub enum Pace {
    /// There are webhooks to deliver to.
    Brisk,
    /// There are none, or another instance delivers to them.
    Easy,
}

pub struct Dispatcher {
    turn: Arc<Turn>,
    renewed_at: Option<Instant>,
    /// The version of the webhooks that are known.
    version: i64,
    owned: HashMap<AccountNo, Owner>,
    known: HashMap<WebhookId, Known>,
    /// When each is to be looked at.
    due: HashMap<WebhookId, Time>,
    at_work: HashMap<WebhookId, AtWork>,
    /// Up to which place owners of events were looked for; `None` when that is not known.
    seen: Option<i64>,
    /// Up to which place the log is settled.
    settled: Arc<AtomicI64>,
    places: Arc<Semaphore>,
    courtesy: Arc<Courtesy>,
    ended: mpsc::UnboundedSender<(WebhookId, Option<Time>)>,
    endings: mpsc::UnboundedReceiver<(WebhookId, Option<Time>)>,
}

/// An account with webhooks.
struct Owner {
    webhooks: Vec<WebhookId>,
    places: Arc<Semaphore>,
}

/// What a worker goes by. It ends its batch early when that has changed.
#[derive(PartialEq)]
struct Known {
    account: AccountNo,
    edition: i64,
    secret: Vec<u8>,
}

/// A webhook that has a worker.
#[derive(Default)]
struct AtWork {
    /// Whether there is more for it.
    more: bool,
    changed: CancellationToken,
}

impl Default for Dispatcher {
    fn default() -> Dispatcher {
        let (ended, endings) = mpsc::unbounded_channel();
        Dispatcher {
            turn: Arc::new(Turn { holder: jobs::holder(), until: Mutex::new(Instant::now()) }),
            renewed_at: None,
            version: 0,
            owned: HashMap::new(),
            known: HashMap::new(),
            due: HashMap::new(),
            at_work: HashMap::new(),
            seen: None,
            settled: Arc::default(),
            places: Arc::new(Semaphore::new(EVERYWHERE)),
            courtesy: Arc::default(),
            ended,
            endings,
        }
    }
}

impl Dispatcher {
    /// Puts every webhook to work that has something to get.
    pub async fn round(&mut self, app: &App) -> Result<Pace> {
        self.load(app).await?;
        if self.owned.is_empty() {
            self.renewed_at = None;
            return Ok(Pace::Easy);
        }
        if !self.keep_turn(app).await? {
            return Ok(Pace::Easy);
        }
        while let Ok(ending) = self.endings.try_recv() {
            self.end(ending, app.now());
        }
        self.follow(app).await?;
        if self.turn.is_ours() {
            self.begin(app);
        }
        Ok(Pace::Brisk)
    }

    /// A worker has ended.
    fn end(&mut self, (id, due): (WebhookId, Option<Time>), now: Time) {
        let more = self.at_work.remove(&id).is_some_and(|worker| worker.more);
        if let Some(due) = if more { Some(now) } else { due } {
            self.due.insert(id, due);
        }
    }

    /// Takes in which webhooks there are, when that has changed.
    async fn load(&mut self, app: &App) -> Result<()> {
        let known = self.version;
        let look = move |tx: &mut Tx| {
            let version = meta::versions(tx)?.webhooks;
            Ok(if version == known { None } else { Some((version, webhooks::open(tx)?)) })
        };
        let Some((version, open)) = app.store.read(look).await? else { return Ok(()) };
        let mut before = std::mem::take(&mut self.known);
        let mut owners = std::mem::take(&mut self.owned);
        for Webhook { id, account, edition, secret, .. } in open {
            let known = Known { account, edition, secret };
            if before.remove(&id).is_none_or(|before| before != known) {
                self.halt(&id);
                self.wake(&id, app.now());
            }
            let owner = self.owned.entry(account).or_insert_with(|| Owner {
                webhooks: Vec::new(),
                places: owners.remove(&account).map_or_else(places_of_account, |owner| owner.places),
            });
            owner.webhooks.push(id.clone());
            self.known.insert(id, known);
        }
        before.keys().for_each(|gone| self.halt(gone));
        self.due.retain(|id, _| self.known.contains_key(id));
        self.version = version;
        Ok(())
    }

    /// Lets a worker send no more.
    fn halt(&self, id: &WebhookId) {
        if let Some(worker) = self.at_work.get(id) {
            worker.changed.cancel();
        }
    }

    /// Whether it is this instance that delivers.
    async fn keep_turn(&mut self, app: &App) -> Result<bool> {
        if self.renewed_at.is_some_and(|at| at.elapsed() < RENEW) {
            return Ok(true);
        }
        let (begun, now, holder) = (Instant::now(), app.now(), self.turn.holder.clone());
        let until = now.plus_millis(TURN_MS);
        let is_ours = app.store.write(LANE, move |tx| deliveries::take_turn(tx, &holder, now, until)).await?;
        if is_ours {
            self.turn.lasts_until(begun + TURN);
            if self.renewed_at.is_none_or(|at| at.elapsed() >= TURN) {
                // Nobody knows what another holder left undone.
                self.seen = None;
            }
            self.renewed_at = Some(begun);
        } else {
            self.turn.lasts_until(begun);
            self.renewed_at = None;
        }
        Ok(is_ours)
    }

    /// Finds out for whom there are new events.
    async fn follow(&mut self, app: &App) -> Result<()> {
        let (end, now) = (tail::end(app).await?, app.now());
        self.settled.store(end.place, Ordering::Relaxed);
        let Some(seen) = self.seen else {
            let all: Vec<WebhookId> = self.known.keys().cloned().collect();
            all.iter().for_each(|id| self.wake(id, now));
            self.seen = Some(end.place).filter(|_| end.is_whole);
            return Ok(());
        };
        if end.place <= seen {
            return Ok(());
        }
        for account in app.store.read(move |tx| events::owners(tx, seen, end.place)).await? {
            let webhooks = self.owned.get(&account).map(|owner| owner.webhooks.clone());
            webhooks.iter().flatten().for_each(|id| self.wake(id, now));
        }
        self.seen = Some(end.place);
        Ok(())
    }

    /// There is something for a webhook.
    fn wake(&mut self, id: &WebhookId, now: Time) {
        match self.at_work.get_mut(id) {
            Some(worker) => worker.more = true,
            None => drop(self.due.insert(id.clone(), now)),
        }
    }

    /// Gives a worker to every webhook that is due and has none.
    fn begin(&mut self, app: &App) {
        let now = app.now();
        let ready: Vec<WebhookId> = self
            .due
            .iter()
            .filter(|(id, due)| **due <= now && !self.at_work.contains_key(*id))
            .map(|(id, _)| id.clone())
            .collect();
        for id in ready {
            self.due.remove(&id);
            let Some(owner) = self.known.get(&id).and_then(|known| self.owned.get(&known.account)) else {
                continue;
            };
            let places = Places { of_account: owner.places.clone(), everywhere: self.places.clone() };
            let worker = self.at_work.entry(id.clone()).or_default();
            let work = Work {
                app: app.clone(),
                id,
                settled: self.settled.clone(),
                turn: self.turn.clone(),
                courtesy: self.courtesy.clone(),
                places,
                changed: worker.changed.clone(),
            };
            let mut ending = Ending {
                id: work.id.clone(),
                due: Some(now.plus_millis(AFTER_PANIC_MS)),
                tell: self.ended.clone(),
            };
            app.tasks.spawn(async move {
                ending.due = work.run().await;
                drop(ending);
            });
        }
    }

    /// Lets another instance deliver, once what is under way has ended.
    pub async fn give_up_turn(mut self, app: &App) -> Result<()> {
        while !self.at_work.is_empty()
            && let Some(ending) = self.endings.recv().await
        {
            self.end(ending, app.now());
        }
        let holder = self.turn.holder.clone();
        app.store.write(LANE, move |tx| deliveries::release_turn(tx, &holder)).await
    }
}

fn places_of_account() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(OF_ACCOUNT))
}

/// Tells of the end of a worker, also when it panics.
struct Ending {
    id: WebhookId,
    due: Option<Time>,
    tell: mpsc::UnboundedSender<(WebhookId, Option<Time>)>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        // Nobody listens any more when the gateway stops.
        let _ = self.tell.send((self.id.clone(), self.due));
    }
}
