//! The wallet row: the only balance that is stored rather than summed. One conditional statement moves it, so nothing
//! can happen between check and change, and each move takes the next line number of the wallet's statement, which
//! `statement.rs` reads.

use super::engine::{Param, Stored, Tx, columns, params, queries, text};
use crate::domain::ids::AccountNo;
use crate::domain::money::Usd;
use crate::domain::refusal::Refusal;
use crate::domain::words::words;
use crate::error::{Error, Result};

queries! {
    CREATE = "INSERT INTO wallets (account, balance, lines, placed, numbers, opened, failed, suspended) VALUES (?1, 0, 0, 0, 0, 0, 0, 0)";
    READ = text!("SELECT ", Wallet::COLUMNS, " FROM wallets WHERE account = ?1");
    LINES = "SELECT lines FROM wallets WHERE account = ?1";
    /// SQLite needs no lock: a write transaction has the database to itself.
    LOCK (Postgres) = "SELECT balance FROM wallets WHERE account = ?1 FOR UPDATE";
    LOCK_ALL (Postgres) = "SELECT account FROM wallets WHERE account = ANY (CAST(?1 AS BIGINT[])) ORDER BY account FOR UPDATE";
    MOVE = text!("UPDATE wallets SET balance = balance + ?2, lines = lines + 1
            WHERE account = ?1 AND balance + ?2 >= 0 RETURNING ", Line::COLUMNS);
    DEBIT_FOR_ORDER = text!("UPDATE wallets SET balance = balance - ?2, lines = lines + 1, placed = placed + ?3, numbers = numbers + ?3
                       WHERE account = ?1 AND balance >= ?2 RETURNING ", Line::COLUMNS, ", numbers");
    NUMBER = "UPDATE wallets SET numbers = numbers + 1 WHERE account = ?1 RETURNING numbers";
    CHECKOUT_NUMBER = "UPDATE wallets SET opened = opened + 1 WHERE account = ?1 RETURNING opened";
    DRAWN = text!("SELECT ", Drawn::COLUMNS, " FROM wallets WHERE numbers >= ?1 OR opened >= ?1 ORDER BY account LIMIT 100");
    COUNT_ORDER = "UPDATE wallets SET placed = placed + 1 WHERE account = ?1";
    COUNT_FAILED = "UPDATE wallets SET failed = failed + 1 WHERE account = ?1";
    SUSPENSION = "SELECT suspended, suspended_for FROM wallets WHERE account = ?1";
    SUSPEND = "UPDATE wallets SET suspended = ?2, suspended_for = ?3 WHERE account = ?1";
    HELD = "SELECT CAST(COALESCE(SUM(price), 0) AS BIGINT) FROM orders
            WHERE account = ?1 AND status IN ('PROVISIONING', 'CANCELLING') AND status = 'PROVISIONING'";
}

pub struct Wallet {
    pub balance: Usd,
    pub placed: i64,
    pub failed: i64,
    pub suspended: bool,
}

columns! { Wallet { balance, placed, failed, suspended } }

words! {
    /// Why an account may not buy.
    pub enum Suspension {
        Operator = "OPERATOR",
        /// It owes us for a payment that vanished from its chain.
        Receivable = "RECEIVABLE",
    }
}

/// The place a movement takes on the wallet's statement.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub no: i64,
    pub balance: Usd,
}

columns! { Line { no = "lines", balance } }

pub fn create(tx: &mut Tx, account: AccountNo) -> Result<()> {
    tx.execute(CREATE, params![account]).map(drop)
}

pub fn read(tx: &mut Tx, account: AccountNo) -> Result<Wallet> {
    tx.one(READ, params![account])
}

/// Locks a wallet: needed before any decision about an account that takes more than one statement.
pub fn lock(tx: &mut Tx, account: AccountNo) -> Result<()> {
    if tx.is_postgres() {
        tx.one::<()>(LOCK, params![account])?;
    }
    Ok(())
}

/// Locks several wallets, in the common order. PostgreSQL only.
pub fn lock_all(tx: &mut Tx, accounts: &[AccountNo]) -> Result<()> {
    let rows: Vec<[Param; 1]> = accounts.iter().map(|account| [Param::from(*account)]).collect();
    tx.for_each::<()>(LOCK_ALL, &rows).map(drop)
}

/// Adds `change`, which may be negative. Refuses to go below zero.
pub fn change(tx: &mut Tx, account: AccountNo, change: Usd) -> Result<Line> {
    match tx.write_opt(MOVE, params![account, change])? {
        Some(line) => Ok(line),
        None => {
            let balance = read(tx, account)?.balance;
            Err(Refusal::InsufficientBalance { balance, required: change.negated() }.into())
        }
    }
}

/// Pays for an order or top-up; `None` when the balance does not suffice. A numbered order gets its number.
pub fn debit_for_order(
    tx: &mut Tx,
    account: AccountNo,
    price: Usd,
    numbered: bool,
) -> Result<Option<(Line, i64)>> {
    tx.write_opt(DEBIT_FOR_ORDER, params![account, price, numbered])
}

/// Takes the next place among the account's orders.
pub fn take_number(tx: &mut Tx, account: AccountNo) -> Result<i64> {
    let number = tx.write_opt(NUMBER, params![account])?;
    number.ok_or_else(|| Error::fault("an account without a wallet"))
}

/// Takes the account's next number for a checkout.
pub fn take_checkout_number(tx: &mut Tx, account: AccountNo) -> Result<i64> {
    let number = tx.write_opt(CHECKOUT_NUMBER, params![account])?;
    number.ok_or_else(|| Error::fault("an account without a wallet"))
}

/// How many numbers an account has drawn.
pub struct Drawn {
    pub account: AccountNo,
    pub orders: i64,
    pub checkouts: i64,
}

columns! { Drawn { account, orders = "numbers", checkouts = "opened" } }

/// Accounts that have drawn at least this many of either kind.
pub fn drawn(tx: &mut Tx, least: i64) -> Result<Vec<Drawn>> {
    tx.all(DRAWN, params![least])
}

/// Counts an order that was not paid from the wallet.
pub fn count_order(tx: &mut Tx, account: AccountNo) -> Result<()> {
    match tx.execute(COUNT_ORDER, params![account])? {
        1 => Ok(()),
        _ => Err(Error::fault("an account without a wallet")),
    }
}

/// Counts a failed order of the account.
pub fn count_failed(tx: &mut Tx, account: AccountNo) -> Result<()> {
    match tx.execute(COUNT_FAILED, params![account])? {
        1 => Ok(()),
        _ => Err(Error::fault("an account without a wallet")),
    }
}

/// Why the account may not buy; `None` when it may.
pub fn suspension(tx: &mut Tx, account: AccountNo) -> Result<Option<Suspension>> {
    Ok(match tx.one::<(bool, Option<String>)>(SUSPENSION, params![account])? {
        (false, _) => None,
        (true, Some(cause)) if cause == Suspension::Receivable.as_str() => Some(Suspension::Receivable),
        // Old rows have no cause: then only the operator can end the suspension.
        (true, _) => Some(Suspension::Operator),
    })
}

/// Suspends the account for this cause; `None` lets it buy again.
pub fn suspend(tx: &mut Tx, account: AccountNo, cause: Option<Suspension>) -> Result<()> {
    match tx.execute(SUSPEND, params![account, cause.is_some(), cause.map(Suspension::as_str)])? {
        1 => Ok(()),
        _ => Err(Error::fault("an account without a wallet")),
    }
}

/// Money charged to this account and not yet delivered or given back.
pub fn held(tx: &mut Tx, account: AccountNo) -> Result<Usd> {
    tx.one(HELD, params![account])
}

/// How many lines a wallet's statement has. They are numbered from 1 without a gap.
pub fn lines(tx: &mut Tx, account: AccountNo) -> Result<i64> {
    tx.one(LINES, params![account])
}
