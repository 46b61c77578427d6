//! Delivered profiles, the last known reading of each one's meter, and what it had used at the end of each day. A reading
//! is stored only over the one that it was merged with, so that no instance undoes another's, and with the events that
//! tell of it, which count among those of its order.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use super::{events, wallet};
use crate::domain::esim::tidings::{self, Tidings};
use crate::domain::esim::{Esim, Usage, UsageDay};
use crate::domain::event::News;
use crate::domain::ids::{AccountNo, OrderId};
use crate::domain::time::Time;
use crate::error::{Error, Result};

queries! {
    INSERT = insert_into!("esims", New);
    OWNER = "SELECT order_id FROM esims WHERE iccid = ?1 AND profile = ?2";
    BEGIN_DUE = "UPDATE esims SET due_at = ?2, due_from = (SELECT o.supplier FROM orders o WHERE o.id = ?1) WHERE order_id = ?1";
    DUE = "SELECT order_id FROM esims WHERE due_from = ?1 AND due_at IS NOT NULL AND due_at <= ?2 ORDER BY due_at LIMIT ?3";
    IS_DUE_AFTER = "SELECT 1 FROM esims WHERE iccid = ?2 AND due_from = ?1 AND due_at > ?3 LIMIT 1";
    DUE_EARLIER = "UPDATE esims SET due_at = CASE WHEN asked_at + ?4 > ?3 THEN asked_at + ?4 ELSE ?3 END
                   WHERE iccid = ?2 AND due_from = ?1 AND due_at > ?3 AND due_at > COALESCE(asked_at + ?4, 0)";
    END_DUE = "UPDATE esims SET due_at = NULL WHERE order_id = ?1";
    /// A turn that is too far away was taken by a wrong clock, and so was a question of a time to come, below.
    TAKE_TURN = "INSERT INTO usage_turns (supplier, next_at) VALUES (?1, ?3) ON CONFLICT (supplier)
                 DO UPDATE SET next_at = excluded.next_at WHERE usage_turns.next_at <= ?2 OR usage_turns.next_at > ?4";
    /// The same for one reading that somebody waits for: the turn after the last one, if it is not too far away.
    NEXT_TURN = "INSERT INTO usage_turns (supplier, next_at) VALUES (?1, CAST(?2 AS BIGINT) + ?3) ON CONFLICT (supplier)
                 DO UPDATE SET next_at = CASE WHEN usage_turns.next_at > ?2 AND usage_turns.next_at <= ?4 THEN usage_turns.next_at ELSE ?2 END + ?3
                 WHERE usage_turns.next_at <= ?4 OR usage_turns.next_at > ?5";
    CLAIM = "UPDATE esims SET asked_at = ?2, due_at = CASE WHEN due_at IS NOT NULL THEN CAST(?5 AS BIGINT) END
             WHERE order_id = ?1 AND (asked_at IS NULL OR asked_at <= ?3 OR asked_at > ?4)";
    KNOWN = text!("SELECT s.readings, s.told_percent, ", Usage::COLUMNS, " FROM esims s WHERE s.order_id = ?1");
    SAVE = "UPDATE esims SET usage_status = ?3, service_state = ?4, profile_state = ?5, total_mb = ?6, used_mb = ?7, as_of = ?8,
                expires_at = ?9, answered_at = ?10, due_at = CASE WHEN due_at IS NOT NULL THEN CAST(?11 AS BIGINT) END,
                readings = readings + 1, told_percent = ?12,
                installed_at = COALESCE(installed_at, CASE WHEN ?3 IN ('INSTALLED', 'ACTIVE', 'DEPLETED') THEN CAST(?8 AS BIGINT) END)
            WHERE order_id = ?1 AND readings = ?2";
    FORGET_READING = "UPDATE esims SET usage_status = NULL, service_state = NULL, profile_state = NULL, total_mb = NULL,
                          used_mb = NULL, as_of = NULL, expires_at = NULL, asked_at = NULL, readings = readings + 1,
                          told_percent = 0 WHERE order_id = ?1";
    ACCOUNT (Postgres) = "SELECT account FROM orders WHERE id = ?1";
    LOCK_ORDER (Postgres) = "SELECT events FROM orders WHERE id = ?1 FOR UPDATE";
    COUNT_EVENTS = "UPDATE orders SET events = events + ?2 WHERE id = ?1 RETURNING account, events";
    SAVE_DAY = "INSERT INTO usage_days (order_id, day, used_mb, total_mb) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (order_id, day)
                DO UPDATE SET used_mb = excluded.used_mb, total_mb = excluded.total_mb";
    DAYS = text!("SELECT ", UsageDay::COLUMNS, " FROM usage_days d WHERE d.order_id = ?1 AND d.day >= ?2 ORDER BY d.day");
    FORGET_DAYS = "DELETE FROM usage_days WHERE (order_id, day) IN
                       (SELECT order_id, day FROM usage_days WHERE day < ?1 ORDER BY day LIMIT ?2)";
}

