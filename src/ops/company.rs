//! What a partner's team can change about its company: its name, and from which balance on somebody is warned.

use super::team::Member;
use crate::app::App;
use crate::domain::email::Email;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::domain::text;
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{accounts, audit, low_balances};

pub const NAME_CHARS: usize = 100;
pub const HIGHEST_WARNING: Usd = Usd::dollars(1_000_000);

/// Changes what the company is called.
pub async fn rename(app: &App, by: &Member, name: &str) -> Result<()> {
    let deed = by.deed(app, Ability::Company, "company rename", String::new())?;
    let name = text::visible(name, NAME_CHARS);
    if name.is_empty() {
        return Err(Refusal::field("name", "must have 1 to 100 visible characters").into());
    }
    let account = by.account;
    let write = move |tx: &mut Tx| {
        if tx.is_rerun() && audit::exists(tx, &deed.line.id)? {
            return Ok(());
        }
        deed.check(tx)?;
        let before = accounts::by_no(tx, account)?.ok_or(Refusal::AccountNotFound)?;
        accounts::set_name(tx, account, &name)?;
        audit::record(tx, &deed.line.changing(before.name, &name))
    };
    app.store.write(account.0, write).await
}

/// Changes from which balance on somebody is warned, and who; `None`: whom the company is written to.
pub async fn warn(app: &App, by: &Member, threshold: Usd, whom: Option<Email>) -> Result<()> {
    let deed = by.deed(app, Ability::Warnings, "company warning", String::new())?;
    if threshold < Usd::ZERO || threshold > HIGHEST_WARNING {
        return Err(Refusal::field("threshold", format!("must be from 0 to {HIGHEST_WARNING}")).into());
    }
    let account = by.account;
    let write = move |tx: &mut Tx| {
        if tx.is_rerun() && audit::exists(tx, &deed.line.id)? {
            return Ok(());
        }
        deed.check(tx)?;
        let before = accounts::by_no(tx, account)?.ok_or(Refusal::AccountNotFound)?;
        let whom = whom.as_ref().map(Email::as_str);
        accounts::set_warning(tx, account, threshold, whom)?;
        if before.low_balance != threshold {
            low_balances::begin(tx, account)?;
        }
        let told = |threshold: Usd, whom: Option<&str>| {
            format!("below {threshold} USD to {}", whom.unwrap_or("the company's own address"))
        };
        let was = told(before.low_balance, before.warned.as_deref());
        audit::record(tx, &deed.line.changing(was, told(threshold, whom)))
    };
    app.store.write(account.0, write).await
}
