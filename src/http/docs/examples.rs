//! Bodies as the gateway takes and sends them. They are recorded from a running one: `tests/it/docs/` plays a story for each
//! API, compares what it hears with these files, and says how to record them anew.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Components, Content, RefOr, Schema};

use crate::http::kit::problem::Problem;

/// What an operation takes.
pub const REQUEST: &str = "request";
const JSON: &str = "application/json";
const PROBLEM_JSON: &str = "application/problem+json";

/// The examples of one API, as they are written in its file.
pub struct Examples {
    /// By operation, then `request` or the status of the answer.
    bodies: BTreeMap<String, BTreeMap<String, Box<RawValue>>>,
    /// Of an account without enough money.
    problem: Option<Box<RawValue>>,
}

impl Examples {
    /// From the text of a file. What cannot be read is left out: a test misses it.
    pub fn read(file: &str) -> Examples {
        let mut entries: BTreeMap<String, Box<RawValue>> = serde_json::from_str(file).unwrap_or_default();
        let problem = entries.remove(&*Problem::name());
        let of_operation =
            |(id, text): (String, Box<RawValue>)| Some((id, serde_json::from_str(text.get()).ok()?));
        Examples { bodies: entries.into_iter().filter_map(of_operation).collect(), problem }
    }

    /// A body as it is written in the file: its members have the order in which the gateway sends them, which a `Value`
    /// forgets.
    pub fn text(&self, operation: &str, body: &str) -> Option<String> {
        Some(flush_left(self.bodies.get(operation)?.get(body)?.get()))
    }

    /// The problem, as it is written in the file.
    pub fn problem_text(&self) -> String {
        self.problem.as_ref().map(|text| flush_left(text.get())).unwrap_or_default()
    }

    /// Shows what an operation takes and what it answers.
    pub fn add(&self, operation: &mut Operation) {
        let recorded = operation.operation_id.as_ref().and_then(|id| self.bodies.get(id));
        let problem = self.problem.as_deref().and_then(value);
        let example = |body: &str| recorded.and_then(|bodies| bodies.get(body)).and_then(|text| value(text));
        if let Some(RefOr::T(request)) = &mut operation.request_body {
            show(request.content.get_mut(JSON), example(REQUEST));
        }
        for (status, response) in &mut operation.responses.responses {
            let RefOr::T(response) = response else { continue };
            show(response.content.get_mut(JSON), example(status));
            let fits = |problem: &&Value| problem["status"].as_u64() == status.parse().ok();
            show(response.content.get_mut(PROBLEM_JSON), problem.as_ref().filter(fits).cloned());
        }
    }

    /// Shows what a problem looks like.
    pub fn add_problem(&self, components: &mut Components) {
        let schema = components.schemas.get_mut(&*Problem::name());
        if let (Some(RefOr::T(Schema::Object(schema))), Some(problem)) =
            (schema, self.problem.as_deref().and_then(value))
        {
            schema.examples = vec![problem];
        }
    }
}

fn show(content: Option<&mut RefOr<Content>>, example: Option<Value>) {
    if let (Some(RefOr::T(content)), Some(example)) = (content, example) {
        content.example = Some(example);
    }
}

fn value(text: &RawValue) -> Option<Value> {
    serde_json::from_str(text.get()).ok()
}

/// Lines that begin as far to the left as they can; the first one does already.
fn flush_left(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let least = text.lines().skip(1).map(indent).min().unwrap_or_default();
    let lines =
        text.lines().enumerate().map(|(number, line)| if number == 0 { line } else { &line[least..] });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
  "placeOrder": {
    "request": {
      "z": [
        1
      ],
      "a": null
    },
    "200": 7
  },
  "Problem": { "status": 402 }
}"#;

    #[test]
    fn bodies_are_as_in_the_file() {
        let examples = Examples::read(FILE);
        let text = examples.text("placeOrder", REQUEST).unwrap();
        assert_eq!(text, "{\n  \"z\": [\n    1\n  ],\n  \"a\": null\n}");
        assert_eq!(examples.text("placeOrder", "200").as_deref(), Some("7"));
        assert_eq!(examples.text("placeOrder", "202"), None);
        assert_eq!(examples.text("Problem", "status"), None);
        assert_eq!(examples.problem_text(), "{ \"status\": 402 }");
        assert!(Examples::read("no file").bodies.is_empty());
    }
}
