//! What was sent to a webhook, and how it was answered: the newest first, one by one, and once more.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Frame, Section, Sent, Visit};
use crate::app::App;
use crate::domain::ids::WebhookId;
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::error::Result;
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Query, Segment, Segments, webhook_id};
use crate::http::kit::html::page;
use crate::http::kit::indent::indented;
use crate::http::kit::session::see;
use crate::http::pages::moment::Moment;
use crate::http::pages::told;
use crate::ops::webhooks::{self, By, Delivery, by_hand};

const PAGE: i64 = 50;

/// A try in a list.
pub struct Row {
    pub id: String,
    pub at: Moment,
    pub kind: String,
    pub message: String,
    /// Which try it was; `None` for one by hand.
    pub attempt: Option<i64>,
    pub ms: i64,
    pub status: Option<i64>,
    pub accepted: bool,
}

impl Row {
    fn of(app: &App, delivery: Delivery) -> Row {
        Row {
            id: app.numbers.delivery_id(delivery.no),
            at: Moment::to_the_second(delivery.at),
            accepted: delivery.accepted(),
            kind: delivery.kind,
            message: delivery.message,
            attempt: delivery.attempt,
            ms: delivery.ms,
            status: delivery.status,
        }
    }

    /// How it ended, as badges have it: kind, icon and word.
    pub fn end(&self) -> (&'static str, &'static str, String) {
        match (self.accepted, self.status) {
            (true, Some(status)) => ("good", "check", format!("Accepted, {status}")),
            (_, Some(status)) => ("bad", "stop", format!("Refused, {status}")),
            (_, None) => ("bad", "warning", "No answer".into()),
        }
    }
}

pub struct Rows {
    pub rows: Vec<Row>,
    /// The delivery before which older ones were made.
    pub older: Option<String>,
}

/// The newest deliveries of a webhook, or those before one of them.
pub async fn rows(visit: &Visit, id: &WebhookId, before: Option<i64>, most: i64) -> Result<Rows> {
    let app = &visit.state.app;
    let found = webhooks::deliveries(app, By::Member(visit.me()), id, before, most).await?;
    let rows = found.deliveries.into_iter().map(|delivery| Row::of(app, delivery)).collect();
    Ok(Rows { rows, older: found.next.map(|no| app.numbers.delivery_id(no)) })
}

#[derive(Template)]
#[template(path = "portal/deliveries.html")]
struct DeliveriesPage<'a> {
    frame: Frame<'a>,
    id: WebhookId,
    rows: Vec<Row>,
    is_first: bool,
    older: Option<String>,
}

pub async fn list(visit: Visit, query: Query, Segment(id): Segment) -> Answer {
    let id = webhook_id(&id)?;
    let before = visit.state.app.numbers.delivery_no(&query.typed("before"));
    let Rows { rows, older } = rows(&visit, &id, before, PAGE).await?;
    let is_first = before.is_none();
    let frame = visit.frame(Section::Webhooks);
    page(&visit.state, StatusCode::OK, &DeliveriesPage { frame, id, rows, is_first, older })
}

#[derive(Template)]
#[template(path = "portal/delivery.html")]
struct DeliveryPage<'a> {
    frame: Frame<'a>,
    id: WebhookId,
    row: Row,
    /// What was sent; `None` once it is not kept any more.
    sent: Option<String>,
    answer: Option<String>,
    trouble: Option<String>,
    problem: Option<String>,
}

/// Whose webhook it is comes first: of others nothing is told.
async fn named(visit: &Visit, id: &str, delivery: &str) -> Result<(WebhookId, i64)> {
    let (app, id) = (&visit.state.app, webhook_id(id)?);
    webhooks::get(app, By::Member(visit.me()), &id).await?;
    Ok((id, app.numbers.delivery_no(delivery).ok_or(Refusal::DeliveryNotFound)?))
}

pub async fn one(visit: Visit, Segments(id, delivery): Segments) -> Answer {
    let (id, no) = named(&visit, &id, &delivery).await?;
    shown(&visit, StatusCode::OK, id, no, None).await
}

async fn shown(visit: &Visit, status: StatusCode, id: WebhookId, no: i64, problem: Option<String>) -> Answer {
    let app = &visit.state.app;
    let (mut delivery, message) = by_hand::look_at(app, By::Member(visit.me()), &id, no).await?;
    let (answer, trouble) = (delivery.answer.take(), delivery.trouble.take());
    let template = DeliveryPage {
        frame: visit.frame(Section::Webhooks),
        id,
        row: Row::of(app, delivery),
        sent: message.map(|message| indented(&String::from_utf8_lossy(&message.body))),
        answer: answer.filter(|text| !text.is_empty()),
        trouble,
        problem,
    };
    page(&visit.state, status, &template)
}

/// Leads to the page of a delivery.
pub fn to(app: &App, id: &WebhookId, delivery: &Delivery) -> axum::response::Response {
    see(&format!("/portal/webhooks/{id}/deliveries/{}", app.numbers.delivery_id(delivery.no)))
}

/// Sends the same once more, and leads to what came of it.
pub async fn redeliver(Segments(id, delivery): Segments, Sent(visit, _): Sent) -> Answer {
    let (app, me) = (&visit.state.app, visit.me());
    me.require(Ability::Webhooks)?;
    let (id, no) = named(&visit, &id, &delivery).await?;
    match by_hand::redeliver(app, By::Member(me), &id, no).await {
        Ok(delivery) => Ok(to(app, &id, &delivery)),
        Err(error) => {
            let (status, problem) = told(error)?;
            shown(&visit, status, id, no, Some(problem)).await
        }
    }
}
