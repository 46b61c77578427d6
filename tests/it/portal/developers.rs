//! People of a partner's team at the portal: invited by hand, joined by the link and the code that were mailed to them.

use simgate::domain::ids::AccountNo;
use simgate::domain::role::Role;

use crate::support::database::rows;
use crate::support::desk;
use crate::support::harness::{Gateway, Reply};
use crate::support::visitor::{Visitor, hidden};

/// Clients that can be told apart, and may ask as often as a test waits for something; receivers on this machine.
pub const OPEN: [(&str, &str); 3] =
    [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0"), ("webhook_allow_private", "true")];
pub const DEV: &str = "dev@travel.example";

pub async fn account(gateway: &Gateway, partner: &str) -> AccountNo {
    desk::account_of(gateway, partner).await
}

/// Somebody who has joined the team of a partner in this role, and is signed in.
pub async fn member(gateway: &Gateway, partner: &str, email: &str, role: Role) -> Visitor {
    desk::member_of(gateway, account(gateway, partner).await, email, role).await
}

/// A developer of the gateway's own partner.
pub async fn developer(gateway: &Gateway) -> Visitor {
    member(gateway, &gateway.partner, DEV, Role::Developer).await
}

/// Sends a form that no page showed, with a good token.
pub async fn send(visitor: &mut Visitor, path: &str, fields: &[(&str, &str)]) -> Reply {
    let page = visitor.open("/portal").await;
    let mut all = hidden(&page, "/portal/sign-out");
    all.extend(fields.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    let all: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    visitor.post(path, &all).await
}

/// The first word on a page that begins like this.
#[track_caller]
pub fn word(page: &Reply, start: &str) -> String {
    let at = page.text.find(start).unwrap_or_else(|| panic!("no {start} in {}", page.text));
    page.text[at..].split(['"', '<', '\'', '&', ' ', '/', '?']).next().unwrap().to_string()
}

/// Everything in the audit log, a line each.
pub fn audit(gateway: &Gateway) -> Vec<String> {
    let sql = "SELECT actor || ' | ' || command || ' | ' || detail || ' | ' || COALESCE(before, '') || ' | ' || COALESCE(after, '')
        FROM audit ORDER BY at, id";
    rows(&gateway.app.settings.database, sql).into_iter().flatten().collect()
}

/// Nobody finds a secret that was shown: on no page, and not in the audit log.
pub async fn is_nowhere(gateway: &Gateway, visitor: &mut Visitor, secret: &str, pages: &[&str]) {
    for path in pages {
        let page = visitor.open(path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        assert!(!page.text.contains(secret), "the secret is on {path}");
    }
    assert!(audit(gateway).iter().all(|line| !line.contains(secret)), "the secret is in the audit log");
}
