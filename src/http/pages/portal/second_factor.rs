//! The second factor: asked for after the mailed code, and set up, renewed or turned off in the settings. The secret and the
//! recovery codes are shown this once, in the answer of the form that made them.

use askama::Template;
use axum::http::{HeaderMap, StatusCode};

use super::frame::{Done, Frame, Section, Sent, Visit, after};
use super::sign_in;
use crate::domain::client;
use crate::domain::login::Realm;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Client;
use crate::http::kit::fields::{CODE_CHARS, Query};
use crate::http::kit::html::page;
use crate::http::kit::next::Next;
use crate::http::kit::qr;
use crate::http::kit::session::{Awaited, SignedForm, SignedIn, enter, see};
use crate::http::kit::{State, problem};
use crate::http::pages::in_words;
use crate::http::pages::look::{self, Look, Theme};
use crate::http::pages::moment::Moment;
use crate::ops::second_factor::{self, Setup, Standing};
use crate::ops::sessions::portal;

const PATH: &str = "/portal/settings/second-factor";

/// The page between the mailed code and the portal, or a page there.
pub fn path(next: &Next) -> String {
    let next = next.about.map(|_| format!("?next={next}")).unwrap_or_default();
    format!("/portal/second-factor{next}")
}

#[derive(Template)]
#[template(path = "portal/factor_asked.html")]
struct AskedPage<'a> {
    theme: Option<Theme>,
    form: &'a str,
    next: &'a Next,
    email: String,
    problem: Option<String>,
}

pub async fn asked(state: State, Look(theme): Look, query: Query, awaited: SignedIn<Awaited>) -> Answer {
    asked_with(&state, StatusCode::OK, theme, &awaited, &sign_in::next(&query), None)
}

fn asked_with(
    state: &State,
    status: StatusCode,
    theme: Option<Theme>,
    awaited: &SignedIn<Awaited>,
    next: &Next,
    problem: Option<String>,
) -> Answer {
    let email = awaited.0.member.email.to_string();
    page(state, status, &AskedPage { theme, form: &awaited.form, next, email, problem })
}

/// Takes a code of the app or a recovery code.
pub async fn pass(
    state: State,
    Look(theme): Look,
    Client(client): Client,
    headers: HeaderMap,
    SignedForm(awaited, mut fields): SignedForm<Awaited>,
) -> Answer {
    let code = fields.text("code", CODE_CHARS).unwrap_or_default();
    let (next, agent) = (&sign_in::next(&fields), look::agent(&headers));
    match portal::pass(&state.app, &awaited.0, &code, agent, client::logged(client)).await {
        Ok(secret) => Ok(enter(&state, Realm::Partners, &secret, see(&next.path()))),
        // The form is shown again while its sign-in lives; the fifth wrong code leads back to the entrance.
        Err(error) => {
            let extra = problem::extra_header(&error);
            let (status, problem) = refused(error)?;
            let mut response = asked_with(&state, status, theme, &awaited, next, Some(problem))?;
            response.headers_mut().extend(extra);
            Ok(response)
        }
    }
}

/// What to say above a form whose code was refused.
fn refused(error: Error) -> Result<(StatusCode, String)> {
    match &error {
        Error::Refused(
            refusal @ (Refusal::SecondFactorWrong
            | Refusal::SecondFactorUsed
            | Refusal::SecondFactorRests { .. }),
        ) => {
            let status = StatusCode::from_u16(refusal.problem().status).unwrap_or(StatusCode::BAD_REQUEST);
            Ok((status, in_words(refusal)))
        }
        _ => Err(error),
    }
}

/// Whether it is on, and how many recovery codes are left.
enum Shown {
    Off,
    On { since: Moment, left: i64 },
}

#[derive(Template)]
#[template(path = "portal/factor.html")]
struct FactorPage<'a> {
    frame: Frame<'a>,
    shown: Shown,
    /// Whether it takes another sign-in to set it up.
    is_too_late: bool,
    problem: Option<String>,
}

pub async fn show(visit: Visit) -> Answer {
    shown(&visit, StatusCode::OK, None).await
}

