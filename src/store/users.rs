//! Users: accounts that are an email. They are made when a code is verified, never when one is asked for.

use super::accounts::{self, Account, NewAccount};
use super::engine::{Tx, params, queries};
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

/// The email of a user; partners have none here.
pub fn email(tx: &mut Tx, no: AccountNo) -> Result<Option<Email>> {
    tx.opt(EMAIL, params![no])
}

pub fn find(tx: &mut Tx, email: &Email) -> Result<Option<Account>> {
    match tx.opt(FIND, params![email])? {
        Some(no) => accounts::by_no(tx, no),
        None => Ok(None),
    }
}

/// Refuses a person without an account when no more can be made. Call it before anything is written.
pub fn require_room(tx: &mut Tx, email: &Email) -> Result<()> {
    if exists(tx, email)? { Ok(()) } else { accounts::require_room(tx).map(drop) }
}

/// Whether the account exists. The look-up costs the same either way.
pub fn exists(tx: &mut Tx, email: &Email) -> Result<bool> {
    tx.any(FIND, params![email])
}

/// The user with this email; a new one gets `id`. Two processes may both make it: the unique index lets one win.
pub fn find_or_create(tx: &mut Tx, email: &Email, id: &AccountId, now: Time) -> Result<AccountNo> {
    if let Some(no) = tx.opt(FIND, params![email])? {
        return Ok(no);
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
