//! Webhooks: which there are, making one, and a new secret for one. A secret is in the answer to the form that made it, and on
//! no other page. One by one they are in `webhook.rs`.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Frame, Section, Sent, Visit};
use super::webhook_form::Typed;
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::domain::time::Time;
use crate::domain::webhook::WebhookStatus;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Segment, webhook_id};
use crate::http::kit::html::page;
use crate::http::pages::moment::Moment;
use crate::http::pages::told;
use crate::ops::webhooks::{self, Ahead, By, Keyed, NewWebhook, Seen, Standing, Webhook};

/// How a webhook stands, in a word.
pub struct Badge {
    pub kind: &'static str,
    pub icon: &'static str,
    pub word: &'static str,
}

impl Badge {
    pub fn of(webhook: &Webhook) -> Badge {
        let (kind, icon, word) = match webhook.status {
            WebhookStatus::Pending => ("caution", "clock", "Waiting for its test"),
            WebhookStatus::Active if webhook.failing_since.is_some() => ("caution", "warning", "Failing"),
            WebhookStatus::Active => ("good", "check", "Active"),
            WebhookStatus::Disabled => ("bad", "stop", "Disabled"),
        };
        Badge { kind, icon, word }
    }
}

/// The events that a webhook gets, in a sentence.
pub fn events(webhook: &Webhook) -> String {
    let words: Vec<&str> = webhook.kinds.iter().map(|kind| kind.as_str()).collect();
    if words.is_empty() { "all".into() } else { words.join(", ") }
}

/// A webhook in the list.
struct Row {
    id: String,
    url: String,
    description: String,
    events: String,
    badge: Badge,
    waiting: String,
    set_aside: i64,
}

impl Row {
    fn of(standing: Standing, ahead: &Ahead) -> Row {
        let Standing { webhook, waiting, set_aside } = standing;
        Row {
            badge: Badge::of(&webhook),
            events: events(&webhook),
            id: webhook.id.to_string(),
            url: webhook.url,
            description: webhook.description,
            waiting: all_waiting(waiting, ahead),
            set_aside,
        }
    }
}

/// How many events are still to be accepted: those that wait because some were refused, and those that were not tried.
pub fn all_waiting(refused: i64, ahead: &Ahead) -> String {
    match (refused + ahead.events, ahead.more) {
        (0, true) => "not counted".into(),
        (count, true) => format!("{count} or more"),
        (count, false) => count.to_string(),
    }
}

#[derive(Template)]
#[template(path = "portal/webhooks.html")]
struct WebhooksPage<'a> {
    frame: Frame<'a>,
    webhooks: Vec<Row>,
}

pub async fn list(visit: Visit) -> Answer {
    let app = &visit.state.app;
    let mut webhooks = Vec::new();
    for standing in webhooks::list(app, Some(visit.me().account)).await? {
        let ahead = webhooks::ahead(app, &standing.webhook).await?;
        webhooks.push(Row::of(standing, &ahead));
    }
    page(&visit.state, StatusCode::OK, &WebhooksPage { frame: visit.frame(Section::Webhooks), webhooks })
}

#[derive(Template)]
#[template(path = "portal/webhook_new.html")]
struct NewWebhookPage<'a> {
    frame: Frame<'a>,
    typed: Typed,
    problem: Option<String>,
}

pub async fn form(visit: Visit) -> Answer {
    visit.me().require(Ability::Webhooks)?;
    new_form(&visit, StatusCode::OK, Typed::default(), None)
}

fn new_form(visit: &Visit, status: StatusCode, typed: Typed, problem: Option<String>) -> Answer {
    page(&visit.state, status, &NewWebhookPage { frame: visit.frame(Section::Webhooks), typed, problem })
}

/// The one page with a secret.
#[derive(Template)]
#[template(path = "portal/webhook_secret.html")]
struct SecretPage<'a> {
    frame: Frame<'a>,
    id: String,
    url: String,
    secret: String,
    /// Until when the secret before signs too.
    old_until: Option<Moment>,
}

fn with_secret(visit: &Visit, keyed: Keyed) -> Answer {
    let Keyed { webhook, secret } = keyed;
    let template = SecretPage {
        frame: visit.frame(Section::Webhooks),
        id: webhook.id.to_string(),
        url: webhook.url,
        secret,
        old_until: webhook.old_until.map(Moment::of),
    };
    page(&visit.state, StatusCode::OK, &template)
}

pub async fn create(Sent(visit, fields): Sent) -> Answer {
    let (app, me) = (&visit.state.app, visit.me());
    me.require(Ability::Webhooks)?;
    let typed = Typed::of(&fields);
    let made = match typed.read(app, fields) {
        Ok(wish) => {
            let new = NewWebhook { target: wish.target, kinds: wish.kinds, description: wish.description };
            webhooks::create(app, By::Member(me), new).await
        }
        Err(refusal) => Err(refusal.into()),
    };
    match made {
        Ok(keyed) => with_secret(&visit, keyed),
        Err(error) => {
            let (status, problem) = told(error)?;
            new_form(&visit, status, typed, Some(problem))
        }
    }
}

#[derive(Template)]
#[template(path = "portal/webhook_rotate.html")]
struct RotatePage<'a> {
    frame: Frame<'a>,
    id: String,
    url: String,
    /// Until when the secret before signs, in microseconds: what the form was seen with.
    seen: i64,
    old_until: Option<Moment>,
    problem: Option<String>,
}

async fn own(visit: &Visit, id: &str) -> Result<Webhook> {
    visit.me().require(Ability::Webhooks)?;
    webhooks::get(&visit.state.app, By::Member(visit.me()), &webhook_id(id)?).await
}

/// Asks again: a receiver must learn the new secret.
pub async fn rotate_form(visit: Visit, Segment(id): Segment) -> Answer {
    let webhook = own(&visit, &id).await?;
    ask_rotation(&visit, StatusCode::OK, webhook, None)
}

fn ask_rotation(visit: &Visit, status: StatusCode, webhook: Webhook, problem: Option<String>) -> Answer {
    let now = visit.state.app.now();
    let template = RotatePage {
        frame: visit.frame(Section::Webhooks),
        id: webhook.id.to_string(),
        url: webhook.url,
        seen: webhook.old_until.map_or(0, Time::micros),
        old_until: webhook.old_until.filter(|until| now < *until).map(Moment::of),
        problem,
    };
    page(&visit.state, status, &template)
}

pub async fn rotate(Segment(id): Segment, Sent(visit, fields): Sent) -> Answer {
    let webhook = own(&visit, &id).await?;
    let seen = fields.typed("seen").parse().ok().filter(|micros| *micros != 0).map(Time::from_micros);
    let by = By::Member(visit.me());
    match webhooks::rotate(&visit.state.app, by, &webhook.id, Some(Seen(seen))).await {
        Ok(keyed) => with_secret(&visit, keyed),
        Err(error @ Error::Refused(Refusal::Invalid(_))) => {
            let (status, problem) = told(error)?;
            // With what it is seen with now.
            let webhook = own(&visit, &id).await?;
            ask_rotation(&visit, status, webhook, Some(problem))
        }
        Err(error) => Err(error.into()),
    }
}
