//! What surrounds every page of the portal: its sections, the balance, the search, who is signed in, what was just done.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;

use crate::domain::role::Ability;
use crate::domain::words::words;
use crate::http::kit::State;
use crate::http::kit::fields::Query;
use crate::http::kit::session::{SignedForm, SignedIn, Turned};
use crate::http::pages::look::{Look, Theme};
use crate::ops::sessions::portal::Stay;
use crate::ops::team::Member;

words! {
    /// The parts of the portal, as their paths name them.
    pub enum Section: ALL, parse {
        Overview = "overview",
        Orders = "orders",
        Team = "team",
        Settings = "settings",
    }
}

impl Section {
    pub fn name(self) -> &'static str {
        match self {
            Section::Overview => "Overview",
            Section::Orders => "Orders",
            Section::Team => "Team",
            Section::Settings => "Settings",
        }
    }

    pub fn path(self) -> String {
        match self {
            Section::Overview => "/portal".into(),
            other => format!("/portal/{}", other.as_str()),
        }
    }
}

words! {
    /// What the reader has just done; the next page says so.
    pub enum Done: parse {
        Invited = "invited",
        RoleChanged = "role-changed",
        Removed = "removed",
        Saved = "saved",
        Ended = "ended",
        Joined = "joined",
        Placed = "placed",
        Known = "known",
        ToppedUp = "topped-up",
        GivenBack = "given-back",
        Asked = "asked",
        Kept = "kept",
        Mailed = "mailed",
        Begun = "begun",
    }
}

impl Done {
    fn in_words(self) -> &'static str {
        match self {
            Done::Invited => "The invitation is on its way. It is good for 72 hours.",
            Done::RoleChanged => "The role was changed. It counts from now on.",
            Done::Removed => "That person is not in the team any more, and is signed out everywhere.",
            Done::Saved => "Saved.",
            Done::Ended => "That browser is signed out.",
            Done::Joined => "Welcome to the team.",
            Done::Placed => "The order was placed, and paid from the balance.",
            Done::Known => {
                "This reference had bought this order before. Nothing was bought or charged again."
            }
            Done::ToppedUp => "The data was bought, and paid from the balance.",
            Done::GivenBack => "The eSIM was given back, and the money is in the balance.",
            Done::Asked => {
                "The supplier was asked to take the eSIM back. When it agrees, the money is in the balance."
            }
            Done::Kept => "The eSIM is kept after all. No money moved.",
            Done::Mailed => "The mail is on its way to your customer.",
            Done::Begun => "The orders are being placed. You can leave this page: they go on.",
        }
    }
}

/// What the template of every page needs.
pub struct Frame<'a> {
    pub me: &'a Member,
    /// The token of the forms.
    pub form: &'a str,
    pub theme: Option<Theme>,
    /// Each with whether the page belongs to it.
    pub sections: Vec<(Section, bool)>,
    pub done: Option<&'static str>,
    pub is_low: bool,
}

impl Frame<'_> {
    /// Whether to offer something.
    pub fn may(&self, ability: Ability) -> bool {
        self.me.may(ability)
    }
}

/// A member who is signed in and looks at a page.
pub struct Visit {
    me: SignedIn<Stay>,
    pub state: State,
    look: Look,
    done: Option<Done>,
}

impl Visit {
    pub fn me(&self) -> &Member {
        &self.me.member
    }

    pub fn stay(&self) -> &Stay {
        &self.me
    }

    pub fn frame(&self, section: Section) -> Frame<'_> {
        let me = self.me();
        Frame {
            me,
            form: &self.me.form,
            theme: self.look.0,
            sections: Section::ALL.into_iter().map(|one| (one, one == section)).collect(),
            done: self.done.map(Done::in_words),
            is_low: me.balance < me.low_balance,
        }
    }
}

impl FromRequestParts<State> for Visit {
    type Rejection = Turned;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Visit, Turned> {
        let me = SignedIn::from_request_parts(parts, state).await?;
        let look = Look::of(state, &parts.headers);
        let done = Done::parse(&Query::parse(parts.uri.query()).typed("done"));
        Ok(Visit { me, state: state.clone(), look, done })
    }
}

/// The same with a form that was sent.
pub struct Sent(pub Visit, pub Query);

impl FromRequest<State> for Sent {
    type Rejection = Turned;

    async fn from_request(request: Request, state: &State) -> Result<Sent, Turned> {
        let look = Look::of(state, request.headers());
        let SignedForm(me, fields) = SignedForm::from_request(request, state).await?;
        Ok(Sent(Visit { me, state: state.clone(), look, done: None }, fields))
    }
}

/// The address of a page that says what was done.
pub fn after(done: Done, path: &str) -> String {
    format!("{path}?done={}", done.as_str())
}
