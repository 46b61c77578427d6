//! The documentation for people: a page for each API, made from its OpenAPI description. They are readable without
//! scripts and without the internet.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::body::Bytes;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::Value;

use super::examples::REQUEST;
use super::fields::{self, Field, blocks, escaped, members, prose, text};
use super::openapi::Surface;
use super::samples::{self, Call, Header};
use super::story::{self, Story};
use crate::domain::refusal::Refusal;
use crate::error;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::Segment;
use crate::http::kit::html::{framed, guard_public};
use crate::http::kit::site::Site;
use crate::http::kit::{State, Written};

/// What a page is made of.
pub struct Source {
    pub story: &'static Story,
    pub surface: &'static Surface,
    pub api: Written,
}

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage<'a> {
    title: String,
    introduction: String,
    story: &'a Story,
    /// The story that the pages begin with also has what all of them share.
    is_first: bool,
    sandbox: bool,
    groups: &'a [Group],
    credentials: Vec<Credential>,
    chapters: Vec<Chapter>,
    shared: Vec<Reply>,
    problems: Vec<Explained>,
    problem: String,
    schemas: Vec<Schema>,
}

/// What the sidebar says of one page.
struct Group {
    name: &'static str,
    address: String,
    entries: Vec<Entry>,
}

struct Entry {
    address: String,
    title: String,
    /// What else finds it.
    words: String,
}

/// What a reader fills in to try operations, and the header that carries it.
struct Credential {
    header: String,
    prefix: &'static str,
    variable: String,
    about: String,
}

/// A code that a problem can have.
struct Explained {
    anchor: String,
    code: &'static str,
    what_to_do: String,
}

struct Chapter {
    title: &'static str,
    operations: Vec<Operation>,
}

struct Operation {
    id: String,
    method: String,
    path: String,
    summary: String,
    description: String,
    inputs: Vec<Field>,
    replies: Vec<Reply>,
    /// Bodies and samples are HTML: fewer characters need an escape here than in an attribute.
    request: Option<String>,
    answers: Vec<(String, String)>,
    samples: [(&'static str, &'static str, String); 3],
    spends: bool,
    needs_key: bool,
}

struct Reply {
    status: String,
    about: String,
    schema: Option<String>,
}

struct Schema {
    name: String,
    about: String,
    words: String,
    fields: Vec<Field>,
}

pub async fn first(_: Anyone, state: State) -> Answer {
    answer(&state, "").await
}

pub async fn further(_: Anyone, state: State, Segment(page): Segment) -> Answer {
    // A part of a path that is no text is empty, as the first page's is.
    if page.is_empty() { Err(Refusal::NotFound.into()) } else { answer(&state, &page).await }
}

async fn answer(state: &State, page: &str) -> Answer {
    let html = state.texts.docs_pages.get().await?.get(page).ok_or(Refusal::NotFound)?;
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    let mut response = (headers, html.clone()).into_response();
    guard_public(response.headers_mut());
    Ok(response)
}

/// By the last part of their addresses.
pub fn render(sources: Vec<Source>, site: Arc<Site>) -> Written<BTreeMap<&'static str, Bytes>> {
    Written::later(move || write(&sources, &site))
}

/// All of them at once: each names the operations of all in its sidebar.
fn write(sources: &[Source], site: &Site) -> BTreeMap<&'static str, Bytes> {
    let described = |source: &Source| serde_json::from_slice(source.api.now()).unwrap_or_default();
    let apis: Vec<Value> = sources.iter().map(described).collect();
    let mut groups: Vec<Group> = sources.iter().zip(&apis).map(|(source, api)| group(source, api)).collect();
    groups.push(problem_group());
    let written = |(source, api): (&Source, &Value)| (source.story.page, page(site, source, api, &groups));
    sources.iter().zip(&apis).map(written).collect()
}

