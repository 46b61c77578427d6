//! The knowledge base as resources: `kb://install/ios` and so on, the same articles as the tool and the help pages.

use rmcp::model::{ErrorData, ListResourcesResult, ReadResourceResult, Resource, ResourceContents};

use serde_json::json;

use crate::app::App;
use crate::knowledge::Article;

const SCHEME: &str = "kb://";
const MARKDOWN: &str = "text/markdown";

pub fn list(app: &App) -> ListResourcesResult {
    let resource = |article: &Article| {
        Resource::new(format!("{SCHEME}{}", article.id), article.id.clone())
            .with_title(article.title.clone())
            .with_mime_type(MARKDOWN)
            .with_size(article.text.len() as u64)
    };
    ListResourcesResult::with_all_items(app.knowledge.articles().iter().map(resource).collect())
}

pub fn read(app: &App, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let article = uri.strip_prefix(SCHEME).and_then(|id| app.knowledge.article(id));
    let article = article
        .ok_or_else(|| ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri }))))?;
    let text = format!("# {}\n\n{}", article.title, article.text);
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(MARKDOWN)]))
}