async fn shown(visit: &Visit, status: StatusCode, problem: Option<String>) -> Answer {
    let standing = second_factor::state(&visit.state.app, Realm::Partners, &visit.me().email).await?;
    let shown = match standing {
        Standing::Off | Standing::Begun { .. } => Shown::Off,
        Standing::On { since, recovery_codes } => {
            Shown::On { since: Moment::of(since), left: recovery_codes }
        }
    };
    let is_too_late = !second_factor::may_begin(&visit.state.app, visit.stay().made_at);
    let frame = visit.frame(Section::Settings);
    page(&visit.state, status, &FactorPage { frame, shown, is_too_late, problem })
}

#[derive(Template)]
#[template(path = "portal/factor_setup.html")]
struct SetupPage<'a> {
    frame: Frame<'a>,
    qr: String,
    secret: String,
    groups: Vec<String>,
    problem: Option<String>,
}

/// Begins: shows a secret to put into an app.
pub async fn begin(Sent(visit, _): Sent) -> Answer {
    let (app, email) = (&visit.state.app, &visit.me().email);
    match second_factor::begin(app, Realm::Partners, email, visit.stay().made_at).await {
        Ok(setup) => setting_up(&visit, StatusCode::OK, setup, None),
        Err(Error::Refused(Refusal::SignInAnew)) => shown(&visit, StatusCode::FORBIDDEN, None).await,
        Err(error) => Err(error.into()),
    }
}

fn setting_up(visit: &Visit, status: StatusCode, setup: Setup, problem: Option<String>) -> Answer {
    let template = SetupPage {
        frame: visit.frame(Section::Settings),
        qr: qr::svg(&qr::encode(&setup.uri)?),
        groups: crate::http::pages::pay::groups_of_four(&setup.secret_text),
        secret: setup.secret_text,
        problem,
    };
    page(&visit.state, status, &template)
}

#[derive(Template)]
#[template(path = "portal/recovery_codes.html")]
struct RecoveryPage<'a> {
    frame: Frame<'a>,
    /// Whether it was turned on just now.
    is_new: bool,
    codes: Vec<String>,
    all: String,
}

fn recovery(visit: &Visit, codes: Vec<String>, is_new: bool) -> Answer {
    let all = codes.join("\n");
    let frame = visit.frame(Section::Settings);
    page(&visit.state, StatusCode::OK, &RecoveryPage { frame, is_new, codes, all })
}

fn code(fields: &mut Query) -> String {
    fields.text("code", CODE_CHARS).unwrap_or_default()
}

/// Turns on what was begun.
pub async fn confirm(Sent(visit, mut fields): Sent) -> Answer {
    let (app, email) = (&visit.state.app, &visit.me().email);
    let secret = fields.typed("secret");
    match second_factor::confirm(app, Realm::Partners, email, &code(&mut fields), &visit.stay().id).await {
        Ok(codes) => recovery(&visit, codes, true),
        Err(error) => {
            let (status, problem) = refused(error)?;
            match second_factor::again(app, Realm::Partners, email, &secret).await? {
                Some(setup) => setting_up(&visit, status, setup, Some(problem)),
                None => Ok(see(PATH)),
            }
        }
    }
}

/// Makes recovery codes anew.
pub async fn renew(Sent(visit, mut fields): Sent) -> Answer {
    let (app, email) = (&visit.state.app, &visit.me().email);
    match second_factor::new_recovery_codes(app, Realm::Partners, email, &code(&mut fields)).await {
        Ok(codes) => recovery(&visit, codes, false),
        Err(error) => {
            let (status, problem) = refused(error)?;
            shown(&visit, status, Some(problem)).await
        }
    }
}

pub async fn turn_off(Sent(visit, mut fields): Sent) -> Answer {
    let (app, email) = (&visit.state.app, &visit.me().email);
    match second_factor::turn_off(app, Realm::Partners, email, &code(&mut fields)).await {
        Ok(()) => Ok(see(&after(Done::FactorOff, PATH))),
        Err(error) => {
            let (status, problem) = refused(error)?;
            shown(&visit, status, Some(problem)).await
        }
    }
}
