//! How many eSIMs a partner's team mails to one mailbox in a day, by lists and by hand together: nobody's mailbox is flooded
//! with what somebody else ordered.

use std::collections::HashMap;

use crate::app::App;
use crate::domain::email::Email;
use crate::domain::ids::AccountNo;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::mailings;
use crate::store::tx::Tx;

/// So many mails of a team go to one mailbox in a day, UTC.
pub const A_DAY: i64 = 20;

/// Which of these customers would get more than that: their eSIMs are not mailed. For a page, before anything is bought.
pub async fn look_ahead(app: &App, account: AccountNo, to: Vec<Option<Email>>) -> Result<Vec<bool>> {
    let now = app.now();
    app.store.read(move |tx| too_many(tx, account, now, to.iter().map(Option::as_ref))).await
}

/// The same, for a write that mails the others.
pub(super) fn too_many<'a>(
    tx: &mut Tx,
    account: AccountNo,
    now: Time,
    to: impl Iterator<Item = Option<&'a Email>>,
) -> Result<Vec<bool>> {
    let mut sent: HashMap<String, i64> = HashMap::new();
    let mut are_too_many = Vec::new();
    for email in to {
        let Some(mailbox) = email.map(Email::mailbox) else {
            are_too_many.push(false);
            continue;
        };
        let before = match sent.get(&mailbox) {
            Some(before) => *before,
            None => mailings::sent(tx, account, &mailbox, now.day())?,
        };
        are_too_many.push(before >= A_DAY);
        sent.insert(mailbox, before + 1);
    }
    Ok(are_too_many)
}

/// Refuses another mail to somebody who got as many today.
pub(super) fn require_fewer(tx: &mut Tx, account: AccountNo, now: Time, to: &Email) -> Result<()> {
    if mailings::sent(tx, account, &to.mailbox(), now.day())? < A_DAY {
        return Ok(());
    }
    let left = Time::of_day(now.day() + 1).micros() - now.micros();
    let retry_after_secs = left.unsigned_abs().div_ceil(1_000_000);
    Err(Refusal::RateLimited { retry_after_secs }.into())
}

/// Counts mails that are queued by the same write, or by the deliveries that follow from it.
pub(super) fn count<'a>(
    tx: &mut Tx,
    account: AccountNo,
    now: Time,
    to: impl Iterator<Item = &'a Email>,
) -> Result<()> {
    let mut mails: HashMap<String, i64> = HashMap::new();
    to.for_each(|email| *mails.entry(email.mailbox()).or_default() += 1);
    mails.iter().try_for_each(|(mailbox, mails)| mailings::add(tx, account, mailbox, now.day(), *mails))
}
