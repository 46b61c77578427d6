//! What operators do: partners, keys, wallets, and orders that need a hand. Every act is in the audit log, in the same
//! write.

mod keys;
mod reviews;
mod wallets;

use std::time::Duration;

use super::LANE;
use super::audit::{audit_line, record};
use super::cancel;
use super::deliver::{self, Standing, Turn};
use super::find;
use super::mail;
use super::team::Invitation;
use crate::app::App;
use crate::domain::account::AccountKind;
use crate::domain::email::Email;
use crate::domain::ids::{AccountId, AccountNo, OrderId};
use crate::domain::ledger::{CreditKind, Entry};
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::payback::Payee;
use crate::domain::plan::DEFAULT_PRICE_LIST;
use crate::domain::refusal::Refusal;
use crate::domain::role::Role;
use crate::domain::text;
use crate::domain::time::Time;
use crate::domain::words::words;
use crate::error::{Error, Result};
pub use crate::store::accounts::Account;
use crate::store::accounts::{self, NewAccount};
use crate::store::audit;
use crate::store::ledger::{self, Note};
use crate::store::meta::{self, Version};
use crate::store::tx::Tx;
use crate::store::wallet::{self, Suspension};
use crate::store::{debts, guests, low_balances, orders};
use crate::vault;

use self::keys::KeyDraft;
pub use self::keys::{
    IssuedKey, KEY_NAME_CHARS, KEYS_A_DAY, Key, KeyTerms, MOST_KEYS, Rotated, create_key, create_key_as,
    ended_keys, key_of, keys_in_use, list_keys, networks, revoke_key, revoke_key_as, rotate_key,
    rotate_key_as,
};
pub use self::reviews::{cancel_refused, order_cancelled};
use self::wallets::Booking;
pub use self::wallets::{Adjusted, Adjustment, Direction, adjust_wallet, gist, named_by, reference_of};

/// What the statement says of the money that a partner begins with.
const OPENING: &str = "opening credit";

pub struct NewPartner {
    pub name: String,
    pub email: Option<String>,
    pub credit: Usd,
    /// The email may be another account's, too. Otherwise it is refused: the command was pasted twice.
    pub shares_email: bool,
}

pub struct CreatedPartner {
    pub id: AccountId,
    pub key: IssuedKey,
}

/// Makes a partner with its opening credit and its first key: all of it or nothing.
pub async fn create_partner(app: &App, actor: &str, new: NewPartner) -> Result<CreatedPartner> {
    let now = app.now();
    let id = AccountId::partner(now, vault::random());
    let account = NewAccount {
        kind: AccountKind::Partner,
        id: id.clone(),
        name: new.name,
        email: new.email,
        price_list: DEFAULT_PRICE_LIST.into(),
        low_balance: app.settings.low_balance,
        created_at: now,
    };
    let line = audit_line(app, actor, "partner create", id.to_string());
    let credit = Booking::new(app, actor, Direction::Credit, &id, new.credit, CreditKind::Promo, OPENING);
    let credit = Some(credit).filter(|_| new.credit.is_positive());
    // Whom the company is written to owns its team.
    let owner = account.email.as_deref().and_then(Email::parse);
    let invitation = owner.map(|email| {
        let line = audit_line(app, actor, "partner invite", format!("{id}: {email}"));
        Invitation::new(app, email, Role::Owner, String::new(), line.into())
    });
    let (key, issued) = KeyDraft::new(app, KeyTerms::default());
    let key_deed = audit_line(app, actor, "key create", issued.id.to_string()).into();
    let write = move |tx: &mut Tx| {
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(());
        }
        if !new.shares_email {
            require_new_email(tx, &account.id, account.email.as_deref())?;
        }
        let no = accounts::create(tx, &account)?;
        let email = account.email.as_deref().unwrap_or("no email");
        audit::record(tx, &line.changing("no partner", format!("{}, {email}", account.name)))?;
        if let Some(credit) = &credit {
            credit.book(tx, no)?;
        }
        if let Some(invitation) = &invitation {
            invitation.place(tx, no, &account.name)?;
        }
        key.enter(tx, no, &key_deed)
    };
    app.store.write(LANE, write).await?;
    mail::wake(app);
    Ok(CreatedPartner { id, key: issued })
}

/// Refuses an email that another account has. Two processes that make the same partner at once pick the same number:
/// one of them runs again, and finds the other's.
fn require_new_email(tx: &mut Tx, own: &AccountId, email: Option<&str>) -> Result<()> {
    let Some(email) = email else { return Ok(()) };
    let mut owners = find::with_email(tx, email)?;
    owners.retain(|owner| owner.id != *own);
    if owners.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = owners.iter().map(|owner| owner.id.to_string()).collect();
    let message = format!("{email} belongs to {} already", ids.join(", "));
    Err(Refusal::field("email", message).into())
}

