//! Webhooks of partners: making, changing and reading them, and going back in the log. `dispatch.rs` delivers
//! what happens, `message.rs` makes what is sent, `by_hand.rs` sends one message while its caller waits, and `listen.rs` follows the
//! log for a program on this machine.

pub mod by_hand;
pub mod dispatch;
mod limits;
pub mod listen;
pub mod message;
mod work;

use super::LANE;
use super::audit::audit_line;
use super::by_hand::ByHand;
use super::events::tail;
use super::keys::Caller;
use super::team::Member;
use crate::app::App;
use crate::domain::event::EventKind;
use crate::domain::ids::{AccountNo, TestId, WebhookId};
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::domain::time::Time;
pub use crate::domain::webhook::{Delivery, Webhook};
use crate::domain::webhook::{MOST, OVERLAP_MS, WebhookStatus};
use crate::error::Result;
use crate::store::audit;
use crate::store::tx::Tx;
use crate::store::{deliveries, events, wallet, webhooks};
use crate::vault;
use crate::webhook::Secret;
pub use crate::webhook::Target;
use crate::wire::dates::iso;

/// Events are written a little after the time that they tell.
const MARGIN_MS: i64 = 60_000;
/// How many rows of a deleted webhook are deleted at once.
const CLEARED: i64 = 500;
/// How many events after a webhook's place are looked at to tell how many of them come to it.
pub const LOOKED_AT: i64 = 5_000;

/// Who asks: a partner's program or somebody of its team about its own webhooks, or an operator about any.
#[derive(Clone, Copy)]
pub enum By<'a> {
    Key(&'a Caller),
    Member(&'a Member),
    Operator(&'a str),
}

impl By<'_> {
    fn account(self) -> Option<AccountNo> {
        match self {
            By::Key(caller) => Some(caller.account),
            By::Member(member) => Some(member.account),
            By::Operator(_) => None,
        }
    }

    fn lane(self) -> i64 {
        self.account().map_or(LANE, |account| account.0)
    }

    /// Refuses what a key or a member's role does not cover. Calls with a partner's key are in no audit log.
    fn deed(self, app: &App, command: &'static str, detail: String) -> Result<Deed> {
        Ok(Deed(match self {
            By::Key(caller) => {
                caller.require(Ability::Webhooks)?;
                None
            }
            By::Member(member) => Some(member.deed(app, Ability::Webhooks, command, detail)?),
            By::Operator(actor) => Some(audit_line(app, actor, command, detail).into()),
        }))
    }
}

/// What is done to a webhook, and whether it is by hand.
struct Deed(Option<ByHand>);

impl Deed {
    /// Its write begins with this.
    fn check(&self, tx: &mut Tx) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |deed| deed.check(tx))
    }

    fn record(&self, tx: &mut Tx, before: impl Into<String>, after: impl Into<String>) -> Result<()> {
        match &self.0 {
            Some(deed) => audit::record(tx, &deed.line.changing(before, after)),
            None => Ok(()),
        }
    }
}

/// A webhook in the audit log. The path and query of its URL may hold a key of the partner's.
fn in_words(webhook: &Webhook) -> String {
    let url = &webhook.url;
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find(['/', '?']).map_or(url.len(), |at| host + at);
    let kinds: Vec<&str> = webhook.kinds.iter().map(|kind| kind.as_str()).collect();
    let kinds = if kinds.is_empty() { "all events".into() } else { kinds.join(" ") };
    format!("{}, {}, {kinds}", webhook.status.as_str(), &url[..end])
}

/// Reads a URL as somebody wrote it, or says what is wrong with it.
pub fn target(app: &App, text: &str) -> Result<Target, String> {
    Target::parse(text, app.sender.rules())
}

pub struct NewWebhook {
    pub target: Target,
    /// All when empty.
    pub kinds: Vec<EventKind>,
    pub description: String,
}

/// A webhook with its new key, which is shown this once.
pub struct Keyed {
    pub webhook: Webhook,
    pub secret: String,
}

/// A webhook, and how many events wait for it or are set aside.
pub struct Standing {
    pub webhook: Webhook,
    pub waiting: i64,
    pub set_aside: i64,
}

