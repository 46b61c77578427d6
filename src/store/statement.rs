//! A wallet's statement. Its lines are numbered from 1 without a gap, so what is known by its time is found by halving,
//! and a month far back costs no more than the last one. Every so many lines of a partner's have sums of all lines up to
//! there, so to sum up a million lines takes reading a few hundred.

use std::ops::Range;

use super::engine::{Stored, Tx, columns, params, queries, text};
use super::{transfers, wallet};
use crate::domain::ids::{AccountNo, InvoiceId};
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::domain::transfer::TransferId;
use crate::error::{Error, Result};

/// A line's time is read before the line takes its number, and by the clock of whoever wrote it: a line may say a time that
/// is earlier than that of a line before it, but by less than this.
const MARGIN_MS: i64 = 3_600_000;
/// From how many lines to how many there are sums.
const STEP: i64 = 200;
/// How many sums one write makes: others wait for it a few milliseconds.
const AT_ONCE: usize = 5;

queries! {
    LINES = text!("SELECT ", StatementLine::COLUMNS, ", p.transfer
                 FROM postings p JOIN entries e ON e.id = p.entry
                 WHERE p.wallet = ?1 AND p.line >= ?2 AND p.line < ?3 AND e.at >= ?4 AND e.at < ?5
                 ORDER BY p.line DESC LIMIT ?6");
    AT = "SELECT e.at FROM postings p JOIN entries e ON e.id = p.entry WHERE p.wallet = ?1 AND p.line = ?2";
    FIRST_SINCE = "SELECT p.line FROM postings p JOIN entries e ON e.id = p.entry
                   WHERE p.wallet = ?1 AND p.line >= ?2 AND e.at >= ?3 ORDER BY p.line LIMIT 1";
    BALANCE = "SELECT balance FROM postings WHERE wallet = ?1 AND line = ?2";
    /// Two sums, and the lines before the first and after the second.
    SUMS = text!("SELECT ", KindSum::COLUMNS, " FROM (
                     SELECT kind, lines, amount FROM statement_sums WHERE account = ?1 AND line = ?4
                     UNION ALL SELECT kind, -lines, -amount FROM statement_sums WHERE account = ?1 AND line = ?3
                     UNION ALL SELECT e.kind, 1, -p.amount FROM postings p JOIN entries e ON e.id = p.entry
                         WHERE p.wallet = ?1 AND p.line > ?2 AND p.line <= ?3
                     UNION ALL SELECT e.kind, 1, -p.amount FROM postings p JOIN entries e ON e.id = p.entry
                         WHERE p.wallet = ?1 AND p.line > ?4 AND p.line <= ?5
                 ) s GROUP BY s.kind HAVING SUM(s.lines) > 0 ORDER BY s.kind");
    SUM_FROM = "SELECT line FROM statement_sums WHERE account = ?1 AND line >= ?2 ORDER BY line LIMIT 1";
    SUM_UP_TO = "SELECT line FROM statement_sums WHERE account = ?1 AND line <= ?2 ORDER BY line DESC LIMIT 1";
    BEHIND = "SELECT w.account FROM summed_lines d JOIN wallets w ON w.account = d.account WHERE w.lines >= ?1
              AND w.lines - COALESCE((SELECT MAX(s.line) FROM statement_sums s WHERE s.account = w.account), 0) >= ?1 ORDER BY w.account";
    /// The sum before, and the lines since. In one order, so that of two that write the same neither waits for the other in a ring.
    ADD = "INSERT INTO statement_sums (account, line, kind, lines, amount)
           SELECT CAST(?1 AS BIGINT), CAST(?3 AS BIGINT), s.kind, CAST(SUM(s.lines) AS BIGINT), CAST(SUM(s.amount) AS BIGINT) FROM (
               SELECT kind, lines, amount FROM statement_sums WHERE account = ?1 AND line = ?2
               UNION ALL SELECT e.kind, 1, -p.amount FROM postings p JOIN entries e ON e.id = p.entry
                   WHERE p.wallet IS NOT NULL AND p.wallet = ?1 AND p.line > ?2 AND p.line <= ?3
           ) s GROUP BY s.kind ORDER BY s.kind ON CONFLICT (account, line, kind) DO NOTHING";
}

pub struct StatementLine {
    pub line: i64,
    pub kind: String,
    pub change: Usd,
    pub balance: Usd,
    pub order: Option<String>,
    /// The id of the entry, which carries an operator's own reference.
    pub entry: String,
    /// What the transfer of this line paid for.
    pub invoice: Option<InvoiceId>,
    pub at: Time,
    pub note: Option<String>,
}

columns! {
    StatementLine in "p" { line, kind = "e.kind", amount: Usd, balance, order = "p.order_id", entry = "p.entry", at = "e.at", note = "e.note" }
        => StatementLine { change: amount.negated(), invoice: None, line, kind, balance, order, entry, at, note }
}

/// What the lines of one type come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindSum {
    pub kind: String,
    pub count: i64,
    /// Positive when money came in.
    pub sum: Usd,
}

