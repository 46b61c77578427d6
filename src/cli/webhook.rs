//! `simgate webhook`: where partners' events are sent to, and a hand for those that do not get them.

use clap::{ArgGroup, Args, Subcommand};

use super::listen::{self, Listen};
use super::output::{Form, Record, Table, table};
use super::{Failure, Outcome, account, args};
use crate::app::App;
use crate::domain::ids::WebhookId;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Error;
use crate::ops::webhooks::{self, By, Change, Delivery, Start, Webhook, by_hand};

#[derive(Subcommand)]
pub enum Command {
    /// The webhooks of one partner, or of all, and how they stand
    #[command(after_help = "Example: simgate webhook list ops@acme.example")]
    List {
        /// Partner id or email
        partner: Option<String>,
        #[command(flatten)]
        form: Form,
    },
    /// Send a test event now; a webhook that waits for its first one and accepts it is active then
    #[command(after_help = "Example: simgate webhook test whk_…
It ends with 1 when the endpoint did not accept it.")]
    Test {
        /// Webhook id
        webhook: String,
    },
    /// What was tried, newest first, and how it was answered
    #[command(after_help = "Example: simgate webhook deliveries whk_… --limit 100")]
    Deliveries {
        /// Webhook id
        webhook: String,
        /// List at most this many [default: 20, with --csv all]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
        limit: Option<i64>,
        #[command(flatten)]
        form: Form,
    },
    /// Send what a delivery sent once more, now; the webhook may be disabled and stays as it is
    #[command(after_help = "Example: simgate webhook redeliver whk_… dlv_…
It ends with 1 when the endpoint did not accept it.")]
    Redeliver {
        /// Webhook id
        webhook: String,
        /// Delivery id, from `simgate webhook deliveries`
        delivery: String,
    },
    /// Send a webhook again everything after an event, or since a time
    #[command(after_help = "Example: simgate webhook replay whk_… --since 2026-01-31
A running gateway sends it.")]
    Replay(Replay),
    /// Send events to a disabled webhook again, from now on
    #[command(after_help = "Example: simgate webhook enable whk_…")]
    Enable {
        /// Webhook id
        webhook: String,
    },
    /// Send a webhook nothing more until it is enabled
    #[command(after_help = "Example: simgate webhook disable whk_…")]
    Disable {
        /// Webhook id
        webhook: String,
    },
    /// Post events to a program on this machine as they happen, with good signatures
    #[command(after_help = "Example: simgate webhook listen --forward http://127.0.0.1:3000/hooks
It signs with the secret in WEBHOOK_SECRET, or with a new one that it prints, and prints what the program answers to each.
An event that it refuses is not sent again.")]
    Listen(Listen),
}

#[derive(Args)]
#[command(group(ArgGroup::new("start").args(["after", "since"]).required(true)))]
pub struct Replay {
    /// Webhook id
    webhook: String,
    /// Everything after this event
    #[arg(long, value_name = "EVENT")]
    after: Option<String>,
    /// Everything since this day or moment
    #[arg(long, value_name = "WHEN", value_parser = args::from)]
    since: Option<Time>,
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let by = By::Operator(actor);
    let record = match command {
        Command::List { partner, .. } => list(app, partner.as_deref()).await?,
        Command::Deliveries { webhook, limit, form } => {
            deliveries(app, by, &webhook, form.limit(limit, 20)).await?
        }
        Command::Test { webhook } => {
            let tried = by_hand::test(app, by, &id(&webhook)).await;
            let (webhook, delivery) = tried.map_err(|error| unknown(error, &webhook))?;
            return Ok(told(app, &webhook, delivery));
        }
        Command::Redeliver { webhook, delivery } => {
            let no = app.numbers.delivery_no(&delivery).ok_or_else(|| no_delivery(&delivery))?;
            let tried = by_hand::redeliver(app, by, &id(&webhook), no).await;
            let tried = tried.map_err(|error| unknown(error, &webhook))?;
            return Ok(told(app, &webhooks::get(app, by, &id(&webhook)).await?, tried));
        }
        Command::Listen(listen) => return listen::run(app, listen).await,
        Command::Replay(replay) => rewind(app, by, replay).await?,
        Command::Enable { webhook } => switch(app, by, &webhook, true).await?,
        Command::Disable { webhook } => switch(app, by, &webhook, false).await?,
    };
    Ok(record.into())
}

fn id(text: &str) -> WebhookId {
    WebhookId::from_text(text)
}