fn standing(tx: &mut Tx, webhook: Webhook) -> Result<Standing> {
    let (all, set_aside) = webhooks::backlog(tx, &webhook.id)?;
    Ok(Standing { webhook, waiting: all - set_aside, set_aside })
}

fn new_test(app: &App) -> String {
    TestId::new(app.now(), vault::random()).to_string()
}

/// A new key, as it is shown and as it is kept.
fn new_key(app: &App, id: &WebhookId) -> Result<(String, Vec<u8>)> {
    let secret = Secret::new([vault::random(), vault::random()]).text();
    let sealed = app.vault.seal_key(id, &secret)?;
    Ok((secret, sealed))
}

/// Makes a webhook. It gets what happens from now on, once it has accepted its test.
pub async fn create(app: &App, by: By<'_>, new: NewWebhook) -> Result<Keyed> {
    // An operator makes none: whose it were would not be said.
    let account = by.account().ok_or(Refusal::AccountNotFound)?;
    let now = app.now();
    let id = WebhookId::new(now, vault::random());
    let deed = by.deed(app, "webhook create", id.to_string())?;
    let (secret, sealed) = new_key(app, &id)?;
    let webhook = Webhook {
        id,
        account,
        url: new.target.url().to_string(),
        kinds: new.kinds,
        description: new.description,
        status: WebhookStatus::Pending,
        secret: sealed,
        old_secret: None,
        old_until: None,
        cursor: tail::now(app).await?,
        edition: 0,
        test: new_test(app),
        failing_since: None,
        failures: 0,
        resting_until: None,
        accepted_at: None,
        created_at: now,
        disabled_at: None,
    };
    let made = webhook.clone();
    let is_form = matches!(by, By::Member(_));
    let write = move |tx: &mut Tx| {
        // Two that are made at once are counted one after the other.
        wallet::lock(tx, account)?;
        if tx.is_rerun() && webhooks::by_id(tx, Some(account), &made.id)?.is_some() {
            return Ok(());
        }
        deed.check(tx)?;
        if is_form {
            require_another(tx, &made)?;
        }
        if webhooks::count(tx, account)? >= MOST {
            return Err(Refusal::TooManyWebhooks { most: MOST }.into());
        }
        webhooks::insert(tx, &made)?;
        deed.record(tx, "no webhook", in_words(&made))
    };
    app.store.write(account.0, write).await?;
    Ok(Keyed { webhook, secret })
}

/// Refuses a webhook of which there is the like: its form was sent twice, and the first secret is on the screen.
fn require_another(tx: &mut Tx, new: &Webhook) -> Result<()> {
    let is_same = |other: &Webhook| other.url == new.url && other.wanted() == new.wanted();
    match webhooks::list(tx, Some(new.account))?.iter().find(|other| is_same(other)) {
        Some(other) => {
            let message = format!("gets these events already, by {}; change that one", other.id);
            Err(Refusal::field("url", message).into())
        }
        None => Ok(()),
    }
}

/// The webhooks of an account, or of all, the oldest first.
pub async fn list(app: &App, account: Option<AccountNo>) -> Result<Vec<Standing>> {
    let look = move |tx: &mut Tx| {
        let found = webhooks::list(tx, account)?;
        found.into_iter().map(|webhook| standing(tx, webhook)).collect()
    };
    app.store.read(look).await
}

pub async fn get(app: &App, by: By<'_>, id: &WebhookId) -> Result<Webhook> {
    let (account, id) = (by.account(), id.clone());
    let found = app.store.read(move |tx| webhooks::by_id(tx, account, &id)).await?;
    Ok(found.ok_or(Refusal::WebhookNotFound)?)
}

/// The same, with what waits for it.
pub async fn look(app: &App, webhook: Webhook) -> Result<Standing> {
    app.store.read(move |tx| standing(tx, webhook.clone())).await
}

/// The events that come to a webhook and were not tried yet, beside those that wait because it refused some.
pub struct Ahead {
    pub events: i64,
    /// Whether the log goes on after those that were looked at.
    pub more: bool,
}

