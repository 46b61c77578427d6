//! The worker of one webhook: it takes what is next, sends it, and writes down what became of it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

use super::limits::{Courtesy, PAUSE, Places, Turn};
use super::message::{self, Message, Sent};
use crate::app::App;
use crate::domain::delivery::{Health, is_overdue, pause_ms};
use crate::domain::email::Email;
use crate::domain::event::Event;
use crate::domain::ids::{TestId, WebhookId};
use crate::domain::time::Time;
use crate::domain::webhook::{Delivery, Webhook, WebhookStatus};
use crate::error::{Error, Result};
use crate::ops::LANE;
use crate::ops::mail::{self, Letter};
use crate::store::deliveries::{self, Waiting};
use crate::store::tx::Tx;
use crate::store::{WriteJob, accounts, events, webhooks};
use crate::telemetry::EveryMinute;
use crate::vault;

/// How many events a worker takes at once, and how many it sends side by side.
const BATCH: i64 = 100;
const SIDE_BY_SIDE: usize = 8;
/// After this time a batch begins no more tries, so that what became of the others is soon written down.
const BATCH_TIME: Duration = Duration::from_secs(10);
/// How many events may wait for one webhook; then the rest stays in the log.
const MOST_WAITING: i64 = 5_000;
/// Over so many places without a wanted event a webhook is moved by itself.
const FAR: i64 = 500;
/// When to look again after trouble, or when the turn was not renewed in time.
const SOON_MS: i64 = 1_000;

static TROUBLE: EveryMinute = EveryMinute::new();

/// The work for one webhook.
pub struct Work {
    pub app: App,
    pub id: WebhookId,
    /// Up to where the log is settled.
    pub settled: Arc<AtomicI64>,
    pub turn: Arc<Turn>,
    pub courtesy: Arc<Courtesy>,
    pub places: Places,
    /// Cancelled when the webhook is changed or deleted: then no more of the batch is sent.
    pub changed: CancellationToken,
}

/// An event on its way, with what is known of earlier tries.
struct Item {
    event: Event,
    /// `None` when it is sent for the first time.
    waited: Option<(Option<Time>, i64)>,
}

impl Item {
    fn tries(&self) -> i64 {
        self.waited.map_or(0, |(_, tries)| tries)
    }
}

enum Fate {
    Accepted(Delivery),
    Refused(Delivery),
    /// It was not tried: an earlier one of its subject was refused, the endpoint is to be left alone, or the batch ends.
    Unsent,
}

/// What a worker takes at once.
struct Batch {
    webhook: Webhook,
    heads: Vec<Waiting>,
    blocked: HashSet<String>,
    fresh: Vec<Event>,
    /// Where the webhook stands when all of it is done.
    cursor: i64,
    /// Whether more is in the log already.
    has_more: bool,
    /// How many events waited before.
    held: i64,
}

impl Work {
    /// Delivers until nothing is left. Answers when to look again without being told of a new event.
    pub async fn run(self) -> Option<Time> {
        loop {
            match self.step().await {
                Ok(Step::More) => {}
                Ok(Step::Until(due)) => return due,
                Err(error) => return self.later(&error),
            }
        }
    }

    fn later(&self, error: &Error) -> Option<Time> {
        if let Some(left_out) = TROUBLE.turn() {
            tracing::warn!(%error, webhook = %self.id, left_out, "events cannot be delivered; trying again");
        }
        Some(self.soon())
    }

    fn soon(&self) -> Time {
        self.app.now().plus_millis(SOON_MS)
    }

    async fn step(&self) -> Result<Step> {
        let turn = self.courtesy.turn(&self.app).await;
        if self.is_over() {
            return Ok(Step::Until(None));
        }
        if !self.turn.is_ours() {
            return Ok(Step::Until(Some(self.soon())));
        }
        let (now, id, settled) = (self.app.now(), self.id.clone(), self.settled.load(Ordering::Relaxed));
        let read = move |tx: &mut Tx| take(tx, &id, settled, now);
        let Some(batch) = self.app.store.read(read).await? else { return Ok(Step::Until(None)) };
        if let Some(turn) = turn {
            tokio::time::sleep(PAUSE * (1 + batch.fresh.len() + batch.heads.len()) as u32).await;
            drop(turn);
        }
        let health = health_of(&batch.webhook);
        if health.rests(now) {
            return Ok(Step::Until(health.resting_until));
        }
        match batch.webhook.status {
            WebhookStatus::Disabled => Ok(Step::Until(None)),
            WebhookStatus::Pending => self.test(batch.webhook, health).await,
            WebhookStatus::Active if batch.heads.is_empty() && batch.fresh.is_empty() => {
                if batch.cursor - batch.webhook.cursor >= FAR {
                    let Batch { webhook, cursor, .. } = batch;
                    let write = move |tx: &mut Tx| deliveries::advance(tx, &webhook, cursor, health, None);
                    self.courtesy.own(self.app.store.finish(LANE, write)).await?;
                }
                let id = self.id.clone();
                Ok(Step::Until(self.app.store.read(move |tx| deliveries::next_due(tx, &id)).await?))
            }
            WebhookStatus::Active => self.deliver(batch, health).await,
        }
    }

