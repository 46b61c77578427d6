//! What operators do: partners, keys, wallets, and orders that need a hand. Every act that touches money or access is
//! in the audit log, in the same write.

use std::time::Duration;

use super::LANE;
use super::audit::audit_line;
use super::cancel;
use super::deliver::{self, Standing, Turn};
use crate::app::App;
use crate::domain::account::AccountKind;
use crate::domain::ids::{AccountId, AccountNo, KeyId, OrderId, secret_text};
use crate::domain::ledger::{CreditKind, Entry};
use crate::domain::money::Usd;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::payback::Payee;
use crate::domain::plan::DEFAULT_PRICE_LIST;
use crate::domain::refusal::Refusal;
use crate::domain::text;
use crate::domain::time::Time;
use crate::error::{Error, Result};
pub use crate::store::accounts::Account;
use crate::store::accounts::{self, NewAccount};
use crate::store::audit::{self, Line};
pub use crate::store::keys::Key;
use crate::store::keys::{self, NewKey};
use crate::store::ledger::{self, Note};
use crate::store::meta::{self, Version};
use crate::store::tx::Tx;
use crate::store::wallet::{self, Suspension};
use crate::store::{debts, guests, orders};
use crate::vault;

pub struct NewPartner {
    pub name: String,
    pub email: Option<String>,
    pub credit: Usd,
}

/// A key with its secret, which is shown this once and stored only as a hash.
pub struct IssuedKey {
    pub id: KeyId,
    pub secret: String,
}

pub struct CreatedPartner {
    pub id: AccountId,
    pub key: IssuedKey,
}

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
    let line = audit_line(app, actor, "partner create", format!("{id}"));
    let no = app
        .store
        .write(LANE, move |tx| {
            let no = accounts::create(tx, &account)?;
            audit::record(tx, &line)?;
            Ok(no)
        })
        .await?;
    if new.credit.is_positive() {
        let credit = Adjustment {
            account: no,
            amount: new.credit,
            kind: CreditKind::Promo,
            reason: "opening credit".into(),
        };
        credit_wallet(app, actor, credit).await?;
    }
    let key = create_key(app, actor, no, KeyTerms::default()).await?;
    Ok(CreatedPartner { id, key })
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
}

