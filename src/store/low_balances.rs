//! Which partners' balances fell below their thresholds. A purchase writes nothing here: a job compares, and remembers
//! for each partner how it stood (`was_low`) and up to which line of the statement it has looked.

use super::engine::{Stored, Tx, columns, params, queries, text};
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::time::Time;
use crate::error::Result;

macro_rules! from_partners {
    ($tail:literal) => {
        concat!(
            " FROM low_balances b JOIN accounts a ON a.no = b.account JOIN wallets w ON w.account = b.account ",
            $tail
        )
    };
}

queries! {
    ENLIST = "INSERT INTO low_balances (account, was_low, looked_line) VALUES (?1, 1, 0) ON CONFLICT (account) DO NOTHING";
    LEFT_OUT = "SELECT a.no FROM accounts a WHERE a.no > ?1 AND a.kind = 'PARTNER'
             AND NOT EXISTS (SELECT 1 FROM low_balances b WHERE b.account = a.no) ORDER BY a.no";
    /// Those whose state is not what is remembered, and those that are low and have moved since.
    MOVED = text!("SELECT b.account", from_partners!("
             WHERE (w.balance < a.low_balance AND (b.was_low = 0 OR w.lines > b.looked_line))
                OR (w.balance >= a.low_balance AND b.was_low = 1) ORDER BY b.account"));
    STANDING = text!("SELECT ", Standing::COLUMNS, from_partners!("WHERE b.account = ?1"));
    WAS_ABOVE = "SELECT 1 FROM postings WHERE wallet IS NOT NULL AND wallet = ?1 AND line > ?2 AND line <= ?3 AND balance >= ?4 LIMIT 1";
    REMEMBER = "UPDATE low_balances SET was_low = ?4, looked_line = ?5, events = events + ?6
             WHERE account = ?1 AND was_low = ?2 AND looked_line = ?3 RETURNING events";
    /// A time that is ahead was written by a wrong clock.
    MAIL = "UPDATE low_balances SET mailed_at = ?2 WHERE account = ?1 AND (mailed_at IS NULL OR mailed_at <= ?3 OR mailed_at > ?2)";
    BEGIN = "UPDATE low_balances SET looked_line = (SELECT w.lines FROM wallets w WHERE w.account = ?1),
             was_low = (SELECT CASE WHEN w.balance < a.low_balance THEN 1 ELSE 0 END
                        FROM wallets w JOIN accounts a ON a.no = w.account WHERE w.account = ?1) WHERE account = ?1";
}

/// How a partner's balance stands to its threshold.
pub struct Standing {
    pub name: String,
    pub email: Option<String>,
    pub threshold: Usd,
    pub balance: Usd,
    lines: i64,
    was_low: bool,
    looked_line: i64,
}

columns! {
    Standing in "a" {
        name, email = "COALESCE(a.warned, a.email)", threshold = "a.low_balance", balance = "w.balance", lines = "w.lines", was_low = "b.was_low",
        looked_line = "b.looked_line",
    }
}

/// Enters a partner, unless it is entered. It counts as low, so that its first credit is no crossing.
pub fn enlist(tx: &mut Tx, account: AccountNo) -> Result<()> {
    tx.execute(ENLIST, params![account]).map(drop)
}

/// Partners after this account that are not entered: older programs make them so.
pub fn left_out(tx: &mut Tx, after: AccountNo) -> Result<Vec<AccountNo>> {
    tx.all(LEFT_OUT, params![after])
}

pub fn moved(tx: &mut Tx) -> Result<Vec<AccountNo>> {
    tx.all(MOVED, &[])
}

/// Looks at a partner and remembers how it stands. Answers when the balance has crossed its threshold downwards since the
/// last look, to one of several that look at the same time, and counts it as the event that tells of it.
pub fn crossed(tx: &mut Tx, account: AccountNo) -> Result<Option<(Standing, i64)>> {
    let Some(now) = tx.opt::<Standing>(STANDING, params![account])? else { return Ok(None) };
    let is_low = now.balance < now.threshold;
    let crossed = is_low && (!now.was_low || was_above(tx, account, &now)?);
    if (is_low, now.lines) == (now.was_low, now.looked_line) {
        return Ok(None);
    }
    let told = i64::from(crossed);
    let seen = params![account, now.was_low, now.looked_line, is_low, now.lines, told];
    let events: Option<i64> = tx.write_opt(REMEMBER, seen)?;
    Ok(events.filter(|_| crossed).map(|sequence| (now, sequence)))
}

/// Whether the balance was up again between two looks that both found it low.
fn was_above(tx: &mut Tx, account: AccountNo, now: &Standing) -> Result<bool> {
    tx.any(WAS_ABOVE, params![account, now.looked_line, now.lines, now.threshold])
}

/// Notes that the partner is mailed now, unless it was after `since`. Answers whether to do so.
pub fn mail(tx: &mut Tx, account: AccountNo, now: Time, since: Time) -> Result<bool> {
    Ok(tx.execute(MAIL, params![account, now, since])? == 1)
}

/// Begins anew with the balance as it is: a threshold that moves is no crossing.
pub fn begin(tx: &mut Tx, account: AccountNo) -> Result<()> {
    enlist(tx, account)?;
    tx.execute(BEGIN, params![account]).map(drop)
}
