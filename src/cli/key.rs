//! `simgate key`: API keys. A secret is printed once, when it is made; only its hash is kept.

use clap::{Args, Subcommand};

use super::output::{Record, Table, table};
use super::{Failure, Outcome, account, args};
use crate::app::App;
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::ops::operator::{self, IssuedKey, Key, KeyTerms};

#[derive(Subcommand)]
pub enum Command {
    /// Make a further key for a partner; the secret is shown this once
    #[command(after_help = "Example: simgate key create ptn_… --daily-limit 200 --ips 192.0.2.7,10.0.0.0/8")]
    Create(Create),
    /// The keys of one partner, or of all
    List {
        /// Partner id or email
        partner: Option<String>,
    },
    /// End a key, for good; running gateways stop accepting it within a second
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
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let record = match command {
        Command::Create(create) => make(app, actor, create).await?,
        Command::List { partner } => list(app, partner.as_deref()).await?,
        Command::Revoke { key } => revoke(app, actor, &key).await?,
    };
    Ok(record.into())
}

async fn make(app: &App, actor: &str, create: Create) -> Result<Record, Failure> {
    let owner = account::named(app, &create.partner).await?;
    let record = Record::new()
        .with("partnerId", owner.id.to_string())
        .with("dailyLimitUsd", create.daily_limit)
        .with("ips", create.ips.as_deref().map(listed))
        .with("readOnly", create.read_only);
    let terms = KeyTerms {
        daily_limit: create.daily_limit,
        ips: create.ips.unwrap_or_default(),
        read_only: create.read_only,
    };
    Ok(issued(record, operator::create_key(app, actor, owner.no, terms).await?))
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
        Some(text) => Some(account::named(app, text).await?.no),
        None => None,
    };
    let keys = operator::list_keys(app, only).await?;
    let owners = account::owners(app).await?;
    Ok(Record::new().with("keys", table(&keys, |no| owners.get(&no).cloned())))
}

async fn revoke(app: &App, actor: &str, key: &str) -> Result<Record, Failure> {
    operator::revoke_key(app, actor, key).await.map_err(|error| {
        let unknown = format!("no key has the id {key:?}; `simgate key list` shows them all");
        Failure::worded(error, Refusal::KeyNotFound, unknown)
    })?;
    Ok(Record::new().with("apiKey", key).with("revoked", true))
}

pub fn table(keys: &[Key], owner: impl Fn(AccountNo) -> Option<String>) -> Table {
    table!(keys.iter(), |key| {
        "apiKey" => key.id.to_string(),
        "partnerId" => owner(key.account),
        "dailyLimitUsd" => key.daily_limit,
        "ips" => Some(listed(&key.ips)).filter(|networks| !networks.is_empty()),
        "readOnly" => key.read_only,
        "createdAt" => key.created_at,
        "revokedAt" => key.revoked_at,
    })
}

fn listed(networks: &str) -> Vec<String> {
    networks.split(',').filter(|network| !network.is_empty()).map(str::to_string).collect()
}
