//! `/help`: the knowledge base as pages. The articles are Markdown; HTML in them is shown as text.

use askama::Template;
use axum::http::StatusCode;
use pulldown_cmark::{Event, Parser, html};

use crate::domain::refusal::Refusal;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::Segment;
use crate::http::kit::html::page;
use crate::knowledge::Article;

#[derive(Template)]
#[template(path = "help.html")]
struct HelpPage<'a> {
    articles: &'a [Article],
}

#[derive(Template)]
#[template(path = "article.html")]
struct ArticlePage<'a> {
    title: &'a str,
    html: String,
    others: Vec<&'a Article>,
}

pub async fn index(_: Anyone, state: State) -> Answer {
    page(&state, StatusCode::OK, &HelpPage { articles: state.app.knowledge.articles() })
}

pub async fn article(_: Anyone, state: State, Segment(id): Segment) -> Answer {
    let knowledge = &state.app.knowledge;
    let article = knowledge.article(&id).ok_or(Refusal::NotFound)?;
    let others = knowledge.articles().iter().filter(|other| other.id != article.id).collect();
    page(
        &state,
        StatusCode::OK,
        &ArticlePage { title: &article.title, html: rendered(&article.text), others },
    )
}

fn rendered(markdown: &str) -> String {
    let events = Parser::new(markdown).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        other => other,
    });
    let mut out = String::with_capacity(markdown.len() * 2);
    html::push_html(&mut out, events);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_html_and_html_becomes_text() {
        let html = rendered("## A\n\n1. one `x`\n2. <b>two</b>\n");
        assert!(html.contains("<h2>A</h2>") && html.contains("<code>x</code>"), "{html}");
        assert!(html.contains("&lt;b&gt;two"), "{html}");
    }
}
