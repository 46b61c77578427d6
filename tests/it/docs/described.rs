//! The descriptions that are served: every body and every parameter has an example, which fits its own schema, and no
//! example is of something that is not there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::story::{PROBLEM, file};
use crate::support::harness::{Db, Gateway, reply, run};
use crate::support::json_schema;
use crate::support::openapi::{fits, inlined, operations};

const DESCRIPTIONS: [(&str, &str); 4] = [
    ("partner", "/api/b2b/v1/openapi.json"),
    ("agentic", "/api/agentic/openapi.json"),
    ("consumer", "/api/consumer/openapi.json"),
    ("sandbox", "/sandbox/openapi.json"),
];
const JSON: &str = "application/json";

async fn description(gateway: &Gateway, path: &str) -> Value {
    reply(gateway.client.get(format!("{}{path}", gateway.base))).await.expect(200)
}

/// What an operation takes and answers in JSON, problems apart: `request` and each status.
fn bodies(operation: &Value) -> BTreeMap<String, &Value> {
    let request = [("request".to_string(), &operation["requestBody"])];
    let answers = operation["responses"].as_object().unwrap().iter();
    let all = request.into_iter().chain(answers.map(|(status, answer)| (status.clone(), answer)));
    let content = all.map(|(name, body)| (name, &body["content"][JSON]));
    content.filter(|(_, content)| content.is_object()).collect()
}

fn check(api: &Value, schema: &Value, example: &Value, at: &str) {
    if let Err(why) = json_schema::check(&inlined(api, schema), example) {
        panic!("{at}: the example does not fit: {why}");
    }
}

#[test]
fn every_body_has_its_recorded_example() {
    run(Db::Sqlite, vec![], async |gateway| {
        for (name, path) in DESCRIPTIONS {
            let api = description(gateway, path).await;
            let recorded = std::fs::read_to_string(file(name)).unwrap();
            let mut recorded: BTreeMap<String, Value> = serde_json::from_str(&recorded).unwrap();
            let problem = recorded.remove(PROBLEM);
            assert_eq!(problem.is_some(), name == "partner", "{name}");
            for (_, _, operation) in operations(&api) {
                let id = operation["operationId"].as_str().unwrap();
                let entry = recorded.remove(id).unwrap_or_else(|| panic!("{name} has no example of {id}"));
                let bodies = bodies(operation);
                let wanted: BTreeSet<&String> = bodies.keys().collect();
                let found: BTreeSet<&String> = entry.as_object().unwrap().keys().collect();
                assert_eq!(found, wanted, "{name}: the examples of {id}");
                for (body, content) in &bodies {
                    let at = format!("{id} {body}");
                    assert_eq!(content["example"], entry[body], "{at}: record, then build again");
                    fits(&api, &content["schema"], &content["example"], &at);
                    check(&api, &content["schema"], &content["example"], &at);
                }
            }
            let left: Vec<&String> = recorded.keys().collect();
            assert!(left.is_empty(), "{name} has examples of what is not there: {left:?}");
        }
    });
}

#[test]
fn a_problem_is_shown_where_it_can_come() {
    run(Db::Sqlite, vec![], async |gateway| {
        for (name, path) in DESCRIPTIONS {
            let api = description(gateway, path).await;
            let schema = &api["components"]["schemas"][PROBLEM];
            let problem = &schema["examples"][0];
            assert_eq!(problem["code"], "INSUFFICIENT_BALANCE", "{name}");
            fits(&api, schema, problem, name);
            check(&api, schema, problem, name);
        }
        let api = description(gateway, DESCRIPTIONS[0].1).await;
        for (method, path, operation) in operations(&api) {
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let shown = &answer["content"]["application/problem+json"]["example"];
                assert_eq!(
                    shown["code"] == "INSUFFICIENT_BALANCE",
                    status == "402",
                    "{method} {path} {status}"
                );
            }
        }
    });
}

#[test]
fn every_parameter_has_an_example() {
    run(Db::Sqlite, vec![], async |gateway| {
        for (_, path) in DESCRIPTIONS {
            let api = description(gateway, path).await;
            for (method, path, operation) in operations(&api) {
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                for parameter in parameters.filter(|one| one["in"] == "path" || one["in"] == "query") {
                    let at = format!("{method} {path} {}", parameter["name"]);
                    assert!(!parameter["example"].is_null(), "{at} has no example");
                    check(&api, &parameter["schema"], &parameter["example"], &at);
                }
            }
        }
    });
}
