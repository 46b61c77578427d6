//! The audit log: what operators did, when, and what was before and after. Lines are only added; the database refuses
//! to change or delete them.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::domain::ids::AccountNo;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    EXISTS = "SELECT 1 FROM audit WHERE id = ?1";
    INSERT = "INSERT INTO audit (id, at, actor, command, detail, before, after, account) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    LIST = text!("SELECT ", Deed::COLUMNS, " FROM audit WHERE at >= ?1 AND at < ?2
             AND (CAST(?3 AS TEXT) IS NULL OR actor = ?3)
             AND (CAST(?4 AS TEXT) IS NULL OR substr(command, 1, length(?4)) = ?4)
             ORDER BY at DESC, id DESC LIMIT ?5");
    OF_ACCOUNT = text!("SELECT ", Deed::COLUMNS, " FROM audit WHERE account = ?1 AND account IS NOT NULL AND (at, id) < (?2, ?3)
             ORDER BY at DESC, id DESC LIMIT ?4");
    ABOUT = text!("SELECT ", Deed::COLUMNS, " FROM (SELECT * FROM audit WHERE account = ?1 AND account IS NOT NULL AND at >= ?2
             ORDER BY at DESC, id DESC LIMIT ?4) lately
             WHERE substr(detail, 1, length(CAST(?3 AS TEXT))) = ?3 ORDER BY at, id");
    LATELY = "SELECT at FROM audit WHERE account = ?1 AND account IS NOT NULL AND at > ?2 AND command = ?3
              AND substr(detail, 1, length(CAST(?4 AS TEXT))) = ?4 ORDER BY at DESC LIMIT ?5";
    LATEST = "SELECT at FROM audit WHERE at >= ?1 AND command = ?2 AND substr(detail, 1, length(CAST(?3 AS TEXT))) = ?3
             ORDER BY at DESC LIMIT 1";
}

/// An act of an operator. The caller makes the id, so that a re-run writes it once.
#[derive(Clone, Debug)]
pub struct Line {
    pub id: String,
    pub at: Time,
    pub actor: String,
    pub command: &'static str,
    pub detail: String,
    pub before: Option<String>,
    pub after: Option<String>,
    /// The partner who may read it; none for what operators do.
    pub account: Option<AccountNo>,
}

impl Line {
    /// The same line with what the act changed.
    pub fn changing(&self, before: impl Into<String>, after: impl Into<String>) -> Line {
        Line { before: Some(before.into()), after: Some(after.into()), ..self.clone() }
    }
}

/// A line as it is read.
pub struct Deed {
    pub id: String,
    pub at: Time,
    pub actor: String,
    pub command: String,
    pub detail: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

columns! { Deed { id, at, actor, command, detail, before, after } }

/// Which lines are wanted; what is left out is not asked for.
#[derive(Clone, Default)]
pub struct Wanted {
    pub from: Option<Time>,
    pub to: Option<Time>,
    pub actor: Option<String>,
    /// How the command begins: `wallet`, or `wallet credit`.
    pub command: Option<String>,
    pub limit: i64,
}

/// Whether the line exists: a re-run that finds its own line has nothing left to do.
pub fn exists(tx: &mut Tx, id: &str) -> Result<bool> {
    tx.any(EXISTS, params![id])
}

pub fn record(tx: &mut Tx, line: &Line) -> Result<()> {
    if tx.is_rerun() && exists(tx, &line.id)? {
        return Ok(());
    }
    let Line { id, at, actor, command, detail, before, after, account } = line;
    tx.execute(INSERT, params![id, *at, actor, *command, detail, before, after, *account]).map(drop)
}

/// Lines of the log, newest first.
pub fn list(tx: &mut Tx, wanted: &Wanted) -> Result<Vec<Deed>> {
    let from = wanted.from.map_or(i64::MIN, Time::micros);
    let to = wanted.to.map_or(i64::MAX, Time::micros);
    tx.all(LIST, params![from, to, &wanted.actor, &wanted.command, wanted.limit])
}

/// What members of a partner's team did, newest first: what comes before the deed of this time and id.
pub fn of_account(
    tx: &mut Tx,
    account: AccountNo,
    (at, id): &(Time, String),
    limit: i64,
) -> Result<Vec<Deed>> {
    tx.all(OF_ACCOUNT, params![account, *at, id, limit])
}

/// What members of a partner's team did since then, of what begins like this, the first first. Only the latest deeds are
/// looked through.
pub fn about(
    tx: &mut Tx,
    account: AccountNo,
    since: Time,
    begins: &str,
    looked_at: i64,
) -> Result<Vec<Deed>> {
    tx.all(ABOUT, params![account, since, begins, looked_at])
}

/// When members of a partner's team did a thing after that time, with a line that begins like this; the latest first.
pub fn lately(
    tx: &mut Tx,
    account: AccountNo,
    after: Time,
    command: &str,
    begins: &str,
    most: i64,
) -> Result<Vec<Time>> {
    tx.all(LATELY, params![account, after, command, begins, most])
}

/// When a command was last done since then, with a line that begins like this.
pub fn latest(tx: &mut Tx, since: Time, command: &str, begins: &str) -> Result<Option<Time>> {
    tx.opt(LATEST, params![since, command, begins])
}
