//! Examples of what a description describes: the ones that it gives, put together for whole bodies.

use serde_json::{Map, Value, json};

/// An example of this schema. `api` is the description that it refers to.
pub fn of(api: &Value, schema: &Value) -> Value {
    if let Some(path) = schema["$ref"].as_str() {
        let name = path.rsplit('/').next().unwrap_or_default();
        return of(api, &api["components"]["schemas"][name]);
    }
    let given = ["example", "default", "const"].iter().find_map(|word| schema.get(word));
    let first = ["examples", "enum"].iter().find_map(|word| schema[word].get(0));
    if let Some(value) = given.or(first) {
        return value.clone();
    }
    let choices = ["oneOf", "anyOf", "allOf"].iter().find_map(|word| schema[word].as_array());
    if let Some(choice) = choices.and_then(|all| all.iter().find(|one| one["type"] != "null")) {
        return of(api, choice);
    }
    match kind(schema) {
        "object" => members(api, schema, |_| true),
        "array" => json!([of(api, &schema["items"])]),
        "number" | "integer" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "boolean" => json!(true),
        "string" if schema["format"] == "date-time" => json!("2026-01-31T12:00:00.000Z"),
        "string" => json!("…"),
        _ => Value::Null,
    }
}

/// An example of an object, with the members that are wanted.
pub fn members(api: &Value, schema: &Value, wanted: impl Fn(&str) -> bool) -> Value {
    let all = schema["properties"].as_object().into_iter().flatten();
    let made: Map<String, Value> =
        all.filter(|(name, _)| wanted(name)).map(|(name, field)| (name.clone(), of(api, field))).collect();
    Value::Object(made)
}

/// The type of a schema, whether or not it may also be null.
fn kind(schema: &Value) -> &str {
    let listed = schema["type"].as_array().into_iter().flatten().filter_map(Value::as_str);
    listed.into_iter().find(|kind| *kind != "null").or(schema["type"].as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_put_together() {
        let api = json!({ "components": { "schemas": {
            "Word": { "type": "string", "enum": ["ONE", "TWO"] },
            "Plan": { "type": "object", "properties": {
                "name": { "type": "string", "example": "Japan" },
                "word": { "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Word" }] },
                "days": { "type": ["integer", "null"], "minimum": 7 },
                "at": { "type": "string", "format": "date-time" },
            } },
        } } });
        let list = json!({ "type": "array", "items": { "$ref": "#/components/schemas/Plan" } });
        let plan = json!({ "name": "Japan", "word": "ONE", "days": 7, "at": "2026-01-31T12:00:00.000Z" });
        assert_eq!(of(&api, &list), json!([plan]));
        let some = members(&api, &api["components"]["schemas"]["Plan"], |name| name == "days");
        assert_eq!(some, json!({ "days": 7 }));
    }
}
