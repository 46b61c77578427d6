//! What the instance that delivers to webhooks writes down: its turn, what was tried, and what waits to be tried again.

use super::engine::{Stored, Tx, columns, insert_into, lists, names, params, queries, text, values};
use super::meta;
use crate::domain::delivery::Health;
use crate::domain::event::Event;
use crate::domain::ids::WebhookId;
use crate::domain::time::Time;
use crate::domain::webhook::{Delivery, Webhook, WebhookStatus};
use crate::error::{Error, Result};

/// What waits for a webhook, each with the first of its subject: later ones must not come before that.
macro_rules! heads {
    ($more:literal) => {
        concat!(
            " FROM (SELECT q.event, MIN(q.event) OVER (PARTITION BY q.subject) AS head",
            $more,
            " FROM webhook_waiting q WHERE q.webhook = ?1 AND q.aside_at IS NULL) q"
        )
    };
}

queries! {
    /// A turn that would last longer than a new one was taken by a wrong clock, and is void.
    TAKE = "INSERT INTO webhook_turn (name, holder, held_until) VALUES ('deliveries', ?1, ?3) ON CONFLICT (name)
            DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
            WHERE webhook_turn.holder = ?1 OR webhook_turn.held_until < ?2 OR webhook_turn.held_until > ?4";
    RELEASE = "UPDATE webhook_turn SET held_until = 0 WHERE holder = ?1";
    HOLDER = "SELECT holder, held_until FROM webhook_turn WHERE name = 'deliveries'";
    RECORD = text!(insert_into!("webhook_deliveries", Tried), " RETURNING no");
    RECORD_ALL (Postgres) = text!("INSERT INTO webhook_deliveries (", Tried::NAMES, ") SELECT * FROM unnest(", lists!(Tried), ") RETURNING no");
    RECORDED = "SELECT no FROM webhook_deliveries WHERE webhook = ?1 AND message = ?2 AND at = ?3 ORDER BY no DESC LIMIT 1";
    PAGE = text!("SELECT ", Delivery::COLUMNS, " FROM webhook_deliveries d WHERE d.webhook = ?1 AND d.no < ?2
              ORDER BY d.no DESC LIMIT ?3");
    BY_NO = text!("SELECT ", Delivery::COLUMNS, " FROM webhook_deliveries d WHERE d.no = ?2 AND d.webhook = ?1");
    /// Only the first places are looked at: the oldest are there.
    FORGET = "DELETE FROM webhook_deliveries WHERE no IN (
                  SELECT no FROM (SELECT no, at FROM webhook_deliveries ORDER BY no LIMIT ?2) first WHERE at < ?1)";
    /// One that was changed since it was read is left as it is.
    MOVE = "UPDATE webhooks SET cursor = ?4, failing_since = ?5, failures = ?6, resting_until = ?7, accepted_at = COALESCE(?8, accepted_at)
            WHERE id = ?1 AND edition = ?2 AND cursor = ?3 AND status = 'ACTIVE'";
    /// `MOVE` for webhooks that accepted everything.
    MOVE_ALL (Postgres) = text!("UPDATE webhooks SET cursor = a.next, failing_since = NULL, failures = 0, resting_until = NULL, accepted_at = a.at
            FROM unnest(", lists!(Onward), ") AS a (", names!(Onward), ")
            WHERE webhooks.id = a.id AND webhooks.edition = a.edition AND webhooks.cursor = a.seen AND status = 'ACTIVE' RETURNING webhooks.id");
    DISABLE = "UPDATE webhooks SET status = 'DISABLED', disabled_at = ?3, edition = edition + 1 WHERE id = ?1 AND edition = ?2";
    REST = "UPDATE webhooks SET failing_since = ?3, failures = ?4, resting_until = ?5 WHERE id = ?1 AND edition = ?2 AND status = 'PENDING'";
    HEADS = text!("SELECT ", Waiting::COLUMNS, heads!(", q.refused_at, q.tries, q.due_at"), " JOIN events v ON v.no = q.event
             WHERE q.event = q.head AND q.due_at <= ?2 ORDER BY q.event LIMIT ?3");
    NEXT_DUE = text!("SELECT MIN(q.due_at)", heads!(", q.due_at"), " WHERE q.event = q.head");
    BLOCKED = "SELECT DISTINCT subject FROM webhook_waiting WHERE webhook = ?1 AND aside_at IS NULL";
    HELD = "SELECT COUNT(*) FROM webhook_waiting WHERE webhook = ?1 AND aside_at IS NULL";
    PUT = "INSERT INTO webhook_waiting (webhook, event, subject, refused_at, tries, due_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
           ON CONFLICT (webhook, event) DO UPDATE SET refused_at = excluded.refused_at, tries = excluded.tries, due_at = excluded.due_at";
    SET_ASIDE = "UPDATE webhook_waiting SET tries = ?3, aside_at = ?4 WHERE webhook = ?1 AND event = ?2";
    TAKE_OUT = "DELETE FROM webhook_waiting WHERE webhook = ?1 AND event = ?2";
    /// What waits for an event that is forgotten waits for nothing.
    FORGET_WAITING = "DELETE FROM webhook_waiting WHERE event IN (SELECT q.event FROM webhook_waiting q
                      WHERE NOT EXISTS (SELECT 1 FROM events v WHERE v.no = q.event) LIMIT ?1)";
    COUNTS = "SELECT status, COUNT(*) FROM webhooks GROUP BY status";
    /// What waits, and what stays in the log because an endpoint rests or is slow.
    OLDEST = "SELECT MIN(v.at) FROM webhooks w JOIN events v ON v.account = w.account AND v.no > w.cursor
              WHERE w.status = 'ACTIVE' AND (w.kinds = '' OR ',' || w.kinds || ',' LIKE '%,' || v.kind || ',%')
              UNION ALL SELECT MIN(v.at) FROM webhook_waiting q JOIN webhooks w ON w.id = q.webhook JOIN events v ON v.no = q.event
              WHERE q.aside_at IS NULL AND w.status = 'ACTIVE'";
}

columns! {
    Delivery in "d" { no, webhook, event, message, kind, attempt = "d.try", at, ms, status, answer, trouble }
}

values! {
    Tried(new: Delivery) {
        webhook: TEXT, event: BIGINT, message: TEXT, kind: TEXT, try: BIGINT = new.attempt, at: BIGINT, ms: BIGINT,
        status: BIGINT, answer: TEXT, trouble: TEXT,
    }
}

values! {
    /// Where a webhook stood, and where it stands.
    Onward(step: Step<'a>) {
        id: TEXT = &step.webhook.id, edition: BIGINT = step.webhook.edition, seen: BIGINT = step.webhook.cursor,
        next: BIGINT = step.cursor, at: BIGINT = step.accepted_at,
    }
}

/// So long a write may wait before it runs, with a little more for clocks.
const QUEUED_MS: i64 = 12_000;

/// A webhook that has accepted everything up to a place.
pub struct Step<'a> {
    pub webhook: &'a Webhook,
    pub cursor: i64,
    pub accepted_at: Time,
}

