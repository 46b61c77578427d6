//! Orders that somebody placed at once, and the turn of the instance that buys them. Every change of a line's state is in
//! `advance`.

use super::engine::{Stored, Tx, columns, insert_into, lists, params, queries, text, values};
use crate::domain::batch::{Answer, Batch, Line, LineState, Listed, Standing};
use crate::domain::ids::{AccountNo, BatchId};
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    INSERT = insert_into!("order_batches", New);
    INSERT_LINE = insert_into!("order_batch_lines", NewLine);
    INSERT_LINES (Postgres) = text!("INSERT INTO order_batch_lines (", NewLine::NAMES, ") SELECT * FROM unnest(", lists!(NewLine), ") RETURNING n");
    BY_ONCE = "SELECT id FROM order_batches WHERE account = ?1 AND once = ?2";
    BY_ID = text!("SELECT ", Batch::COLUMNS, " FROM order_batches b WHERE b.id = ?1 AND b.account = ?2");
    LATEST = text!("SELECT ", Batch::COLUMNS, " FROM order_batches b WHERE b.account = ?1 ORDER BY b.made_at DESC, b.id DESC LIMIT ?2");
    LISTED = text!("SELECT ", Listed::COLUMNS, " FROM order_batch_lines l LEFT JOIN orders o ON o.id = l.order_id
              WHERE l.batch = ?1 ORDER BY l.n");
    WAITING = text!("SELECT ", Line::COLUMNS, " FROM order_batch_lines l WHERE l.batch = ?1 AND l.state = 'WAITING' ORDER BY l.n");
    /// A turn that would last longer than a new one was taken by a wrong clock, and is void.
    LEFT = "SELECT id, account FROM order_batches WHERE held_until IS NOT NULL AND (held_until < ?1 OR held_until > ?2)
            ORDER BY held_until LIMIT ?3";
    TAKE = "UPDATE order_batches SET holder = ?2, held_until = ?4 WHERE id = ?1 AND held_until IS NOT NULL
            AND (holder = ?2 OR held_until < ?3 OR held_until > ?5)";
    HELD_BY = text!("SELECT ", Batch::COLUMNS, " FROM order_batches b WHERE b.id = ?1 AND b.holder = ?2 AND b.held_until IS NOT NULL");
    KEEP = "UPDATE order_batches SET held_until = ?3 WHERE id = ?1 AND holder = ?2 AND held_until IS NOT NULL";
    STATE = "SELECT state FROM order_batch_lines WHERE batch = ?1 AND n = ?2";
    MOVE = "UPDATE order_batch_lines SET state = ?4, order_id = ?5, charged = ?6, why = ?7 WHERE batch = ?1 AND n = ?2 AND state = ?3";
    /// With its last answer it leaves the index of those that are worked on.
    COUNT = "UPDATE order_batches SET done = done + ?2, refused = refused + ?3,
             held_until = CASE WHEN done + ?2 + refused + ?3 = lines THEN NULL ELSE held_until END WHERE id = ?1";
    OLD = "SELECT id FROM order_batches WHERE made_at < ?1 ORDER BY made_at LIMIT ?2";
    FORGET_LINES = "DELETE FROM order_batch_lines WHERE batch = ?1";
    FORGET = "DELETE FROM order_batches WHERE id = ?1";
}

columns! {
    Batch in "b" { id, account, made_by, made_at, price_list, key_id, total, lines, done, refused }
}

columns! {
    Line in "l" { n, package_code, reference, customer_email, unmailed, max_price, state, order = "l.order_id", charged, why }
}

columns! {
    Standing in "o" { status, price, refunded }
}

columns! {
    Listed { line: Line = Line::COLUMNS, order: Option<Standing> = Standing::COLUMNS }
}

values! {
    New(batch: Batch, once: &'a str, turn: &'a Turn) {
        id, account, made_by, once = once, made_at, price_list, key_id, total, lines,
        holder = &turn.holder, held_until = turn.until,
    }
}

values! {
    NewLine(line: Line, id: &'a BatchId) {
        batch: TEXT = id, n: BIGINT, package_code: TEXT, reference: TEXT, customer_email: TEXT, unmailed: BIGINT,
        max_price: BIGINT, state: TEXT = line.state,
    }
}

/// Who buys the lines of a batch, until when.
#[derive(Clone, Debug)]
pub struct Turn {
    pub holder: String,
    pub until: Time,
}

