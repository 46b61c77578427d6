//! People of partners' teams at the portal: invited by mail, signed in by a code.

use simgate::domain::email::Email;
use simgate::domain::ids::AccountNo;
use simgate::domain::role::Role;
use simgate::ops::{operator, team};

use crate::support::harness::{Gateway, Reply};
use crate::support::logins::{code, link};
use crate::support::visitor::Visitor;

/// Clients that can be told apart, and may ask as often as a test waits for something.
pub const OPEN: [(&str, &str); 2] = [("trusted_proxies", "127.0.0.1"), ("ip_rate_limit", "0")];
pub const COOKIE: &str = "simgate-portal";

/// The number of the partner that every gateway of a test has.
pub async fn account(gateway: &Gateway) -> AccountNo {
    account_of(gateway, &gateway.partner).await
}

pub async fn account_of(gateway: &Gateway, partner: &str) -> AccountNo {
    operator::account(&gateway.app, partner).await.unwrap().no
}

/// Has the operator invite somebody; answers the path of the link in the mail.
pub async fn invite(gateway: &Gateway, account: AccountNo, email: &str, role: Role) -> String {
    let to = Email::parse(email).unwrap();
    team::invite_by_hand(&gateway.app, "test", account, to, role).await.unwrap();
    invitation(gateway, email).await
}

/// The path of the newest invitation in a mailbox.
pub async fn invitation(gateway: &Gateway, email: &str) -> String {
    let url = link(gateway, email, "/portal/join/").await;
    url[url.find("/portal/join/").unwrap()..].to_string()
}

/// Asks for a code at the invitation, and enters it.
pub async fn join(gateway: &Gateway, visitor: &mut Visitor, path: &str, email: &str) -> Reply {
    let page = visitor.open(path).await;
    assert_eq!(page.status, 200, "{}", page.text);
    let asked = visitor.submit(&page, "/portal/code", &[]).await;
    assert_eq!(asked.status, 200, "{}", asked.text);
    let otp = code(gateway, email).await;
    visitor.submit(&asked, "/portal/sign-in", &[("code", &otp)]).await
}

/// Somebody of the partner's team in this role, signed in.
pub async fn member(gateway: &Gateway, email: &str, role: Role) -> Visitor {
    member_of(gateway, account(gateway).await, email, role).await
}

pub async fn member_of(gateway: &Gateway, account: AccountNo, email: &str, role: Role) -> Visitor {
    let path = invite(gateway, account, email, role).await;
    let mut visitor = Visitor::new(gateway);
    let joined = join(gateway, &mut visitor, &path, email).await;
    assert_eq!((joined.status, joined.header("location")), (303, "/portal?done=joined"), "{}", joined.text);
    visitor
}

/// Signs in somebody who has joined; answers what the code led to.
pub async fn sign_in(gateway: &Gateway, visitor: &mut Visitor, email: &str) -> Reply {
    let page = visitor.open("/portal").await;
    let asked = visitor.submit(&page, "/portal/code", &[("email", email)]).await;
    assert_eq!(asked.status, 200, "{}", asked.text);
    let otp = code(gateway, email).await;
    visitor.submit(&asked, "/portal/sign-in", &[("code", &otp)]).await
}

pub async fn is_in(visitor: &mut Visitor) -> bool {
    let page = visitor.open("/portal").await;
    page.status == 200 && page.text.contains("<h1>Overview</h1>")
}

/// The token of the forms on a member's pages.
pub async fn form(visitor: &mut Visitor) -> String {
    let page = visitor.open("/portal/settings").await;
    crate::support::visitor::hidden(&page, "/portal/sign-out").remove(0).1
}