fn unknown(error: Error, webhook: &str) -> Failure {
    let message = format!("no webhook has the id {webhook:?}; `simgate webhook list` shows them all");
    Failure::worded(error, Refusal::WebhookNotFound, message)
}

fn no_delivery(delivery: &str) -> Failure {
    let message = format!("no delivery has the id {delivery:?}; `simgate webhook deliveries` shows them");
    Failure::refused(Refusal::DeliveryNotFound, message)
}

async fn list(app: &App, partner: Option<&str>) -> Result<Record, Failure> {
    let only = match partner {
        Some(text) => Some(account::partner(app, text).await?.no),
        None => None,
    };
    let owners = account::owners(app).await?;
    let found = webhooks::list(app, only).await?;
    let table = table!(found.into_iter(), |standing| {
        let webhook = standing.webhook;
        "webhookId" => webhook.id.to_string(),
        "partnerId" => owners.get(&webhook.account).cloned(),
        "url" => webhook.url.clone(),
        "status" => webhook.status.as_str(),
        "events" => webhook.wanted().iter().map(|kind| kind.as_str().to_string()).collect::<Vec<_>>(),
        "waiting" => standing.waiting,
        "setAside" => standing.set_aside,
        "failingSince" => webhook.failing_since,
        "acceptedAt" => webhook.accepted_at,
        "disabledAt" => webhook.disabled_at,
        "createdAt" => webhook.created_at,
        "description" => Some(webhook.description).filter(|text| !text.is_empty()),
    });
    Ok(Record::new().with("webhooks", table))
}

fn tried(app: &App, deliveries: Vec<Delivery>) -> Table {
    table!(deliveries.into_iter(), |delivery| {
        "deliveryId" => app.numbers.delivery_id(delivery.no),
        "sentAt" => delivery.at,
        "type" => delivery.kind.clone(),
        "eventId" => delivery.message.clone(),
        "attempt" => delivery.attempt,
        "accepted" => delivery.accepted(),
        "httpStatus" => delivery.status,
        "durationMs" => delivery.ms,
        "trouble" => delivery.trouble.clone(),
        "answer" => delivery.answer.filter(|text| !text.is_empty()),
    })
}

/// What came of a try by hand. A refusal is no mistake of the command, but whoever waits for success must see it.
fn told(app: &App, webhook: &Webhook, delivery: Delivery) -> super::Report {
    let passed = delivery.accepted();
    let mut record =
        Record::new().with("webhookId", webhook.id.to_string()).with("status", webhook.status.as_str());
    record.fields.extend(tried(app, vec![delivery]).into_record().fields);
    super::Report { record, passed }
}

async fn deliveries(app: &App, by: By<'_>, webhook: &str, limit: i64) -> Result<Record, Failure> {
    let page = webhooks::deliveries(app, by, &id(webhook), None, limit).await;
    let page = page.map_err(|error| unknown(error, webhook))?;
    Ok(Record::new().with("deliveries", tried(app, page.deliveries)).going_on(page.next.is_some()))
}

async fn rewind(app: &App, by: By<'_>, replay: Replay) -> Result<Record, Failure> {
    let place = |text: &String| {
        let place = app.numbers.event_place(text);
        place.ok_or_else(|| Failure::usage("--after must be the id of an event, like evt_5tVq0Zk2LmA"))
    };
    let after = replay.after.as_ref().map(place).transpose()?.map(Start::After);
    let start = after.or(replay.since.map(Start::Since));
    let start = start.ok_or_else(|| Failure::usage("--after or --since is needed"))?;
    let replayed = webhooks::replay(app, by, &id(&replay.webhook), start).await;
    let (webhook, after) = replayed.map_err(|error| unknown(error, &replay.webhook))?;
    let record = Record::new()
        .with("webhookId", webhook.id.to_string())
        .with("status", webhook.status.as_str())
        .with("after", app.numbers.event_id(after));
    Ok(record.remark("A running gateway sends it every event after this one."))
}

async fn switch(app: &App, by: By<'_>, webhook: &str, enabled: bool) -> Result<Record, Failure> {
    let change = Change { enabled: Some(enabled), ..Change::default() };
    let after = webhooks::change(app, by, &id(webhook), change).await;
    let after = after.map_err(|error| unknown(error, webhook))?;
    Ok(Record::new().with("webhookId", after.id.to_string()).with("status", after.status.as_str()))
}
