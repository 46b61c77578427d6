//! What an OpenAPI file describes, and whether an answer fits it.

use serde_json::{Map, Value};

pub fn operations(api: &Value) -> Vec<(String, String, &Value)> {
    let mut found = Vec::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            found.push((method.clone(), path.clone(), operation));
        }
    }
    found
}

/// A schema with all that it refers to in it.
pub fn inlined(api: &Value, schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let named = keywords.get("$ref").and_then(|path| path.as_str()?.rsplit('/').next());
            let mut all = match named.map(|name| inlined(api, &api["components"]["schemas"][name])) {
                Some(Value::Object(all)) => all,
                _ => Map::new(),
            };
            let own = keywords.iter().filter(|(keyword, _)| *keyword != "$ref");
            all.extend(own.map(|(keyword, inner)| (keyword.clone(), inlined(api, inner))));
            all.into()
        }
        Value::Array(schemas) => schemas.iter().map(|schema| inlined(api, schema)).collect(),
        other => other.clone(),
    }
}

/// A small check: objects have the described fields and no others, required ones are there, types agree.
pub fn fits(api: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return fits(api, &api["components"]["schemas"][name], value, at);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let choice = choices.iter().find(|choice| (choice["type"] == "null") == value.is_null());
        return fits(api, choice.unwrap_or_else(|| panic!("{at}: {value} fits none")), value, at);
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().map(|t| t.as_str().unwrap()).collect(),
        single => vec![single.as_str().unwrap_or_else(|| panic!("{at}: no type in {schema}"))],
    };
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if types.contains(&"integer") && number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(types.contains(&is), "{at}: {value} is not {types:?}");
    match value {
        Value::Array(items) => items.iter().for_each(|item| fits(api, &schema["items"], item, at)),
        // One without members is described elsewhere.
        Value::Object(_) if !schema["properties"].is_object() => {}
        Value::Object(fields) => {
            for (name, field) in fields {
                let described = &schema["properties"][name];
                assert!(described.is_object(), "{at}: {name} is not described");
                fits(api, described, field, &format!("{at}.{name}"));
            }
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(fields.contains_key(required.as_str().unwrap()), "{at}: {required} is missing");
            }
        }
        Value::String(text) => {
            if let Some(words) = schema["enum"].as_array() {
                assert!(words.contains(value), "{at}: {text} is not a word of it");
            }
        }
        _ => {}
    }
}