/// An event that an endpoint has refused, or that must not come before one.
pub struct Waiting {
    pub event: Event,
    /// When it was first refused.
    pub refused_at: Option<Time>,
    pub tries: i64,
}

columns! {
    Waiting in "q" { event: Event = Event::COLUMNS, refused_at, tries }
}

/// Takes or keeps the turn until then. False while another instance has it.
pub fn take_turn(tx: &mut Tx, holder: &str, now: Time, until: Time) -> Result<bool> {
    // This write may have waited in its queue while another instance renewed its turn.
    Ok(tx.execute(TAKE, params![holder, now, until, until.plus_millis(QUEUED_MS)])? == 1)
}

/// Gives the turn back, so that another need not wait.
pub fn release_turn(tx: &mut Tx, holder: &str) -> Result<()> {
    tx.execute(RELEASE, params![holder]).map(drop)
}

/// The holder of the turn, even when it is over, and until when.
pub fn turn(tx: &mut Tx) -> Result<Option<(String, Time)>> {
    tx.opt(HOLDER, &[])
}

/// Writes a try down. Answers its number.
pub fn record(tx: &mut Tx, new: &Delivery) -> Result<i64> {
    if tx.is_rerun()
        && let Some(no) = tx.opt(RECORDED, params![&new.webhook, &new.message, new.at])?
    {
        return Ok(no);
    }
    let no = tx.write_opt(RECORD, &Tried::params(new))?;
    no.ok_or_else(|| Error::fault("a delivery was written without a number"))
}

/// Writes many tries down, which the dispatcher made.
pub fn record_all(tx: &mut Tx, new: &[Delivery]) -> Result<()> {
    if tx.is_postgres() && !new.is_empty() {
        let rows: Vec<_> = new.iter().map(|delivery| Tried::params(delivery)).collect();
        return tx.for_each::<i64>(RECORD_ALL, &rows).map(drop);
    }
    new.iter().try_for_each(|delivery| tx.write_opt::<i64>(RECORD, &Tried::params(delivery)).map(drop))
}

