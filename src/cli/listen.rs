//! `simgate webhook listen`: events to a program on this machine, for developers.

use clap::Args;

use super::output::Record;
use super::{Failure, Outcome, account};
use crate::app::App;
use crate::domain::event::EventKind;
use crate::domain::refusal::Refusal;
use crate::ops::operator;
use crate::ops::webhooks::listen::{Follow, Heard, Listener};

/// The variable with the key to sign with: a command line would show it to every user of the machine.
const SECRET: &str = "WEBHOOK_SECRET";

#[derive(Args)]
pub struct Listen {
    /// Where to post events to, such as http://127.0.0.1:3000/hooks
    #[arg(long, value_name = "URL")]
    forward: String,
    /// Whose events, by partner id or email [default: the first partner]
    #[arg(long, value_name = "PARTNER")]
    partner: Option<String>,
    /// Only events of these types
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = kind)]
    types: Vec<EventKind>,
    /// Go on from this event [default: only what happens from now on]
    #[arg(long, value_name = "EVENT")]
    after: Option<String>,
    /// End after this many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    count: Option<i64>,
}

fn kind(text: &str) -> Result<EventKind, String> {
    let known = EventKind::ALL.map(EventKind::as_str).join(", ");
    EventKind::parse(text).ok_or_else(|| format!("must be one of {known}"))
}

pub async fn run(app: &App, listen: Listen) -> Outcome {
    let partner = match &listen.partner {
        Some(text) => account::partner(app, text).await?,
        None => {
            let first = operator::partners(app).await?.into_iter().next();
            first.ok_or_else(|| Failure::refused(Refusal::AccountNotFound, "there is no partner yet"))?
        }
    };
    let after = match &listen.after {
        Some(id) => Some(app.numbers.event_place(id).ok_or_else(|| {
            Failure::refused(
                Refusal::field("after", "must be the id of an event"),
                format!("no event has the id {id:?}"),
            )
        })?),
        None => None,
    };
    let (url, given) = (listen.forward.as_str(), std::env::var(SECRET).ok().filter(|text| !text.is_empty()));
    let secret = given.as_deref();
    let follow = Follow { account: partner.no, url, kinds: listen.types, after, secret };
    let mut listener = Listener::begin(app, follow).await?;
    eprintln!("Events of {} go to {url}; Ctrl-C ends it.", partner.name);
    match given {
        Some(_) => eprintln!("Their signatures are made with the secret in {SECRET}"),
        None => eprintln!("Their signatures are made with {}", listener.secret()),
    }
    let (mut accepted, mut refused, most) = (0, 0, listen.count.unwrap_or(i64::MAX));
    while accepted + refused < most {
        let heard = tokio::select! {
            heard = listener.next(app, most - accepted - refused) => heard?,
            _ = tokio::signal::ctrl_c() => break,
        };
        for Heard { id, kind, sequence, answer } in heard {
            let is_accepted = matches!(answer, Ok(status) if (200..300).contains(&status));
            *(if is_accepted { &mut accepted } else { &mut refused }) += 1;
            let answer = answer.map_or_else(|why| why, |status| status.to_string());
            eprintln!("{id} {kind} {sequence}: {answer}");
        }
    }
    let record = Record::new().with("partnerId", partner.id.to_string());
    Ok(record.with("accepted", accepted).with("refused", refused).into())
}
