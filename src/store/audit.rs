//! The audit log: what operators did to money and doors, and when. Nothing deletes from it.

use super::engine::{Tx, params, queries};
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    EXISTS = "SELECT 1 FROM audit WHERE id = ?1";
    INSERT = "INSERT INTO audit (id, at, actor, command, detail) VALUES (?1, ?2, ?3, ?4, ?5)";
}

/// What an operator did. The id is made by the caller, so that a re-run writes it once.
#[derive(Clone)]
pub struct Line {
    pub id: String,
    pub at: Time,
    pub actor: String,
    pub command: &'static str,
    pub detail: String,
}

/// A re-run that finds its own line has nothing left to do.
pub fn exists(tx: &mut Tx, id: &str) -> Result<bool> {
    tx.any(EXISTS, params![id])
}

pub fn record(tx: &mut Tx, line: &Line) -> Result<()> {
    if tx.is_rerun() && exists(tx, &line.id)? {
        return Ok(());
    }
    tx.execute(INSERT, params![&line.id, line.at, &line.actor, line.command, &line.detail]).map(drop)
}
