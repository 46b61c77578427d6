//! Webhooks: where partners want their events sent to. Every change that a delivery under way must not outlive counts
//! `edition` up, and every write here raises the counter by which other instances learn of it.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use super::meta;
use crate::domain::event::EventKind;
use crate::domain::ids::{AccountNo, WebhookId};
use crate::domain::time::Time;
use crate::domain::webhook::Webhook;
use crate::error::Result;

macro_rules! select_webhook {
    ($tail:literal) => {
        text!("SELECT ", Webhook::COLUMNS, " FROM webhooks w ", $tail)
    };
}

queries! {
    INSERT = insert_into!("webhooks", New);
    EXISTS = "SELECT 1 FROM webhooks WHERE id = ?1";
    BY_ID and LOCK = select_webhook!("WHERE w.id = ?1 AND (CAST(?2 AS BIGINT) IS NULL OR w.account = ?2)");
    OF_ACCOUNT = select_webhook!("WHERE w.account = ?1 ORDER BY w.created_at, w.id");
    LIST = select_webhook!("ORDER BY w.account, w.created_at, w.id");
    OPEN = select_webhook!("WHERE w.status IN ('PENDING', 'ACTIVE') ORDER BY w.id");
    COUNT = "SELECT COUNT(*) FROM webhooks WHERE account = ?1";
    CHANGE = "UPDATE webhooks SET url = ?2, kinds = ?3, description = ?4, status = ?5, test = ?6, cursor = ?7, accepted_at = ?8,
              disabled_at = ?9, failing_since = ?10, failures = ?11, resting_until = ?12, edition = edition + 1 WHERE id = ?1";
    DESCRIBE = "UPDATE webhooks SET description = ?2 WHERE id = ?1";
    ACCEPT = "UPDATE webhooks SET status = 'ACTIVE', accepted_at = ?3, failing_since = NULL, failures = 0, resting_until = NULL,
              edition = edition + 1 WHERE id = ?1 AND edition = ?2 AND status = 'PENDING'";
    /// Only over the key that was seen: a second run must not take the new one for the old one.
    ROTATE = "UPDATE webhooks SET old_secret = secret, secret = ?3, old_until = ?4 WHERE id = ?1 AND secret = ?2";
    /// It is tried at once, and is as healthy as before.
    REWIND = "UPDATE webhooks SET cursor = ?2, resting_until = NULL, edition = edition + 1 WHERE id = ?1";
    DROP_AFTER = "DELETE FROM webhook_waiting WHERE webhook = ?1 AND event > ?2";
    DROP_UNWANTED = "DELETE FROM webhook_waiting WHERE webhook = ?1 AND NOT EXISTS
              (SELECT 1 FROM events v WHERE v.no = webhook_waiting.event AND ',' || CAST(?2 AS TEXT) || ',' LIKE '%,' || v.kind || ',%')";
    DELETE = "DELETE FROM webhooks WHERE id = ?1";
    CLEAR_WAITING = "DELETE FROM webhook_waiting WHERE webhook = ?1
              AND event IN (SELECT event FROM webhook_waiting WHERE webhook = ?1 ORDER BY event LIMIT ?2)";
    CLEAR_DELIVERIES = "DELETE FROM webhook_deliveries
              WHERE no IN (SELECT no FROM webhook_deliveries WHERE webhook = ?1 ORDER BY no LIMIT ?2)";
    BACKLOG = "SELECT COUNT(*), COUNT(aside_at) FROM webhook_waiting WHERE webhook = ?1";
}

columns! {
    Webhook in "w" {
        id, account, url, kinds, description, status, secret, old_secret, old_until, cursor, edition, test, failing_since,
        failures, resting_until, accepted_at, created_at, disabled_at,
    }
}

values! {
    New(new: Webhook, kinds: &'a str) {
        id, account, url, kinds = kinds, description, status, secret, cursor, test, created_at,
    }
}

fn words(kinds: &[EventKind]) -> String {
    let words: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    words.join(",")
}

fn changed(tx: &mut Tx) -> Result<()> {
    meta::bump(tx, meta::Version::Webhooks).map(drop)
}

pub fn insert(tx: &mut Tx, new: &Webhook) -> Result<()> {
    if tx.is_rerun() && tx.any(EXISTS, params![&new.id])? {
        return Ok(());
    }
    tx.execute(INSERT, &New::params(new, &words(&new.kinds)))?;
    changed(tx)
}

