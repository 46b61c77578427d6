//! `/help`: the knowledge base as pages, with a search. The articles are Markdown; HTML in them is shown as text.

mod excerpt;

use askama::Template;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use pulldown_cmark::{Event, Parser, html};

use self::excerpt::{Piece, excerpt};
use crate::domain::refusal::Refusal;
use crate::domain::text::visible;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::{Query, Segment};
use crate::http::kit::html::{page, public_page};
use crate::knowledge::{Article, Library, telling_words};

/// As many as the field takes.
const MOST_CHARS: usize = 120;
/// What people call the folders of articles.
const SECTIONS: [(&str, &str); 5] = [
    ("install", "Install an eSIM"),
    ("devices", "Phones and tablets"),
    ("trouble", "When something does not work"),
    ("policy", "Money and refunds"),
    ("support", "Ask a person"),
];
/// Articles in no folder.
const NO_SECTION: &str = "More";
/// How many articles are named when none has every word.
const NEARLY: usize = 3;

#[derive(Template)]
#[template(path = "help.html")]
struct HelpPage<'a> {
    typed: &'a str,
    /// Without a search, all articles.
    sections: Vec<Section<'a>>,
    found: Vec<Hit<'a>>,
    /// When no article has every word: those that have some.
    nearly: Vec<&'a Article>,
    /// For those who hear the page.
    said: String,
}

struct Section<'a> {
    name: String,
    articles: Vec<&'a Article>,
}

struct Hit<'a> {
    article: &'a Article,
    excerpt: Vec<Piece>,
}

#[derive(Template)]
#[template(path = "article.html")]
struct ArticlePage<'a> {
    title: &'a str,
    html: String,
    /// It is one of those that tell which devices take an eSIM.
    on_devices: bool,
    others: Vec<&'a Article>,
}

/// `?q=TEXT`.
pub async fn index(_: Anyone, state: State, RawQuery(raw): RawQuery) -> Answer {
    let knowledge = &state.app.knowledge;
    let typed = visible(&Query::parse(raw.as_deref()).typed("q"), MOST_CHARS);
    let words = telling_words(&typed);
    let template = match words.is_empty() {
        true => HelpPage { sections: sections(knowledge), ..HelpPage::of(&typed) },
        false => searched(knowledge, &typed, &words),
    };
    match raw {
        None => public_page(&state, &template),
        Some(_) => page(&state, StatusCode::OK, &template),
    }
}

pub async fn article(_: Anyone, state: State, Segment(id): Segment) -> Answer {
    let knowledge = &state.app.knowledge;
    let article = knowledge.article(&id).ok_or(Refusal::NotFound)?;
    let others = knowledge.articles().iter().filter(|other| other.id != article.id).collect();
    let template = ArticlePage {
        title: &article.title,
        html: rendered(&article.text),
        on_devices: article.folder() == Some("devices"),
        others,
    };
    public_page(&state, &template)
}

impl<'a> HelpPage<'a> {
    fn of(typed: &'a str) -> HelpPage<'a> {
        HelpPage { typed, sections: Vec::new(), found: Vec::new(), nearly: Vec::new(), said: String::new() }
    }
}

fn searched<'a>(knowledge: &'a Library, typed: &'a str, words: &[String]) -> HelpPage<'a> {
    let found = knowledge.with_every_word(words);
    let (said, nearly) = match found.len() {
        0 => ("No article has all of these words.".into(), knowledge.search(typed)),
        1 => (format!("1 article for {typed}"), Vec::new()),
        many => (format!("{many} articles for {typed}"), Vec::new()),
    };
    let hit = |article: &'a Article| Hit { article, excerpt: excerpt(&article.text, words) };
    HelpPage {
        found: found.into_iter().map(hit).collect(),
        nearly: nearly.into_iter().take(NEARLY).collect(),
        said,
        ..HelpPage::of(typed)
    }
}

/// The articles by their folders, in the order in which folders first come up.
fn sections(knowledge: &Library) -> Vec<Section<'_>> {
    let mut sections: Vec<Section> = Vec::new();
    for article in knowledge.articles() {
        let name = article.folder().map_or(NO_SECTION.into(), section_name);
        match sections.iter_mut().find(|section| section.name == name) {
            Some(section) => section.articles.push(article),
            None => sections.push(Section { name, articles: vec![article] }),
        }
    }
    sections
}

/// An operator's own folder is called by its name: `travel-tips` is `Travel tips`.
fn section_name(folder: &str) -> String {
    if let Some((_, name)) = SECTIONS.iter().find(|(known, _)| *known == folder) {
        return name.to_string();
    }
    let words = folder.replace(['-', '/'], " ");
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
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
    fn folders_have_names_for_people() {
        for (folder, name) in [("policy", "Money and refunds"), ("travel-tips", "Travel tips"), ("", "")] {
            assert_eq!(section_name(folder), name);
        }
    }

    #[test]
    fn markdown_becomes_html_and_html_becomes_text() {
        let html = rendered("## A\n\n1. one `x`\n2. <b>two</b>\n");
        assert!(html.contains("<h2>A</h2>") && html.contains("<code>x</code>"), "{html}");
        assert!(html.contains("&lt;b&gt;two"), "{html}");
    }
}
