//! The partner API as a Postman collection: ready to send once key and secret are filled in. Each request keeps what the
//! next ones need, such as the id of the order, in a variable.

use serde_json::{Value, json};

use super::examples::{Examples, REQUEST};
use super::openapi::{PARTNER, file};
use super::{fields, story};
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::{State, Written};

const SCHEMA: &str = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";
const ABOUT: &str = "Fill in the variables apiKey and apiSecret, then send the requests from top to bottom. \
    An order keeps its id and ICCID for the requests after it. Every order and top-up that is sent buys something: its \
    partnerRefId is a new one each time.";

/// What an operation keeps for later ones: a variable, and a path into the answer.
const KEPT: &[(&str, &str, &str)] = &[
    ("openDeposit", "invoiceId", "invoiceId"),
    ("placeOrder", "orderId", "order.id"),
    ("placeOrder", "iccid", "order.iccid"),
    ("listTopUpPlans", "topUpCode", "plans[0].packageCode"),
    ("listEvents", "eventId", "nextAfter"),
    ("createWebhook", "webhookId", "webhook.id"),
    ("testWebhook", "deliveryId", "delivery.id"),
];

pub async fn collection(_: Anyone, state: State) -> Answer {
    file(&state.texts.postman).await
}

/// From the description of the partner API.
pub fn render(api: Written) -> Written {
    Written::later(move || write(&serde_json::from_slice(api.now()).unwrap_or_default()).into())
}

fn write(api: &Value) -> String {
    let variable = |name: &str, value: &str| json!({ "key": name, "value": value });
    let server = api["servers"][0]["url"].as_str().unwrap_or_default();
    let mut variables = vec![variable("baseUrl", server), variable("apiKey", ""), variable("apiSecret", "")];
    variables.extend(KEPT.iter().map(|(_, name, _)| variable(name, "")));
    let collection = json!({
        "info": { "name": api["info"]["title"], "description": ABOUT, "schema": SCHEMA },
        "variable": variables,
        "item": sequence().filter_map(|id| item(api, PARTNER.examples, id)).collect::<Vec<_>>(),
    });
    collection.to_string()
}

/// The operations in the order of their story. What was topped up cannot be cancelled, so a cancel has an order of its own.
fn sequence() -> impl Iterator<Item = &'static str> {
    let before = |id| if id == "cancelOrder" { Some("placeOrder") } else { None };
    story::PARTNER.operations().flat_map(move |id| before(id).into_iter().chain([id]))
}

fn item(api: &Value, examples: &Examples, id: &str) -> Option<Value> {
    let (method, path, operation) = fields::operation(api, id)?;
    let body = examples.text(id, REQUEST).map(|text| with_variables(id, text));
    let mut request = json!({
        "method": method.to_uppercase(),
        "description": operation["description"],
        "header": headers(body.is_some()),
        "url": url(path, operation),
    });
    if let Some(body) = body {
        request["body"] = json!({ "mode": "raw", "raw": body });
    }
    Some(json!({
        "name": operation["summary"],
        "request": request,
        "event": [{ "listen": "test", "script": { "type": "text/javascript", "exec": script(id, operation) } }],
    }))
}

/// Postman has room for one key in its own way of authentication; ours has two headers.
fn headers(with_body: bool) -> Value {
    let mut all = vec![("X-B2B-Key", "{{apiKey}}"), ("X-B2B-Secret", "{{apiSecret}}")];
    if with_body {
        all.push(("Content-Type", "application/json"));
    }
    all.into_iter().map(|(key, value)| json!({ "key": key, "value": value })).collect()
}

fn url(path: &str, operation: &Value) -> Value {
    let of_variable = |part: &str| match part {
        "{id}" => "{{orderId}}".to_string(),
        "{iccid}" => "{{iccid}}".to_string(),
        "{invoiceId}" => "{{invoiceId}}".to_string(),
        "{webhookId}" => "{{webhookId}}".to_string(),
        "{deliveryId}" => "{{deliveryId}}".to_string(),
        fixed => fixed.to_string(),
    };
    let parts: Vec<String> = path.trim_start_matches('/').split('/').map(of_variable).collect();
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let query: Vec<Value> = parameters
        .filter(|parameter| parameter["in"] == "query")
        .map(|parameter| {
            let given = parameter.get("example").or(parameter["schema"].get("example"));
            json!({
                "key": parameter["name"],
                "value": given.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_string)),
                "description": parameter["description"],
                "disabled": !parameter["name"].as_str().is_some_and(|name| story::PARTNER.sampled.contains(&name)),
            })
        })
        .collect();
    let used: Vec<String> = query
        .iter()
        .filter(|one| one["disabled"] == false)
        .map(|one| {
            format!(
                "{}={}",
                one["key"].as_str().unwrap_or_default(),
                one["value"].as_str().unwrap_or_default()
            )
        })
        .collect();
    let raw = format!("{{{{baseUrl}}}}/{}", parts.join("/"));
    let raw = if used.is_empty() { raw } else { format!("{raw}?{}", used.join("&")) };
    json!({ "raw": raw, "host": ["{{baseUrl}}"], "path": parts, "query": query })
}

/// A recorded body, with what earlier answers told and a reference of its own for everything that is bought.
fn with_variables(id: &str, body: String) -> String {
    let recorded: Value = serde_json::from_str(&body).unwrap_or_default();
    let of_topup = ("packageCode", "{{topUpCode}}");
    let variables = [("partnerRefId", "postman-{{$guid}}"), ("invoiceId", "{{invoiceId}}")];
    let of_replay = ("after", "{{eventId}}");
    let variables = variables.into_iter().chain((id == "topUp").then_some(of_topup));
    let variables = variables.chain((id == "replayWebhook").then_some(of_replay));
    variables
        .filter_map(|(member, variable)| Some((recorded.get(member)?, variable)))
        .fold(body, |body, (value, variable)| body.replace(&value.to_string(), &json!(variable).to_string()))
}

/// What Postman runs after the answer: it must be one that is described as good.
fn script(id: &str, operation: &Value) -> Vec<String> {
    let good = operation["responses"].as_object().into_iter().flatten().map(|(status, _)| status.as_str());
    let good = good.filter(|status| match id {
        // Where a supplier takes eSIMs back at once, there is no cancel to withdraw.
        "withdrawCancel" => status.starts_with('2') || *status == "409",
        // A collection that is run in one go comes within a second of the test.
        "redeliver" => status.starts_with('2') || *status == "429",
        _ => status.starts_with('2'),
    });
    let good: Vec<&str> = good.collect();
    let mut lines = vec![format!(
        "pm.test(\"succeeds\", () => pm.expect(pm.response.code).to.be.oneOf([{}]));",
        good.join(", ")
    )];
    for (_, name, path) in KEPT.iter().filter(|(keeper, ..)| *keeper == id) {
        lines.push(format!(
            "if (pm.response.code < 300) pm.collectionVariables.set(\"{name}\", pm.response.json().{path});"
        ));
    }
    lines
}
