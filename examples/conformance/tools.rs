//! Tools that answer at once, or talk to the client while they run.

use std::time::Duration;

use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::from_json;

/// One red pixel.
pub const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A header without a sound.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const PAUSE: Duration = Duration::from_millis(50);

const PLAIN: [&str; 22] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_reconnection",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

pub fn list() -> Vec<Tool> {
    let tool = |name: &'static str, schema: Value| {
        Tool::new(name, format!("The fixture {name}"), from_json::<JsonObject>(schema))
    };
    let text = |field: &str| json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] });
    let seconds = json!({ "type": "object", "properties": { "seconds": { "type": "number" } } });
    let region = json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    let plain = PLAIN.map(|name| tool(name, json!({ "type": "object" })));
    let tasks = ["failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"]
        .map(|name| tool(name, json!({ "type": "object" })));
    let others = [
        tool("test_sampling", text("prompt")),
        tool("test_elicitation", text("message")),
        tool("test_custom_headers", region),
        tool("json_schema_2020_12_tool", rich_schema()),
        tool("greet", text("name")),
        tool("slow_compute", seconds),
    ];
    plain.into_iter().chain(tasks).chain(others).collect()
}

/// Every keyword that the suite looks for.
fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

pub fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn content(blocks: Value) -> CallToolResult {
    CallToolResult::success(from_json(blocks))
}

pub async fn call(
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let arguments = Value::Object(request.arguments.unwrap_or_default());
    let given = |field: &str| arguments[field].as_str().unwrap_or_default().to_string();
    Ok(match request.name.as_ref() {
        "test_simple_text" => said("This is a simple text response for testing."),
        "test_image_content" => content(json!([{ "type": "image", "data": PNG, "mimeType": "image/png" }])),
        "test_audio_content" => content(json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }])),
        "test_embedded_resource" => content(json!([{ "type": "resource", "resource": {
            "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content.",
        } }])),
        "test_multiple_content_types" => content(json!([
            { "type": "text", "text": "Multiple content types test:" },
            { "type": "image", "data": PNG, "mimeType": "image/png" },
            { "type": "resource", "resource": {
                "uri": "test://mixed-content-resource", "mimeType": "application/json",
                "text": json!({ "test": "data", "value": 123 }).to_string(),
            } },
        ])),
        "test_error_handling" => {
            CallToolResult::error(vec![ContentBlock::text("This tool intentionally returns an error for testing")])
        }
        "test_tool_with_logging" => {
            for words in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                log(&context, words).await?;
                tokio::time::sleep(PAUSE).await;
            }
            said("Logged three messages")
        }
        // Nobody asked for a level, so nothing may be logged.
        "test_logging_tool" => said("Nothing was logged"),
        "test_tool_with_progress" => {
            for progress in [0.0, 50.0, 100.0] {
                if let Some(token) = context.meta.get_progress_token() {
                    let note = ProgressNotificationParam::new(token, progress).with_total(100.0);
                    context.peer.notify_progress(note).await.map_err(lost)?;
                }
                tokio::time::sleep(PAUSE).await;
            }
            said("Done")
        }
        "test_sampling" => sample(&context, &given("prompt")).await?,
        "test_elicitation" => elicit(&context, "User response", &given("message"), json!({
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        }), json!(["username", "email"])).await?,
        "test_elicitation_sep1034_defaults" => {
            elicit(&context, "Elicitation completed", "Please review", json!({
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
                "verified": { "type": "boolean", "default": true },
            }), json!([])).await?
        }
        "test_elicitation_sep1330_enums" => {
            elicit(&context, "Elicitation completed", "Please choose", enums(), json!([])).await?
        }
        "test_missing_capability" if context.client_capabilities().is_none_or(|known| known.sampling.is_none()) => {
            let wanted = from_json::<ClientCapabilities>(json!({ "sampling": {} }));
            return Err(ErrorData::missing_required_client_capability(wanted));
        }
        "test_missing_capability" => said("The client can sample"),
        "test_streaming_elicitation" => {
            if let Some(token) = context.meta.get_progress_token() {
                let note = ProgressNotificationParam::new(token, 1.0);
                context.peer.notify_progress(note).await.map_err(lost)?;
            }
            said("Nothing was asked")
        }
        "test_reconnection" => {
            tokio::time::sleep(PAUSE).await;
            said("Reconnection test completed")
        }
        "test_custom_headers" => said(format!("Region: {}", given("region"))),
        "json_schema_2020_12_tool" => said("The schema is what counts"),
        "greet" => said(format!("Hello, {}!", given("name"))),
        unknown => return Err(ErrorData::invalid_params(format!("Unknown tool: {unknown}"), None)),
    })
}

fn lost(error: rmcp::ServiceError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

#[allow(deprecated, reason = "the suite asks for it")]
async fn log(context: &RequestContext<RoleServer>, words: &str) -> Result<(), ErrorData> {
    let note = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(words));
    context.peer.notify_logging_message(note).await.map_err(lost)
}

#[allow(deprecated, reason = "the suite asks for it")]
async fn sample(context: &RequestContext<RoleServer>, prompt: &str) -> Result<CallToolResult, ErrorData> {
    let ask = from_json::<CreateMessageRequestParams>(json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }],
        "maxTokens": 100,
    }));
    let answer = context.peer.create_message(ask).await.map_err(lost)?;
    let answer = serde_json::to_value(answer).unwrap_or_default();
    let text = answer["content"]["text"].as_str().or(answer["content"][0]["text"].as_str());
    Ok(said(format!("LLM response: {}", text.unwrap_or_default())))
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    head: &str,
    message: &str,
    properties: Value,
    required: Value,
) -> Result<CallToolResult, ErrorData> {
    let ask = from_json::<ElicitRequestParams>(json!({
        "mode": "form",
        "message": message,
        "requestedSchema": { "type": "object", "properties": properties, "required": required },
    }));
    let answer = context.peer.create_elicitation(ask).await.map_err(lost)?;
    let answer = serde_json::to_value(answer).unwrap_or_default();
    let action = answer["action"].as_str().unwrap_or_default();
    Ok(said(format!("{head}: action={action}, content={}", answer["content"])))
}

fn enums() -> Value {
    let options = json!(["option1", "option2", "option3"]);
    let titled = |word: &str| -> Value {
        ["First", "Second", "Third"]
            .iter()
            .zip(1..)
            .map(|(title, n)| json!({ "const": format!("value{n}"), "title": format!("{title} {word}") }))
            .collect()
    };
    json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
    })
}
