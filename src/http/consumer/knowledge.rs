//! The help articles as one text.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::kit::State;
use crate::http::kit::answers::{Answer, json};
use crate::http::kit::auth::Anyone;

#[derive(Serialize, ToSchema)]
#[schema(as = Knowledge)]
pub struct KnowledgeView {
    #[schema(example = true)]
    success: bool,
    /// Markdown.
    content: String,
}

/// Help
///
/// How to install an eSIM, which devices work, what to do when there is no data, the refund policy and how to reach
/// support, as one text.
#[utoipa::path(get, path = "/api/mcp/knowledge", operation_id = "getKnowledge", tag = "help", security(()),
    responses((status = 200, description = "All articles", body = KnowledgeView)))]
pub async fn text(_: Anyone, state: State) -> Answer {
    let content = state.app.knowledge.in_one_text();
    json(StatusCode::OK, &KnowledgeView { success: true, content })
}
