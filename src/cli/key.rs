//! `simgate key`: API keys. A secret is printed once, when it is made; only its hash is kept.

use clap::{Args, Subcommand};

use super::args::End;
use super::output::{Form, Record, Table, table};
use super::{Failure, Outcome, account, args};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Error;
use crate::ops::operator::{self, IssuedKey, Key, KeyTerms};

#[derive(Subcommand)]
pub enum Command {
    /// Make a further key for a partner; the secret is shown this once
    #[command(
        after_help = "Example: simgate key create ptn_… --name website --expires 90d --daily-limit 200 --ips 10.0.0.0/8"
    )]
    Create(Create),
    /// The keys of one partner, or of all
    #[command(after_help = "Example: simgate key list ops@acme.example")]
    List {
        /// Partner id or email
        partner: Option<String>,
        #[command(flatten)]
        form: Form,
    },
    /// Make a new key with an old one's rights; the old one ends after the overlap
    #[command(after_help = "Example: simgate key rotate key_… --overlap 24h")]
    Rotate(Rotate),
    /// End a key, for good; running gateways stop accepting it within a second
    #[command(after_help = "Example: simgate key revoke key_…")]
    Revoke {
        /// Key id
        key: String,
    },
}

#[derive(Args)]
pub struct Create {
    /// Partner id or email
    partner: String,
    /// The most that this key may spend in a day (UTC)
    #[arg(long, value_name = "USD", value_parser = args::some_usd, allow_negative_numbers = true)]
    daily_limit: Option<Usd>,
    /// Addresses or networks it may be used from, separated by commas
    #[arg(long, value_name = "LIST", value_parser = args::networks)]
    ips: Option<String>,
    /// It may look, but not buy
    #[arg(long)]
    read_only: bool,
    /// What it is for; no two keys in use of a partner have the same name
    #[arg(long, value_name = "TEXT", value_parser = args::name)]
    name: Option<String>,
    /// When it ends: after a span (90d, 24h), with a day, or at a moment
    #[arg(long, value_name = "WHEN", value_parser = args::end)]
    expires: Option<End>,
}

#[derive(Args)]
pub struct Rotate {
    /// Key id
    key: String,
    /// How long the old key still works beside the new one (24h, 7d; 0m ends it at once)
    #[arg(long, value_name = "SPAN", default_value = "24h", value_parser = args::span)]
    overlap: i64,
    /// When the new key ends [default: it lives as long as the old one was made to live]
    #[arg(long, value_name = "WHEN", value_parser = args::end)]
    expires: Option<End>,
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let record = match command {
        Command::Create(create) => make(app, actor, create).await?,
        Command::List { partner, .. } => list(app, partner.as_deref()).await?,
        Command::Rotate(rotate) => replace(app, actor, rotate).await?,
        Command::Revoke { key } => revoke(app, actor, &key).await?,
    };
    Ok(record.into())
}

async fn make(app: &App, actor: &str, create: Create) -> Result<Record, Failure> {
    let owner = account::partner(app, &create.partner).await?;
    let terms = KeyTerms {
        daily_limit: create.daily_limit,
        ips: create.ips.unwrap_or_default(),
        read_only: create.read_only,
        name: create.name.unwrap_or_default(),
        expires_at: ends(app, create.expires)?,
    };
    let record = described(Record::new().with("partnerId", owner.id.to_string()), &terms);
    Ok(issued(record, operator::create_key(app, actor, owner.no, terms).await?))
}

fn described(record: Record, terms: &KeyTerms) -> Record {
    record
        .with("name", Some(terms.name.clone()).filter(|name| !name.is_empty()))
        .with("dailyLimitUsd", terms.daily_limit)
        .with("ips", Some(listed(&terms.ips)).filter(|networks| !networks.is_empty()))
        .with("readOnly", terms.read_only)
        .with("expiresAt", terms.expires_at)
}

/// The moment that was meant, which must be still to come.
fn ends(app: &App, end: Option<End>) -> Result<Option<Time>, Failure> {
    let now = app.now();
    match end.map(|end| end.seen_from(now)) {
        Some(at) if at <= now => Err(Failure::usage("--expires must be in the future")),
        at => Ok(at),
    }
}

async fn replace(app: &App, actor: &str, rotate: Rotate) -> Result<Record, Failure> {
    let expires = ends(app, rotate.expires)?;
    let rotated = operator::rotate_key(app, actor, &rotate.key, rotate.overlap, expires).await;
    let rotated = rotated.map_err(|error| unknown(error, &rotate.key))?;
    let owner = operator::account_by_no(app, rotated.account).await?;
    let record = Record::new()
        .with("partnerId", owner.id.to_string())
        .with("replaces", rotate.key)
        .with("oldKeyEndsAt", rotated.old_ends_at);
    Ok(issued(described(record, &rotated.terms), rotated.key))
}

/// Adds a fresh key and, this once, its secret.
pub fn issued(record: Record, key: IssuedKey) -> Record {
    record
        .with("apiKey", key.id.to_string())
        .with("apiSecret", key.secret)
        .remark("Keep the secret now: only its hash is stored, and it cannot be shown again.")
}

async fn list(app: &App, partner: Option<&str>) -> Result<Record, Failure> {
    let only = match partner {
        Some(text) => Some(account::partner(app, text).await?.no),
        None => None,
    };
    let keys = operator::list_keys(app, only).await?;
    let owners = account::owners(app).await?;
    Ok(Record::new().with("keys", table(&keys, app.now(), |no| owners.get(&no).cloned())))
}

async fn revoke(app: &App, actor: &str, key: &str) -> Result<Record, Failure> {
    operator::revoke_key(app, actor, key).await.map_err(|error| unknown(error, key))?;
    Ok(Record::new().with("apiKey", key).with("revoked", true))
}

fn unknown(error: Error, key: &str) -> Failure {
    let message = format!("no key has the id {key:?}; `simgate key list` shows them all");
    Failure::worded(error, Refusal::KeyNotFound, message)
}

pub fn table(keys: &[Key], now: Time, owner: impl Fn(AccountNo) -> Option<String>) -> Table {
    table!(keys.iter(), |key| {
        "apiKey" => key.id.to_string(),
        "name" => Some(key.name.clone()).filter(|name| !name.is_empty()),
        "status" => status(key, now),
        "partnerId" => owner(key.account),
        "dailyLimitUsd" => key.daily_limit,
        "ips" => Some(listed(&key.ips)).filter(|networks| !networks.is_empty()),
        "readOnly" => key.read_only,
        "createdAt" => key.created_at,
        "expiresAt" => key.expires_at,
        "replacedBy" => key.replaced_by.clone(),
        "revokedAt" => key.revoked_at,
    })
}

fn status(key: &Key, now: Time) -> &'static str {
    if key.revoked_at.is_some() {
        "REVOKED"
    } else if key.has_ended(now) {
        "EXPIRED"
    } else {
        "IN_USE"
    }
}

fn listed(networks: &str) -> Vec<String> {
    networks.split(',').filter(|network| !network.is_empty()).map(str::to_string).collect()
}