    /// Whether nothing more is to be sent by this worker. Who changes a webhook sees to its next one.
    fn is_over(&self) -> bool {
        self.changed.is_cancelled() || self.app.stopping.is_cancelled()
    }

    fn may_send(&self) -> bool {
        self.turn.is_ours() && !self.is_over()
    }

    /// Sends a new webhook its test.
    async fn test(&self, webhook: Webhook, health: Health) -> Result<Step> {
        let message = Message::of_test(&webhook.id, &TestId::from_text(webhook.test.clone()))?;
        let Sent::Tried(delivery) =
            message::send(&self.app, &webhook, &message, Some(health.failures + 1)).await
        else {
            return Ok(Step::Until(Some(self.soon())));
        };
        let now = self.app.now();
        let failures = health.failures + 1;
        let rest = Health {
            failing_since: health.failing_since.or(Some(now)),
            failures,
            resting_until: Some(now.plus_millis(pause_ms(failures, vault::random()))),
        };
        let (accepted, account, slip) = (delivery.accepted(), webhook.account, mail::slip(&self.app));
        let write = move |tx: &mut Tx| {
            deliveries::record_all(tx, std::slice::from_ref(&delivery))?;
            if accepted {
                webhooks::accept(tx, &webhook.id, webhook.edition, now).map(drop)
            } else if rest.is_dead(now) {
                give_up(tx, &webhook, &slip, now)
            } else {
                deliveries::rest(tx, &webhook, rest)
            }
        };
        self.courtesy.own(self.app.store.finish(account.0, write)).await?;
        mail::wake(&self.app);
        Ok(if accepted { Step::More } else { Step::Until(rest.resting_until) })
    }

    /// Sends a batch and writes down what became of it.
    async fn deliver(&self, batch: Batch, health: Health) -> Result<Step> {
        let Batch { webhook, heads, blocked, fresh, cursor, has_more, held } = batch;
        let mut lanes: HashMap<String, Vec<Item>> = HashMap::new();
        let mut order = Vec::new();
        let mut behind = Vec::new();
        let waiting = heads.into_iter().map(|head| {
            let waited = Some((head.refused_at, head.tries));
            Item { event: head.event, waited }
        });
        for item in waiting.chain(fresh.into_iter().map(|event| Item { event, waited: None })) {
            if item.waited.is_none() && blocked.contains(&item.event.subject) {
                behind.push(item.event);
                continue;
            }
            let lane = lanes.entry(item.event.subject.clone()).or_insert_with(|| {
                order.push(item.event.subject.clone());
                Vec::new()
            });
            lane.push(item);
        }
        let mood = Mood {
            refusals: AtomicI64::new(health.failures),
            alone: AtomicBool::new(health.is_failing()),
            until: OnceLock::new(),
        };
        let lanes: Vec<Vec<Item>> = order.into_iter().filter_map(|subject| lanes.remove(&subject)).collect();
        // An endpoint that refuses everything is tried with one event.
        let side_by_side = if health.is_failing() { 1 } else { SIDE_BY_SIDE };
        let sent: Vec<Vec<(Item, Fate)>> = stream::iter(lanes)
            .map(|lane| self.send_in_turn(&webhook, lane, &mood))
            .buffered(side_by_side)
            .collect()
            .await;
        let fates: Vec<(Item, Fate)> = sent.into_iter().flatten().collect();
        let all_accepted = fates.iter().all(|(_, fate)| matches!(fate, Fate::Accepted(_)));
        self.write_down(webhook, cursor, health, fates, behind).await?;
        // When nothing waits either, only a new event brings more.
        Ok(if all_accepted && held == 0 && !has_more { Step::Until(None) } else { Step::More })
    }

    /// Sends the events of one subject, each after the one before was accepted.
    async fn send_in_turn(&self, webhook: &Webhook, lane: Vec<Item>, mood: &Mood) -> Vec<(Item, Fate)> {
        let (mut fates, mut stopped) = (Vec::with_capacity(lane.len()), false);
        for item in lane {
            let fate = if stopped { Fate::Unsent } else { self.send_one(webhook, &item, mood).await };
            stopped = !matches!(fate, Fate::Accepted(_));
            fates.push((item, fate));
        }
        fates
    }

