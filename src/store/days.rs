//! What happened on each day of a partner, summed from its statement. A purchase writes nothing here: lines of a
//! statement are numbered without a gap, and a job adds them to their days, each once.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::error::Result;

queries! {
    ENLIST = "INSERT INTO summed_lines (account, line) VALUES (?1, 0) ON CONFLICT (account) DO NOTHING";
    LEFT_OUT = "SELECT a.no FROM accounts a WHERE a.no > ?1 AND a.kind = 'PARTNER'
             AND NOT EXISTS (SELECT 1 FROM summed_lines d WHERE d.account = a.no) ORDER BY a.no";
    BEHIND = "SELECT d.account FROM summed_lines d JOIN wallets w ON w.account = d.account WHERE w.lines > d.line ORDER BY d.account";
    STANDING = text!("SELECT ", Standing::COLUMNS, " FROM summed_lines d JOIN wallets w ON w.account = d.account WHERE d.account = ?1");
    TAKE = "UPDATE summed_lines SET line = ?3 WHERE account = ?1 AND line = ?2";
    ADD = "INSERT INTO partner_days (account, day, orders, topups, failed, cancelled, spent, given_back, other)
        SELECT p.wallet, e.at / 86400000000,
            CAST(SUM(CASE WHEN e.kind = 'ORDER' THEN 1 ELSE 0 END) AS BIGINT),
            CAST(SUM(CASE WHEN e.kind = 'TOPUP' THEN 1 ELSE 0 END) AS BIGINT),
            CAST(SUM(CASE WHEN e.kind = 'FAILED' THEN 1 ELSE 0 END) AS BIGINT),
            CAST(SUM(CASE WHEN e.kind = 'CANCELLED' THEN 1 ELSE 0 END) AS BIGINT),
            CAST(SUM(CASE WHEN e.kind IN ('ORDER', 'TOPUP') THEN p.amount ELSE 0 END) AS BIGINT),
            CAST(SUM(CASE WHEN e.kind IN ('FAILED', 'CANCELLED', 'REFUND') THEN -p.amount ELSE 0 END) AS BIGINT),
            CAST(SUM(CASE WHEN e.kind IN ('ORDER', 'TOPUP', 'FAILED', 'CANCELLED', 'REFUND') THEN 0 ELSE -p.amount END) AS BIGINT)
        FROM postings p JOIN entries e ON e.id = p.entry
        WHERE p.wallet IS NOT NULL AND p.wallet = ?1 AND p.line > ?2 AND p.line <= ?3
        GROUP BY p.wallet, e.at / 86400000000
        ON CONFLICT (account, day) DO UPDATE SET orders = partner_days.orders + excluded.orders,
            topups = partner_days.topups + excluded.topups, failed = partner_days.failed + excluded.failed,
            cancelled = partner_days.cancelled + excluded.cancelled, spent = partner_days.spent + excluded.spent,
            given_back = partner_days.given_back + excluded.given_back, other = partner_days.other + excluded.other";
    OF = text!("SELECT ", Day::COLUMNS, " FROM partner_days WHERE account = ?1 AND day >= ?2 AND day <= ?3 ORDER BY day");
}

/// A day of a partner, UTC. A failure counts on the day of the failure, whenever the order was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    /// Counted from 1970, as by `Time::day`.
    pub day: i64,
    /// Placed and paid for.
    pub orders: i64,
    pub topups: i64,
    /// Orders and top-ups that came to nothing.
    pub failed: i64,
    pub cancelled: i64,
    /// What orders and top-ups took from the wallet.
    pub spent: Usd,
    /// What came back for them, by failures, cancels and refunds.
    pub given_back: Usd,
    /// By how much everything else moved the balance: deposits, credits and debits, payouts.
    pub other: Usd,
}

columns! { Day { day, orders, topups, failed, cancelled, spent, given_back, other } }

/// How far a partner's statement goes, and how far it is summed.
#[derive(Clone, Copy)]
pub struct Standing {
    pub lines: i64,
    pub summed: i64,
}

columns! { Standing { lines = "w.lines", summed = "d.line" } }

/// Enters a partner, unless it is entered.
pub fn enlist(tx: &mut Tx, account: AccountNo) -> Result<()> {
    tx.execute(ENLIST, params![account]).map(drop)
}

/// Partners after this account that are not entered: older programs make them so.
pub fn left_out(tx: &mut Tx, after: AccountNo) -> Result<Vec<AccountNo>> {
    tx.all(LEFT_OUT, params![after])
}

/// Partners with lines that are in no day yet.
pub fn behind(tx: &mut Tx) -> Result<Vec<AccountNo>> {
    tx.all(BEHIND, &[])
}

/// `None` for an account that is no partner's.
pub fn standing(tx: &mut Tx, account: AccountNo) -> Result<Option<Standing>> {
    tx.opt(STANDING, params![account])
}

/// Adds the next lines of a statement to their days, at most so many. Of several that do it at once, one adds and the
/// others do nothing. Answers whether lines are left.
pub fn sum_up(tx: &mut Tx, account: AccountNo, most: i64) -> Result<bool> {
    let Some(Standing { lines, summed }) = standing(tx, account)? else { return Ok(false) };
    let until = lines.min(summed.saturating_add(most));
    if until <= summed {
        return Ok(false);
    }
    // Whoever moves the mark owns the lines up to it; the other finds it moved when its turn on the row comes.
    if tx.execute(TAKE, params![account, summed, until])? == 0 {
        return Ok(until < lines);
    }
    tx.execute(ADD, params![account, summed, until])?;
    Ok(until < lines)
}

/// The days between these, both included, on which the wallet moved.
pub fn of(tx: &mut Tx, account: AccountNo, first: i64, last: i64) -> Result<Vec<Day>> {
    tx.all(OF, params![account, first, last])
}
