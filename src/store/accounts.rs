//! Accounts: who owns a wallet. The hot half is in `wallet.rs`.

use super::engine::{Stored, Tx, columns, insert_into, params, queries, text, values};
use super::{days, low_balances, meta, wallet};
use crate::domain::account::AccountKind;
use crate::domain::ids::{AccountId, AccountNo};
use crate::domain::money::Usd;
use crate::domain::number;
use crate::domain::refusal::Refusal;
use crate::domain::time::Time;
use crate::error::Result;
use crate::telemetry::EveryMinute;

/// Selects accounts with their wallets.
macro_rules! select_account {
    ($tail:literal) => {
        text!("SELECT ", Account::COLUMNS, " FROM accounts a JOIN wallets w ON w.account = a.no ", $tail)
    };
}

queries! {
    LAST_NO = "SELECT CAST(COALESCE(MAX(no), 0) AS BIGINT) FROM accounts";
    INSERT = insert_into!("accounts", New);
    FIND = select_account!("WHERE (a.id = ?1 OR a.email = ?1) AND a.kind <> 'GUEST' ORDER BY a.no LIMIT 1");
    NO_OF = "SELECT no FROM accounts WHERE id = ?1";
    BY_NO = select_account!("WHERE a.no = ?1");
    PARTNERS = select_account!("WHERE a.kind = 'PARTNER' ORDER BY a.no");
    ALL_ACCOUNTS = select_account!("WHERE a.kind <> 'GUEST' ORDER BY a.no");
    USERS = select_account!("WHERE a.kind = 'USER' ORDER BY a.no DESC LIMIT ?1");
    PRICE_LISTS = "SELECT DISTINCT price_list FROM accounts WHERE kind = 'PARTNER'";
    SET_NAME = "UPDATE accounts SET name = ?2 WHERE no = ?1";
    SET_WARNING = "UPDATE accounts SET low_balance = ?2, warned = ?3 WHERE no = ?1";
    UPDATE = "UPDATE accounts SET name = ?2, email = ?3, price_list = ?4, low_balance = ?5 WHERE no = ?1";
}

/// An account with its wallet.
#[derive(Clone, Debug)]
pub struct Account {
    pub no: AccountNo,
    pub kind: AccountKind,
    pub id: AccountId,
    pub name: String,
    pub email: Option<String>,
    pub price_list: String,
    pub low_balance: Usd,
    pub created_at: Time,
    pub balance: Usd,
    pub suspended: bool,
    pub placed: i64,
    pub failed: i64,
    /// Who is warned of a low balance, if it is not whom the company is written to.
    pub warned: Option<String>,
}

columns! {
    Account in "a" {
        no, kind, id, name, email, price_list, low_balance, created_at,
        balance = "w.balance", suspended = "w.suspended", placed = "w.placed", failed = "w.failed",
        warned,
    }
}

#[derive(Clone)]
pub struct NewAccount {
    pub kind: AccountKind,
    pub id: AccountId,
    pub name: String,
    pub email: Option<String>,
    pub price_list: String,
    pub low_balance: Usd,
    pub created_at: Time,
}

values! {
    New(new: NewAccount, no: AccountNo) { no = no, id, name, email, price_list, low_balance, created_at, kind }
}

/// The newest account's number.
pub fn last(tx: &mut Tx) -> Result<AccountNo> {
    tx.one(LAST_NO, &[])
}

/// Refuses to make another account when few are left: those beyond the end would have no order numbers.
pub fn require_room(tx: &mut Tx) -> Result<AccountNo> {
    let next = AccountNo(last(tx)?.0 + 1);
    if number::is_last_account(next) {
        static LINES: EveryMinute = EveryMinute::new();
        if let Some(left_out) = LINES.turn() {
            tracing::error!(
                last = next.0 - 1,
                left_out,
                "there is no room for new accounts; see `simgate doctor`"
            );
        }
        return Err(Refusal::NoMoreAccounts.into());
    }
    Ok(next)
}

/// Makes an account. Two processes may pick the same number; the primary key lets one win, and the other runs again.
pub fn create(tx: &mut Tx, new: &NewAccount) -> Result<AccountNo> {
    if tx.is_rerun()
        && let Some(no) = tx.opt(NO_OF, params![&new.id])?
    {
        return Ok(no);
    }
    let no = require_room(tx)?;
    tx.execute(INSERT, &New::params(new, no))?;
    wallet::create(tx, no)?;
    // Instances keep partners in memory; users are looked up on each request.
    if new.kind == AccountKind::Partner {
        low_balances::enlist(tx, no)?;
        days::enlist(tx, no)?;
        meta::bump(tx, meta::Version::Accounts)?;
    }
    Ok(no)
}

/// By id or email. The account that stands for guests is never found.
pub fn find(tx: &mut Tx, id_or_email: &str) -> Result<Option<Account>> {
    tx.opt(FIND, params![id_or_email])
}

pub fn by_no(tx: &mut Tx, no: AccountNo) -> Result<Option<Account>> {
    tx.opt(BY_NO, params![no])
}

/// The price lists that partners have.
pub fn price_lists(tx: &mut Tx) -> Result<Vec<String>> {
    tx.all(PRICE_LISTS, &[])
}

pub fn partners(tx: &mut Tx) -> Result<Vec<Account>> {
    tx.all(PARTNERS, &[])
}

/// Users, the newest first.
pub fn users(tx: &mut Tx, limit: i64) -> Result<Vec<Account>> {
    tx.all(USERS, params![limit])
}

/// Partners and users.
pub fn list(tx: &mut Tx) -> Result<Vec<Account>> {
    tx.all(ALL_ACCOUNTS, &[])
}

pub fn set_name(tx: &mut Tx, no: AccountNo, name: &str) -> Result<()> {
    tx.execute(SET_NAME, params![no, name])?;
    meta::bump(tx, meta::Version::Accounts).map(drop)
}

/// From which balance on somebody is warned, and who.
pub fn set_warning(tx: &mut Tx, no: AccountNo, threshold: Usd, whom: Option<&str>) -> Result<()> {
    tx.execute(SET_WARNING, params![no, threshold, whom])?;
    meta::bump(tx, meta::Version::Accounts).map(drop)
}

pub fn update(tx: &mut Tx, account: &Account) -> Result<()> {
    let values = params![account.no, &account.name, &account.email, &account.price_list, account.low_balance];
    tx.execute(UPDATE, values)?;
    meta::bump(tx, meta::Version::Accounts).map(drop)
}
