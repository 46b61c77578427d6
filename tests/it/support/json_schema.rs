//! Whether a value fits a JSON Schema, for the part of the language that tools and APIs are described in. A keyword that is not
//! known here is an error: nothing passes because it was not looked at.

use serde_json::Value;

/// Says nothing that could be wrong.
const REMARKS: [&str; 8] =
    ["description", "title", "default", "format", "pattern", "example", "examples", "x-enum-varnames"];

pub fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else { return Err(format!("no schema: {schema}")) };
    for (keyword, wanted) in keywords {
        let fits = match keyword.as_str() {
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|one| is_of_type(one.as_str().unwrap(), value)),
                one => is_of_type(one.as_str().ok_or("a type is one word, or a list of words")?, value),
            },
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
            "exclusiveMinimum" => value.as_f64().is_none_or(|number| number > wanted.as_f64().unwrap()),
            "exclusiveMaximum" => value.as_f64().is_none_or(|number| number < wanted.as_f64().unwrap()),
            "multipleOf" => value.as_f64().is_none_or(|number| is_whole(number / wanted.as_f64().unwrap())),
            "minLength" => {
                value.as_str().is_none_or(|text| text.chars().count() >= wanted.as_u64().unwrap() as usize)
            }
            "maxLength" => {
                value.as_str().is_none_or(|text| text.chars().count() <= wanted.as_u64().unwrap() as usize)
            }
            "minItems" => {
                value.as_array().is_none_or(|items| items.len() >= wanted.as_u64().unwrap() as usize)
            }
            "required" => {
                let names = wanted.as_array().unwrap();
                value.is_object() && names.iter().all(|name| value.get(name.as_str().unwrap()).is_some())
            }
            "properties" => {
                for (name, inner) in wanted.as_object().unwrap() {
                    if let Some(found) = value.get(name) {
                        check(inner, found).map_err(|why| format!("{name}: {why}"))?;
                    }
                }
                true
            }
            "additionalProperties" if wanted == false => {
                let described = |name: &String| schema["properties"].get(name).is_some();
                value.as_object().is_none_or(|members| members.keys().all(described))
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    check(wanted, item)?;
                }
                true
            }
            "allOf" => {
                for inner in wanted.as_array().unwrap() {
                    check(inner, value)?;
                }
                true
            }
            "anyOf" => fitting(wanted, value) >= 1,
            "oneOf" => fitting(wanted, value) == 1,
            remark if REMARKS.contains(&remark) => true,
            unknown => return Err(format!("the keyword {unknown} is not known here")),
        };
        if !fits {
            return Err(format!("{value} does not fit {keyword}: {wanted}"));
        }
    }
    Ok(())
}

fn fitting(schemas: &Value, value: &Value) -> usize {
    schemas.as_array().unwrap().iter().filter(|schema| check(schema, value).is_ok()).count()
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(is_whole),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

/// Whether a number is whole, but for what a binary fraction cannot tell.
fn is_whole(number: f64) -> bool {
    (number - number.round()).abs() <= f64::EPSILON * number.abs()
}

#[test]
fn misfits_are_found() {
    let schema = serde_json::json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 1 } }, "required": ["n"] });
    assert!(check(&schema, &serde_json::json!({ "n": 2 })).is_ok());
    for wrong in ["{}", "{\"n\": 0}", "{\"n\": 1.5}", "[]"] {
        assert!(check(&schema, &serde_json::from_str(wrong).unwrap()).is_err(), "{wrong}");
    }
    let money =
        serde_json::json!({ "type": ["number", "null"], "exclusiveMinimum": 0, "multipleOf": 0.000001 });
    let fits = |text: &str| check(&money, &serde_json::from_str(text).unwrap()).is_ok();
    assert!(fits("null") && fits("0.82") && fits("999.180001") && fits("1000000"));
    assert!(!fits("0") && !fits("0.8200001") && !fits("\"1\""));
    let strict = serde_json::json!({ "properties": { "n": {} }, "additionalProperties": false });
    assert!(check(&strict, &serde_json::json!({ "n": 1 })).is_ok());
    assert!(check(&strict, &serde_json::json!({ "n": 1, "m": 2 })).is_err());
    assert!(check(&serde_json::json!({ "newKeyword": 1 }), &Value::Null).is_err());
}
