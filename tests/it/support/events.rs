//! Reading the event log as a client does, and filling it.

use serde_json::Value;
use simgate::ops::operator;

use super::database::execute;
use super::harness::{Gateway, Reply};

pub const EVENTS: &str = "/api/b2b/v1/events";

/// The partner's events after a place, if one is named, with the place to go on from.
pub async fn read_on(gateway: &Gateway, query: &str) -> (Vec<Value>, String) {
    page_of(&gateway.get(&format!("{EVENTS}?{query}")).await)
}

/// The same of an answer to any caller.
#[track_caller]
pub fn page_of(reply: &Reply) -> (Vec<Value>, String) {
    let page = reply.expect(200);
    (page["events"].as_array().unwrap().clone(), page["nextAfter"].as_str().unwrap().to_string())
}

/// All events of the partner, the oldest first.
pub async fn all(gateway: &Gateway) -> Vec<Value> {
    let (mut all, mut query) = (Vec::new(), "limit=100".to_string());
    loop {
        let page = gateway.get(&format!("{EVENTS}?{query}")).await.expect(200);
        all.extend(page["events"].as_array().unwrap().clone());
        if page["hasMore"] == false {
            return all;
        }
        query = format!("limit=100&after={}", page["nextAfter"].as_str().unwrap());
    }
}

/// What happened, in short: the type of each event and its sequence.
pub fn brief(events: &[Value]) -> Vec<(&str, i64)> {
    events
        .iter()
        .map(|event| (event["type"].as_str().unwrap(), event["sequence"].as_i64().unwrap()))
        .collect()
}

/// Events about so many different things, all at once.
pub async fn tell(gateway: &Gateway, kind: &str, count: usize) {
    let account = operator::account(&gateway.app, &gateway.partner).await.unwrap().no.0;
    let (prefix, now) = (gateway.app.new_entry_id(), gateway.app.now().micros());
    let many = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
         INSERT INTO events (account, kind, subject, sequence, at, data)
         SELECT {account}, '{kind}', '{prefix}-' || i, 1, {now}, '{{}}' FROM n"
    );
    execute(&gateway.app.settings.database, &many).unwrap();
}
