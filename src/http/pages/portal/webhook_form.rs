//! What the forms of webhooks ask: where to, which events, what for.

use crate::app::App;
use crate::domain::event::EventKind;
use crate::domain::refusal::Refusal;
use crate::http::kit::fields::Query;
use crate::ops::webhooks::{self, Target, Webhook};

const DESCRIPTION_CHARS: usize = 200;
/// The value of the choice between all events and some.
const SOME: &str = "some";

/// What was typed.
#[derive(Default)]
pub struct Typed {
    pub url: String,
    pub only_some: bool,
    pub kinds: Vec<EventKind>,
    pub description: String,
}

/// A kind of events to choose.
pub struct Choice {
    pub word: &'static str,
    pub about: &'static str,
    pub chosen: bool,
}

/// What was asked for, when all of it is good.
pub struct Wish {
    pub target: Target,
    pub kinds: Vec<EventKind>,
    pub description: String,
}

impl Typed {
    pub fn of(fields: &Query) -> Typed {
        let chosen = |kind: &EventKind| !fields.typed(kind.as_str()).is_empty();
        Typed {
            url: fields.typed("url"),
            only_some: fields.typed("events") == SOME,
            kinds: EventKind::ALL.into_iter().filter(chosen).collect(),
            description: fields.typed("description"),
        }
    }

    /// A webhook as it is.
    pub fn now(webhook: &Webhook) -> Typed {
        Typed {
            url: webhook.url.clone(),
            only_some: !webhook.kinds.is_empty(),
            kinds: webhook.kinds.clone(),
            description: webhook.description.clone(),
        }
    }

    pub fn choices(&self) -> Vec<Choice> {
        let choice = |kind: EventKind| Choice {
            word: kind.as_str(),
            about: about(kind),
            chosen: self.kinds.contains(&kind),
        };
        EventKind::ALL.into_iter().map(choice).collect()
    }

    pub fn read(&self, app: &App, mut fields: Query) -> Result<Wish, Refusal> {
        let target = match self.url.trim() {
            "" => Err("is required".into()),
            url => webhooks::target(app, url),
        };
        let target = target.map_err(|why| fields.wrong("url", why)).ok();
        if self.only_some && self.kinds.is_empty() {
            fields.wrong("events", "must be all, or at least one that you choose");
        }
        let kinds = if self.only_some { self.kinds.clone() } else { Vec::new() };
        let description = fields.text("description", DESCRIPTION_CHARS).unwrap_or_default();
        fields.finish_with(target.map(|target| Wish { target, kinds, description }))
    }
}

fn about(kind: EventKind) -> &'static str {
    match kind {
        EventKind::OrderFulfilled => "An eSIM was delivered",
        EventKind::OrderFailed => "An order failed, and its money is back",
        EventKind::OrderCancelled => "An order was cancelled, and its money is back",
        EventKind::TopUpCompleted => "Data was added to an eSIM",
        EventKind::TopUpFailed => "Data could not be added, and the money is back",
        EventKind::DepositDetected => "A payment was seen on its network",
        EventKind::DepositConfirmed => "A payment is in your balance",
        EventKind::DepositExpired => "A deposit's time is over",
        EventKind::LowBalance => "The balance fell below your warning",
        EventKind::EsimStatusChanged => "An eSIM was installed, used up, or has ended",
        EventKind::UsageThreshold => "50, 75, 90 or 100 percent of the data are used",
    }
}
