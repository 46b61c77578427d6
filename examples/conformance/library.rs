//! Prompts and resources.

use rmcp::ErrorData;
use rmcp::model::*;
use serde_json::{Value, json};

use crate::from_json;
use crate::tools::PNG;

pub fn prompts() -> ListPromptsResult {
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments =
            arguments.iter().map(|argument| PromptArgument::new(*argument).with_required(true)).collect();
        Prompt::new(name, Some(format!("The fixture {name}")), Some(arguments))
    };
    ListPromptsResult::with_all_items(vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ])
}

pub fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let given = |field: &str| -> String {
        let found = request.arguments.as_ref().and_then(|arguments| arguments.get(field)?.as_str());
        found.unwrap_or_default().into()
    };
    let text = |words: String| json!({ "role": "user", "content": { "type": "text", "text": words } });
    let messages = match request.name.as_str() {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.".into())]),
        "test_prompt_with_arguments" => {
            let (first, second) = (given("arg1"), given("arg2"));
            json!([text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))])
        }
        "test_prompt_with_embedded_resource" => json!([
            { "role": "user", "content": { "type": "resource", "resource": {
                "uri": given("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource content for testing.",
            } } },
            text("Please process the embedded resource above.".into()),
        ]),
        "test_prompt_with_image" => json!([
            { "role": "user", "content": { "type": "image", "data": PNG, "mimeType": "image/png" } },
            text("Please analyze the image above.".into()),
        ]),
        unknown => return Err(ErrorData::invalid_params(format!("Unknown prompt: {unknown}"), None)),
    };
    Ok(GetPromptResult::new(from_json(messages)))
}

pub fn resources() -> ListResourcesResult {
    let resource = |uri: &str, kind: &str| Resource::new(uri, uri).with_mime_type(kind);
    ListResourcesResult::with_all_items(vec![
        resource("test://static-text", "text/plain"),
        resource("test://static-binary", "image/png"),
        resource("test://watched-resource", "text/plain"),
    ])
}

pub fn templates() -> ListResourceTemplatesResult {
    let template =
        ResourceTemplate::new("test://template/{id}/data", "template").with_mime_type("application/json");
    ListResourceTemplatesResult::with_all_items(vec![template])
}

pub fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let contents: Value = match (uri, id) {
        ("test://static-text", _) => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        ("test://watched-resource", _) => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "Nothing changed." })
        }
        (_, Some(id)) => {
            let text =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }).to_string();
            json!({ "uri": uri, "mimeType": "application/json", "text": text })
        }
        _ => return Err(ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri })))),
    };
    Ok(ReadResourceResult::new(vec![from_json(contents)]))
}
