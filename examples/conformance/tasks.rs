//! Tools that go on as tasks (the tasks extension), for clients that can follow one.

use std::time::Duration;

use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskFuture, TaskManager, TaskOptions};
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use crate::from_json;
use crate::tools::said;

/// Tools that cannot be answered at once.
const ALWAYS: [&str; 2] = ["failing_job", "test_tool_with_task"];

fn question(message: &str, field: &str) -> InputRequest {
    from_json(
        json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": {
        "type": "object", "properties": { field: { "type": "string" } }, "required": [field],
    } } }),
    )
}

pub fn call(
    tasks: &TaskManager,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Option<CallToolResponse>, ErrorData> {
    let name = request.name.to_string();
    let follows = context.client_capabilities().is_some_and(|known| known.supports_tasks());
    if !follows && ALWAYS.contains(&name.as_str()) {
        let wanted = ClientCapabilities::builder().enable_tasks().build();
        return Err(ErrorData::missing_required_client_capability(wanted));
    }
    let seconds = request.arguments.as_ref().and_then(|given| given.get("seconds")?.as_f64()).unwrap_or(1.0);
    let run: Box<dyn FnOnce(TaskContext) -> TaskFuture + Send> = match name.as_str() {
        "slow_compute" if !follows => return Ok(Some(said("Computed at once").into())),
        "slow_compute" => Box::new(move |task| Box::pin(compute(task, seconds))),
        "failing_job" => Box::new(|_| Box::pin(fail())),
        "protocol_error_job" => Box::new(|_| {
            Box::pin(async { Err(TaskExit::Error(ErrorData::internal_error("It went wrong", None))) })
        }),
        "confirm_delete" => Box::new(|task| Box::pin(confirm(task))),
        "multi_input" => Box::new(|task| Box::pin(two_questions(task))),
        "test_tool_with_task" => {
            let answered = request.input_responses.as_ref().and_then(|given| given.get("user_name"));
            let Some(answer) = answered else {
                let asked =
                    InputRequests::from([("user_name".to_string(), question("What is your name?", "name"))]);
                return Ok(Some(InputRequiredResult::from_input_requests(asked).into()));
            };
            let words = format!("Hello, {}!", answer["content"]["name"].as_str().unwrap_or_default());
            Box::new(move |_| Box::pin(async move { Ok(said(words)) }))
        }
        _ => return Ok(None),
    };
    let options = TaskOptions::new().with_ttl_ms(60_000).with_poll_interval_ms(100);
    Ok(Some(CreateTaskResult::new(tasks.spawn(options, run)).into()))
}

async fn compute(task: TaskContext, seconds: f64) -> Result<CallToolResult, TaskExit> {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => Ok(said("Computed")),
        () = task.cancelled() => Err(TaskExit::Cancelled),
    }
}

async fn fail() -> Result<CallToolResult, TaskExit> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(CallToolResult::error(vec![ContentBlock::text("This job always fails")]))
}

async fn confirm(task: TaskContext) -> Result<CallToolResult, TaskExit> {
    let answer = task.request_input("confirm", question("Really delete it?", "confirm")).await?;
    Ok(said(format!("The answer was {}", answer["action"])))
}

async fn two_questions(task: TaskContext) -> Result<CallToolResult, TaskExit> {
    let (first, second) = tokio::join!(
        task.request_input("first", question("The first?", "first")),
        task.request_input("second", question("The second?", "second")),
    );
    Ok(said(format!("The answers were {} and {}", first?["action"], second?["action"])))
}