columns! {
    Usage in "s" {
        // Rows from before there were two states have only the word for both.
        service = "COALESCE(s.service_state, CASE s.usage_status WHEN 'INSTALLED' THEN 'NEW' WHEN 'EXPIRED' THEN
                       CASE WHEN s.used_mb > 0 THEN 'EXPIRED_USED' ELSE 'EXPIRED_UNUSED' END ELSE s.usage_status END)",
        profile = "COALESCE(s.profile_state, CASE s.usage_status WHEN 'INSTALLED' THEN 'INSTALLED' END)",
        total_mb, used_mb, as_of, expires_at,
    }
}

columns! {
    Esim in "s" {
        order = "s.order_id", profile, iccid, sealed = "s.activation", install_by,
        last_usage: Option<Usage> = Usage::COLUMNS,
        asked_at, answered_at, due_at,
    }
}

columns! { UsageDay in "d" { day, used_mb, total_mb } }

values! {
    New(new: Esim, account: AccountNo) {
        order_id = &new.order, account = account, profile, iccid, activation = &new.sealed, install_by,
    }
}

pub fn insert(tx: &mut Tx, account: AccountNo, esim: &Esim) -> Result<()> {
    tx.execute(INSERT, &New::params(esim, account))?;
    begin_due(tx, esim)
}

/// Lets a new profile be read when its time comes, if it is to be read without anybody asking.
pub fn begin_due(tx: &mut Tx, esim: &Esim) -> Result<()> {
    match esim.due_at {
        Some(due_at) => tx.execute(BEGIN_DUE, params![&esim.order, due_at]).map(drop),
        None => Ok(()),
    }
}

/// The profiles of a supplier that are to be read now, the longest due first.
pub fn due(tx: &mut Tx, supplier: &str, now: Time, most: i64) -> Result<Vec<OrderId>> {
    tx.all(DUE, params![supplier, now, most])
}

/// Whether a supplier's profile with this ICCID is to be read, and not before `now`.
pub fn is_due_after(tx: &mut Tx, supplier: &str, iccid: &str, now: Time) -> Result<bool> {
    tx.any(IS_DUE_AFTER, params![supplier, iccid, now])
}

/// Lets that profile be read now, or so many milliseconds after it was last asked for.
pub fn due_earlier(tx: &mut Tx, supplier: &str, iccid: &str, now: Time, pace_ms: i64) -> Result<()> {
    tx.execute(DUE_EARLIER, params![supplier, iccid, now, pace_ms * 1_000]).map(drop)
}

/// Lets a profile be read no more, unless somebody asks.
pub fn end_due(tx: &mut Tx, order: &OrderId) -> Result<()> {
    tx.execute(END_DUE, params![order]).map(drop)
}

/// Takes the turn to read profiles of a supplier until `until`; false while another instance has it. Nobody takes one that
/// lasts beyond `longest`.
pub fn take_turn(tx: &mut Tx, supplier: &str, now: Time, until: Time, longest: Time) -> Result<bool> {
    Ok(tx.execute(TAKE_TURN, params![supplier, now, until, longest])? == 1)
}

/// Takes a turn for a reading that somebody waits for, each a step after the last; false when none is free until `latest`.
/// One that is minutes away was taken by a wrong clock.
pub fn next_turn(tx: &mut Tx, supplier: &str, now: Time, step_micros: i64, latest: Time) -> Result<bool> {
    Ok(tx.execute(NEXT_TURN, params![supplier, now, step_micros, latest, now.plus_millis(120_000)])? == 1)
}

