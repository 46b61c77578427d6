//! How commands name an account: by its id or its email.

use std::collections::HashMap;

use super::Failure;
use crate::app::App;
use crate::domain::account::AccountKind;
use crate::domain::ids::AccountNo;
use crate::domain::refusal::Refusal;
use crate::ops::find;
use crate::ops::operator::{self, Account};

/// The account with this id or email. An email that two accounts share names neither: money could go astray.
pub async fn named(app: &App, id_or_email: &str) -> Result<Account, Failure> {
    let mut found = find::accounts_named(app, id_or_email).await?;
    let ids: Vec<String> = found.iter().map(|account| account.id.to_string()).collect();
    let message = match (found.len(), found.pop()) {
        (1, Some(account)) => return Ok(account),
        (0, _) => {
            format!("no account has the id or email {id_or_email:?}; `simgate find` looks further")
        }
        (several, _) => {
            let (email, ids) = (id_or_email.to_lowercase(), ids.join(", "));
            format!("{several} accounts have the email {email}: name the one you mean by its id: {ids}")
        }
    };
    Err(Failure::refused(Refusal::AccountNotFound, message))
}

/// The same of a partner: a user has no keys, and its own commands.
pub async fn partner(app: &App, id_or_email: &str) -> Result<Account, Failure> {
    let account = named(app, id_or_email).await?;
    if account.kind == AccountKind::Partner {
        return Ok(account);
    }
    let message = format!("{} is a user, not a partner; `simgate user` is for users", account.id);
    Err(Failure::refused(Refusal::AccountNotFound, message))
}

/// The field name of an account's id.
pub fn id_name(account: &Account) -> &'static str {
    match account.kind {
        AccountKind::Partner => "partnerId",
        AccountKind::User | AccountKind::Guest => "userId",
    }
}

/// The public name of each account.
pub async fn owners(app: &App) -> Result<HashMap<AccountNo, String>, Failure> {
    let accounts = operator::accounts(app).await?;
    Ok(accounts.into_iter().map(|account| (account.no, account.id.to_string())).collect())
}
