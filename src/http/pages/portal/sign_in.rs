//! Signing in to the portal by a mailed code, and signing out. The answers are the same for every address, whether it is in a
//! team or not.

use askama::Template;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;

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
use crate::http::kit::session::{Turned, VisitorForm, enter, has_form_ended, leave, see};
use crate::http::pages::look::{self, Look, Theme};
use crate::http::pages::{mail_code, proof, told};
use crate::ops::mail;
use crate::ops::sessions::{SignIn, portal};
use crate::ops::team::DEMO_OWNER;

const AGENT_NAME: &str = "partner portal";

#[derive(Template)]
#[template(path = "portal/sign_in.html")]
struct SignInPage<'a> {
    theme: Option<Theme>,
    form: &'a str,
    next: &'a Next,
    /// Whether a form was sent too late.
    form_ended: bool,
    email: String,
    /// Who can sign in to a sandbox at once.
    demo: Option<&'static str>,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "portal/code.html")]
pub struct CodePage<'a> {
    pub theme: Option<Theme>,
    pub form: &'a str,
    pub next: &'a Next,
    /// An invitation's link, where somebody joins a team.
    pub invitation: &'a str,
    pub email: &'a Email,
    /// Where a sandbox shows the mail.
    pub outbox: Option<String>,
    pub problem: Option<String>,
}

/// Where a sandbox without a mail server shows what was mailed to an address.
pub fn outbox(state: &State, email: &Email) -> Option<String> {
    mail::is_shown(&state.app).then(|| format!("/sandbox/outbox?email={email}"))
}

/// The page for somebody who is not signed in.
pub fn entrance(state: &State, theme: Option<Theme>, form: &str, query: &Query) -> Answer {
    let next = &next(query);
    let form_ended = has_form_ended(query);
    let template =
        SignInPage { theme, form, next, form_ended, email: String::new(), demo: demo(state), problem: None };
    page(state, StatusCode::OK, &template)
}

fn demo(state: &State) -> Option<&'static str> {
    mail::is_shown(&state.app).then_some(DEMO_OWNER)
}

/// The page that a sign-in leads on to.
pub fn next(query: &Query) -> Next {
    Next::named(Realm::Partners, &query.typed("next"))
}

/// Mails a code.
pub async fn code(state: State, Look(theme): Look, Client(client): Client, sent: VisitorForm) -> Answer {
    let VisitorForm { mut fields, form, .. } = sent;
    let (next, typed) = (&next(&fields), fields.typed("email"));
    let invitation = fields.typed("invitation");
    let email = fields.required_email("email");
    let asked = match fields.finish_with(email) {
        Ok(email) => mail_code(&state.app, Door::Portal, &email, client).await.map(|()| email),
        Err(refusal) => Err(refusal.into()),
    };
    match asked {
        Ok(email) => {
            let outbox = outbox(&state, &email);
            let (form, email) = (&*form, &email);
            let template =
                CodePage { theme, form, next, invitation: &invitation, email, outbox, problem: None };
            page(&state, StatusCode::OK, &template)
        }
        Err(error) => {
            let (status, problem) = told(error)?;
            let (form, email, demo, problem) = (&*form, typed, demo(&state), Some(problem));
            let template = SignInPage { theme, form, next, form_ended: false, email, demo, problem };
            page(&state, status, &template)
        }
    }
}

/// Exchanges the code for a session; with an invitation its owner joins the team. Whatever session the browser held before
/// ends.
pub async fn sign_in(
    state: State,
    Look(theme): Look,
    Client(client): Client,
    headers: HeaderMap,
    sent: VisitorForm,
) -> Answer {
    let former = sent.former(&state, Realm::Partners);
    let VisitorForm { fields, form, .. } = sent;
    let (next, invitation) = (&next(&fields), fields.typed("invitation"));
    let answer = proof(Door::Portal, AGENT_NAME, client, fields)?;
    let (email, agent) = (answer.email.clone(), look::agent(&headers).to_string());
    let invited = Some(&*invitation).filter(|link| !link.is_empty());
    match portal::sign_in(&state.app, SignIn { answer, agent, former }, invited).await {
        Ok(secret) => {
            let path = match invited {
                Some(_) => "/portal?done=joined".into(),
                None => next.path(),
            };
            Ok(enter(&state, Realm::Partners, &secret, see(&path)))
        }
        Err(error @ Error::Refused(Refusal::OtpInvalid)) => {
            let (status, problem) = told(error)?;
            let (outbox, problem) = (outbox(&state, &email), Some(problem));
            let (form, invitation, email) = (&*form, &*invitation, &email);
            page(&state, status, &CodePage { theme, form, next, invitation, email, outbox, problem })
        }
        Err(error) => Err(error.into()),
    }
}

/// Ends the session. Who has to sign in anew for something is led on to it.
pub async fn sign_out(Sent(visit, fields): Sent) -> Answer {
    match portal::end(&visit.state.app, visit.me(), &visit.stay().id).await {
        // Somebody ended it at the same moment, which is what was wanted.
        Ok(()) | Err(Error::Refused(Refusal::NotFound)) => {}
        Err(error) => return Err(error.into()),
    }
    let to = Turned::ToEntrance { realm: Realm::Partners, next: next(&fields), form_ended: false };
    Ok(leave(&visit.state, Realm::Partners, to.into_response()))
}

pub async fn sign_out_everywhere(Sent(visit, _): Sent) -> Answer {
    portal::end_all(&visit.state.app, visit.me()).await?;
    Ok(leave(&visit.state, Realm::Partners, see("/portal")))
}
