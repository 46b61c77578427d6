//! One message to a webhook while its caller waits: a test, or an event again. Whether the endpoint takes it or not, the
//! webhook is as healthy afterwards as before; only a new one that takes its test gets events from then on.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::JoinHandle;

use super::message::{self, Message, Sent};
use super::{By, Deed, Delivery, Webhook, get};
use crate::app::App;
use crate::domain::ids::{AccountNo, TestId, WebhookId};
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::domain::webhook::WebhookStatus;
use crate::error::{Error, Result};
use crate::store::audit::{self, Line};
use crate::store::tx::Tx;
use crate::store::{deliveries, events, webhooks};
use crate::vault;

/// How long after the beginning of a try another one may begin.
const PAUSE_MS: i64 = 1_000;

/// The webhooks that were tried by hand lately: nobody may use us to flood somebody.
#[derive(Default)]
pub struct Tries(Mutex<HashMap<WebhookId, Try>>);

struct Try {
    began: Time,
    under_way: bool,
}

/// A try that is under way, until it is dropped.
struct Turn {
    app: App,
    id: WebhookId,
}

impl Tries {
    fn all(&self) -> MutexGuard<'_, HashMap<WebhookId, Try>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    fn take(app: &App, id: &WebhookId) -> Result<Turn> {
        let now = app.now();
        let mut all = app.tries.all();
        all.retain(|_, tried| tried.under_way || now.is_within(PAUSE_MS, tried.began));
        if all.contains_key(id) {
            return Err(Refusal::TryingAlready { retry_after_secs: 1 }.into());
        }
        all.insert(id.clone(), Try { began: now, under_way: true });
        Ok(Turn { app: app.clone(), id: id.clone() })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(tried) = self.app.tries.all().get_mut(&self.id) {
            tried.under_way = false;
        }
    }
}

/// Sends a test. A webhook that waits for one to be accepted is active then.
pub async fn test(app: &App, by: By<'_>, id: &WebhookId) -> Result<(Webhook, Delivery)> {
    let deed = by.deed(app, "webhook test", id.to_string())?;
    let webhook = get(app, by, id).await?;
    let message = Message::of_test(id, &TestId::new(app.now(), vault::random()))?;
    let delivery = send(app, deed, &webhook, message).await?;
    if webhook.status != WebhookStatus::Pending || !delivery.accepted() {
        return Ok((webhook, delivery));
    }
    let (id, edition, now) = (id.clone(), webhook.edition, app.now());
    let write = move |tx: &mut Tx| {
        webhooks::accept(tx, &id, edition, now)?;
        Ok(webhooks::by_id(tx, None, &id)?.ok_or(Refusal::WebhookNotFound)?)
    };
    Ok((app.store.write(by.lane(), write).await?, delivery))
}

/// Sends what a delivery sent once more: the same bytes and id, under a new signature.
pub async fn redeliver(app: &App, by: By<'_>, id: &WebhookId, no: i64) -> Result<Delivery> {
    let deed = by.deed(app, "webhook redeliver", id.to_string())?;
    let webhook = get(app, by, id).await?;
    let delivery = tried(app, id, no).await?;
    let message = sent(app, &webhook, &delivery).await?;
    send(app, deed, &webhook, message).await
}

/// A delivery, and the message that was sent unless its event is forgotten.
pub async fn look_at(app: &App, by: By<'_>, id: &WebhookId, no: i64) -> Result<(Delivery, Option<Message>)> {
    let webhook = get(app, by, id).await?;
    let delivery = tried(app, id, no).await?;
    match sent(app, &webhook, &delivery).await {
        Ok(message) => Ok((delivery, Some(message))),
        Err(Error::Refused(Refusal::EventForgotten)) => Ok((delivery, None)),
        Err(error) => Err(error),
    }
}

async fn tried(app: &App, id: &WebhookId, no: i64) -> Result<Delivery> {
    let id = id.clone();
    let found = app.store.read(move |tx| deliveries::by_no(tx, &id, no)).await?;
    Ok(found.ok_or(Refusal::DeliveryNotFound)?)
}

async fn sent(app: &App, webhook: &Webhook, delivery: &Delivery) -> Result<Message> {
    match delivery.event {
        Some(place) => of_event(app, webhook.account, place).await,
        None => Message::of_test(&webhook.id, &TestId::from_text(&*delivery.message)),
    }
}

async fn of_event(app: &App, account: AccountNo, place: i64) -> Result<Message> {
    let look = move |tx: &mut Tx| events::page(tx, account, place - 1, place, &[], 1);
    let event = app.store.read(look).await?.pop().ok_or(Refusal::EventForgotten)?;
    Message::of_event(app, &event)
}

/// Sends it and writes down what came of it, also when the caller has gone meanwhile.
async fn send(app: &App, deed: Deed, webhook: &Webhook, message: Message) -> Result<Delivery> {
    let turn = Turn::take(app, &webhook.id)?;
    if let Deed(Some(deed)) = deed {
        let detail = format!("{} {}", webhook.id, message.id);
        let write = move |tx: &mut Tx| {
            deed.check(tx)?;
            audit::record(tx, &Line { detail: detail.clone(), ..deed.line.clone() })
        };
        app.store.write(webhook.account.0, write).await?;
    }
    let (app, webhook) = (app.clone(), webhook.clone());
    let sending: JoinHandle<Result<Delivery>> = app.tasks.clone().spawn(async move {
        let sent = message::send(&app, &webhook, &message, None).await;
        drop(turn);
        let Sent::Tried(mut delivery) = sent else { return Err(Refusal::Overloaded.into()) };
        let tried = delivery.clone();
        delivery.no = app.store.write(webhook.account.0, move |tx| deliveries::record(tx, &tried)).await?;
        Ok(delivery)
    });
    sending.await.map_err(Error::fault)?
}
