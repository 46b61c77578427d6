//! What is sent to a webhook: an event or a test, always in the same bytes, under a signature of its own for each try.

use bytes::Bytes;
use metrics::counter;
use serde::Serialize;

use crate::app::App;
use crate::domain::event::Event;
use crate::domain::ids::{TestId, WebhookId};
use crate::domain::time::Time;
use crate::domain::webhook::{Delivery, TEST_KIND, Webhook};
use crate::error::{Error, Result};
use crate::webhook::{Attempt, Outcome, Secret, Target, headers};
use crate::wire::events::{EventView, TestView};

#[derive(Clone, Debug)]
pub struct Message {
    /// The same for every try, so that a receiver knows what it has seen before.
    pub id: String,
    pub kind: &'static str,
    /// The event's place in the log; `None` for a test.
    pub event: Option<i64>,
    pub body: Bytes,
}

impl Message {
    pub fn of_event(app: &App, event: &Event) -> Result<Message> {
        let id = app.numbers.event_id(event.no);
        let body = written(&EventView::of(id.clone(), event).map_err(Error::fault)?)?;
        Ok(Message { id, kind: event.kind.as_str(), event: Some(event.no), body })
    }

    pub fn of_test(webhook: &WebhookId, test: &TestId) -> Result<Message> {
        let body = written(&TestView::of(webhook, test))?;
        Ok(Message { id: test.to_string(), kind: TEST_KIND, event: None, body })
    }
}

fn written(view: &impl Serialize) -> Result<Bytes> {
    serde_json::to_vec(view).map(Bytes::from).map_err(Error::fault)
}

/// The keys that sign now: the webhook's own and, for a day after a rotation, the one before.
fn keys(app: &App, webhook: &Webhook, now: Time) -> Result<Vec<Secret>> {
    let old = webhook.old_secret.as_ref().filter(|_| webhook.old_until.is_some_and(|until| now < until));
    let mut keys = Vec::with_capacity(2);
    for sealed in [Some(&webhook.secret), old].into_iter().flatten() {
        let text = app.vault.open_key(&webhook.id, sealed)?;
        keys.push(Secret::parse(&text).ok_or_else(|| Error::fault("a webhook's key cannot be read"))?);
    }
    Ok(keys)
}

/// What came of a try.
pub enum Sent {
    Tried(Delivery),
    /// Nothing was tried: the gateway looks up too many names at once.
    Busy,
}

/// Makes one try, and answers what to write down of it. `attempt` is its number, for a try that is not by hand.
pub async fn send(app: &App, webhook: &Webhook, message: &Message, attempt: Option<i64>) -> Sent {
    let at = app.now();
    let tried = match post(app, webhook, message, at).await {
        Ok(tried) => tried,
        Err(error) => unsendable(webhook, &error),
    };
    told(webhook, message, attempt, at, tried)
}

/// The same with an event.
pub async fn send_event(app: &App, webhook: &Webhook, event: &Event, attempt: i64) -> Sent {
    match Message::of_event(app, event) {
        Ok(message) => send(app, webhook, &message, Some(attempt)).await,
        Err(error) => {
            let (id, kind) = (app.numbers.event_id(event.no), event.kind.as_str());
            let unwritten = Message { id, kind, event: Some(event.no), body: Bytes::new() };
            told(webhook, &unwritten, Some(attempt), app.now(), unsendable(webhook, &error))
        }
    }
}

async fn post(app: &App, webhook: &Webhook, message: &Message, at: Time) -> Result<Attempt> {
    let keys = keys(app, webhook, at)?;
    Ok(match Target::parse(&webhook.url, app.sender.rules()) {
        Ok(target) => {
            let headers = headers(&message.id, at.micros().div_euclid(1_000_000), &keys, &message.body);
            app.sender.post(&target, &headers, message.body.clone()).await
        }
        // It was allowed when it was saved, and the settings have changed since.
        Err(why) => Attempt { outcome: Outcome::Refused(format!("the URL {why}")), ms: 0 },
    })
}

/// A message that cannot be written or signed is our fault. It is tried again like one that was refused.
fn unsendable(webhook: &Webhook, error: &Error) -> Attempt {
    tracing::error!(%error, webhook = %webhook.id, "a message to a webhook cannot be made");
    Attempt { outcome: Outcome::Failed("the gateway could not make this message".into()), ms: 0 }
}

fn told(webhook: &Webhook, message: &Message, attempt: Option<i64>, at: Time, tried: Attempt) -> Sent {
    let is_success = tried.outcome.is_success();
    let (word, status, answer, trouble) = match tried.outcome {
        Outcome::Answered { status, body } => {
            (if is_success { "accepted" } else { "refused" }, Some(i64::from(status)), Some(body), None)
        }
        Outcome::Refused(why) => ("not_allowed", None, None, Some(why)),
        Outcome::Failed(why) => ("failed", None, None, Some(why)),
        Outcome::Busy => return Sent::Busy,
    };
    counter!("simgate_webhook_deliveries_total", "outcome" => word).increment(1);
    Sent::Tried(Delivery {
        no: 0,
        webhook: webhook.id.clone(),
        event: message.event,
        message: message.id.clone(),
        kind: message.kind.to_string(),
        attempt,
        at,
        ms: tried.ms,
        status,
        answer,
        trouble,
    })
}
