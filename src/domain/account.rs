//! Who owns a wallet: a partner, which is a company with API keys, or a user, who is an email with tokens.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKind {
    Partner,
    User,
}

impl AccountKind {
    pub const ALL: [AccountKind; 2] = [AccountKind::Partner, AccountKind::User];

    pub fn as_str(self) -> &'static str {
        match self {
            AccountKind::Partner => "PARTNER",
            AccountKind::User => "USER",
        }
    }

    pub fn parse(text: &str) -> Option<AccountKind> {
        AccountKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}
