//! One webhook: how it stands and what was sent lately, testing and changing it, turning it on and off, sending what it
//! missed again, and its end.

use askama::Template;
use axum::http::StatusCode;

use super::deliveries::{self, Row, Rows};
use super::frame::{Done, Frame, Section, Sent, Visit, after};
use super::webhook_form::Typed;
use super::webhooks::{Badge, all_waiting, events};
use crate::domain::ids::WebhookId;
use crate::domain::role::Ability;
use crate::domain::time::Time;
use crate::domain::webhook::WebhookStatus;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Segment, webhook_id};
use crate::http::kit::html::page;
use crate::http::kit::session::see;
use crate::http::kit::wire::parse_time;
use crate::http::pages::moment::Moment;
use crate::http::pages::told;
use crate::ops::webhooks::{self, By, Change, LOOKED_AT, Standing, Start, Webhook, by_hand};

/// How many deliveries are shown beside the rest.
const LATELY: i64 = 10;

/// What was wrong, and with which form.
struct Trouble {
    form: &'static str,
    problem: String,
}

#[derive(Template)]
#[template(path = "portal/webhook.html")]
struct WebhookPage<'a> {
    frame: Frame<'a>,
    id: WebhookId,
    url: String,
    description: String,
    events: String,
    badge: Badge,
    is_disabled: bool,
    is_pending: bool,
    made: Moment,
    accepted: Option<Moment>,
    failing: Option<Moment>,
    disabled: Option<Moment>,
    old_until: Option<Moment>,
    waiting: String,
    /// How many of those that wait were refused before, or come after one that was.
    refused: i64,
    /// How many events were looked at, where the log goes on after them.
    looked_at: Option<i64>,
    set_aside: i64,
    rows: Vec<Row>,
    /// Whether there are more.
    more: bool,
    typed: Typed,
    since: String,
    trouble: Option<Trouble>,
}

impl WebhookPage<'_> {
    fn problem(&self, form: &str) -> Option<&str> {
        self.trouble.as_ref().filter(|trouble| trouble.form == form).map(|trouble| &*trouble.problem)
    }
}

async fn own(visit: &Visit, id: &str) -> Result<Webhook> {
    webhooks::get(&visit.state.app, By::Member(visit.me()), &webhook_id(id)?).await
}

/// The same for somebody who wants to change it.
async fn to_change(visit: &Visit, id: &str) -> Result<Webhook> {
    visit.me().require(Ability::Webhooks)?;
    own(visit, id).await
}

pub async fn show(visit: Visit, Segment(id): Segment) -> Answer {
    let webhook = own(&visit, &id).await?;
    let typed = Typed::now(&webhook);
    shown(&visit, StatusCode::OK, webhook, typed, String::new(), None).await
}

async fn shown(
    visit: &Visit,
    status: StatusCode,
    webhook: Webhook,
    typed: Typed,
    since: String,
    trouble: Option<Trouble>,
) -> Answer {
    let (app, now) = (&visit.state.app, visit.state.app.now());
    let Rows { rows, older } = deliveries::rows(visit, &webhook.id, None, LATELY).await?;
    let Standing { webhook, waiting, set_aside } = webhooks::look(app, webhook).await?;
    let ahead = webhooks::ahead(app, &webhook).await?;
    let template = WebhookPage {
        frame: visit.frame(Section::Webhooks),
        events: events(&webhook),
        badge: Badge::of(&webhook),
        is_disabled: webhook.status == WebhookStatus::Disabled,
        is_pending: webhook.status == WebhookStatus::Pending,
        made: Moment::of(webhook.created_at),
        accepted: webhook.accepted_at.map(Moment::of),
        failing: webhook.failing_since.map(Moment::of),
        disabled: webhook.disabled_at.map(Moment::of),
        old_until: webhook.old_until.filter(|until| now < *until).map(Moment::of),
        id: webhook.id,
        url: webhook.url,
        description: webhook.description,
        waiting: all_waiting(waiting, &ahead),
        refused: waiting,
        looked_at: ahead.more.then_some(LOOKED_AT),
        set_aside,
        rows,
        more: older.is_some(),
        typed,
        since,
        trouble,
    };
    page(&visit.state, status, &template)
}

