//! The documentation page, made from the OpenAPI description: readable without scripts and without the internet.

use askama::Template;
use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use utoipa::openapi::OpenApi;

use crate::error;
use crate::http::kit::State;
use crate::http::kit::auth::Anyone;
use crate::http::kit::html::guard;

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage {
    title: String,
    introduction: String,
    server: String,
    operations: Vec<Operation>,
    schemas: Vec<Schema>,
    problems: Vec<Explained>,
}

/// A code that a problem can have.
struct Explained {
    anchor: String,
    code: &'static str,
    what_to_do: String,
}

struct Operation {
    id: String,
    method: String,
    path: String,
    summary: String,
    description: String,
    inputs: Vec<Field>,
    responses: Vec<Reply>,
}

struct Field {
    name: String,
    place: String,
    kind: String,
    required: bool,
    about: String,
}

struct Reply {
    status: String,
    about: String,
    schema: Option<String>,
}

struct Schema {
    name: String,
    about: String,
    words: String,
    fields: Vec<Field>,
}

pub async fn show(_: Anyone, state: State) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    let mut response = (headers, state.texts.docs_page.clone()).into_response();
    guard(response.headers_mut());
    response
}

/// Written once, at start. A description we made ourselves does not fail to render; if it did, the page says so.
pub fn render(api: &OpenApi) -> Bytes {
    let described = serde_json::to_value(api).unwrap_or_default();
    let page = DocsPage {
        title: text(&described["info"]["title"]),
        introduction: prose(&text(&described["info"]["description"])),
        server: text(&described["servers"][0]["url"]),
        operations: operations(&described),
        schemas: schemas(&described),
        problems: problems(),
    };
    page.render().unwrap_or_else(|error| format!("The documentation cannot be shown: {error}")).into()
}

fn problems() -> Vec<Explained> {
    let explained = |&(code, what_to_do): &(&'static str, &str)| Explained {
        anchor: error::anchor(code),
        code,
        what_to_do: prose(what_to_do),
    };
    error::CODES.iter().map(explained).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

/// Text between backticks becomes code; everything is escaped.
fn prose(text: &str) -> String {
    let mut html = String::new();
    for (place, part) in text.split('`').enumerate() {
        let escaped = part.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        html.push_str(&if place % 2 == 1 { format!("<code>{escaped}</code>") } else { escaped });
    }
    html
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn operations(api: &Value) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, item) in members(&api["paths"]) {
        for (method, operation) in members(item) {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let mut inputs: Vec<Field> = parameters
                .map(|p| Field {
                    name: text(&p["name"]),
                    place: text(&p["in"]),
                    kind: kind(&p["schema"]),
                    required: p["required"] == true,
                    about: prose(&text(&p["description"])),
                })
                .collect();
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            if let Some(name) = schema_name(body) {
                inputs.extend(fields_of(&api["components"]["schemas"][&name], "body"));
            }
            let responses = members(&operation["responses"]).map(|(status, response)| Reply {
                status: status.clone(),
                about: prose(&text(&response["description"])),
                schema: members(&response["content"])
                    .find_map(|(_, content)| schema_name(&content["schema"])),
            });
            found.push(Operation {
                id: text(&operation["operationId"]),
                method: method.to_uppercase(),
                path: path.clone(),
                summary: text(&operation["summary"]),
                description: prose(&text(&operation["description"])),
                inputs,
                responses: responses.collect(),
            });
        }
    }
    found
}

fn schemas(api: &Value) -> Vec<Schema> {
    let described = members(&api["components"]["schemas"]);
    let listed = described.map(|(name, schema)| Schema {
        name: name.clone(),
        about: prose(&text(&schema["description"])),
        words: words(schema),
        fields: fields_of(schema, ""),
    });
    listed.collect()
}

fn fields_of(schema: &Value, place: &str) -> Vec<Field> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let described = members(&schema["properties"]);
    let listed = described.map(|(name, field)| Field {
        name: name.clone(),
        place: place.into(),
        kind: kind(field),
        required: required.contains(&name.as_str()),
        about: prose(&text(&field["description"])),
    });
    listed.collect()
}

fn schema_name(schema: &Value) -> Option<String> {
    schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()).map(str::to_string)
}

fn words(schema: &Value) -> String {
    let words: Vec<&str> =
        schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.join(", ")
}

/// A schema's type in a few words: `string`, `number or null`, `list of PlanView`.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema_name(schema) {
        return name;
    }
    let choices = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(choices) = choices {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let listed = words(schema);
    if !listed.is_empty() {
        return listed;
    }
    let named = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        single => text(single),
    };
    if named == "array" { format!("list of {}", kind(&schema["items"])) } else { named }
}
