//! The page of an invitation. It shows who invites whom, and has a code mailed; joining is the sign-in with that code.

use askama::Template;
use axum::http::StatusCode;

use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Anyone;
use crate::http::kit::fields::Segment;
use crate::http::kit::html::page;
use crate::http::kit::session::Visitor;
use crate::http::pages::look::{Look, Theme};
use crate::ops::team::{self, Person};

#[derive(Template)]
#[template(path = "portal/join.html")]
struct JoinPage<'a> {
    theme: Option<Theme>,
    form: &'a str,
    link: &'a str,
    person: Person,
}

pub async fn show(
    _: Anyone,
    state: State,
    Look(theme): Look,
    visitor: Visitor,
    Segment(link): Segment,
) -> Answer {
    let person = team::invited(&state.app, &link).await?;
    let template = JoinPage { theme, form: &visitor.form, link: &link, person };
    Ok(visitor.meet(page(&state, StatusCode::OK, &template)?))
}