pub fn create(tx: &mut Tx, batch: &Batch, once: &str, turn: &Turn, lines: &[Line]) -> Result<()> {
    tx.execute(INSERT, &New::params(batch, once, turn))?;
    if tx.is_postgres() {
        let rows: Vec<_> = lines.iter().map(|line| NewLine::params(line, &batch.id)).collect();
        return tx.for_each::<i64>(INSERT_LINES, &rows).map(drop);
    }
    lines.iter().try_for_each(|line| tx.execute(INSERT_LINE, &NewLine::params(line, &batch.id)).map(drop))
}

/// What the form of this name has made.
pub fn by_once(tx: &mut Tx, account: AccountNo, once: &str) -> Result<Option<BatchId>> {
    tx.opt(BY_ONCE, params![account, once])
}

pub fn by_id(tx: &mut Tx, account: AccountNo, id: &BatchId) -> Result<Option<Batch>> {
    tx.opt(BY_ID, params![id, account])
}

/// The newest batches of an account.
pub fn latest(tx: &mut Tx, account: AccountNo, most: i64) -> Result<Vec<Batch>> {
    tx.all(LATEST, params![account, most])
}

/// The lines of a batch with their orders, in their order.
pub fn listed(tx: &mut Tx, id: &BatchId) -> Result<Vec<Listed>> {
    tx.all(LISTED, params![id])
}

/// Batches that have lines without an answer, and nobody who asks for one. A turn that begins now ends by `longest`.
pub fn left(tx: &mut Tx, now: Time, longest: Time, most: i64) -> Result<Vec<(BatchId, AccountNo)>> {
    tx.all(LEFT, params![now, longest.and_a_little(), most])
}

/// Takes the turn, if nobody has it now.
pub fn take(tx: &mut Tx, id: &BatchId, turn: &Turn, now: Time) -> Result<bool> {
    let longest = turn.until.and_a_little();
    Ok(tx.execute(TAKE, params![id, &turn.holder, now, turn.until, longest])? == 1)
}

/// A batch and its lines without an answer, for whoever has its turn.
pub fn held_by(tx: &mut Tx, id: &BatchId, holder: &str) -> Result<Option<(Batch, Vec<Line>)>> {
    match tx.opt(HELD_BY, params![id, holder])? {
        Some(batch) => Ok(Some((batch, tx.all(WAITING, params![id])?))),
        None => Ok(None),
    }
}

/// Sets the end of a turn. False when another has it, or nothing is left to do.
pub fn keep(tx: &mut Tx, id: &BatchId, turn: &Turn) -> Result<bool> {
    Ok(tx.execute(KEEP, params![id, &turn.holder, turn.until])? == 1)
}

/// Writes down what became of a line, and keeps the turn. An order that exists counts, whoever brings it; a refusal only
/// from whoever has the turn, because another may be buying the same line. False when another has the turn.
pub fn advance(tx: &mut Tx, id: &BatchId, n: i64, answer: &Answer, turn: &Turn) -> Result<bool> {
    let ours = keep(tx, id, turn)?;
    if !ours && matches!(answer, Answer::Refused(_)) {
        return Ok(false);
    }
    let state: Option<LineState> = tx.opt(STATE, params![id, n])?;
    let Some((state, next)) = state.and_then(|state| Some((state, state.after(answer)?))) else {
        return Ok(ours);
    };
    let (order, charged, why) = match answer {
        Answer::Bought { order, charged } => (Some(order), Some(*charged), None),
        Answer::Refused(why) => (None, None, Some(why)),
    };
    if tx.execute(MOVE, params![id, n, state, next, order, charged, why])? == 1 {
        let counted = |counts: LineState| i64::from(next == counts) - i64::from(state == counts);
        tx.execute(COUNT, params![id, counted(LineState::Done), counted(LineState::Refused)])?;
    }
    Ok(ours)
}

/// Forgets batches that were made before this time, a limited number at once. Answers how many.
pub fn forget(tx: &mut Tx, before: Time, most: i64) -> Result<u64> {
    let old: Vec<BatchId> = tx.all(OLD, params![before, most])?;
    for id in &old {
        tx.execute(FORGET_LINES, params![id])?;
        tx.execute(FORGET, params![id])?;
    }
    Ok(old.len() as u64)
}
