//! An event as partners and agents read it.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::EventWord;
use super::dates::iso;
use crate::domain::event::{Event, EventKind};
use crate::domain::ids::{TestId, WebhookId};
use crate::domain::time::Time;
use crate::domain::webhook::TEST_KIND;

/// The object in an event of this kind, as an example.
pub fn example(kind: EventKind) -> Option<&'static RawValue> {
    static ALL: LazyLock<HashMap<&str, &RawValue>> =
        LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).unwrap_or_default());
    ALL.get(kind.as_str()).copied()
}

/// The version of the API whose shapes `data` has.
pub const API_VERSION: &str = "1.0.0";

/// Something that happened, and the object that it happened to.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Event)]
pub struct EventView<'a> {
    /// Also a place in the log: pass it as `after` to read on from here. A delivery that is repeated has the same id.
    #[schema(example = "evt_5tVq0Zk2LmA")]
    pub id: String,
    #[serde(rename = "type")]
    pub kind: EventWord,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub created_at: String,
    /// The version of the API whose shapes `data` has.
    #[schema(example = "1.0.0")]
    pub api_version: &'static str,
    /// 1 for the first event of this order, top-up, deposit or balance, then 2, and so on without a gap.
    #[schema(example = 1, minimum = 1)]
    pub sequence: i64,
    /// The object as it was when this happened. It never holds activation codes or links to them.
    #[schema(value_type = Object)]
    pub data: &'a RawValue,
}

impl EventView<'_> {
    pub fn of(id: String, event: &Event) -> serde_json::Result<EventView<'_>> {
        Ok(EventView {
            id,
            kind: EventWord(event.kind),
            created_at: iso(event.at),
            api_version: API_VERSION,
            sequence: event.sequence,
            data: serde_json::from_str(&event.data)?,
        })
    }
}

/// The event that asks an endpoint whether it wants any: a new webhook must accept it before it gets others.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TestEvent)]
pub struct TestView<'a> {
    #[schema(example = "tst_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub id: &'a str,
    #[serde(rename = "type")]
    #[schema(example = "webhook.test")]
    pub kind: &'static str,
    #[schema(format = DateTime, example = "2026-01-31T12:00:00.000Z")]
    pub created_at: String,
    #[schema(example = "1.0.0")]
    pub api_version: &'static str,
    #[schema(example = 1, minimum = 1)]
    pub sequence: i64,
    pub data: TestDataView<'a>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TestEventData)]
pub struct TestDataView<'a> {
    #[schema(example = "whk_0TgGbAA9d1kZ3vQqX8Jw2LmN5pRs7U")]
    pub webhook_id: &'a str,
    pub message: &'static str,
}

impl<'a> TestView<'a> {
    /// The same id has the same bytes, however often it is sent.
    pub fn of(webhook: &'a WebhookId, id: &'a TestId) -> TestView<'a> {
        TestView {
            id: id.as_str(),
            kind: TEST_KIND,
            created_at: iso(id.made_at().unwrap_or(Time::from_micros(0))),
            api_version: API_VERSION,
            sequence: 1,
            data: TestDataView {
                webhook_id: webhook.as_str(),
                message: "This is a test. Answer it with any 2xx status to get events here.",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_an_example() {
        for kind in EventKind::ALL {
            let example = example(kind).unwrap_or_else(|| panic!("{}", kind.as_str()));
            assert!(serde_json::from_str::<serde_json::Value>(example.get()).unwrap().is_object());
        }
    }
}