    async fn send_one(&self, webhook: &Webhook, item: &Item, mood: &Mood) -> Fate {
        if !self.may_send() {
            return Fate::Unsent;
        }
        // Much may have changed while it waited for its place.
        let Ok(_place) = self.places.take().await else { return Fate::Unsent };
        if !self.may_send() || !mood.may_try() {
            return Fate::Unsent;
        }
        let Sent::Tried(delivery) =
            message::send_event(&self.app, webhook, &item.event, item.tries() + 1).await
        else {
            return Fate::Unsent;
        };
        let accepted = delivery.accepted();
        mood.note(accepted);
        if accepted { Fate::Accepted(delivery) } else { Fate::Refused(delivery) }
    }

    async fn write_down(
        &self,
        webhook: Webhook,
        cursor: i64,
        mut health: Health,
        fates: Vec<(Item, Fate)>,
        behind: Vec<Event>,
    ) -> Result<()> {
        let now = self.app.now();
        let mut accepted_at = None;
        let mut tried: Vec<&Delivery> = fates.iter().filter_map(|(_, fate)| fate.delivery()).collect();
        tried.sort_by_key(|delivery| delivery.at.plus_millis(delivery.ms));
        // Those that were on their way when the endpoint was refusing too much count no more.
        for delivery in tried {
            if delivery.accepted() {
                (health, accepted_at) = (Health::default(), Some(now));
            } else if !health.rests(now) {
                health = health.refused(now, vault::random());
            }
        }
        let pauses = fates.iter().map(|(item, _)| pause_ms(item.tries() + 1, vault::random())).collect();
        let (account, slip) = (webhook.account, mail::slip(&self.app));
        let results = Results { webhook, cursor, health, accepted_at, fates, pauses, behind, slip, now };
        // What was sent was sent: it is written down however much there is to do.
        self.courtesy.own(self.app.store.finish_batched(account.0, results)).await?;
        if health.is_dead(now) {
            mail::wake(&self.app);
        }
        Ok(())
    }
}

/// What became of a batch, to be written down.
struct Results {
    webhook: Webhook,
    /// Where the webhook stands now.
    cursor: i64,
    health: Health,
    accepted_at: Option<Time>,
    fates: Vec<(Item, Fate)>,
    /// How long each waits if it was refused.
    pauses: Vec<i64>,
    behind: Vec<Event>,
    slip: mail::Slip,
    now: Time,
}

impl Results {
    /// Where the webhook stands, if it accepted everything and nothing waited.
    fn onward(&self) -> Option<deliveries::Step<'_>> {
        let plain = |(item, fate): &(Item, Fate)| item.waited.is_none() && matches!(fate, Fate::Accepted(_));
        let accepted_at =
            self.accepted_at.filter(|_| self.behind.is_empty() && self.fates.iter().all(plain))?;
        Some(deliveries::Step { webhook: &self.webhook, cursor: self.cursor, accepted_at })
    }

    fn tried(&self) -> impl Iterator<Item = Delivery> {
        self.fates.iter().filter_map(|(_, fate)| fate.delivery().cloned())
    }
}

impl WriteJob for Results {
    type Answer = ();
    const SHARES: bool = true;
    const LANE: Option<i64> = Some(LANE);

    fn run(&self, tx: &mut Tx) -> Result<()> {
        let Results { webhook, cursor, health, accepted_at, now, .. } = self;
        deliveries::record_all(tx, &self.tried().collect::<Vec<_>>())?;
        // What was sent before a replay, a new URL or a new holder of the turn does not count.
        if !deliveries::advance(tx, webhook, *cursor, *health, *accepted_at)? {
            return Ok(());
        }
        for ((item, fate), pause) in self.fates.iter().zip(&self.pauses) {
            keep(tx, &webhook.id, item, fate, *now, *pause)?;
        }
        for event in &self.behind {
            deliveries::put(tx, &webhook.id, event, None, 0, *now)?;
        }
        if health.is_dead(*now) { give_up(tx, webhook, &self.slip, *now) } else { Ok(()) }
    }

    fn run_batched(tx: &mut Tx, group: &[&Results]) -> Result<Vec<Option<()>>> {
        let onward: Vec<_> = group.iter().filter_map(|results| results.onward()).collect();
        if onward.is_empty() {
            return Ok(vec![None; group.len()]);
        }
        let plain = group.iter().filter(|results| results.onward().is_some());
        deliveries::record_all(tx, &plain.flat_map(|results| results.tried()).collect::<Vec<_>>())?;
        deliveries::advance_all(tx, &onward)?;
        Ok(group.iter().map(|results| results.onward().map(drop)).collect())
    }
}

enum Step {
    More,
    /// Nothing is left before then.
    Until(Option<Time>),
}