columns! { KindSum { kind = "s.kind", count = "CAST(SUM(s.lines) AS BIGINT)", sum = "CAST(SUM(s.amount) AS BIGINT)" } }

/// Which lines are read.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// By number.
    pub lines: Range<i64>,
    pub from: Option<Time>,
    pub to: Option<Time>,
}

/// Lines of a wallet's statement, newest first.
pub fn lines(tx: &mut Tx, account: AccountNo, wanted: &Wanted, limit: i64) -> Result<Vec<StatementLine>> {
    let from = wanted.from.map_or(i64::MIN, Time::micros);
    let to = wanted.to.map_or(i64::MAX, Time::micros);
    let values = params![account, wanted.lines.start, wanted.lines.end, from, to, limit];
    let found: Vec<(StatementLine, Option<String>)> = tx.all(LINES, values)?;
    // Few lines are deposits, so one look-up for each of them is cheaper than a join for every line.
    let mut lines = Vec::with_capacity(found.len());
    for (mut line, transfer) in found {
        if let Some(id) = transfer {
            let id =
                TransferId::parse(&id).ok_or_else(|| Error::fault("a posting with a bad transfer id"))?;
            line.invoice = transfers::by_id(tx, &id)?.and_then(|transfer| transfer.invoice);
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Numbers of lines between which all lines of this time are, with some others at both ends.
pub fn around(
    tx: &mut Tx,
    account: AccountNo,
    from: Option<Time>,
    to: Option<Time>,
    now: Time,
) -> Result<Range<i64>> {
    // No line comes after what is still to come.
    let to = to.filter(|to| *to < now.plus_millis(MARGIN_MS));
    if from.is_none() && to.is_none() {
        return Ok(1..i64::MAX);
    }
    let last = wallet::lines(tx, account)?;
    let start = match from {
        Some(from) => turn(last, from.plus_millis(-MARGIN_MS), time_in(tx, account))?,
        None => 1,
    };
    let end = match to {
        Some(to) => turn(last, to.plus_millis(MARGIN_MS), time_in(tx, account))?,
        None => i64::MAX,
    };
    Ok(start..end)
}

/// The first line that says this time or a later one; the number of the next line to be written when there is none. It is
/// the same at any later time, once there is one.
pub fn first_since(tx: &mut Tx, account: AccountNo, time: Time, now: Time) -> Result<i64> {
    let (last, early) = (wallet::lines(tx, account)?, time.plus_millis(-MARGIN_MS));
    // What is still to come is after the last line.
    let is_ahead = now < time && last > 0 && tx.one::<Time>(AT, params![account, last])? < early;
    let start = if is_ahead { last + 1 } else { turn(last, early, time_in(tx, account))? };
    Ok(tx.opt(FIRST_SINCE, params![account, start, time])?.unwrap_or(last + 1))
}

/// The balance after a line; before the first one it is nothing.
pub fn balance_after(tx: &mut Tx, account: AccountNo, line: i64) -> Result<Usd> {
    if line < 1 { Ok(Usd::ZERO) } else { tx.one(BALANCE, params![account, line]) }
}

/// The sums of these lines by type.
pub fn sums(tx: &mut Tx, account: AccountNo, lines: &Range<i64>) -> Result<Vec<KindSum>> {
    let (before, last) = (lines.start - 1, lines.end - 1);
    let from: Option<i64> = tx.opt(SUM_FROM, params![account, before])?;
    let up_to: Option<i64> = tx.opt(SUM_UP_TO, params![account, last])?;
    let (from, up_to) = match (from, up_to) {
        (Some(from), Some(up_to)) if from < up_to => (from, up_to),
        // All of them are added up line by line.
        _ => (before, before),
    };
    tx.all(SUMS, params![account, before, from, up_to, last])
}

/// Partners with lines that should have a sum and have none.
pub fn behind(tx: &mut Tx) -> Result<Vec<AccountNo>> {
    tx.all(BEHIND, params![STEP])
}

/// Makes the next sums of a statement, of which some may be missing. Lines never change, so of several that do it at once each
/// makes the same. Answers whether more are missing.
pub fn sum_up(tx: &mut Tx, account: AccountNo) -> Result<bool> {
    let last = wallet::lines(tx, account)?;
    let mut summed = tx.opt(SUM_UP_TO, params![account, last])?.unwrap_or(0);
    for _ in 0..AT_ONCE {
        let next = summed + STEP;
        if next > last {
            return Ok(false);
        }
        tx.execute(ADD, params![account, summed, next])?;
        summed = next;
    }
    Ok(summed + STEP <= last)
}

fn time_in(tx: &mut Tx, account: AccountNo) -> impl FnMut(i64) -> Result<Time> {
    move |line| tx.one(AT, params![account, line])
}

/// A line that says this time or a later one, while the line before it says an earlier one; `last + 1` when the last line
/// does. Found in steps that halve, so every line far before it is earlier and every line far after it is not.
fn turn(last: i64, time: Time, mut time_of: impl FnMut(i64) -> Result<Time>) -> Result<i64> {
    let (mut before, mut after) = (0, last + 1);
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        if time_of(middle)? < time { before = middle } else { after = middle }
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten minutes between lines, and each may say a time that is up to 59 minutes too early.
    fn statement(count: i64) -> Vec<Time> {
        let late = |line: i64| (line * 7_919 + line * line * 31) % 60;
        (1..=count).map(|line| Time::from_micros((line * 10 - late(line)) * 60_000_000)).collect()
    }

    #[test]
    fn no_line_of_a_time_is_left_out_although_times_are_not_in_order() {
        let times = statement(400);
        assert!(times.windows(2).any(|pair| pair[0] > pair[1]), "the times are in order");
        let time_of = |line: i64| Ok(times[(line - 1) as usize]);
        let last = times.len() as i64;
        for minute in (-100..4_200).step_by(7) {
            let time = Time::from_micros(minute * 60_000_000);
            let start = turn(last, time.plus_millis(-MARGIN_MS), time_of).unwrap();
            let end = turn(last, time.plus_millis(MARGIN_MS), time_of).unwrap();
            let numbered = || (1..).zip(&times);
            assert!(numbered().all(|(line, at)| *at < time || line >= start), "from {minute}");
            assert!(numbered().all(|(line, at)| *at >= time || line < end), "to {minute}");
            assert!(end - start < 30, "{start} to {end} are too many");
        }
    }

    #[test]
    fn an_empty_statement_has_no_line_of_any_time() {
        assert_eq!(turn(0, Time::from_micros(0), |_| Err(Error::fault("nothing is there"))).unwrap(), 1);
    }

    #[test]
    fn a_long_statement_takes_few_looks() {
        let mut looks = 0;
        let found = turn(5_000_000, Time::from_micros(3_999_999), |line| {
            looks += 1;
            Ok(Time::from_micros(line))
        });
        assert_eq!((found.unwrap(), looks < 25), (3_999_999, true));
    }
}