pub async fn change_partner(app: &App, actor: &str, id: &str, change: PartnerChange) -> Result<Account> {
    let mut account = account(app, id).await?;
    account.name = change.name.unwrap_or(account.name);
    account.email = change.email.or(account.email);
    account.price_list = change.price_list.unwrap_or(account.price_list);
    account.low_balance = change.low_balance.unwrap_or(account.low_balance);
    let (saved, line) = (account.clone(), audit_line(app, actor, "partner set", account.id.to_string()));
    app.store
        .write(account.no.0, move |tx| {
            accounts::update(tx, &saved)?;
            audit::record(tx, &line)
        })
        .await?;
    Ok(account)
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
    let line = audit_line(app, actor, command, account.id.to_string());
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

#[derive(Default)]
pub struct KeyTerms {
    pub daily_limit: Option<Usd>,
    pub ips: String,
    pub read_only: bool,
}

pub async fn create_key(app: &App, actor: &str, account: AccountNo, terms: KeyTerms) -> Result<IssuedKey> {
    let secret = secret_text("sk_", [vault::random(), vault::random()]);
    let key = NewKey {
        id: app.new_key_id(),
        account,
        secret_hash: vault::hash_secret(&secret),
        daily_limit: terms.daily_limit,
        ips: terms.ips,
        read_only: terms.read_only,
        created_at: app.now(),
    };
    let id = key.id.clone();
    let line = audit_line(app, actor, "key create", id.to_string());
    app.store
        .write(account.0, move |tx| {
            keys::create(tx, &key)?;
            audit::record(tx, &line)
        })
        .await?;
    Ok(IssuedKey { id, secret })
}

pub async fn list_keys(app: &App, account: Option<AccountNo>) -> Result<Vec<Key>> {
    app.store.read(move |tx| keys::list(tx, account)).await
}

pub async fn revoke_key(app: &App, actor: &str, id: &str) -> Result<()> {
    let (key, now) = (KeyId::from_text(id), app.now());
    let line = audit_line(app, actor, "key revoke", id.into());
    let found = app
        .store
        .write(LANE, move |tx| {
            let found = keys::revoke(tx, &key, now)?;
            if found {
                audit::record(tx, &line)?;
            }
            Ok(found)
        })
        .await?;
    if found { Ok(()) } else { Err(Refusal::KeyNotFound.into()) }
}

#[derive(Clone)]
pub struct Adjustment {
    pub account: AccountNo,
    pub amount: Usd,
    pub kind: CreditKind,
    pub reason: String,
}

/// Puts money into a wallet. Answers the new balance.
pub async fn credit_wallet(app: &App, actor: &str, credit: Adjustment) -> Result<Usd> {
    let entry = Entry::operator_credit(&app.new_entry_id(), credit.kind, credit.account, credit.amount);
    adjust(app, actor, "wallet credit", credit, entry).await
}

/// Takes money out of a wallet, never below zero. Answers the new balance.
pub async fn debit_wallet(app: &App, actor: &str, debit: Adjustment) -> Result<Usd> {
    let entry = Entry::operator_debit(&app.new_entry_id(), debit.kind, debit.account, debit.amount);
    adjust(app, actor, "wallet debit", debit, entry).await
}

async fn adjust(
    app: &App,
    actor: &str,
    command: &'static str,
    what: Adjustment,
    entry: Entry,
) -> Result<Usd> {
    let (now, actor_name) = (app.now(), actor.to_string());
    let owner = account_by_no(app, what.account).await?.id;
    let detail = format!("{owner}: {} USD, {}: {}", what.amount, what.kind.as_str(), what.reason);
    let line = audit_line(app, actor, command, detail);
    app.store
        .write(what.account.0, move |tx| {
            if tx.is_rerun() && ledger::exists(tx, &entry.id)? {
                return Ok(wallet::read(tx, what.account)?.balance);
            }
            let text = Note { actor: Some(&actor_name), text: Some(&what.reason) };
            let balance = ledger::post(tx, &entry, now, text)?.unwrap_or_default();
            audit::record(tx, &line)?;
            Ok(balance)
        })
        .await
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

/// Asks the supplier about an open order now, without waiting for recovery. Answers the order as it is then.
pub async fn retry_order(app: &App, actor: &str, id: &str) -> Result<Order> {
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
    order(app, open.id.as_str()).await
}

/// Gives up an order: the money goes back. If its profile turns up later, it is cancelled at the supplier.
pub async fn fail_order(app: &App, actor: &str, id: &str, reason: &str) -> Result<Order> {
    let order = order(app, id).await?;
    if order.status != OrderStatus::Provisioning {
        return Err(Refusal::NotFailable.into());
    }
    let reason = text::visible(reason, deliver::WHY_CHARS);
    record(app, audit_line(app, actor, "order fail", format!("{id}: {reason}"))).await?;
    match deliver::fail(app, &order, "FAILED_BY_OPERATOR", &reason).await? {
        Standing::Ended { order, .. } if order.status == OrderStatus::Failed => Ok(*order),
        Standing::Ended { .. } | Standing::Open => Err(Refusal::NotFailable.into()),
    }
}

/// Pays money back for a delivered order as goodwill, at most its price in all; the sale and the eSIM stay. Answers the
/// new balance or, for a guest's order, what we owe for its invoice.
pub async fn refund_order(app: &App, actor: &str, id: &str, amount: Usd, reason: &str) -> Result<Usd> {
    let order = order(app, id).await?;
    let owner = account_by_no(app, order.account).await?.id;
    let detail = format!("{owner}: {amount} USD for {}, goodwill: {reason}", order.id);
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
            debts::pay_back(tx, &entry, &order, now, note)?;
            audit::record(tx, &line)?;
        }
        match back.to {
            Payee::Wallet(owner) => Ok(wallet::read(tx, owner)?.balance),
            Payee::Invoice(invoice) => guests::owed(tx, &invoice),
        }
    };
    app.store.write(lane, write).await
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

async fn record(app: &App, line: Line) -> Result<()> {
    app.store.write(LANE, move |tx| audit::record(tx, &line)).await
}

/// How long an order may wait for its supplier before an operator should look.
const STUCK_AFTER_MS: i64 = 30 * 60_000;

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
