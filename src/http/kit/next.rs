//! Where a sign-in leads on to: the page that somebody wanted, by its path below the entrance, such as `orders/ord_0TgG…`.
//! Only the pages listed here are led to, by names of the right kind: no address that somebody made up, and no page
//! whose path opens a door without a login, as an invoice's id does.

use std::fmt;

use super::path::ID_CHARS;
use crate::domain::ids::InvoiceId;
use crate::domain::login::Realm;

/// A page's path, in which `*` stands for the rest of a name, and what the page is about.
type Page = (&'static str, &'static str);

const PORTAL: &[Page] = &[
    ("orders", "orders"),
    ("orders/new", "placing an order"),
    ("orders/batch", "placing several orders"),
    ("orders/batches/bat_*", "several orders"),
    ("orders/ord_*", "an order"),
    ("orders/ord_*/data", "more data for an eSIM"),
    ("orders/ord_*/cancel", "giving an eSIM back"),
    ("orders/ord_*/send", "sending an eSIM to a customer"),
    ("plans", "plans"),
    ("deposits", "deposits"),
    ("statement", "the statement"),
    ("statement/2*", "a monthly statement"),
    ("keys", "API keys"),
    ("keys/new", "making an API key"),
    ("keys/key_*/rotate", "replacing an API key"),
    ("keys/key_*/revoke", "revoking an API key"),
    ("webhooks", "webhooks"),
    ("webhooks/new", "adding a webhook"),
    ("webhooks/whk_*", "a webhook"),
    ("webhooks/whk_*/rotate", "a new secret of a webhook"),
    ("webhooks/whk_*/delete", "deleting a webhook"),
    ("webhooks/whk_*/deliveries", "deliveries to a webhook"),
    ("webhooks/whk_*/deliveries/dlv_*", "a delivery to a webhook"),
    ("logs", "logs"),
    ("team", "the team"),
    ("team/log", "what members did"),
    ("team/mbr_*", "a member of the team"),
    ("settings", "settings"),
    ("settings/second-factor", "the second factor"),
];

const ACCOUNT: &[Page] = &[
    ("wallet", "the wallet"),
    ("deposit", "adding money"),
    ("buy", "buying a plan"),
    ("buy/*", "buying a plan"),
    ("orders", "orders"),
    ("orders/ord_*", "an order"),
    ("orders/ord_*/data", "more data for an eSIM"),
    ("orders/ord_*/give-back", "giving an eSIM back"),
    ("agents", "agents"),
    ("agents/tok_*", "an agent's token"),
    ("agents/tok_*/revoke", "revoking an agent's token"),
    ("settings", "settings"),
];

/// Where somebody signs in.
pub fn entrance(realm: Realm) -> &'static str {
    match realm {
        Realm::Buyers => "/account",
        Realm::Partners => "/portal",
    }
}

fn pages(realm: Realm) -> &'static [Page] {
    match realm {
        Realm::Buyers => ACCOUNT,
        Realm::Partners => PORTAL,
    }
}

/// What comes after a sign-in: a page, or the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    realm: Realm,
    /// Below the entrance; empty for the first page.
    page: String,
    /// What the page is about.
    pub about: Option<&'static str>,
}

impl Next {
    /// The page with this name, if it is one of ours.
    pub fn named(realm: Realm, text: &str) -> Next {
        match pages(realm).iter().find(|(pattern, _)| fits(pattern, text)) {
            Some((_, about)) => Next { realm, page: text.into(), about: Some(about) },
            None => Next { realm, page: String::new(), about: None },
        }
    }

    /// The page that a request was for; for what is no page, the nearest one above it.
    pub fn wanted(realm: Realm, path: &str) -> Next {
        let mut page = path.strip_prefix(entrance(realm)).and_then(|rest| rest.strip_prefix('/'));
        while let Some(text) = page {
            let next = Next::named(realm, text);
            if next.about.is_some() {
                return next;
            }
            page = text.rsplit_once('/').map(|(above, _)| above);
        }
        Next::named(realm, "")
    }

    pub fn path(&self) -> String {
        match self.about {
            Some(_) => format!("{}/{self}", entrance(self.realm)),
            None => entrance(self.realm).into(),
        }
    }
}

/// As links and forms name it.
impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.page)
    }
}

fn fits(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut found) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), found.next()) {
            (Some(wanted), Some(found)) if fits_part(wanted, found) => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

fn fits_part(wanted: &str, found: &str) -> bool {
    let Some(begins) = wanted.strip_suffix('*') else { return wanted == found };
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let is_name = found.len() <= ID_CHARS && found.bytes().all(is_plain);
    let opens_a_door = found.starts_with(InvoiceId::PREFIX);
    is_name && !opens_a_door && found.strip_prefix(begins).is_some_and(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> String {
        Next::named(Realm::Partners, text).path()
    }

    #[test]
    fn pages_are_led_to() {
        for page in ["orders", "orders/ord_0TgGbAA9", "webhooks/whk_1/deliveries/dlv_2", "statement/2026-11"]
        {
            assert_eq!(named(page), format!("/portal/{page}"));
        }
        assert_eq!(Next::named(Realm::Buyers, "buy/JP-1GB-7D").path(), "/account/buy/JP-1GB-7D");
    }

    #[test]
    fn nothing_else_is() {
        for made_up in [
            "",
            "overview",
            "/",
            "//evil.example",
            "https://evil.example",
            "orders/../../x",
            "orders//evil.example",
            "orders/",
            "orders\\evil",
            "orders/ord_\r\nSet-Cookie: a=b",
            "orders/ord_",
            "orders/ord_%2f%2fevil.example",
            "orders/ord_1?a=b",
            "orders/key_1",
            "orders/ord_1/keep",
            "deposits/inv_1",
            "statement/inv_1",
            "join/abc",
            "sign-out",
            "search",
            "orders.csv",
        ] {
            assert_eq!(named(made_up), "/portal", "{made_up:?}");
        }
        assert_eq!(named(&format!("orders/ord_{}", "x".repeat(ID_CHARS))), "/portal");
        assert_eq!(Next::named(Realm::Buyers, "buy/inv_1").path(), "/account");
        assert_eq!(Next::named(Realm::Buyers, "team").path(), "/account", "a page of the other realm");
    }

    #[test]
    fn what_is_no_page_leads_to_the_one_above_it() {
        let wanted = |path: &str| Next::wanted(Realm::Partners, path).to_string();
        assert_eq!(wanted("/portal/orders/ord_1/keep"), "orders/ord_1");
        assert_eq!(wanted("/portal/deposits/inv_1"), "deposits");
        assert_eq!(wanted("/portal/deposits/address"), "deposits");
        for none in [
            "/portal",
            "/portal/",
            "/portal//evil.example",
            "/portal/sign-out",
            "/account/orders",
            "/portals/orders",
        ] {
            assert_eq!(wanted(none), "", "{none}");
        }
    }
}
