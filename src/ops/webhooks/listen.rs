//! Follows an account's events and posts them to a program on the operator's machine, signed as a webhook signs them. For
//! developers: nothing of it is remembered.

use std::sync::Arc;
use std::time::Duration;

use super::message::Message;
use crate::app::App;
use crate::domain::event::EventKind;
use crate::domain::ids::AccountNo;
use crate::domain::refusal::Refusal;
use crate::error::{Error, Result};
use crate::ops::events::{self, Wanted, tail};
use crate::vault;
use crate::webhook::{Outcome, Rules, Secret, Sender, SystemDns, Target, headers};

/// How many events are taken at once, and how long one look waits for the first.
const AT_ONCE: i64 = 20;
const WAIT: Duration = Duration::from_secs(30);

pub struct Listener {
    account: AccountNo,
    kinds: Vec<EventKind>,
    after: i64,
    secret: Secret,
    sender: Sender,
    target: Target,
}

/// What to follow, and where to.
pub struct Follow<'a> {
    pub account: AccountNo,
    pub url: &'a str,
    /// All when empty.
    pub kinds: Vec<EventKind>,
    /// The place to go on from; the end of the log when absent.
    pub after: Option<i64>,
    /// The key of the signatures; a new one when absent.
    pub secret: Option<&'a str>,
}

/// What the program answered to an event.
pub struct Heard {
    pub id: String,
    pub kind: &'static str,
    pub sequence: i64,
    /// The status, or why there is none.
    pub answer: Result<u16, String>,
}

impl Listener {
    pub async fn begin(app: &App, follow: Follow<'_>) -> Result<Listener> {
        // An operator may send anything anywhere.
        let rules = Rules { plain_http: true, ports: None, allow_private: true, own_hosts: Vec::new() };
        let target = Target::parse(follow.url, &rules).map_err(|why| Refusal::field("forward", why))?;
        let secret = match follow.secret {
            Some(text) => Secret::parse(text)
                .ok_or_else(|| Refusal::field("WEBHOOK_SECRET", "must be a secret of a webhook, whsec_…"))?,
            None => Secret::new([vault::random(), vault::random()]),
        };
        let after = match follow.after {
            Some(place) => place,
            None => tail::now(app).await?,
        };
        let sender = Sender::new(rules, Arc::new(SystemDns::default())).map_err(Error::settings)?;
        Ok(Listener { account: follow.account, kinds: follow.kinds, after, secret, sender, target })
    }

    /// The key that the program checks signatures with.
    pub fn secret(&self) -> String {
        self.secret.text()
    }

    /// Posts what happened since the last call, one after the other and at most so many; waits for the first.
    pub async fn next(&mut self, app: &App, most: i64) -> Result<Vec<Heard>> {
        let limit = most.clamp(1, AT_ONCE);
        let wanted = Wanted { after: self.after, kinds: self.kinds.clone(), limit, wait: WAIT };
        let page = events::read(app, self.account, wanted).await?;
        let mut heard = Vec::with_capacity(page.events.len());
        for event in &page.events {
            let message = Message::of_event(app, event)?;
            let seconds = app.now().micros().div_euclid(1_000_000);
            let headers = headers(&message.id, seconds, std::slice::from_ref(&self.secret), &message.body);
            let answer = match self.sender.post(&self.target, &headers, message.body).await.outcome {
                Outcome::Answered { status, .. } => Ok(status),
                Outcome::Refused(why) | Outcome::Failed(why) => Err(why),
                Outcome::Busy => Err("too many names are being looked up".into()),
            };
            heard.push(Heard { id: message.id, kind: message.kind, sequence: event.sequence, answer });
        }
        self.after = page.next;
        Ok(heard)
    }
}
