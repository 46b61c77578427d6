//! The fields of bodies and the parameters of operations, as the documentation lists them.

use serde_json::Value;

pub struct Field {
    pub name: String,
    /// `path`, `query`, `header` or `body`; empty in an answer.
    pub place: String,
    /// HTML: it may lead to a type.
    pub kind: String,
    pub required: bool,
    /// HTML.
    pub about: String,
    pub example: String,
}

/// Method, path and description of an operation.
pub fn operation<'a>(api: &'a Value, id: &str) -> Option<(&'a str, &'a str, &'a Value)> {
    let mut all = members(&api["paths"]).flat_map(|(path, item)| {
        members(item).map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    });
    all.find(|(_, _, operation)| operation["operationId"] == id)
}

/// All that an operation takes.
pub fn inputs(api: &Value, operation: &Value) -> Vec<Field> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let parameter = |given: &Value| {
        let schema = &given["schema"];
        let example = given.get("example").or(schema.get("example"));
        Field {
            name: text(&given["name"]),
            place: text(&given["in"]),
            kind: kind(schema),
            required: given["required"] == true,
            about: about(given, schema),
            example: example.map(plain).unwrap_or_default(),
        }
    };
    let mut inputs: Vec<Field> = parameters.map(parameter).collect();
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if let Some(name) = name(body) {
        inputs.extend(of(&api["components"]["schemas"][&name], "body"));
    }
    inputs
}

/// The members of an object.
pub fn of(schema: &Value, place: &str) -> Vec<Field> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let described = members(&schema["properties"]);
    let listed = described.map(|(name, field)| Field {
        name: name.clone(),
        place: place.into(),
        kind: kind(field),
        required: required.contains(&name.as_str()),
        about: about(field, field),
        example: String::new(),
    });
    listed.collect()
}

/// What a field means, and what it may hold.
fn about(described: &Value, schema: &Value) -> String {
    let choices = described["oneOf"].as_array().into_iter().flatten();
    let mut told = [described].into_iter().chain(choices).map(|one| text(&one["description"]));
    let meaning = prose(&told.find(|text| !text.is_empty()).unwrap_or_default());
    match limits(schema) {
        limits if limits.is_empty() => meaning,
        limits if meaning.is_empty() => limits,
        limits => format!("{}. {limits}", meaning.trim_end_matches('.')),
    }
}

/// `From 1 to 100. Default: 20.`
fn limits(schema: &Value) -> String {
    let size = match (schema.get("minimum"), schema.get("maximum")) {
        (Some(least), Some(most)) => Some(format!("From {least} to {most}.")),
        (Some(least), None) => Some(format!("At least {least}.")),
        (None, Some(most)) => Some(format!("At most {most}.")),
        (None, None) => None,
    };
    let length = schema.get("maxLength").map(|most| format!("At most {most} characters."));
    let default = schema.get("default").filter(|value| !value.is_null());
    let default = default.map(|value| format!("Default: <code>{}</code>.", escaped(&plain(value))));
    [size, length, default].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The name of the type that a schema refers to.
pub fn name(schema: &Value) -> Option<String> {
    schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()).map(str::to_string)
}

/// The words that an enum allows.
pub fn words(schema: &Value) -> String {
    let words: Vec<&str> =
        schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.join(", ")
}

/// A schema's type in a few words: `string`, `number or null`, `list of PlanView`.
fn kind(schema: &Value) -> String {
    if let Some(name) = name(schema) {
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    let choices = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(choices) = choices {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let listed = words(schema);
    if !listed.is_empty() {
        return escaped(&listed);
    }
    let named = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        single => text(single),
    };
    if named == "array" { format!("list of {}", kind(&schema["items"])) } else { named }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

pub fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text between backticks becomes code; everything is escaped.
pub fn prose(text: &str) -> String {
    let mut html = String::new();
    for (place, part) in text.split('`').enumerate() {
        let part = escaped(part);
        html.push_str(&if place % 2 == 1 { format!("<code>{part}</code>") } else { part });
    }
    html
}

/// Paragraphs, and lists of lines that begin with `- `.
pub fn blocks(text: &str) -> String {
    let block = |text: &str| match text.strip_prefix("- ") {
        Some(list) => {
            let items = list.split("\n- ").map(|item| format!("<li>{}</li>", prose(item)));
            format!("<ul>{}</ul>", items.collect::<String>())
        }
        None => format!("<p>{}</p>", prose(text)),
    };
    text.split("\n\n").filter(|text| !text.is_empty()).map(block).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_says_what_it_may_hold() {
        let limit = json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 20, "description": "Page size" });
        assert_eq!(about(&limit, &limit), "Page size. From 1 to 100. Default: <code>20</code>.");
        assert_eq!(about(&json!({}), &json!({ "maxLength": 128 })), "At most 128 characters.");
        assert_eq!(
            about(&json!({ "description": "As `<b>` is." }), &json!({})),
            "As <code>&lt;b&gt;</code> is."
        );
    }

    #[test]
    fn a_description_has_paragraphs_and_lists() {
        let html = "<p>Modes:</p><ul><li><code>ok</code>: 200\n  at once</li><li>b</li></ul><p>Shared.</p>";
        assert_eq!(blocks("Modes:\n\n- `ok`: 200\n  at once\n- b\n\nShared."), html);
    }

    #[test]
    fn a_type_is_named_in_a_few_words() {
        let plan = json!({ "$ref": "#/components/schemas/Plan" });
        assert_eq!(kind(&json!({ "type": "array", "items": plan })), "list of <a href=\"#Plan\">Plan</a>");
        assert_eq!(kind(&json!({ "type": ["string", "null"] })), "string or null");
        assert_eq!(
            kind(&json!({ "oneOf": [{ "type": "null" }, plan] })),
            "null or <a href=\"#Plan\">Plan</a>"
        );
        assert_eq!(kind(&json!({ "type": "string", "enum": ["A", "B"] })), "A, B");
    }
}
