//! Who owns a wallet: a partner, which is a company with API keys, or a user, who is an email with tokens. Guests have
//! no account; one stands for all of them, so that their orders have numbers. It never holds money.

use super::ids::AccountNo;

/// The account that stands for every guest.
pub const GUESTS: AccountNo = AccountNo(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKind {
    Partner,
    User,
    Guest,
}

impl AccountKind {
    pub const ALL: [AccountKind; 3] = [AccountKind::Partner, AccountKind::User, AccountKind::Guest];

    pub fn as_str(self) -> &'static str {
        match self {
            AccountKind::Partner => "PARTNER",
            AccountKind::User => "USER",
            AccountKind::Guest => "GUEST",
        }
    }

    pub fn parse(text: &str) -> Option<AccountKind> {
        AccountKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}
