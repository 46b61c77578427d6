//! The members of a JSON object, each as it was written, and the names that are there twice. What is wrong with a text that
//! is no JSON object is said in plain words.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// The most doubled names that are kept, so that a long list of them costs little.
const MOST_DOUBLED: usize = 20;

/// Of a name that is there twice, the last value is kept.
#[derive(Default)]
pub struct Members<'a> {
    pub values: HashMap<String, &'a RawValue>,
    pub doubled: Vec<String>,
}

impl<'a> Members<'a> {
    /// Reads a body, or says what is wrong with it.
    pub fn read(json: &'a [u8]) -> Result<Members<'a>, String> {
        serde_json::from_slice(json).map_err(|error| match error.classify() {
            _ if json.trim_ascii().is_empty() => "The body is empty; send a JSON object.".into(),
            // Whatever a member is, it is kept as it was written: only the whole can be of the wrong kind.
            Category::Data => "The body must be a JSON object, in braces: { … }.".into(),
            Category::Syntax | Category::Eof | Category::Io => {
                format!("The body is not valid JSON: {}.", mistake(&error))
            }
        })
    }
}

/// What is wrong with a text that is no JSON, and where.
pub fn mistake(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    if error.classify() == Category::Eof {
        return format!("it ends too early, at line {line}, column {column}");
    }
    let told = error.to_string();
    let what = told.split(" at line ").next().unwrap_or_default();
    let what = match what {
        "expected value" => "a value is expected",
        "expected ident" => "a bare word must be true, false or null",
        "key must be a string" => "the name of a member must be in double quotes",
        "trailing characters" => "something follows after its end",
        "recursion limit exceeded" => "it is nested too deeply",
        other => other,
    };
    format!("{what}, at line {line}, column {column}")
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Members::default();
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            if let Some(before) = members.values.get_mut(&name) {
                *before = value;
                if members.doubled.len() < MOST_DOUBLED && !members.doubled.contains(&name) {
                    members.doubled.push(name);
                }
            } else {
                members.values.insert(name, value);
            }
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubled_name_is_noticed_once_and_its_last_value_kept() {
        let members = Members::read(br#"{"a": 1, "b": 2, "\u0061": 3, "a": {"b": 1, "b": 2}}"#).unwrap();
        assert_eq!(members.doubled, ["a"]);
        assert_eq!((members.values["a"].get(), members.values["b"].get()), (r#"{"b": 1, "b": 2}"#, "2"));
        assert!(Members::read(b"{}").unwrap().doubled.is_empty());
    }

    #[test]
    fn what_is_no_object_is_told_in_plain_words() {
        for (body, told) in [
            ("", "The body is empty; send a JSON object."),
            (" \n", "The body is empty; send a JSON object."),
            ("[]", "The body must be a JSON object, in braces: { … }."),
            ("\"a\"", "The body must be a JSON object, in braces: { … }."),
            ("null", "The body must be a JSON object, in braces: { … }."),
            ("{\"a\": 1", "The body is not valid JSON: it ends too early, at line 1, column 7."),
            ("{\"a\": }", "The body is not valid JSON: a value is expected, at line 1, column 7."),
            (
                "{a: 1}",
                "The body is not valid JSON: the name of a member must be in double quotes, at line 1, column 2.",
            ),
            ("{} {}", "The body is not valid JSON: something follows after its end, at line 1, column 4."),
        ] {
            assert_eq!(Members::read(body.as_bytes()).err().as_deref(), Some(told), "{body}");
        }
    }
}
