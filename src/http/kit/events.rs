//! A page of an account's events, for partners and users alike.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::answers::{Answer, json, uncached};
use super::fields::{Query, listed};
use super::wire::EventWord;
use crate::app::App;
use crate::domain::event::EventKind;
use crate::domain::ids::AccountNo;
use crate::error::Error;
use crate::ops::events::{self, Wanted};
use crate::wire::events::EventView;

const MOST_WAIT_S: i64 = 30;

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "describes the query for OpenAPI; `Query` reads it")]
pub struct EventsQuery {
    /// Only events after this place: the `nextAfter` of an answer, or the id of an event. Absent: from the oldest one on.
    #[param(pattern = "^evt_[0-9A-Za-z]{11}$", example = "evt_5tVq0Zk2LmA")]
    after: Option<String>,
    /// Only events of these types, separated by commas. Absent: all.
    #[param(value_type = Option<Vec<EventWord>>, style = Form, explode = false, example = json!(["order.fulfilled", "order.failed"]))]
    types: Option<String>,
    #[param(minimum = 1, maximum = 100, default = 20, example = 20)]
    limit: Option<i64>,
    /// For how many seconds to wait when there is no event yet. The answer comes as soon as there is one.
    #[param(minimum = 0, maximum = 30, default = 0, example = 0)]
    wait: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EventList)]
pub struct EventsView<'a> {
    #[schema(example = true)]
    pub success: bool,
    /// The oldest first.
    pub events: Vec<EventView<'a>>,
    /// Pass it as `after` to read on. No event ever appears before it.
    #[schema(example = "evt_5tVq0Zk2LmA")]
    pub next_after: String,
    /// Whether more events are there already.
    pub has_more: bool,
}

pub async fn events_page(app: &App, account: AccountNo, mut query: Query) -> Answer {
    let known = listed(EventKind::ALL.map(EventKind::as_str));
    let after = query.take("after", "must be the nextAfter of an answer, or the id of an event", |text| {
        app.numbers.event_place(text)
    });
    let kinds = query.take("types", format_args!("must be some of {known}, separated by commas"), |text| {
        text.split(',').map(|word| EventKind::parse(word.trim())).collect::<Option<Vec<_>>>()
    });
    let limit = query.whole("limit", 1, 100).unwrap_or(20);
    let wait = query.whole("wait", 0, MOST_WAIT_S).unwrap_or(0);
    query.finish()?;
    let wait = Duration::from_secs(wait.unsigned_abs());
    let wanted = Wanted { after: after.unwrap_or(0), kinds: kinds.unwrap_or_default(), limit, wait };
    let page = events::read(app, account, wanted).await?;
    let mut shown = Vec::with_capacity(page.events.len());
    for event in &page.events {
        shown.push(EventView::of(app.numbers.event_id(event.no), event).map_err(Error::fault)?);
    }
    let view = EventsView {
        success: true,
        events: shown,
        next_after: app.numbers.event_id(page.next),
        has_more: page.has_more,
    };
    uncached(json(StatusCode::OK, &view))
}
