//! Users: accounts that are an email. They are made when a code is verified, never when one is asked for.

use super::accounts::{self, Account, NewAccount};
use super::tx::{Tx, params, queries};
use crate::domain::account::AccountKind;
use crate::domain::email::Email;
use crate::domain::ids::{AccountId, AccountNo};
use crate::domain::money::Usd;
use crate::domain::plan::RETAIL_PRICE_LIST;
use crate::domain::time::Time;
use crate::error::Result;

queries! {
    FIND = "SELECT no FROM accounts WHERE email = ?1 AND kind = 'USER'";
    EMAIL = "SELECT email FROM accounts WHERE no = ?1 AND kind = 'USER'";
}

/// Where a user hears from us; a partner does not, here.
pub fn email(tx: &mut Tx, no: AccountNo) -> Result<Option<Email>> {
    tx.opt(EMAIL, params![no], |row| Ok(Email::from_text(row.text(0)?)))
}

pub fn find(tx: &mut Tx, email: &Email) -> Result<Option<Account>> {
    match tx.opt(FIND, params![email.as_str()], |row| row.int(0))? {
        Some(no) => accounts::by_no(tx, AccountNo(no)),
        None => Ok(None),
    }
}

/// Refuses whoever has no account while no more can be made. To be asked before anything is written.
pub fn require_room(tx: &mut Tx, email: &Email) -> Result<()> {
    match tx.opt(FIND, params![email.as_str()], |_| Ok(()))? {
        Some(()) => Ok(()),
        None => accounts::require_room(tx).map(drop),
    }
}

/// The user with this email; `id` names a new one. Two processes may both make it: the unique index lets one win.
pub fn find_or_create(tx: &mut Tx, email: &Email, id: &AccountId, now: Time) -> Result<AccountNo> {
    if let Some(no) = tx.opt(FIND, params![email.as_str()], |row| row.int(0))? {
        return Ok(AccountNo(no));
    }
    let user = NewAccount {
        kind: AccountKind::User,
        id: id.clone(),
        name: email.to_string(),
        email: Some(email.to_string()),
        price_list: RETAIL_PRICE_LIST.into(),
        low_balance: Usd::ZERO,
        created_at: now,
    };
    accounts::create(tx, &user)
}