/// Claims the question to the carrier, if nobody asked since `before`. It is not due again before `next`.
pub fn claim_reading(
    tx: &mut Tx,
    order: &OrderId,
    now: Time,
    before: Time,
    next: Option<Time>,
) -> Result<bool> {
    Ok(tx.execute(CLAIM, params![order, now, before, now.and_a_little(), next])? == 1)
}

/// The order that delivered a supplier's profile.
pub fn owner_of(tx: &mut Tx, esim: &Esim) -> Result<Option<OrderId>> {
    holder_of(tx, &esim.iccid, &esim.profile)
}

/// The same by the profile's own names.
pub fn holder_of(tx: &mut Tx, iccid: &str, profile: &str) -> Result<Option<OrderId>> {
    tx.opt(OWNER, params![iccid, profile])
}

/// Stores a reading with what is known already and the events that tell of it, and answers what is known then. `next` says
/// when it is due again, `told` how an event shows the eSIM.
pub fn save_reading(
    tx: &mut Tx,
    order: &OrderId,
    reading: &Usage,
    now: Time,
    next: impl Fn(&Usage) -> Option<Time>,
    told: impl Fn(&Usage, Tidings) -> Result<String>,
) -> Result<Usage> {
    // SQLite has one writer.
    let mut is_locked = !tx.is_postgres();
    loop {
        let (readings, told_percent, known): (i64, i64, Option<Usage>) = tx.one(KNOWN, params![order])?;
        let usage = Usage::after(known.as_ref(), reading);
        let news = Tidings::of(known.as_ref(), &usage, told_percent);
        // Whoever changes an order locks its wallet, it and its eSIM, in this order; so does a reading that counts among
        // the order's events.
        if !news.is_empty() && !is_locked {
            let account = tx.one(ACCOUNT, params![order])?;
            wallet::lock(tx, account)?;
            tx.one::<i64>(LOCK_ORDER, params![order])?;
            is_locked = true;
            continue;
        }
        let news = news.into_iter().map(|tidings| Ok((tidings, told(&usage, tidings)?)));
        let news = news.collect::<Result<Vec<_>>>()?;
        let (status, due_at) = (usage.status(), next(&usage));
        let told_percent = tidings::told_after(known.as_ref(), &usage, told_percent);
        let values = params![
            order,
            readings,
            status,
            usage.service,
            usage.profile,
            usage.total_mb,
            usage.used_mb,
            usage.as_of,
            usage.expires_at,
            now,
            due_at,
            told_percent
        ];
        // Another instance may have stored a reading since.
        if tx.execute(SAVE, values)? == 1 {
            let meter = |usage: &Usage| (usage.used_mb, usage.total_mb);
            if known.as_ref().map(meter) != Some(meter(&usage)) {
                tx.execute(SAVE_DAY, params![order, usage.as_of.day(), usage.used_mb, usage.total_mb])?;
            }
            append(tx, order, &news, now)?;
            return Ok(usage);
        }
    }
}

/// Writes down what a reading that is stored tells, after the other events of its order. Nothing is counted for one that
/// was not stored.
fn append(tx: &mut Tx, order: &OrderId, news: &[(Tidings, String)], now: Time) -> Result<()> {
    let count = news.len() as i64;
    if count == 0 {
        return Ok(());
    }
    let counted = tx.write_opt(COUNT_EVENTS, params![order, count])?;
    let (account, last): (AccountNo, i64) =
        counted.ok_or_else(|| Error::fault("an eSIM without its order"))?;
    for (sequence, (tidings, data)) in (last - count + 1..).zip(news) {
        let (kind, subject) = (tidings.kind(), order.as_str());
        events::append(tx, &News { account, kind, subject, sequence, at: now, data })?;
    }
    Ok(())
}

/// Forgets the last known reading of a simulated profile that was moved back.
pub fn forget_reading(tx: &mut Tx, order: &OrderId) -> Result<()> {
    tx.execute(FORGET_READING, params![order]).map(drop)
}

/// What a profile had used at the end of each day since then, the oldest first.
pub fn days(tx: &mut Tx, order: &OrderId, since: i64) -> Result<Vec<UsageDay>> {
    tx.all(DAYS, params![order, since])
}

/// Forgets days before this one, a limited number at a time. Answers how many.
pub fn forget_days(tx: &mut Tx, before: i64, most: i64) -> Result<u64> {
    tx.execute(FORGET_DAYS, params![before, most])
}
