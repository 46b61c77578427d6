//! `/llms.txt`: what this gateway is and how to use it, for a language model that has nothing but its address.

use askama::Template;
use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::config::{Mode, Settings};
use crate::http::kit::State;
use crate::http::kit::auth::Anyone;

#[derive(Template)]
#[template(path = "llms.txt")]
struct Text<'a> {
    agent_url: &'a str,
    base_url: &'a str,
    sandbox: bool,
    tools: Vec<(&'static str, &'static str)>,
}

pub async fn text(_: Anyone, state: State) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], state.texts.llms_text.clone()).into_response()
}

/// Written once, at start.
pub fn render(settings: &Settings, tools: Vec<(&'static str, &'static str)>) -> Bytes {
    let text = Text {
        agent_url: &settings.agent_url,
        base_url: &settings.base_url,
        sandbox: settings.mode == Mode::Sandbox,
        tools,
    };
    text.render().unwrap_or_else(|error| format!("This text cannot be shown: {error}")).into()
}
