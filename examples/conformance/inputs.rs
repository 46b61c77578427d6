//! Tools and a prompt that need something from the client before they can answer (`input_required`). What they remember
//! between rounds travels with the client, so it is signed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use crate::from_json;
use crate::tools::said;

const KEY: &[u8] = b"a key for fixtures";

fn tag(state: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, KEY);
    URL_SAFE_NO_PAD.encode(hmac::sign(&key, state.as_bytes()))
}

fn sealed(state: &str) -> String {
    format!("{state}.{}", tag(state))
}

/// What was remembered; whoever changed it is refused.
fn opened(sealed: Option<&str>) -> Result<Option<String>, ErrorData> {
    let Some(sealed) = sealed else { return Ok(None) };
    match sealed.split_once('.') {
        Some((state, told)) if tag(state) == told => Ok(Some(state.into())),
        _ => Err(ErrorData::invalid_params("requestState was changed", None)),
    }
}

fn question(message: &str, field: &str, kind: &str) -> Value {
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": {
        "type": "object", "properties": { field: { "type": kind } }, "required": [field],
    } } })
}

fn sampling(text: &str, most: u32) -> Value {
    json!({ "method": "sampling/createMessage", "params": {
        "messages": [{ "role": "user", "content": { "type": "text", "text": text } }], "maxTokens": most,
    } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

fn ask(requests: Value, state: Option<&str>) -> InputRequiredResult {
    InputRequiredResult::new(Some(from_json(requests)), state.map(sealed))
}

/// What the user typed into a field, if that was answered and accepted.
fn typed(responses: &InputResponses, key: &str, field: &str) -> Option<String> {
    let answer = responses.get(key).filter(|answer| answer["action"] == "accept")?;
    let value = &answer["content"][field];
    value.as_str().map(str::to_string).or(value.as_bool().map(|said| said.to_string()))
}

pub fn call(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Option<CallToolResponse>, ErrorData> {
    let Some(which) = request.name.strip_prefix("test_input_required_result_") else { return Ok(None) };
    let responses = request.input_responses.clone().unwrap_or_default();
    let state = opened(request.request_state.as_deref())?;
    let name = question("What is your name?", "name", "string");
    Ok(Some(match which {
        "elicitation" => match typed(&responses, "user_name", "name") {
            Some(name) => said(format!("Hello, {name}!")).into(),
            None => ask(json!({ "user_name": name }), None).into(),
        },
        "sampling" => match responses.get("capital_question") {
            Some(answer) => said(format!("The model said: {}", answer["content"])).into(),
            None => ask(json!({ "capital_question": sampling("What is the capital of France?", 100) }), None)
                .into(),
        },
        "list_roots" => match responses.get("client_roots") {
            Some(answer) => said(format!("Roots: {}", answer["roots"])).into(),
            None => ask(json!({ "client_roots": roots() }), None).into(),
        },
        "request_state" | "tampered_state" => match (typed(&responses, "confirm", "ok"), state.as_deref()) {
            (Some(_), Some("asked")) => said("state-ok").into(),
            _ => ask(json!({ "confirm": question("Please confirm", "ok", "boolean") }), Some("asked")).into(),
        },
        "multiple_inputs" => {
            let all =
                ["user_name", "greeting", "client_roots"].iter().all(|key| responses.contains_key(*key));
            if all && state.is_some() {
                said("Everything was answered").into()
            } else {
                let requests = json!({
                    "user_name": name, "greeting": sampling("Generate a greeting", 50), "client_roots": roots(),
                });
                ask(requests, Some("asked")).into()
            }
        }
        "multi_round" => {
            let step1 = question("Step 1: What is your name?", "name", "string");
            let step2 = question("Step 2: What is your favorite color?", "color", "string");
            match state.as_deref() {
                Some("step2") if responses.contains_key("step2") => said("Both steps are done").into(),
                Some("step1") if responses.contains_key("step1") => {
                    ask(json!({ "step2": step2 }), Some("step2")).into()
                }
                _ => ask(json!({ "step1": step1 }), Some("step1")).into(),
            }
        }
        "capabilities" => {
            let known = context.client_capabilities().unwrap_or_default();
            let mut requests = json!({});
            if known.sampling.is_some() {
                requests["greeting"] = sampling("Generate a greeting", 50);
            }
            if known.elicitation.is_some() {
                requests["user_name"] = name;
            }
            if known.roots.is_some() {
                requests["client_roots"] = roots();
            }
            let answered =
                requests.as_object().is_some_and(|asked| asked.keys().all(|key| responses.contains_key(key)));
            if answered { said("Everything was answered").into() } else { ask(requests, None).into() }
        }
        _ => return Ok(None),
    }))
}

pub fn prompt(request: &GetPromptRequestParams) -> Result<Option<GetPromptResponse>, ErrorData> {
    if request.name != "test_input_required_result_prompt" {
        return Ok(None);
    }
    let responses = request.input_responses.clone().unwrap_or_default();
    Ok(Some(match typed(&responses, "user_context", "context") {
        Some(context) => {
            let words = format!("Use this context: {context}");
            GetPromptResult::new(vec![PromptMessage::new_text(Role::User, words)]).into()
        }
        None => {
            let question = question("What context should the prompt use?", "context", "string");
            ask(json!({ "user_context": question }), None).into()
        }
    }))
}