/// Counts what lies ahead of a webhook. One that is disabled begins at the end of the log when it is enabled.
pub async fn ahead(app: &App, webhook: &Webhook) -> Result<Ahead> {
    if webhook.status == WebhookStatus::Disabled {
        return Ok(Ahead { events: 0, more: false });
    }
    let (account, cursor) = (webhook.account, webhook.cursor);
    let kinds = app.store.read(move |tx| events::kinds(tx, account, cursor, LOOKED_AT)).await?;
    let wanted = kinds.iter().filter(|kind| webhook.wanted().contains(kind)).count();
    Ok(Ahead { events: wanted as i64, more: kinds.len() as i64 == LOOKED_AT })
}

/// What is to be different; `None` stays as it is.
#[derive(Clone, Default)]
pub struct Change {
    pub target: Option<Target>,
    pub kinds: Option<Vec<EventKind>>,
    pub description: Option<String>,
    pub enabled: Option<bool>,
}

pub async fn change(app: &App, by: By<'_>, id: &WebhookId, change: Change) -> Result<Webhook> {
    let command = match change.enabled {
        Some(true) => "webhook enable",
        Some(false) => "webhook disable",
        None => "webhook change",
    };
    let deed = by.deed(app, command, id.to_string())?;
    let wants_others = match &change.kinds {
        Some(kinds) => get(app, by, id).await?.kinds != *kinds,
        None => false,
    };
    let end = match change.enabled == Some(true) || wants_others {
        true => tail::now(app).await?,
        false => 0,
    };
    let (now, test) = (app.now(), new_test(app));
    let (account, id) = (by.account(), id.clone());
    let write = move |tx: &mut Tx| {
        deed.check(tx)?;
        let before = webhooks::lock(tx, account, &id)?.ok_or(Refusal::WebhookNotFound)?;
        let mut after = changed(&before, &change, end, now, &test);
        if after.kinds != before.kinds {
            after.cursor = after.cursor.max(passed(tx, &before, end)?);
        }
        if is_another(&before, &after) {
            webhooks::change(tx, &after)?;
            webhooks::drop_unwanted(tx, &after)?;
            match change.enabled {
                Some(_) => deed.record(tx, before.status.as_str(), after.status.as_str())?,
                None => deed.record(tx, in_words(&before), in_words(&after))?,
            }
        } else if before.description != after.description {
            webhooks::describe(tx, &after.id, &after.description)?;
            deed.record(tx, &*before.description, &*after.description)?;
        }
        Ok(after)
    };
    app.store.write(by.lane(), write).await
}

fn changed(before: &Webhook, change: &Change, end: i64, now: Time, test: &str) -> Webhook {
    let mut after = before.clone();
    if let Some(target) = change.target.as_ref().filter(|target| target.url() != before.url) {
        after.lead_to(target.url().to_string(), test.to_string());
    }
    after.kinds = change.kinds.clone().unwrap_or(after.kinds);
    after.description = change.description.clone().unwrap_or(after.description);
    match change.enabled {
        Some(true) => after.enable(end),
        Some(false) => after.disable(now),
        None => {}
    }
    after
}

/// Up to which place nothing waits in the log that a webhook wants.
fn passed(tx: &mut Tx, webhook: &Webhook, end: i64) -> Result<i64> {
    let next = events::page(tx, webhook.account, webhook.cursor, end, &webhook.kinds, 1)?.pop();
    Ok(next.map_or(end, |event| event.no - 1))
}

/// Whether deliveries that are under way belong to another webhook now.
fn is_another(before: &Webhook, after: &Webhook) -> bool {
    (&before.url, &before.kinds, before.status) != (&after.url, &after.kinds, after.status)
}

/// Deletes a webhook at once, and what was kept about it soon after.
pub async fn delete(app: &App, by: By<'_>, id: &WebhookId) -> Result<()> {
    let deed = by.deed(app, "webhook delete", id.to_string())?;
    let (account, gone) = (by.account(), id.clone());
    let write = move |tx: &mut Tx| {
        deed.check(tx)?;
        let Some(webhook) = webhooks::lock(tx, account, &gone)? else {
            // The first run of this write may have deleted it.
            return if tx.is_rerun() { Ok(()) } else { Err(Refusal::WebhookNotFound.into()) };
        };
        webhooks::delete(tx, &gone)?;
        deed.record(tx, in_words(&webhook), "no webhook")
    };
    app.store.write(by.lane(), write).await?;
    app.tasks.spawn(clear(app.clone(), by.lane(), id.clone()));
    Ok(())
}

