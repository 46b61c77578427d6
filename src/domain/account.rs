//! Who owns a wallet: a partner, which is a company with API keys, or a user, who is an email with tokens. Guests have
//! no accounts; one account stands for all of them, so that their orders have numbers. It never holds money.

use super::ids::AccountNo;
use super::words::words;

/// The account that stands for every guest.
pub const GUESTS: AccountNo = AccountNo(0);

words! {
    pub enum AccountKind: parse {
        Partner = "PARTNER",
        User = "USER",
        Guest = "GUEST",
    }
}
