//! Calls of the partner API: those that are kept, and how many there were of each kind. A list looks at a limited number of
//! an account's calls at once, whatever it looks for; calls that were refused have an index of their own.

use std::sync::Arc;

use super::engine::{Stored, Tx, columns, insert_into, lists, names, params, queries, text, values};
use crate::domain::call::{Call, Count, Method, REFUSED_FROM, Wanted};
use crate::domain::ids::AccountNo;
use crate::domain::time::Time;
use crate::error::Result;

/// Two instances may keep a call of the same account under the same microsecond: one of them goes.
macro_rules! unless_there {
    () => {
        " ON CONFLICT (account, at) DO NOTHING"
    };
}

macro_rules! adding {
    () => {
        " ON CONFLICT (account, hour, route, method, status, code) DO UPDATE SET calls = api_call_counts.calls + excluded.calls,
          ms = api_call_counts.ms + excluded.ms,
          last_at = CASE WHEN excluded.last_at > api_call_counts.last_at THEN excluded.last_at ELSE api_call_counts.last_at END"
    };
}

/// The newest of the calls that may be meant.
macro_rules! newest {
    ($columns:literal, $whose:literal) => {
        concat!(
            " FROM (SELECT ",
            $columns,
            " FROM api_calls WHERE ",
            $whose,
            " AND at < ?2 AND at >= ?3 ORDER BY at DESC LIMIT ?4) c"
        )
    };
}

macro_rules! that_fit {
    () => {
        " WHERE (?5 = '' OR c.method = ?5) AND (?6 = '' OR c.route = ?6) AND (?7 = 0 OR c.status / 100 = ?7)
          AND (?8 = '' OR c.code = ?8) AND (?9 = '' OR c.key_id = ?9) ORDER BY c.at DESC LIMIT ?10"
    };
}

queries! {
    BEGIN = "INSERT INTO api_call_batches (writer, no, at) VALUES (?1, ?2, ?3) ON CONFLICT (writer)
             DO UPDATE SET no = excluded.no, at = excluded.at WHERE api_call_batches.no < excluded.no";
    KEEP = text!(insert_into!("api_calls", Kept), unless_there!());
    KEEP_ALL (Postgres) = text!("INSERT INTO api_calls (", names!(Kept), ") SELECT * FROM unnest(", lists!(Kept), ")",
                   unless_there!(), " RETURNING 1");
    ADD = text!(insert_into!("api_call_counts", Counted), adding!());
    ADD_ALL (Postgres) = text!("INSERT INTO api_call_counts (", names!(Counted), ") SELECT * FROM unnest(", lists!(Counted), ")",
                  adding!(), " RETURNING 1");
    PAGE = text!("SELECT ", Call::COLUMNS, newest!("*", "account = ?1"), that_fit!());
    PAGE_OF_REFUSED = text!("SELECT ", Call::COLUMNS, newest!("*", "refused IS NOT NULL AND refused = ?1"), that_fit!());
    LOOKED_AT = text!("SELECT COUNT(*), MIN(c.at)", newest!("at", "account = ?1"));
    LOOKED_AT_REFUSED = text!("SELECT COUNT(*), MIN(c.at)", newest!("at", "refused IS NOT NULL AND refused = ?1"));
    ERRORS = "SELECT status, code, method, route, CAST(SUM(calls) AS BIGINT), MAX(last_at) FROM api_call_counts
              WHERE account = ?1 AND hour >= ?2 AND status >= ?3 GROUP BY status, code, method, route";
    FORGET = "DELETE FROM api_calls WHERE (account, at) IN
                  (SELECT account, at FROM api_calls WHERE at < ?1 ORDER BY at LIMIT ?2)";
    FORGET_COUNTS = "DELETE FROM api_call_counts WHERE (account, hour, route, method, status, code) IN
                  (SELECT account, hour, route, method, status, code FROM api_call_counts WHERE hour < ?1 ORDER BY hour LIMIT ?2)";
    FORGET_BATCHES = "DELETE FROM api_call_batches WHERE at < ?1";
}

columns! {
    Call in "c" { account, at, method, route, status, code, ms, request_id, key_id }
}

