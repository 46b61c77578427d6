//! The event log. A change and its event are one write, and the change comes first: its row is locked before the event takes
//! its place, so the events of one subject have their places in order.
//!
//! Places grow, but on PostgreSQL transactions do not commit in their order. Whoever fills a place holds a lock on the table
//! until its transaction has ended and can be seen. So when all have gone that held one after a place was taken, nothing can
//! appear at or before that place any more: `mark` tells the last place and who holds one. SQLite has one writer, so every
//! place that can be seen is settled.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use crate::domain::account::GUESTS;
use crate::domain::event::{Event, EventKind, News};
use crate::domain::ids::AccountNo;
use crate::domain::time::Time;
use crate::error::Result;

macro_rules! select_page {
    ($more:literal) => {
        text!(
            "SELECT ",
            Event::COLUMNS,
            " FROM events v WHERE v.account = ?1 AND v.no > ?2 AND v.no <= ?3 ",
            $more,
            " ORDER BY v.no LIMIT ?4"
        )
    };
}

queries! {
    APPEND = text!(insert_into!("events", Told), " RETURNING no");
    PAGE = select_page!("");
    PAGE_OF_LITE (Sqlite) = select_page!("AND v.kind IN (SELECT value FROM json_each('[\"' || replace(?5, ',', '\",\"') || '\"]'))");
    PAGE_OF_PG (Postgres) = select_page!("AND v.kind = ANY (string_to_array(CAST(?5 AS TEXT), ','))");
    BY_NO = text!("SELECT ", Event::COLUMNS, " FROM events v WHERE v.no = ?1");
    LAST_LITE (Sqlite) = "SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'events'";
    LAST_PG (Postgres) = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM events_no_seq";
    LAST_UNTIL = "SELECT COALESCE(MAX(no), 0) FROM events WHERE no <= ?1";
    /// In this database: others on the server have a table of the same name and number.
    WRITERS (Postgres) = "SELECT l.virtualtransaction FROM pg_locks l
                WHERE l.locktype = 'relation' AND l.database = (SELECT a.datid FROM pg_stat_get_activity(pg_backend_pid()) a)
                  AND l.relation = CAST('events' AS regclass) AND l.mode = 'RowExclusiveLock' AND l.granted";
    SKIP_LITE (Sqlite) = "UPDATE sqlite_sequence SET seq = seq + ?1 WHERE name = 'events'";
    /// There was no event yet.
    BEGIN_LITE (Sqlite) = "INSERT INTO sqlite_sequence (name, seq) VALUES ('events', ?1)";
    SKIP_PG (Postgres) = "SELECT setval('events_no_seq', s.last_value + ?1) FROM events_no_seq s";
    /// From the end, so that it costs as much as what comes after that time.
    LAST_BEFORE = "SELECT no FROM events WHERE account = ?1 AND at < ?2 ORDER BY no DESC LIMIT 1";
    KINDS = "SELECT v.kind FROM events v WHERE v.account = ?1 AND v.no > ?2 ORDER BY v.no LIMIT ?3";
    OWNERS = "SELECT DISTINCT account FROM events WHERE no > ?1 AND no <= ?2";
    /// Only the first places are looked at: the oldest are there.
    FORGET = "DELETE FROM events WHERE no IN (SELECT no FROM (SELECT no, at FROM events ORDER BY no LIMIT ?2) first WHERE at < ?1)";
}

columns! { Event in "v" { no, kind, subject, sequence, at, data } }

values! {
    Told(news: News<'a>) { account, kind, subject, sequence, at, data }
}

/// Writes an event down, after the change that it tells of. Answers its place; guests have no log.
pub fn append(tx: &mut Tx, news: &News) -> Result<Option<i64>> {
    if news.account == GUESTS {
        return Ok(None);
    }
    tx.write_opt(APPEND, &Told::params(news))
}

/// The events of an account after one place and up to another, of these kinds or of all.
pub fn page(
    tx: &mut Tx,
    account: AccountNo,
    after: i64,
    until: i64,
    kinds: &[EventKind],
    most: i64,
) -> Result<Vec<Event>> {
    if kinds.is_empty() {
        return tx.all(PAGE, params![account, after, until, most]);
    }
    let words: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    let sql = if tx.is_postgres() { PAGE_OF_PG } else { PAGE_OF_LITE };
    tx.all(sql, params![account, after, until, most, &words.join(",")])
}

/// The event at this place, unless it is forgotten.
pub fn by_no(tx: &mut Tx, no: i64) -> Result<Option<Event>> {
    tx.opt(BY_NO, params![no])
}

/// How far the log has come.
pub struct Mark {
    /// The last place that was taken.
    pub last: i64,
    /// Who may still fill a place up to there.
    pub writers: Vec<String>,
}

pub fn mark(tx: &mut Tx) -> Result<Mark> {
    if !tx.is_postgres() {
        return Ok(Mark { last: tx.one(LAST_LITE, &[])?, writers: Vec::new() });
    }
    // In this order: who takes a place after the first look does not matter to it.
    Ok(Mark { last: tx.one(LAST_PG, &[])?, writers: writers(tx)? })
}

/// The place of the last event up to this place; 0 when there is none.
pub fn last_until(tx: &mut Tx, place: i64) -> Result<i64> {
    tx.one(LAST_UNTIL, params![place])
}

/// Whose transactions may fill places now. PostgreSQL only.
pub fn writers(tx: &mut Tx) -> Result<Vec<String>> {
    tx.all(WRITERS, &[])
}

/// The place of an account's last event from before this time; 0 when there is none.
pub fn last_before(tx: &mut Tx, account: AccountNo, at: Time) -> Result<i64> {
    Ok(tx.opt(LAST_BEFORE, params![account, at])?.unwrap_or(0))
}

/// The kinds of an account's events after a place, the first ones.
pub fn kinds(tx: &mut Tx, account: AccountNo, after: i64, most: i64) -> Result<Vec<EventKind>> {
    tx.all(KINDS, params![account, after, most])
}

/// Whose events are after one place and up to another.
pub fn owners(tx: &mut Tx, after: i64, until: i64) -> Result<Vec<AccountNo>> {
    tx.all(OWNERS, params![after, until])
}

/// Leaves this many places empty, because a restored database does not know which of them were told of.
pub fn skip(tx: &mut Tx, places: i64) -> Result<()> {
    if tx.is_postgres() {
        return tx.one::<i64>(SKIP_PG, params![places]).map(drop);
    }
    if tx.execute(SKIP_LITE, params![places])? == 0 {
        tx.execute(BEGIN_LITE, params![places])?;
    }
    Ok(())
}

/// Forgets events from before this time, a limited number at once. Answers how many.
pub fn forget(tx: &mut Tx, before: Time, most: i64) -> Result<u64> {
    tx.execute(FORGET, params![before, most])
}
