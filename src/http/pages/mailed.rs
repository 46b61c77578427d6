//! The pages behind links in mails: "that was not me", and "revoke this token". Looking at one never acts: mail
//! programs and scanners open every link. A button does.

use askama::Template;
use axum::http::StatusCode;

use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::Segment;
use crate::http::kit::html::page;
use crate::ops::{login, tokens};

#[derive(Template)]
#[template(path = "not_me.html")]
struct NotMePage<'a> {
    email: String,
    link: &'a str,
    silent: bool,
    /// Codes were stopped, and are mailed again.
    undone: bool,
}

#[derive(Template)]
#[template(path = "revoke.html")]
struct RevokePage<'a> {
    link: &'a str,
    token: Option<tokens::Token>,
}

pub async fn not_me(_: Anyone, state: State, Segment(link): Segment) -> Answer {
    not_me_page(&state, &link, false).await
}

async fn not_me_page(state: &State, link: &str, undone: bool) -> Answer {
    let about = login::not_me(&state.app, link).await?;
    page(
        state,
        StatusCode::OK,
        &NotMePage { email: about.email.masked(), link, silent: about.silent, undone },
    )
}

pub async fn silence(_: Anyone, state: State, Segment(link): Segment) -> Answer {
    login::silence(&state.app, &link, true).await?;
    not_me_page(&state, &link, false).await
}

/// A slip of the finger should not cost 30 days.
pub async fn unsilence(_: Anyone, state: State, Segment(link): Segment) -> Answer {
    login::silence(&state.app, &link, false).await?;
    not_me_page(&state, &link, true).await
}

pub async fn revocation(_: Anyone, state: State, Segment(link): Segment) -> Answer {
    let token = tokens::of_link(&state.app, &link).await?;
    page(&state, StatusCode::OK, &RevokePage { link: &link, token })
}

pub async fn revoke(_: Anyone, state: State, Segment(link): Segment) -> Answer {
    tokens::revoke_by_link(&state.app, &link).await?;
    page(&state, StatusCode::OK, &RevokePage { link: &link, token: None })
}
