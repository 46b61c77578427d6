//! Calls of the partner API in the last week: the errors grouped, and single calls as far as they were kept.

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Frame, Section, Visit};
use crate::domain::call::{Call, Method, Wanted};
use crate::http::kit::answers::Answer;
use crate::http::kit::fields::{Query, key_id};
use crate::http::kit::html::page;
use crate::http::pages::moment::Moment;
use crate::ops::calls::{self, ErrorGroup};
use crate::ops::operator::{self, Key};

const ROWS: i64 = 50;
const DAYS: i64 = 7;
const CODE_CHARS: usize = 64;

/// A call in the list.
struct Row {
    at: Moment,
    method: &'static str,
    route: String,
    status: i64,
    is_error: bool,
    code: Option<String>,
    ms: i64,
    request_id: String,
    key: String,
}

impl Row {
    fn of(call: Call, keys: &[Key]) -> Row {
        let named = keys.iter().find(|key| key.id == call.key_id && !key.name.is_empty());
        Row {
            at: Moment::to_the_second(call.at),
            method: call.method.as_str(),
            route: call.route,
            status: call.status,
            is_error: call.status >= 400,
            code: call.code,
            ms: call.ms,
            request_id: call.request_id,
            key: named.map_or_else(|| call.key_id.to_string(), |key| key.name.clone()),
        }
    }
}

/// Calls that were refused alike.
struct Group {
    code: String,
    status: i64,
    calls: i64,
    last: Moment,
    routes: String,
}

impl Group {
    fn of(group: ErrorGroup) -> Group {
        let route = |one: &calls::RouteErrors| format!("{} {}", one.method.as_str(), one.route);
        Group {
            code: group.code,
            status: group.status,
            calls: group.calls,
            last: Moment::to_the_second(group.last_at),
            routes: group.routes.iter().map(route).collect::<Vec<_>>().join(", "),
        }
    }
}

/// What the filters say, as they were typed.
struct Filters {
    outcome: String,
    method: String,
    code: String,
    key: String,
}

impl Filters {
    /// The same filters in a link.
    fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let all =
            [("outcome", &self.outcome), ("method", &self.method), ("code", &self.code), ("key", &self.key)];
        query.extend_pairs(all.into_iter().filter(|(_, value)| !value.is_empty()));
        query.finish()
    }
}

#[derive(Template)]
#[template(path = "portal/logs.html")]
struct LogsPage<'a> {
    frame: Frame<'a>,
    is_on: bool,
    groups: Vec<Group>,
    filters: Filters,
    keys: Vec<Key>,
    rows: Vec<Row>,
    is_first: bool,
    /// The link to the page after.
    older: Option<String>,
}

/// Filters that nobody can mean are left out, as they are where somebody mistypes an address.
pub async fn show(visit: Visit, mut query: Query) -> Answer {
    let (app, account) = (&visit.state.app, visit.me().account);
    let filters = Filters {
        outcome: query.typed("outcome"),
        method: query.typed("method"),
        code: query.text("code", CODE_CHARS).unwrap_or_default(),
        key: query.typed("key"),
    };
    let before = query.typed("before").parse().ok();
    let since = app.now().plus_days(-DAYS);
    let wanted = Wanted {
        before,
        method: Method::parse(&filters.method),
        class: match &*filters.outcome {
            "done" => Some(2),
            "fault" => Some(5),
            _ => None,
        },
        only_errors: filters.outcome == "refused",
        code: Some(filters.code.clone()).filter(|code| !code.is_empty()),
        key: key_id(&filters.key).ok(),
        from: Some(since),
        ..Wanted::default()
    };
    let mut keys = operator::keys_in_use(app, account).await?;
    keys.extend(operator::ended_keys(app, account, None, ROWS).await?);
    let found = calls::list(app, account, wanted, ROWS).await?;
    let groups = calls::errors(app, account, since).await?;
    let older = found.next.map(|next| match filters.query() {
        query if query.is_empty() => format!("/portal/logs?before={next}"),
        query => format!("/portal/logs?{query}&before={next}"),
    });
    let template = LogsPage {
        frame: visit.frame(Section::Logs),
        is_on: app.settings.log_api_calls,
        groups: groups.into_iter().map(Group::of).collect(),
        rows: found.calls.into_iter().map(|call| Row::of(call, &keys)).collect(),
        filters,
        keys,
        is_first: before.is_none(),
        older,
    };
    page(&visit.state, StatusCode::OK, &template)
}
