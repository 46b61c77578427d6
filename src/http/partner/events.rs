//! The partner's event log.

use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Partner;
use crate::http::kit::events::{EventsQuery, EventsView, events_page};
use crate::http::kit::fields::Query;

/// List events
///
/// What happened to your orders, top-ups, deposits, balance and eSIMs in the last 90 days, the oldest first. Keep
/// `nextAfter` and pass it as `after` the next time: you get every event once and in order. With `wait` the call waits
/// until there is an event; ten calls of an account may wait at once.
#[utoipa::path(get, path = "/api/b2b/v1/events", operation_id = "listEvents", tag = "events", params(EventsQuery),
    responses((status = 200, description = "The next events", body = EventsView<'static>)))]
pub async fn list(partner: Partner, state: State, query: Query) -> Answer {
    events_page(&state.app, partner.account, query.strictly()).await
}
