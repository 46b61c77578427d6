//! The event log of a user.

use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Bearer;
use crate::http::kit::events::{EventsQuery, EventsView, events_page};
use crate::http::kit::fields::Query;

/// List events
///
/// What happened to your orders, top-ups and eSIMs in the last 90 days, the oldest first. Keep `nextAfter` and pass it as
/// `after` the next time: you get every event once and in order. With `wait` the call waits until there is an event, so an
/// agent need not poll an order that is slow.
#[utoipa::path(get, path = "/api/agentic/events", operation_id = "listEvents", tag = "wallet", params(EventsQuery),
    responses((status = 200, description = "The next events", body = EventsView<'static>)))]
pub async fn list(bearer: Bearer, state: State, query: Query) -> Answer {
    events_page(&state.app, bearer.account, query).await
}
