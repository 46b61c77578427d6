//! What members of a partner's team do with orders by hand: place, top up, cancel, keep after all, send to a customer. Each
//! deed is checked against the member's role here, and stands in the log that the team can read.

use super::buying::{self, Means, Wish};
use super::cancel::withdraw;
use super::cancel::{self, Outcome};
use super::orders::Receipt;
use super::preview::{self, CancelPreview};
use super::team::Member;
use super::{install, mail, mailings, owned, receipts};
use crate::app::App;
use crate::domain::email::Email;
use crate::domain::esim::Activation;
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::order::{Order, OrderStatus};
use crate::domain::refusal::Refusal;
use crate::domain::role::Ability;
use crate::domain::time::Time;
use crate::error::Result;
use crate::store::tx::Tx;
use crate::store::{audit as log, orders};
use crate::supplier::CancelWay;

/// What the log calls these deeds.
pub(super) const SEND: &str = "order send";
pub(super) const CANCEL: &str = "order cancel";
pub(super) const KEEP: &str = "order keep";

/// One eSIM is mailed so often within an hour, and a team mails so many within a day. What one mailbox gets of it is counted by
/// `mailings`.
const SENT_AN_HOUR: usize = 5;
const HOUR_MS: i64 = 3_600_000;
const SENT_A_DAY: usize = 200;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Buys a new eSIM from the team's wallet.
pub async fn place(app: &App, by: &Member, wish: Wish) -> Result<Receipt> {
    buy(app, by, wish, "order place").await
}

/// Buys more data for an eSIM; `wish` names it.
pub async fn top_up(app: &App, by: &Member, wish: Wish) -> Result<Receipt> {
    buy(app, by, wish, "order top-up").await
}

async fn buy(app: &App, by: &Member, wish: Wish, command: &'static str) -> Result<Receipt> {
    let buyer = by.buyer(app, command)?;
    buying::buy(app, buyer, wish, Means::Wallet).await?.receipt()
}

/// On which terms an order can be given back.
pub struct CancelTerms {
    pub preview: CancelPreview,
    /// Whether people at the supplier decide, which takes days.
    pub is_reviewed: bool,
}

pub async fn cancel_terms(app: &App, account: AccountNo, id: &OrderId) -> Result<CancelTerms> {
    let preview = preview::cancel(app, account, id).await?;
    let supplier = app.suppliers.get(preview.order.supplier.as_str());
    let is_reviewed = supplier.is_some_and(|supplier| supplier.abilities().cancel == CancelWay::Reviewed);
    Ok(CancelTerms { preview, is_reviewed })
}

/// Asks the supplier to take an eSIM back.
pub async fn cancel(app: &App, by: &Member, id: &OrderId) -> Result<Outcome> {
    let deed = by.deed(app, Ability::Order, CANCEL, id.to_string())?;
    let order = owned::order(app, by.account, id).await?;
    cancel::cancel_by_hand(app, &order, deed).await
}

/// Takes a cancel back while people at the supplier still decide.
pub async fn keep(app: &App, by: &Member, id: &OrderId) -> Result<Outcome> {
    let deed = by.deed(app, Ability::Order, KEEP, id.to_string())?;
    withdraw::withdraw_by_hand(app, by.account, id, deed).await
}

/// What opens the eSIM of an order.
pub struct Opening {
    /// The page that installs it.
    pub url: String,
    /// `None` before delivery, and once the code is forgotten.
    pub activation: Option<Activation>,
}

/// What opens an eSIM, for those who may see it; `None` when there is nothing to install.
pub fn opening(app: &App, by: &Member, order: &Order) -> Result<Option<Opening>> {
    by.require(Ability::SeeCodes)?;
    if !matches!(order.status, OrderStatus::Provisioning | OrderStatus::Fulfilled) {
        return Ok(None);
    }
    let activation = install::activation(app, order)?;
    Ok(Some(Opening { url: install::page_url(app, &order.id), activation }))
}

/// Refuses to mail what nobody can install.
pub fn require_installable(app: &App, order: &Order) -> Result<()> {
    if order.id.is_topup() {
        return Err(Refusal::OrderNotFound.into());
    }
    match order.status {
        OrderStatus::Fulfilled if install::activation(app, order)?.is_some() => Ok(()),
        OrderStatus::Fulfilled => Err(Refusal::CodeForgotten.into()),
        OrderStatus::Provisioning => Err(Refusal::EsimNotFound.into()),
        OrderStatus::Cancelling => Err(Refusal::EsimWithheld.into()),
        OrderStatus::Failed | OrderStatus::Cancelled => Err(Refusal::Gone.into()),
    }
}

/// Mails a customer where the eSIM of an order is installed.
pub async fn send(app: &App, by: &Member, id: &OrderId, to: Email) -> Result<()> {
    let deed = by.deed(app, Ability::Order, SEND, format!("{id} to {}", to.masked()))?;
    let order = owned::order(app, by.account, id).await?;
    require_installable(app, &order)?;
    let account = by.account;
    let slip = mail::slip(app);
    let write = move |tx: &mut Tx| {
        if tx.is_rerun() && log::exists(tx, &deed.line.id)? {
            return Ok(());
        }
        deed.check(tx)?;
        let now = deed.line.at;
        require_fewer(tx, account, order.id.as_str(), (SENT_AN_HOUR, HOUR_MS), now)?;
        require_fewer(tx, account, "", (SENT_A_DAY, DAY_MS), now)?;
        mailings::require_fewer(tx, account, now, &to)?;
        // It may have been given back meanwhile.
        let order = orders::by_id(tx, &order.id)?.ok_or(Refusal::OrderNotFound)?;
        if order.status != OrderStatus::Fulfilled {
            return Err(Refusal::EsimWithheld.into());
        }
        receipts::queue(tx, &slip, &order, &to)?;
        mailings::count(tx, account, now, [&to].into_iter())?;
        log::record(tx, &deed.line)
    };
    app.store.write(account.0, write).await?;
    mail::wake(app);
    Ok(())
}

/// Refuses another mail while so many were sent within a time.
fn require_fewer(
    tx: &mut Tx,
    account: AccountNo,
    begins: &str,
    (most, within_ms): (usize, i64),
    now: Time,
) -> Result<()> {
    let sent = log::lately(tx, account, now.plus_millis(-within_ms), SEND, begins, most as i64)?;
    match sent.last() {
        Some(first) if sent.len() == most => {
            let left = first.plus_millis(within_ms).micros() - now.micros();
            let retry_after_secs = left.unsigned_abs().div_ceil(1_000_000);
            Err(Refusal::RateLimited { retry_after_secs }.into())
        }
        _ => Ok(()),
    }
}
