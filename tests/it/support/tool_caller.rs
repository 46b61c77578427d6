//! A customer's agent at the tools: calls them over plain HTTP, as `curl` would, and looks at every result: it must be
//! the same as value and as text, say whether it is an error, and fit the schema that its tool is listed with.

use serde_json::{Value, json};

use crate::support::harness::{Gateway, Reply, reply};
use crate::support::logins::code;
use crate::support::{json_schema, shapes};

pub const MCP: &str = "/api/mcp";

/// One message with nothing but its content type.
pub async fn rpc(gateway: &Gateway, message: &Value) -> Reply {
    reply(request(gateway, message)).await
}

pub fn request(gateway: &Gateway, message: &Value) -> reqwest::RequestBuilder {
    let url = format!("{}{MCP}", gateway.base);
    gateway.client.post(url).header("content-type", "application/json").body(message.to_string())
}

pub fn message(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// The result of a method that must not be refused.
#[track_caller]
pub fn result(answer: &Reply) -> Value {
    let body = answer.expect(200);
    assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(7)), "{body}");
    assert!(body["result"].is_object(), "{body}");
    body["result"].clone()
}

pub async fn tools(gateway: &Gateway) -> Vec<Value> {
    let listed = result(&rpc(gateway, &message("tools/list", json!({}))).await);
    listed["tools"].as_array().unwrap().clone()
}

pub fn tool_call(tool: &str, arguments: Value) -> Value {
    message("tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// Calls a tool; good or bad, the result is looked at.
pub async fn call(gateway: &Gateway, tool: &str, arguments: Value) -> Value {
    told(gateway, tool, &rpc(gateway, &tool_call(tool, arguments)).await).await
}

/// What a result says, after it was looked at.
pub async fn told(gateway: &Gateway, tool: &str, answer: &Reply) -> Value {
    let result = result(answer);
    let content = result["structuredContent"].clone();
    assert_eq!(result["content"].as_array().unwrap().len(), 1);
    assert_eq!(result["content"][0]["type"], "text");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), content, "text and value differ");
    let listed = tools(gateway).await;
    let listing = listed.iter().find(|listing| listing["name"] == tool).expect("it is listed");
    if let Err(why) = json_schema::check(&listing["outputSchema"], &content) {
        panic!("{tool}: {why}\n{content}");
    }
    let failed = content.get("error").is_some();
    assert_eq!(result["isError"], failed, "{content}");
    if text.contains("Usd\":") {
        shapes::money(text);
    }
    content
}

/// Calls a tool that must do what it is asked.
#[track_caller]
pub fn fine(content: Value) -> Value {
    assert!(content.get("error").is_none(), "{content}");
    content
}

/// The code of a failure, which must say the rest too.
#[track_caller]
pub fn failure(content: &Value) -> String {
    let error = &content["error"];
    assert!(error["httpStatus"].as_u64().unwrap() >= 400, "{content}");
    assert!(!error["message"].as_str().unwrap().is_empty());
    assert!(error["retryable"].is_boolean());
    error["code"].as_str().unwrap().to_string()
}

/// Logs somebody in through the tools.
pub async fn log_in(gateway: &Gateway, email: &str) -> String {
    let sent = fine(call(gateway, "send_agent_otp", json!({ "email": email })).await);
    assert_eq!((&sent["sent"], &sent["alreadySent"]), (&json!(true), &json!(false)));
    let code = code(gateway, email).await;
    let session = fine(call(gateway, "verify_agent_otp", json!({ "email": email, "code": code })).await);
    assert_eq!(session["email"], email);
    session["token"].as_str().unwrap().to_string()
}

/// Buys the usual plan, which must be delivered. Where the time to answer is short, a slow machine may deliver after it.
pub async fn buy(gateway: &Gateway, token: &str) -> Value {
    let arguments = json!({ "packageCode": crate::support::buying::PLAN, "token": token });
    let mut bought = fine(call(gateway, "purchase_esim_with_wallet", arguments).await);
    assert_eq!(bought["purchased"], true);
    if bought["order"]["status"] != "FULFILLED" {
        let id = bought["orderId"].clone();
        let look = async || {
            let listed = fine(call(gateway, "get_user_orders", json!({ "token": token })).await);
            gateway.pass_time(1_000);
            let mut orders = listed["orders"].as_array().unwrap().iter();
            orders.find(|order| order["id"] == id && order["status"] == "FULFILLED").cloned()
        };
        bought["order"] = gateway.until("the order is delivered", look).await;
    }
    bought
}