pub async fn account(app: &App, id_or_email: &str) -> Result<Account> {
    let text = id_or_email.to_string();
    let found = app.store.read(move |tx| accounts::find(tx, &text)).await?;
    Ok(found.ok_or(Refusal::AccountNotFound)?)
}

pub async fn account_by_no(app: &App, no: AccountNo) -> Result<Account> {
    let found = app.store.read(move |tx| accounts::by_no(tx, no)).await?;
    Ok(found.ok_or(Refusal::AccountNotFound)?)
}

pub async fn partners(app: &App) -> Result<Vec<Account>> {
    app.store.snapshot(accounts::partners).await
}

/// Users, the newest first.
pub async fn users(app: &App, limit: i64) -> Result<Vec<Account>> {
    app.store.snapshot(move |tx| accounts::users(tx, limit)).await
}

/// Partners and users.
pub async fn accounts(app: &App) -> Result<Vec<Account>> {
    app.store.snapshot(accounts::list).await
}

#[derive(Default)]
pub struct PartnerChange {
    pub name: Option<String>,
    pub email: Option<String>,
    pub price_list: Option<String>,
    pub low_balance: Option<Usd>,
    /// The email may be another account's, too.
    pub shares_email: bool,
}

pub async fn change_partner(app: &App, actor: &str, id: &str, change: PartnerChange) -> Result<Account> {
    let no = account(app, id).await?.no;
    let line = audit_line(app, actor, "partner set", id.into());
    let write = move |tx: &mut Tx| {
        wallet::lock(tx, no)?;
        let before = accounts::by_no(tx, no)?.ok_or(Refusal::AccountNotFound)?;
        if tx.is_rerun() && audit::exists(tx, &line.id)? {
            return Ok(before);
        }
        if !change.shares_email {
            require_new_email(tx, &before.id, change.email.as_deref())?;
        }
        let after = changed(&before, &change);
        accounts::update(tx, &after)?;
        if before.low_balance != after.low_balance {
            low_balances::begin(tx, no)?;
        }
        let (was, became) = difference(&before, &after);
        audit::record(tx, &line.changing(was, became))?;
        Ok(after)
    };
    app.store.write(no.0, write).await
}

fn changed(account: &Account, change: &PartnerChange) -> Account {
    let mut after = account.clone();
    after.name = change.name.clone().unwrap_or(after.name);
    after.email = change.email.clone().or(after.email);
    after.price_list = change.price_list.clone().unwrap_or(after.price_list);
    after.low_balance = change.low_balance.unwrap_or(after.low_balance);
    after
}

/// What differs, as it was and as it is.
fn difference(before: &Account, after: &Account) -> (String, String) {
    let facts = |account: &Account| {
        [
            ("name", account.name.clone()),
            ("email", account.email.clone().unwrap_or_default()),
            ("price list", account.price_list.clone()),
            ("low balance", format!("{} USD", account.low_balance)),
        ]
    };
    let (before, after) = (facts(before), facts(after));
    let differs = |n: &usize| before[*n] != after[*n];
    let told = |facts: &[(&str, String); 4]| {
        let told: Vec<String> =
            (0..4).filter(differs).map(|n| format!("{} {}", facts[n].0, facts[n].1)).collect();
        told.join("; ")
    };
    (told(&before), told(&after))
}

pub async fn set_suspended(app: &App, actor: &str, id: &str, suspended: bool) -> Result<Account> {
    let mut account = account(app, id).await?;
    let no = account.no;
    let command = match (account.kind, suspended) {
        (AccountKind::Partner, true) => "partner suspend",
        (AccountKind::Partner, false) => "partner resume",
        (AccountKind::User, true) => "user suspend",
        (AccountKind::User, false) => "user resume",
        (AccountKind::Guest, _) => return Err(Refusal::AccountNotFound.into()),
    };
    let word = |suspended| if suspended { "suspended" } else { "may buy" };
    let line = audit_line(app, actor, command, account.id.to_string());
    let line = line.changing(word(account.suspended), word(suspended));
    app.store
        .write(no.0, move |tx| {
            wallet::suspend(tx, no, suspended.then_some(Suspension::Operator))?;
            meta::bump(tx, Version::Accounts)?;
            audit::record(tx, &line)
        })
        .await?;
    account.suspended = suspended;
    Ok(account)
}