/// A webhook of this account, or of any.
pub fn by_id(tx: &mut Tx, account: Option<AccountNo>, id: &WebhookId) -> Result<Option<Webhook>> {
    tx.opt(BY_ID, params![id, account])
}

pub fn lock(tx: &mut Tx, account: Option<AccountNo>, id: &WebhookId) -> Result<Option<Webhook>> {
    tx.lock(LOCK, params![id, account])
}

/// The webhooks of an account, or of all, the oldest first.
pub fn list(tx: &mut Tx, account: Option<AccountNo>) -> Result<Vec<Webhook>> {
    match account {
        Some(account) => tx.all(OF_ACCOUNT, params![account]),
        None => tx.all(LIST, &[]),
    }
}

/// Those that are to be sent something: their events, or their test.
pub fn open(tx: &mut Tx) -> Result<Vec<Webhook>> {
    tx.all(OPEN, &[])
}

pub fn count(tx: &mut Tx, account: AccountNo) -> Result<i64> {
    tx.one(COUNT, params![account])
}

/// Writes down where a webhook leads, what it wants and how it stands. The caller has locked it.
pub fn change(tx: &mut Tx, webhook: &Webhook) -> Result<()> {
    let kinds = words(&webhook.kinds);
    let Webhook { id, url, description, status, test, cursor, accepted_at, disabled_at, .. } = webhook;
    let fields = params![
        id,
        url,
        &kinds,
        description,
        *status,
        test,
        *cursor,
        *accepted_at,
        *disabled_at,
        webhook.failing_since,
        webhook.failures,
        webhook.resting_until,
    ];
    tx.execute(CHANGE, fields)?;
    changed(tx)
}

/// A description is no matter of deliveries.
pub fn describe(tx: &mut Tx, id: &WebhookId, description: &str) -> Result<()> {
    tx.execute(DESCRIBE, params![id, description])?;
    changed(tx)
}

/// The test of this edition was accepted. False when the webhook has changed since, or was accepted before.
pub fn accept(tx: &mut Tx, id: &WebhookId, edition: i64, now: Time) -> Result<bool> {
    let moved = tx.execute(ACCEPT, params![id, edition, now])? == 1;
    if moved {
        changed(tx)?;
    }
    Ok(moved)
}

/// Gives a webhook a new key; the one it had signs too until then. False when it has another one by now.
pub fn rotate(tx: &mut Tx, webhook: &Webhook, secret: &[u8], old_until: Time) -> Result<bool> {
    let moved = tx.execute(ROTATE, params![&webhook.id, &webhook.secret, secret, old_until])? == 1;
    if moved {
        changed(tx)?;
    }
    Ok(moved)
}

/// Takes a webhook back to an earlier place of the log. What waits from after it is met again.
pub fn rewind(tx: &mut Tx, id: &WebhookId, cursor: i64) -> Result<()> {
    tx.execute(REWIND, params![id, cursor])?;
    tx.execute(DROP_AFTER, params![id, cursor])?;
    changed(tx)
}

/// Forgets what waits for a webhook and is of a kind that it does not want.
pub fn drop_unwanted(tx: &mut Tx, webhook: &Webhook) -> Result<()> {
    if webhook.kinds.is_empty() {
        return Ok(());
    }
    tx.execute(DROP_UNWANTED, params![&webhook.id, &words(&webhook.kinds)]).map(drop)
}

/// Deletes a webhook. What waited for it and what was tried is left for `clear`.
pub fn delete(tx: &mut Tx, id: &WebhookId) -> Result<()> {
    tx.execute(DELETE, params![id])?;
    changed(tx)
}

/// Deletes what waited for a deleted webhook and what was tried, a limited number at once. Answers how many.
pub fn clear(tx: &mut Tx, id: &WebhookId, most: i64) -> Result<u64> {
    let waiting = tx.execute(CLEAR_WAITING, params![id, most])?;
    if waiting > 0 {
        return Ok(waiting);
    }
    tx.execute(CLEAR_DELIVERIES, params![id, most])
}

/// How many events wait for a webhook, and how many of them are set aside.
pub fn backlog(tx: &mut Tx, id: &WebhookId) -> Result<(i64, i64)> {
    tx.one(BACKLOG, params![id])
}
