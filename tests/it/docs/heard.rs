//! JSON as it was heard: members keep their order, which a `Value` forgets.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value, json};

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn parse(text: &str) -> Json {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    pub fn get(&self, name: &str) -> Option<&Json> {
        let Json::Object(members) = self else { return None };
        members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// In lines; short lists of words are one.
    pub fn pretty(&self) -> String {
        let mut text = String::new();
        self.write(0, &mut text);
        text
    }

    fn write(&self, depth: usize, text: &mut String) {
        let line = |depth: usize| format!("\n{}", "  ".repeat(depth));
        match self {
            Json::List(items) if items.iter().any(|item| matches!(item, Json::Object(_))) => {
                for (place, item) in items.iter().enumerate() {
                    text.push(if place == 0 { '[' } else { ',' });
                    text.push_str(&line(depth + 1));
                    item.write(depth + 1, text);
                }
                text.push_str(&line(depth));
                text.push(']');
            }
            Json::List(items) => {
                let words: Vec<String> = items.iter().map(|item| Value::from(item).to_string()).collect();
                text.push_str(&format!("[{}]", words.join(", ")));
            }
            Json::Object(members) => {
                for (place, (name, value)) in members.iter().enumerate() {
                    text.push(if place == 0 { '{' } else { ',' });
                    text.push_str(&line(depth + 1));
                    text.push_str(&format!("{}: ", json!(name)));
                    value.write(depth + 1, text);
                }
                text.push_str(&line(depth));
                text.push('}');
            }
            plain => text.push_str(&Value::from(plain).to_string()),
        }
    }

    /// In what this differs from what was recorded, in kind: the members and their order, the types, nulls, words such as
    /// FULFILLED. Numbers and other texts may be others. A list is compared by its first element.
    pub fn compare(&self, recorded: &Json, at: &str) -> Result<(), String> {
        let same = match (recorded, self) {
            (Json::Object(before), Json::Object(now)) => {
                let names = |members: &[(String, Json)]| {
                    members.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
                };
                if names(before) != names(now) {
                    return Err(format!("{at} has the members {:?}, not {:?}", names(now), names(before)));
                }
                let mut both = before.iter().zip(now);
                return both
                    .try_for_each(|((name, before), (_, now))| now.compare(before, &format!("{at}.{name}")));
            }
            (Json::List(before), Json::List(now)) => match (before.first(), now.first()) {
                (Some(before), Some(now)) => return now.compare(before, &format!("{at}[0]")),
                (before, now) => before.is_none() == now.is_none(),
            },
            (Json::Text(before), Json::Text(now)) => before == now || !is_word(before) && !is_word(now),
            (Json::Number(_), Json::Number(_)) => true,
            (before, now) => before == now,
        };
        if same { Ok(()) } else { Err(format!("{at} is {}, not {}", self.pretty(), recorded.pretty())) }
    }
}

/// A text that programs match on.
fn is_word(text: &str) -> bool {
    text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

impl From<&Json> for Value {
    fn from(heard: &Json) -> Value {
        match heard {
            Json::Null => Value::Null,
            Json::Bool(value) => json!(value),
            Json::Number(value) => json!(value),
            Json::Text(value) => json!(value),
            Json::List(items) => items.iter().map(Value::from).collect(),
            Json::Object(members) => {
                members.iter().map(|(name, value)| (name.clone(), Value::from(value))).collect()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Listener)
    }
}

struct Listener;

impl<'de> Visitor<'de> for Listener {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(Json::Object(object))
    }
}

#[test]
fn what_differs_in_kind_is_found() {
    let recorded = Json::parse(r#"{"b": 1, "a": ["x", "y"], "status": "FULFILLED", "at": null, "ok": true}"#);
    let same = Json::parse(r#"{"b": 2.5, "a": ["z"], "status": "FULFILLED", "at": null, "ok": true}"#);
    assert_eq!(same.compare(&recorded, "it"), Ok(()));
    for (what, other) in [
        ("another order", r#"{"a": ["x"], "b": 1, "status": "FULFILLED", "at": null, "ok": true}"#),
        ("one more", r#"{"b": 1, "a": ["x"], "status": "FULFILLED", "at": null, "ok": true, "c": 1}"#),
        ("another type", r#"{"b": "1", "a": ["x"], "status": "FULFILLED", "at": null, "ok": true}"#),
        ("another element", r#"{"b": 1, "a": [1], "status": "FULFILLED", "at": null, "ok": true}"#),
        ("an empty list", r#"{"b": 1, "a": [], "status": "FULFILLED", "at": null, "ok": true}"#),
        ("another word", r#"{"b": 1, "a": ["x"], "status": "FAILED", "at": null, "ok": true}"#),
        ("no null", r#"{"b": 1, "a": ["x"], "status": "FULFILLED", "at": "now", "ok": true}"#),
        ("another boolean", r#"{"b": 1, "a": ["x"], "status": "FULFILLED", "at": null, "ok": false}"#),
    ] {
        assert!(Json::parse(other).compare(&recorded, "it").is_err(), "{what}");
    }
    assert_eq!(Json::parse(&recorded.pretty()), recorded);
    assert!(recorded.pretty().starts_with("{\n  \"b\": 1,\n  \"a\": [\"x\", \"y\"],\n"));
}
