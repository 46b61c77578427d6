//! What surrounds every page of the portal: its sections, the balance, the search, who is signed in, what was just done.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;

use crate::domain::login::Realm;
use crate::domain::role::{Ability, Role};
use crate::domain::words::words;
use crate::http::kit::State;
use crate::http::kit::fields::Query;
use crate::http::kit::problem::Refused;
use crate::http::kit::session::{SignedForm, SignedIn, Turned};
use crate::http::pages::look::{Look, Theme};
use crate::ops::second_factor::{self, Standing};
use crate::ops::sessions::portal::Stay;
use crate::ops::team::Member;

words! {
    /// The parts of the portal, as their paths name them.
    pub enum Section: ALL {
        Overview = "overview",
        Orders = "orders",
        Plans = "plans",
        Deposits = "deposits",
        Statement = "statement",
        Keys = "keys",
        Webhooks = "webhooks",
        Logs = "logs",
        Team = "team",
        Settings = "settings",
    }
}

impl Section {
    pub fn name(self) -> &'static str {
        match self {
            Section::Overview => "Overview",
            Section::Orders => "Orders",
            Section::Plans => "Plans",
            Section::Deposits => "Deposits",
            Section::Statement => "Statement",
            Section::Keys => "API keys",
            Section::Webhooks => "Webhooks",
            Section::Logs => "Logs",
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
        FactorOff = "factor-off",
        Joined = "joined",
        AddressMade = "address-made",
        KeyRevoked = "key-revoked",
        WebhookEnabled = "webhook-enabled",
        WebhookDisabled = "webhook-disabled",
        WebhookDeleted = "webhook-deleted",
        Replayed = "replayed",
        Placed = "placed",
        Known = "known",
        ToppedUp = "topped-up",
        GivenBack = "given-back",
        Asked = "asked",
        Kept = "kept",
        Mailed = "mailed",
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
            Done::FactorOff => "The second factor is off.",
            Done::Joined => "Welcome to the team.",
            Done::AddressMade => "The address is yours from now on. Nobody else gets it.",
            Done::KeyRevoked => "The key has ended. It is refused everywhere within a second.",
            Done::WebhookEnabled => "It is sent what happens from now on. What it missed can be sent again.",
            Done::WebhookDisabled => {
                "Nothing is sent to it until you enable it. Events are kept for 90 days."
            }
            Done::WebhookDeleted => "The webhook is deleted. What is on its way may still come.",
            Done::Replayed => {
                "What happened since then is sent again. Each stands under Deliveries once it was."
            }
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
    /// Whether the operator wants a second factor of this member.
    pub needs_factor: bool,
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
            needs_factor: needs_factor(&self.state, me),
        }
    }
}

impl FromRequestParts<State> for Visit {
    type Rejection = Turned;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Visit, Turned> {
        let me = SignedIn::<Stay>::from_request_parts(parts, state).await?;
        require_factor(state, &me, parts.uri.path()).await?;
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
        let (look, path) = (Look::of(state, request.headers()), request.uri().path().to_string());
        let SignedForm(me, fields) = SignedForm::from_request(request, state).await?;
        require_factor(state, &me, &path).await?;
        Ok(Sent(Visit { me, state: state.clone(), look, done: None }, fields))
    }
}

/// Whether the operator wants a second factor of this member.
fn needs_factor(state: &State, me: &Member) -> bool {
    state.app.settings.owners_need_second_factor && me.role == Role::Owner
}

/// Leads owners who need a second factor and have none to where it is set up. Signing out stays open to them.
async fn require_factor(state: &State, stay: &Stay, path: &str) -> Result<(), Turned> {
    let is_open = path.starts_with("/portal/settings/second-factor") || path.starts_with("/portal/sign-out");
    if is_open || !needs_factor(state, &stay.member) {
        return Ok(());
    }
    let standing = second_factor::state(&state.app, Realm::Partners, &stay.member.email).await;
    match standing.map_err(Refused::from)? {
        Standing::On { .. } => Ok(()),
        Standing::Off | Standing::Begun { .. } => Err(Turned::To("/portal/settings/second-factor")),
    }
}

/// The address of a page that says what was done.
pub fn after(done: Done, path: &str) -> String {
    format!("{path}?done={}", done.as_str())
}
