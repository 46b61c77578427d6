//! Signing in by a mailed code, and signing out. The answers are the same for every address, whether it has an account or
//! not: one is made when a code was right.

use askama::Template;
use axum::http::{HeaderMap, StatusCode};

use super::frame::Sent;
use crate::domain::email::Email;
use crate::domain::login::{Door, Realm};
use crate::domain::refusal::Refusal;
use crate::error::Error;
use crate::http::kit::State;
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Client;
use crate::http::kit::fields::Query;
use crate::http::kit::html::page;
use crate::http::kit::next::Next;
use crate::http::kit::session::{VisitorForm, enter, has_form_ended, leave, see};
use crate::http::pages::look::{self, Look, Theme};
use crate::http::pages::{mail_code, proof, told};
use crate::ops::sessions::{self, SignIn};

const AGENT_NAME: &str = "account page";

#[derive(Template)]
#[template(path = "account/sign_in.html")]
struct SignInPage<'a> {
    theme: Option<Theme>,
    form: &'a str,
    next: &'a Next,
    /// Whether a form was sent too late.
    form_ended: bool,
    email: String,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "account/code.html")]
struct CodePage<'a> {
    theme: Option<Theme>,
    form: &'a str,
    next: &'a Next,
    email: &'a Email,
    problem: Option<String>,
}

/// The page for somebody who is not signed in.
pub fn entrance(state: &State, theme: Option<Theme>, form: &str, query: &Query) -> Answer {
    let next = &next(query);
    let form_ended = has_form_ended(query);
    let template = SignInPage { theme, form, next, form_ended, email: String::new(), problem: None };
    page(state, StatusCode::OK, &template)
}

/// The page that a sign-in leads on to.
fn next(query: &Query) -> Next {
    Next::named(Realm::Buyers, &query.typed("next"))
}

/// Mails a code.
pub async fn code(state: State, Look(theme): Look, Client(client): Client, sent: VisitorForm) -> Answer {
    let VisitorForm { mut fields, form, .. } = sent;
    let (next, typed) = (&next(&fields), fields.typed("email"));
    let email = fields.required_email("email");
    let asked = match fields.finish_with(email) {
        Ok(email) => mail_code(&state.app, Door::Account, &email, client).await.map(|()| email),
        Err(refusal) => Err(refusal.into()),
    };
    match asked {
        Ok(email) => {
            page(&state, StatusCode::OK, &CodePage { theme, form: &form, next, email: &email, problem: None })
        }
        Err(error) => {
            let (status, problem) = told(error)?;
            let (form, email, problem) = (&*form, typed, Some(problem));
            let template = SignInPage { theme, form, next, form_ended: false, email, problem };
            page(&state, status, &template)
        }
    }
}

/// Exchanges the code for a session. Whatever session the browser held before ends.
pub async fn sign_in(
    state: State,
    Look(theme): Look,
    Client(client): Client,
    headers: HeaderMap,
    sent: VisitorForm,
) -> Answer {
    let former = sent.former(&state, Realm::Buyers);
    let VisitorForm { fields, form, .. } = sent;
    let next = &next(&fields);
    let answer = proof(Door::Account, AGENT_NAME, client, fields)?;
    let (email, agent) = (answer.email.clone(), look::agent(&headers).to_string());
    match sessions::sign_in(&state.app, SignIn { answer, agent, former }).await {
        Ok(secret) => Ok(enter(&state, Realm::Buyers, &secret, see(&next.path()))),
        Err(error @ Error::Refused(Refusal::OtpInvalid)) => {
            let (status, problem) = told(error)?;
            let template = CodePage { theme, form: &form, next, email: &email, problem: Some(problem) };
            page(&state, status, &template)
        }
        Err(error) => Err(error.into()),
    }
}

pub async fn sign_out(Sent(visit, _): Sent) -> Answer {
    let app = &visit.state.app;
    match sessions::end(app, visit.me.account, &visit.me.id).await {
        // Somebody ended it at the same moment, which is what was wanted.
        Ok(()) | Err(Error::Refused(Refusal::NotFound)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(leave(&visit.state, Realm::Buyers, see("/account")))
}

pub async fn sign_out_everywhere(Sent(visit, _): Sent) -> Answer {
    sessions::end_all(&visit.state.app, visit.me.account, Realm::Buyers).await?;
    Ok(leave(&visit.state, Realm::Buyers, see("/account")))
}