/// Tries before this number, the newest first.
pub fn page(tx: &mut Tx, id: &WebhookId, before: i64, most: i64) -> Result<Vec<Delivery>> {
    tx.all(PAGE, params![id, before, most])
}

pub fn by_no(tx: &mut Tx, id: &WebhookId, no: i64) -> Result<Option<Delivery>> {
    tx.opt(BY_NO, params![id, no])
}

/// Forgets tries from before this time, a limited number at once. Answers how many.
pub fn forget(tx: &mut Tx, before: Time, most: i64) -> Result<u64> {
    tx.execute(FORGET, params![before, most])
}

/// Forgets what waits for events that are forgotten, a limited number at once. Answers how many.
pub fn forget_waiting(tx: &mut Tx, most: i64) -> Result<u64> {
    tx.execute(FORGET_WAITING, params![most])
}

/// Moves a webhook to a place in the log, with how it answered. False when it was changed since it was read: then nothing
/// of what was tried counts.
pub fn advance(
    tx: &mut Tx,
    seen: &Webhook,
    cursor: i64,
    health: Health,
    accepted_at: Option<Time>,
) -> Result<bool> {
    let Health { failing_since, failures, resting_until } = health;
    let values = params![
        &seen.id,
        seen.edition,
        seen.cursor,
        cursor,
        failing_since,
        failures,
        resting_until,
        accepted_at
    ];
    Ok(tx.execute(MOVE, values)? == 1)
}

/// `advance` for webhooks that accepted everything, in one statement. PostgreSQL only.
pub fn advance_all(tx: &mut Tx, steps: &[Step]) -> Result<()> {
    let rows: Vec<_> = steps.iter().map(|step| Onward::params(step)).collect();
    tx.for_each::<WebhookId>(MOVE_ALL, &rows).map(drop)
}

/// Disables a webhook, unless it was changed since it was read.
pub fn disable(tx: &mut Tx, seen: &Webhook, now: Time) -> Result<bool> {
    let moved = tx.execute(DISABLE, params![&seen.id, seen.edition, now])? == 1;
    if moved {
        meta::bump(tx, meta::Version::Webhooks)?;
    }
    Ok(moved)
}

/// The test of a webhook that is pending was refused.
pub fn rest(tx: &mut Tx, seen: &Webhook, health: Health) -> Result<()> {
    let Health { failing_since, failures, resting_until } = health;
    tx.execute(REST, params![&seen.id, seen.edition, failing_since, failures, resting_until]).map(drop)
}

/// What waits for a webhook and may be tried now: the first event of each subject, the oldest first.
pub fn heads(tx: &mut Tx, id: &WebhookId, now: Time, most: i64) -> Result<Vec<Waiting>> {
    tx.all(HEADS, params![id, now, most])
}

/// The subjects of which something waits.
pub fn blocked(tx: &mut Tx, id: &WebhookId) -> Result<Vec<String>> {
    tx.all(BLOCKED, params![id])
}

/// How many events wait.
pub fn held(tx: &mut Tx, id: &WebhookId) -> Result<i64> {
    tx.one(HELD, params![id])
}

/// When something that waits is due next.
pub fn next_due(tx: &mut Tx, id: &WebhookId) -> Result<Option<Time>> {
    tx.one(NEXT_DUE, params![id])
}

/// Lets an event wait until it is due.
pub fn put(
    tx: &mut Tx,
    id: &WebhookId,
    event: &Event,
    refused_at: Option<Time>,
    tries: i64,
    due_at: Time,
) -> Result<()> {
    tx.execute(PUT, params![id, event.no, &event.subject, refused_at, tries, due_at]).map(drop)
}

/// Sets an event aside that was refused for too long: the next of its subject goes on.
pub fn set_aside(tx: &mut Tx, id: &WebhookId, event: i64, tries: i64, now: Time) -> Result<()> {
    tx.execute(SET_ASIDE, params![id, event, tries, now]).map(drop)
}

/// An event that waited was accepted: the next of its subject goes on.
pub fn take_out(tx: &mut Tx, id: &WebhookId, event: i64) -> Result<()> {
    tx.execute(TAKE_OUT, params![id, event]).map(drop)
}

/// When the oldest event happened that an active webhook has not accepted.
pub fn oldest(tx: &mut Tx) -> Result<Option<Time>> {
    let found: Vec<Option<Time>> = tx.all(OLDEST, &[])?;
    Ok(found.into_iter().flatten().min())
}

/// How many webhooks there are, by status.
pub fn counts(tx: &mut Tx) -> Result<Vec<(WebhookStatus, i64)>> {
    tx.all(COUNTS, &[])
}
