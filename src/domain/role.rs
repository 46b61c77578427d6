//! What members of a partner's team may do, and what its programs may do by a key. All of them see its balance, orders,
//! statement and settings; what a role or a key adds is in one table. Activation codes and links to install are for those who
//! handle orders.

use super::words::words;

words! {
    pub enum Role: ALL, parse {
        Owner = "OWNER",
        Developer = "DEVELOPER",
        Finance = "FINANCE",
        Viewer = "VIEWER",
    }
}

words! {
    pub enum Ability: ALL {
        /// To place, top up and cancel orders, and to send an eSIM to a customer.
        Order = "ORDER",
        /// To see activation codes and links to install, which open an eSIM for whoever has them.
        SeeCodes = "SEE_CODES",
        /// To open invoices and addresses to pay to.
        PayIn = "PAY_IN",
        /// To make, replace and end API keys.
        Keys = "KEYS",
        /// To make and change webhooks, and to send what they missed again.
        Webhooks = "WEBHOOKS",
        /// To say from which balance on somebody is warned, and who.
        Warnings = "WARNINGS",
        /// To change what the company is called.
        Company = "COMPANY",
        /// To invite and remove people, and to change their roles.
        Team = "TEAM",
    }
}

impl Role {
    pub fn may(self, ability: Ability) -> bool {
        use Ability::{Company, Keys, Order, PayIn, SeeCodes, Team, Warnings, Webhooks};
        match self {
            Role::Owner => true,
            Role::Developer => match ability {
                Order | SeeCodes | Keys | Webhooks => true,
                PayIn | Warnings | Company | Team => false,
            },
            Role::Finance => match ability {
                PayIn | Warnings => true,
                Order | SeeCodes | Keys | Webhooks | Company | Team => false,
            },
            Role::Viewer => false,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Role::Owner => "Owner",
            Role::Developer => "Developer",
            Role::Finance => "Finance",
            Role::Viewer => "Viewer",
        }
    }

    /// What the role is for, in the words of the page that gives it.
    pub fn about(self) -> &'static str {
        match self {
            Role::Owner => "Everything, and who is in the team",
            Role::Developer => "Orders, API keys and webhooks",
            Role::Finance => "Deposits and low-balance warnings; sees no activation codes",
            Role::Viewer => "Looks, changes nothing; sees no activation codes",
        }
    }
}

/// How far an API key opens the partner API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Full,
    ReadOnly,
}

impl Scope {
    /// No key makes keys or changes the team: whoever copies one gets no further with it.
    pub fn may(self, ability: Ability) -> bool {
        use Ability::{Company, Keys, Order, PayIn, SeeCodes, Team, Warnings, Webhooks};
        match ability {
            SeeCodes => true,
            Order | PayIn | Webhooks => self == Scope::Full,
            Keys | Warnings | Company | Team => false,
        }
    }
}

impl Ability {
    /// The deed, to say who may not do it.
    pub fn in_words(self) -> &'static str {
        match self {
            Ability::Order => "place, top up or cancel orders",
            Ability::SeeCodes => "see activation codes",
            Ability::PayIn => "open deposits",
            Ability::Keys => "make or change API keys",
            Ability::Webhooks => "make or change webhooks",
            Ability::Warnings => "change the low-balance warning",
            Ability::Company => "change the company",
            Ability::Team => "change the team",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole table, written out once more by hand.
    #[test]
    fn each_role_and_key_may_do_what_it_is_for() {
        let table = [
            (Ability::Order, "OWNER DEVELOPER", "Full"),
            (Ability::SeeCodes, "OWNER DEVELOPER", "Full ReadOnly"),
            (Ability::PayIn, "OWNER FINANCE", "Full"),
            (Ability::Keys, "OWNER DEVELOPER", ""),
            (Ability::Webhooks, "OWNER DEVELOPER", "Full"),
            (Ability::Warnings, "OWNER FINANCE", ""),
            (Ability::Company, "OWNER", ""),
            (Ability::Team, "OWNER", ""),
        ];
        assert_eq!(table.map(|(ability, ..)| ability), Ability::ALL);
        for (ability, people, keys) in table {
            let roles = Role::ALL.into_iter().filter(|role| role.may(ability)).map(Role::as_str);
            assert_eq!(roles.collect::<Vec<_>>().join(" "), people, "{ability:?}");
            let scopes = [Scope::Full, Scope::ReadOnly].into_iter().filter(|scope| scope.may(ability));
            assert_eq!(
                scopes.map(|scope| format!("{scope:?}")).collect::<Vec<_>>().join(" "),
                keys,
                "{ability:?}"
            );
        }
    }
}