async fn clear(app: App, lane: i64, id: WebhookId) {
    loop {
        let gone = id.clone();
        match app.store.write(lane, move |tx| webhooks::clear(tx, &gone, CLEARED)).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "what was kept about a deleted webhook is left for retention");
                return;
            }
        }
    }
}

/// Which keys a webhook had when somebody was asked whether to replace its own: until when the one before signs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seen(pub Option<Time>);

/// Gives a webhook a new key. The old one signs too for a day, so that its receiver can be changed in between. A form tells
/// what it was `seen` with: sent twice, it must not end the key that receivers still have.
pub async fn rotate(app: &App, by: By<'_>, id: &WebhookId, seen: Option<Seen>) -> Result<Keyed> {
    let deed = by.deed(app, "webhook rotate", id.to_string())?;
    let (secret, sealed) = new_key(app, id)?;
    let account = by.account();
    let (id, until) = (id.clone(), app.now().plus_millis(OVERLAP_MS));
    let write = move |tx: &mut Tx| {
        deed.check(tx)?;
        let mut webhook = webhooks::lock(tx, account, &id)?.ok_or(Refusal::WebhookNotFound)?;
        if webhook.secret == sealed {
            return Ok(webhook);
        }
        if seen.is_some_and(|seen| seen != Seen(webhook.old_until)) {
            let message = "has been replaced since this page was opened; do so again if you have not kept it";
            return Err(Refusal::field("secret", message).into());
        }
        webhooks::rotate(tx, &webhook, &sealed, until)?;
        webhook.old_until = Some(until);
        deed.record(tx, "one secret", format!("a new secret, beside the old one until {}", iso(until)))?;
        Ok(webhook)
    };
    let webhook = app.store.write(by.lane(), write).await?;
    Ok(Keyed { webhook, secret })
}

/// Where a replay begins.
#[derive(Clone, Copy)]
pub enum Start {
    /// After this place of the log.
    After(i64),
    /// With what happened at this time.
    Since(Time),
}

/// Sends a webhook again what it was sent before. Answers the place after which it goes on. What it has not been sent yet
/// comes anyway, so a place that is still ahead of it changes nothing.
pub async fn replay(app: &App, by: By<'_>, id: &WebhookId, start: Start) -> Result<(Webhook, i64)> {
    let deed = by.deed(app, "webhook replay", id.to_string())?;
    let (account, id) = (by.account(), id.clone());
    let numbers = app.numbers.clone();
    let write = move |tx: &mut Tx| {
        deed.check(tx)?;
        let mut webhook = webhooks::lock(tx, account, &id)?.ok_or(Refusal::WebhookNotFound)?;
        if webhook.status == WebhookStatus::Disabled {
            return Err(Refusal::WebhookDisabled.into());
        }
        let after = match start {
            Start::After(place) => place,
            Start::Since(at) => events::last_before(tx, webhook.account, at.plus_millis(-MARGIN_MS))?,
        };
        let (before, after) = (webhook.cursor, webhook.cursor.min(after));
        if after < before {
            webhooks::rewind(tx, &id, after)?;
            webhook.rewind(after);
            deed.record(tx, numbers.event_id(before), numbers.event_id(after))?;
        }
        Ok((webhook, after))
    };
    app.store.write(by.lane(), write).await
}

pub struct Page {
    pub deliveries: Vec<Delivery>,
    /// The number before which the next page begins.
    pub next: Option<i64>,
}

/// What was tried, the newest first.
pub async fn deliveries(
    app: &App,
    by: By<'_>,
    id: &WebhookId,
    before: Option<i64>,
    limit: i64,
) -> Result<Page> {
    let (account, id, before) = (by.account(), id.clone(), before.unwrap_or(i64::MAX));
    let look = move |tx: &mut Tx| {
        webhooks::by_id(tx, account, &id)?.ok_or(Refusal::WebhookNotFound)?;
        deliveries::page(tx, &id, before, limit.saturating_add(1))
    };
    let mut deliveries = app.store.read(look).await?;
    let shown = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = deliveries.len() > shown;
    deliveries.truncate(shown);
    let next = deliveries.last().filter(|_| more).map(|last| last.no);
    Ok(Page { deliveries, next })
}
