//! Help: the articles of the knowledge base.

use serde::Serialize;
use utoipa::ToSchema;

use super::{READS, Tool};
use crate::error::Result;
use crate::http::mcp::call::{Call, Output};
use crate::http::mcp::schema;
use crate::knowledge::Article;

const TOPIC_CHARS: usize = 200;
/// With a topic, the best few are enough.
const MOST_OF_TOPIC: usize = 3;

#[derive(Serialize, ToSchema)]
struct ArticleView {
    /// Also a resource: `kb://` and this.
    id: String,
    title: String,
    /// Markdown.
    text: String,
}

#[derive(Serialize, ToSchema)]
struct ArticlesView {
    articles: Vec<ArticleView>,
}

pub fn tool() -> Tool {
    let topic = schema::text(
        "A few words on what is wanted, for example \"install iPhone\" or \"refund\". Without it: all articles.",
        TOPIC_CHARS,
    );
    Tool {
        name: "get_knowledge_base",
        title: "Read the help articles",
        description: "Returns the shop's help articles: how to install an eSIM on iPhone, Android and other devices, which \
            devices work, what to do when there is no data, the refund policy, and how to reach human support. Use it to \
            answer how-to and policy questions from what the shop really says, and quote it rather than general knowledge. \
            With a topic only the articles that fit best come back, or how to reach support when none does. Needs no login and changes nothing. It knows no prices, \
            orders or live usage: for those use get_esim_catalog, get_user_orders and refresh_esim_usage.",
        hints: READS,
        input: schema::input([("topic", topic)], &[]),
        output: schema::results([schema::of::<ArticlesView>()]),
        run: |call| Box::pin(run(call)),
    }
}

async fn run(call: Call) -> Result<Output> {
    let mut fields = call.fields()?;
    let topic = fields.filled("topic", TOPIC_CHARS).filter(|topic| !topic.trim().is_empty());
    fields.finish()?;
    let knowledge = &call.app().knowledge;
    let found: Vec<&Article> = match &topic {
        Some(topic) => knowledge.search(topic).into_iter().take(MOST_OF_TOPIC).collect(),
        None => knowledge.articles().iter().collect(),
    };
    let view = |article: &Article| ArticleView {
        id: article.id.clone(),
        title: article.title.clone(),
        text: article.text.clone(),
    };
    Output::of(&ArticlesView { articles: found.into_iter().map(view).collect() })
}
