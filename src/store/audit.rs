//! The audit log: what operators did to money and access, and when. Nothing deletes from it.

use super::engine::{Tx, params, queries};
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    EXISTS = "SELECT 1 FROM audit WHERE id = ?1";
    INSERT = "INSERT INTO audit (id, at, actor, command, detail) VALUES (?1, ?2, ?3, ?4, ?5)";
}

/// An act of an operator. The caller makes the id, so that a re-run writes it once.
#[derive(Clone)]
pub struct Line {
    pub id: String,
    pub at: Time,
    pub actor: String,
    pub command: &'static str,
    pub detail: String,
}

/// Whether the line exists: a re-run that finds its own line has nothing left to do.
pub fn exists(tx: &mut Tx, id: &str) -> Result<bool> {
    tx.any(EXISTS, params![id])
}

pub fn record(tx: &mut Tx, line: &Line) -> Result<()> {
    if tx.is_rerun() && exists(tx, &line.id)? {
        return Ok(());
    }
    tx.execute(INSERT, params![&line.id, line.at, &line.actor, line.command, &line.detail]).map(drop)
}
