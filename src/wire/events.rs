//! An event as partners and agents read it.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::EventWord;
use super::dates::iso;
use crate::domain::event::Event;

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
