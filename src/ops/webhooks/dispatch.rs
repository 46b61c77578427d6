//! Delivers events to webhooks. One instance does it at a time. It follows the end of the log; each webhook that has
//! something to get has a worker of its own, so nobody waits for another's endpoint.
//!
//! A worker (`work.rs`) takes the next events, sends those of different subjects side by side and those of one subject one
//! after the other, and writes down what became of them in one write: a crash before it sends them again. What is refused waits in
//! `webhook_waiting`, and with it whatever comes later of the same subject. An endpoint that refuses everything is left
//! alone for growing times, and its events stay in the log behind its cursor.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc};

use super::work::{Turn, Work};
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
const RENEW: Duration = Duration::from_secs(2);
/// How many are under way to all endpoints together.
const EVERYWHERE: usize = 512;
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
    owned: HashMap<AccountNo, Vec<WebhookId>>,
    editions: HashMap<WebhookId, i64>,
    /// When each is to be looked at.
    due: HashMap<WebhookId, Time>,
    /// Those that have a worker, and whether there is more for them.
    at_work: HashMap<WebhookId, bool>,
    /// Up to which place owners of events were looked for.
    seen: i64,
    places: Arc<Semaphore>,
    ended: mpsc::UnboundedSender<(WebhookId, Option<Time>)>,
    endings: mpsc::UnboundedReceiver<(WebhookId, Option<Time>)>,
}

impl Default for Dispatcher {
    fn default() -> Dispatcher {
        let (ended, endings) = mpsc::unbounded_channel();
        Dispatcher {
            turn: Arc::new(Turn { holder: jobs::holder(), until: Mutex::new(Instant::now()) }),
            renewed_at: None,
            version: 0,
            owned: HashMap::new(),
            editions: HashMap::new(),
            due: HashMap::new(),
            at_work: HashMap::new(),
            seen: 0,
            places: Arc::new(Semaphore::new(EVERYWHERE)),
            ended,
            endings,
        }
    }
}

impl Dispatcher {
    /// Puts every webhook to work that has something to get.
    pub async fn round(&mut self, app: &App) -> Result<Pace> {
        self.load(app).await?;
        if self.owned.is_empty() || !self.keep_turn(app).await? {
            return Ok(Pace::Easy);
        }
        while let Ok((id, due)) = self.endings.try_recv() {
            let more = self.at_work.remove(&id).unwrap_or(false);
            if let Some(due) = if more { Some(app.now()) } else { due } {
                self.due.insert(id, due);
            }
        }
        self.follow(app).await?;
        self.begin(app);
        Ok(Pace::Brisk)
    }

    /// Takes in which webhooks there are, when that has changed.
    async fn load(&mut self, app: &App) -> Result<()> {
        let known = self.version;
        let look = move |tx: &mut Tx| {
            let version = meta::versions(tx)?.webhooks;
            Ok(if version == known { None } else { Some((version, webhooks::open(tx)?)) })
        };
        let Some((version, open)) = app.store.read(look).await? else { return Ok(()) };
        let known = std::mem::take(&mut self.editions);
        self.owned.clear();
        for Webhook { id, account, edition, .. } in open {
            if known.get(&id) != Some(&edition) {
                self.wake(&id, app.now());
            }
            self.editions.insert(id.clone(), edition);
            self.owned.entry(account).or_default().push(id);
        }
        self.due.retain(|id, _| self.editions.contains_key(id));
        self.version = version;
        Ok(())
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
            if self.renewed_at.is_none() {
                // Nobody knows what the last holder left undone.
                self.seen = tail::settled(app).await?;
                self.due.extend(self.editions.keys().map(|id| (id.clone(), now)));
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
        let (seen, settled) = (self.seen, tail::settled(app).await?);
        if settled <= seen {
            return Ok(());
        }
        for owner in app.store.read(move |tx| events::owners(tx, seen, settled)).await? {
            for id in self.owned.get(&owner).cloned().unwrap_or_default() {
                self.wake(&id, app.now());
            }
        }
        self.seen = settled;
        Ok(())
    }

    /// There is something for a webhook.
    fn wake(&mut self, id: &WebhookId, now: Time) {
        match self.at_work.get_mut(id) {
            Some(more) => *more = true,
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
            self.at_work.insert(id.clone(), false);
            let (turn, places) = (self.turn.clone(), self.places.clone());
            let work = Work { app: app.clone(), id, settled: self.seen, turn, places };
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

    /// Lets another instance deliver at once.
    pub async fn give_up_turn(&self, app: &App) -> Result<()> {
        let holder = self.turn.holder.clone();
        app.store.write(LANE, move |tx| deliveries::release_turn(tx, &holder)).await
    }
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