/// A description we made ourselves does not fail to render; if it did, the page says so.
fn page(site: &Site, source: &Source, api: &Value, groups: &[Group]) -> Bytes {
    let is_first = source.story.page.is_empty();
    let chapters = source.story.chapters.iter().map(|chapter| Chapter {
        title: chapter.title,
        operations: chapter.operations.iter().filter_map(|id| operation(source, api, id)).collect(),
    });
    let page = DocsPage {
        title: text(&api["info"]["title"]),
        introduction: blocks(&text(&api["info"]["description"])),
        story: source.story,
        is_first,
        sandbox: groups.iter().any(|group| group.name == story::SANDBOX.name),
        groups,
        credentials: credentials(api),
        chapters: chapters.collect(),
        shared: shared(source.surface),
        problems: if is_first { problems() } else { Vec::new() },
        problem: escaped(&source.surface.examples.problem_text()),
        schemas: schemas(api),
    };
    framed(site, &page).unwrap_or_else(|error| format!("The documentation cannot be shown: {error}")).into()
}

fn group(source: &Source, api: &Value) -> Group {
    let address = source.story.address();
    let entry = |chapter: &story::Chapter, id: &str| {
        let (method, path, operation) = fields::operation(api, id)?;
        let names = fields::inputs(api, operation).into_iter().map(|field| field.name);
        let answers = members(&operation["responses"]).filter(|(_, response)| is_own(source, response));
        let told = answers.map(|(status, response)| format!("{status} {}", text(&response["description"])));
        let words: Vec<String> = names.chain(told).chain([text(&operation["description"])]).collect();
        Some(Entry {
            address: format!("{address}#{id}"),
            title: text(&operation["summary"]),
            words: format!("{method} {path} {id} {} {}", chapter.title, words.join(" ")).replace('`', ""),
        })
    };
    let chapters = source.story.chapters.iter();
    let entries = chapters.flat_map(|chapter| {
        chapter.operations.iter().filter_map(|id| entry(chapter, id)).collect::<Vec<_>>()
    });
    Group { name: source.story.name, entries: entries.collect(), address }
}

fn problem_group() -> Group {
    let entry = |&(code, _): &(&'static str, &str)| Entry {
        address: format!("/docs#{}", error::anchor(code)),
        title: code.into(),
        words: "problem error".into(),
    };
    Group {
        name: "Problems",
        address: "/docs#problems".into(),
        entries: error::CODES.iter().map(entry).collect(),
    }
}

fn problems() -> Vec<Explained> {
    let explained = |&(code, what_to_do): &(&'static str, &str)| Explained {
        anchor: error::anchor(code),
        code,
        what_to_do: prose(what_to_do),
    };
    error::CODES.iter().map(explained).collect()
}

/// The credentials that a description asks for. `X-B2B-Key` is kept in the variable `B2B_KEY`.
fn credentials(api: &Value) -> Vec<Credential> {
    let schemes = members(&api["components"]["securitySchemes"]);
    let credential = |scheme: &Value| match scheme["name"].as_str() {
        Some(name) => Credential {
            header: name.into(),
            prefix: "",
            variable: name.trim_start_matches("X-").replace('-', "_").to_uppercase(),
            about: text(&scheme["description"]),
        },
        None => Credential {
            header: "Authorization".into(),
            prefix: "Bearer ",
            variable: "TOKEN".into(),
            about: text(&scheme["description"]),
        },
    };
    schemes.map(|(_, scheme)| credential(scheme)).collect()
}

