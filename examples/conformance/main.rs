//! A server for the official conformance suite: the gateway's own door (`http::mcp::door`) with the tools, prompts and
//! resources that the suite wants to find behind it. Sessions are on, which four scenarios of older revisions need.
//! `cargo run --example conformance -- 127.0.0.1:8130`

mod inputs;
mod library;
mod tasks;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use simgate::config::{Raw, Settings};
use simgate::http::mcp::door::{Door, Guard};
use tokio_util::sync::CancellationToken;

#[derive(Clone, Default)]
pub struct Fixtures {
    tasks: TaskManager,
}

type FixtureDoor = Arc<Door<Fixtures, LocalSessionManager>>;

#[tokio::main]
async fn main() {
    let listen = std::env::args().nth(1).unwrap_or("127.0.0.1:8130".into());
    let flags = BTreeMap::from([("listen".to_string(), listen.clone())]);
    let raw = Raw::collect(&flags, std::iter::empty(), None).expect("one flag");
    let settings = Settings::check(&raw).expect("an address to listen on");
    let fixtures = Fixtures::default();
    let door: FixtureDoor =
        Arc::new(Door::new(Guard::new(&settings), true, Arc::default(), move || fixtures.clone()));
    let router = Router::new().route("/api/mcp", any(pass)).with_state(door);
    let listener = tokio::net::TcpListener::bind(&listen).await.expect("the address is free");
    let stop = CancellationToken::new();
    simgate::http::server::serve(router, listener, settings.connections, stop).await;
}

async fn pass(State(door): State<FixtureDoor>, request: Request) -> Response {
    door.pass(request).await
}

#[allow(deprecated, reason = "the suite asks for logging and subscriptions of older revisions too")]
impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("simgate-conformance", "1.0.0");
        info
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::list().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(begun) = tasks::call(&self.tasks, &request, &context)? {
            return Ok(begun);
        }
        match inputs::call(&request, &context)? {
            Some(asked) => Ok(asked),
            None => tools::call(request, context).await.map(Into::into),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(library::prompts())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        match inputs::prompt(&request)? {
            Some(answer) => Ok(answer),
            None => library::prompt(&request).map(Into::into),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(library::resources())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(library::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        library::read(&request.uri).map(Into::into)
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        subscription.cancelled().await;
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}

/// A value of the protocol from its JSON, which says it shorter than its builders do.
pub fn from_json<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("a fixture is well formed")
}
