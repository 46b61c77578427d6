//! The company, the low-balance warning, and this member's own: where they are signed in, light or dark, other teams.

use askama::Template;
use axum::http::{HeaderMap, StatusCode};

use super::frame::{Done, Frame, Section, Sent, Visit, after};
use crate::domain::client;
use crate::domain::ids::SessionId;
use crate::domain::login::Realm;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::error::{Error, Result};
use crate::http::kit::answers::Answer;
use crate::http::kit::auth::Client;
use crate::http::kit::fields::{Segment, member_id, session_id};
use crate::http::kit::html::page;
use crate::http::kit::session::{enter, see};
use crate::http::pages::look::{self, Theme};
use crate::http::pages::moment::Moment;
use crate::http::pages::told;
use crate::ops::sessions::portal::{self, Listed};
use crate::ops::team::Person;
use crate::ops::{company, operator, team};

/// A browser that is signed in.
struct Place {
    id: SessionId,
    browser: String,
    network: String,
    made: Moment,
    seen: Moment,
    is_this: bool,
}

#[derive(Template)]
#[template(path = "portal/settings.html")]
struct SettingsPage<'a> {
    frame: Frame<'a>,
    name: String,
    threshold: String,
    warned: String,
    /// Whom the company is written to.
    usual: Option<String>,
    places: Vec<Place>,
    /// The other teams of this person.
    others: Vec<Person>,
    problem: Option<Trouble>,
}

/// What was wrong, with which form, and what was typed there.
struct Trouble {
    form: &'static str,
    problem: String,
    typed: Typed,
}

#[derive(Default)]
struct Typed {
    name: Option<String>,
    threshold: Option<String>,
    warned: Option<String>,
}

impl SettingsPage<'_> {
    fn trouble(&self, form: &str) -> Option<&str> {
        self.problem.as_ref().filter(|trouble| trouble.form == form).map(|trouble| &*trouble.problem)
    }
}

pub async fn show(visit: Visit) -> Answer {
    shown(&visit, StatusCode::OK, None).await
}

async fn shown(visit: &Visit, status: StatusCode, mut problem: Option<Trouble>) -> Answer {
    let (app, me) = (&visit.state.app, visit.me());
    let company = operator::account_by_no(app, me.account).await?;
    let this = &visit.stay().id;
    let place = |listed: Listed| Place {
        is_this: listed.id == *this,
        id: listed.id,
        browser: listed.browser,
        network: listed.network,
        made: Moment::of(listed.made_at),
        seen: Moment::of(listed.seen_at),
    };
    let places = portal::list(app, &me.email).await?.into_iter().map(place).collect();
    let mut others = team::of_email(app, &me.email).await?;
    others.retain(|person| person.id != me.id);
    let typed = problem.as_mut().map(|trouble| std::mem::take(&mut trouble.typed)).unwrap_or_default();
    let template = SettingsPage {
        frame: visit.frame(Section::Settings),
        name: typed.name.unwrap_or(company.name),
        threshold: typed.threshold.unwrap_or_else(|| company.low_balance.to_string()),
        warned: typed.warned.or(company.warned).unwrap_or_default(),
        usual: company.email,
        places,
        others,
        problem,
    };
    page(&visit.state, status, &template)
}

/// Leads on when something was saved, and otherwise says what was wrong with the form.
async fn saved(visit: &Visit, form: &'static str, typed: Typed, saved: Result<()>) -> Answer {
    match saved {
        Ok(()) => Ok(see(&after(Done::Saved, &Section::Settings.path()))),
        Err(error @ Error::Refused(Refusal::Invalid(_))) => {
            let (status, problem) = told(error)?;
            shown(visit, status, Some(Trouble { form, problem, typed })).await
        }
        Err(error) => Err(error.into()),
    }
}

pub async fn rename(Sent(visit, fields): Sent) -> Answer {
    let name = fields.typed("name");
    let renamed = company::rename(&visit.state.app, visit.me(), &name).await;
    saved(&visit, "company", Typed { name: Some(name), ..Typed::default() }, renamed).await
}

pub async fn warn(Sent(visit, mut fields): Sent) -> Answer {
    let (below, to) = (fields.typed("threshold"), fields.typed("email"));
    let typed = Typed { threshold: Some(below), warned: Some(to), ..Typed::default() };
    let must = "must be a number like 25 or 25.50";
    let threshold = fields.require("threshold", must, |text| Usd::parse(text.trim()).ok());
    let whom = match fields.typed("email").is_empty() {
        true => None,
        false => fields.required_email("email"),
    };
    let warned = match fields.finish_with(threshold) {
        Ok(threshold) => company::warn(&visit.state.app, visit.me(), threshold, whom).await,
        Err(refusal) => Err(refusal.into()),
    };
    saved(&visit, "warning", typed, warned).await
}

/// Signs one browser out.
pub async fn end(Segment(id): Segment, Sent(visit, _): Sent) -> Answer {
    portal::end(&visit.state.app, visit.me(), &session_id(&id)?).await?;
    Ok(see(&after(Done::Ended, &Section::Settings.path())))
}

/// Light, dark, or as the system says.
pub async fn theme(Sent(visit, fields): Sent) -> Answer {
    Ok(look::keep(&visit.state, &fields, see(&Section::Settings.path())))
}

/// Goes to another team of the same person.
pub async fn switch(Client(client): Client, headers: HeaderMap, Sent(visit, fields): Sent) -> Answer {
    let agent = look::agent(&headers);
    let to = member_id(&fields.typed("member"))?;
    match portal::switch(&visit.state.app, visit.stay(), &to, agent, client::logged(client)).await {
        Ok(secret) => Ok(enter(&visit.state, Realm::Partners, &secret, see("/portal"))),
        // The button was pressed twice, or this browser was signed out at the same moment.
        Err(Error::Refused(Refusal::NotFound)) => Ok(see("/portal")),
        Err(error) => Err(error.into()),
    }
}
