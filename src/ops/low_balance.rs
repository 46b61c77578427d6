//! Tells partners that their balance fell below their threshold: one mail for each crossing.

use super::mail::{self, Letter};
use crate::app::App;
use crate::domain::email::Email;
use crate::domain::ids::AccountNo;
use crate::error::Result;
use crate::store::accounts;
use crate::store::low_balances::{self, Standing};
use crate::store::tx::Tx;

/// Enters partners that an older instance has made since this account, in a rolling upgrade. Answers the newest account:
/// numbers only grow, so the next look begins there.
pub async fn enlist(app: &App, after: AccountNo) -> Result<AccountNo> {
    let look = move |tx: &mut Tx| Ok((accounts::last(tx)?, low_balances::left_out(tx, after)?));
    let (last, left_out) = app.store.read(look).await?;
    for account in left_out {
        app.store.write(account.0, move |tx| low_balances::enlist(tx, account)).await?;
    }
    Ok(last)
}

/// Looks at the partners whose balances moved across their thresholds. On several instances one of them mails.
pub async fn round(app: &App) -> Result<()> {
    for account in app.store.read(low_balances::moved).await? {
        let slip = mail::slip(app);
        let look = move |tx: &mut Tx| match low_balances::crossed(tx, account)? {
            Some(now) => tell(tx, &slip, now),
            None => Ok(()),
        };
        app.store.write(account.0, look).await?;
        mail::wake(app);
    }
    Ok(())
}

/// A partner without an email is not told.
fn tell(tx: &mut Tx, slip: &mail::Slip, now: Standing) -> Result<()> {
    let Some(email) = now.email.as_deref().and_then(Email::parse) else { return Ok(()) };
    let letter = Letter::LowBalance {
        company: now.name,
        balance: now.balance.to_string(),
        threshold: now.threshold.to_string(),
    };
    mail::queue(tx, slip, &email, &letter, None)
}