values! {
    Kept(call: Call) {
        account: BIGINT, at: BIGINT, method: TEXT, route: TEXT, status: BIGINT, code: TEXT, ms: BIGINT, request_id: TEXT,
        key_id: TEXT, refused: BIGINT = (call.status >= REFUSED_FROM).then_some(call.account),
    }
}

values! {
    Counted(count: Count) {
        account: BIGINT, hour: BIGINT, route: TEXT, method: TEXT, status: BIGINT, code: TEXT, calls: BIGINT, ms: BIGINT,
        last_at: BIGINT,
    }
}

/// What is written at once.
pub struct Batch {
    /// The process that writes it, and its number there.
    pub writer: Arc<str>,
    pub no: i64,
    pub at: Time,
    pub calls: Vec<Call>,
    /// Of as many different kinds, in the order in which all instances lock them.
    pub counts: Vec<Count>,
}

/// Writes a batch, unless it was written before: then its calls would be counted twice.
pub fn write(tx: &mut Tx, batch: &Batch) -> Result<()> {
    if tx.execute(BEGIN, params![&*batch.writer, batch.no, batch.at])? == 0 {
        return Ok(());
    }
    let calls: Vec<_> = batch.calls.iter().map(|call| Kept::params(call)).collect();
    let counts: Vec<_> = batch.counts.iter().map(|count| Counted::params(count)).collect();
    if tx.is_postgres() {
        if !calls.is_empty() {
            tx.for_each::<()>(KEEP_ALL, &calls)?;
        }
        if !counts.is_empty() {
            tx.for_each::<()>(ADD_ALL, &counts)?;
        }
        return Ok(());
    }
    for call in &calls {
        tx.execute(KEEP, call)?;
    }
    for count in &counts {
        tx.execute(ADD, count)?;
    }
    Ok(())
}

/// Those of an account's newest calls that are wanted, of so many that are looked at.
pub fn page(tx: &mut Tx, account: AccountNo, wanted: &Wanted, look_at: i64, most: i64) -> Result<Vec<Call>> {
    let (from, until) = wanted.span();
    let sql = if wanted.is_of_refused() { PAGE_OF_REFUSED } else { PAGE };
    let method = wanted.method.map_or("", Method::as_str);
    let route = wanted.route.as_deref().unwrap_or_default();
    let code = wanted.code.as_deref().unwrap_or_default();
    let key = wanted.key.as_ref().map_or("", |key| key.as_str());
    let class = wanted.class.unwrap_or_default();
    tx.all(sql, params![account, until, from, look_at, method, route, class, code, key, most])
}

/// How many calls `page` looked at, and the oldest of them.
pub fn looked_at(
    tx: &mut Tx,
    account: AccountNo,
    wanted: &Wanted,
    look_at: i64,
) -> Result<(i64, Option<Time>)> {
    let (from, until) = wanted.span();
    let sql = if wanted.is_of_refused() { LOOKED_AT_REFUSED } else { LOOKED_AT };
    tx.one(sql, params![account, until, from, look_at])
}

/// How many calls of one kind were refused.
pub struct Refused {
    pub status: i64,
    pub code: String,
    pub method: Method,
    pub route: String,
    pub calls: i64,
    pub last_at: Time,
}

/// The calls of an account that were refused from this hour on, by kind.
pub fn errors(tx: &mut Tx, account: AccountNo, hour: i64) -> Result<Vec<Refused>> {
    let found = tx.all(ERRORS, params![account, hour, REFUSED_FROM])?;
    let read = |(status, code, method, route, calls, last_at)| Refused {
        status,
        code,
        method,
        route,
        calls,
        last_at,
    };
    Ok(found.into_iter().map(read).collect())
}

/// Forgets calls from before this time, a limited number at once. Answers how many.
pub fn forget(tx: &mut Tx, before: Time, most: i64) -> Result<u64> {
    tx.execute(FORGET, params![before, most])
}

/// The same for counts of hours.
pub fn forget_counts(tx: &mut Tx, before: i64, most: i64) -> Result<u64> {
    tx.execute(FORGET_COUNTS, params![before, most])
}

/// Forgets processes that have written nothing since then.
pub fn forget_batches(tx: &mut Tx, before: Time) -> Result<()> {
    tx.execute(FORGET_BATCHES, params![before]).map(drop)
}
