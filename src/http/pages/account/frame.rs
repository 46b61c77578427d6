//! What surrounds every page of an account: its sections, who is signed in, the theme, and what was just done.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;

use crate::config::Mode;
use crate::domain::words::words;
use crate::http::kit::State;
use crate::http::kit::fields::Query;
use crate::http::kit::session::{SignedForm, SignedIn, Turned};
use crate::http::pages::look::{Look, Theme};

words! {
    /// The parts of an account, as their paths name them.
    pub enum Section: ALL {
        Overview = "overview",
        Buy = "buy",
        Orders = "orders",
        Wallet = "wallet",
        Agents = "agents",
        Settings = "settings",
    }
}

impl Section {
    pub fn name(self) -> &'static str {
        match self {
            Section::Overview => "Overview",
            Section::Buy => "Buy a plan",
            Section::Orders => "Orders",
            Section::Wallet => "Wallet",
            Section::Agents => "Agents",
            Section::Settings => "Settings",
        }
    }

    pub fn path(self) -> String {
        match self {
            Section::Overview => "/account".into(),
            other => format!("/account/{}", other.as_str()),
        }
    }
}

words! {
    /// What the reader has just done; the next page says so.
    pub enum Done: parse {
        Bought = "bought",
        ToppedUp = "topped-up",
        GivenBack = "given-back",
        Asked = "asked",
        Limited = "limited",
        Revoked = "revoked",
        Ended = "ended",
    }
}

impl Done {
    fn in_words(self) -> &'static str {
        match self {
            Done::Bought => "Bought, and paid from your wallet.",
            Done::ToppedUp => "The data was bought, and paid from your wallet.",
            Done::GivenBack => "The eSIM was given back, and its price is in your wallet.",
            Done::Asked => {
                "The supplier was asked to take the eSIM back. When it agrees, the price is in your wallet."
            }
            Done::Limited => "The daily limit was changed. It counts from now on.",
            Done::Revoked => "The token was revoked. It opens nothing any more.",
            Done::Ended => "That browser is signed out.",
        }
    }
}

/// What the template of every page needs.
pub struct Frame<'a> {
    pub email: String,
    /// The token of the forms.
    pub form: &'a str,
    pub theme: Option<Theme>,
    /// Each with whether the page belongs to it.
    pub sections: Vec<(Section, bool)>,
    pub done: Option<&'static str>,
    pub sandbox: bool,
}

/// Somebody who is signed in and looks at a page.
pub struct Visit {
    pub me: SignedIn,
    pub state: State,
    look: Look,
    done: Option<Done>,
}

impl Visit {
    pub fn frame(&self, section: Section) -> Frame<'_> {
        Frame {
            email: self.me.email.to_string(),
            form: &self.me.form,
            theme: self.look.0,
            sections: Section::ALL.into_iter().map(|one| (one, one == section)).collect(),
            done: self.done.map(Done::in_words),
            sandbox: self.state.app.settings.mode == Mode::Sandbox,
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

/// Which page of a list, of how many.
pub struct Pager {
    pub number: i64,
    pub last: i64,
}

/// How many rows of a list a page shows.
pub const ROWS: i64 = 20;
const MOST_PAGES: i64 = 1_000_000;

impl Pager {
    /// The number in `?page=`; what is no number is the first.
    pub fn number(query: &Query) -> i64 {
        query.typed("page").parse().unwrap_or(1).clamp(1, MOST_PAGES)
    }

    pub fn of(number: i64, total: i64) -> Pager {
        Pager { number, last: ((total + ROWS - 1) / ROWS).max(1) }
    }
}