impl Fate {
    fn delivery(&self) -> Option<&Delivery> {
        match self {
            Fate::Accepted(delivery) | Fate::Refused(delivery) => Some(delivery),
            Fate::Unsent => None,
        }
    }
}

/// How an endpoint answers while a batch is on its way.
struct Mood {
    refusals: AtomicI64,
    /// Whether it is tried with one event only.
    alone: AtomicBool,
    /// When no more tries are begun. The time runs from the first: a batch may have to wait for its place.
    until: OnceLock<Instant>,
}

impl Mood {
    fn may_try(&self) -> bool {
        let so_far = Health { failures: self.refusals.load(Ordering::Relaxed), ..Health::default() };
        let now = Instant::now();
        now < *self.until.get_or_init(|| now + BATCH_TIME)
            && (self.alone.swap(false, Ordering::Relaxed) || !so_far.is_failing())
    }

    fn note(&self, accepted: bool) {
        match accepted {
            true => self.refusals.store(0, Ordering::Relaxed),
            false => drop(self.refusals.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

fn health_of(webhook: &Webhook) -> Health {
    let Webhook { failing_since, failures, resting_until, .. } = *webhook;
    Health { failing_since, failures, resting_until }
}

/// Reads what a webhook is to get next; `None` when there is no such webhook.
fn take(tx: &mut Tx, id: &WebhookId, settled: i64, now: Time) -> Result<Option<Batch>> {
    let Some(webhook) = webhooks::by_id(tx, None, id)? else { return Ok(None) };
    let mut batch = Batch {
        heads: Vec::new(),
        blocked: HashSet::new(),
        fresh: Vec::new(),
        cursor: webhook.cursor,
        has_more: false,
        held: 0,
        webhook,
    };
    if batch.webhook.status != WebhookStatus::Active || health_of(&batch.webhook).rests(now) {
        return Ok(Some(batch));
    }
    batch.held = deliveries::held(tx, id)?;
    if batch.held > 0 {
        batch.blocked = deliveries::blocked(tx, id)?.into_iter().collect();
        batch.heads = deliveries::heads(tx, id, now, BATCH)?;
    }
    let most = BATCH.min(MOST_WAITING - batch.held);
    // An endpoint that refuses everything is tried with what waits already.
    let is_failing = health_of(&batch.webhook).is_failing();
    if most > 0 && (batch.heads.is_empty() || !is_failing) {
        let Webhook { account, cursor, ref kinds, .. } = batch.webhook;
        batch.fresh = events::page(tx, account, cursor, settled, kinds, most)?;
        batch.has_more = batch.fresh.len() as i64 >= most;
        let last = batch.fresh.last().map(|event| event.no);
        batch.cursor = if batch.has_more { last.unwrap_or(cursor) } else { settled.max(cursor) };
    }
    Ok(Some(batch))
}

/// Writes down what became of one event.
fn keep(tx: &mut Tx, id: &WebhookId, item: &Item, fate: &Fate, now: Time, pause: i64) -> Result<()> {
    let (event, tries) = (&item.event, item.tries() + 1);
    match (fate, item.waited) {
        (Fate::Accepted(_), None) => Ok(()),
        (Fate::Accepted(_), Some(_)) => deliveries::take_out(tx, id, event.no),
        (Fate::Refused(_), Some((Some(since), _))) if is_overdue(since, now) => {
            tracing::info!(webhook = %id, event = event.kind.as_str(), "an event was refused for a day and is set aside");
            deliveries::set_aside(tx, id, event.no, tries, now)
        }
        (Fate::Refused(_), waited) => {
            let since = waited.and_then(|(since, _)| since).or(Some(now));
            deliveries::put(tx, id, event, since, tries, now.plus_millis(pause))
        }
        (Fate::Unsent, None) => deliveries::put(tx, id, event, None, 0, now),
        (Fate::Unsent, Some(_)) => Ok(()),
    }
}

/// Disables a webhook that has accepted nothing for a day, and tells its partner.
fn give_up(tx: &mut Tx, webhook: &Webhook, slip: &mail::Slip, now: Time) -> Result<()> {
    if !deliveries::disable(tx, webhook, now)? {
        return Ok(());
    }
    tracing::warn!(webhook = %webhook.id, "a webhook has accepted nothing for a day and is disabled");
    let Some(partner) = accounts::by_no(tx, webhook.account)? else { return Ok(()) };
    let Some(email) = partner.email.as_deref().and_then(Email::parse) else { return Ok(()) };
    let (company, url) = (partner.name, webhook.url.clone());
    let letter = Letter::WebhookDisabled { company, webhook: webhook.id.to_string(), url };
    mail::queue(tx, slip, &email, &letter, None)
}