/// What an account owes us because its payments vanished from their chains.
pub async fn owed_by(app: &App, account: AccountNo) -> Result<Usd> {
    app.store.read_consistent(move |tx| debts::of_account(tx, account)).await
}

/// An order of any account.
pub async fn order(app: &App, id: &str) -> Result<Order> {
    let id = OrderId::from_text(id);
    let found = app.store.read(move |tx| orders::by_id(tx, &id)).await?;
    Ok(found.ok_or(Refusal::OrderNotFound)?)
}

pub async fn recent_orders(
    app: &App,
    account: Option<AccountNo>,
    status: Option<OrderStatus>,
    limit: i64,
) -> Result<Vec<Order>> {
    app.store.snapshot(move |tx| orders::recent(tx, account, status, limit)).await
}

words! {
    /// What came of asking the supplier about an order.
    pub enum Told {
        Delivered = "DELIVERED",
        /// It took the eSIM back, and the money is back too.
        TakenBack = "TAKEN_BACK",
        Refused = "REFUSED",
        /// Nothing, or nothing that can be relied on: the order stays as it is, and is asked about again.
        NoAnswer = "NO_ANSWER",
    }
}

fn told(before: OrderStatus, after: OrderStatus) -> Told {
    match (before, after) {
        (OrderStatus::Cancelling, OrderStatus::Fulfilled) => Told::Refused,
        (_, OrderStatus::Fulfilled) => Told::Delivered,
        (_, OrderStatus::Cancelled) => Told::TakenBack,
        (_, OrderStatus::Failed) => Told::Refused,
        (_, OrderStatus::Provisioning | OrderStatus::Cancelling) => Told::NoAnswer,
    }
}

/// Asks the supplier about an open order now, without waiting for recovery. Answers what it said, and the order as it
/// is then.
pub async fn retry_order(app: &App, actor: &str, id: &str) -> Result<(Told, Order)> {
    let open = order(app, id).await?;
    record(app, audit_line(app, actor, "order retry", open.id.to_string())).await?;
    let ask = async {
        match open.status {
            OrderStatus::Provisioning => deliver::ask_once(app, &open, Turn::Again).await.map(drop),
            OrderStatus::Cancelling => match cancel::ask_once(app, &open).await {
                // The supplier said no: the order is FULFILLED again, and the retry has its answer.
                Ok(_) | Err(Error::Refused(Refusal::NotCancellable(_))) => Ok(()),
                Err(error) => Err(error),
            },
            OrderStatus::Fulfilled | OrderStatus::Failed | OrderStatus::Cancelled => {
                Err(Refusal::NotRetryable.into())
            }
        }
    };
    // A supplier that does not answer in time leaves the order as it is; the retry has not failed.
    let patience = Duration::from_millis(app.settings.supplier_timeout_ms.unsigned_abs());
    if let Ok(asked) = tokio::time::timeout(patience, ask).await {
        asked?;
    }
    let now = order(app, open.id.as_str()).await?;
    note_change(app, actor, "order retry", &open, &now).await?;
    Ok((told(open.status, now.status), now))
}

/// Logs what became of an order that the supplier was asked about. The question is in the log already.
async fn note_change(
    app: &App,
    actor: &str,
    command: &'static str,
    before: &Order,
    after: &Order,
) -> Result<()> {
    if before.status == after.status {
        return Ok(());
    }
    let answer = told(before.status, after.status).as_str();
    let line = audit_line(app, actor, command, format!("{}: {answer}", after.id));
    record(app, line.changing(before.status.as_str(), after.status.as_str())).await
}

/// Gives up an order: the money goes back. If its profile turns up later, it is cancelled at the supplier.
pub async fn fail_order(app: &App, actor: &str, id: &str, reason: &str) -> Result<Order> {
    let order = order(app, id).await?;
    if order.status != OrderStatus::Provisioning {
        return Err(Refusal::NotFailable.into());
    }
    let reason = text::visible(reason, deliver::WHY_CHARS);
    let line = audit_line(app, actor, "order fail", format!("{}: {reason}", order.id));
    let line = line.changing(order.status.as_str(), OrderStatus::Failed.as_str());
    match deliver::fail_by_hand(app, &order, "FAILED_BY_OPERATOR", &reason, line).await? {
        Standing::Ended { order, .. } if order.status == OrderStatus::Failed => Ok(*order),
        Standing::Ended { .. } | Standing::Open | Standing::Queued => Err(Refusal::NotFailable.into()),
    }
}

