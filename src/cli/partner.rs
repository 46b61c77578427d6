//! `simgate partner`: the companies that buy.

use clap::{ArgGroup, Args, Subcommand};

use super::output::{Form, Record, Table, table};
use super::{Failure, Outcome, account, args, key, twice};
use crate::app::App;
use crate::domain::email::Email;
use crate::domain::login::Realm;
use crate::domain::money::Usd;
use crate::domain::refusal::{Conflict, Refusal};
use crate::domain::role::Role;
use crate::error::Error;
use crate::ops::operator::{self, Account, NewPartner, PartnerChange};
use crate::ops::second_factor::{self, Standing};
use crate::ops::{accounts, catalog, team};
use crate::wire::dates::iso;

#[derive(Subcommand)]
pub enum Command {
    /// Make a partner and its first API key; the secret is shown this once
    #[command(
        after_help = "Example: simgate partner create --name \"Acme Travel\" --email ops@acme.example --credit 500"
    )]
    Create(Create),
    /// All partners with their balances
    #[command(after_help = "Example: simgate partner list --csv > partners.csv")]
    List(Form),
    /// One partner with its wallet and keys
    #[command(after_help = "Example: simgate partner show ops@acme.example")]
    Show(Named),
    /// Change a partner's name, email, price list or low-balance threshold
    #[command(after_help = "Example: simgate partner set ptn_… --low-balance 200")]
    Set(Set),
    /// Mail somebody an invitation to a partner's team in the portal, as its owner or in another role
    #[command(after_help = "Example: simgate partner invite ptn_… --email ann@acme.example --role owner")]
    Invite(Invite),
    /// Stop a partner from buying; reading and replays still work
    #[command(after_help = "Example: simgate partner suspend ops@acme.example")]
    Suspend(Named),
    /// Let a suspended partner buy again
    #[command(after_help = "Example: simgate partner resume ops@acme.example")]
    Resume(Named),
    /// Take away a person's second factor, for somebody who lost app and recovery codes
    #[command(after_help = "Example: simgate partner reset-second-factor ann@acme.example")]
    ResetSecondFactor {
        /// Whom: the email that this person signs in with
        #[arg(value_name = "EMAIL", value_parser = args::email)]
        email: String,
        /// Do it without a question
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub struct Named {
    /// Partner id or email
    #[arg(value_name = "ID")]
    partner: String,
}

#[derive(Args)]
pub struct Create {
    /// The company's name
    #[arg(long, value_parser = args::name)]
    name: String,
    #[arg(long, value_parser = args::email, help = "Whom to write to; also names the account in commands")]
    email: Option<String>,
    /// Opening credit, booked as promo; 0 or absent: none
    #[arg(long, value_name = "USD", value_parser = args::usd, allow_negative_numbers = true)]
    credit: Option<Usd>,
    /// Make it also when another account has the email
    #[arg(long)]
    allow_duplicate: bool,
}

#[derive(Args)]
#[command(group(ArgGroup::new("change").args(["name", "email", "price_list", "low_balance"]).required(true).multiple(true)))]
pub struct Set {
    #[command(flatten)]
    named: Named,
    /// The company's name
    #[arg(long, value_parser = args::name)]
    name: Option<String>,
    #[arg(long, value_parser = args::email, help = "Whom to write to; also names the account in commands")]
    email: Option<String>,
    /// The list whose prices this partner pays
    #[arg(long, value_name = "LIST")]
    price_list: Option<String>,
    /// Below this balance the partner is told to fund its wallet
    #[arg(long, value_name = "USD", value_parser = args::usd, allow_negative_numbers = true)]
    low_balance: Option<Usd>,
    /// Take the email also when another account has it
    #[arg(long)]
    allow_duplicate: bool,
}

#[derive(Args)]
pub struct Invite {
    #[command(flatten)]
    named: Named,
    /// Whom to invite; an invitation that is still open is mailed anew, and its earlier links end
    #[arg(long, value_parser = args::email)]
    email: String,
    /// What they may do: owner, developer, finance or viewer
    #[arg(long, default_value = "owner", value_parser = role)]
    role: Role,
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(&text.to_ascii_uppercase())
        .ok_or_else(|| "must be owner, developer, finance or viewer".into())
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let record = match command {
        Command::Create(create) => make(app, actor, create).await?,
        Command::List(_) => {
            let partners = operator::partners(app).await?;
            Record::new().with("partners", table(&partners))
        }
        Command::Show(Named { partner }) => show(app, &account::partner(app, &partner).await?).await?,
        Command::Set(set) => change(app, actor, set).await?,
        Command::Invite(invite) => self::invite(app, actor, invite).await?,
        Command::Suspend(Named { partner }) => suspend(app, actor, &partner, true).await?,
        Command::Resume(Named { partner }) => suspend(app, actor, &partner, false).await?,
        Command::ResetSecondFactor { email, yes } => reset_second_factor(app, actor, &email, yes).await?,
    };
    Ok(record.into())
}

async fn invite(app: &App, actor: &str, invite: Invite) -> Result<Record, Failure> {
    let account = account::partner(app, &invite.named.partner).await?;
    let email = Email::from_text(invite.email);
    team::invite_by_hand(app, actor, account.no, email.clone(), invite.role).await?;
    let record = Record::new().with("partnerId", account.id.to_string());
    Ok(record.with("email", email.to_string()).with("role", invite.role.as_str()))
}

async fn suspend(app: &App, actor: &str, partner: &str, suspended: bool) -> Result<Record, Failure> {
    let account = account::partner(app, partner).await?;
    let account = operator::set_suspended(app, actor, account.id.as_str(), suspended).await?;
    Ok(details(&account).with("owesUsd", operator::owed_by(app, account.no).await?))
}

async fn make(app: &App, actor: &str, create: Create) -> Result<Record, Failure> {
    let new = NewPartner {
        name: create.name,
        email: create.email,
        credit: create.credit.unwrap_or(Usd::ZERO),
        shares_email: create.allow_duplicate,
    };
    let created = operator::create_partner(app, actor, new).await.map_err(taken)?;
    let record = Record::new().with("partnerId", created.id.to_string());
    Ok(key::issued(record, created.key))
}

async fn show(app: &App, account: &Account) -> Result<Record, Failure> {
    let held = accounts::balance(app, account.no).await?.held;
    let keys = operator::list_keys(app, Some(account.no)).await?;
    let of_account = |_| Some(account.id.to_string());
    let owed = operator::owed_by(app, account.no).await?;
    let details = details(account).with("heldUsd", held).with("owesUsd", owed);
    Ok(details.with("keys", key::table(&keys, app.now(), of_account)))
}

async fn change(app: &App, actor: &str, set: Set) -> Result<Record, Failure> {
    let account = account::partner(app, &set.named.partner).await?;
    if let Some(list) = &set.price_list
        && !catalog::sells_by(app, list).await?
    {
        let message = format!(
            "no plan has a price for partners on the list {list:?}; `simgate price set --list NAME` and `price publish` make one"
        );
        return Err(Failure::refused(Refusal::field("priceList", &message), message));
    }
    let change = PartnerChange {
        name: set.name,
        email: set.email,
        price_list: set.price_list,
        low_balance: set.low_balance,
        shares_email: set.allow_duplicate,
    };
    let changed = operator::change_partner(app, actor, account.id.as_str(), change).await.map_err(taken)?;
    Ok(details(&changed))
}

async fn reset_second_factor(app: &App, actor: &str, email: &str, yes: bool) -> Result<Record, Failure> {
    let none = || {
        let message = format!("{email} has no second factor in the partner portal");
        Failure::refused(Refusal::NoSecondFactor, message)
    };
    let email = Email::parse(email).ok_or_else(none)?;
    let Standing::On { since, .. } = second_factor::state(app, Realm::Partners, &email).await? else {
        return Err(none());
    };
    let question = format!(
        "{email} has a second factor since {}. Without it, a code mailed there is enough to sign in; be sure that this person asks for it.",
        iso(since)
    );
    if !yes && !twice::agreed(&format!("{question} Take it away?")) {
        let message = "nothing was changed; --yes takes it away without a question";
        return Err(Failure::refused(Conflict::default().into(), message));
    }
    second_factor::reset(app, actor, Realm::Partners, &email).await?;
    let record =
        Record::new().with("email", email.to_string()).with("secondFactor", "OFF").with("since", since);
    Ok(record
        .remark("A mailed code is enough to sign in now. Ask this person to set up a new second factor."))
}

/// Says what to do about an email that another account has.
fn taken(error: Error) -> Failure {
    match error {
        Error::Refused(refusal @ Refusal::Invalid(_)) => {
            let message = format!("{}; --allow-duplicate takes it all the same", refusal.problem().detail);
            Failure::refused(refusal, message)
        }
        other => other.into(),
    }
}

fn details(account: &Account) -> Record {
    table(std::slice::from_ref(account)).into_record()
}

pub fn table(accounts: &[Account]) -> Table {
    table!(accounts.iter(), |account| {
        "partnerId" => account.id.to_string(),
        "name" => account.name.clone(),
        "email" => account.email.clone(),
        "balanceUsd" => account.balance,
        "lowBalanceUsd" => account.low_balance,
        "suspended" => account.suspended,
        "priceList" => account.price_list.clone(),
        "ordersPlaced" => account.placed,
        "ordersFailed" => account.failed,
        "createdAt" => account.created_at,
    })
}
