//! `simgate user`: people who signed in with an email. They are made by verifying a code, never by a command.

use clap::{Args, Subcommand};

use super::output::{Form, Record, Table, cut, table};
use super::{Failure, Outcome};
use crate::app::App;
use crate::domain::account::AccountKind;
use crate::domain::refusal::Refusal;
use crate::ops::operator::{self, Account};
use crate::ops::{accounts, find, tokens};

#[derive(Subcommand)]
pub enum Command {
    /// All users with their balances, the newest first
    #[command(after_help = "Example: simgate user list --limit 20")]
    List {
        /// List at most this many [default: 50, with --csv all]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=10_000_000))]
        limit: Option<i64>,
        #[command(flatten)]
        form: Form,
    },
    /// One user with wallet and tokens
    #[command(after_help = "Example: simgate user show ann@example.com")]
    Show(Named),
    /// Stop a user from buying; reading still works
    #[command(after_help = "Example: simgate user suspend ann@example.com")]
    Suspend(Named),
    /// Let a suspended user buy again
    #[command(after_help = "Example: simgate user resume ann@example.com")]
    Resume(Named),
}

#[derive(Args)]
pub struct Named {
    /// User id or email
    #[arg(value_name = "ID")]
    user: String,
}

pub async fn run(app: &App, actor: &str, command: Command) -> Outcome {
    let record = match command {
        Command::List { limit, form } => {
            let limit = form.limit(limit, 50);
            let mut users = operator::users(app, limit + 1).await?;
            let more = cut(&mut users, limit);
            Record::new().with("users", found(users.iter())).going_on(more)
        }
        Command::Show(Named { user }) => {
            let account = named(app, &user).await?;
            let held = accounts::balance(app, account.no).await?.held;
            let tokens = tokens::held_by_agents(app, account.no).await?;
            let owed = operator::owed_by(app, account.no).await?;
            details(&account).with("heldUsd", held).with("owesUsd", owed).with("tokens", table(&tokens))
        }
        Command::Suspend(Named { user }) => suspend(app, actor, &user, true).await?,
        Command::Resume(Named { user }) => suspend(app, actor, &user, false).await?,
    };
    Ok(record.into())
}

async fn suspend(app: &App, actor: &str, user: &str, suspended: bool) -> Result<Record, Failure> {
    let account = named(app, user).await?;
    let account = operator::set_suspended(app, actor, account.id.as_str(), suspended).await?;
    Ok(details(&account).with("owesUsd", operator::owed_by(app, account.no).await?))
}

async fn named(app: &App, id_or_email: &str) -> Result<Account, Failure> {
    let found = find::accounts_named(app, id_or_email).await?;
    found.into_iter().find(|account| account.kind == AccountKind::User).ok_or_else(|| {
        let message = format!("no user has the id or email {id_or_email:?}");
        Failure::refused(Refusal::AccountNotFound, message)
    })
}

fn details(account: &Account) -> Record {
    Record::new()
        .with("userId", account.id.to_string())
        .with("email", account.email.clone())
        .with("balanceUsd", account.balance)
        .with("suspended", account.suspended)
        .with("ordersPlaced", account.placed)
        .with("ordersFailed", account.failed)
        .with("createdAt", account.created_at)
}

/// Users as lists show them.
pub fn found<'a>(accounts: impl Iterator<Item = &'a Account>) -> Table {
    table!(accounts, |account| {
        "userId" => account.id.to_string(),
        "email" => account.email.clone(),
        "balanceUsd" => account.balance,
        "suspended" => account.suspended,
        "ordersPlaced" => account.placed,
        "createdAt" => account.created_at,
    })
}

fn table(tokens: &[tokens::Token]) -> Table {
    table!(tokens.iter(), |token| {
        "tokenId" => token.id.to_string(),
        "prefix" => token.prefix.clone(),
        "agentName" => token.agent_name.clone(),
        "dailyLimitUsd" => token.daily_limit,
        "createdAt" => token.created_at,
        "lastUsedAt" => token.last_used_at,
        "expiresAt" => token.expires_at,
    })
}
