//! What members of a partner's team may do. Everybody in a team sees its balance, orders, statement and settings; what a role
//! adds is in one table. Activation codes and links to install are for those who handle orders.

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
    fn each_role_may_do_what_it_is_for() {
        let table = [
            (Ability::Order, "OWNER DEVELOPER"),
            (Ability::SeeCodes, "OWNER DEVELOPER"),
            (Ability::PayIn, "OWNER FINANCE"),
            (Ability::Keys, "OWNER DEVELOPER"),
            (Ability::Webhooks, "OWNER DEVELOPER"),
            (Ability::Warnings, "OWNER FINANCE"),
            (Ability::Company, "OWNER"),
            (Ability::Team, "OWNER"),
        ];
        assert_eq!(table.map(|(ability, _)| ability), Ability::ALL);
        for (ability, allowed) in table {
            let may = Role::ALL.into_iter().filter(|role| role.may(ability)).map(Role::as_str);
            assert_eq!(may.collect::<Vec<_>>().join(" "), allowed, "{ability:?}");
        }
    }
}