/// Gives an order back for its owner. The supplier decides, as when the owner asks.
pub async fn cancel_order(app: &App, actor: &str, id: &str, reason: &str) -> Result<cancel::Outcome> {
    let order = order(app, id).await?;
    let line = audit_line(app, actor, "order cancel", format!("{}: {reason}", order.id));
    let line = line.changing(order.status.as_str(), OrderStatus::Cancelling.as_str());
    let outcome = cancel::cancel_by_hand(app, &order, line.into()).await;
    let now = self::order(app, order.id.as_str()).await?;
    // Untouched when we refused, without asking the supplier.
    if now.updated_at != order.updated_at {
        let asked = Order { status: OrderStatus::Cancelling, ..order };
        note_change(app, actor, "order cancel", &asked, &now).await?;
    }
    outcome
}

/// Pays money back for a delivered order as goodwill, at most its price in all; the sale and the eSIM stay. Answers the
/// new balance or, for a guest's order, what we owe for its invoice.
pub async fn refund_order(app: &App, actor: &str, id: &str, amount: Usd, reason: &str) -> Result<Usd> {
    let order = order(app, id).await?;
    let owner = account_by_no(app, order.account).await?.id;
    let detail = format!("{}, goodwill: {reason}", refund_gist(&owner, amount, &order.id));
    let (line, entry_id, now) =
        (audit_line(app, actor, "order refund", detail), app.new_entry_id(), app.now());
    let (actor, reason, lane) = (actor.to_string(), reason.to_string(), order.account.0);
    let write = move |tx: &mut Tx| {
        // Two concurrent refunds must not both take the rest.
        wallet::lock(tx, order.account)?;
        let back = debts::payback(tx, &order, amount)?;
        if !(tx.is_rerun() && audit::exists(tx, &line.id)?) {
            require_refundable(tx, &order.id, amount)?;
            let entry = Entry::goodwill_refund(&entry_id, &order.id, &back);
            let note = Note { actor: Some(&actor), text: Some(&reason) };
            let before = belongings(tx, &back.to)?;
            debts::pay_back(tx, &entry, &order, now, note)?;
            let after = belongings(tx, &back.to)?;
            audit::record(tx, &line.changing(format!("{before} USD"), format!("{after} USD")))?;
        }
        belongings(tx, &back.to)
    };
    app.store.write(lane, write).await
}

/// How the line of a refund in the audit log begins.
pub fn refund_gist(owner: &AccountId, amount: Usd, order: &OrderId) -> String {
    format!("{} for {order}", gist(owner, amount))
}

/// What the payee has with us: the wallet's balance, or what is owed for the invoice.
fn belongings(tx: &mut Tx, payee: &Payee) -> Result<Usd> {
    match payee {
        Payee::Wallet(owner) => Ok(wallet::read(tx, *owner)?.balance),
        Payee::Invoice(invoice) => guests::owed(tx, invoice),
    }
}

/// Called under the wallet's lock, so that two concurrent refunds cannot both take the rest.
fn require_refundable(tx: &mut Tx, id: &OrderId, amount: Usd) -> Result<()> {
    let order = orders::by_id(tx, id)?.ok_or(Refusal::OrderNotFound)?;
    let left = match order.status {
        OrderStatus::Fulfilled => order.price.minus(ledger::paid_back(tx, id)?),
        // Failed and cancelled orders are paid back already; the other two are not decided yet.
        OrderStatus::Provisioning
        | OrderStatus::Failed
        | OrderStatus::Cancelling
        | OrderStatus::Cancelled => Usd::ZERO,
    };
    if amount > left { Err(Refusal::RefundTooLarge { left }.into()) } else { Ok(()) }
}

/// How long an order may wait for its supplier before an operator should look.
pub(super) const STUCK_AFTER_MS: i64 = 30 * 60_000;

/// How many orders are stuck, by status.
pub async fn stuck_orders(app: &App) -> Result<Vec<(String, i64)>> {
    let since = app.now().plus_millis(-STUCK_AFTER_MS);
    app.store.read(move |tx| orders::open_since(tx, since)).await
}

/// The stuck orders themselves, the longest waiting first.
pub async fn longest_waiting(app: &App, account: Option<AccountNo>, limit: usize) -> Result<Vec<Order>> {
    let since = app.now().plus_millis(-STUCK_AFTER_MS);
    let read = move |tx: &mut Tx| orders::due(tx, Time::from_micros(i64::MAX), since, i64::MAX);
    let mut waiting = app.store.snapshot(read).await?;
    waiting
        .retain(|order| order.updated_at < since && account.is_none_or(|account| order.account == account));
    waiting.sort_by_key(|order| order.updated_at);
    waiting.truncate(limit);
    Ok(waiting)
}