/// Shows a webhook again, with what was wrong.
async fn wrong(
    visit: &Visit,
    id: &str,
    form: &'static str,
    typed: Option<Typed>,
    since: String,
    error: Error,
) -> Answer {
    let (status, problem) = told(error)?;
    let webhook = own(visit, id).await?;
    let typed = typed.unwrap_or_else(|| Typed::now(&webhook));
    shown(visit, status, webhook, typed, since, Some(Trouble { form, problem })).await
}

fn path(webhook: &Webhook) -> String {
    format!("{}/{}", Section::Webhooks.path(), webhook.id)
}

pub async fn change(Segment(id): Segment, Sent(visit, fields): Sent) -> Answer {
    let (app, webhook) = (&visit.state.app, to_change(&visit, &id).await?);
    let typed = Typed::of(&fields);
    let changed = match typed.read(app, fields) {
        Ok(wish) => {
            let change = Change {
                target: Some(wish.target),
                kinds: Some(wish.kinds),
                description: Some(wish.description),
                enabled: None,
            };
            webhooks::change(app, By::Member(visit.me()), &webhook.id, change).await
        }
        Err(refusal) => Err(refusal.into()),
    };
    match changed {
        Ok(webhook) => Ok(see(&after(Done::Saved, &path(&webhook)))),
        Err(error) => wrong(&visit, &id, "change", Some(typed), String::new(), error).await,
    }
}

/// Sends a test, and leads to what came of it.
pub async fn test(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    let (app, webhook) = (&visit.state.app, to_change(&visit, &id).await?);
    match by_hand::test(app, By::Member(visit.me()), &webhook.id).await {
        Ok((webhook, delivery)) => Ok(deliveries::to(app, &webhook.id, &delivery)),
        Err(error) => wrong(&visit, &id, "test", None, String::new(), error).await,
    }
}

pub async fn enable(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    switch(&visit, &id, true, Done::WebhookEnabled).await
}

pub async fn disable(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    switch(&visit, &id, false, Done::WebhookDisabled).await
}

async fn switch(visit: &Visit, id: &str, enabled: bool, done: Done) -> Answer {
    let webhook = to_change(visit, id).await?;
    let change = Change { enabled: Some(enabled), ..Change::default() };
    let by = By::Member(visit.me());
    let webhook = webhooks::change(&visit.state.app, by, &webhook.id, change).await?;
    Ok(see(&after(done, &path(&webhook))))
}

/// A time as browsers send it, which have none of its zone: in UTC.
fn moment(text: &str) -> Option<Time> {
    parse_time(text)
        .or_else(|| parse_time(&format!("{text}Z")))
        .or_else(|| parse_time(&format!("{text}:00Z")))
}

/// Sends again what happened since a time.
pub async fn replay(Segment(id): Segment, Sent(visit, mut fields): Sent) -> Answer {
    let (app, webhook) = (&visit.state.app, to_change(&visit, &id).await?);
    let typed = fields.typed("since");
    let since = fields.require("since", "must be a day and a time, like 2026-01-31T12:00", moment);
    let replayed = match fields.finish_with(since) {
        Ok(since) => {
            webhooks::replay(app, By::Member(visit.me()), &webhook.id, Start::Since(since)).await.map(drop)
        }
        Err(refusal) => Err(refusal.into()),
    };
    match replayed {
        Ok(()) => Ok(see(&after(Done::Replayed, &path(&webhook)))),
        Err(error) => wrong(&visit, &id, "replay", None, typed, error).await,
    }
}

#[derive(Template)]
#[template(path = "portal/webhook_delete.html")]
struct DeletePage<'a> {
    frame: Frame<'a>,
    id: WebhookId,
    url: String,
}

/// Asks again: deliveries are forgotten.
pub async fn delete_form(visit: Visit, Segment(id): Segment) -> Answer {
    let Webhook { id, url, .. } = to_change(&visit, &id).await?;
    page(&visit.state, StatusCode::OK, &DeletePage { frame: visit.frame(Section::Webhooks), id, url })
}

pub async fn delete(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    let webhook = to_change(&visit, &id).await?;
    webhooks::delete(&visit.state.app, By::Member(visit.me()), &webhook.id).await?;
    Ok(see(&after(Done::WebhookDeleted, &Section::Webhooks.path())))
}