fn operation(source: &Source, api: &Value, id: &str) -> Option<Operation> {
    let examples = source.surface.examples;
    let (method, path, operation) = fields::operation(api, id)?;
    // An operation with a `security` of its own also answers those who show no key.
    let needs_key = operation.get("security").is_none();
    let keys = if needs_key { credentials(api) } else { Vec::new() };
    let inputs = fields::inputs(api, operation);
    let request = examples.text(id, REQUEST);
    let call = Call {
        method: method.to_uppercase(),
        url: text(&api["servers"][0]["url"]) + &filled_in(path, &inputs, source.story.sampled),
        headers: headers(keys, &inputs, source.story.sampled),
        body: request.clone(),
    };
    let replies = members(&operation["responses"]).filter(|(_, response)| is_own(source, response));
    let answers = members(&operation["responses"])
        .filter_map(|(status, _)| Some((status.clone(), escaped(&examples.text(id, status)?))));
    let reply = |(status, response): (&String, &Value)| Reply {
        status: status.clone(),
        about: with_codes(&prose(&text(&response["description"]))),
        schema: members(&response["content"])
            .find_map(|(_, content)| fields::name(&content["schema"]))
            .filter(|name| name != "Problem"),
    };
    Some(Operation {
        id: id.into(),
        method: call.method.clone(),
        path: path.into(),
        summary: text(&operation["summary"]),
        description: blocks(&text(&operation["description"])),
        inputs,
        replies: replies.map(reply).collect(),
        request: request.as_deref().map(escaped),
        answers: answers.collect(),
        samples: [
            ("curl", "curl", escaped(&samples::curl(&call))),
            ("typescript", "TypeScript", escaped(&samples::typescript(&call))),
            ("python", "Python", escaped(&samples::python(&call))),
        ],
        spends: source.story.spending.contains(&id),
        needs_key,
    })
}

/// Whether an answer is not one of those that many operations share.
fn is_own(source: &Source, response: &Value) -> bool {
    !source.surface.shared().any(|(_, about)| response["description"] == about)
}

/// The path with an example in each of its places, and the parts of the query that samples show.
fn filled_in(path: &str, inputs: &[Field], sampled: &[&str]) -> String {
    let placed = |path: String, input: &Field| path.replace(&format!("{{{}}}", input.name), &input.example);
    let path = inputs.iter().filter(|input| input.place == "path").fold(path.to_string(), placed);
    let mut query = form_urlencoded::Serializer::new(String::new());
    let is_sent = |input: &&Field| input.required || sampled.contains(&input.name.as_str());
    for input in inputs.iter().filter(|input| input.place == "query").filter(is_sent) {
        query.append_pair(&input.name, &input.example);
    }
    let query = query.finish();
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

fn headers(keys: Vec<Credential>, inputs: &[Field], sampled: &[&str]) -> Vec<Header> {
    let keys = keys.into_iter().map(|credential| Header {
        name: credential.header,
        value: credential.prefix.into(),
        variable: Some(credential.variable),
    });
    let own = inputs
        .iter()
        .filter(|input| input.place == "header" && sampled.contains(&input.name.as_str()))
        .map(|input| Header { name: input.name.clone(), value: input.example.clone(), variable: None });
    keys.chain(own).collect()
}

/// One line for each status: the last one says it in the most general words.
fn shared(surface: &Surface) -> Vec<Reply> {
    let by_status: BTreeMap<u16, &str> = surface.shared().collect();
    let reply = |(status, about): (u16, &str)| Reply {
        status: status.to_string(),
        about: with_codes(&prose(about)),
        schema: None,
    };
    by_status.into_iter().map(reply).collect()
}

/// Codes of problems become links to what explains them.
fn with_codes(html: &str) -> String {
    let mut linked = String::new();
    let mut rest = html;
    let in_word = |c: char| c.is_ascii_uppercase() || c == '_';
    while !rest.is_empty() {
        let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match error::CODES.iter().any(|(code, _)| *code == word) {
            true => linked.push_str(&format!("<a href=\"/docs#{}\">{word}</a>", error::anchor(word))),
            false => linked.push_str(word),
        }
        let next = after.find(in_word).unwrap_or(after.len());
        linked.push_str(&after[..next]);
        rest = &after[next..];
    }
    linked
}

fn schemas(api: &Value) -> Vec<Schema> {
    let described = members(&api["components"]["schemas"]);
    let listed = described.map(|(name, schema)| Schema {
        name: name.clone(),
        about: prose(&text(&schema["description"])),
        words: fields::words(schema),
        fields: fields::of(schema, ""),
    });
    listed.collect()
}
